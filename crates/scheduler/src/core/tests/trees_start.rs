//! Composites of gangs: they start as one, and what becomes of them if they do not.

use super::small_cluster::{Fault, Sim, key};
use crate::core::groups::GangState;
use crate::core::groups::tree::CHILDREN_MAX;
use tutti_k8s::{Condition, ObjectKind};
use tutti_model::ModelError;

/// Longer than a gang may take to become complete.
const GRACE_SECONDS: i64 = 310;

fn state(sim: &Sim, group: &str) -> Option<GangState> {
    sim.core.gang_state(&key(group))
}

fn refuse_forever(sim: &mut Sim, pod: &str) {
    sim.faults.insert(pod.to_owned(), vec![Fault::Refuse; 1_000].into());
}

/// A composite `top` of gangs `l` and `r` of two members each, all of which must start together, on a node with room.
fn pair() -> Sim {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.composite("top", None, 2);
    sim.child("l", "top", 2);
    sim.child("r", "top", 2);
    sim
}

/// A composite `top` of which one part is enough: the gang `side`, or `inner` with both of its gangs `l` and `r`. There is room
/// for all.
fn nested() -> Sim {
    let mut sim = Sim::new();
    sim.node("a", 6);
    sim.composite("top", None, 1);
    sim.composite("inner", Some("top"), 2);
    sim.child("l", "inner", 2);
    sim.child("r", "inner", 2);
    sim.child("side", "top", 2);
    sim
}

#[test]
fn a_composite_and_its_groups_are_read_once_more_before_they_start() {
    let mut sim = pair();
    sim.run();
    assert_eq!(sim.bound(), 4);
    sim.looks.sort();
    assert_eq!(sim.looks, ["composite default/top", "group default/l", "group default/r"]);
}

#[test]
fn a_group_that_is_made_again_under_a_composite_while_it_is_about_to_start_starts_with_it() {
    let mut sim = Sim::with_gang(6, 2);
    // The last look is under way when the group is replaced by a larger one that is part of a composite.
    sim.step();
    sim.composite("top", None, 2);
    sim.replace_group("g", Some("top"), 3);
    sim.pod("g-2", Some("g"), 1);
    sim.child("h", "top", 2);
    sim.step();
    sim.run();
    sim.run_for(5);
    assert_eq!(sim.bound(), 5, "{:?}", sim.binds);
    assert!(sim.core.is_drained(), "nothing is left of the start of the group by itself");
}

#[test]
fn a_group_that_leaves_its_composite_while_that_is_about_to_start_starts_by_itself() {
    let mut sim = pair();
    sim.step();
    sim.replace_group("r", None, 2);
    sim.set_composite_minimum("top", 1);
    sim.step();
    sim.run();
    sim.run_for(5);
    assert_eq!(sim.bound(), 4, "{:?}", sim.binds);
    assert!(sim.core.is_drained());
}

#[test]
fn a_composite_whose_minimum_was_raised_unseen_does_not_start() {
    let mut sim = pair();
    sim.step();
    sim.hold(ObjectKind::Composite);
    sim.composite("top", None, 3);
    sim.run();
    assert_eq!((sim.bound(), sim.binds.len()), (0, 0), "two of three groups would have started");
    sim.node("b", 2);
    sim.child("m", "top", 2);
    sim.release();
    sim.run_for(100);
    assert_eq!(sim.bound(), 6);
}

#[test]
fn a_group_of_a_composite_whose_minimum_was_raised_unseen_holds_all_of_it() {
    let mut sim = pair();
    sim.step();
    sim.hold(ObjectKind::PodGroup);
    sim.set_minimum("r", 3);
    sim.run();
    assert_eq!(sim.binds.len(), 0);
    sim.node("b", 1);
    sim.pod("r-2", Some("r"), 1);
    sim.release();
    sim.run_for(100);
    assert_eq!(sim.bound(), 5);
}

#[test]
fn a_composite_that_is_gone_does_not_start() {
    let mut sim = pair();
    sim.step();
    sim.hold(ObjectKind::Composite);
    sim.delete_composite("top");
    sim.run_for(10);
    assert_eq!(sim.binds.len(), 0);
}

#[test]
fn a_composite_of_which_a_member_goes_before_it_starts_does_not_start_without_it() {
    let mut sim = pair();
    sim.step();
    // The last look is under way when a member goes.
    sim.delete_pod("r-1");
    sim.run();
    assert_eq!(sim.binds.len(), 0, "one of two groups would have started");
    sim.pod("r-1", Some("r"), 1);
    sim.run_for(10);
    assert_eq!(sim.bound(), 4);
}

#[test]
fn a_group_that_a_composite_can_do_without_is_left_behind_when_a_member_goes() {
    let mut sim = Sim::new();
    sim.node("a", 6);
    sim.composite("top", None, 2);
    for name in ["l", "m", "r"] {
        sim.child(name, "top", 2);
    }
    sim.step();
    sim.delete_pod("r-1");
    sim.run();
    assert_eq!((sim.bound(), sim.node_of("r-0")), (4, None), "{:?}", sim.binds);
    sim.pod("r-1", Some("r"), 1);
    sim.run_for(10);
    assert_eq!(sim.bound(), 6);
}

#[test]
fn a_composite_within_a_composite_starts_with_enough_groups_or_not_at_all() {
    let mut sim = nested();
    sim.step();
    sim.delete_pod("r-0");
    sim.run();
    assert_eq!(sim.bound(), 2, "{:?}", sim.binds);
    assert!(sim.node_of("side-0").is_some() && sim.node_of("l-0").is_none());
    sim.pod("r-0", Some("r"), 1);
    sim.run_for(10);
    assert_eq!(sim.bound(), 6);
}

#[test]
fn a_composite_of_which_one_group_never_became_complete_is_unwound_as_a_whole() {
    let mut sim = pair();
    refuse_forever(&mut sim, "r-1");
    sim.run();
    assert_eq!(sim.bound(), 3);
    assert_eq!(
        (state(&sim, "l"), state(&sim, "r")),
        (Some(GangState::Completing), Some(GangState::Completing))
    );
    sim.run_for(GRACE_SECONDS);
    assert_eq!((sim.bound(), sim.evicted.len()), (0, 3), "nothing of it runs in part");
    assert_eq!((state(&sim, "l"), state(&sim, "r")), (None, None));
    // Nothing of it was tried while it was unwound, and all of it is when its members are there again.
    sim.faults.clear();
    for (name, group) in [("l-0", "l"), ("l-1", "l"), ("r-0", "r")] {
        sim.pod(name, Some(group), 1);
    }
    sim.run_for(100);
    assert_eq!(sim.bound(), 4);
}

#[test]
fn nothing_of_a_composite_is_placed_while_a_group_of_it_is_unwound() {
    let mut sim = pair();
    refuse_forever(&mut sim, "r-1");
    sim.run();
    // Somebody holds on to a member of r, so that the unwinding takes its time.
    sim.run_for(GRACE_SECONDS - 10);
    sim.hold(ObjectKind::Pod);
    sim.run_for(20);
    assert!(!sim.evicted.is_empty());
    let before = sim.binds.len();
    sim.faults.clear();
    sim.child("late", "top", 1);
    sim.node("b", 4);
    sim.run_for(30);
    assert_eq!(sim.binds.len(), before, "{:?}", &sim.binds[before..]);
}

#[test]
fn a_composite_that_was_complete_is_kept_when_a_group_of_it_breaks() {
    let mut sim = pair();
    sim.run();
    assert_eq!(sim.bound(), 4);
    sim.delete_pod("r-0");
    sim.delete_pod("r-1");
    sim.run_for(2 * GRACE_SECONDS);
    assert_eq!((sim.bound(), state(&sim, "l")), (2, Some(GangState::Kept)));
    assert_eq!(sim.evicted, []);
    let told: Vec<&str> =
        sim.events.iter().filter(|note| note.regarding.key == key("l")).map(|n| n.message.as_ref()).collect();
    assert!(
        told.iter().any(|text| text.contains("1 of at least 2 groups of composite default/top")),
        "{told:?}"
    );
    sim.gang_pods("r", 2, 1);
    sim.run_for(10);
    assert_eq!((sim.bound(), state(&sim, "l"), state(&sim, "r")), (4, None, None));
}

#[test]
fn a_group_that_a_composite_can_do_without_is_unwound_alone() {
    let mut sim = Sim::new();
    sim.node("a", 6);
    sim.composite("top", None, 2);
    for name in ["l", "m", "r"] {
        sim.child(name, "top", 2);
    }
    refuse_forever(&mut sim, "r-1");
    sim.run_for(GRACE_SECONDS);
    assert_eq!(sim.evicted.iter().map(|(pod, _)| pod.as_str()).collect::<Vec<_>>(), ["r-0"]);
    assert_eq!((sim.bound(), state(&sim, "l"), state(&sim, "r")), (4, None, None));
}

#[test]
fn a_new_scheduler_finds_a_composite_as_it_was_left() {
    let mut sim = pair();
    refuse_forever(&mut sim, "r-1");
    sim.run_for(100);
    sim.restart();
    assert_eq!(
        (state(&sim, "l"), state(&sim, "r")),
        (Some(GangState::Completing), Some(GangState::Completing))
    );
    sim.faults.clear();
    sim.run_for(100);
    assert_eq!((sim.bound(), state(&sim, "l"), state(&sim, "r")), (4, None, None));
}

#[test]
fn a_tree_of_which_a_composite_goes_is_below_its_minimum() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.composite("top", None, 2);
    sim.composite("inner", Some("top"), 1);
    sim.child("l", "inner", 2);
    sim.child("side", "top", 2);
    sim.run();
    assert_eq!((sim.bound(), state(&sim, "side")), (4, None));
    sim.delete_composite("inner");
    sim.run();
    assert_eq!((state(&sim, "l"), state(&sim, "side")), (None, Some(GangState::Completing)));
    sim.composite("inner", Some("top"), 1);
    sim.run();
    assert_eq!((state(&sim, "l"), state(&sim, "side")), (None, None));
}

#[test]
fn composites_within_each_other_without_an_end_break_nothing() {
    let mut sim = pair();
    sim.node("b", 1);
    sim.composite("c0", Some("top"), 1);
    for index in 1..5_000 {
        sim.composite(&format!("c{index}"), Some(&format!("c{}", index - 1)), 1);
    }
    sim.pod("beside", None, 1);
    sim.run();
    assert_eq!(sim.bound(), 5);
}

#[test]
fn a_composite_of_which_nothing_starts_is_not_told_that_it_has() {
    let mut sim = nested();
    sim.step();
    sim.delete_pod("r-0");
    sim.run_for(5);
    let holds =
        |sim: &Sim, name: &str| sim.composite_conditions.get(&key(name)).is_some_and(Condition::holds);
    assert_eq!((sim.bound(), holds(&sim, "top"), holds(&sim, "inner")), (2, true, false));
    sim.pod("r-0", Some("r"), 1);
    sim.run_for(10);
    assert_eq!((sim.bound(), holds(&sim, "inner")), (6, true));
}

#[test]
fn a_group_that_joins_a_tree_which_is_about_to_start_is_told_that_it_has_started() {
    let mut sim = Sim::new();
    sim.node("a", 6);
    sim.composite("top", None, 1);
    sim.child("l", "top", 2);
    sim.child("r", "top", 2);
    sim.delete_pod("r-1");
    sim.step();
    // The last look is under way when the other group becomes complete.
    sim.pod("r-1", Some("r"), 1);
    sim.step();
    sim.run_for(30);
    assert_eq!(sim.bound(), 4);
    for group in ["l", "r"] {
        assert!(sim.group_conditions[&key(group)].holds(), "{:?}", sim.group_conditions[&key(group)]);
    }
}

#[test]
fn a_tree_that_was_started_before_a_crash_is_told_so_by_the_next_leader() {
    let mut sim = pair();
    sim.refuses_conditions = true;
    sim.run();
    assert_eq!((sim.bound(), sim.composite_conditions.len()), (4, 0));
    sim.refuses_conditions = false;
    sim.restart();
    sim.run_for(5);
    assert!(sim.composite_conditions[&key("top")].holds());
    assert!(sim.group_conditions[&key("l")].holds() && sim.group_conditions[&key("r")].holds());
}

#[test]
fn nothing_is_kept_of_a_composite_that_went_before_its_groups() {
    let mut sim = pair();
    sim.delete_node("a");
    sim.run_for(5);
    sim.delete_composite("top");
    sim.run_for(5);
    for group in ["l", "r"] {
        for pod in [format!("{group}-0"), format!("{group}-1")] {
            sim.delete_pod(&pod);
        }
        sim.delete_group(group);
    }
    sim.run_for(5);
    assert_eq!(sim.core.groups.rows_count(), 0);
}

#[test]
fn a_composite_that_is_not_understood_is_not_told_that_it_has_started() {
    let mut sim = pair();
    sim.refuses_conditions = true;
    sim.run();
    sim.refuses_conditions = false;
    sim.delete_pod("r-0");
    sim.delete_pod("r-1");
    sim.group_errors.insert(key("top"), ModelError::new("spec", "is wrong"));
    sim.restart();
    sim.run_for(5);
    assert_eq!(sim.bound(), 2);
    let condition = sim.composite_conditions.get(&key("top"));
    assert!(condition.is_some_and(|condition| !condition.holds()), "{condition:?}");
}

#[test]
fn a_composite_of_too_many_groups_is_refused_and_starts_once_they_are_fewer() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.composite("top", None, 1);
    sim.child("g", "top", 1);
    for index in 0..CHILDREN_MAX {
        sim.empty_child(&format!("g{index:04}"), "top");
    }
    sim.run_for(5);
    assert_eq!(sim.bound(), 0);
    let condition = sim.composite_conditions[&key("top")].clone();
    assert_eq!(&*condition.reason, "SchedulerError");
    assert!(condition.message.starts_with("1025 groups are part of"), "{}", condition.message);
    let told = sim.pod_patches.last().map(|(_, patch)| patch.clone()).unwrap();
    assert_eq!(&*told.reason, "SchedulerError", "{}", told.message);
    sim.delete_group("g0000");
    sim.run_for(5);
    assert_eq!(sim.bound(), 1);
}
