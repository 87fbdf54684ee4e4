//! What differs between kinds: conversion, defaults, validation, selectable fields. Pure functions on JSON;
//! the server calls them in this order: `to_hub`, `set_defaults`, `validate_*`, store, `from_hub`.

use crate::error::{ApiError, Cause};
use crate::registry::Resource;
use serde_json::Value;

/// Turns an object of a served version into the stored form.
pub fn to_hub(_resource: &Resource, _version: &str, object: Value) -> Result<Value, ApiError> {
    Ok(object)
}

/// Turns a stored object into the form of a served version, `apiVersion` included.
pub fn from_hub(_resource: &Resource, _version: &str, object: &Value) -> Value {
    object.clone()
}

/// Fills in what Kubernetes would fill in on a write.
pub fn set_defaults(_resource: &Resource, _object: &mut Value) {}

/// What is wrong with a new object (hub form, defaults set). Metadata is checked here too.
pub fn validate_create(_resource: &Resource, _object: &Value) -> Vec<Cause> {
    Vec::new()
}

/// What is wrong with replacing `old` by `new` through the main endpoint, immutable fields included.
pub fn validate_update(_resource: &Resource, _old: &Value, _new: &Value) -> Vec<Cause> {
    Vec::new()
}

/// What is wrong with replacing the status of `old` by that of `new`.
pub fn validate_status(_resource: &Resource, _old: &Value, _new: &Value) -> Vec<Cause> {
    Vec::new()
}

/// The value of a field that a field selector may name; `None` if this resource does not support the label.
pub fn selectable_field(_resource: &Resource, _label: &str, _object: &Value) -> Option<String> {
    None
}
