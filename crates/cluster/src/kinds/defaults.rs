//! What Kubernetes fills in on a write. Every default is set only where the object says nothing, and shapes
//! that are wrong are left for validation to report.

use super::rules;
use crate::registry::Resource;
use serde_json::{Map, Value, json};

/// Fills in the defaults of this kind (hub form).
pub(super) fn set_defaults(resource: &Resource, object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        (rules::of(resource).defaults)(object);
    }
}

/// Defaults of a Node.
pub(super) fn node(object: &mut Map<String, Value>) {
    if let Some(spec) = child(object, "spec")
        && let Some(range) = spec.get("podCIDR").filter(|range| range.as_str().is_some_and(|r| !r.is_empty()))
    {
        let ranges = json!([range]);
        set(spec, "podCIDRs", ranges);
    }
    node_status(object);
}

/// All that a node has can be allocated, unless it says otherwise.
pub(super) fn node_status(object: &mut Map<String, Value>) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let Some(capacity) = status.get("capacity").and_then(Value::as_object).cloned() else { return };
    let allocatable = status.entry("allocatable").or_insert_with(|| json!({}));
    let Some(allocatable) = allocatable.as_object_mut() else { return };
    for (name, amount) in capacity {
        allocatable.entry(name).or_insert(amount);
    }
}

/// Defaults of a PriorityClass.
pub(super) fn priority_class(object: &mut Map<String, Value>) {
    set(object, "preemptionPolicy", json!("PreemptLowerPriority"));
}

/// Defaults of a PodGroup.
pub(super) fn pod_group(object: &mut Map<String, Value>) {
    if let Some(spec) = child(object, "spec") {
        set(spec, "disruptionMode", json!({"single": {}}));
    }
}

/// Defaults of a PodDisruptionBudget.
pub(super) fn disruption_budget(object: &mut Map<String, Value>) {
    first_status(
        object,
        || json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}),
    );
}

/// Gives an object that has no status its first one: it is new.
pub(super) fn first_status(object: &mut Map<String, Value>, status: impl FnOnce() -> Value) {
    if !object.contains_key("status") {
        object.insert("status".to_owned(), status());
    }
}

/// Defaults of a Namespace.
pub(super) fn namespace(object: &mut Map<String, Value>) {
    let metadata = object.get("metadata");
    let name = metadata.and_then(|m| m.get("name")).and_then(Value::as_str).unwrap_or_default().to_owned();
    let deleting = metadata.and_then(|m| m.get("deletionTimestamp")).is_some_and(|t| !t.is_null());
    if let Some(metadata) = child(object, "metadata")
        && let Some(labels) = child(metadata, "labels")
        && !name.is_empty()
    {
        // Not a default but a promise: selectors rely on this label telling the truth.
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
    if !deleting && let Some(spec) = child(object, "spec") {
        set(spec, "finalizers", json!(["kubernetes"]));
    }
    first_status(object, || json!({"phase": "Active"}));
}

/// Sets a field that is absent or null.
pub(crate) fn set(object: &mut Map<String, Value>, field: &str, default: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), default);
    }
}

/// A nested object, made if it is absent or null; `None` if something else is there.
pub(crate) fn child<'a>(
    object: &'a mut Map<String, Value>,
    field: &str,
) -> Option<&'a mut Map<String, Value>> {
    set(object, field, json!({}));
    object.get_mut(field).and_then(Value::as_object_mut)
}

/// A nested object if it is there.
pub(crate) fn existing<'a>(
    object: &'a mut Map<String, Value>,
    field: &str,
) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field).and_then(Value::as_object_mut)
}

/// The objects in a list.
pub(super) fn each<'a>(
    object: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;

    fn defaulted(kind: &str, mut object: Value) -> Value {
        let resource = RESOURCES.iter().find(|r| r.kind == kind).unwrap();
        set_defaults(resource, &mut object);
        object
    }

    #[test]
    fn a_namespace_gets_its_finalizer_phase_and_name_label() {
        let namespace = defaulted("Namespace", json!({"metadata": {"name": "a"}}));
        assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
        assert_eq!(namespace["status"]["phase"], "Active");
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "a");
    }

    #[test]
    fn a_namespace_that_is_deleted_does_not_get_its_finalizer_back() {
        let metadata = json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let namespace = defaulted("Namespace", json!({"metadata": metadata, "spec": {}, "status": {}}));
        assert!(namespace["spec"].get("finalizers").is_none());
    }

    #[test]
    fn a_pod_group_is_disrupted_pod_by_pod_unless_it_says_otherwise() {
        let group = defaulted("PodGroup", json!({"spec": {"disruptionMode": null}}));
        assert_eq!(group["spec"]["disruptionMode"], json!({"single": {}}));
        let group = defaulted("PodGroup", json!({"spec": {"disruptionMode": {"all": {}}}}));
        assert_eq!(group["spec"]["disruptionMode"], json!({"all": {}}));
        assert!(group["spec"].get("priority").is_none());
    }

    #[test]
    fn a_priority_class_preempts_and_a_workload_is_left_alone() {
        assert_eq!(defaulted("PriorityClass", json!({}))["preemptionPolicy"], "PreemptLowerPriority");
        let workload = json!({"spec": {"podGroupTemplates": [{"name": "t"}]}});
        assert_eq!(defaulted("Workload", workload.clone()), workload);
    }

    #[test]
    fn defaults_survive_any_shape() {
        let shapes =
            [json!(null), json!([]), json!("x"), json!({"spec": 1, "metadata": "m"}), json!({"spec": []})];
        for resource in RESOURCES {
            for shape in &shapes {
                let mut object = shape.clone();
                set_defaults(resource, &mut object);
            }
        }
    }
}
