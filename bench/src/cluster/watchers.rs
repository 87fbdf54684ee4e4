//! Many watchers of everything.

use super::{Sizes, quiet_cluster, rate};
use crate::report::Report;
use crate::requests::Requests;
use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A run in which a watcher has not seen everything by then has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Creates and binds pods while many watch, and measures until the last of them has seen the last event.
pub(super) async fn run(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let cluster = quiet_cluster(1).await?;
    let requests = Requests::new(cluster.client());
    let mut watchers = JoinSet::new();
    for _ in 0..sizes.watchers {
        let path = "/api/v1/pods?watch=true&resourceVersion=0&allowWatchBookmarks=true";
        let lines = requests.lines(path).await?;
        watchers.spawn(see_all(lines, sizes.pods));
    }
    let started = Instant::now();
    requests.create_pods("pod", sizes.pods).await?;
    requests.bind_pods("pod", sizes.pods).await?;
    let written = started.elapsed();
    let seen =
        tokio::time::timeout(PATIENCE, watchers.join_all()).await.context("a watcher waits in vain")?;
    let took = started.elapsed();
    for result in seen {
        result?;
    }
    let writes = 2 * sizes.pods;
    report.figure("watchers-writes", 1, rate(writes, written), "writes/s");
    report.figure("watchers-events", 1, rate(writes * sizes.watchers, took), "events/s");
    report.figure("watchers-lag", 1, (took - written).as_secs_f64(), "s");
    cluster.shutdown().await;
    Ok(())
}

/// Reads until every pod was added and bound, each exactly once.
async fn see_all(
    mut lines: impl futures::Stream<Item = std::io::Result<String>> + Unpin,
    pods: usize,
) -> anyhow::Result<()> {
    let (mut added, mut modified) = (0, 0);
    while added < pods || modified < pods {
        let line = lines.next().await.context("the watch ended")??;
        if line.starts_with(r#"{"type":"ADDED""#) {
            added += 1;
        } else if line.starts_with(r#"{"type":"MODIFIED""#) {
            modified += 1;
        } else if !line.starts_with(r#"{"type":"BOOKMARK""#) {
            bail!("an event that should not be: {line}");
        }
    }
    ensure!((added, modified) == (pods, pods), "{added} added and {modified} modified of {pods} pods");
    Ok(())
}
