//! What it takes to start a gang of eight, in requests.

use super::Sizes;
use super::process::Scheduler;
use super::world::{PATIENCE, Pods, TUTTI, World, rate, seen};
use crate::report::Report;
use anyhow::ensure;
use std::time::{Duration, Instant};

/// Members of a gang.
const GANG: usize = 8;
/// Gangs that start; more of them would say the same.
const GANGS_MAX: usize = 2_500;
/// A node has 64 processors.
const MEMBERS_PER_NODE: usize = 64;

/// Starts gangs for which there is room, and counts requests by kind.
pub(super) async fn run(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let gangs = sizes.gangs_of_8.min(GANGS_MAX);
    let count = GANG * gangs;
    let nodes = u32::try_from(count.div_ceil(MEMBERS_PER_NODE))? + 1;
    let world = World::start(nodes).await?;
    world.add(&Pods { prefix: "gang", count, scheduler: TUTTI, cpu: "1", gang: Some(GANG) }).await?;
    let watch = world.watch_binds("gang", count).await?;
    let scheduler = Scheduler::start(&world.cluster, false).await?;
    report.figure("gang-8", nodes, rate(count, seen(watch).await?)?, "pods/s");
    let started = Instant::now();
    // Every pod and every group gets an event.
    let requests = loop {
        let requests = scheduler.requests().await?;
        let are_told = requests.get("event").is_some_and(|events| *events >= count as f64);
        if are_told && scheduler.metric("tutti_writes_waiting").await == Some(0.0) {
            break requests;
        }
        ensure!(started.elapsed() < PATIENCE, "not everything was told: {requests:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    // One event per pod is what Kubernetes has, too. What is said about the group counts.
    let all: f64 = requests.values().sum();
    for (kind, requests) in &requests {
        report.figure(&format!("gang-8-{kind}"), nodes, requests / gangs as f64, "requests/gang");
    }
    let others = (all - count as f64) / gangs as f64;
    report.figure("gang-8-requests", nodes, others, "requests/gang besides one event per pod");
    drop(scheduler);
    world.cluster.shutdown().await;
    Ok(())
}
