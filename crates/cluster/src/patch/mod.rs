//! Patches: JSON patch, JSON merge patch and strategic merge patch.

mod json;
mod strategic;

use crate::error::ApiError;
use crate::registry::Resource;
use crate::schema::{self, ListMerge};
use serde_json::Value;

/// How a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// A list of operations, RFC 6902.
    Json,
    /// A partial object, RFC 7386.
    Merge,
    /// A partial object whose lists are merged as the schema says.
    Strategic,
    /// Server-side apply. Who else manages what decides what comes of it, so it is no [`Patch`].
    Apply,
}

impl PatchKind {
    /// The kind that a media type stands for.
    pub fn from_media_type(media_type: &str) -> Result<Self, ApiError> {
        let refuse =
            |message: String| Err(ApiError::new(415, "UnsupportedMediaType", message).without_object());
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            other => refuse(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, \
                 application/strategic-merge-patch+json, application/apply-patch+yaml; found {other:?}"
            )),
        }
    }
}

/// A patch, decoded, that can be applied any number of times.
#[derive(Debug)]
pub struct Patch(Inner);

#[derive(Debug)]
enum Inner {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Decodes the body of a request.
    pub fn decode(kind: PatchKind, body: &[u8]) -> Result<Self, ApiError> {
        let malformed = |why: String| ApiError::bad_request(format!("the patch is malformed: {why}"));
        let value: Value = serde_json::from_slice(body).map_err(|e| malformed(e.to_string()))?;
        match kind {
            PatchKind::Json => json::decode(value).map(Inner::Json).map(Self),
            PatchKind::Merge | PatchKind::Strategic if !value.is_object() => {
                Err(malformed("it must be an object".to_owned()))
            }
            PatchKind::Merge => Ok(Self(Inner::Merge(value))),
            PatchKind::Strategic => Ok(Self(Inner::Strategic(value))),
            PatchKind::Apply => Err(malformed("it is an object to apply".to_owned())),
        }
    }

    /// True if the patch reads or writes `metadata.managedFields`, which objects otherwise do without.
    pub fn concerns_managed_fields(&self) -> bool {
        match &self.0 {
            Inner::Json(patch) => json::concerns(patch, "/metadata/managedFields"),
            Inner::Merge(patch) | Inner::Strategic(patch) => {
                patch.get("metadata").is_some_and(|metadata| metadata.get("managedFields").is_some())
            }
        }
    }

    /// Changes an object of a served version. If this fails, the object is half-patched and of no use.
    pub fn apply(&self, resource: &Resource, version: &str, object: &mut Value) -> Result<(), ApiError> {
        match &self.0 {
            Inner::Json(patch) => json::apply(patch, object),
            Inner::Merge(patch) => {
                json_patch::merge(object, patch);
                Ok(())
            }
            Inner::Strategic(patch) => strategic::apply(object, patch, &|path: &[&str]| -> ListMerge {
                schema::list_merge(resource, version, path)
            }),
        }
    }
}

/// How deep a value is nested: 0 for a plain one.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
