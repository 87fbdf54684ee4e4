//! Room that comes back belongs to gangs that have lost theirs.

use super::gangs::{GRACE_SECONDS, state};
use super::small_cluster::{Sim, key};
use crate::core::groups::GangState;

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

/// A pod on its own that is more or less important.
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

/// Gangs `a` to `e` of four members each, of which `broken` has two on nodes, as a scheduler leaves them that is killed.
fn killed(broken: &str) -> Sim {
    let mut sim = Sim::new();
    for gang in ["a", "b", "c", "d", "e"] {
        sim.gang(gang, 4);
        sim.gang_pods(gang, 4, 1);
    }
    for node in ["m", "n"] {
        sim.node(node, 10);
    }
    for index in 0..2 {
        sim.pods.get_mut(&key(&format!("{broken}-{index}"))).unwrap().node = Some("m".into());
    }
    sim
}

#[test]
fn after_a_takeover_no_new_gang_starts_before_a_broken_one_is_sent() {
    let mut sim = killed("d");
    // The last look at the broken gang takes its time.
    sim.slow_look = Some("d".to_owned());
    sim.replace_core();
    sim.run();
    assert_eq!(sim.binds, [""; 0], "all others are ready and wait");
    sim.run_for(5);
    assert_eq!(sim.binds, [""; 0], "however long it takes");
    sim.slow_look = None;
    sim.run();
    assert!(sim.binds[0].starts_with("d-") && sim.binds[1].starts_with("d-"), "{:?}", sim.binds);
    assert_eq!(sim.bound(), 20);
}

#[test]
fn a_broken_gang_whose_group_cannot_be_read_holds_others_back_until_it_is_given_up() {
    let mut sim = killed("d");
    sim.replace_core();
    sim.unreadable = Some("d".to_owned());
    sim.run_for(60);
    assert_eq!(sim.bound(), 2 + 16, "it is tried again later, and meanwhile everybody else has started");
    sim.unreadable = None;
    sim.run_for(120);
    assert_eq!(sim.bound(), 20);
}

#[test]
fn gangs_are_sent_in_the_order_in_which_they_were_decided() {
    let mut sim = killed("a");
    sim.replace_core();
    sim.slow_look = Some("b".to_owned());
    sim.run();
    let gangs = |sim: &Sim| {
        let mut gangs: Vec<String> = sim.binds.iter().map(|bind| bind[..1].to_owned()).collect();
        gangs.dedup();
        gangs
    };
    assert_eq!(gangs(&sim), ["a"], "those after it wait for the second, for a moment");
    sim.run_for(2);
    assert_eq!(gangs(&sim), ["a", "c", "d", "e"], "but not for long");
    sim.slow_look = None;
    sim.run();
    assert_eq!(sim.bound(), 20);
}

#[test]
fn pods_on_their_own_do_not_wait_for_the_look_at_a_gang() {
    let mut sim = killed("d");
    sim.slow_look = Some("d".to_owned());
    sim.replace_core();
    sim.pod("alone", None, 0);
    sim.run();
    assert_eq!(sim.binds.len(), 1, "{:?}", sim.binds);
}

#[test]
fn wherever_a_scheduler_is_killed_two_gangs_at_most_are_in_part() {
    let mut sim = Sim::new();
    for index in 0..20 {
        sim.node(&format!("n{index}"), 100);
    }
    let gangs = ["a", "b", "c", "d", "e"];
    for gang in gangs {
        sim.gang(gang, 200);
        sim.gang_pods(gang, 200, 1);
    }
    let in_part = |sim: &Sim| {
        let bound = |gang: &&str| {
            let members = (0..200).filter(|index| sim.node_of(&format!("{gang}-{index}")).is_some());
            (1..200).contains(&members.count())
        };
        gangs.iter().filter(|gang| bound(gang)).count()
    };
    sim.step();
    // Killed again and again, each time after some more answers.
    for answers in [30, 80, 150, 210, 290] {
        for _ in 0..answers {
            sim.answer();
        }
        assert!(in_part(&sim) <= 2, "{} after {answers} answers", in_part(&sim));
        sim.replace_core();
        sim.step();
    }
    sim.run_for(5);
    assert_eq!(sim.bound(), 1_000);
}
