//! What a scheduler costs that cannot do anything, while things happen that are none of its business.

use super::Sizes;
use super::process::Scheduler;
use super::world::{NOBODY, Pods, TUTTI, World, seen};
use crate::report::Report;
use crate::requests::{PODS, Requests};
use anyhow::{Context as _, ensure};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Members of a gang that waits.
const GANG: usize = 3;
/// Every node updates its status this often.
const HEARTBEAT_SECONDS: u64 = 10;
/// Updates of pods per second that change nothing for scheduling.
const POD_UPDATES_PER_SECOND: u64 = 100;
/// Pods that are updated.
const BYSTANDERS: usize = 1_000;

/// Share of a core and number of decisions while nothing relevant happens.
pub(super) async fn run(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let world = World::start(sizes.nodes).await?;
    let bystanders = Pods { prefix: "by", count: BYSTANDERS, scheduler: NOBODY, cpu: "100m", gang: None };
    world.add_bound(&bystanders).await?;
    // A node has 64 processors.
    let count = GANG * sizes.gangs;
    world.add(&Pods { prefix: "gang", count, scheduler: TUTTI, cpu: "100", gang: Some(GANG) }).await?;
    let marks = world.watch_marks("gang", count).await?;
    let scheduler = Scheduler::start(&world.cluster, false).await?;
    // Events that say the same still go out, a few per second.
    seen(marks).await?;
    let mut load = JoinSet::new();
    let nodes: Vec<String> = (0..sizes.nodes as usize).map(|index| world.node(index)).collect();
    let per_second = u64::from(sizes.nodes).div_ceil(HEARTBEAT_SECONDS);
    load.spawn(repeat(world.inside.clone(), per_second, move |turn| {
        let node = &nodes[turn % nodes.len()];
        let condition = json!([{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready",
            "lastHeartbeatTime": heartbeat(turn), "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        (format!("/api/v1/nodes/{node}/status"), json!({"status": {"conditions": condition}}))
    }));
    load.spawn(repeat(world.inside.clone(), POD_UPDATES_PER_SECOND, |turn| {
        let body = json!({"metadata": {"annotations": {"example.com/progress": turn.to_string()}}});
        (format!("{PODS}/by-{}", turn % BYSTANDERS), body)
    }));
    let attempts = scheduler.metric("tutti_attempts_total").await.context("no metrics")?;
    let inputs = changes(&scheduler).await?;
    let (used, from) = (scheduler.processor_seconds()?, Instant::now());
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds)).await;
    let share = (scheduler.processor_seconds()? - used) / from.elapsed().as_secs_f64();
    let resolved = scheduler.metric("tutti_attempts_total").await.context("no metrics")? - attempts;
    let changes = changes(&scheduler).await? - inputs;
    if let Some(ended) = load.try_join_next() {
        ended??;
    }
    let per_second = changes / from.elapsed().as_secs_f64();
    ensure!(
        per_second > POD_UPDATES_PER_SECOND as f64 / 2.0,
        "it was told of {per_second} changes per second"
    );
    report.figure("idle-processor", sizes.nodes, 100.0 * share, "% of a core");
    report.figure("idle-re-solves", sizes.nodes, resolved, "decisions");
    report.figure("idle-changes", sizes.nodes, per_second, "changes/s seen");
    drop(scheduler);
    world.cluster.shutdown().await;
    Ok(())
}

/// How many changes were seen, whether or not they said anything new.
pub(super) async fn changes(scheduler: &Scheduler) -> anyhow::Result<f64> {
    let told = scheduler.metric("tutti_inputs_total").await.context("no metrics")?;
    let left_out = scheduler.metric("tutti_unchanged_total").await.context("no metrics")?;
    Ok(told + left_out)
}

/// Patches so many objects per second, forever.
pub(super) async fn repeat(
    client: Requests,
    per_second: u64,
    patch: impl Fn(usize) -> (String, serde_json::Value),
) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / per_second.max(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for turn in 0.. {
        ticks.tick().await;
        let (path, body) = patch(turn);
        client.patch(&path, &body).await?;
    }
    Ok(())
}

/// A moment that is later every turn.
pub(super) fn heartbeat(turn: usize) -> String {
    format!(
        "2026-01-{:02}T{:02}:{:02}:{:02}Z",
        1 + turn / 86_400 % 28,
        turn / 3_600 % 24,
        turn / 60 % 60,
        turn % 60
    )
}
