//! Small reads and writes of `metadata`.

use serde_json::{Map, Value};

/// Fields that only the server writes.
pub(super) const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

pub(super) fn of(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// The metadata of an object, made if it is missing. `None` if the value is no object at all.
pub(super) fn of_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    metadata.as_object_mut()
}

/// A text field of metadata; empty if it is not there.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    of(object).and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(metadata) = of_mut(object) {
        metadata.insert(field.to_owned(), value);
    }
}

pub(super) fn remove(object: &mut Value, field: &str) {
    if let Some(metadata) = of_mut(object) {
        metadata.remove(field);
    }
}

/// Takes away fields that are spelled out as empty, which is the same as absent.
pub(super) fn drop_empty(object: &mut Value) {
    let Some(metadata) = of_mut(object) else { return };
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = metadata.get(field).is_some_and(|value| {
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
        });
        if empty {
            metadata.remove(field);
        }
    }
}

pub(super) fn is_terminating(object: &Value) -> bool {
    of(object).is_some_and(|m| m.contains_key("deletionTimestamp"))
}

pub(super) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = of(object).and_then(|m| m.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

pub(super) fn generation(object: &Value) -> i64 {
    of(object).and_then(|m| m.get("generation")).and_then(Value::as_i64).unwrap_or(0)
}

/// The grace that a terminating object was given.
pub(super) fn grace_seconds(object: &Value) -> i64 {
    of(object).and_then(|m| m.get("deletionGracePeriodSeconds")).and_then(Value::as_i64).unwrap_or(0)
}
