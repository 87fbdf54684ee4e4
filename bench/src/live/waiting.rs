//! What a scheduler costs beside which very many gangs wait, while things happen that help none of them.

use super::Sizes;
use super::idle::{changes, heartbeat, repeat};
use super::process::Scheduler;
use super::world::{NOBODY, Pods, TUTTI, World};
use crate::report::Report;
use crate::requests::PODS;
use anyhow::{Context as _, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Members of a gang that waits.
const GANG: usize = 8;
/// Changes per second, by kind: nodes that report their status, nodes that get other labels, nodes that get a little larger
/// or smaller, pods elsewhere that end and come.
const HEARTBEATS_PER_SECOND: u64 = 25;
const LABELS_PER_SECOND: u64 = 25;
const RESIZES_PER_SECOND: u64 = 25;
const ENDS_PER_SECOND: u64 = 25;
/// Pods that end, for each of which a place is too small for a member.
const BYSTANDERS: usize = 10_000;
/// The most that telling every pod may take.
const TOLD_MAX: Duration = Duration::from_secs(1_800);
/// Requests that only read.
const READS: [&str; 2] = ["get-pod", "get-group"];

/// Share of a core, and writes per second, once every pod has been told that there is no room.
pub(super) async fn run(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let world = World::start(sizes.nodes).await?;
    let bystanders = Pods { prefix: "by", count: BYSTANDERS, scheduler: NOBODY, cpu: "100m", gang: None };
    world.add_bound(&bystanders).await?;
    // A node has 64 processors.
    let count = GANG * sizes.gangs_of_8;
    world.add(&Pods { prefix: "gang", count, scheduler: TUTTI, cpu: "100", gang: Some(GANG) }).await?;
    let marks = world.watch_marks("gang", count).await?;
    let mut load = load(&world);
    let started = Instant::now();
    let scheduler = Scheduler::start(&world.cluster, false).await?;
    let (_, told) =
        tokio::time::timeout(TOLD_MAX, marks).await.context("not every pod was told in time")???;
    report.figure("waiting-told", sizes.nodes, (told - started).as_secs_f64(), "s until every pod is told");
    report.figure("waiting-told-processor", sizes.nodes, scheduler.processor_seconds()?, "s");
    let attempts = scheduler.metric("tutti_attempts_total").await.context("no metrics")?;
    let (inputs, requests) = (changes(&scheduler).await?, scheduler.requests().await?);
    let (used, from) = (scheduler.processor_seconds()?, Instant::now());
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds)).await;
    let seconds = from.elapsed().as_secs_f64();
    let share = (scheduler.processor_seconds()? - used) / seconds;
    let since = difference(&scheduler.requests().await?, &requests);
    let seen = (changes(&scheduler).await? - inputs) / seconds;
    let attempts = scheduler.metric("tutti_attempts_total").await.context("no metrics")? - attempts;
    if let Some(ended) = load.try_join_next() {
        ended??;
    }
    let wanted = HEARTBEATS_PER_SECOND + LABELS_PER_SECOND + RESIZES_PER_SECOND + ENDS_PER_SECOND;
    ensure!(seen > wanted as f64 / 2.0, "it was told of {seen} changes per second");
    report.figure("waiting-processor", sizes.nodes, 100.0 * share, "% of a core");
    let writes: f64 =
        since.iter().filter(|(kind, _)| !READS.contains(&kind.as_str())).map(|(_, count)| count).sum();
    report.figure("waiting-writes", sizes.nodes, writes / seconds, "writes/s");
    for (kind, count) in since.iter().filter(|(_, count)| **count > 0.0) {
        report.figure(&format!("waiting-{kind}"), sizes.nodes, count / seconds, "requests/s");
    }
    report.figure("waiting-re-solves", sizes.nodes, attempts, "decisions");
    report.figure("waiting-changes", sizes.nodes, seen, "changes/s seen");
    drop(scheduler);
    world.cluster.shutdown().await;
    Ok(())
}

/// Changes that go on forever and help nobody.
fn load(world: &World) -> JoinSet<anyhow::Result<()>> {
    let mut load = JoinSet::new();
    let nodes: Vec<String> = (0..world.nodes as usize).map(|index| world.node(index)).collect();
    let inside = || world.inside.clone();
    let all = nodes.clone();
    load.spawn(repeat(inside(), HEARTBEATS_PER_SECOND, move |turn| {
        let condition = json!([{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready",
            "lastHeartbeatTime": heartbeat(turn), "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        (
            format!("/api/v1/nodes/{}/status", all[turn % all.len()]),
            json!({"status": {"conditions": condition}}),
        )
    }));
    let all = nodes.clone();
    load.spawn(repeat(inside(), LABELS_PER_SECOND, move |turn| {
        let labels = json!({"example.com/turn": turn.to_string()});
        (format!("/api/v1/nodes/{}", all[turn % all.len()]), json!({"metadata": {"labels": labels}}))
    }));
    load.spawn(repeat(inside(), RESIZES_PER_SECOND, move |turn| {
        // Up and down again when all have had their turn. A member needs a hundred processors.
        let cpus = if (turn / nodes.len()).is_multiple_of(2) { "65" } else { "64" };
        let status = json!({"allocatable": {"cpu": cpus}, "capacity": {"cpu": cpus}});
        (format!("/api/v1/nodes/{}/status", nodes[turn % nodes.len()]), json!({"status": status}))
    }));
    load.spawn(repeat(inside(), ENDS_PER_SECOND, |turn| {
        // When all of them have ended, they are there again.
        let phase = if (turn / BYSTANDERS).is_multiple_of(2) { "Succeeded" } else { "Running" };
        (format!("{PODS}/by-{}/status", turn % BYSTANDERS), json!({"status": {"phase": phase}}))
    }));
    load
}

fn difference(now: &BTreeMap<String, f64>, before: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let since = |(kind, count): (&String, &f64)| (kind.clone(), count - before.get(kind).unwrap_or(&0.0));
    now.iter().map(since).collect()
}
