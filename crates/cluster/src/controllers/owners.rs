//! How objects refer to those that made them, and how pods are made out of templates.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tutti_controllers::View;

/// The reference that events about an object carry.
pub(super) fn reference<S, T>(view: &View<S, T>, resource: &ApiResource) -> Arc<ObjectReference> {
    Arc::new(ObjectReference {
        api_version: Some(resource.api_version.clone()),
        kind: Some(resource.kind.clone()),
        namespace: view.metadata.namespace.clone(),
        name: view.metadata.name.clone(),
        uid: view.metadata.uid.clone(),
        resource_version: view.metadata.resource_version.clone(),
        ..ObjectReference::default()
    })
}

/// The owner reference to the object that manages another.
pub(super) fn owner<S, T>(view: &View<S, T>, resource: &ApiResource) -> Value {
    json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "name": view.name(), "uid": view.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod as a template describes it, with a name that the API server completes.
pub(super) fn pod_of_template<S, T>(
    template: &Value,
    prefix: &str,
    view: &View<S, T>,
    resource: &ApiResource,
) -> Value {
    let from = template.get("metadata").and_then(Value::as_object);
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = from.and_then(|from| from.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("generateName".to_owned(), json!(prefix));
    metadata.insert("ownerReferences".to_owned(), json!([owner(view, resource)]));
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}
