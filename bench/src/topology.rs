//! Groups that ask for domains, on clusters with racks and blocks.

use crate::fleet::{Ask, add_gang_with, node, pod};
use std::num::NonZeroU32;
use tutti_engine::{Config, Engine, Event};
use tutti_model::{Group, Level, ObjectKey, Pod, Policy, Slices, Strength, Text, Time, Topology};

const ZONE: &str = "bench/zone";
const BLOCK: &str = "bench/block";
const RACK: &str = "bench/rack";
const HOST: &str = "kubernetes.io/hostname";

/// One GPU and a little of the rest.
const WORKER: Ask = Ask { cpu: 1_000, memory: 1 << 30, gpu: 1 };

/// A cluster in which so many nodes make a rack, so many racks a block, and so many blocks a zone.
fn cluster(nodes: u32, per_rack: u32, racks_per_block: u32, blocks_per_zone: u32) -> Engine {
    let mut engine = Engine::new(Config::default());
    for number in 0..nodes {
        let mut node = node(number, 6);
        let rack = number / per_rack;
        let block = rack / racks_per_block;
        let more = [
            (RACK, format!("rack-{rack}")),
            (BLOCK, format!("block-{block}")),
            (ZONE, format!("zone-{}", block / blocks_per_zone)),
        ];
        let labels = node.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        node.labels = labels.chain(more.map(|(key, value)| (key.to_owned(), value))).collect();
        engine.apply(Event::NodeSet(Box::new(node)), Time(0));
    }
    engine
}

fn level(key: &str, strength: Strength) -> Level {
    Level { key: Text::from(key), strength }
}

/// 750 gangs of 4, each in one of 50 racks.
pub(crate) fn rack_4() -> Engine {
    let mut engine = cluster(5_000, 100, 10, 5);
    for gang in 0..750 {
        let members = (0..4).map(|member| pod(&format!("g{gang}-{member}"), WORKER));
        add_gang_with(&mut engine, &format!("g{gang}"), members, Topology::required(RACK), None);
    }
    engine
}

/// One gang of 1,000 in one zone, in one block if possible, in few racks.
pub(crate) fn three_levels() -> Engine {
    let mut engine = cluster(100_000, 100, 20, 10);
    let levels = vec![
        level(ZONE, Strength::Required),
        level(BLOCK, Strength::Preferred),
        level(RACK, Strength::Preferred),
    ];
    let members = (0..1_000).map(|member| pod(&format!("w-{member}"), WORKER));
    let topology = Topology { levels, ..Topology::default() };
    add_gang_with(&mut engine, "levels", members, topology, None);
    engine
}

/// 16 groups of 64 in one zone, each in one rack and in slices of 8 that share a host.
pub(crate) fn composite() -> Engine {
    let mut engine = cluster(5_000, 100, 10, 5);
    let key = ObjectKey::new("bench", "job");
    let composite = Group {
        policy: NonZeroU32::new(16).map_or(Policy::Basic, |min_count| Policy::Gang { min_count }),
        topology: Topology::required(ZONE),
        ..Group::new(key.clone(), "job")
    };
    engine.apply(Event::CompositeSet(Box::new(composite)), Time(0));
    let slices = NonZeroU32::new(8).map(|size| Slices { size, key: Text::from(HOST) });
    for group in 0..16 {
        let member = |member: u32| -> Pod {
            Pod { rank: Some(member), ..pod(&format!("g{group:02}-{member:02}"), WORKER) }
        };
        let topology = Topology { slices: slices.clone(), ..Topology::required(RACK) };
        let name = format!("g{group:02}");
        add_gang_with(&mut engine, &name, (0..64).map(member), topology, Some(key.clone()));
    }
    engine
}

/// One gang in slices of 8 that share a host.
pub(crate) fn slices(nodes: u32, members: u32) -> Engine {
    let mut engine = cluster(nodes, 100, 10, 5);
    let members = (0..members).map(|member| pod(&format!("w-{member:03}"), WORKER));
    let slices = NonZeroU32::new(8).map(|size| Slices { size, key: Text::from(HOST) });
    add_gang_with(&mut engine, "sliced", members, Topology { slices, ..Topology::default() }, None);
    engine
}

/// Four groups that prefer a rack, next to one whose required key exists on no node.
pub(crate) fn tree_typo() -> Engine {
    let mut engine = cluster(500, 100, 10, 5);
    let key = ObjectKey::new("bench", "job");
    let policy = NonZeroU32::new(5).map_or(Policy::Basic, |min_count| Policy::Gang { min_count });
    let composite = Group { policy, ..Group::new(key.clone(), "job") };
    engine.apply(Event::CompositeSet(Box::new(composite)), Time(0));
    for group in 0..5 {
        let levels = match group {
            4 => vec![level("bench/rakc", Strength::Required)],
            _ => vec![level(RACK, Strength::Preferred)],
        };
        let name = format!("g{group}");
        let members = (0..4).map(|member| pod(&format!("{name}-{member}"), WORKER));
        let topology = Topology { levels, ..Topology::default() };
        add_gang_with(&mut engine, &name, members, topology, Some(key.clone()));
    }
    engine
}
