//! Changes that change nothing for us. Kubelets report every few seconds that a node is as it was, and controllers write
//! annotations and conditions that no decision depends on; most of what a busy cluster tells is of this kind. Such a change
//! is recognised where it is read, so that it wakes nobody.

use super::workloads::Seen;
use crate::core::message::Input;
use foldhash::quality::RandomState;
use rustc_hash::FxHashMap;
use std::hash::BuildHasher as _;
use tutti_model::{ObjectKey, Text};

/// What was told last of every object of one kind, as a number.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// With a key of its own, so that nobody knows beforehand which two readings would have one number; then the second is
    /// left out until the object changes again. Names and readings become numbers, of which it takes two a pod.
    hasher: RandomState,
    told: FxHashMap<u64, u64>,
}

impl Repeats {
    /// A list begins: all of it has to be told.
    pub(super) fn clear(&mut self) {
        self.told.clear();
    }

    /// Takes note of what is told. True if it says the same as what was told last of this object.
    pub(super) fn note(&mut self, seen: &Seen) -> bool {
        let Seen::Input(input) = seen else {
            return false;
        };
        match input {
            Input::PodSet(reading) => {
                // Writes about a pod that waits depend on its version.
                let version = reading.pod.node.is_none().then_some(&reading.version);
                let told = (&reading.pod, version, &reading.scheduled, reading.controlled);
                let more = (&reading.job, &reading.replicator, &reading.errors);
                self.replace(&reading.pod.key, self.hasher.hash_one((told, more)))
            }
            Input::NodeSet(reading) => {
                let told = (&reading.node, &reading.uid, &reading.errors);
                self.replace(&node_key(&reading.node.name), self.hasher.hash_one(told))
            }
            Input::PodGone(key) => self.forget(key),
            Input::NodeGone(name) => self.forget(&node_key(name)),
            // Others are few, or hardly change.
            _ => false,
        }
    }

    fn replace(&mut self, key: &ObjectKey, told: u64) -> bool {
        self.told.insert(self.hasher.hash_one(key), told) == Some(told)
    }

    fn forget(&mut self, key: &ObjectKey) -> bool {
        self.told.remove(&self.hasher.hash_one(key));
        false
    }
}

fn node_key(name: &Text) -> ObjectKey {
    ObjectKey::new("", name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tutti_k8s::{NodeView, PodView};

    fn pod(version: &str, change: impl Fn(&mut Value)) -> Seen {
        let mut pod = json!({
            "metadata": {"namespace": "a", "name": "p", "uid": "1", "resourceVersion": version},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        });
        change(&mut pod);
        let view: PodView = serde_json::from_value(pod).expect("every object can be viewed");
        Seen::Input(Input::PodSet(Box::new(view.read())))
    }

    fn node(change: impl Fn(&mut Value)) -> Seen {
        let mut node = json!({
            "metadata": {"name": "n", "uid": "1"},
            "status": {
                "allocatable": {"cpu": "4"},
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            },
        });
        change(&mut node);
        let view: NodeView = serde_json::from_value(node).expect("every object can be viewed");
        Seen::Input(Input::NodeSet(Box::new(view.read())))
    }

    #[test]
    fn what_no_decision_depends_on_is_no_news() {
        let mut repeats = Repeats::default();
        assert!(!repeats.note(&pod("1", |_| {})));
        assert!(repeats.note(&pod("2", |_| {})));
        assert!(repeats.note(&pod("3", |pod| pod["metadata"]["annotations"] = json!({"progress": "7"}))));
        assert!(repeats.note(&pod("4", |pod| pod["status"]["startTime"] = json!("2026-01-01T00:00:00Z"))));
        assert!(!repeats.note(&node(|_| {})));
        let beat = json!("2026-01-01T00:00:10Z");
        assert!(
            repeats.note(&node(|node| node["status"]["conditions"][0]["lastHeartbeatTime"] = beat.clone()))
        );
    }

    #[test]
    fn whatever_a_decision_depends_on_is_news() {
        let changes: [(&str, Value); 8] = [
            ("/metadata/uid", json!("2")),
            ("/metadata/labels", json!({"app": "x"})),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/spec/nodeName", json!("m")),
            ("/spec/containers/0/resources", json!({"requests": {"cpu": "1"}})),
            ("/spec/containers/0/ports", json!([{"containerPort": 1, "hostPort": 1}])),
            ("/spec/priority", json!(7)),
            ("/status/phase", json!("Failed")),
        ];
        for (place, value) in changes {
            let (parent, field) = place.rsplit_once('/').expect("it has a parent");
            let change =
                |pod: &mut Value| pod.pointer_mut(parent).expect("it is there")[field] = value.clone();
            let mut repeats = Repeats::default();
            repeats.note(&pod("1", |_| {}));
            assert!(!repeats.note(&pod("2", change)), "{place}");
            assert!(!repeats.note(&pod("3", |_| {})), "{place} is taken back");
        }
        let mut repeats = Repeats::default();
        repeats.note(&node(|_| {}));
        assert!(!repeats.note(&node(|node| node["status"]["allocatable"]["cpu"] = json!("3"))));
        assert!(!repeats.note(&node(|node| node["spec"] = json!({"unschedulable": true}))));
    }

    #[test]
    fn a_pod_that_waits_is_always_told_because_its_version_counts() {
        let waits = |pod: &mut Value| pod["spec"]["nodeName"] = json!(null);
        let mut repeats = Repeats::default();
        assert!(!repeats.note(&pod("1", waits)));
        assert!(!repeats.note(&pod("2", waits)));
        assert!(repeats.note(&pod("2", waits)), "the very same is no news");
    }

    #[test]
    fn what_was_gone_or_is_listed_again_is_told_again() {
        let mut repeats = Repeats::default();
        repeats.note(&pod("1", |_| {}));
        assert!(!repeats.note(&Seen::Input(Input::PodGone(ObjectKey::new("a", "p")))));
        assert!(!repeats.note(&pod("2", |_| {})));
        repeats.clear();
        assert!(!repeats.note(&pod("3", |_| {})));
    }
}
