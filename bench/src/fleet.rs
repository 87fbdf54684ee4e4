//! Clusters to measure on.

use tutti_engine::{Config, Engine, Event};
use tutti_model::{Group, Node, ObjectKey, Phase, Pod, Policy, Resource, Text, Time, Topology};

/// An engine with an empty cluster of this many nodes of `kinds` different sizes.
pub(crate) fn cluster(nodes: u32, kinds: u32) -> Engine {
    let mut engine = Engine::new(Config::default());
    for number in 0..nodes {
        engine.apply(Event::NodeSet(Box::new(node(number, kinds))), Time(0));
    }
    engine
}

/// A node with 8 GPUs in one of 3 zones; its processors and memory depend on its kind.
pub(crate) fn node(number: u32, kinds: u32) -> Node {
    let name = format!("node-{number:06}");
    let kind = i64::from(number % kinds);
    let mut node = Node { name: Text::from(name.as_str()), ..Node::default() };
    node.labels = [
        ("kubernetes.io/hostname".to_owned(), name),
        ("topology.kubernetes.io/zone".to_owned(), format!("zone-{}", number % 3)),
    ]
    .into_iter()
    .collect();
    for (resource, amount) in [
        ("cpu", 64_000 + 8_000 * kind),
        ("memory", (256 + 32 * kind) << 30),
        ("nvidia.com/gpu", 8),
        ("pods", 110),
    ] {
        node.allocatable.set(Resource::new(resource), amount);
    }
    node
}

/// What a member asks for.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) gpu: i64,
}

/// The ask of shape number `shape`; all are small and different.
pub(crate) fn ask(shape: u32) -> Ask {
    Ask { cpu: 100 + i64::from(shape), memory: (64 + i64::from(shape % 64)) << 20, gpu: 0 }
}

/// A pending pod.
pub(crate) fn pod(name: &str, ask: Ask) -> Pod {
    let mut pod = Pod::new(ObjectKey::new("bench", name), name);
    pod.scheduler_name = Text::from("tutti");
    pod.requests.set(Resource::new("cpu"), ask.cpu);
    pod.requests.set(Resource::new("memory"), ask.memory);
    if ask.gpu > 0 {
        pod.requests.set(Resource::new("nvidia.com/gpu"), ask.gpu);
    }
    pod
}

/// Tells the engine of a gang whose members are these.
pub(crate) fn add_gang(engine: &mut Engine, name: &str, members: impl IntoIterator<Item = Pod>) {
    add_gang_with(engine, name, members, Topology::default(), None);
}

/// The same with what it asks of the topology, and what it is part of.
pub(crate) fn add_gang_with(
    engine: &mut Engine,
    name: &str,
    members: impl IntoIterator<Item = Pod>,
    topology: Topology,
    parent: Option<ObjectKey>,
) {
    let key = ObjectKey::new("bench", name);
    let mut count = 0;
    for mut member in members {
        member.group = Some(key.clone());
        engine.apply(Event::PodSet(Box::new(member)), Time(0));
        count += 1;
    }
    let policy = match std::num::NonZeroU32::new(count) {
        Some(min_count) => Policy::Gang { min_count },
        None => Policy::Basic,
    };
    let group = Group { policy, topology, parent, ..Group::new(key, name) };
    engine.apply(Event::GroupSet(Box::new(group)), Time(0));
}

/// A pod that runs on a node.
pub(crate) fn running(name: &str, node: u32, ask: Ask) -> Pod {
    let mut pod = pod(name, ask);
    pod.node = Some(Text::from(format!("node-{node:06}")));
    pod.phase = Phase::Running;
    pod
}
