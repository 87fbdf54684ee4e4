//! Custom kinds: what a CustomResourceDefinition says, read once, so that a custom kind is a [`Resource`] like any
//! other and goes through the same routes, patches, tables and documents.

mod definition;
mod names;
mod path;
mod rules;
mod schema;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use definition::{Column, Definition};
pub(crate) use names::{Judged, is_established, judge};
pub(crate) use rules::{defaults, validate, validate_new, validate_update};
pub(crate) use schema::{ListType, Schema, Type};

use crate::error::Cause;
use crate::registry::Resource;
use serde_json::Value;

/// Group of definitions.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// Kind of definitions.
pub(crate) const KIND: &str = "CustomResourceDefinition";

/// Fills in the defaults of an object of a custom kind, in its stored version.
pub(crate) fn set_defaults(definition: &Definition, resource: &Resource, object: &mut Value) {
    if let Some(version) = definition.version(resource.hub) {
        values::set_defaults(&version.schema, object);
    }
}

/// What is wrong with an object of a custom kind by the schema of its stored version. Metadata is checked as for
/// all objects, so the schema has no say in it.
pub(crate) fn validate_object(definition: &Definition, resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(version) = definition.version(resource.hub) {
        values::validate(&version.schema, object, "", &mut causes);
    }
    causes.retain(|cause| cause.field != "metadata" && !cause.field.starts_with("metadata."));
    causes
}
