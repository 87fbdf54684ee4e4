//! What people are told.

use super::small_cluster::{Fault, Sim, key};
use crate::core::message::{Fact, Input};
use tutti_k8s::{Condition, ConditionStatus, ObjectError, ObjectKind};
use tutti_model::{ModelError, Pod, Resource, Time};

fn events<'a>(sim: &'a Sim, name: &str) -> Vec<(&'a str, &'a str)> {
    sim.events
        .iter()
        .filter(|note| note.regarding.key == key(name))
        .map(|note| (note.reason, note.message.as_ref()))
        .collect()
}

fn waits() -> Sim {
    let mut sim = Sim::with_gang(6, 8);
    sim.run_for(5);
    sim
}

#[test]
fn a_waiting_gang_says_why_on_itself_and_on_its_members() {
    let sim = waits();
    let condition = &sim.group_conditions[&key("g")];
    assert_eq!(condition.kind.as_ref(), "PodGroupInitiallyScheduled");
    assert_eq!(condition.status, ConditionStatus::False);
    assert_eq!((condition.reason.as_ref(), condition.observed_generation), ("Unschedulable", 1));
    assert!(condition.message.starts_with("6 of 8 members fit"), "{}", condition.message);
    assert_eq!(events(&sim, "g"), [("FailedScheduling", condition.message.as_ref())]);
    assert_eq!(sim.pod_patches.len(), 8);
    for (pod, patch) in &sim.pod_patches {
        assert_eq!((patch.kind.as_ref(), patch.reason.as_ref()), ("PodScheduled", "Unschedulable"));
        assert!(patch.message.starts_with("pod group g has no room"), "{}", patch.message);
        assert_eq!(events(&sim, &pod.name), [("FailedScheduling", patch.message.as_ref())]);
    }
}

#[test]
fn a_gang_that_has_waited_for_very_long_is_told_that_room_is_kept_for_it() {
    let mut sim = Sim::with_gang(8, 8);
    sim.pod("before", None, 2);
    sim.bind_by_other("before", "a");
    sim.run_for(60);
    let message = |sim: &Sim| sim.group_conditions[&key("g")].message.to_string();
    assert!(!message(&sim).contains("kept"), "{}", message(&sim));
    sim.run_for(1_800);
    assert!(message(&sim).ends_with("what becomes free is kept for it"), "{}", message(&sim));
    assert_eq!(sim.core.gauges().seats_kept, 8);
    sim.pod("small", None, 1);
    sim.run_for(5);
    assert_eq!((sim.node_of("small"), sim.bound()), (None, 1));
    sim.delete_pod("before");
    sim.run_for(5);
    assert_eq!(sim.bound(), 8, "all of the gang, and nobody else");
}

#[test]
fn a_placed_gang_says_so_once_and_for_good() {
    let mut sim = waits();
    let before = sim.group_conditions[&key("g")].clone();
    sim.node("b", 2);
    sim.run_for(1);
    let condition = sim.group_conditions[&key("g")].clone();
    assert_eq!((condition.status, condition.reason.as_ref()), (ConditionStatus::True, "Scheduled"));
    assert!(condition.changed > before.changed, "the status has changed");
    assert_eq!(sim.group_patches.len(), 2);
    assert_eq!(events(&sim, "g").last(), Some(&("Scheduled", "8 members placed on 2 nodes")));
    assert_eq!(events(&sim, "g-0").last().map(|(reason, _)| *reason), Some("Scheduled"));
    // A member dies and its replacement finds no room: the group has started all the same.
    sim.delete_pod("g-0");
    sim.pod("intruder", None, 1);
    sim.run();
    sim.pod("g-8", Some("g"), 8);
    sim.run_for(60);
    assert_eq!(sim.node_of("g-8"), None);
    assert_eq!(sim.group_patches.len(), 2, "true is final");
}

#[test]
fn a_group_that_somebody_else_started_is_not_called_unschedulable() {
    let mut sim = Sim::new();
    sim.gang("g", 2);
    let started = Condition {
        kind: "PodGroupInitiallyScheduled".into(),
        status: ConditionStatus::True,
        reason: "Scheduled".into(),
        message: "".into(),
        observed_generation: 1,
        changed: Some(Time(5000)),
    };
    sim.group_conditions.insert(key("g"), started);
    sim.notify_group("g");
    sim.gang_pods("g", 2, 1);
    sim.run_for(60);
    assert_eq!(sim.group_patches, []);
    assert!(!sim.pod_patches.is_empty());
}

#[test]
fn what_is_known_already_is_not_written_again_after_a_restart() {
    let mut sim = waits();
    let (patches, events) = (sim.pod_patches.len(), sim.events.len());
    let fresh = Sim::unlisted(crate::Config::default());
    sim.core = fresh.core;
    sim.list_everything();
    sim.run_for(60);
    assert!(sim.core.is_synced());
    assert_eq!(sim.group_patches.len(), 1);
    assert_eq!(sim.pod_patches.len(), patches);
    assert_eq!(sim.events.iter().filter(|note| note.regarding.kind.as_ref() == "Pod").count(), events - 1);
}

#[test]
fn a_group_that_is_made_anew_is_told_again() {
    let mut sim = waits();
    assert_eq!(sim.group_patches.len(), 1);
    sim.gang("g", 8);
    sim.run_for(5);
    assert_eq!(sim.group_patches.len(), 2);
    sim.groups.get_mut(&key("g")).unwrap().generation = 2;
    sim.notify_group("g");
    sim.run_for(5);
    assert_eq!(sim.group_patches.last().map(|c| c.observed_generation), Some(2));
}

#[test]
fn members_that_arrive_one_by_one_cause_few_writes() {
    let mut sim = Sim::new();
    sim.node("a", 100);
    sim.gang("g", 50);
    for index in 0..50 {
        sim.pod(&format!("g-{index}"), Some("g"), 1);
        sim.run_for(0);
        sim.now = Time(sim.now.0 + 10);
    }
    sim.run_for(5);
    assert_eq!(sim.bound(), 50);
    assert_eq!(sim.pod_patches.len(), 0, "it was complete before anybody had to hear that it was not");
    assert_eq!(sim.group_patches.len(), 1);
}

#[test]
fn a_large_waiting_gang_does_not_stand_before_bindings() {
    let mut sim = Sim::new();
    sim.node("a", 1000);
    sim.gang("big", 2000);
    for index in 0..2000 {
        sim.pod(&format!("big-{index}"), Some("big"), 1);
    }
    sim.step();
    sim.gang("small", 100);
    sim.gang_pods("small", 100, 1);
    sim.step();
    while sim.bound() < 100 {
        assert!(sim.answer(), "everything is answered and not everything bound");
    }
    assert!(sim.pod_patches.len() <= 100, "{} before the last binding", sim.pod_patches.len());
    sim.run_for(3);
    assert_eq!(sim.pod_patches.len(), 2000, "autoscalers see all of it together");
}

#[test]
fn a_gang_of_eight_starts_with_twelve_requests_and_an_event_for_every_pod() {
    let mut sim = Sim::with_gang(8, 8);
    sim.run_for(60);
    assert_eq!(sim.bound(), 8);
    let events = sim.events.iter().filter(|note| note.regarding.kind == "Pod").count();
    assert_eq!((events, sim.requests_count - events), (8, 12), "{:?}", sim.order);
}

#[test]
fn a_gang_that_only_lacks_members_is_not_called_unschedulable() {
    let mut sim = Sim::new();
    sim.node("a", 8);
    sim.gang("g", 8);
    sim.gang_pods("g", 7, 1);
    sim.run_for(60);
    assert_eq!(sim.pod_patches.len(), 7);
    for (pod, patch) in &sim.pod_patches {
        assert_eq!(&*patch.reason, "NotReadyForScheduling", "{pod}: an autoscaler would make a node for it");
    }
    assert_eq!(&*sim.group_conditions[&key("g")].reason, "NotReadyForScheduling");
    // Once it is complete, room is what is missing.
    sim.delete_node("a");
    sim.pod("g-7", Some("g"), 1);
    sim.run_for(1);
    let last =
        |pod: &str| sim.pod_patches.iter().rfind(|(of, _)| *of == key(pod)).map(|(_, patch)| &*patch.reason);
    assert!((0..8).all(|index| last(&format!("g-{index}")) == Some("Unschedulable")));
}

#[test]
fn members_of_a_part_of_a_tree_that_lacks_groups_are_not_called_unschedulable_because_another_part_lacks_room()
 {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.composite("top", None, 1);
    sim.child("side", "top", 2);
    // Two groups must start together here, and there is one.
    sim.composite("inner", Some("top"), 2);
    sim.child("l", "inner", 2);
    sim.run_for(60);
    let last =
        |pod: &str| sim.pod_patches.iter().rfind(|(of, _)| *of == key(pod)).map(|(_, patch)| &*patch.reason);
    assert_eq!(last("side-0"), Some("Unschedulable"));
    assert_eq!(last("l-0"), Some("NotReadyForScheduling"), "an autoscaler would make a node for it");
    assert_eq!(&*sim.group_conditions[&key("l")].reason, "NotReadyForScheduling");
}

#[test]
fn groups_of_a_composite_that_is_gone_are_not_said_to_lack_room_any_more() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.composite("top", None, 1);
    sim.child("l", "top", 2);
    sim.run_for(5);
    assert_eq!(&*sim.group_conditions[&key("l")].reason, "Unschedulable");
    sim.delete_composite("top");
    sim.run_for(5);
    assert_eq!(&*sim.group_conditions[&key("l")].reason, "NotReadyForScheduling");
}

#[test]
fn a_group_whose_members_are_gone_is_not_said_to_lack_room_any_more() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    sim.run_for(40);
    assert_eq!(&*sim.group_conditions[&key("g")].reason, "Unschedulable");
    // The numbers change, which has time; and then nobody is left who could use a node.
    sim.node("b", 0);
    sim.run_for(1);
    let before = sim.group_patches.len();
    for pod in sim.pods.keys().map(|pod| pod.name.to_string()).collect::<Vec<_>>() {
        sim.delete_pod(&pod);
    }
    sim.run_for(600);
    let stale: Vec<_> =
        sim.group_patches[before..].iter().filter(|c| &*c.reason == "Unschedulable").collect();
    assert!(stale.is_empty(), "{stale:?}");
}

#[test]
fn a_reason_in_other_words_is_written_less_and_less_often_and_at_a_fixed_rate() {
    let mut sim = Sim::new();
    // Nobody fits, and every node that joins changes the numbers.
    for index in 0..300 {
        sim.pod(&format!("p-{index}"), None, 2);
    }
    sim.node("n", 1);
    sim.run_for(60);
    let first = sim.pod_patches.len();
    assert!((300..=600).contains(&first), "{first}");
    for index in 0..600 {
        sim.node(&format!("n-{index}"), 1);
        sim.run_for(1);
    }
    let patches = sim.pod_patches.len() - first;
    assert!(patches <= 300 * 7, "{patches} in ten minutes: after 10, 20, 40, 80, 160 and 320 seconds");
    let failed = sim.events.iter().filter(|note| note.reason == "FailedScheduling").count();
    assert!(failed <= 300 * 9, "{failed}");
}

#[test]
fn all_members_are_marked_before_events_say_the_same() {
    let mut sim = Sim::with_gang(6, 1_000);
    sim.step();
    while sim.pod_patches.len() < 1_000 {
        let told = sim.events.iter().filter(|note| note.reason == "FailedScheduling").count();
        assert!(told <= 1, "{told} events after {} conditions", sim.pod_patches.len());
        if !sim.answer() {
            sim.run_for(1);
        }
    }
    sim.run_for(200);
    assert_eq!(sim.events.len(), 1_001, "of the group and of every member");
}

#[test]
fn events_about_waiting_are_few_per_second_however_many_wait() {
    let mut sim = Sim::with_gang(6, 1_000);
    sim.run_for(10);
    let first = sim.events.len();
    assert!((100..=210).contains(&first), "a hundred at once, and then ten per second: {first}");
    sim.run_for(30);
    let more = sim.events.len() - first;
    assert!((290..=310).contains(&more), "ten per second: {more}");
}

#[test]
fn an_event_is_reported_by_the_scheduler_that_its_pod_asks_for() {
    let names = ["tutti", "other"].map(tutti_model::Text::from).to_vec();
    let mut config = crate::Config::default();
    config.profiles[0].scheduler_names = names;
    let mut sim = Sim::unlisted(config);
    sim.list_everything();
    sim.node("a", 3);
    sim.gang("g", 1);
    for (pod, group, scheduler) in [("p", None, "tutti"), ("q", None, "other"), ("g-0", Some("g"), "other")] {
        sim.pod(pod, group, 1);
        sim.pods.get_mut(&key(pod)).unwrap().scheduler_name = scheduler.into();
    }
    sim.relist(ObjectKind::Pod);
    sim.run_for(5);
    let by = |name: &str| {
        let note = sim.events.iter().find(|note| note.regarding.key == key(name));
        note.and_then(|note| note.reporter.as_deref())
    };
    assert_eq!((by("p"), by("q"), by("g")), (Some("tutti"), Some("other"), Some("other")));
}

#[test]
fn events_wait_while_bindings_fill_at_least_half_of_the_window() {
    let mut sim = Sim::new();
    sim.node("a", 110);
    sim.node("b", 110);
    (0..200).for_each(|index| sim.pod(&format!("p-{index}"), None, 1));
    sim.step();
    // A hundred may be under way.
    for _ in 0..150 {
        sim.answer();
    }
    assert_eq!((sim.binds.len(), sim.events.len()), (150, 0));
    sim.run_for(60);
    assert_eq!((sim.binds.len(), sim.events.len()), (200, 200));
}

#[test]
fn a_failed_binding_is_told_on_the_pod() {
    let mut sim = Sim::new();
    sim.node("a", 1);
    sim.pod("p", None, 1);
    sim.faults.insert("p".to_owned(), [Fault::Refuse].into());
    sim.run_for(0);
    assert_eq!(events(&sim, "p"), [("FailedScheduling", "binding to node a failed: forbidden")]);
    sim.run_for(30);
    assert_eq!(events(&sim, "p").last(), Some(&("Scheduled", "Successfully assigned default/p to a")));
}

#[test]
fn a_pod_that_is_not_understood_is_told_so_once_and_stops_nobody() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    let mut bad = Pod::new(key("bad"), "uid");
    bad.scheduler_name = "tutti".into();
    sim.pods.insert(key("bad"), bad.clone());
    let reading = sim.pod_reading(bad, vec![ModelError::new("spec.priority", "not a number")]);
    for _ in 0..2 {
        sim.notify(ObjectKind::Pod, Input::PodSet(Box::new(reading.clone())));
        sim.pod("good", None, 1);
        sim.step();
    }
    let reports = sim.facts.iter().filter(|fact| matches!(fact, Fact::BadObject(_))).count();
    assert_eq!(reports, 1, "once per version");
    // Served one by one, so that the simulated patch does not replace the broken picture by a good one.
    sim.hold(ObjectKind::Pod);
    sim.run_for(1);
    assert_eq!(sim.node_of("good"), Some("a"));
    assert_eq!(sim.node_of("bad"), None);
    assert_eq!(
        events(&sim, "bad"),
        [
            ("NotUnderstood", "spec.priority: not a number"),
            ("FailedScheduling", "spec.priority: not a number")
        ]
    );
    assert_eq!(sim.pod_patches[0].1.reason.as_ref(), "SchedulerError");
}

#[test]
fn a_running_pod_that_is_not_understood_keeps_its_room() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    sim.run();
    let mut bad = Pod::new(key("bad"), "uid");
    bad.node = Some("a".into());
    bad.requests = [(Resource::new("cpu"), 4000)].into_iter().collect();
    let reading = sim.pod_reading(bad, vec![ModelError::new("spec.tolerations", "what")]);
    sim.notify(ObjectKind::Pod, Input::PodSet(Box::new(reading)));
    sim.pod("p", None, 1);
    sim.run_for(5);
    assert_eq!(sim.node_of("p"), None);
}

#[test]
fn a_group_that_is_not_understood_keeps_its_members_waiting() {
    let mut sim = Sim::new();
    sim.node("a", 4);
    // Its own watch is silent; the broken picture of it comes by hand.
    sim.run();
    sim.hold(ObjectKind::PodGroup);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    let mut reading = sim.group_reading(&key("g"));
    reading.group = None;
    let error = ModelError::new("spec.schedulingPolicy", "is missing");
    reading.errors = vec![ObjectError::new(ObjectKind::PodGroup, key("g"), error)];
    sim.notify(ObjectKind::Node, Input::GroupSet(Box::new(reading)));
    sim.run_for(5);
    assert_eq!(sim.bound(), 0);
    let condition = &sim.group_conditions[&key("g")];
    assert_eq!(condition.reason.as_ref(), "SchedulerError");
    assert_eq!(condition.message.as_ref(), "spec.schedulingPolicy: is missing");
}

#[test]
fn every_attempt_is_counted_and_what_is_found_again_is_not_told_again() {
    let seen = |sim: &Sim| {
        let told = |fact: &&Fact| matches!(fact, Fact::Waiting { gathering: false, .. });
        let attempts = sim.core.counters().group_attempts["tutti"].unschedulable;
        (attempts, sim.facts.iter().filter(told).count())
    };
    let mut sim = Sim::new();
    sim.node("a", 2);
    sim.gang("g", 3);
    sim.gang_pods("g", 3, 1);
    sim.run();
    assert_eq!(seen(&sim), (1, 1));
    // A unit that waits is looked at every five minutes, in case that something was missed.
    sim.run_for(1_000);
    assert_eq!(seen(&sim), (4, 1));
}
