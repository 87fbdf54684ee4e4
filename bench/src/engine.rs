//! Decisions only: everything is known to the engine before the clock starts.

use crate::fleet::{Ask, add_gang, ask, cluster, node, pod, running};
use crate::packing;
use crate::report::Report;
use crate::selectors;
use crate::topology;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use tutti_engine::{Decision, Engine, Event, Refusal};
use tutti_model::{LabelSelector, PodSelector, PodTerm, Resource, SpreadConstraint, Text, Time};

/// Runs all cases whose name contains `only`.
pub(crate) fn run(sizes: &[u32], only: &str, seconds: f64, report: &mut Report) -> Result<()> {
    let budget = Duration::from_secs_f64(seconds);
    for &nodes in sizes {
        let mut bench = Bench { nodes, only, budget, report };
        bench.throughput("gang-1000", 3_000, gangs(nodes, 3, 1_000, |_, _| 1))?;
        bench.throughput("gang-3", 9_000, gangs(nodes, 3_000, 3, |gang, _| gang % 10))?;
        bench.throughput(
            "gang-3-distinct",
            9_000,
            gangs(nodes, 3_000, 3, |gang, member| 3 * gang + member),
        )?;
        let pods = 10 * nodes.min(5_000);
        bench.throughput("plain", pods, plain(nodes, pods, 10))?;
        let few = pods.min(5_000);
        bench.throughput("plain-distinct", few, plain(nodes, few, few))?;
        bench.latency("mixed-5x64", 320, || mixed(nodes))?;
        bench.contested("contested", contested)?;
        bench.contested("contested-planted", contested_planted)?;
        bench.latency("anti-affinity-1000", 1_000.min(nodes), || wishing(nodes, Wish::Apart))?;
        bench.latency("zone-spread-1000", 1_000, || wishing(nodes, Wish::Even))?;
        bench.latency("refusal-64", 0, || refusal(nodes))?;
        bench.steady()?;
    }
    let mut bench = Bench { nodes: 5_000, only, budget, report };
    bench.arrival("arrival-1000", 1_000)?;
    bench.arrival("arrival-10000", 10_000)?;
    bench.throughput("rack-4", 3_000, topology::rack_4)?;
    bench.latency("composite-16x64", 1_024, topology::composite)?;
    bench.latency("slices-16", 16, || topology::slices(5_000, 16))?;
    bench.nodes = 500;
    bench.latency("slices-16", 16, || topology::slices(500, 16))?;
    bench.latency("tree-typo", 0, topology::tree_typo)?;
    bench.nodes = 40;
    bench.latency("slices-64", 64, || topology::slices(40, 64))?;
    bench.nodes = 100_000;
    bench.latency("three-levels-100k", 1_000, topology::three_levels)?;
    if "packing-40x120".contains(only) {
        packing::run(report);
    }
    if "budget".contains(only) {
        packing::run_constrained(report)?;
    }
    if "load-100k".contains(only) {
        load(report)?;
    }
    selectors::run(only, report)
}

struct Bench<'a> {
    nodes: u32,
    only: &'a str,
    budget: Duration,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Members placed per second of deciding.
    fn throughput(&mut self, case: &str, members: u32, setup: impl FnOnce() -> Engine) -> Result<()> {
        if !case.contains(self.only) {
            return Ok(());
        }
        let (time, rounds) = self.repeat(case, members, setup)?;
        let pods = f64::from(members) * f64::from(rounds);
        self.report.figure(case, self.nodes, pods / time.as_secs_f64(), "pods/s");
        Ok(())
    }

    /// Milliseconds for all decisions of a case.
    fn latency(&mut self, case: &str, members: u32, setup: impl FnOnce() -> Engine) -> Result<()> {
        if !case.contains(self.only) {
            return Ok(());
        }
        let (time, rounds) = self.repeat(case, members, setup)?;
        self.report.figure(case, self.nodes, time.as_secs_f64() * 1000.0 / f64::from(rounds), "ms");
        Ok(())
    }

    /// Microseconds that each member of a gang costs from when it is seen until the gang has its place.
    fn arrival(&mut self, case: &str, members: u32) -> Result<()> {
        if !case.contains(self.only) {
            return Ok(());
        }
        let mut engine = cluster(self.nodes, 4);
        // The first decision of all reads the cluster.
        add_gang(&mut engine, "first", [pod("first", ask(0))]);
        decide_all(&mut engine);
        let names: Vec<String> = (0..members).map(|member| format!("arriving-{member}")).collect();
        let start = Instant::now();
        add_gang(&mut engine, "arriving", names.iter().map(|name| pod(name, ask(0))));
        let placed = decide_all(&mut engine);
        let time = start.elapsed();
        ensure!(placed == members, "{case} at {} nodes placed {placed} of {members}", self.nodes);
        self.report.figure(case, self.nodes, time.as_secs_f64() * 1e6 / f64::from(members), "us/pod");
        Ok(())
    }

    /// A gang for which there is next to no room: whether it is placed is a figure, not a condition.
    fn contested(&mut self, case: &str, setup: fn(u32) -> Engine) -> Result<()> {
        if !case.contains(self.only) {
            return Ok(());
        }
        let base = setup(self.nodes);
        let (placed, undecided) = match base.clone().decide(Time(0)) {
            Decision::Place(placement) => (placement.seats.len(), false),
            Decision::Wait(waiting) => (0, matches!(waiting.refusal, Refusal::Undecided(_))),
            Decision::More | Decision::Idle { .. } => (0, false),
        };
        ensure!([0, 320].contains(&placed), "{case} at {} nodes placed {placed} of 320", self.nodes);
        let (time, rounds) = self.again_and_again(&base);
        let mut figure = |name: &str, value, unit| {
            self.report.figure(&format!("{case}{name}"), self.nodes, value, unit);
        };
        figure("-placed", placed as f64 / 320.0, "ratio");
        figure("-undecided", f64::from(u8::from(undecided)), "ratio");
        figure("", time.as_secs_f64() * 1000.0 / f64::from(rounds), "ms");
        Ok(())
    }

    /// Decides the same clone again and again, after a check that the right number is placed.
    fn repeat(&self, case: &str, members: u32, setup: impl FnOnce() -> Engine) -> Result<(Duration, u32)> {
        let base = setup();
        let placed = decide_all(&mut base.clone());
        ensure!(placed == members, "{case} at {} nodes placed {placed} of {members}", self.nodes);
        Ok(self.again_and_again(&base))
    }

    fn again_and_again(&self, base: &Engine) -> (Duration, u32) {
        let (mut time, mut rounds) = (Duration::ZERO, 0);
        while time < self.budget {
            let mut engine = base.clone();
            let start = Instant::now();
            decide_all(&mut engine);
            time += start.elapsed();
            rounds += 1;
        }
        (time, rounds)
    }

    /// Place a pod, delete it, place the next: the cost of a change must not grow with the cluster.
    fn steady(&mut self) -> Result<()> {
        if !"steady".contains(self.only) {
            return Ok(());
        }
        let mut engine = cluster(self.nodes, 6);
        let start = Instant::now();
        let mut rounds = 0_u32;
        while start.elapsed() < self.budget {
            let pod = pod(&format!("p{}", rounds % 100), ask(rounds % 10));
            let key = pod.key.clone();
            engine.apply(Event::PodSet(Box::new(pod)), Time(0));
            ensure!(decide_all(&mut engine) == 1, "steady: a pod was not placed");
            engine.apply(Event::PodGone(key), Time(0));
            rounds += 1;
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
        self.report.figure("steady", self.nodes, micros / 1000.0, "ms");
        Ok(())
    }
}

/// Decides until nothing is left; tells how many members got a seat.
pub(crate) fn decide_all(engine: &mut Engine) -> u32 {
    let mut placed = 0;
    loop {
        match engine.decide(Time(0)) {
            Decision::Place(placement) => placed += placement.seats.len() as u32,
            Decision::Wait(_) | Decision::More => {}
            Decision::Idle { .. } => return placed,
        }
    }
}

fn gangs(nodes: u32, gangs: u32, size: u32, shape: impl Fn(u32, u32) -> u32) -> impl FnOnce() -> Engine {
    move || {
        let mut engine = cluster(nodes, 6);
        for gang in 0..gangs {
            let member = |member| pod(&format!("g{gang}-{member}"), ask(shape(gang, member)));
            add_gang(&mut engine, &format!("g{gang}"), (0..size).map(member));
        }
        engine
    }
}

fn plain(nodes: u32, pods: u32, shapes: u32) -> impl FnOnce() -> Engine {
    move || {
        let mut engine = cluster(nodes, 6);
        for number in 0..pods {
            let pod = pod(&format!("p{number}"), ask(number % shapes));
            engine.apply(Event::PodSet(Box::new(pod)), Time(0));
        }
        engine
    }
}

const SHAPES: [(i64, i64, i64); 5] = [(4, 16, 1), (8, 32, 1), (16, 32, 2), (8, 96, 1), (24, 64, 4)];

/// 5 shapes × 64 members, in an order that mixes the shapes.
fn mixed_members() -> Vec<tutti_model::Pod> {
    let asks = SHAPES.map(|(cpu, memory, gpu)| Ask { cpu: cpu * 1000, memory: memory << 30, gpu });
    let member = |index: usize| {
        let shape = (index * 7 + index / 5) % 5;
        pod(&format!("m{shape}-{index:03}"), asks[shape])
    };
    (0..320).map(member).collect()
}

/// The gang on 6 kinds of nodes of which 70 % are in use.
fn mixed(nodes: u32) -> Engine {
    let mut engine = cluster(nodes, 6);
    for number in (0..nodes).filter(|number| number % 10 < 7) {
        let busy = running(&format!("busy-{number}"), number, Ask { cpu: 1000, memory: 1 << 30, gpu: 8 });
        engine.apply(Event::PodSet(Box::new(busy)), Time(0));
    }
    add_gang(&mut engine, "mixed", mixed_members());
    engine
}

/// The gang where the nodes that are open have 103 % of what it asks for, of every resource; the rest are full. It
/// does not fit: CPU and memory of those nodes cannot be cut to what members ask for.
fn contested(nodes: u32) -> Engine {
    let mut engine = cluster(nodes, 6);
    let demand = |which: fn(&(i64, i64, i64)) -> i64| 64 * SHAPES.iter().map(which).sum::<i64>();
    let open = i64::from(nodes.min(75));
    let share = [demand(|s| s.0) * 1000, demand(|s| s.1) << 30].map(|all| all * 103 / 100 / open);
    for number in 0..nodes {
        let allocatable = node(number, 6).allocatable;
        // Open nodes of six sizes: from 90 % to 110 % of the average.
        let size = 90 + 4 * i64::from(number % 6);
        let keep = |amount: i64| if i64::from(number) < open { amount * size / 100 } else { 0 };
        let busy = Ask {
            cpu: (allocatable.get("cpu") - keep(share[0])).max(0),
            memory: (allocatable.get("memory") - keep(share[1])).max(0),
            gpu: if i64::from(number) < open { 0 } else { 8 },
        };
        let busy = running(&format!("busy-{number}"), number, busy);
        engine.apply(Event::PodSet(Box::new(busy)), Time(0));
    }
    add_gang(&mut engine, "contested", mixed_members());
    engine
}

/// The gang on 72 open nodes on which it fits: each has 103 % of the CPU and memory that some of its members ask for,
/// and every GPU is needed. The rest are full.
fn contested_planted(nodes: u32) -> Engine {
    let mut engine = cluster(nodes, 6);
    // Members with one GPU, 64 of each shape, mixed.
    let ones: Vec<usize> = (0..192).map(|at| [0, 1, 3][at * 5 % 192 / 64]).collect();
    let (beside_others, alone) = ones.split_at(128);
    let mut contents: Vec<Vec<usize>> = beside_others.chunks(2).map(|two| [&[4, 2], two].concat()).collect();
    contents.extend(alone.chunks(8).map(<[usize]>::to_vec));
    for number in 0..nodes {
        let mut node = node(number, 6);
        let Some(content) = contents.get(number as usize) else {
            let busy = Ask { cpu: 1000, memory: 1 << 30, gpu: 8 };
            let busy = running(&format!("busy-{number}"), number, busy);
            engine.apply(Event::PodSet(Box::new(busy)), Time(0));
            continue;
        };
        let sum =
            |which: fn(&(i64, i64, i64)) -> i64| content.iter().map(|&at| which(&SHAPES[at])).sum::<i64>();
        node.allocatable.set(Resource::new("cpu"), sum(|s| s.0) * 1030);
        node.allocatable.set(Resource::new("memory"), (sum(|s| s.1) << 30) * 103 / 100);
        engine.apply(Event::NodeSet(Box::new(node)), Time(0));
    }
    add_gang(&mut engine, "contested", mixed_members());
    engine
}

#[derive(Clone, Copy)]
enum Wish {
    Apart,
    Even,
}

/// 1,000 identical members that keep apart by host, or spread over zones.
fn wishing(nodes: u32, wish: Wish) -> Engine {
    let mut engine = cluster(nodes, 6);
    let size = match wish {
        Wish::Apart => 1_000.min(nodes),
        Wish::Even => 1_000,
    };
    let selector = LabelSelector::of_labels([("app", "w")]);
    let members = (0..size).map(|member| {
        let mut pod = pod(&format!("w-{member}"), ask(1));
        pod.labels = [("app", "w")].into_iter().collect();
        match wish {
            Wish::Apart => pod.inter_pod.anti_affinity.push(PodTerm {
                pods: PodSelector::in_namespace(&pod.key.namespace, Some(selector.clone())),
                topology_key: Text::from("kubernetes.io/hostname"),
            }),
            Wish::Even => pod.inter_pod.spread.push(SpreadConstraint {
                max_skew: std::num::NonZeroU32::MIN,
                topology_key: Text::from("topology.kubernetes.io/zone"),
                labels: Some(selector.clone()),
                min_domains: None,
                honors_affinity: true,
                honors_taints: false,
            }),
        }
        pod
    });
    let members: Vec<_> = members.collect();
    add_gang(&mut engine, "wishing", members);
    engine
}

/// 64 GPUs are asked for and 47 are left.
fn refusal(nodes: u32) -> Engine {
    let mut engine = cluster(nodes, 6);
    for number in 0..nodes {
        let gpu = if number < 47 { 7 } else { 8 };
        let busy = running(&format!("busy-{number}"), number, Ask { cpu: 1000, memory: 1 << 30, gpu });
        engine.apply(Event::PodSet(Box::new(busy)), Time(0));
    }
    let member = |member| pod(&format!("r-{member}"), Ask { cpu: 1000, memory: 1 << 30, gpu: 1 });
    add_gang(&mut engine, "refused", (0..64).map(member));
    engine
}

/// 100,000 nodes and a million running pods, told one by one.
fn load(report: &mut Report) -> Result<()> {
    let before = resident_mib()?;
    let start = Instant::now();
    let mut engine = Engine::new(tutti_engine::Config::default());
    for number in 0..100_000 {
        engine.apply(Event::NodeSet(Box::new(node(number, 6))), Time(0));
    }
    for number in 0..1_000_000 {
        let pod = running(&format!("pod-{number:07}"), number % 100_000, ask(number % 50));
        engine.apply(Event::PodSet(Box::new(pod)), Time(0));
    }
    report.figure("load-100k", 100_000, start.elapsed().as_secs_f64(), "s");
    report.figure("load-100k-memory", 100_000, resident_mib()? - before, "MiB");
    drop(engine);
    Ok(())
}

/// Memory that this process holds, as the kernel counts it.
pub(crate) fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line.and_then(|l| l.trim().split(' ').next()).unwrap_or("0").parse()?;
    Ok(kib / 1024.0)
}
