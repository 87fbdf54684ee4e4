//! Tables that follow selectors and domains: many Deployments, and nodes whose names are never used again.

use crate::engine::{decide_all, resident_mib};
use crate::fleet::{Ask, add_gang_with, ask, cluster, node, pod, running};
use crate::report::Report;
use anyhow::{Result, ensure};
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;
use tutti_engine::{Config, Engine, Event};
use tutti_model::{
    LabelSelector, Node, ObjectKey, Phase, Pod, PodSelector, PodTerm, SpreadConstraint, Text, Time, Topology,
};

const DEPLOYMENTS: u32 = 7_000;
const REPLICAS: u32 = 20;
const NODES: u32 = 5_000;
const HOSTNAME: &str = "kubernetes.io/hostname";

/// In which order a cluster is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Nodes, then one Deployment after the other.
    Deployments,
    /// Nodes, then one pod of every Deployment, then the next of every Deployment.
    Replicas,
    /// Pods before the nodes that they run on.
    PodsFirst,
}

/// Runs all cases whose name contains `only`.
pub(crate) fn run(only: &str, report: &mut Report) -> Result<()> {
    for (case, order) in [
        ("selectors", Order::Deployments),
        ("selectors-interleaved", Order::Replicas),
        ("selectors-pods-first", Order::PodsFirst),
    ] {
        if case.contains(only) {
            load(case, order, report)?;
        }
    }
    if "renamed-nodes".contains(only) {
        rename(report)?;
    }
    Ok(())
}

/// Seconds to learn of 7,000 Deployments with 20 running pods each, and what that takes.
fn load(case: &str, order: Order, report: &mut Report) -> Result<()> {
    let replicas: Vec<(u32, u32)> = match order {
        Order::Replicas => (0..REPLICAS).flat_map(|r| (0..DEPLOYMENTS).map(move |d| (d, r))).collect(),
        _ => (0..DEPLOYMENTS).flat_map(|d| (0..REPLICAS).map(move |r| (d, r))).collect(),
    };
    let before = resident_mib()?;
    let start = Instant::now();
    let nodes_later = order == Order::PodsFirst;
    let mut engine = if nodes_later { Engine::new(Config::default()) } else { cluster(NODES, 6) };
    for (deployment, replica) in replicas {
        engine.apply(Event::PodSet(Box::new(replica_of(deployment, replica))), Time(0));
    }
    for number in (0..NODES).filter(|_| nodes_later) {
        engine.apply(Event::NodeSet(Box::new(node(number, 6))), Time(0));
    }
    report.figure(case, NODES, start.elapsed().as_secs_f64(), "s");
    report.figure(&format!("{case}-memory"), NODES, resident_mib()? - before, "MiB");
    Ok(())
}

/// A running pod of a Deployment. Every fifth Deployment keeps its pods on different nodes.
fn replica_of(deployment: u32, replica: u32) -> Pod {
    let mut pod = pod(&format!("app-{deployment}-5d8f7c9b64-{replica:05}"), ask(deployment % 50));
    pod.key.namespace = Text::from(format!("team-{}", deployment % 7));
    let app = format!("app-{deployment}");
    let labels = [
        ("app", app.as_str()),
        ("app.kubernetes.io/managed-by", "Helm"),
        ("pod-template-hash", "5d8f7c9b64"),
        ("tier", if deployment.is_multiple_of(2) { "web" } else { "backend" }),
    ];
    pod.labels = labels.into_iter().collect();
    let own = LabelSelector::of_labels([("app", app.as_str())]);
    pod.preferences.like = Some(Arc::new(own.clone()));
    if deployment.is_multiple_of(5) {
        let pods = PodSelector::in_namespace(&pod.key.namespace, Some(own));
        pod.inter_pod.anti_affinity.push(PodTerm { pods, topology_key: Text::from(HOSTNAME) });
    }
    pod.node = Some(Text::from(format!("node-{:06}", (deployment * REPLICAS + replica * 7) % NODES)));
    pod.phase = Phase::Running;
    pod
}

/// Nodes that have had a name, and those that have one at a time.
const NAMES: u32 = 100_000;
const ALIVE: usize = 1_000;
/// Pods that come and go with a node.
const DAEMONS: u32 = 5;

/// 100,000 nodes come and go, 1,000 at a time, and with them pods that are spread over hosts and gangs that ask for one
/// rack. Neither memory nor time per node may grow.
fn rename(report: &mut Report) -> Result<()> {
    let mut engine = Engine::new(Config::default());
    let mut alive: VecDeque<u32> = VecDeque::new();
    let mut batches: VecDeque<(u32, Vec<ObjectKey>)> = VecDeque::new();
    let mut early = None;
    let mut start = Instant::now();
    for number in 0..NAMES {
        alive.push_back(number);
        engine.apply(Event::NodeSet(Box::new(node_in_rack(number))), Time(0));
        for daemon in 0..DAEMONS {
            let mut pod = running(&format!("daemon-{daemon}-{number}"), number, ask(daemon));
            pod.labels = [("daemon", daemon.to_string())].into_iter().collect();
            engine.apply(Event::PodSet(Box::new(pod)), Time(0));
        }
        // The first rack is complete by then.
        if number % 20 == 19 {
            let mut pods = spread_pods(&mut engine, number);
            pods.extend(rack_gang(&mut engine, number));
            let placed = decide_all(&mut engine) as usize;
            ensure!(placed == pods.len(), "renamed-nodes: {placed} pods were placed at {number}");
            batches.push_back((number, pods));
        }
        if alive.len() > ALIVE
            && let Some(gone) = alive.pop_front()
        {
            engine.apply(Event::NodeGone(node_in_rack(gone).name), Time(0));
            for daemon in 0..DAEMONS {
                let key = ObjectKey::new("bench", format!("daemon-{daemon}-{gone}"));
                engine.apply(Event::PodGone(key), Time(0));
            }
        }
        if batches.len() > 40
            && let Some((first, pods)) = batches.pop_front()
        {
            for pod in pods {
                engine.apply(Event::PodGone(pod), Time(0));
            }
            engine.apply(Event::GroupGone(ObjectKey::new("bench", format!("gang-{first}"))), Time(0));
        }
        if number + 1 == NAMES / 10 {
            early = Some((resident_mib()?, start.elapsed().as_secs_f64() * 1e6 / f64::from(NAMES / 10)));
            start = Instant::now();
        }
    }
    let late = (resident_mib()?, start.elapsed().as_secs_f64() * 1e6 / f64::from(NAMES - NAMES / 10));
    let (memory, time) = early.unwrap_or(late);
    report.figure("renamed-nodes", ALIVE as u32, late.1, "us/node");
    report.figure("renamed-nodes-slowdown", ALIVE as u32, late.1 / time, "ratio");
    report.figure("renamed-nodes-memory", ALIVE as u32, late.0, "MiB");
    report.figure("renamed-nodes-growth", ALIVE as u32, late.0 / memory, "ratio");
    Ok(())
}

/// A node with a name of its own, in a rack of sixteen.
fn node_in_rack(number: u32) -> Node {
    let mut node = node(number, 6);
    let rack = format!("rack-{}", number / 16);
    let labels = node.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    node.labels = labels.chain([("rack".to_owned(), rack)]).collect();
    node
}

/// Tells of pods that are spread over hosts; returns their names.
fn spread_pods(engine: &mut Engine, number: u32) -> Vec<ObjectKey> {
    let own = LabelSelector::of_labels([("app", "spread")]);
    let mut names = Vec::new();
    for replica in 0..2 {
        let mut pod = pod(&format!("spread-{number}-{replica}"), ask(0));
        pod.labels = [("app", "spread")].into_iter().collect();
        pod.inter_pod.spread.push(SpreadConstraint {
            max_skew: NonZeroU32::MIN,
            topology_key: Text::from(HOSTNAME),
            labels: Some(own.clone()),
            min_domains: None,
            honors_affinity: true,
            honors_taints: false,
        });
        names.push(pod.key.clone());
        engine.apply(Event::PodSet(Box::new(pod)), Time(0));
    }
    names
}

/// Tells of a gang that asks for one rack; returns the names of its members.
fn rack_gang(engine: &mut Engine, number: u32) -> Vec<ObjectKey> {
    let members: Vec<Pod> = (0..4)
        .map(|member| pod(&format!("gang-{number}-{member}"), Ask { cpu: 100, memory: 64 << 20, gpu: 0 }))
        .collect();
    let names = members.iter().map(|pod| pod.key.clone()).collect();
    add_gang_with(engine, &format!("gang-{number}"), members, Topology::required("rack"), None);
    names
}
