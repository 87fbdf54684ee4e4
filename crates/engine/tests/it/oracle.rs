//! The engine against the slow, obvious search: it places whatever can be placed and refuses nothing else.

use crate::driver::{World, show};
use crate::random::instance;
use tutti_engine::oracle::placeable;
use tutti_engine::{Decision, Refusal};
use tutti_model::Pod;
use tutti_model::scenario::Scenario;

const INSTANCES: u64 = 20_000;

#[test]
fn the_engine_places_exactly_what_can_be_placed() {
    let (mut placed, mut refused, mut mixed) = (0, 0, 0);
    for seed in 1..=INSTANCES {
        let text = instance(seed);
        let scenario = Scenario::parse(&text).unwrap();
        let (running, wanting): (Vec<Pod>, Vec<Pod>) =
            scenario.pods.iter().cloned().partition(|pod| pod.node.is_some());
        let minimum = scenario.groups[0].policy.minimum() as usize;
        let possible = placeable(&scenario.nodes, &running, &wanting, minimum);
        // The world validates every placement that it carries out.
        let decisions = World::new(&scenario).settle();
        let shown = show(&decisions);
        match &decisions[0] {
            Decision::Place(placement) => {
                assert!(possible, "seed {seed}: the oracle finds nothing\n{text}{shown}");
                assert!(
                    placement.seats.len() >= minimum,
                    "seed {seed}: below the minimum\n{text}{shown}"
                );
                placed += 1;
            }
            Decision::Wait(waiting) => {
                assert!(!possible, "seed {seed}: a placement exists\n{text}{shown}");
                let Refusal::NoRoom(room) = &waiting.refusal else {
                    panic!("seed {seed}: undecided at this size\n{text}{shown}")
                };
                assert!(room.fit < room.needed, "seed {seed}\n{text}{shown}");
                refused += 1;
            }
            Decision::Idle { .. } => unreachable!("settle never returns it"),
        }
        mixed += usize::from(
            wanting
                .windows(2)
                .any(|pair| pair[0].requests != pair[1].requests),
        );
    }
    // The generator must keep asking hard questions.
    assert!(
        placed > 4_000 && refused > 4_000 && mixed > 10_000,
        "{placed} {refused} {mixed}"
    );
}
