//! All or nothing, through faults.

use super::small_cluster::{Fault, Sim, key};
use crate::config::Config;
use crate::core::message::{Fact, Input};
use crate::core::waits::Constraint;
use tutti_k8s::ObjectKind;
use tutti_model::ModelError;

fn fault(sim: &mut Sim, pod: &str, faults: &[Fault]) {
    sim.faults.insert(pod.to_owned(), faults.iter().copied().collect());
}

fn failures(sim: &Sim) -> usize {
    sim.facts.iter().filter(|fact| matches!(fact, Fact::BindFailed { .. })).count()
}

#[test]
fn a_gang_is_bound_together() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.node("b", 4);
    sim.gang("g", 4);
    sim.gang_pods("g", 3, 2);
    sim.run_for(5);
    assert_eq!(sim.bound(), 0, "three of four start nothing");
    sim.pod("g-3", Some("g"), 2);
    sim.run();
    assert_eq!(sim.bound(), 4);
    assert_eq!(sim.binds.len(), 4);
}

#[test]
fn a_gang_that_does_not_fit_starts_when_a_node_joins() {
    let mut sim = Sim::with_gang(6, 8);
    sim.run_for(60);
    assert_eq!((sim.bound(), sim.binds.len()), (0, 0));
    sim.node("b", 2);
    sim.run();
    assert_eq!(sim.bound(), 8);
}

#[test]
fn waiting_is_counted_by_what_is_waited_for() {
    let mut sim = Sim::new();
    sim.node("a", 6);
    sim.gang("g", 8);
    sim.gang_pods("g", 7, 1);
    sim.run_for(60);
    sim.pod("g-7", Some("g"), 1);
    sim.run_for(30);
    sim.node("b", 2);
    sim.run();
    let waited = &sim.core.counters().waited;
    let seconds = |constraint| waited.get(&constraint).map(|times| (times.count(), times.sum_ms / 1000));
    assert_eq!(seconds(Constraint::Members), Some((1, 60)));
    assert_eq!(seconds(Constraint::Room), Some((1, 30)));
    assert_eq!(waited.len(), 2);
}

#[test]
fn nothing_is_decided_before_every_list_is_in() {
    let mut sim = Sim::unlisted(Config::default());
    sim.node("a", 4);
    sim.pod("p", None, 1);
    sim.relist(ObjectKind::Pod);
    sim.relist(ObjectKind::Node);
    sim.run_for(60);
    assert_eq!(sim.binds, Vec::<String>::new());
    assert!(!sim.core.is_synced());
    for kind in [ObjectKind::PodGroup, ObjectKind::Composite, ObjectKind::Namespace] {
        assert!(!sim.core.is_synced());
        sim.relist(kind);
        sim.run();
    }
    assert_eq!(sim.binds, ["p@a"]);
}

#[test]
fn a_refused_binding_does_not_stop_the_rest() {
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.node("b", 2);
    sim.gang("g", 4);
    sim.gang_pods("g", 4, 1);
    fault(&mut sim, "g-2", &[Fault::Refuse]);
    sim.run();
    assert_eq!(sim.bound(), 3);
    assert_eq!(failures(&sim), 1);
    sim.run_for(5);
    assert_eq!(sim.bound(), 4, "the last one follows after a pause");
    assert_eq!(sim.binds.len(), 5);
}

#[test]
fn nobody_takes_the_seat_of_a_member_whose_binding_failed_before_it_is_tried_again() {
    let mut sim = Sim::with_gang(2, 2);
    fault(&mut sim, "g-0", &[Fault::LoseRequest]);
    sim.run();
    sim.pod("late", None, 1);
    sim.run_for(10);
    assert_eq!(sim.node_of("g-0"), Some("a"));
    assert_eq!(sim.node_of("late"), None, "its seat was kept while nobody knew");
}

#[test]
fn an_answer_that_is_lost_after_the_write_binds_once_and_forgets_no_seat() {
    let mut sim = Sim::with_gang(2, 2);
    fault(&mut sim, "g-0", &[Fault::LoseAnswer]);
    sim.step();
    // The watch is silent from here: only a look at the pod can tell.
    sim.hold(ObjectKind::Pod);
    sim.run();
    sim.run_for(5);
    assert_eq!(sim.written, ["g-0@a", "g-1@a"]);
    assert_eq!(sim.binds.len(), 2, "looked at, not bound again");
    sim.release();
    sim.pod("late", None, 1);
    sim.run_for(5);
    assert_eq!(sim.node_of("late"), None);
    assert_eq!(failures(&sim), 0);
}

#[test]
fn a_request_that_is_lost_before_the_write_is_repeated_for_the_same_node() {
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.node("b", 2);
    sim.pod("p", None, 2);
    fault(&mut sim, "p", &[Fault::LoseRequest, Fault::LoseRequest]);
    sim.run_for(30);
    assert_eq!(sim.binds.len(), 3);
    assert!(sim.binds.iter().all(|bind| *bind == sim.binds[0]), "{:?}", sim.binds);
    assert_eq!(sim.bound(), 1);
}

#[test]
fn the_watch_may_tell_before_the_answer() {
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.pod("p", None, 1);
    fault(&mut sim, "p", &[Fault::LoseAnswer]);
    sim.run();
    // The watch told; no look and no second binding is needed.
    sim.run_for(60);
    assert_eq!(sim.binds, ["p@a"]);
    assert!(sim.core.is_drained());
}

#[test]
fn a_watch_that_is_behind_does_not_free_a_seat() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.step();
    sim.hold(ObjectKind::Pod);
    sim.run();
    assert_eq!(sim.node_of("p"), Some("a"));
    // A picture of the pod from before it was bound comes late.
    let mut old = sim.pods[&key("p")].clone();
    old.node = None;
    let old = sim.pod_reading(old, vec![]);
    sim.release();
    sim.notify(ObjectKind::Pod, Input::PodSet(Box::new(old)));
    sim.pod("q", None, 1);
    sim.run_for(10);
    assert_eq!(sim.node_of("q"), None);
    assert_eq!(sim.binds, ["p@a"]);
}

#[test]
fn a_group_may_be_seen_after_its_pods() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.hold(ObjectKind::PodGroup);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    sim.run_for(10);
    assert_eq!(sim.binds, Vec::<String>::new());
    sim.release();
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn pods_may_be_seen_before_their_nodes() {
    let mut sim = Sim::new();
    sim.hold(ObjectKind::Node);
    sim.node("a", 4);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    sim.run_for(10);
    assert_eq!(sim.bound(), 0);
    sim.release();
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_group_that_is_deleted_in_flight_does_not_stop_its_bindings() {
    let mut sim = Sim::with_gang(4, 2);
    sim.step();
    assert!(sim.answer(), "a last look at the group");
    sim.delete_group("g");
    sim.run_for(10);
    assert_eq!(sim.bound(), 2, "what was decided together ends together");
    assert!(sim.core.is_drained());
}

#[test]
fn a_pod_that_is_deleted_in_flight_frees_its_seat() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.step();
    sim.hold(ObjectKind::Pod);
    sim.delete_pod("p");
    sim.run_for(1);
    assert!(sim.core.is_drained(), "a look told that it is gone");
    sim.release();
    sim.pod("q", None, 1);
    sim.run();
    assert_eq!(sim.node_of("q"), Some("a"));
}

#[test]
fn a_pod_that_is_made_again_under_its_name_is_another_pod() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.step();
    sim.hold(ObjectKind::Pod);
    sim.delete_pod("p");
    sim.pod("p", None, 1);
    sim.run_for(1);
    assert_eq!(sim.written, Vec::<String>::new(), "the binding was meant for the first one");
    sim.release();
    sim.run();
    assert_eq!(sim.node_of("p"), Some("a"));
}

#[test]
fn a_pod_bound_by_somebody_else_is_counted_where_it_is() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.step();
    sim.node("b", 1);
    sim.hold(ObjectKind::Pod);
    sim.bind_by_other("p", "b");
    sim.run_for(1);
    assert!(sim.facts.iter().any(|fact| matches!(fact, Fact::BoundElsewhere { .. })));
    sim.release();
    sim.pod("q", None, 1);
    sim.run();
    assert_eq!(sim.node_of("q"), Some("a"), "the seat that was not used is free");
}

#[test]
fn a_list_after_a_broken_watch_removes_what_vanished() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.node("gone", 1);
    sim.pod("p", None, 1);
    sim.pod("q", None, 1);
    sim.run();
    assert_eq!(sim.bound(), 2);
    // Both pods and a node go while nobody watches.
    sim.delete_pod("p");
    sim.delete_pod("q");
    sim.delete_node("gone");
    sim.relist(ObjectKind::Pod);
    sim.relist(ObjectKind::Node);
    sim.pod("r", None, 1);
    sim.pod("s", None, 1);
    sim.run_for(5);
    assert_eq!(sim.node_of("r"), Some("a"));
    assert_eq!(sim.node_of("s"), None);
}

#[test]
fn the_node_of_a_lost_binding_may_vanish() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    fault(&mut sim, "p", &[Fault::LoseRequest]);
    sim.run();
    sim.delete_node("a");
    sim.node("b", 1);
    sim.run_for(60);
    assert_eq!(sim.node_of("p"), None, "the lost binding may still be written");
    sim.run_for(90);
    assert_eq!(sim.node_of("p"), Some("b"), "it can no longer be");
    assert_eq!(failures(&sim), 1);
}

#[test]
fn after_a_stop_nothing_is_decided_and_what_was_begun_ends() {
    let mut sim = Sim::with_gang(8, 2);
    sim.step();
    sim.notify(ObjectKind::Node, Input::Stop);
    sim.pod("late", None, 1);
    sim.run_for(5);
    assert_eq!(sim.bound(), 2);
    assert!(sim.core.is_drained());
}

#[test]
fn the_same_inputs_give_the_same_effects() {
    let story = || {
        let mut sim = Sim::new();
        sim.node("a", 3);
        sim.node("b", 3);
        for name in ["g", "h"] {
            sim.gang(name, 3);
            sim.gang_pods(name, 3, 1);
        }
        fault(&mut sim, "g-1", &[Fault::LoseAnswer]);
        fault(&mut sim, "h-2", &[Fault::Refuse, Fault::LoseRequest]);
        sim.run_for(30);
        assert_eq!(sim.bound(), 6);
        (sim.binds, sim.events, sim.facts, sim.group_patches)
    };
    assert_eq!(story(), story());
}

#[test]
fn a_pod_that_changed_while_it_was_bound_is_not_taken_for_what_was_decided_on() {
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.pod("grows", None, 1);
    sim.step();
    let pod = sim.pods.get_mut(&key("grows")).expect("it waits");
    pod.requests = pod.requests.iter().map(|(resource, amount)| (resource.clone(), 2 * amount)).collect();
    sim.run();
    assert_eq!(sim.node_of("grows"), Some("a"));
    sim.pod("late", None, 1);
    sim.run();
    assert_eq!(sim.node_of("late"), None, "the room is taken");
}

#[test]
fn a_pod_that_becomes_unreadable_while_it_is_bound_is_left_alone_when_that_fails() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.faults.insert("p".into(), [Fault::Refuse].into());
    sim.step();
    let wrong = ModelError::new("metadata.labels[rank]", "is no number");
    let reading = sim.pod_reading(sim.pods[&key("p")].clone(), vec![wrong]);
    sim.notify(ObjectKind::Pod, Input::PodSet(Box::new(reading)));
    sim.step();
    sim.hold(ObjectKind::Pod);
    sim.run_for(200);
    assert_eq!((sim.binds.len(), sim.bound()), (1, 0));
    sim.release();
    sim.run_for(200);
    assert_eq!(sim.node_of("p"), Some("a"), "it can be read again");
}
