//! Jobs: the size of their pods, and the gang that they ask for.

use super::super::knowledge::{JobView, Knowledge};
use super::super::review::Object;
use super::{read, shape, too_many, unknown_keys};
use crate::gangs::GANG_ANNOTATION;
use crate::view::Unread;
use serde_json::{Value, json};
use tutti_k8s::PodView;

pub(super) fn warnings(object: &Object, namespace: &str, knowledge: &Knowledge) -> Vec<String> {
    let mut warnings = Vec::new();
    let template = object.spec.get("template").cloned().unwrap_or_default();
    let scheduler = template.pointer("/spec/schedulerName").and_then(Value::as_str).unwrap_or_default();
    if !knowledge.scheduler_names.iter().any(|served| served == scheduler) {
        return warnings;
    }
    let size = serde_json::from_value(object.spec.clone()).unwrap_or_default();
    let job = JobView { metadata: object.metadata.clone(), spec: size, status: Unread };
    warnings.extend(gang_annotation(object));
    warnings.extend(minimum(object, &job));
    warnings.extend(named_group(&template, namespace, &job, knowledge));
    warnings.extend(topology(object, knowledge));
    if let Ok(pod) = serde_json::from_value::<PodView>(json!({"spec": template.get("spec")})) {
        let requests = pod.read().pod.requests;
        warnings.extend(shape::too_large("spec.template", &requests, knowledge));
    }
    warnings
}

fn gang_annotation(object: &Object) -> Option<String> {
    let value = object.annotation(GANG_ANNOTATION)?;
    let shown: String = value.chars().take(40).collect();
    (!matches!(value, "true" | "false")).then(|| {
        format!("metadata.annotations[{GANG_ANNOTATION}]: want \"true\" or \"false\", found {shown:?}")
    })
}

/// A gang that the Job asks for itself: as large as it says, else as large as its parallelism.
fn minimum(object: &Object, job: &JobView) -> Option<String> {
    const FIELD: &str = "spec.scheduling.schedulingPolicy.gang.minCount";
    let gang = object.spec.pointer("/scheduling/schedulingPolicy/gang").filter(|gang| gang.is_object());
    let given = gang.and_then(|gang| gang.get("minCount")?.as_u64());
    let is_annotated = object.annotation(GANG_ANNOTATION) == Some("true");
    match given {
        Some(minimum) => too_many(FIELD, u32::try_from(minimum).unwrap_or(u32::MAX), job),
        None if gang.is_some() || is_annotated => too_many("spec.parallelism", job.spec.0.parallelism(), job),
        None => None,
    }
}

/// A group that somebody made, and that the pods of the Job name.
fn named_group(template: &Value, namespace: &str, job: &JobView, knowledge: &Knowledge) -> Option<String> {
    const FIELD: &str = "spec.template.spec.schedulingGroup.podGroupName";
    let name = template.pointer("/spec/schedulingGroup/podGroupName")?.as_str()?;
    let group = knowledge.group(namespace, name)?;
    let minimum = group.spec.pointer("/schedulingPolicy/gang/minCount").and_then(Value::as_u64)?;
    let most = job.spec.0.pods_at_once();
    (minimum > u64::from(most)).then(|| {
        format!(
            "{FIELD}: group {name} needs {minimum} pods and this Job never has more than {most} at a time; it \
             waits for others to join"
        )
    })
}

/// What annotations and `spec.scheduling` ask of the topology, which the group of the Job will ask for.
fn topology(object: &Object, knowledge: &Knowledge) -> Vec<String> {
    let constraints = object.spec.pointer("/scheduling/schedulingConstraints");
    let spec = json!({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": constraints});
    let Some(reading) = read(false, object.metadata.annotations.as_ref(), &spec) else { return Vec::new() };
    // The shape of `spec.scheduling` has been checked by the API server; annotations have not.
    let errors = reading.errors.iter().filter(|error| error.field.starts_with("metadata."));
    let mut warnings: Vec<String> = errors.map(tutti_k8s::ObjectError::detail).collect();
    if let Some(group) = &reading.group {
        warnings.extend(unknown_keys("spec.scheduling", &group.topology, knowledge));
    }
    warnings
}
