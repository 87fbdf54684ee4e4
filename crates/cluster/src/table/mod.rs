//! Tables as `kubectl get` asks for them. Which columns a kind has, and what is in them, is part of what
//! people know of Kubernetes, so both follow it closely.

mod age;
mod cells;
mod columns;
mod pod;
#[cfg(test)]
mod tests;

use crate::kinds::field::Field;
use crate::registry::Resource;
use serde_json::{Value, json};
use std::sync::Arc;

/// How much of each object a row carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, as `PartialObjectMetadata`.
    Metadata,
    /// All of it.
    Object,
}

/// Column headers of a resource, as `columnDefinitions` has them.
pub fn column_definitions(resource: &Resource) -> Value {
    columns::of(resource).iter().map(columns::Column::to_json).collect()
}

/// One row an object. Objects are in the requested version; `now` is what ages are counted from.
pub fn rows(
    resource: &Resource,
    objects: &[Arc<Value>],
    include: IncludeObject,
    now: jiff::Timestamp,
) -> Vec<Value> {
    objects
        .iter()
        .map(|object| json!({"cells": cells::of(resource, &Field::root(object), now), "object": carried(object, include)}))
        .collect()
}

fn carried(object: &Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
        }),
    }
}
