//! Fields that not every release of Kubernetes has. The types are those of the newest one.

use super::components::{Components, reference};
use crate::registry::Release;
use serde_json::{Map, Value, json};

const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";
const JOB_SPEC: &str = "io.k8s.api.batch.v1.JobSpec";
const WORKLOAD_REFERENCE: &str = "io.k8s.api.core.v1.WorkloadReference";

/// Takes away what a release does not have yet, and gives back what it still has.
pub(super) fn adapt(release: Release, components: &mut Components) {
    if release == Release::V1_35 {
        remove(components, POD_SPEC, "schedulingGroup");
    }
    if !release.includes(Release::V1_37) {
        remove(components, JOB_SPEC, "scheduling");
        remove(components, POD_SPEC, "evictionResponders");
    }
    if release.includes(Release::V1_35) && components.contains_key(POD_SPEC) {
        add_workload_reference(components);
    }
}

fn properties<'a>(components: &'a mut Components, name: &str) -> Option<&'a mut Map<String, Value>> {
    components.get_mut(name)?.get_mut("properties")?.as_object_mut()
}

fn remove(components: &mut Components, name: &str, field: &str) {
    if let Some(properties) = properties(components, name) {
        properties.remove(field);
    }
}

fn add_workload_reference(components: &mut Components) {
    let mut field = reference(WORKLOAD_REFERENCE);
    field["description"] =
        json!("The group of a Workload that the pod belongs to, as Kubernetes 1.35 says it. Immutable.");
    if let Some(properties) = properties(components, POD_SPEC) {
        properties.insert("workloadRef".to_owned(), field);
    }
    components.insert(
        WORKLOAD_REFERENCE.to_owned(),
        json!({
            "description": "Names a group of pods within a Workload.",
            "type": "object",
            "required": ["name", "podGroup"],
            "properties": {
                "name": {"type": "string", "description": "Name of the Workload, in the namespace of the pod."},
                "podGroup": {"type": "string", "description": "Name of the group within the Workload."},
                "podGroupReplicaKey": {
                    "type": "string",
                    "description": "Tells replicas of one group apart: each of them is scheduled on its own.",
                },
            },
        }),
    );
}
