//! Claims about what is warned of, and what is not.

use super::*;
use crate::cache::Change;
use crate::webhooks::knowledge::Event;
use tutti_k8s::GroupLink;

fn view<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

/// A cluster of two nodes: one has 8 GPUs and little memory, the other much memory and a rack.
fn cluster() -> Knowledge {
    let mut knowledge = Knowledge::new(GroupLink::SchedulingGroup, vec!["tutti".to_owned()]);
    let nodes = [
        json!({"metadata": {"name": "gpus"}, "status": {"allocatable": {"pods": "110", "cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "8"}}}),
        json!({"metadata": {"name": "memory", "labels": {"rack": "r1"}}, "status": {"allocatable": {"pods": "110", "cpu": "64", "memory": "1Ti"}}}),
    ];
    knowledge.observe(Event::Node(Change::Listed(nodes.iter().map(view).collect())));
    let train =
        json!({"metadata": {"name": "train", "namespace": "a", "uid": "j"}, "spec": {"parallelism": 4}});
    knowledge.observe(Event::Job(Change::Listed(vec![view(&train)])));
    let eight = json!({"metadata": {"name": "eight", "namespace": "a"}, "spec": gang(8)});
    knowledge.observe(Event::Group(Change::Listed(vec![view(&eight)])));
    knowledge
}

fn gang(minimum: u32) -> Value {
    json!({"schedulingPolicy": {"gang": {"minCount": minimum}}})
}

fn said(kind: &str, object: &Value) -> Vec<String> {
    warnings(kind, &view(object), "a", &cluster())
}

fn job(changes: &Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "new", "namespace": "a"},
        "spec": {"parallelism": 4, "template": {"spec": {"schedulerName": "tutti", "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "4"}}}]}}},
    });
    json_patch::merge(&mut job, changes);
    job
}

fn requests(amounts: &Value) -> Value {
    job(&json!({"spec": {"template": {"spec": {"containers": [{"resources": {"requests": amounts}}]}}}}))
}

#[test]
fn a_job_that_can_run_is_not_warned_of() {
    assert_eq!(said("Job", &job(&json!({}))), [""; 0]);
    let asks = json!({"metadata": {"annotations": {
        "tutti.dev/gang": "true", "tutti.dev/topology-levels": "rack=preferred"}}});
    assert_eq!(said("Job", &job(&asks)), [""; 0]);
}

#[test]
fn a_pod_larger_than_any_node_is_warned_of_with_what_it_lacks() {
    assert_eq!(
        said("Job", &requests(&json!({"nvidia.com/gpu": "16"}))),
        ["spec.template: a pod asks for nvidia.com/gpu 16, and the largest node has 8"]
    );
    assert_eq!(
        said("Job", &requests(&json!({"nvidia.com/gpu": "1", "memory": "64Gi"}))),
        ["spec.template: no node has all that a pod asks for: memory 64Gi, nvidia.com/gpu 1"]
    );
    assert_eq!(said("Job", &requests(&json!({"cpu": "0", "nvidia.com/fpga": "0"}))), [""; 0]);
}

#[test]
fn a_minimum_that_is_never_reached_is_warned_of_wherever_it_is_written() {
    let never = |field: &str, minimum: u32, job: &str, most: u32| {
        vec![format!(
            "{field}: {minimum} pods are to start together, but Job {job} never has more than {most} at a time"
        )]
    };
    let minimum = json!({"spec": {"scheduling": gang(5)}});
    let field = "spec.scheduling.schedulingPolicy.gang.minCount";
    assert_eq!(said("Job", &job(&minimum)), never(field, 5, "new", 4));
    let fewer = json!({"metadata": {"annotations": {"tutti.dev/gang": "true"}}, "spec": {"completions": 3}});
    assert_eq!(said("Job", &job(&fewer)), never("spec.parallelism", 4, "new", 3));

    let owner =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}]);
    let group =
        json!({"metadata": {"name": "g", "namespace": "a", "ownerReferences": owner}, "spec": gang(9)});
    assert_eq!(said("PodGroup", &group), never("spec.schedulingPolicy.gang.minCount", 9, "train", 4));

    let reference = json!({"apiGroup": "batch", "kind": "Job", "name": "train"});
    let workload = |spec: Value| {
        let mut workload = json!({"metadata": {"name": "w"}, "spec": spec});
        workload["spec"]["controllerRef"] = reference.clone();
        workload
    };
    let flat = workload(json!({"podGroupTemplates": [gang(4), gang(6)]}));
    let field = "spec.podGroupTemplates[1].schedulingPolicy.gang.minCount";
    assert_eq!(said("Workload", &flat), never(field, 6, "train", 4));
    let parts = workload(json!({"podGroups": [{"name": "p", "policy": {"gang": {"minCount": 6}}}]}));
    let field = "spec.podGroups[0].policy.gang.minCount";
    assert_eq!(said("Workload", &parts), never(field, 6, "train", 4));
}

#[test]
fn a_group_that_a_job_is_too_small_for_waits_for_others() {
    let names = json!({"spec": {"template": {"spec": {"schedulingGroup": {"podGroupName": "eight"}}}}});
    let said = said("Job", &job(&names));
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("group eight needs 8 pods and this Job never has more than 4"), "{said:?}");
}

#[test]
fn a_topology_key_that_no_node_has_is_warned_of_at_every_level() {
    let with = |key: &str| json!({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": key}]}});
    let unknown = "topology key block: no node has this label";
    assert_eq!(said("PodGroup", &json!({"spec": with("rack")})), [""; 0]);
    assert_eq!(said("PodGroup", &json!({"spec": with("block")})), [format!("spec: {unknown}")]);
    let mut composite = with("block");
    composite["schedulingPolicy"] = json!({"gang": {"minGroupCount": 2}});
    assert_eq!(said("CompositePodGroup", &json!({"spec": composite})), [format!("spec: {unknown}")]);
    composite["podGroupTemplates"] = json!([with("rack"), with("block")]);
    let tree = json!({"metadata": {"name": "w"}, "spec": {"compositePodGroupTemplates": [composite]}});
    let place = "spec.compositePodGroupTemplates[0]";
    assert_eq!(
        said("Workload", &tree),
        [format!("{place}: {unknown}"), format!("{place}.podGroupTemplates[1]: {unknown}")]
    );
    let annotated = json!({"metadata": {"annotations": {"tutti.dev/topology-levels": "block=required"}}});
    assert_eq!(said("Job", &job(&annotated)), [format!("spec.scheduling: {unknown}")]);
}

#[test]
fn annotations_that_are_not_understood_are_warned_of() {
    let wrong = json!({"metadata": {"annotations": {
        "tutti.dev/gang": "yes", "tutti.dev/slice-size": "many", "tutti.dev/when-broken": "Burn"}}});
    let said_of_job = said("Job", &job(&wrong));
    for field in ["tutti.dev/gang", "tutti.dev/slice-", "tutti.dev/when-broken"] {
        let place = format!("metadata.annotations[{field}");
        assert!(said_of_job.iter().any(|warning| warning.starts_with(&place)), "{field}: {said_of_job:?}");
    }
    let group =
        json!({"metadata": {"name": "g", "annotations": {"tutti.dev/when-broken": "Burn"}}, "spec": gang(2)});
    assert_eq!(
        said("PodGroup", &group),
        ["metadata.annotations[tutti.dev/when-broken]: want Keep or Unwind, found \"Burn\""]
    );
}

#[test]
fn nothing_is_said_of_a_cluster_without_nodes_or_of_jobs_of_others() {
    let empty = Knowledge::new(GroupLink::SchedulingGroup, vec!["tutti".to_owned()]);
    let huge = view(&requests(&json!({"cpu": "1000"})));
    assert_eq!(warnings("Job", &huge, "a", &empty), [""; 0]);
    let other = requests(&json!({"cpu": "1000"}));
    let mut other = other;
    other["spec"]["template"]["spec"]["schedulerName"] = json!("default-scheduler");
    assert_eq!(said("Job", &other), [""; 0]);
    assert_eq!(said("Secret", &job(&json!({}))), [""; 0]);
}
