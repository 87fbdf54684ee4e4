//! Bindings of pods to nodes.

use super::path::Target;
use super::update::{MODIFIED, check_preconditions};
use super::{ApiServer, WriteOptions, metadata};
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{CommitError, Content, Object, rfc3339_seconds};
use serde_json::{Map, Value, json};

/// How often a binding is computed anew because the pod was written meanwhile.
const ATTEMPTS_MAX: usize = 5;

impl ApiServer {
    /// Assigns a pod to a node.
    pub(super) fn bind(
        &self,
        target: &Target,
        binding: &Value,
        options: WriteOptions<'_>,
    ) -> Result<(), ApiError> {
        let resource = target.id.resource();
        let key = target.key()?;
        let name = metadata::text(binding, "name");
        if *name != *key.name {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        let namespace = metadata::text(binding, "namespace");
        if !namespace.is_empty() && *namespace != *key.namespace {
            return Err(ApiError::bad_request(format!(
                "the namespace in the binding ({namespace}) does not match the namespace on the URL ({})",
                key.namespace
            )));
        }
        let node = binding_node(binding)?;
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.store.get(target.id, &key);
            let stored = stored.ok_or_else(|| ApiError::not_found(resource, &key.name))?;
            let (uid, version) = (metadata::text(binding, "uid"), metadata::text(binding, "resourceVersion"));
            check_preconditions(resource, &stored, Some(uid), Some(version))?;
            check_bindable(resource, &stored)?;
            let now = rfc3339_seconds(self.store.environment().now());
            let bound = bound(&stored, node, binding, &now);
            // Nobody manages what a binding sets: it is the decision of the cluster, not of whoever announces it.
            let content = Content { value: bound, managed: stored.managed().clone() };
            match self.replace(&stored, content, options) {
                Ok(_) => return Ok(()),
                Err(CommitError::Missing) => return Err(ApiError::not_found(resource, &key.name)),
                Err(_) => {}
            }
        }
        Err(ApiError::conflict(resource, &key.name, MODIFIED))
    }
}

/// The node that a binding names.
fn binding_node(binding: &Value) -> Result<&str, ApiError> {
    let target = binding.get("target").unwrap_or(&Value::Null);
    let text = |field| target.get(field).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("kind"), "" | "Node") {
        return Err(ApiError::bad_request(format!(
            "target.kind: Unsupported value: {:?}: supported values: \"Node\", \"<empty>\"",
            text("kind")
        )));
    }
    match text("name") {
        "" => Err(ApiError::bad_request("target.name: Required value")),
        name => Ok(name),
    }
}

fn check_bindable(resource: &Resource, stored: &Object) -> Result<(), ApiError> {
    let pod = &stored.value();
    let name = &stored.key().name;
    // The refusal names the subresource: a client must not take it for a lost race on the pod itself.
    let refuse = |why: String| {
        let message = format!("Operation cannot be fulfilled on pods/binding {:?}: {why}", &**name);
        let mut error = ApiError::new(409, "Conflict", message).about(resource, name);
        if let Some(details) = &mut error.details {
            details.kind = "pods/binding".to_owned();
        }
        Err(error)
    };
    if metadata::is_terminating(pod) {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gated = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|g| !g.is_empty());
    if gated {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

/// The pod after a binding.
fn bound(stored: &Object, node: &str, binding: &Value, now: &str) -> Value {
    let mut pod = Value::clone(&stored.value());
    for field in ["annotations", "labels"] {
        let added = metadata::of(binding).and_then(|m| m.get(field)).and_then(Value::as_object);
        if let (Some(added), Some(metadata)) = (added, metadata::of_mut(&mut pod)) {
            let present = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
            if let Some(present) = present.as_object_mut() {
                present.extend(added.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
        }
    }
    let Some(map) = pod.as_object_mut() else {
        return pod;
    };
    if let Some(spec) = map.entry("spec").or_insert_with(|| json!({})).as_object_mut() {
        spec.insert("nodeName".to_owned(), json!(node));
    }
    if let Some(status) = map.entry("status").or_insert_with(|| json!({})).as_object_mut() {
        status.remove("nominatedNodeName");
    }
    set_condition(
        &mut pod,
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
    );
    pod
}

/// Replaces the condition of the same type, or adds this one.
pub(super) fn set_condition(pod: &mut Value, condition: Value) {
    let Some(status) = pod.as_object_mut().map(|map| map.entry("status").or_insert_with(|| json!({}))) else {
        return;
    };
    let conditions = status.as_object_mut().map(|map| map.entry("conditions").or_insert_with(|| json!([])));
    let Some(conditions) = conditions.and_then(Value::as_array_mut) else { return };
    match conditions.iter_mut().find(|other| other.get("type") == condition.get("type")) {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}
