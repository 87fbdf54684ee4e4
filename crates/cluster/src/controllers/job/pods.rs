//! The pods of a Job: which index they have, and how they are made.

use super::view::{JobSpec, JobView};
use super::{COMPLETION_INDEX, Resources, TRACKING};
use crate::controllers::owners;
use serde_json::{Map, Value, json};
use tutti_controllers::PodView;

/// The variable that tells containers their index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// Longest prefix of a pod's name; the API server adds five letters, and names become host names.
const PREFIX_CHARS_MAX: usize = 58;

/// The index of a pod of an indexed Job, if it is one that the Job has.
pub(super) fn index_of(pod: &PodView, completions: Option<u32>) -> Option<u32> {
    let index: u32 = pod.annotation(COMPLETION_INDEX)?.parse().ok()?;
    completions.is_none_or(|completions| index < completions).then_some(index)
}

/// A new pod.
pub(super) fn new_pod(job: &JobView, spec: &JobSpec, index: Option<u32>, resources: &Resources) -> Value {
    let prefix = match index {
        Some(index) => {
            let suffix = format!("-{index}-");
            let room = PREFIX_CHARS_MAX.saturating_sub(suffix.len());
            format!("{}{suffix}", job.name().chars().take(room).collect::<String>())
        }
        None => format!("{}-", job.name()),
    };
    let mut pod = owners::pod_of_template(&spec.template, &prefix, job, &resources.jobs);
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        mark(metadata, index);
    }
    if let (Some(index), Some(spec)) = (index, pod["spec"].as_object_mut()) {
        spec.insert("hostname".to_owned(), json!(format!("{}-{index}", job.name())));
        for field in ["containers", "initContainers"] {
            for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
                tell_index(container);
            }
        }
    }
    pod
}

/// Adds what makes a pod one of its Job.
fn mark(metadata: &mut Map<String, Value>, index: Option<u32>) {
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!(TRACKING))
    {
        finalizers.push(json!(TRACKING));
    }
    let Some(index) = index else { return };
    for field in ["annotations", "labels"] {
        let map = metadata.entry(field).or_insert_with(|| json!({}));
        if let Some(map) = map.as_object_mut() {
            map.insert(COMPLETION_INDEX.to_owned(), json!(index.to_string()));
        }
    }
}

/// Adds the variable to a container that does not set it itself.
fn tell_index(container: &mut Value) {
    let Some(container) = container.as_object_mut() else { return };
    let Some(variables) = container.entry("env").or_insert_with(|| json!([])).as_array_mut() else {
        return;
    };
    if variables.iter().any(|variable| variable.get("name") == Some(&json!(INDEX_VARIABLE))) {
        return;
    }
    let path = format!("metadata.labels['{COMPLETION_INDEX}']");
    variables.push(json!({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
}
