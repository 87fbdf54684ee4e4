//! A scheduler starts in a large cluster, and nobody has the lease.

use super::Sizes;
use super::process::Scheduler;
use super::world::{NOBODY, Pods, TUTTI, World, seen};
use crate::report::Report;
use std::time::Instant;

/// From the start of the process to the first binding.
pub(super) async fn run(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let world = World::start(sizes.nodes).await?;
    let pods = Pods {
        prefix: "old",
        count: sizes.pods.saturating_sub(1),
        scheduler: NOBODY,
        cpu: "100m",
        gang: None,
    };
    world.add_bound(&pods).await?;
    let watch = world.watch_binds("new", 1).await?;
    world.add(&Pods { prefix: "new", count: 1, scheduler: TUTTI, cpu: "100m", gang: None }).await?;
    let started = Instant::now();
    let scheduler = Scheduler::start(&world.cluster, true).await?;
    let (first, _) = seen(watch).await?;
    report.figure("restart", sizes.nodes, (first - started).as_secs_f64(), "s");
    report.figure("restart-processor", sizes.nodes, scheduler.processor_seconds()?, "s");
    drop(scheduler);
    world.cluster.shutdown().await;
    Ok(())
}
