//! Schemas of all served types, generated from the types themselves: OpenAPI documents for clients, and the
//! look-ups that patches and strict decoding need.

use crate::registry::Resource;
use serde_json::{Value, json};

/// How strategic merge patch treats a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMerge {
    /// The patch replaces the list.
    Atomic,
    /// Entries are objects, merged by this key.
    ByKey(&'static str),
    /// Entries are plain values, merged as a set.
    Set,
}

/// How a strategic merge patch of this resource treats the list at this path (field names only, list entries
/// are skipped: `["spec", "containers", "ports"]`).
pub fn list_merge(_resource: &Resource, _version: &str, _path: &[&str]) -> ListMerge {
    ListMerge::Atomic
}

/// Paths of fields that the schema of this version does not know, as strict decoding reports them
/// (`spec.containers[0].imge`).
pub fn unknown_fields(_resource: &Resource, _version: &str, _object: &Value) -> Vec<String> {
    Vec::new()
}

/// Body of `GET /openapi/v3`.
pub fn openapi_index() -> Value {
    json!({"paths": {}})
}

/// Body of `GET /openapi/v3/{path}`, where the path is `api/v1` or `apis/GROUP/VERSION`.
pub fn openapi_document(_path: &str) -> Option<Value> {
    None
}
