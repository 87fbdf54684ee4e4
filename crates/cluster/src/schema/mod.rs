//! Schemas of all served types, generated from the types themselves: OpenAPI documents for clients, and the
//! look-ups that patches and strict decoding need. Everything is made once, when it is first asked for.

mod alpha;
mod components;
mod lists;
mod openapi;
mod ownership;
#[cfg(test)]
mod tests;
mod types;

use crate::error::Cause;
use crate::registry::{RESOURCES, Resource};
use serde_json::Value;
use std::collections::BTreeSet;

pub use ownership::{KindVersions, ShapeType};

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
pub fn list_merge(resource: &Resource, version: &str, path: &[&str]) -> ListMerge {
    types::types().list_merge(resource, version, path)
}

/// Paths of fields that the schema of this version does not know, as strict decoding reports them
/// (`spec.containers[0].imge`).
pub fn unknown_fields(resource: &Resource, version: &str, object: &Value) -> Vec<String> {
    types::types().unknown_fields(resource, version, object)
}

/// Removes the fields that [`unknown_fields`] names, as lenient decoding does.
pub fn prune_unknown(resource: &Resource, version: &str, object: &mut Value) {
    types::types().prune(resource, version, object);
}

/// Values whose JSON type is not what the schema of this version says. Nothing like that may be stored: typed
/// clients could no longer read the list that it is in.
pub fn wrong_types(resource: &Resource, version: &str, object: &Value) -> Vec<Cause> {
    types::types().wrong_types(resource, version, object)
}

/// Calls `change` for every value that is a quantity by the schema of this version.
pub(crate) fn for_each_quantity(
    resource: &Resource,
    version: &str,
    object: &mut Value,
    change: fn(&mut Value),
) {
    types::types().for_each_quantity(resource, version, object, change);
}

/// Body of `GET /openapi/v3`.
pub fn openapi_index() -> Value {
    openapi::index()
}

/// Body of `GET /openapi/v3/{path}`, where the path is `api/v1` or `apis/GROUP/VERSION`.
pub fn openapi_document(path: &str) -> Option<Value> {
    serde_json::from_str(openapi_text(path)?).ok()
}

/// As [`openapi_document`], already written out: this is what to serve.
pub fn openapi_text(path: &str) -> Option<&'static str> {
    openapi::documents().get(path).map(|document| document.text.as_str())
}

/// Every served group and version, once.
fn group_versions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all: BTreeSet<_> =
        RESOURCES.iter().flat_map(Resource::places).map(|place| (place.group, place.version)).collect();
    all.into_iter()
}
