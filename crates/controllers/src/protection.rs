//! A PodGroup that is deleted stays until none of its members needs it any more.
//!
//! A finalizer keeps it. Kubernetes' own groups get theirs from the API server, and its controller manager takes it away
//! from groups that nobody uses; where nobody does, this does after a while. Groups by our own definition get it here.
//! A member that has not ended uses its group, also if it was never started. Members are those that name the group, and
//! the pods of the Job that it was made for.

use crate::action::{Action, Plan, Written};
use crate::cache::{Cache, Change};
use crate::core::Core;
use crate::meter::Meter;
use crate::pod::{PodView, pods};
use crate::shell::{self, Watches};
use crate::view::{Key, View, controller_of};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::core::ApiResource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_k8s::discovery::{CUSTOM_GROUP, NATIVE_GROUP};
use tutti_k8s::pod::POD_GROUP_LABEL;

/// The finalizer that keeps a group of Kubernetes' own.
pub const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";
/// The finalizer that keeps a group by our own definition.
const OWN_FINALIZER: &str = "tutti.dev/podgroup-protection";
/// How long a cluster's own controller may take before its work is done here: long enough for one that is started again
/// or that has many groups to look at.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// A PodGroup, of which nothing but the metadata matters here.
pub type GroupView = View;

/// The resource of pod groups in the version that a cluster serves.
pub fn pod_groups(version: &str) -> Arc<ApiResource> {
    Arc::new(ApiResource {
        group: NATIVE_GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{NATIVE_GROUP}/{version}"),
        kind: "PodGroup".to_owned(),
        plural: "podgroups".to_owned(),
    })
}

/// Runs until `shutdown` completes. `manager` is who writes.
pub async fn run(
    client: Client,
    guard: Guard,
    manager: &'static str,
    meter: Meter,
    shutdown: impl Future<Output = ()> + Send,
) {
    let watches = Watches::new(client).add(&pods(), Event::Pod).add(&guard.resource, Event::Group);
    shell::run(guard, watches, manager, meter, shutdown).await;
}

/// News from a watch.
#[derive(Debug)]
pub enum Event {
    /// About a pod.
    Pod(Change<PodView>),
    /// About a group.
    Group(Change<GroupView>),
}

/// Who protects the groups of a cluster beside us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Somebody gives groups the finalizer, and nobody takes it away.
    Give,
    /// Somebody does both, unless they do not.
    GiveAndTake,
    /// Nobody does anything.
    None,
}

/// What keeps a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    /// A pod that names it.
    Group(Key),
    /// A pod of the Job that it was made for, by its uid.
    Job(String),
}

/// Which groups there are, and which pods hold them. Pods without a group or Job leave no trace here.
#[derive(Debug)]
pub struct Guard {
    resource: Arc<ApiResource>,
    others: Others,
    groups: Cache,
    /// What each pod holds.
    held: BTreeMap<Key, Hold>,
    holders: BTreeMap<Hold, BTreeSet<Key>>,
    pods_are_listed: bool,
}

impl Guard {
    /// The only one of a cluster whose API server gives groups the finalizer.
    pub fn alone(groups: Arc<ApiResource>) -> Self {
        Self::beside(groups, Others::Give)
    }

    /// One beside whatever a cluster with such groups has; `None` if it has no objects for groups.
    pub fn for_cluster(groups: &ApiResource) -> Option<Self> {
        let others = if groups.group == CUSTOM_GROUP { Others::None } else { Others::GiveAndTake };
        (groups.kind == "PodGroup").then(|| Self::beside(Arc::new(groups.clone()), others))
    }

    fn beside(resource: Arc<ApiResource>, others: Others) -> Self {
        Self {
            resource,
            others,
            groups: Cache::default(),
            held: BTreeMap::new(),
            holders: BTreeMap::new(),
            pods_are_listed: false,
        }
    }

    /// Notes that a pod is as it is, or gone, and says which groups it let go.
    fn note(&mut self, key: &Key, holds: Option<&Hold>) -> Vec<Key> {
        let before = match holds {
            Some(hold) => {
                self.holders.entry(hold.clone()).or_default().insert(key.clone());
                self.held.insert(key.clone(), hold.clone())
            }
            None => self.held.remove(key),
        };
        let Some(let_go) = before.filter(|before| holds != Some(before)) else { return Vec::new() };
        if let Some(pods) = self.holders.get_mut(&let_go) {
            pods.remove(key);
            if pods.is_empty() {
                self.holders.remove(&let_go);
            }
        }
        match let_go {
            Hold::Group(group) => vec![group],
            Hold::Job(uid) => self.groups.owned_by(&uid).map(View::key).collect(),
        }
    }

    fn observe_pods(&mut self, change: Change<PodView>) -> Vec<Key> {
        match change {
            Change::Listed(pods) => {
                self.pods_are_listed = true;
                let mut gone: BTreeSet<Key> = self.held.keys().cloned().collect();
                let mut let_go = Vec::new();
                for pod in &pods {
                    gone.remove(&pod.key());
                    let_go.extend(self.note(&pod.key(), self.hold_of(pod).as_ref()));
                }
                for key in &gone {
                    let_go.extend(self.note(key, None));
                }
                let_go
            }
            Change::Seen(pod) => self.note(&pod.key(), self.hold_of(&pod).as_ref()),
            Change::Gone(pod) => self.note(&pod.key(), None),
        }
    }

    /// What a pod keeps from going.
    fn hold_of(&self, pod: &PodView) -> Option<Hold> {
        if pod.has_ended() {
            return None;
        }
        let named = if self.others == Others::None { pod.label(POD_GROUP_LABEL) } else { pod.group() };
        match named.filter(|name| !name.is_empty()) {
            Some(name) => Some(Hold::Group(Key::new(pod.key().namespace, name))),
            None => job_of(pod).map(Hold::Job),
        }
    }

    fn is_held(&self, group: &GroupView) -> bool {
        let holds = |hold: Hold| self.holders.contains_key(&hold);
        holds(Hold::Group(group.key())) || job_of(group).is_some_and(|uid| holds(Hold::Job(uid)))
    }

    /// What is to be done about a group.
    fn plan_group(&self, group: &GroupView, now: Timestamp) -> Plan {
        let finalizer = if self.others == Others::None { OWN_FINALIZER } else { FINALIZER };
        let has_finalizer = group.has_finalizer(finalizer);
        let Some(deleted_at) = group.metadata.deletion_timestamp.as_ref().map(|time| time.0) else {
            return match self.others {
                Others::None if !has_finalizer => {
                    Plan::one(Action::patch(&self.resource, group.key(), group.with_finalizer(finalizer)))
                }
                _ => Plan::nothing(),
            };
        };
        if !has_finalizer || self.is_held(group) {
            return Plan::nothing();
        }
        let act_at = deleted_at.checked_add(PATIENCE).unwrap_or(Timestamp::MAX);
        if self.others == Others::GiveAndTake && now < act_at {
            return Plan { look_again: Some(act_at), ..Plan::nothing() };
        }
        Plan::one(Action::patch(&self.resource, group.key(), group.without_finalizer(finalizer)))
    }
}

/// The uid of the Job that manages an object.
fn job_of<S, T>(view: &View<S, T>) -> Option<String> {
    controller_of(&view.metadata).filter(|owner| owner.kind == "Job").map(|owner| owner.uid.clone())
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

    fn plan(&mut self, key: &Key, now: Timestamp) -> Plan {
        self.groups.get(key).map_or_else(Plan::nothing, |group| self.plan_group(group, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const DELETED: &str = "2026-11-15T12:00:00Z";

    fn now() -> Timestamp {
        DELETED.parse().unwrap()
    }

    fn owned(uid: &str) -> Value {
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": true}])
    }

    fn group(finalizers: &Value, deleted: bool) -> GroupView {
        let mut object = json!({"metadata": {
            "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "3", "finalizers": finalizers,
            "ownerReferences": owned("job"),
        }, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}, "status": {"conditions": []}});
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!(DELETED);
        }
        serde_json::from_value(object).unwrap()
    }

    fn pod(name: &str, group: &str, phase: &str) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a", "labels": {POD_GROUP_LABEL: format!("by-label-{group}")}},
            "spec": {"schedulingGroup": {"podGroupName": group}},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    /// A pod that names no group.
    fn pod_of_job(uid: &str, phase: &str) -> PodView {
        let metadata = json!({"name": "of-job", "namespace": "a", "ownerReferences": owned(uid)});
        serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
    }

    /// A guard of one group.
    fn guard_of(mut guard: Guard, group: GroupView, pods: Vec<PodView>) -> Guard {
        guard.observe(Event::Group(Change::Listed(vec![group])), now());
        assert!(!guard.is_ready());
        guard.observe(Event::Pod(Change::Listed(pods)), now());
        assert!(guard.is_ready());
        guard
    }

    /// The only one, with one deleted group.
    fn guard(pods: Vec<PodView>) -> Guard {
        guard_of(Guard::alone(pod_groups("v1beta1")), group(&json!([FINALIZER]), true), pods)
    }

    fn plan(guard: &mut Guard, now: Timestamp) -> Plan {
        guard.plan(&Key::new("a", "g"), now)
    }

    fn is_freed(guard: &mut Guard) -> bool {
        !plan(guard, now()).actions.is_empty()
    }

    /// The finalizers that the only action of a plan leaves.
    fn finalizers_after(plan: &Plan) -> &Value {
        let [Action::Patch { edit, .. }] = &plan.actions[..] else { panic!("one patch, not {plan:?}") };
        assert!(!edit.of_status);
        assert_eq!(edit.body["metadata"]["resourceVersion"], "3");
        &edit.body["metadata"]["finalizers"]
    }

    #[test]
    fn only_a_deleted_group_that_nobody_holds_loses_its_finalizer_and_keeps_those_of_others() {
        let both = json!(["example.com/mine", FINALIZER]);
        let planned = |group: GroupView, pods: Vec<PodView>| {
            plan(&mut guard_of(Guard::alone(pod_groups("v1beta1")), group, pods), now())
        };
        assert_eq!(planned(group(&both, false), vec![]), Plan::nothing());
        assert_eq!(planned(group(&both, true), vec![pod("p", "g", "Running")]), Plan::nothing());
        assert_eq!(planned(group(&json!(["example.com/mine"]), true), vec![]), Plan::nothing());
        assert_eq!(*finalizers_after(&planned(group(&both, true), vec![])), json!(["example.com/mine"]));
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
        for (job, phase, holds) in
            [("job", "Pending", true), ("job", "Failed", false), ("another", "Pending", false)]
        {
            assert_eq!(is_freed(&mut guard(vec![pod_of_job(job, phase)])), !holds, "{job} {phase}");
        }
    }

    #[test]
    fn whoever_lets_a_group_go_has_it_looked_at() {
        let named: [fn() -> Change<PodView>; 3] = [
            || Change::Seen(pod("p", "g", "Failed")),
            || Change::Gone(pod("p", "g", "Running")),
            || Change::Listed(Vec::new()),
        ];
        let of_job: [fn() -> Change<PodView>; 2] =
            [|| Change::Seen(pod_of_job("job", "Failed")), || Change::Gone(pod_of_job("job", "Running"))];
        let member = || pod("p", "g", "Running");
        let worker = || pod_of_job("job", "Running");
        let stories =
            named.map(|news| (member(), news)).into_iter().chain(of_job.map(|news| (worker(), news)));
        for (holder, news) in stories {
            let mut guard = guard(vec![holder.clone(), pod("q", "g", "Succeeded")]);
            assert!(!is_freed(&mut guard));
            assert_eq!(guard.observe(Event::Pod(Change::Seen(holder)), now()), []);
            assert_eq!(guard.observe(Event::Pod(news()), now()), [Key::new("a", "g")]);
            assert!(is_freed(&mut guard));
            assert!(guard.held.is_empty() && guard.holders.is_empty(), "nothing is kept of what is gone");
        }
    }

    #[test]
    fn a_clusters_own_controller_has_its_time() {
        let beside = Guard::for_cluster(&pod_groups("v1beta1")).unwrap();
        let mut guard = guard_of(beside, group(&json!([FINALIZER]), true), vec![]);
        let act_at = now() + PATIENCE;
        assert_eq!(plan(&mut guard, now()), Plan { actions: vec![], look_again: Some(act_at) });
        assert_eq!(*finalizers_after(&plan(&mut guard, act_at)), json!([]));
        let workloads = ApiResource { kind: "Workload".to_owned(), ..(*pod_groups("v1alpha1")).clone() };
        assert!(Guard::for_cluster(&workloads).is_none());
    }

    #[test]
    fn groups_by_our_own_definition_are_given_a_finalizer_and_held_by_label() {
        let resource = ApiResource { group: CUSTOM_GROUP.to_owned(), ..(*pod_groups("v1alpha1")).clone() };
        let planned = |group: GroupView, pods: Vec<PodView>| {
            plan(&mut guard_of(Guard::for_cluster(&resource).unwrap(), group, pods), now())
        };
        let mine = json!(["example.com/mine"]);
        let given = planned(group(&mine, false), vec![]);
        assert_eq!(*finalizers_after(&given), json!(["example.com/mine", OWN_FINALIZER]));
        let own = json!([OWN_FINALIZER]);
        assert_eq!(planned(group(&own, false), vec![]), Plan::nothing());
        assert_eq!(planned(group(&mine, true), vec![]), Plan::nothing(), "too late");
        let mut labelled = pod("p", "", "Running");
        labelled.metadata.labels = Some([(POD_GROUP_LABEL.to_owned(), "g".to_owned())].into());
        assert_eq!(planned(group(&own, true), vec![labelled]), Plan::nothing());
        let other = planned(group(&own, true), vec![pod("p", "g", "Running")]);
        assert_eq!(*finalizers_after(&other), json!([]), "here the label counts, and only it");
    }
}
