//! A cluster and what is in it.

use crate::requests::{PODS, Requests};
use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;

/// What takes longer has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// Everything that becomes of pods from now on.
const WATCH_PODS: &str = "/api/v1/pods?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";

const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";

/// Who places pods.
pub(super) const TUTTI: &str = "tutti";
pub(super) const NOBODY: &str = "nobody";

pub(super) struct World {
    pub(super) cluster: Cluster,
    /// Requests that are not measured go without a socket.
    pub(super) inside: Requests,
    pub(super) nodes: u32,
}

/// Pods of one kind.
pub(super) struct Pods<'a> {
    pub(super) prefix: &'a str,
    pub(super) count: usize,
    pub(super) scheduler: &'a str,
    pub(super) cpu: &'a str,
    /// Members of a group; every so many pods are one.
    pub(super) gang: Option<usize>,
}

impl World {
    pub(super) async fn start(nodes: u32) -> anyhow::Result<Self> {
        let options = ClusterOptions {
            port: Port::Exactly(0),
            nodes,
            simulate_nodes: false,
            controllers: None,
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start(options).await?;
        Ok(Self { inside: Requests::new(cluster.in_process_client()), cluster, nodes })
    }

    pub(super) fn node(&self, index: usize) -> String {
        node_name(self.nodes, index)
    }

    /// Pods that wait, and their groups.
    pub(super) async fn add(&self, pods: &Pods<'_>) -> anyhow::Result<()> {
        if let Some(size) = pods.gang {
            let group = |index: usize| {
                let body = json!({
                    "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
                    "metadata": {"name": format!("{}-{index}", pods.prefix)},
                    "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
                });
                (GROUPS.to_owned(), body)
            };
            self.inside.all(pods.count.div_ceil(size), group).await?;
        }
        self.inside.all(pods.count, |index| (PODS.to_owned(), pod(pods, index, None))).await?;
        Ok(())
    }

    /// Pods that were bound long ago, evenly over the nodes.
    pub(super) async fn add_bound(&self, pods: &Pods<'_>) -> anyhow::Result<()> {
        let bound = |index| (PODS.to_owned(), pod(pods, index, Some(self.node(index))));
        self.inside.all(pods.count, bound).await?;
        Ok(())
    }

    /// Waits until so many pods whose names begin alike are bound; gives when the first and the last of them was seen,
    /// without a socket: to look on should cost little.
    pub(super) async fn watch_binds(&self, prefix: &str, count: usize) -> anyhow::Result<JoinHandle<Seen>> {
        let lines = self.inside.lines(WATCH_PODS).await?;
        Ok(tokio::spawn(see_pods(lines, format!("{prefix}-"), r#""nodeName":""#, count)))
    }

    /// The same for pods that say that there is no room for them.
    pub(super) async fn watch_marks(&self, prefix: &str, count: usize) -> anyhow::Result<JoinHandle<Seen>> {
        let lines = self.inside.lines(WATCH_PODS).await?;
        Ok(tokio::spawn(see_pods(lines, format!("{prefix}-"), r#""reason":"Unschedulable""#, count)))
    }
}

/// Somebody who watches pods and looks at nothing of them. Dropped, it ends.
pub(super) struct Watcher(JoinSet<()>);

impl Watcher {
    pub(super) async fn start(client: &Requests) -> anyhow::Result<Self> {
        let mut events = client.lines(WATCH_PODS).await?;
        let mut task = JoinSet::new();
        task.spawn(async move { while let Some(Ok(_)) = events.next().await {} });
        Ok(Self(task))
    }

    /// False if the watch has ended by itself.
    pub(super) fn still_works(mut self) -> bool {
        self.0.try_join_next().is_none()
    }
}

/// The part of an event that is looked at.
#[derive(Deserialize)]
struct PodEvent<'a> {
    #[serde(borrow)]
    object: PodObject<'a>,
}

#[derive(Deserialize)]
struct PodObject<'a> {
    #[serde(borrow)]
    metadata: PodMetadata<'a>,
}

#[derive(Deserialize)]
struct PodMetadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// When the first and the last pod was seen.
pub(super) type Seen = anyhow::Result<(Instant, Instant)>;

/// Waits for pods whose names begin alike and that contain a text.
async fn see_pods(
    mut lines: impl futures::Stream<Item = std::io::Result<String>> + Unpin,
    prefix: String,
    text: &str,
    count: usize,
) -> Seen {
    let mut found = BTreeSet::new();
    let mut first = None;
    loop {
        let line = lines.next().await.context("the watch ended")??;
        // Most lines are not looked into: this client shares the machine with what is measured.
        if !line.contains(text) || !line.contains(&prefix) {
            continue;
        }
        let PodEvent { object: PodObject { metadata: PodMetadata { name } } } = serde_json::from_str(&line)?;
        if name.starts_with(&prefix) && found.insert(name.into_owned()) {
            let now = Instant::now();
            let first = *first.get_or_insert(now);
            if found.len() == count {
                return Ok((first, now));
            }
        }
    }
}

/// The result of a watch, if it comes in time.
pub(super) async fn seen(watch: JoinHandle<Seen>) -> Seen {
    tokio::time::timeout(PATIENCE, watch).await.context("not everything was seen in time")??
}

/// The name of one of so many nodes.
pub(super) fn node_name(nodes: u32, index: usize) -> String {
    let width = nodes.saturating_sub(1).to_string().len();
    format!("node-{:0width$}", index % nodes.max(1) as usize)
}

/// Bindings per second between the first and the last.
pub(super) fn rate(count: usize, (first, last): (Instant, Instant)) -> anyhow::Result<f64> {
    ensure!(count > 1 && last > first, "too few bindings to measure");
    Ok((count - 1) as f64 / (last - first).as_secs_f64())
}

/// A pod as a job makes them.
fn pod(pods: &Pods<'_>, index: usize, node: Option<String>) -> Value {
    let mut spec = json!({
        "restartPolicy": "Never",
        "schedulerName": pods.scheduler,
        "containers": [{
            "name": "worker", "image": "registry.example/worker:1", "command": ["work"],
            "resources": {"requests": {"cpu": pods.cpu, "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        }],
    });
    if let Some(size) = pods.gang {
        spec["schedulingGroup"] = json!({"podGroupName": format!("{}-{}", pods.prefix, index / size)});
    }
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{}-{index}", pods.prefix), "labels": {"app": pods.prefix}},
        "spec": spec,
    })
}
