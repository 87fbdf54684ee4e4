//! The engine against the slow, obvious search: it places whatever can be placed and refuses nothing else.

use crate::driver::{World, show};
use crate::random::{instance, instance_with_wishes};
use tutti_engine::oracle::placeable;
use tutti_engine::{Decision, Refusal};
use tutti_model::Pod;
use tutti_model::scenario::Scenario;

const INSTANCES: u64 = 20_000;

/// How many instances were placed and refused, and how many gangs had members of different shapes.
#[derive(Default, Debug)]
struct Seen {
    placed: u64,
    refused: u64,
    mixed: u64,
}

fn check(seed: u64, text: &str, seen: &mut Seen) {
    let scenario = Scenario::parse(text).unwrap();
    let (running, wanting): (Vec<Pod>, Vec<Pod>) =
        scenario.pods.iter().cloned().partition(|pod| pod.node.is_some());
    let minimum = scenario.groups[0].policy.minimum() as usize;
    let possible = placeable(&scenario.nodes, &running, &wanting, minimum);
    // The world validates every placement that it carries out.
    let mut world = World::new(&scenario);
    world.story = format!("seed {seed}\n{text}");
    let decisions = world.settle();
    let shown = show(&decisions);
    match &decisions[0] {
        Decision::Place(placement) => {
            assert!(possible, "seed {seed}: the oracle finds nothing\n{text}{shown}");
            assert!(placement.seats.len() >= minimum, "seed {seed}: below the minimum\n{text}{shown}");
            seen.placed += 1;
        }
        Decision::Wait(waiting) => {
            assert!(!possible, "seed {seed}: a placement exists\n{text}{shown}");
            let Refusal::NoRoom(room) = &waiting.refusal else {
                panic!("seed {seed}: undecided at this size\n{text}{shown}")
            };
            assert!(room.fit < room.needed, "seed {seed}\n{text}{shown}");
            seen.refused += 1;
        }
        Decision::Idle { .. } => unreachable!("settle never returns it"),
    }
    seen.mixed += u64::from(wanting.windows(2).any(|pair| pair[0].requests != pair[1].requests));
}

#[test]
fn the_engine_places_exactly_what_can_be_placed() {
    let mut seen = Seen::default();
    for seed in 1..=INSTANCES {
        check(seed, &instance(seed), &mut seen);
    }
    // The generator must keep asking hard questions.
    assert!(seen.placed > 4_000 && seen.refused > 4_000 && seen.mixed > 10_000, "{seen:?}");
}

#[test]
fn wishes_about_other_pods_are_honoured_and_no_obstacle_that_is_not_there() {
    let mut seen = Seen::default();
    for seed in 1..=INSTANCES {
        check(seed, &instance_with_wishes(seed), &mut seen);
    }
    assert!(seen.placed > 4_000 && seen.refused > 4_000 && seen.mixed > 7_000, "{seen:?}");
}
