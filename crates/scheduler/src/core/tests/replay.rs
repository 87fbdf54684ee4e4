//! A dump gives the same decision, elsewhere and later.

use super::small_cluster::{Fault, Sim, key};
use crate::config::Config;
use crate::core::dump::{Extras, replay};
use crate::core::message::Input;
use tutti_engine::Decision;

/// Through text and back, as a file would.
fn dumped(sim: &Sim) -> Extras {
    let text = serde_json::to_string(&sim.core.extras(sim.now)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn decide(sim: &mut Sim, extras: &Extras) -> Vec<Decision> {
    let objects: Vec<Input> = sim.objects();
    replay(Config::default(), Sim::capabilities(), objects, extras)
}

#[test]
fn a_replay_gives_the_reason_that_was_told() {
    let mut sim = Sim::with_gang(6, 8);
    sim.run_for(5);
    let extras = dumped(&sim);
    assert_eq!(extras.queue.len(), 1);
    let decisions = decide(&mut sim, &extras);
    let [Decision::Wait(waiting)] = &decisions[..] else {
        panic!("{decisions:?}");
    };
    assert_eq!(waiting.refusal.to_string(), *sim.group_conditions[&key("g")].message);
}

#[test]
fn seats_that_are_not_written_yet_are_taken_in_a_replay_too() {
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.pod("p", None, 2);
    sim.faults.insert("p".to_owned(), [Fault::LoseRequest].into());
    sim.run();
    sim.pod("q", None, 1);
    sim.run();
    let extras = dumped(&sim);
    assert_eq!(extras.assumed.len(), 1);
    let decisions = decide(&mut sim, &extras);
    assert!(
        matches!(&decisions[..], [Decision::Wait(waiting)] if waiting.members == [key("q")]),
        "{decisions:?}"
    );
    let without = Extras { assumed: vec![], ..extras };
    assert!(decide(&mut sim, &without).iter().any(|decision| matches!(decision, Decision::Place(_))));
}

#[test]
fn promised_seats_are_kept_in_a_replay_too() {
    let mut sim = Sim::with_gang(2, 2);
    sim.run_for(1);
    sim.delete_pod("g-0");
    sim.pod("newcomer", None, 1);
    sim.run();
    assert_eq!(sim.node_of("newcomer"), None);
    let extras = dumped(&sim);
    assert_eq!((extras.holds.len(), extras.gangs.len()), (1, 1));
    let decisions = decide(&mut sim, &extras);
    assert!(matches!(&decisions[..], [Decision::Wait(_)]), "{decisions:?}");
}
