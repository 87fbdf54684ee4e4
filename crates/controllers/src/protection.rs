//! A PodGroup that is deleted stays until none of its members needs it any more.
//!
//! The finalizer is put on new groups by the API server; this takes it away from those that nobody uses. A member
//! that has not ended uses its group, also if it was never started.

use crate::action::{Action, Plan, Written};
use crate::cache::{Cache, Change};
use crate::core::Core;
use crate::pod::{PodView, pods};
use crate::shell::{self, Watches};
use crate::view::{Key, View};
use jiff::Timestamp;
use kube::Client;
use kube::core::ApiResource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The finalizer that keeps a group.
pub const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// A PodGroup, of which nothing but the metadata matters here.
pub type GroupView = View;

/// The resource of pod groups in the version that a cluster serves.
pub fn pod_groups(version: &str) -> Arc<ApiResource> {
    Arc::new(ApiResource {
        group: "scheduling.k8s.io".to_owned(),
        version: version.to_owned(),
        api_version: format!("scheduling.k8s.io/{version}"),
        kind: "PodGroup".to_owned(),
        plural: "podgroups".to_owned(),
    })
}

/// Runs until `shutdown` completes. `manager` is who writes.
pub async fn run(
    client: Client,
    groups: Arc<ApiResource>,
    manager: &'static str,
    shutdown: impl Future<Output = ()> + Send,
) {
    let watches = Watches::new(client).add(&pods(), Event::Pod).add(&groups, Event::Group);
    shell::run(Guard::new(groups), watches, manager, shutdown).await;
}

/// News from a watch.
#[derive(Debug)]
pub enum Event {
    /// About a pod.
    Pod(Change<PodView>),
    /// About a group.
    Group(Change<GroupView>),
}

/// Which groups there are, and which pods hold them. Pods without a group leave no trace here.
#[derive(Debug)]
pub struct Guard {
    resource: Arc<ApiResource>,
    groups: Cache,
    /// The group that each pod holds.
    held: BTreeMap<Key, Key>,
    holders: BTreeMap<Key, BTreeSet<Key>>,
    pods_are_listed: bool,
}

impl Guard {
    /// One that has seen nothing yet.
    pub fn new(groups: Arc<ApiResource>) -> Self {
        Self {
            resource: groups,
            groups: Cache::default(),
            held: BTreeMap::new(),
            holders: BTreeMap::new(),
            pods_are_listed: false,
        }
    }

    /// Notes that a pod is as it is, or gone, and says whose group it let go.
    fn note(&mut self, key: &Key, holds: Option<&Key>) -> Option<Key> {
        let before = match holds {
            Some(group) => {
                self.holders.entry(group.clone()).or_default().insert(key.clone());
                self.held.insert(key.clone(), group.clone())
            }
            None => self.held.remove(key),
        };
        let let_go = before.filter(|before| holds != Some(before))?;
        if let Some(pods) = self.holders.get_mut(&let_go) {
            pods.remove(key);
            if pods.is_empty() {
                self.holders.remove(&let_go);
            }
        }
        Some(let_go)
    }

    fn observe_pods(&mut self, change: Change<PodView>) -> Vec<Key> {
        match change {
            Change::Listed(pods) => {
                self.pods_are_listed = true;
                let mut gone: BTreeSet<Key> = self.held.keys().cloned().collect();
                let mut let_go = Vec::new();
                for pod in &pods {
                    gone.remove(&pod.key());
                    let_go.extend(self.note(&pod.key(), held_group(pod).as_ref()));
                }
                let_go.extend(gone.iter().filter_map(|key| self.note(key, None)));
                let_go
            }
            Change::Seen(pod) => self.note(&pod.key(), held_group(&pod).as_ref()).into_iter().collect(),
            Change::Gone(pod) => self.note(&pod.key(), None).into_iter().collect(),
        }
    }
}

impl Core for Guard {
    type Event = Event;
    /// A group.
    type Task = Key;

    fn observe(&mut self, event: Event, _now: Timestamp) -> Vec<Key> {
        match event {
            Event::Pod(change) => self.observe_pods(change),
            Event::Group(change) => self.groups.apply(change).into_iter().map(|(_, key)| key).collect(),
        }
    }

    fn is_ready(&self) -> bool {
        self.groups.is_listed() && self.pods_are_listed
    }

    fn has_seen(&self, written: &Written) -> bool {
        written.plural != self.resource.plural || self.groups.has_seen(written.version)
    }

    fn plan(&mut self, key: &Key, _now: Timestamp) -> Plan {
        let Some(group) = self.groups.get(key) else { return Plan::nothing() };
        plan(group, self.holders.contains_key(key), &self.resource)
    }
}

/// The group that a pod keeps from going.
fn held_group(pod: &PodView) -> Option<Key> {
    let name = pod.group().filter(|_| !pod.has_ended())?;
    Some(Key::new(pod.key().namespace, name))
}

/// What is to be done about a group.
fn plan(group: &GroupView, is_held: bool, resource: &Arc<ApiResource>) -> Plan {
    if !group.is_terminating() || !group.has_finalizer(FINALIZER) || is_held {
        return Plan::nothing();
    }
    Plan::one(Action::patch(resource, group.key(), group.without_finalizer(FINALIZER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn group(finalizers: &Value, deleted: bool) -> GroupView {
        let mut object = json!({"metadata": {
            "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "3", "finalizers": finalizers,
        }, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}, "status": {"conditions": []}});
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
        }
        serde_json::from_value(object).unwrap()
    }

    fn pod(name: &str, group: &str, phase: &str) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a"},
            "spec": {"schedulingGroup": {"podGroupName": group}},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    /// A guard of one deleted group, and what it makes of news about pods.
    fn guard(pods: Vec<PodView>) -> Guard {
        let mut guard = Guard::new(pod_groups("v1beta1"));
        guard.observe(Event::Group(Change::Listed(vec![group(&json!([FINALIZER]), true)])), NOW);
        assert!(!guard.is_ready());
        guard.observe(Event::Pod(Change::Listed(pods)), NOW);
        assert!(guard.is_ready());
        guard
    }

    fn is_freed(guard: &mut Guard) -> bool {
        !guard.plan(&Key::new("a", "g"), NOW).actions.is_empty()
    }

    #[test]
    fn only_a_deleted_group_that_nobody_holds_loses_its_finalizer_and_keeps_those_of_others() {
        let groups = pod_groups("v1beta1");
        let both = json!(["example.com/mine", FINALIZER]);
        assert_eq!(plan(&group(&both, false), false, &groups), Plan::nothing());
        assert_eq!(plan(&group(&both, true), true, &groups), Plan::nothing());
        assert_eq!(plan(&group(&json!(["example.com/mine"]), true), false, &groups), Plan::nothing());
        let freed = plan(&group(&both, true), false, &groups);
        let [Action::Patch { edit, .. }] = &freed.actions[..] else { panic!("one patch, not {freed:?}") };
        assert!(!edit.of_status);
        assert_eq!(edit.body["metadata"]["finalizers"], json!(["example.com/mine"]));
        assert_eq!(edit.body["metadata"]["resourceVersion"], "3");
    }

    #[test]
    fn a_member_holds_its_group_until_it_has_ended() {
        for (group, phase, holds) in [
            ("g", "Pending", true),
            ("g", "Running", true),
            ("g", "Succeeded", false),
            ("g", "Failed", false),
            ("", "Running", false),
            ("other", "Running", false),
        ] {
            assert_eq!(is_freed(&mut guard(vec![pod("p", group, phase)])), !holds, "{group} {phase}");
        }
    }

    #[test]
    fn whoever_lets_a_group_go_has_it_looked_at() {
        let news: [fn() -> Change<PodView>; 3] = [
            || Change::Seen(pod("p", "g", "Failed")),
            || Change::Gone(pod("p", "g", "Running")),
            || Change::Listed(Vec::new()),
        ];
        for news in news {
            let mut guard = guard(vec![pod("p", "g", "Running"), pod("q", "g", "Succeeded")]);
            assert!(!is_freed(&mut guard));
            assert_eq!(guard.observe(Event::Pod(Change::Seen(pod("p", "g", "Running"))), NOW), []);
            assert_eq!(guard.observe(Event::Pod(news()), NOW), [Key::new("a", "g")]);
            assert!(is_freed(&mut guard));
            assert!(guard.held.is_empty() && guard.holders.is_empty(), "nothing is kept of what is gone");
        }
    }
}
