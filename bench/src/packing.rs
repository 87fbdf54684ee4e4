//! Hard packing: 40 nodes, 120 members of 8 shapes, nodes filled to 95 % in CPU and memory by a placement that is
//! known to exist – and the same with less room or more members, which just do not fit or only just.

use crate::fleet::{Ask, add_gang, node, pod};
use crate::report::Report;
use anyhow::{Result, ensure};
use std::num::NonZeroU32;
use std::time::Instant;
use tutti_engine::{Config, Decision, Engine, Event, Refusal};
use tutti_model::{LabelSelector, Node, Pod, PodSelector, PodTerm, Resource, SpreadConstraint, Text, Time};

const INSTANCES: u64 = 1_000;
const NODES: u64 = 40;

/// What is different about an instance.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    /// 5 % more room than a placement uses.
    Planted,
    /// No more room than that placement uses, and a hair of the first node's went to the second: what is asked for is
    /// what there is, but it cannot be cut to size.
    Twin,
    /// As planted, with members more than the placement had: it may fit or not, and nobody knows.
    Crowded,
}

/// Members that an instance has too many of.
const CROWD: usize = 1;

/// Prints how many were placed, how long the slowest hundredth took, and how many stayed undecided.
pub(crate) fn run(report: &mut Report) {
    let planted = measure(Variant::Planted);
    report.figure("packing-40x120-placed", 40, planted.placed, "ratio");
    report.figure("packing-40x120-p50", 40, planted.p50, "ms");
    report.figure("packing-40x120-p99", 40, planted.p99, "ms");
    let twins = measure(Variant::Twin);
    report.figure("packing-40x120-twins-placed", 40, twins.placed, "ratio");
    report.figure("packing-40x120-twins-undecided", 40, twins.undecided, "ratio");
    let crowded = measure(Variant::Crowded);
    report.figure("packing-40x121-placed", 40, crowded.placed, "ratio");
    report.figure("packing-40x121-undecided", 40, crowded.undecided, "ratio");
    report.figure("packing-40x121-p99", 40, crowded.p99, "ms");
}

/// Prints how long a decision takes that uses up the whole budget: members have wishes about each other, and neither a
/// placement nor a proof is found. The fastest of some, since the work is the same each time.
pub(crate) fn run_constrained(report: &mut Report) -> Result<()> {
    for (case, wish) in [
        ("budget-zone-spread", Wish::ZoneSpread),
        ("budget-host-spread", Wish::HostSpread),
        ("budget-apart", Wish::Apart),
        ("budget-near", Wish::Near),
    ] {
        let base = constrained(wish);
        let mut fastest = f64::INFINITY;
        for _ in 0..REPEATS {
            let mut engine = base.clone();
            let start = Instant::now();
            let decision = engine.decide(Time(0));
            fastest = fastest.min(start.elapsed().as_secs_f64() * 1000.0);
            let undecided = matches!(&decision, Decision::Wait(waiting) if matches!(waiting.refusal, Refusal::Undecided(_)));
            ensure!(undecided, "{case} was decided");
        }
        report.figure(case, CONSTRAINED_NODES, fastest, "ms");
    }
    Ok(())
}

const REPEATS: u32 = 10;
const CONSTRAINED_NODES: u32 = 599;

#[derive(Clone, Copy)]
enum Wish {
    ZoneSpread,
    HostSpread,
    Apart,
    Near,
}

/// Nodes that hold one large or two small members, and one node too few for all.
fn constrained(wish: Wish) -> Engine {
    let mut engine = Engine::new(Config::default());
    for number in 0..CONSTRAINED_NODES {
        let mut node = node(number, 6);
        node.allocatable.set(Resource::new("cpu"), 4_000 + 10 * i64::from(number % 40));
        engine.apply(Event::NodeSet(Box::new(node)), Time(0));
    }
    let members: Vec<Pod> = (0..800).map(|number| wishing(number, wish)).collect();
    add_gang(&mut engine, "constrained", members);
    engine
}

/// A large member or, if its number is odd, a small one.
fn wishing(number: i64, wish: Wish) -> Pod {
    let size = if number % 2 == 0 { "large" } else { "small" };
    let cpu = if number % 2 == 0 { 3_000 } else { 2_000 };
    let mut pod = pod(&format!("m{number:03}"), Ask { cpu, memory: 1 << 30, gpu: 0 });
    pod.labels = [("app", "w"), ("size", size)].into_iter().collect();
    let (zone, host) = (Text::from("topology.kubernetes.io/zone"), Text::from("kubernetes.io/hostname"));
    let everybody = LabelSelector::of_labels([("app", "w")]);
    let large = LabelSelector::of_labels([("size", "large")]);
    let namespace = pod.key.namespace.clone();
    let term = |labels: LabelSelector, topology_key: Text| PodTerm {
        pods: PodSelector::in_namespace(&namespace, Some(labels)),
        topology_key,
    };
    let spread = |max_skew: NonZeroU32, topology_key: Text| SpreadConstraint {
        max_skew,
        topology_key,
        labels: Some(everybody.clone()),
        min_domains: None,
        honors_affinity: true,
        honors_taints: false,
    };
    match wish {
        Wish::ZoneSpread => pod.inter_pod.spread.push(spread(NonZeroU32::MIN, zone)),
        Wish::HostSpread => pod.inter_pod.spread.push(spread(NonZeroU32::MIN.saturating_add(1), host)),
        Wish::Apart if number % 2 == 0 => pod.inter_pod.anti_affinity.push(term(large, host)),
        Wish::Apart => {}
        Wish::Near => pod.inter_pod.affinity.push(term(everybody, zone)),
    }
    pod
}

/// Shares of the instances, and milliseconds.
struct Measured {
    placed: f64,
    undecided: f64,
    p50: f64,
    p99: f64,
}

fn measure(variant: Variant) -> Measured {
    let (mut placed, mut undecided) = (0, 0);
    let mut times = Vec::new();
    for seed in 1..=INSTANCES {
        let mut engine = instance(seed, variant);
        let start = Instant::now();
        let decision = engine.decide(Time(0));
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        match decision {
            Decision::Place(_) => placed += 1,
            Decision::Wait(waiting) => {
                undecided += u64::from(matches!(waiting.refusal, Refusal::Undecided(_)));
            }
            Decision::More | Decision::Idle { .. } => {}
        }
    }
    times.sort_by(f64::total_cmp);
    let share = |count: u64| count as f64 / INSTANCES as f64;
    Measured {
        placed: share(placed),
        undecided: share(undecided),
        p50: times[times.len() / 2],
        p99: times[times.len() * 99 / 100],
    }
}

/// Three members a node, and nodes with room for them and more.
fn instance(seed: u64, variant: Variant) -> Engine {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut roll = |low: i64, high: i64| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        low + (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as i64 % (high - low + 1)
    };
    let shapes: Vec<(i64, i64)> = (0..8).map(|_| (roll(5, 40), roll(5, 40))).collect();
    let mut engine = Engine::new(Config::default());
    let mut members = Vec::new();
    for number in 0..NODES {
        let three: Vec<usize> = (0..3).map(|_| roll(0, 7) as usize).collect();
        let sum = |which: fn(&(i64, i64)) -> i64| three.iter().map(|&at| which(&shapes[at])).sum::<i64>();
        let mut node = Node { name: Text::from(format!("node-{number:02}")), ..Node::default() };
        let room = if variant == Variant::Twin { 100 } else { 105 };
        let hair = match (variant, number) {
            (Variant::Twin, 0) => -1,
            (Variant::Twin, 1) => 1,
            _ => 0,
        };
        let (cpu, memory) = (sum(|s| s.0) * 10 * room + hair, sum(|s| s.1) * (10 << 20) * room);
        for (resource, amount) in [("cpu", cpu), ("memory", memory), ("pods", 110)] {
            node.allocatable.set(Resource::new(resource), amount);
        }
        engine.apply(Event::NodeSet(Box::new(node)), Time(0));
        members.extend(three);
    }
    if variant == Variant::Crowded {
        members.extend_from_within(..CROWD);
    }
    let pods = members.iter().enumerate().map(|(index, &shape)| {
        let (cpu, memory) = shapes[shape];
        pod(&format!("m{index:03}"), Ask { cpu: cpu * 1000, memory: (memory * 1000) << 20, gpu: 0 })
    });
    let pods: Vec<_> = pods.collect();
    add_gang(&mut engine, "packed", pods);
    engine
}
