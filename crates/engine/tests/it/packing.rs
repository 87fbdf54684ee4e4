//! Hard packing: gangs that fit with nothing, or next to nothing, to spare.

use crate::driver::{World, show};
use crate::random::Dice;
use std::fmt::Write;
use tutti_engine::Decision;

/// Members that fill every node exactly in CPU and memory.
fn exact_fill(seed: u64) -> (String, usize) {
    let mut dice = Dice::new(seed + 5_000_000);
    let mut text = String::new();
    let mut members = Vec::new();
    for node in 0..dice.roll(2, 5) {
        let parts: Vec<(u64, u64)> =
            (0..dice.roll(1, 3)).map(|_| (dice.roll(1, 6), dice.roll(1, 6))).collect();
        let cpu: u64 = parts.iter().map(|part| part.0).sum();
        let memory: u64 = parts.iter().map(|part| part.1).sum();
        writeln!(text, "node n{node} cpu={cpu} memory={memory}Gi").unwrap();
        members.extend(parts);
    }
    // Names in random order, so that no order of members gives the answer away.
    for at in (1..members.len()).rev() {
        members.swap(at, dice.roll(0, at as u64) as usize);
    }
    writeln!(text, "group g gang={}", members.len()).unwrap();
    for (index, (cpu, memory)) in members.iter().enumerate() {
        writeln!(text, "pod m{index:02} group=g cpu={cpu} memory={memory}Gi").unwrap();
    }
    (text, members.len())
}

#[test]
fn gangs_that_fill_their_nodes_exactly_are_all_placed() {
    for seed in 1..=3_000 {
        let (text, members) = exact_fill(seed);
        let mut world = World::parse(&text);
        let decisions = world.settle();
        let [Decision::Place(placement)] = &decisions[..] else {
            panic!("seed {seed}: a placement exists\n{text}{}", show(&decisions))
        };
        assert_eq!(placement.seats.len(), members, "seed {seed}");
    }
}
