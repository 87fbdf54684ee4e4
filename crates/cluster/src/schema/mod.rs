//! Schemas of all served types, generated from the types themselves: OpenAPI documents for clients, and the
//! look-ups that patches and strict decoding need. Everything is made once, when it is first asked for.

mod alpha;
mod components;
mod lists;
mod openapi;
mod ownership;
mod releases;
mod structural;
#[cfg(test)]
mod tests;
mod types;

use crate::error::Cause;
use crate::registry::{Release, Resource, built_in};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub use openapi::Document;
pub use ownership::{KindVersions, ShapeType};
pub(crate) use structural::documents as custom_documents;
pub(crate) use types::Types;

/// Full name of the type of metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

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
    types::types(resource).list_merge(resource, version, path)
}

/// Paths of fields that the schema of this version does not know, as strict decoding reports them
/// (`spec.containers[0].imge`).
pub fn unknown_fields(resource: &Resource, version: &str, object: &Value) -> Vec<String> {
    types::types(resource).unknown_fields(resource, version, object)
}

/// Removes the fields that [`unknown_fields`] names, as lenient decoding does.
pub fn prune_unknown(resource: &Resource, version: &str, object: &mut Value) {
    types::types(resource).prune(resource, version, object);
}

/// Values whose JSON type is not what the schema of this version says. Nothing like that may be stored: typed
/// clients could no longer read the list that it is in.
pub fn wrong_types(resource: &Resource, version: &str, object: &Value) -> Vec<Cause> {
    types::types(resource).wrong_types(resource, version, object)
}

/// Calls `change` for every value that is a quantity by the schema of this version.
pub(crate) fn for_each_quantity(
    resource: &Resource,
    version: &str,
    object: &mut Value,
    change: fn(&mut Value),
) {
    types::types(resource).for_each_quantity(resource, version, object, change);
}

/// OpenAPI documents of what a release serves, by their paths: `api/v1`, `apis/GROUP/VERSION`.
pub fn openapi_documents(release: Release) -> &'static BTreeMap<String, Document> {
    openapi::documents(release)
}

/// Every served group and version of a release, once.
fn group_versions(release: Release) -> impl Iterator<Item = (&'static str, &'static str)> {
    let places = built_in(release).iter().flat_map(Resource::places);
    let all: BTreeSet<_> = places.map(|place| (place.group, place.version)).collect();
    all.into_iter()
}
