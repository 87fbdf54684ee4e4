//! What becomes of gangs below their minimum.

use super::small_cluster::{Fault, Sim, key};
use crate::core::groups::{GangState, GroupState};
use crate::core::message::Fact;
use tutti_k8s::{ConditionStatus, GroupMarks, ObjectKind, WhenBroken};
use tutti_model::{ModelError, Phase, Time};

/// Longer than a gang may take to become complete.
pub(super) const GRACE_SECONDS: i64 = 310;

/// After so long a request without an answer has been carried out, or never will be.
const SETTLES_SECONDS: i64 = 90;

pub(super) fn state(sim: &Sim, group: &str) -> Option<GangState> {
    sim.core.gang_state(&key(group))
}

fn refuse_forever(sim: &mut Sim, pod: &str) {
    sim.faults.insert(pod.to_owned(), vec![Fault::Refuse; 1_000].into());
}

fn events(sim: &Sim, group: &str) -> Vec<String> {
    let about = sim.events.iter().filter(|note| note.regarding.key == key(group));
    about.map(|note| format!("{}: {}", note.reason, note.message)).collect()
}

/// A gang of three on a node with room for three, of which one binding is refused.
fn two_of_three() -> Sim {
    let mut sim = Sim::with_gang(3, 3);
    refuse_forever(&mut sim, "g-2");
    sim.run();
    assert_eq!((sim.bound(), state(&sim, "g")), (2, Some(GangState::Completing)));
    sim
}

#[test]
fn a_gang_whose_binding_failed_keeps_the_seat() {
    let mut sim = two_of_three();
    sim.pod("newcomer", None, 1);
    sim.run_for(100);
    assert_eq!(sim.node_of("newcomer"), None);
    sim.faults.clear();
    sim.run_for(100);
    assert_eq!((sim.bound(), state(&sim, "g")), (3, None));
    assert_eq!(sim.node_of("newcomer"), None);
}

#[test]
fn a_gang_that_never_became_complete_is_unwound_after_the_grace_time() {
    let mut sim = two_of_three();
    sim.run_for(GRACE_SECONDS);
    assert_eq!(sim.evicted.len(), 2);
    for (pod, said) in &sim.evicted {
        let said = said.as_ref().unwrap_or_else(|| panic!("{pod} was not told"));
        assert_eq!((said.kind.as_ref(), said.status), ("DisruptionTarget", ConditionStatus::True));
    }
    assert_eq!((sim.bound(), state(&sim, "g")), (0, None));
    assert_eq!(sim.marks[&key("g")], GroupMarks::default(), "what is over is not written any more");
    let told = events(&sim, "g");
    assert!(
        told.iter().any(|line| line.starts_with("GangUnwinding: 2 of at least 3 members run")),
        "{told:?}"
    );
    assert!(told.iter().any(|line| line.starts_with("GangUnwound: ")), "{told:?}");
    // Its controller makes the members again, and what was wrong is over.
    sim.faults.clear();
    for name in ["g-0", "g-1"] {
        sim.pod(name, Some("g"), 1);
    }
    sim.run_for(100);
    assert_eq!(sim.bound(), 3);
    assert_eq!(sim.core.counters().unwinds, 1);
}

#[test]
fn nothing_is_deleted_before_it_is_written_on_the_group() {
    let mut sim = two_of_three();
    // Its mark is on the server in the end, so the order of writes decides.
    sim.run_for(GRACE_SECONDS);
    let at = |wanted: &str| sim.order.iter().position(|write| write.starts_with(wanted));
    let (marked, deleted) = (at("marks g"), at("delete"));
    assert!(marked.is_some() && marked < deleted, "{:?}", sim.order);
}

#[test]
fn a_slow_mark_does_not_undo_a_newer_one() {
    let mut sim = two_of_three();
    sim.slow_marks = 1;
    sim.run_for(30);
    assert!(sim.marks[&key("g")].unwind_at.is_some(), "the second try was quick");
    sim.faults.clear();
    sim.run_for(100);
    let complete = GroupMarks { fully_bound: true, ..GroupMarks::default() };
    assert_eq!(sim.marks[&key("g")], complete);
    sim.deliver_late();
    assert_eq!(sim.marks[&key("g")], complete);
}

#[test]
fn what_was_announced_stays_so_until_a_slow_deletion_can_no_longer_happen() {
    let announced = |sim: &Sim| sim.marks[&key("g")].unwind_at.is_some();
    let mut sim = two_of_three();
    sim.slow_deletions = true;
    sim.run_for(GRACE_SECONDS);
    assert_eq!((sim.evicted.len(), state(&sim, "g")), (0, Some(GangState::Unwinding)));
    sim.set_minimum("g", 2);
    sim.run_for(10);
    assert_eq!(state(&sim, "g"), None, "two are enough now");
    assert!(announced(&sim), "their deletion may still be on its way");
    sim.run_for(SETTLES_SECONDS);
    assert!(!announced(&sim));
    sim.run_for(10);
    assert_eq!((sim.evicted.len(), sim.bound()), (0, 2));
}

#[test]
fn a_deadline_that_somebody_else_has_written_is_written_anew_before_members_are_deleted() {
    let mut sim = two_of_three();
    sim.run_for(200);
    sim.restart();
    // A removal by the scheduler before may still be on its way; only a newer version of the group stops it.
    sim.order.clear();
    sim.run_for(GRACE_SECONDS - 200);
    let at = |wanted: &str| sim.order.iter().position(|write| write.starts_with(wanted));
    assert!(at("marks g").is_some() && at("marks g") < at("delete"), "{:?}", sim.order);
}

#[test]
fn a_mark_reaches_a_group_that_has_changed_unseen() {
    let mut sim = two_of_three();
    sim.hold(ObjectKind::PodGroup);
    sim.notify_group("g");
    sim.run_for(30);
    assert!(sim.marks[&key("g")].unwind_at.is_some());
}

#[test]
fn a_gang_with_a_member_that_nobody_makes_again_is_kept() {
    let mut sim = Sim::new();
    sim.node("a", 3);
    sim.gang("g", 3);
    sim.uncontrolled.insert(key("g-1"));
    sim.gang_pods("g", 3, 1);
    refuse_forever(&mut sim, "g-2");
    sim.run_for(2 * GRACE_SECONDS);
    assert_eq!((sim.bound(), state(&sim, "g")), (2, Some(GangState::Kept)));
    assert_eq!(sim.evicted, []);
    let told = events(&sim, "g").join("\n");
    assert!(
        told.contains("GangIncomplete: 2 of at least 3") && told.contains("make pod g-1 again"),
        "{told}"
    );
    sim.faults.clear();
    sim.run_for(100);
    assert_eq!((sim.bound(), state(&sim, "g")), (3, None), "it has first claim on what is missing");
}

/// A gang of three that was complete and has lost a member.
fn broken() -> Sim {
    let mut sim = Sim::with_gang(3, 3);
    sim.run_for(1);
    assert_eq!(sim.bound(), 3);
    assert!(sim.marks[&key("g")].fully_bound);
    sim.delete_pod("g-0");
    sim.run();
    assert_eq!(state(&sim, "g"), Some(GangState::Completing));
    sim
}

#[test]
fn a_running_gang_that_lost_a_member_is_kept_even_by_a_scheduler_that_was_not_there() {
    let mut sim = broken();
    sim.run_for(100);
    sim.restart();
    assert_eq!(state(&sim, "g"), Some(GangState::Completing));
    sim.run_for(2 * GRACE_SECONDS);
    assert_eq!((sim.evicted.len(), state(&sim, "g")), (0, Some(GangState::Kept)));
}

#[test]
fn a_running_gang_is_unwound_if_its_owner_asks_for_it() {
    let mut sim = broken();
    sim.marks.entry(key("g")).or_default().when_broken = Some(WhenBroken::Unwind);
    sim.notify_group("g");
    sim.run_for(GRACE_SECONDS);
    assert_eq!(sim.evicted.len(), 2);
}

#[test]
fn a_deadline_survives_the_scheduler() {
    let mut sim = two_of_three();
    sim.run_for(200);
    assert!(sim.marks[&key("g")].unwind_at.is_some());
    sim.restart();
    assert_eq!(state(&sim, "g"), Some(GangState::Completing));
    sim.run_for(GRACE_SECONDS - 200);
    assert_eq!(sim.evicted.len(), 2, "not another grace time");
}

#[test]
fn a_deadline_is_written_in_time_however_often_the_group_changes() {
    let mut sim = two_of_three();
    // Nobody is tried again, so nothing but its time makes anybody look.
    sim.delete_pod("g-2");
    for _ in 0..3 {
        sim.run_for(3);
        sim.notify_group("g");
    }
    sim.run_for(3);
    assert!(sim.marks[&key("g")].unwind_at.is_some());
}

#[test]
fn a_deadline_that_is_absurdly_far_away_is_not_waited_for() {
    let mut sim = two_of_three();
    sim.run_for(20);
    sim.marks.get_mut(&key("g")).unwrap().unwind_at = Some(Time(i64::MAX / 2));
    sim.restart();
    sim.run_for(GRACE_SECONDS);
    assert_eq!(sim.evicted.len(), 2);
}

#[test]
fn marks_that_the_server_never_takes_are_tried_now_and_then() {
    let mut sim = two_of_three();
    sim.refuses_marks = true;
    sim.run_for(4 * GRACE_SECONDS);
    let tries = sim.order.iter().filter(|write| *write == "marks g").count();
    assert!((2..=25).contains(&tries), "{tries} tries");
    assert_eq!(sim.evicted.len(), 0, "nothing is deleted before it is written on the group");
    sim.refuses_marks = false;
    sim.run_for(2 * GRACE_SECONDS);
    assert_eq!(sim.evicted.len(), 2);
}

#[test]
fn marks_are_tried_at_once_when_somebody_could_write_on_the_group() {
    let mut sim = two_of_three();
    sim.refuses_marks = true;
    sim.run_for(15);
    sim.refuses_marks = false;
    let wrong = GroupMarks { unwind_at: Some(Time(1_000)), ..GroupMarks::default() };
    sim.marks.insert(key("g"), wrong.clone());
    sim.notify_group("g");
    sim.run_for(2);
    assert_ne!(sim.marks[&key("g")], wrong);
}

#[test]
fn the_seat_of_a_lost_member_is_kept_for_its_replacement() {
    let mut sim = broken();
    sim.pod("newcomer", None, 1);
    sim.run_for(5);
    assert_eq!(sim.node_of("newcomer"), None);
    sim.pod("g-9", Some("g"), 1);
    sim.run();
    assert_eq!((sim.node_of("g-9"), state(&sim, "g")), (Some("a"), None));
}

#[test]
fn a_seat_that_nobody_comes_back_for_is_free_in_the_end() {
    let mut sim = broken();
    sim.pod("newcomer", None, 1);
    sim.run_for(70);
    assert_eq!(sim.node_of("newcomer"), Some("a"));
}

#[test]
fn broken_gangs_do_not_block_each_other() {
    let mut sim = Sim::new();
    for node in ["a", "b", "c", "d", "e", "f"] {
        sim.node(node, 1);
    }
    for gang in ["g", "h"] {
        sim.gang(gang, 3);
        sim.gang_pods(gang, 3, 1);
        sim.run_for(1);
    }
    assert_eq!(sim.bound(), 6);
    for gang in ["g", "h"] {
        for index in [0, 1] {
            let pod = format!("{gang}-{index}");
            let node = sim.node_of(&pod).unwrap().to_owned();
            sim.delete_node(&node);
            sim.delete_pod(&pod);
            sim.pod(&format!("{gang}-{}", index + 7), Some(gang), 1);
        }
    }
    sim.run_for(100);
    // Each could hold one of these forever.
    sim.node("x", 1);
    sim.run_for(100);
    sim.node("y", 1);
    sim.run_for(100);
    assert_eq!(
        (state(&sim, "g"), state(&sim, "h")),
        (None, Some(GangState::Completing)),
        "the older one first"
    );
    sim.node("z", 2);
    sim.run();
    assert_eq!(state(&sim, "h"), None);
}

#[test]
fn a_new_scheduler_finishes_what_was_begun_before_anything_else() {
    let mut sim = Sim::with_gang(3, 3);
    refuse_forever(&mut sim, "g-2");
    sim.run();
    assert_eq!(sim.bound(), 2);
    sim.faults.clear();
    sim.pod("important", None, 1);
    sim.pods.get_mut(&key("important")).unwrap().priority = 1_000;
    sim.notify_pod("important");
    sim.restart();
    assert_eq!((sim.node_of("g-2"), sim.node_of("important")), (Some("a"), None));
}

#[test]
fn a_group_whose_minimum_was_raised_unseen_does_not_start_in_part() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.gang("g", 2);
    sim.run();
    sim.hold(ObjectKind::PodGroup);
    sim.set_minimum("g", 4);
    sim.gang_pods("g", 3, 1);
    sim.run_for(10);
    assert_eq!(sim.binds, Vec::<String>::new());
    assert!(sim.facts.iter().any(|fact| matches!(fact, Fact::StaleGroup { .. })));
    // The watch is still behind, and tells of the old one once more.
    sim.pod("g-3", Some("g"), 1);
    sim.run_for(10);
    assert_eq!(sim.bound(), 4);
    sim.release();
    sim.run_for(10);
    assert_eq!(state(&sim, "g"), None);
}

#[test]
fn a_minimum_that_is_raised_late_makes_a_gang_one_to_be_completed() {
    let mut sim = Sim::with_gang(2, 2);
    sim.run_for(1);
    sim.set_minimum("g", 3);
    sim.run();
    assert_eq!(state(&sim, "g"), Some(GangState::Completing));
    sim.node("b", 1);
    sim.pod("g-2", Some("g"), 1);
    sim.run();
    assert_eq!((sim.bound(), state(&sim, "g")), (3, None));
}

#[test]
fn a_member_that_vanishes_before_bindings_go_out_stops_the_start() {
    let mut sim = Sim::with_gang(2, 2);
    sim.step();
    sim.delete_pod("g-1");
    // The look at the group and the news of the pod come in one batch.
    sim.run_for(5);
    assert_eq!(sim.binds, Vec::<String>::new());
    sim.pod("g-2", Some("g"), 1);
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_bound_member_that_vanishes_stops_those_that_were_to_join_it() {
    let mut sim = Sim::with_gang(2, 2);
    sim.run_for(1);
    sim.delete_pod("g-0");
    sim.pod("g-2", Some("g"), 1);
    // It is decided that the new one joins the old one, which goes before that is done.
    sim.step();
    sim.delete_pod("g-1");
    sim.run_for(5);
    assert_eq!((sim.binds.len(), sim.bound()), (2, 0), "one of two starts nothing");
    sim.pod("g-3", Some("g"), 1);
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_gang_that_was_started_before_a_crash_is_told_so_by_the_next_leader() {
    let mut sim = Sim::with_gang(3, 3);
    sim.refuses_conditions = true;
    sim.run();
    assert_eq!((sim.bound(), sim.group_conditions.len()), (3, 0));
    sim.refuses_conditions = false;
    sim.restart();
    sim.run_for(5);
    let condition = &sim.group_conditions[&key("g")];
    assert!(condition.holds(), "{condition:?}");
    assert_eq!(&*condition.message, "3 of at least 3 members run");
    sim.run_for(5);
    assert_eq!(sim.group_patches.len(), 1, "once");
}

#[test]
fn a_gang_of_which_nobody_knows_the_minimum_any_more_does_not_start() {
    let mut sim = Sim::with_gang(4, 4);
    sim.step();
    // It is about to be read once more. What is found then cannot be understood.
    sim.group_errors.insert(key("g"), ModelError::new("metadata.annotations", "is wrong"));
    sim.notify_group("g");
    sim.run_for(5);
    assert_eq!(sim.binds.len(), 0);
    sim.group_errors.clear();
    sim.notify_group("g");
    sim.run_for(5);
    assert_eq!(sim.bound(), 4);
}

#[test]
fn a_server_that_does_not_want_to_hear_that_a_gang_has_started_is_told_less_and_less_often() {
    let mut sim = Sim::with_gang(3, 3);
    sim.refuses_conditions = true;
    sim.node("b", 40);
    for index in 3..40 {
        // A pod that joins makes the gang be looked at, also if another scheduler has placed it.
        let name = format!("g-{index}");
        sim.pod(&name, Some("g"), 1);
        sim.bind_by_other(&name, "b");
        sim.run_for(1);
    }
    sim.run_for(3_600);
    assert_eq!(sim.bound(), 40);
    let refused = sim.core.counters().writes_given_up;
    assert!((4..=9).contains(&refused), "{refused}");
    sim.refuses_conditions = false;
    sim.run_for(1_900);
    assert!(sim.group_conditions[&key("g")].holds(), "and hears it in the end");
}

#[test]
fn a_gang_that_has_ended_before_it_was_told_that_it_started_is_told_so() {
    let mut sim = Sim::with_gang(2, 2);
    sim.refuses_conditions = true;
    sim.run();
    for name in ["g-0", "g-1"] {
        sim.pods.get_mut(&key(name)).expect("it is there").phase = Phase::Succeeded;
        sim.notify_pod(name);
    }
    sim.run();
    sim.refuses_conditions = false;
    sim.restart();
    sim.run_for(5);
    assert!(sim.group_conditions[&key("g")].holds());
}

#[test]
fn a_group_comes_from_forming_to_running_and_is_completed_when_it_breaks() {
    let mut sim = Sim::new();
    sim.gang("g", 2);
    sim.pod("g-0", Some("g"), 1);
    sim.run();
    let state = |sim: &Sim| sim.core.group_state(&key("g"));
    assert_eq!(state(&sim), Some(GroupState::Forming));
    sim.pod("g-1", Some("g"), 1);
    sim.run();
    assert_eq!(state(&sim), Some(GroupState::Waiting));
    sim.node("a", 2);
    sim.step();
    assert_eq!(state(&sim), Some(GroupState::Starting));
    sim.run();
    assert_eq!(state(&sim), Some(GroupState::Running));
    sim.delete_pod("g-1");
    sim.run();
    assert_eq!(state(&sim), Some(GroupState::Completing));
    assert_eq!(sim.core.group_state(&key("other")), None);
}
