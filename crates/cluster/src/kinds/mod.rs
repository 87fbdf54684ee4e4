//! What differs between kinds: conversion, defaults, validation, selectable fields. Pure functions on JSON;
//! the server calls them in this order: `to_hub`, `set_defaults`, `validate_*`, store, `from_hub`.
//!
//! Validation first compares the types of all values with the schema and stops there if any is wrong; the
//! rules of the kinds may therefore read a value of the wrong type as absent.

mod amounts;
mod budgets;
mod claims;
mod conditions;
mod config;
mod containers;
mod convert;
pub(crate) mod defaults;
mod events;
pub(crate) mod field;
mod groups;
mod job_rules;
mod jobs;
pub(crate) mod label_selector;
mod metadata;
pub(crate) mod names;
mod others;
mod placement;
mod pod;
mod pod_defaults;
pub(crate) mod pod_resize;
mod pod_update;
pub(crate) mod quantity;
mod replicas;
mod rules;
pub(crate) mod scale;
mod select;
mod services;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

use crate::custom;
use crate::error::{ApiError, Cause};
use crate::registry::{Release, Resource, api_version};
use crate::schema;
use field::Field;
use serde_json::{Value, json};

/// The group whose versions differ.
const SCHEDULING: &str = "scheduling.k8s.io";

/// Turns an object of a served version into the stored form.
///
/// Fails if the object is no object, or if a field has a value that the stored form cannot express.
pub fn to_hub(resource: &Resource, version: &str, mut object: Value) -> Result<Value, ApiError> {
    let Some(map) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the body must be an object"));
    };
    match (resource.group, version) {
        (SCHEDULING, version) => convert::to_hub(resource, version, map)?,
        ("", events::NEWER) => events::to_core(map),
        _ => {}
    }
    map.insert("apiVersion".to_owned(), json!(api_version(resource.group, resource.hub)));
    Ok(object)
}

/// Turns a stored object into the form of a served version, `apiVersion` included.
pub fn from_hub(resource: &Resource, version: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        match (resource.group, version) {
            (SCHEDULING, version) => convert::from_hub(resource, version, map),
            ("", events::NEWER) => events::from_core(map),
            _ => {}
        }
        map.insert("apiVersion".to_owned(), json!(api_version(resource.group, version)));
    }
    object
}

/// Renames the fields of findings, which validation names as the hub does, to what the client wrote.
pub fn causes_in_version(resource: &Resource, version: &str, causes: Vec<Cause>) -> Vec<Cause> {
    let rename = |field: &str| match (resource.group, version) {
        (SCHEDULING, version) => convert::path(version, field),
        ("", events::NEWER) => events::newer_path(field),
        _ => field.to_owned(),
    };
    causes.into_iter().map(|cause| Cause { field: rename(&cause.field), ..cause }).collect()
}

/// Gives a new object what only its first moment decides: its name and identity are known, its defaults are not
/// set yet.
pub fn prepare_new(resource: &Resource, object: &mut Value) {
    if let (None, Some(object)) = (resource.custom, object.as_object_mut()) {
        (rules::of(resource).prepare_new)(object);
    }
}

/// Fills in what Kubernetes would fill in on a write, and gives every amount its one spelling.
pub fn set_defaults(resource: &Resource, object: &mut Value) {
    if let Some(definition) = resource.custom {
        custom::set_defaults(definition, resource, object);
        return;
    }
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
    if let Some(definition) = resource.custom {
        out.extend(custom::validate_object(definition, resource, object));
        return out;
    }
    let rules = rules::of(resource);
    check(rules, resource, &root, &mut out);
    (rules.validate_new)(&root, &mut out);
    out
}

/// What is wrong with replacing `old` by `new` through the main endpoint, immutable fields included.
pub fn validate_update(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut out = schema::wrong_types(resource, resource.hub, new);
    if !out.is_empty() {
        return out;
    }
    let object = new;
    let (old, new) = (Field::root(old), Field::root(new));
    metadata::validate_update(resource, &old, &new, &mut out);
    if let Some(definition) = resource.custom {
        out.extend(custom::validate_object(definition, resource, object));
        return out;
    }
    let rules = rules::of(resource);
    check(rules, resource, &new, &mut out);
    match rules.validate_update_before_1_37.filter(|_| is_before_1_37(resource)) {
        None => (rules.validate_update)(&old, &new, &mut out),
        Some(validate) => {
            let mut changes = Vec::new();
            validate(&old, &new, &mut changes);
            // What is inside of something that may not change is not looked at.
            out.retain(|found| !changes.iter().any(|change| found.field.starts_with(&change.field)));
            out.extend(changes);
        }
    }
    out
}

fn check(rules: &rules::KindRules, resource: &Resource, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    (rules.validate)(root, out);
    if !is_before_1_37(resource) {
        (rules.validate_since_1_37)(root, out);
    }
}

/// True if a resource is served as releases before 1.37 did.
pub fn is_before_1_37(resource: &Resource) -> bool {
    !resource.release.includes(Release::V1_37)
}

/// Fills in what a new status leaves out and takes over from the old one.
pub fn complete_status(resource: &Resource, old: &Value, new: &mut Value) {
    match (resource.group, resource.kind, new.as_object_mut()) {
        ("", "Pod", _) => pod::complete_status(old, new),
        ("", "Node", Some(node)) => defaults::node_status(node),
        _ => {}
    }
}

/// What is wrong with replacing the status of `old` by that of `new`.
pub fn validate_status(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut out = schema::wrong_types(resource, resource.hub, new);
    if !out.is_empty() {
        return out;
    }
    if let Some(definition) = resource.custom {
        return custom::validate_object(definition, resource, new);
    }
    let (old, new) = (Field::root(old), Field::root(new));
    (rules::of(resource).validate_status)(&old, &new, &mut out);
    out
}

/// The value of a field that a field selector may name; `None` if this resource does not support the label.
pub fn selectable_field(resource: &Resource, label: &str, object: &Value) -> Option<String> {
    select::selectable_field(resource, label, object)
}
