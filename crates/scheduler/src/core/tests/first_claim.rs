//! Room that comes back belongs to gangs that have lost theirs.

use super::gangs::{GRACE_SECONDS, state};
use super::sim::{Sim, key};
use crate::core::gangs::GangState;

#[test]
fn room_that_comes_bit_by_bit_goes_to_the_broken_gang_and_not_to_newcomers() {
    let mut sim = Sim::new();
    for node in ["a", "b", "c"] {
        sim.node(node, 1);
    }
    sim.pod("old", None, 1);
    sim.delete_pod("old");
    sim.gang("g", 3);
    sim.gang_pods("g", 3, 1);
    sim.run_for(1);
    assert_eq!(sim.bound(), 3);
    // Two machines are lost, with what ran there.
    for node in ["b", "c"] {
        let lost = (0..3).map(|i| format!("g-{i}")).find(|pod| sim.node_of(pod) == Some(node));
        sim.delete_node(node);
        sim.delete_pod(&lost.unwrap());
    }
    for name in ["g-8", "g-9"] {
        sim.pod(name, Some("g"), 1);
    }
    for index in 0..5 {
        sim.pod(&format!("newcomer-{index}"), None, 1);
    }
    sim.run_for(400);
    // One is repaired, which is not enough, and much later another.
    sim.node("b", 1);
    sim.run_for(200);
    assert_eq!(sim.bound(), 1, "nobody takes the room that is needed");
    sim.node("d", 1);
    sim.run();
    assert_eq!((sim.bound(), state(&sim, "g")), (3, None));
}

/// A gang of four that was complete on nodes `a` and `b`, of which `b` is lost with the two members there.
fn half_lost() -> Sim {
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.node("b", 2);
    sim.gang("g", 4);
    sim.gang_pods("g", 4, 1);
    sim.run_for(1);
    assert_eq!(sim.bound(), 4);
    let lost: Vec<String> =
        (0..4).map(|i| format!("g-{i}")).filter(|pod| sim.node_of(pod) == Some("b")).collect();
    sim.delete_node("b");
    lost.iter().for_each(|pod| sim.delete_pod(pod));
    sim.run();
    sim
}

/// A pod for itself that is more or less important.
fn rival(sim: &mut Sim, name: &str, priority: i32) {
    sim.pod(name, None, 1);
    sim.pods.get_mut(&key(name)).unwrap().priority = priority;
    sim.notify_pod(name);
}

#[test]
fn a_repaired_node_goes_to_the_kept_gang_and_not_to_its_equals() {
    let mut sim = half_lost();
    // Rivals wait for longer than the members that replace the lost ones, one by one and as a gang.
    rival(&mut sim, "equal", 0);
    rival(&mut sim, "less", -1);
    sim.gang("h", 2);
    sim.gang_pods("h", 2, 1);
    sim.run_for(100);
    for name in ["g-8", "g-9"] {
        sim.pod(name, Some("g"), 1);
    }
    sim.run_for(2 * GRACE_SECONDS);
    assert_eq!(state(&sim, "g"), Some(GangState::Kept));
    sim.restart();
    sim.run_for(100);
    // The room comes back bit by bit.
    sim.node("b", 1);
    sim.run_for(100);
    assert_eq!(sim.bound(), 2, "nobody takes half of what the gang needs");
    sim.node("b", 2);
    sim.run();
    assert_eq!((sim.node_of("g-8"), sim.node_of("g-9"), state(&sim, "g")), (Some("b"), Some("b"), None));
    sim.node("c", 4);
    sim.run();
    assert_eq!(sim.bound(), 8, "and then everybody else has a turn");
}

#[test]
fn who_is_more_important_comes_before_a_kept_gang_and_the_next_room_is_its_own() {
    let mut sim = half_lost();
    for name in ["g-8", "g-9"] {
        sim.pod(name, Some("g"), 1);
    }
    rival(&mut sim, "equal", 0);
    sim.run_for(2 * GRACE_SECONDS);
    sim.node("b", 1);
    sim.run_for(1);
    rival(&mut sim, "more", 1_000);
    sim.run_for(1);
    assert_eq!((sim.node_of("more"), sim.bound()), (Some("b"), 3));
    sim.node("b", 3);
    sim.run();
    assert_eq!((sim.node_of("equal"), sim.bound(), state(&sim, "g")), (None, 5, None));
}

#[test]
fn a_node_that_is_back_before_the_members_are_is_kept_for_them_for_a_minute() {
    for (seconds, goes_to_newcomer) in [(20, false), (70, true)] {
        let mut sim = half_lost();
        rival(&mut sim, "newcomer", 0);
        sim.run_for(5);
        sim.node("b", 2);
        sim.run_for(seconds);
        assert_eq!(sim.node_of("newcomer").is_some(), goes_to_newcomer, "after {seconds} s");
        for name in ["g-8", "g-9"] {
            sim.pod(name, Some("g"), 1);
        }
        sim.run();
        assert_eq!(sim.bound() == 4 && state(&sim, "g").is_none(), !goes_to_newcomer);
    }
}
