//! Kinds that scheduling can do without: what they change, and that nothing waits for them for ever.

use super::small_cluster::{Sim, key};
use crate::config::Config;
use crate::core::Core;
use crate::core::message::{Fact, Input};
use tutti_k8s::{BudgetReading, NodeReading, ObjectError, ObjectKind, PriorityClassReading, SelectorReading};
use tutti_model::{LabelSelector, Labels, ModelError, Node, ObjectKey, Resource};

/// A cluster whose optional kinds are watched, too; none of them is listed yet.
fn unlisted() -> Sim {
    let capabilities = Sim::capabilities().with_optional();
    let mut sim = Sim::of(Core::new(Config::default(), capabilities));
    sim.list_everything();
    sim
}

/// The same with everything listed.
fn listed() -> Sim {
    let mut sim = unlisted();
    ObjectKind::OPTIONAL.into_iter().for_each(|kind| sim.relist(kind));
    sim
}

fn selects(kind: ObjectKind, name: &str, app: &str) -> Input {
    Input::SelectorSet(Box::new(SelectorReading {
        kind,
        key: key(name),
        uid: name.into(),
        selector: Some(LabelSelector::of_labels([("app", app)])),
        errors: vec![],
    }))
}

fn class(name: &str, value: i32) -> Input {
    let reading =
        PriorityClassReading { name: name.into(), value: Some(value), uid: name.into(), errors: vec![] };
    Input::PriorityClassSet(Box::new(reading))
}

impl Sim {
    /// A node that has the label with its own name.
    fn labelled_node(&mut self, name: &str, cpus: i64) {
        let allocatable =
            [(Resource::new("cpu"), cpus * 1000), (Resource::new("pods"), 110)].into_iter().collect();
        let labels: Labels = [("kubernetes.io/hostname", name)].into_iter().collect();
        let node = Node { name: name.into(), allocatable, labels, ..Node::default() };
        let reading = NodeReading { uid: name.into(), version: "1".into(), errors: vec![], node };
        self.notify(ObjectKind::Node, Input::NodeSet(Box::new(reading)));
    }

    /// A pod that does the work of an app; on a node if it runs already.
    fn worker(&mut self, name: &str, app: &str, cpus: i64, node: Option<&str>) {
        self.pod(name, None, cpus);
        let pod = self.pods.get_mut(&key(name)).unwrap();
        pod.labels = [("app", app)].into_iter().collect();
        pod.node = node.map(Into::into);
        self.notify_pod(name);
    }

    /// Node `a` is emptier than node `b`, but it has two pods of the app `web`.
    fn with_two_workers_on_a(mut self) -> Self {
        self.labelled_node("a", 8);
        self.labelled_node("b", 8);
        self.worker("old-0", "web", 1, Some("a"));
        self.worker("old-1", "web", 1, Some("a"));
        self.worker("other", "db", 4, Some("b"));
        self.run();
        self
    }

    fn unavailable(&self) -> Vec<ObjectKind> {
        let kind = |fact: &Fact| match fact {
            Fact::Unavailable { kind, .. } => Some(*kind),
            _ => None,
        };
        self.facts.iter().filter_map(kind).collect()
    }

    fn priority_of_group(&self, name: &str) -> Option<i32> {
        self.core.groups.group(&key(name))?.asks.as_ref()?.priority
    }
}

#[test]
fn pods_of_a_service_are_spread_although_they_do_not_say_so() {
    let mut sim = listed().with_two_workers_on_a();
    sim.worker("alone", "web", 1, None);
    sim.run();
    assert_eq!(sim.node_of("alone"), Some("a"), "nobody says that it is like the others");
    sim.delete_pod("alone");
    sim.notify(ObjectKind::Service, selects(ObjectKind::Service, "web", "web"));
    sim.run();
    sim.worker("served", "web", 1, None);
    sim.worker("other-1", "db", 1, None);
    sim.run();
    assert_eq!((sim.node_of("served"), sim.node_of("other-1")), (Some("b"), Some("a")));
}

#[test]
fn pods_of_a_controller_are_spread_by_its_selector_and_no_longer_once_it_is_gone() {
    for kind in [ObjectKind::ReplicaSet, ObjectKind::StatefulSet, ObjectKind::ReplicationController] {
        let mut sim = listed().with_two_workers_on_a();
        for name in ["kept", "late"] {
            sim.replicators.insert(key(name), (kind, key("web")));
        }
        sim.notify(kind, selects(kind, "web", "web"));
        sim.worker("kept", "web", 1, None);
        sim.run();
        assert_eq!(sim.node_of("kept"), Some("b"), "{kind}");
        sim.delete_pod("kept");
        sim.notify(kind, Input::SelectorGone(kind, key("web")));
        sim.worker("late", "web", 1, None);
        sim.run();
        assert_eq!(sim.node_of("late"), Some("a"), "{kind}");
    }
}

#[test]
fn a_pod_that_waits_learns_of_a_service_and_its_place_is_not_judged_anew() {
    let mut sim = listed().with_two_workers_on_a();
    sim.worker("huge", "web", 100, None);
    sim.run();
    assert_eq!(sim.core.pods[&key("huge")].like, None);
    sim.notify(ObjectKind::Service, selects(ObjectKind::Service, "web", "web"));
    sim.run();
    let like = sim.core.pods[&key("huge")].like.as_deref().cloned();
    assert_eq!(like, Some(LabelSelector::of_labels([("app", "web")])));
    // Pods that have their place are as they were.
    assert_eq!(sim.core.pods[&key("old-0")].like, None);
    let woken = sim.core.gauges().wake_ups;
    sim.notify(ObjectKind::Service, Input::SelectorGone(ObjectKind::Service, key("web")));
    sim.relist(ObjectKind::Service);
    sim.run();
    assert_eq!(sim.core.pods[&key("huge")].like, None, "neither the event nor the list had it");
    assert_eq!(sim.core.gauges().wake_ups, woken);
}

#[test]
fn who_is_bound_wakes_nobody_by_having_been_spread() {
    let mut sim = listed().with_two_workers_on_a();
    sim.notify(ObjectKind::Service, selects(ObjectKind::Service, "web", "web"));
    sim.worker("huge", "none", 7, None);
    sim.run();
    let attempts = sim.core.gauges().attempts;
    sim.worker("small", "web", 1, None);
    sim.run();
    assert_eq!(sim.node_of("small"), Some("b"));
    assert_eq!(sim.core.gauges().attempts, attempts + 1, "only the new pod was looked at");
}

#[test]
fn a_group_that_names_only_a_class_has_the_priority_of_the_class() {
    let mut sim = unlisted();
    sim.priority_classes.insert(key("g"), "high".into());
    sim.gang("g", 2);
    // In any order: groups are listed before classes here.
    sim.run();
    sim.notify(ObjectKind::PriorityClass, Input::ListStarted(ObjectKind::PriorityClass));
    sim.notify(ObjectKind::PriorityClass, class("high", 700));
    sim.notify(ObjectKind::PriorityClass, Input::ListDone(ObjectKind::PriorityClass));
    for kind in ObjectKind::OPTIONAL.into_iter().filter(|kind| *kind != ObjectKind::PriorityClass) {
        sim.relist(kind);
    }
    sim.run();
    assert_eq!(sim.priority_of_group("g"), Some(700));
    assert!(sim.events.is_empty(), "there was nothing to complain of: {:?}", sim.events);
    // What was filled in stays.
    sim.notify(ObjectKind::PriorityClass, Input::PriorityClassGone("high".into()));
    sim.set_minimum("g", 3);
    sim.run();
    assert_eq!(sim.priority_of_group("g"), Some(700));
}

#[test]
fn a_group_whose_class_is_missing_waits_for_it_and_everybody_learns_why() {
    let mut sim = listed();
    sim.priority_classes.insert(key("g"), "high".into());
    sim.node("a", 2);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    for name in ["g-0", "g-1"] {
        sim.pods.get_mut(&key(name)).unwrap().priority = 700;
        sim.notify_pod(name);
    }
    sim.run_for(5);
    assert_eq!(sim.bound(), 0);
    let trouble = "spec.priorityClassName: there is no priority class \"high\"; the group waits for it";
    assert_eq!(&*sim.group_conditions[&key("g")].message, trouble);
    let (_, condition) = sim.pod_patches.last().unwrap();
    assert_eq!(&*condition.message, format!("pod group g: pod group default/g is not understood: {trouble}"));
    sim.notify(ObjectKind::PriorityClass, class("high", 700));
    sim.run_for(1);
    assert_eq!(sim.bound(), 2);
}

#[test]
fn what_cannot_be_listed_is_done_without_and_said_once() {
    let mut sim = unlisted();
    sim.priority_classes.insert(key("g"), "high".into());
    sim.node("a", 2);
    sim.gang("g", 2);
    sim.gang_pods("g", 2, 1);
    sim.run();
    assert_eq!(sim.bound(), 0, "it is not known yet what there is");
    for _ in 0..2 {
        for kind in ObjectKind::OPTIONAL {
            sim.notify(kind, Input::ListStarted(kind));
            sim.notify(kind, Input::ListRefused { kind, why: "forbidden".into() });
        }
        sim.run_for(1);
    }
    assert_eq!(sim.bound(), 2, "its members agree on a priority");
    assert_eq!(sim.unavailable().len(), ObjectKind::OPTIONAL.len());
    // Rights are granted at last.
    sim.relist(ObjectKind::Budget);
    sim.notify(ObjectKind::Budget, Input::ListRefused { kind: ObjectKind::Budget, why: "forbidden".into() });
    sim.run();
    assert_eq!(sim.unavailable().len(), ObjectKind::OPTIONAL.len() + 1, "and taken away again");
}

#[test]
fn what_must_be_listed_is_waited_for() {
    let mut sim = Sim::of(Core::new(Config::default(), Sim::capabilities()));
    for kind in [ObjectKind::Pod, ObjectKind::PodGroup, ObjectKind::Composite, ObjectKind::Namespace] {
        sim.relist(kind);
    }
    sim.notify(ObjectKind::Node, Input::ListRefused { kind: ObjectKind::Node, why: "forbidden".into() });
    sim.run();
    assert!(!sim.core.is_synced());
    assert_eq!(sim.unavailable(), [ObjectKind::Node]);
    sim.relist(ObjectKind::Node);
    sim.run();
    assert!(sim.core.is_synced());
}

#[test]
fn optional_objects_that_are_not_understood_say_so_on_themselves_and_count_as_absent() {
    let mut sim = listed();
    let error = |kind, name: &str| {
        ObjectError::new(kind, key(name), ModelError::new("spec.selector", "want an object, found 7"))
    };
    let reading = |kind, name: &str, bad: bool| SelectorReading {
        kind,
        key: key(name),
        uid: format!("{kind}-{name}").into(),
        selector: (!bad).then(LabelSelector::default),
        errors: if bad { vec![error(kind, name)] } else { vec![] },
    };
    let budget = |bad| {
        let pods = reading(ObjectKind::Budget, "b", bad);
        Input::BudgetSet(Box::new(BudgetReading { pods, disruptions_allowed: 1 }))
    };
    sim.notify(ObjectKind::Budget, budget(false));
    sim.run();
    assert_eq!(sim.core.budgets.names(), [key("b")]);
    for _ in 0..2 {
        sim.notify(ObjectKind::Budget, budget(true));
        sim.notify(
            ObjectKind::Service,
            Input::SelectorSet(Box::new(reading(ObjectKind::Service, "s", true))),
        );
    }
    let broken = ObjectError::new(
        ObjectKind::PriorityClass,
        ObjectKey::new("", "p"),
        ModelError::new("value", "is missing"),
    );
    let class = PriorityClassReading { name: "p".into(), value: None, uid: "p".into(), errors: vec![broken] };
    sim.notify(ObjectKind::PriorityClass, Input::PriorityClassSet(Box::new(class)));
    sim.run_for(1);
    assert!(sim.core.budgets.names().is_empty());
    let said: Vec<(&str, &str, &str)> = sim
        .events
        .iter()
        .map(|note| (&*note.regarding.kind, &*note.regarding.api_version, &*note.message))
        .collect();
    assert_eq!(
        said,
        [
            ("Service", "v1", "spec.selector: want an object, found 7"),
            ("PriorityClass", "scheduling.k8s.io/v1", "value: is missing"),
            ("PodDisruptionBudget", "policy/v1", "spec.selector: want an object, found 7"),
        ]
    );
}
