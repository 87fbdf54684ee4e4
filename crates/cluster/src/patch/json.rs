//! JSON patch (RFC 6902), with limits: a few bytes of `copy` operations could otherwise double a document
//! again and again, or nest it deeper than any stack.

use super::depth;
use crate::error::ApiError;
use crate::server::DEPTH_MAX;
use crate::store::json_size;
use json_patch::{Patch, PatchErrorKind, PatchOperation};
use serde_json::Value;

/// Operations in one patch. The same limit as in Kubernetes.
const OPERATIONS_MAX: usize = 10_000;

/// Bytes that all `copy` operations of a patch may add.
const COPIED_BYTES_MAX: usize = 3 << 20;

pub(super) fn decode(value: Value) -> Result<Patch, ApiError> {
    // A list of operations that are none is a list, and fails only when it is applied.
    let is_list = value.is_array();
    let patch: Patch = serde_json::from_value(value).map_err(|error| match is_list {
        true => unprocessable(&error.to_string()),
        false => ApiError::bad_request(format!("the JSON patch is malformed: {error}")),
    })?;
    if patch.0.len() > OPERATIONS_MAX {
        return Err(too_large(format!("a JSON patch may have at most {OPERATIONS_MAX} operations")));
    }
    Ok(patch)
}

/// True if an operation has to do with what is at a place, above it or below it.
pub(super) fn concerns(patch: &Patch, place: &str) -> bool {
    let related = |path: &str| path.starts_with(place) || place.starts_with(path);
    patch.0.iter().any(|operation| {
        let from = match operation {
            PatchOperation::Move(from) => Some(from.from.as_str()),
            PatchOperation::Copy(from) => Some(from.from.as_str()),
            _ => None,
        };
        related(operation.path().as_str()) || from.is_some_and(related)
    })
}

pub(super) fn apply(patch: &Patch, document: &mut Value) -> Result<(), ApiError> {
    let mut copied = 0;
    for operation in &patch.0 {
        check(operation, document, &mut copied)?;
        json_patch::patch(document, std::slice::from_ref(operation)).map_err(|error| match error.kind {
            PatchErrorKind::TestFailed => unprocessable(&format!("testing path {} failed", operation.path())),
            other => unprocessable(&format!("the operation on path {} failed: {other}", operation.path())),
        })?;
    }
    Ok(())
}

/// Makes sure that an operation makes the document neither too deep nor too large.
fn check(operation: &PatchOperation, document: &Value, copied: &mut usize) -> Result<(), ApiError> {
    let added = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Move(from) => document.pointer(from.from.as_str()),
        PatchOperation::Copy(from) => {
            let source = document.pointer(from.from.as_str());
            *copied += source.map_or(0, json_size);
            source
        }
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    if *copied > COPIED_BYTES_MAX {
        return Err(too_large(format!("a JSON patch may copy at most {COPIED_BYTES_MAX} bytes")));
    }
    let level = operation.path().as_str().matches('/').count();
    if added.is_some_and(|value| level + depth(value) > DEPTH_MAX) {
        return Err(too_large(format!("the patch nests the object deeper than {DEPTH_MAX} levels")));
    }
    Ok(())
}

fn too_large(message: String) -> ApiError {
    ApiError::new(413, "RequestEntityTooLarge", message)
}

fn unprocessable(why: &str) -> ApiError {
    ApiError::new(422, "Invalid", format!("the patch does not apply: {why}")).without_object()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(document: Value, patch: Value) -> Result<Value, ApiError> {
        let mut document = document;
        apply(&decode(patch)?, &mut document)?;
        Ok(document)
    }

    #[test]
    fn operations_apply_in_order() {
        let patch = json!([
            {"op": "add", "path": "/a/-", "value": 2},
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "test", "path": "/b/1", "value": 2},
            {"op": "move", "from": "/a", "path": "/c"},
            {"op": "remove", "path": "/c/0"},
            {"op": "replace", "path": "/b/0", "value": "x"},
        ]);
        assert_eq!(patched(json!({"a": [1]}), patch).unwrap(), json!({"b": ["x", 2], "c": [2]}));
    }

    #[test]
    fn bad_patches_are_the_clients_fault() {
        for (patch, code) in [
            (json!({"op": "add"}), 400),
            (json!([{"op": "add", "path": "/a"}]), 422),
            (json!([{"op": "fly", "path": "/a"}]), 422),
            (json!([{"op": "add", "path": "a", "value": 1}]), 422),
            (json!([{"op": "test", "path": "/a", "value": 9}]), 422),
            (json!([{"op": "remove", "path": "/nope"}]), 422),
            (json!([{"op": "add", "path": "/x/y", "value": 1}]), 422),
            (json!([{"op": "add", "path": "/l/7", "value": 1}]), 422),
        ] {
            assert_eq!(patched(json!({"a": 1, "l": []}), patch.clone()).unwrap_err().code, code, "{patch}");
        }
    }

    #[test]
    fn copies_cannot_explode() {
        let doubling: Vec<Value> =
            (0..64).map(|i| json!({"op": "copy", "from": "/a", "path": format!("/a/x{i}")})).collect();
        let error = patched(json!({"a": {"b": "c"}}), Value::Array(doubling)).unwrap_err();
        assert_eq!(error.code, 413);
        let wide: Vec<Value> =
            (0..5000).map(|i| json!({"op": "copy", "from": "/a", "path": format!("/x{i}")})).collect();
        let error = patched(json!({"a": "y".repeat(2000)}), Value::Array(wide)).unwrap_err();
        assert_eq!(error.code, 413);
    }

    #[test]
    fn additions_cannot_nest_without_end() {
        let mut path = String::new();
        let mut operations = Vec::new();
        for _ in 0..200 {
            path.push_str("/a");
            operations.push(json!({"op": "add", "path": path, "value": {}}));
        }
        assert_eq!(patched(json!({}), Value::Array(operations)).unwrap_err().code, 413);
    }
}
