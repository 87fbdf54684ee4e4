//! Conversion between the served versions of `scheduling.k8s.io` and the stored one.

pub(crate) mod stash;
mod v1alpha1;
mod v1alpha2;

use crate::error::ApiError;
use crate::registry::Resource;
use serde_json::{Map, Value};

/// A served version to the stored one, `apiVersion` left alone.
pub(super) fn to_hub(
    resource: &Resource,
    version: &str,
    object: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    let causes = match version {
        "v1alpha1" => v1alpha1::to_hub(object)?,
        "v1alpha2" => v1alpha2::to_hub(resource, object)?,
        // The two versions of 1.37 have the same fields.
        _ => return Ok(()),
    };
    if causes.is_empty() {
        return Ok(());
    }
    let name = object.get("metadata").and_then(|m| m.get("name")).and_then(Value::as_str);
    Err(ApiError::invalid(resource, name.unwrap_or_default(), causes))
}

/// The stored version to a served one, `apiVersion` left alone.
pub(super) fn from_hub(resource: &Resource, version: &str, object: &mut Map<String, Value>) {
    match version {
        "v1alpha1" => v1alpha1::from_hub(object),
        "v1alpha2" => v1alpha2::from_hub(resource, object),
        _ => {}
    }
}

/// The path of a field as a served version spells it.
pub(super) fn path(version: &str, path: &str) -> String {
    match version {
        "v1alpha1" => v1alpha1::path(path),
        "v1alpha2" => v1alpha2::path(path),
        _ => path.to_owned(),
    }
}
