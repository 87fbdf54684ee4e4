//! The mutating webhook: a pod of a Job that has a group says so itself, for others to see.
//!
//! Tutti's scheduler does not need it, because it infers the group from the owner; this is for whoever reads pods.

use super::knowledge::{GroupView, Knowledge};
use super::review::Object;
use crate::view::controller_of;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::{Value, json};
use tutti_k8s::GroupLink;
use tutti_k8s::pod::POD_GROUP_LABEL;

/// What makes a new pod a member of its Job's group; `None` if it is to stay as it is.
pub(super) fn patch(pod: &Object, namespace: &str, knowledge: &Knowledge) -> Option<Patch> {
    let scheduler = pod.spec.get("schedulerName").and_then(Value::as_str)?;
    if !knowledge.scheduler_names.iter().any(|served| served == scheduler) || names_group(pod) {
        return None;
    }
    let owner = controller_of(&pod.metadata)?;
    if owner.kind != "Job" || !owner.api_version.starts_with("batch/") {
        return None;
    }
    let group = knowledge.group_of_job(namespace, &owner.name, &owner.uid)?;
    let add = match knowledge.link {
        GroupLink::SchedulingGroup => add(["spec", "schedulingGroup"], json!({"podGroupName": group.name()})),
        GroupLink::WorkloadRef => {
            add(["spec", "workloadRef"], json!({"name": group.name(), "podGroup": only_part(group)?}))
        }
        GroupLink::Label if pod.metadata.labels.is_none() => {
            add(["metadata", "labels"], json!({POD_GROUP_LABEL: group.name()}))
        }
        GroupLink::Label => add(["metadata", "labels", POD_GROUP_LABEL], json!(group.name())),
    };
    Some(Patch(vec![PatchOperation::Add(add)]))
}

fn add<'a>(path: impl IntoIterator<Item = &'a str>, value: Value) -> AddOperation {
    AddOperation { path: PointerBuf::from_tokens(path), value }
}

/// True if a pod names a group in any of the ways there are.
fn names_group(pod: &Object) -> bool {
    let is_set = |field: &str| pod.spec.get(field).is_some_and(|value| !value.is_null());
    is_set("schedulingGroup") || is_set("workloadRef") || pod.label(POD_GROUP_LABEL).is_some()
}

/// The name of the only part of a Workload of 1.35. With several, nobody knows which one is meant.
fn only_part(workload: &GroupView) -> Option<&str> {
    match workload.spec.get("podGroups")?.as_array()?.as_slice() {
        [part] => part.get("name")?.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Change;
    use crate::webhooks::knowledge::Event;

    fn pod(changes: &Value) -> Value {
        let mut pod = json!({
            "metadata": {"generateName": "train-0-", "labels": {"job-name": "train"}, "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}]},
            "spec": {"schedulerName": "tutti", "containers": [{"name": "c", "image": "i"}]},
        });
        json_patch::merge(&mut pod, changes);
        pod
    }

    fn knowledge(link: GroupLink, groups: &[Value]) -> Knowledge {
        let mut knowledge = Knowledge::new(link, vec!["tutti".to_owned()]);
        let groups = groups.iter().map(|group| serde_json::from_value(group.clone()).unwrap()).collect();
        knowledge.observe(Event::Group(Change::Listed(groups)));
        knowledge
    }

    /// A group that the Job controls.
    fn group(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "a", "uid": name, "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}]}})
    }

    /// The pod after the webhook had it.
    fn admitted(pod: &Value, knowledge: &Knowledge) -> Value {
        let object: Object = serde_json::from_value(pod.clone()).unwrap();
        let mut pod = pod.clone();
        if let Some(patch) = patch(&object, "a", knowledge) {
            json_patch::patch(&mut pod, &patch).unwrap();
        }
        pod
    }

    #[test]
    fn a_pod_of_a_job_with_a_group_is_linked_as_the_cluster_links_pods() {
        let known = knowledge(GroupLink::SchedulingGroup, &[group("g")]);
        let linked = admitted(&pod(&json!({})), &known);
        assert_eq!(linked, pod(&json!({"spec": {"schedulingGroup": {"podGroupName": "g"}}})));

        let known = knowledge(GroupLink::Label, &[group("g")]);
        let linked = admitted(&pod(&json!({})), &known);
        assert_eq!(linked, pod(&json!({"metadata": {"labels": {"tutti.dev/pod-group": "g"}}})));
        let bare = pod(&json!({"metadata": {"labels": null}}));
        assert_eq!(admitted(&bare, &known)["metadata"]["labels"], json!({"tutti.dev/pod-group": "g"}));
    }

    #[test]
    fn in_1_35_a_pod_is_linked_to_the_only_part_of_the_workload_for_its_job() {
        let workload = |parts: Value| {
            json!({"metadata": {"name": "w", "namespace": "a", "uid": "w"}, "spec": {
                "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"}, "podGroups": parts}})
        };
        let known = knowledge(GroupLink::WorkloadRef, &[workload(json!([{"name": "main"}]))]);
        let linked = admitted(&pod(&json!({})), &known);
        assert_eq!(linked["spec"]["workloadRef"], json!({"name": "w", "podGroup": "main"}));
        let two = knowledge(GroupLink::WorkloadRef, &[workload(json!([{"name": "a"}, {"name": "b"}]))]);
        assert_eq!(admitted(&pod(&json!({})), &two), pod(&json!({})), "which of the two?");
    }

    #[test]
    fn every_other_pod_is_left_alone() {
        let one = [group("g")];
        let known = knowledge(GroupLink::SchedulingGroup, &one);
        let owner = |field: &str, value: &str| {
            let mut other = pod(&json!({}));
            other["metadata"]["ownerReferences"][0][field] = json!(value);
            other
        };
        for (why, other) in [
            ("another scheduler", pod(&json!({"spec": {"schedulerName": "default-scheduler"}}))),
            ("no scheduler yet", pod(&json!({"spec": {"schedulerName": null}}))),
            ("a group of its own", pod(&json!({"spec": {"schedulingGroup": {"podGroupName": "own"}}}))),
            ("a label of its own", pod(&json!({"metadata": {"labels": {"tutti.dev/pod-group": "own"}}}))),
            ("no owner", pod(&json!({"metadata": {"ownerReferences": null}}))),
            ("another kind", owner("kind", "ReplicaSet")),
            ("another group's Job", owner("apiVersion", "example.com/v1")),
            ("another Job", owner("uid", "k")),
        ] {
            assert_eq!(admitted(&other, &known), other, "{why}");
        }
        let two = knowledge(GroupLink::SchedulingGroup, &[group("g"), group("h")]);
        assert_eq!(admitted(&pod(&json!({})), &two), pod(&json!({})), "which of the two groups?");
        let mut elsewhere = group("g");
        elsewhere["metadata"]["namespace"] = json!("b");
        let elsewhere = knowledge(GroupLink::SchedulingGroup, &[elsewhere]);
        assert_eq!(admitted(&pod(&json!({})), &elsewhere), pod(&json!({})), "groups do not cross namespaces");
        let mut going = group("g");
        going["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
        let going = knowledge(GroupLink::SchedulingGroup, &[going]);
        assert_eq!(admitted(&pod(&json!({})), &going), pod(&json!({})), "a group that goes takes nobody in");
    }
}
