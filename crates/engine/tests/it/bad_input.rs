//! What nobody sends on purpose: it must not panic, and nobody else may suffer.

use crate::driver::{World, show};
use tutti_engine::{Decision, Event};
use tutti_model::amount::AMOUNT_MAX;
use tutti_model::scenario::Scenario;
use tutti_model::{Group, ObjectKey, Phase, Pod, Policy, Resource};

fn names_placed(decisions: &[Decision]) -> Vec<String> {
    let placements = decisions.iter().filter_map(|decision| match decision {
        Decision::Place(placement) => Some(&placement.seats),
        _ => None,
    });
    placements.flatten().map(|seat| seat.pod.name.to_string()).collect()
}

#[test]
fn absurd_amounts_are_refused_and_leave_the_node_as_it_was() {
    let mut world = World::parse(
        "node a cpu=4
         pod small cpu=1",
    );
    // Bound by somebody else, 300 times more than any number can count.
    for number in 0..300 {
        let mut pod = Pod::new(ObjectKey::new("default", format!("absurd-{number}")), "uid");
        pod.requests.set(Resource::new("cpu"), AMOUNT_MAX);
        pod.node = Some("a".into());
        world.set_pod(pod);
    }
    let mut greedy = Pod::new(ObjectKey::new("default", "greedy"), "uid");
    greedy.scheduler_name = "tutti".into();
    greedy.requests.set(Resource::new("cpu"), AMOUNT_MAX);
    world.set_pod(greedy);
    world.settle();
    for number in 0..300 {
        world.remove_pod(&ObjectKey::new("default", format!("absurd-{number}")));
    }
    assert_eq!(names_placed(&world.settle()), ["small"]);
}

#[test]
fn a_hundred_thousand_labels_are_just_labels() {
    let mut world = World::parse(
        "node a cpu=4 label:zone=1
         pod plain cpu=1",
    );
    let mut pod = Pod::new(ObjectKey::new("default", "labelled"), "uid");
    pod.scheduler_name = "tutti".into();
    pod.labels = (0..100_000).map(|n| (format!("key-{n}"), format!("value-{n}"))).collect();
    world.set_pod(pod);
    world.add("pod wishing cpu=1 affinity:zone:key-99999=value-99999");
    assert_eq!(names_placed(&world.settle()), ["labelled", "wishing", "plain"]);
}

#[test]
fn a_minimum_that_nobody_can_reach_keeps_only_its_own_group_waiting() {
    let mut world = World::parse(
        "node a cpu=4
         pod endless group=e cpu=1
         pod other cpu=1",
    );
    let policy = Policy::Gang { min_count: std::num::NonZeroU32::MAX };
    let group = Group { policy, ..Group::new(ObjectKey::new("default", "e"), "uid") };
    world.engine.apply(Event::GroupSet(Box::new(group)), world.now);
    let decisions = world.settle();
    assert_eq!(names_placed(&decisions), ["other"]);
    assert!(show(&decisions).contains("4294967295 must start together and 1 are ready"));
}

#[test]
fn facts_about_what_was_never_seen_are_ignored() {
    let mut world = World::parse("node a cpu=1");
    let before = world.engine.digest();
    for event in [
        Event::NodeGone("nowhere".into()),
        Event::PodGone(ObjectKey::new("default", "nobody")),
        Event::GroupGone(ObjectKey::new("default", "nothing")),
        Event::BindFailed { pod: ObjectKey::new("default", "nobody"), uid: "u".into() },
        Event::PodBound { pod: ObjectKey::new("default", "nobody"), uid: "u".into(), node: "nowhere".into() },
        Event::NamespaceSet { name: "empty".into(), labels: tutti_model::Labels::default() },
    ] {
        world.engine.apply(event, world.now);
    }
    assert_eq!(world.engine.digest(), before);
    assert!(world.settle().is_empty());
}

#[test]
fn a_pod_that_ended_on_a_node_that_is_gone_leaves_no_trace_of_it() {
    let mut world = World::parse("node a cpu=1");
    let before = world.engine.digest();
    let mut pod = Scenario::parse("pod old cpu=1").unwrap().pods.remove(0);
    pod.node = Some("gone".into());
    pod.phase = Phase::Succeeded;
    world.set_pod(pod.clone());
    world.remove_pod(&pod.key);
    assert!(world.settle().is_empty());
    assert_eq!(world.engine.digest(), before);
}

#[test]
fn a_gang_of_a_thousand_different_members_is_decided() {
    let mut text = String::from("node n x40 cpu=64 memory=64Gi pods=110\ngroup g gang=1000\n");
    for member in 0..1_000 {
        text += &format!(
            "pod m{member:04} group=g cpu={}m memory={}Mi\n",
            1000 + member,
            1000 + 7 * (member % 90)
        );
    }
    let decisions = World::parse(&text).settle();
    assert_eq!(names_placed(&decisions).len(), 1_000, "{}", show(&decisions));
}
