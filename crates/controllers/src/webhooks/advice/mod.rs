//! The validating webhook: what can never run is said at once, to whoever writes it. Nothing is ever refused, because
//! the cluster may grow, and because a webhook that errs must not be in the way.

mod job;
mod shape;
mod workload;

use super::knowledge::{JobView, Knowledge};
use super::review::Object;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tutti_k8s::group::{CompositeView, GroupReading, PodGroupView};
use tutti_model::{Policy, Topology};

/// Everything that is to be said about an object of a kind.
pub(super) fn warnings(kind: &str, object: &Object, namespace: &str, knowledge: &Knowledge) -> Vec<String> {
    match kind {
        "Job" => job::warnings(object, namespace, knowledge),
        "Workload" => workload::warnings(object, namespace, knowledge),
        "PodGroup" | "CompositePodGroup" => group(kind, object, namespace, knowledge),
        _ => Vec::new(),
    }
}

fn group(kind: &str, object: &Object, namespace: &str, knowledge: &Knowledge) -> Vec<String> {
    let job = knowledge.job_of(namespace, object);
    let annotations = object.metadata.annotations.as_ref();
    let reading = read(kind == "CompositePodGroup", annotations, &object.spec);
    about_group(reading, "spec", job, knowledge)
}

/// A group with these annotations and this spec, as the scheduler will read it.
fn read(
    is_composite: bool,
    annotations: Option<&BTreeMap<String, String>>,
    spec: &Value,
) -> Option<GroupReading> {
    // Objects that are being made have no identity yet, and templates never do.
    let metadata = json!({"name": "new", "namespace": "new", "uid": "new", "annotations": annotations});
    let group = json!({"metadata": metadata, "spec": spec});
    // Views are lenient: what cannot be read of an object becomes an error of the reading.
    if is_composite {
        serde_json::from_value(group).ok().map(|view: CompositeView| view.read())
    } else {
        serde_json::from_value(group).ok().map(|view: PodGroupView| view.read(""))
    }
}

/// What is to be said of a group whose spec is at `place`, which may be that of a template.
fn about_group(
    reading: Option<GroupReading>,
    place: &str,
    job: Option<&JobView>,
    knowledge: &Knowledge,
) -> Vec<String> {
    let Some(reading) = reading else { return Vec::new() };
    let mut warnings: Vec<String> = reading
        .errors
        .iter()
        .map(|error| match error.field.strip_prefix("spec") {
            Some(rest) => format!("{place}{rest}: {}", error.message),
            None => error.detail(),
        })
        .collect();
    let Some(group) = reading.group else { return warnings };
    if let (Policy::Gang { min_count }, Some(job)) = (group.policy, job) {
        let field = format!("{place}.schedulingPolicy.gang.minCount");
        warnings.extend(too_many(&field, min_count.get(), job));
    }
    warnings.extend(unknown_keys(place, &group.topology, knowledge));
    warnings
}

/// Said of a minimum that the pods of a Job can never reach.
fn too_many(field: &str, minimum: u32, job: &JobView) -> Option<String> {
    let most = job.spec.0.pods_at_once();
    (minimum > most).then(|| {
        format!(
            "{field}: {minimum} pods are to start together, but Job {} never has more than {most} at a time",
            job.name()
        )
    })
}

/// Said of topology keys that no node has as a label.
fn unknown_keys(place: &str, topology: &Topology, knowledge: &Knowledge) -> Vec<String> {
    if knowledge.nodes().next().is_none() {
        // Nothing is known of a cluster without nodes.
        return Vec::new();
    }
    let keys = topology.keys().into_iter();
    keys.filter(|key| knowledge.nodes().all(|node| node.label(key).is_none()))
        .map(|key| format!("{place}: topology key {key}: no node has this label"))
        .collect()
}

#[cfg(test)]
mod tests;
