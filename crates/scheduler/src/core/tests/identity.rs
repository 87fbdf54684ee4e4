//! Which object is meant: watches are behind, lists and looks overlap, and names are used again.

use super::small_cluster::{Sim, key};
use crate::core::message::{Answer, GroupLookup, Input, Lookup};
use tutti_engine::UnitKey;
use tutti_k8s::{GroupReading, ObjectKind};

fn found(reading: &GroupReading) -> Input {
    let group = UnitKey::Group(reading.key.clone());
    Input::Answer(Answer::Group { group, found: GroupLookup::Found(Box::new(reading.clone())) })
}

fn set(reading: &GroupReading) -> Input {
    Input::GroupSet(Box::new(reading.clone()))
}

#[test]
fn a_group_that_was_deleted_while_its_watch_was_broken_is_forgotten_even_if_it_was_read_meanwhile() {
    let mut sim = Sim::with_gang(1, 2);
    sim.run();
    let reading = sim.group_reading(&key("g"));
    sim.give(vec![
        Input::ListStarted(ObjectKind::PodGroup),
        found(&reading),
        Input::ListDone(ObjectKind::PodGroup),
    ]);
    assert_eq!(sim.core.group_uid(&key("g")), None, "the list does not have it");
}

#[test]
fn a_watch_that_is_behind_does_not_bring_back_a_group_that_was_replaced() {
    let mut sim = Sim::with_gang(1, 2);
    sim.run();
    let old = sim.group_reading(&key("g"));
    sim.hold(ObjectKind::PodGroup);
    sim.replace_group("g", None, 3);
    let new = sim.group_reading(&key("g"));
    sim.give(vec![found(&new)]);
    assert_eq!(sim.core.group_uid(&key("g")), Some(&new.uid));
    // Now the watch comes to what happened before.
    sim.give(vec![set(&old)]);
    assert_eq!(sim.core.group_uid(&key("g")), Some(&new.uid), "an older picture of another group");
    sim.give(vec![Input::GroupGone(key("g"))]);
    assert_eq!(sim.core.group_uid(&key("g")), Some(&new.uid), "the older group is gone, this one is not");
    sim.give(vec![set(&new)]);
    sim.give(vec![Input::GroupGone(key("g"))]);
    assert_eq!(sim.core.group_uid(&key("g")), None, "now it is about this one");
}

#[test]
fn a_watch_that_is_behind_does_not_bring_back_a_group_of_which_a_look_said_that_it_is_gone() {
    let mut sim = Sim::with_gang(2, 2);
    sim.step();
    sim.hold(ObjectKind::PodGroup);
    let old = sim.group_reading(&key("g"));
    sim.delete_group("g");
    sim.run();
    assert_eq!((sim.core.group_uid(&key("g")), sim.binds.len()), (None, 0), "the last look found nothing");
    sim.give(vec![set(&old)]);
    assert_eq!(sim.core.group_uid(&key("g")), None, "the watch has not come to its end yet");
    sim.run();
    assert_eq!(sim.binds.len(), 0);
    // A group that is made again is another one.
    sim.gang("g", 2);
    sim.release();
    sim.run();
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_watch_that_is_behind_does_not_bring_back_a_pod_of_which_a_look_said_that_it_is_gone() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.step();
    sim.hold(ObjectKind::Pod);
    let pod = sim.pods[&key("p")].clone();
    let late = sim.pod_reading(pod.clone(), vec![]);
    sim.delete_pod("p");
    sim.run();
    let gone = Answer::Pod { pod: key("p"), uid: pod.uid, found: Lookup::Gone };
    sim.give(vec![Input::Answer(gone)]);
    sim.give(vec![Input::PodSet(Box::new(late))]);
    sim.run();
    assert_eq!(sim.binds.len(), 1, "it is not bound again: {:?}", sim.binds);
    sim.release();
    sim.run();
    sim.pod("p", None, 1);
    sim.run();
    assert_eq!(sim.bound(), 1, "another pod of its name is another pod");
}

#[test]
fn a_watch_event_that_comes_late_does_not_bring_back_a_pod_that_was_replaced() {
    let mut sim = Sim::new();
    sim.pod("p", None, 1);
    let old = sim.pod_reading(sim.pods[&key("p")].clone(), vec![]);
    sim.run();
    sim.delete_pod("p");
    sim.pod("p", None, 1);
    sim.run();
    sim.give(vec![Input::PodSet(Box::new(old))]);
    sim.node("a", 1);
    sim.run();
    assert_eq!(sim.bound(), 1, "it is the new one that is known");
}
