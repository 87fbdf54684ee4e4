//! What all conversions of the workload API share: fields that an older version has no place for travel in an
//! annotation that only the older form carries, and that is taken apart again on the way in. A client that reads
//! an object, changes a label and writes it back would erase them otherwise. A client that throws the annotation
//! away does not erase anything silently either: the fields are immutable, so validation refuses its update.

use crate::error::{ApiError, Cause, CauseReason};
use serde_json::{Map, Value, json};

/// Carries the fields of an object that the shown version has no place for, as JSON.
pub(crate) const HUB_FIELDS: &str = "tutti.dev/v1beta1-fields";

/// The objects in a list, with their positions.
pub(super) fn objects_of<'a>(
    spec: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = (usize, &'a mut Map<String, Value>)> {
    let items = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| item.as_object_mut().map(|item| (index, item)))
}

/// A value of the wrong type.
pub(super) fn wrong_type(path: &str, expected: &str) -> Cause {
    Cause {
        reason: CauseReason::TypeInvalid,
        field: path.to_owned(),
        message: format!("Invalid value: must be of type {expected}"),
    }
}

/// Renames a field of an object, if it is there.
pub(super) fn rename(value: &mut Value, from: &str, to: &str) {
    if let Some(object) = value.as_object_mut()
        && let Some(moved) = object.remove(from)
    {
        object.insert(to.to_owned(), moved);
    }
}

/// Puts a field back as it was, or makes sure that it is not there.
pub(super) fn restore(holder: &mut Map<String, Value>, field: &str, kept: Option<&Value>) {
    match kept {
        Some(value) => holder.insert(field.to_owned(), value.clone()),
        None => holder.remove(field),
    };
}

/// Takes a field out of an object and keeps it.
pub(super) fn set_aside(holder: &mut Map<String, Value>, field: &str, stash: &mut Map<String, Value>) {
    if let Some(value) = holder.remove(field).filter(|v| !v.is_null()) {
        stash.insert(field.to_owned(), value);
    }
}

/// What an object carries beside its own fields; it carries it no longer.
pub(super) fn take_stash(object: &mut Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Ok(Map::new());
    };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return Ok(Map::new());
    };
    let Some(text) = annotations.remove(HUB_FIELDS) else {
        return Ok(Map::new());
    };
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).ok_or_else(|| {
        ApiError::bad_request(format!(
            "metadata.annotations[{HUB_FIELDS}] must be a JSON object; the server maintains it, leave it as it is"
        ))
    })
}

/// Lets an object carry what its own fields cannot say.
pub(super) fn put_stash(object: &mut Map<String, Value>, stash: Map<String, Value>) {
    if stash.is_empty() {
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(HUB_FIELDS.to_owned(), json!(Value::Object(stash).to_string()));
    }
}
