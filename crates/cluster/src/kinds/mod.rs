//! What differs between kinds: conversion, defaults, validation, selectable fields. Pure functions on JSON;
//! the server calls them in this order: `to_hub`, `set_defaults`, `validate_*`, store, `from_hub`.
//!
//! Validation first compares the types of all values with the schema and stops there if any is wrong; the
//! rules of the kinds may therefore read a value of the wrong type as absent.

mod conditions;
mod containers;
mod convert;
mod defaults;
pub(crate) mod field;
mod groups;
mod metadata;
mod names;
mod others;
mod placement;
mod pod;
mod pod_defaults;
mod pod_update;
pub(crate) mod quantity;
mod select;
#[cfg(test)]
mod tests;
mod workload;

use crate::error::{ApiError, Cause};
use crate::registry::{Resource, api_version};
use crate::schema;
use field::Field;
use serde_json::{Value, json};

/// The older version that is converted; all other served versions are hubs.
const ALPHA: &str = "v1alpha2";

/// Turns an object of a served version into the stored form.
///
/// Fails if the object is no object, or if a field has a value that the stored form cannot express.
pub fn to_hub(resource: &Resource, version: &str, mut object: Value) -> Result<Value, ApiError> {
    let Some(map) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the body must be an object"));
    };
    if version == ALPHA {
        convert::alpha_to_hub(resource, map)?;
    }
    map.insert("apiVersion".to_owned(), json!(api_version(resource.group, resource.hub)));
    Ok(object)
}

/// Turns a stored object into the form of a served version, `apiVersion` included.
pub fn from_hub(resource: &Resource, version: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        if version == ALPHA {
            convert::hub_to_alpha(resource, map);
        }
        map.insert("apiVersion".to_owned(), json!(api_version(resource.group, version)));
    }
    object
}

/// Renames the fields of findings, which validation names as the hub does, to what the client wrote.
pub fn causes_in_version(version: &str, causes: Vec<Cause>) -> Vec<Cause> {
    if version != ALPHA {
        return causes;
    }
    causes.into_iter().map(|cause| Cause { field: convert::alpha_path(&cause.field), ..cause }).collect()
}

/// Fills in what Kubernetes would fill in on a write, and gives every amount its one spelling.
pub fn set_defaults(resource: &Resource, object: &mut Value) {
    schema::for_each_quantity(resource, resource.hub, object, quantity::canonicalise);
    defaults::set_defaults(resource, object);
}

/// What is wrong with a new object (hub form, defaults set). Metadata is checked here too.
pub fn validate_create(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut out = schema::wrong_types(resource, resource.hub, object);
    if !out.is_empty() {
        return out;
    }
    let root = Field::root(object);
    metadata::validate(resource, &root, &mut out);
    match resource.kind {
        "Pod" => pod::validate(&root, &mut out),
        _ => validate_any(resource, &root, &mut out),
    }
    out
}

/// What is wrong with replacing `old` by `new` through the main endpoint, immutable fields included.
pub fn validate_update(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut out = schema::wrong_types(resource, resource.hub, new);
    if !out.is_empty() {
        return out;
    }
    let (old, new) = (Field::root(old), Field::root(new));
    metadata::validate_update(resource, &old, &new, &mut out);
    validate_any(resource, &new, &mut out);
    match resource.kind {
        "Pod" => pod_update::validate(&old, &new, &mut out),
        "Node" => others::validate_node_update(&old, &new, &mut out),
        "PriorityClass" => others::validate_priority_class_update(&old, &new, &mut out),
        "PodGroup" => groups::validate_pod_group_update(&old, &new, &mut out),
        "Workload" => workload::validate_update(&old, &new, &mut out),
        _ => {}
    }
    out
}

/// What is wrong with replacing the status of `old` by that of `new`.
pub fn validate_status(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut out = schema::wrong_types(resource, resource.hub, new);
    if !out.is_empty() {
        return out;
    }
    let (old, new) = (Field::root(old), Field::root(new));
    match resource.kind {
        "Pod" => pod::validate_status(&old, &new, &mut out),
        "Node" => others::validate_node_status(&new, &mut out),
        "PodGroup" => groups::validate_pod_group_status(&new, &mut out),
        _ => {}
    }
    out
}

/// The value of a field that a field selector may name; `None` if this resource does not support the label.
pub fn selectable_field(resource: &Resource, label: &str, object: &Value) -> Option<String> {
    select::selectable_field(resource, label, object)
}

/// Rules that hold for a new object and for a replacement alike. Kinds are unique in the registry, whatever
/// their group.
fn validate_any(resource: &Resource, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    match resource.kind {
        "Pod" => pod::validate_spec(root, out),
        "Node" => others::validate_node(root, out),
        "PriorityClass" => others::validate_priority_class(root, out),
        "Lease" => others::validate_lease(root, out),
        "Event" => others::validate_event(root, out),
        "PodGroup" => groups::validate_pod_group(root, out),
        "Workload" => workload::validate(root, out),
        _ => {}
    }
}
