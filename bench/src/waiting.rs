//! What it costs that gangs wait, and to fork the engine.

use crate::engine::{decide_all, resident_mib};
use crate::fleet::{Ask, add_gang, ask, cluster, node, pod, running};
use crate::report::Report;
use anyhow::{Result, ensure};
use std::time::Instant;
use tutti_engine::{Engine, Event};
use tutti_model::{Resource, Time};

/// Nodes on which gangs wait.
const NODES: u32 = 500;
/// Gangs that wait, each of eight members.
const GANGS: u32 = 1_000;
/// Rounds of which the fastest counts: other work of the machine only ever adds.
const ROUNDS: u32 = 5;

/// Runs all cases whose name contains `only`.
pub(crate) fn run(only: &str, report: &mut Report) -> Result<()> {
    if "waiting-1000".contains(only) {
        useless_gpu("waiting-1000", |_, _| 1, true, report)?;
    }
    if "waiting-mixed".contains(only) {
        // A gang has three kinds of members, in proportions of its own.
        useless_gpu("waiting-mixed", |gang, member| 1 + (member * (1 + gang % 7) + gang) % 3, false, report)?;
    }
    if "fork".contains(only) {
        fork(report)?;
    }
    Ok(())
}

/// Milliseconds that a node with one GPU costs that helps nobody, where all others are full and gangs wait.
fn useless_gpu(case: &str, gpus: impl Fn(u32, u32) -> u32, is_free: bool, report: &mut Report) -> Result<()> {
    let mut engine = cluster(NODES, 6);
    for number in 0..NODES {
        let busy = running(&format!("busy-{number}"), number, Ask { cpu: 1000, memory: 1 << 30, gpu: 8 });
        engine.apply(Event::PodSet(Box::new(busy)), Time(0));
    }
    for gang in 0..GANGS {
        let member = |member: u32| {
            let gpu = i64::from(gpus(gang, member));
            pod(&format!("g{gang:04}-{member}"), Ask { cpu: 1000 * gpu, memory: gpu << 30, gpu })
        };
        add_gang(&mut engine, &format!("g{gang:04}"), (0..8).map(member));
    }
    ensure!(decide_all(&mut engine) == 0, "{case}: a gang was placed on a full cluster");
    let (mut fastest, mut solves) = (f64::INFINITY, 0);
    for round in 0..ROUNDS {
        let mut extra = node(NODES + round, 1);
        extra.allocatable.set(Resource::new("nvidia.com/gpu"), 1);
        let before = engine.solves_count();
        let start = Instant::now();
        engine.apply(Event::NodeSet(Box::new(extra.clone())), Time(0));
        let placed = decide_all(&mut engine);
        fastest = fastest.min(start.elapsed().as_secs_f64() * 1000.0);
        solves = solves.max(engine.solves_count() - before);
        ensure!(placed == 0, "{case}: one GPU is not enough");
        engine.apply(Event::NodeGone(extra.name), Time(0));
        decide_all(&mut engine);
    }
    ensure!(!is_free || solves == 0, "{case}: {solves} requests were solved");
    report.figure(case, NODES, fastest, "ms");
    report.figure(&format!("{case}-solves"), NODES, solves as f64, "solves");
    Ok(())
}

/// Milliseconds and memory of a fork of an engine that knows 5,000 nodes and 140,000 pods.
fn fork(report: &mut Report) -> Result<()> {
    const PODS: u32 = 140_000;
    let mut engine = cluster(5_000, 6);
    for number in 0..PODS {
        let mut pod = running(&format!("pod-{number:06}"), number % 5_000, ask(number % 50));
        pod.labels =
            [("app", format!("app-{}", number / 20)), ("tier", "web".to_owned())].into_iter().collect();
        engine.apply(Event::PodSet(Box::new(pod)), Time(0));
    }
    add_gang(&mut engine, "gang", (0..64).map(|member| pod(&format!("m-{member}"), ask(1))));
    decide_all(&mut engine);
    let before = resident_mib()?;
    let first = engine.fork();
    let memory = resident_mib()? - before;
    let mut fastest = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let fork: Engine = engine.fork();
        fastest = fastest.min(start.elapsed().as_secs_f64() * 1000.0);
        ensure!(fork.digest() == engine.digest(), "a fork differs");
    }
    drop(first);
    report.figure("fork", 5_000, fastest, "ms");
    report.figure("fork-memory", 5_000, memory, "MiB");
    Ok(())
}
