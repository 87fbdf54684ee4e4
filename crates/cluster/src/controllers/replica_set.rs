//! ReplicaSets: so many pods like this one, always.

use super::{owners, rank};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::core::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;
use tutti_controllers::{
    Action, Checked, Condition, Edit, Loose, Plan, PodView, View, condition_of, is_active, is_ready,
};

/// Pods that are made or deleted in one go.
const PODS_PER_PLAN_MAX: usize = 500;

/// A ReplicaSet.
pub(crate) type ReplicaSetView = View<Checked<ReplicaSetSpec>, Loose<ReplicaSetStatus>>;

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReplicaSetSpec {
    pub(super) replicas: Option<u32>,
    pub(super) min_ready_seconds: u32,
    pub(super) template: Value,
}

impl ReplicaSetSpec {
    pub(super) fn wanted(&self) -> u32 {
        self.replicas.unwrap_or(1)
    }
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReplicaSetStatus {
    pub(super) replicas: u32,
    pub(super) fully_labeled_replicas: u32,
    pub(super) ready_replicas: u32,
    pub(super) available_replicas: u32,
    pub(super) observed_generation: i64,
}

/// The resources that ReplicaSets are made of.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) replica_sets: Arc<ApiResource>,
    pub(super) pods: Arc<ApiResource>,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            replica_sets: Arc::new(ApiResource::erase::<ReplicaSet>(&())),
            pods: tutti_controllers::pods(),
        }
    }
}

/// What is to be done about a ReplicaSet, given the pods that it owns.
pub(super) fn plan(set: &ReplicaSetView, pods: &[&PodView], resources: &Resources, now: Timestamp) -> Plan {
    let Ok(spec) = &set.spec.0 else {
        return Plan::nothing();
    };
    let mut plan = Plan::nothing();
    let mut active: Vec<&PodView> = pods.iter().copied().filter(|pod| is_active(pod)).collect();
    let status = status(set, spec, &active, now, &mut plan);
    if status != set.status.0 {
        let edit = Edit::status(patch(set, &status));
        plan.actions.push(Action::patch(&resources.replica_sets, set.key(), edit));
    }
    if set.is_terminating() {
        return plan;
    }
    let about = owners::reference(set, &resources.replica_sets);
    let wanted = spec.wanted() as usize;
    for _ in 0..wanted.saturating_sub(active.len()).min(PODS_PER_PLAN_MAX) {
        let prefix = format!("{}-", set.name());
        plan.actions.push(Action::Create {
            resource: Arc::clone(&resources.pods),
            namespace: set.key().namespace,
            object: Box::new(owners::pod_of_template(&spec.template, &prefix, set, &resources.replica_sets)),
            told_on: Some(Arc::clone(&about).into()),
        });
    }
    let surplus = active.len().saturating_sub(wanted).min(PODS_PER_PLAN_MAX);
    if surplus > 0 {
        let crowds = rank::crowds(active.iter().copied());
        rank::most_dispensable_first(&mut active, &crowds);
    }
    for pod in active.iter().take(surplus) {
        plan.actions.push(Action::Delete {
            resource: Arc::clone(&resources.pods),
            key: pod.key(),
            uid: pod.uid().to_owned(),
            now: false,
            first: None,
            told_on: Some(Arc::clone(&about)),
        });
    }
    plan
}

fn status(
    set: &ReplicaSetView,
    spec: &ReplicaSetSpec,
    active: &[&PodView],
    now: Timestamp,
    plan: &mut Plan,
) -> ReplicaSetStatus {
    let count = |pods: usize| u32::try_from(pods).unwrap_or(u32::MAX);
    let labels = spec.template.pointer("/metadata/labels").and_then(Value::as_object);
    let is_labelled =
        |pod: &&&PodView| labels.into_iter().flatten().all(|(key, value)| pod.label(key) == value.as_str());
    let mut available = 0;
    for pod in active.iter().filter(|pod| is_ready(pod)) {
        let due = available_at(pod, spec.min_ready_seconds);
        if due <= now {
            available += 1;
        } else {
            plan.again_at(due);
        }
    }
    ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: count(active.iter().filter(is_labelled).count()),
        ready_replicas: count(active.iter().filter(|pod| is_ready(pod)).count()),
        available_replicas: available,
        observed_generation: set.metadata.generation.unwrap_or(0),
    }
}

/// When a ready pod has been so for long enough.
fn available_at(pod: &PodView, min_ready_seconds: u32) -> Timestamp {
    let since = condition_of(&pod.status.conditions.0, "Ready").and_then(Condition::since);
    let since = since.unwrap_or(Timestamp::MIN);
    since.checked_add(SignedDuration::from_secs(min_ready_seconds.into())).unwrap_or(Timestamp::MAX)
}

fn patch(set: &ReplicaSetView, status: &ReplicaSetStatus) -> Value {
    json!({
        "metadata": {"uid": set.uid(), "resourceVersion": set.version()},
        "status": {
            "replicas": status.replicas,
            "fullyLabeledReplicas": status.fully_labeled_replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
            "observedGeneration": status.observed_generation,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: u32, change: impl FnOnce(&mut Value)) -> ReplicaSetView {
        let mut set = json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "s", "resourceVersion": "1", "generation": 3},
            "spec": {"replicas": replicas, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]},
            }},
        });
        change(&mut set);
        serde_json::from_value(set).unwrap()
    }

    fn pod(name: &str, phase: &str, ready_at: Option<&str>) -> PodView {
        let conditions: Vec<Value> = ready_at
            .map(|time| json!({"type": "Ready", "status": "True", "lastTransitionTime": time}))
            .into_iter()
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a", "uid": name, "labels": {"app": "web"}},
            "spec": {"nodeName": "n"}, "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    }

    fn look(set: &ReplicaSetView, pods: &[PodView]) -> Plan {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        plan(set, &pods.iter().collect::<Vec<_>>(), &Resources::default(), now)
    }

    fn creates(plan: &Plan) -> Vec<&Value> {
        let objects = plan.actions.iter().filter_map(|action| match action {
            Action::Create { object, .. } => Some(&**object),
            _ => None,
        });
        objects.collect()
    }

    fn deletes(plan: &Plan) -> Vec<&str> {
        let names = plan.actions.iter().filter_map(|action| match action {
            Action::Delete { key, .. } => Some(key.name.as_str()),
            _ => None,
        });
        names.collect()
    }

    fn written(plan: &Plan) -> Option<&Value> {
        plan.actions.iter().find_map(|action| match action {
            Action::Patch { edit, .. } if edit.of_status => Some(&edit.body["status"]),
            _ => None,
        })
    }

    #[test]
    fn missing_pods_are_made_after_the_template_and_owned() {
        let plan = look(&set(3, |_| {}), &[pod("x", "Running", None), pod("ended", "Failed", None)]);
        let made = creates(&plan);
        assert_eq!(made.len(), 2, "a pod that has ended counts for nothing");
        assert_eq!(made[0]["metadata"]["generateName"], "web-");
        assert_eq!(made[0]["metadata"]["labels"], json!({"app": "web"}));
        assert_eq!(made[0]["metadata"]["ownerReferences"][0]["uid"], "s");
        assert_eq!(made[0]["metadata"]["ownerReferences"][0]["controller"], true);
    }

    #[test]
    fn the_least_useful_of_too_many_go() {
        let pods = [
            pod("good", "Running", Some("2026-11-15T11:00:00Z")),
            pod("starting", "Pending", None),
            pod("unready", "Running", None),
        ];
        let mut going = pods.to_vec();
        going[1].metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        assert_eq!(deletes(&look(&set(1, |_| {}), &pods)), ["starting", "unready"]);
        assert_eq!(deletes(&look(&set(1, |_| {}), &going)), ["unready"], "what goes already is not counted");
        assert!(
            look(&set(1, |s| s["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z")), &pods)
                .actions
                .iter()
                .all(|action| matches!(action, Action::Patch { .. }))
        );
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_for_long_enough() {
        let set = set(2, |set| set["spec"]["minReadySeconds"] = json!(60));
        let pods = [
            pod("old", "Running", Some("2026-11-15T11:00:00Z")),
            pod("new", "Running", Some("2026-11-15T11:59:50Z")),
        ];
        let plan = look(&set, &pods);
        let status = written(&plan).unwrap();
        assert_eq!((&status["readyReplicas"], &status["availableReplicas"]), (&json!(2), &json!(1)));
        assert_eq!(status["observedGeneration"], 3);
        assert_eq!(plan.look_again, Some("2026-11-15T12:00:50Z".parse().unwrap()));
    }

    #[test]
    fn what_is_as_it_should_be_is_left_alone() {
        let set = set(1, |set| {
            set["status"] = json!({"replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1,
                "availableReplicas": 1, "observedGeneration": 3});
        });
        assert_eq!(look(&set, &[pod("x", "Running", Some("2026-11-15T11:00:00Z"))]), Plan::nothing());
    }

    #[test]
    fn a_set_that_cannot_be_read_is_left_alone() {
        let set = set(1, |set| set["spec"]["replicas"] = json!("many"));
        assert_eq!(look(&set, &[]), Plan::nothing());
    }
}
