//! The embedded cluster over HTTPS, with its clients in the same process: what is measured is both together.

mod memory;

mod watchers;

use crate::report::Report;
use crate::requests::Requests;
use anyhow::ensure;
use std::time::{Duration, Instant};
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;

/// How much is measured.
pub(crate) struct Sizes {
    /// Pods that are created and bound one request each.
    pub(crate) pods: usize,
    /// Pods in the longest list.
    pub(crate) listed: usize,
    /// Nodes of the largest cluster.
    pub(crate) nodes: u32,
    /// Watchers of everything.
    pub(crate) watchers: usize,
}

/// Measures and reports.
pub(crate) fn run(sizes: &Sizes, only: &str, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        if wanted(only, "nodes-up") {
            nodes_up(sizes, report).await?;
        }
        if wanted(only, "pod-creates") || wanted(only, "bindings") {
            creates_and_bindings(sizes, report).await?;
        }
        if wanted(only, "watchers") {
            watchers::run(sizes, report).await?;
        }
        if wanted(only, "list") {
            list(sizes, report).await?;
        }
        Ok(())
    })
}

fn wanted(only: &str, case: &str) -> bool {
    case.contains(only)
}

/// A cluster whose nodes nobody simulates: kubelets would be measured too.
async fn quiet_cluster(nodes: u32) -> anyhow::Result<Cluster> {
    let options =
        ClusterOptions { port: Port::Exactly(0), nodes, simulate_nodes: false, ..ClusterOptions::default() };
    Ok(Cluster::start(options).await?)
}

async fn nodes_up(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let started = Instant::now();
    let options = ClusterOptions { port: Port::Exactly(0), nodes: sizes.nodes, ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await?;
    let seconds = started.elapsed().as_secs_f64();
    let requests = Requests::new(cluster.client());
    let ready = requests.get("/api/v1/nodes").await?.matches(r#""type":"Ready""#).count();
    ensure!(ready == sizes.nodes as usize, "{ready} of {} nodes are Ready", sizes.nodes);
    report.figure("nodes-up", sizes.nodes, seconds, "s");
    cluster.shutdown().await;
    Ok(())
}

async fn creates_and_bindings(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let cluster = quiet_cluster(1).await?;
    let requests = Requests::new(cluster.client());
    // Connections, certificates and tables are there from here on.
    requests.create_pods("warm-up", 200).await?;
    let took = requests.create_pods("pod", sizes.pods).await?;
    report.figure("pod-creates", 1, rate(sizes.pods, took), "pods/s");
    let took = requests.bind_pods("pod", sizes.pods).await?;
    report.figure("bindings", 1, rate(sizes.pods, took), "pods/s");
    cluster.shutdown().await;
    Ok(())
}

async fn list(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let cluster = quiet_cluster(1).await?;
    let inside = Requests::new(cluster.in_process_client());
    inside.create_pods("warm-up", 200).await?;
    let before = memory::resident_bytes();
    let took = inside.create_pods("pod", sizes.listed).await?;
    report.figure("pod-creates-in-process", 1, rate(sizes.listed, took), "pods/s");
    let after = memory::resident_bytes();
    if let (Some(before), Some(after)) = (before, after) {
        let bytes = after.saturating_sub(before) as f64 / sizes.listed as f64;
        report.figure("memory-per-pod", 1, bytes / 1024.0, "KiB");
    }
    for (name, client) in [("list-in-process", &inside), ("list", &Requests::new(cluster.client()))] {
        let started = Instant::now();
        let bytes = client.count_bytes("/api/v1/pods").await?;
        let took = started.elapsed();
        ensure!(bytes > sizes.listed * 100, "a list of {bytes} bytes");
        report.figure(name, 1, took.as_secs_f64(), "s");
        report.figure(&format!("{name}-size"), 1, bytes as f64 / f64::from(1 << 20), "MiB");
    }
    cluster.shutdown().await;
    Ok(())
}

fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
