//! How fast pods are bound: against a process that watches pods and only posts the same bindings, and beside a gang that
//! cannot start.
//!
//! What is compared is measured in one run after the other, in turns, from the first binding to the last as they are seen
//! inside of the API server, where the controller that protects groups watches pods, too. Of the clients outside, either is the
//! only one that does, unless one more is asked for. Schedulers start when everything is there already.

use super::bare::Bare;
use super::process::Scheduler;
use super::world::{NOBODY, PATIENCE, Pods, TUTTI, Watcher, World, rate, seen};
use super::{Sizes, median};
use crate::report::Report;
use crate::requests::Requests;
use anyhow::{bail, ensure};
use std::time::{Duration, Instant};

/// Pods of one gang.
const GANG: usize = 100;
/// Pods that fit on a node, with room to spare.
const PODS_PER_NODE: usize = 50;
/// Events must be out by then.
const EVENTS_MAX: Duration = Duration::from_secs(60);

/// The scheduler against the bare loop.
pub(super) async fn throughput(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let nodes = nodes_for(2 * sizes.binds);
    for (name, gang) in [("throughput-plain", None), ("throughput-gangs", Some(GANG))] {
        let (mut ratios, mut rates, mut lags) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..sizes.runs {
            let world = World::start(nodes).await?;
            let work = Pods { prefix: "work", count: sizes.binds, scheduler: TUTTI, cpu: "100m", gang };
            let bare = Pods { prefix: "bare", scheduler: NOBODY, ..work };
            world.add(&work).await?;
            world.add(&bare).await?;
            let beside = if sizes.beside {
                Some(Watcher::start(&Requests::new(world.cluster.client())).await?)
            } else {
                None
            };
            let watches = beside.is_none();
            let (bare, (live, lag)) = if run % 2 == 0 {
                (bind_bare(&world, &bare, watches).await?, bind_live(&world, &work).await?)
            } else {
                let live = bind_live(&world, &work).await?;
                (bind_bare(&world, &bare, watches).await?, live)
            };
            ensure!(beside.is_none_or(Watcher::still_works), "the watch beside ended");
            eprintln!("{name}, run {}: {live:.0} pods/s, {:.3} of {bare:.0}", run + 1, live / bare);
            ratios.push(live / bare);
            rates.push(live);
            lags.push(lag);
            world.cluster.shutdown().await;
        }
        report.figure(name, nodes, median(rates), "pods/s");
        report.figure(&format!("{name}-ratio"), nodes, median(ratios), "of a bare loop");
        report.figure(&format!("{name}-events"), nodes, median(lags), "s until all are out");
    }
    Ok(())
}

/// Other work beside a gang that cannot start, against the same beside pods that are somebody else's.
pub(super) async fn blocked(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let nodes = nodes_for(sizes.binds);
    let (mut free, mut beside, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..sizes.runs {
        let mut rates = [0.0; 2];
        for turn in 0..2 {
            let is_ours = (run + turn) % 2 == 1;
            let world = World::start(nodes).await?;
            // Fifty processors each: one fits on a node, and there are not enough nodes for all.
            let scheduler = if is_ours { TUTTI } else { NOBODY };
            let count = sizes.blocked.max(nodes as usize + 1);
            world.add(&Pods { prefix: "huge", count, scheduler, cpu: "50", gang: Some(count) }).await?;
            let work = Pods { prefix: "work", count: sizes.binds, scheduler: TUTTI, cpu: "100m", gang: None };
            world.add(&work).await?;
            let watch = world.watch_binds("work", sizes.binds).await?;
            let process = Scheduler::start(&world.cluster, false).await?;
            rates[usize::from(is_ours)] = rate(sizes.binds, seen(watch).await?)?;
            drop(process);
            world.cluster.shutdown().await;
        }
        free.push(rates[0]);
        beside.push(rates[1]);
        ratios.push(1.0 - rates[1] / rates[0]);
    }
    report.figure("blocked-without", nodes, median(free), "pods/s");
    report.figure("blocked-beside", nodes, median(beside), "pods/s");
    report.figure("blocked-slowdown", nodes, 100.0 * median(ratios), "%");
    Ok(())
}

fn nodes_for(pods: usize) -> u32 {
    u32::try_from(pods.div_ceil(PODS_PER_NODE)).unwrap_or(u32::MAX)
}

/// Only posts bindings; gives how many per second.
async fn bind_bare(world: &World, pods: &Pods<'_>, watches: bool) -> anyhow::Result<f64> {
    let watch = world.watch_binds(pods.prefix, pods.count).await?;
    let process = Bare::start(&world.cluster, pods.prefix, pods.count, world.nodes, watches)?;
    let rate = rate(pods.count, seen(watch).await?)?;
    process.end()?;
    Ok(rate)
}

/// Lets a scheduler bind; gives how many per second, and how long after the last of them the last event was there.
async fn bind_live(world: &World, pods: &Pods<'_>) -> anyhow::Result<(f64, f64)> {
    let watch = world.watch_binds(pods.prefix, pods.count).await?;
    let scheduler = Scheduler::start(&world.cluster, false).await?;
    let (first, last) = seen(watch).await?;
    let reported = r#""reason":"Scheduled""#;
    while last.elapsed() < PATIENCE {
        if scheduler.metric("tutti_writes_waiting").await == Some(0.0) {
            let at = Instant::now();
            let events = world.inside.get("/api/v1/namespaces/default/events").await?;
            let events = events.matches(reported).count();
            if events >= pods.count {
                ensure!(
                    at - last <= EVENTS_MAX,
                    "the last event came {:?} after the last binding",
                    at - last
                );
                return Ok((rate(pods.count, (first, last))?, (at - last).as_secs_f64()));
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("not every binding was reported")
}
