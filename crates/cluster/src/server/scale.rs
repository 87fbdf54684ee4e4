//! The `scale` subresource.

use super::managers::Ownership;
use super::path::Target;
use super::update::Candidate;
use super::{ApiServer, WriteOptions};
use crate::error::{ApiError, Cause};
use crate::kinds::{self, scale};
use crate::patch::Patch;
use crate::registry::Resource;
use serde_json::Value;

impl ApiServer {
    /// The scale of an object.
    pub(super) fn scale(&self, target: &Target) -> Result<Value, ApiError> {
        let key = target.key()?;
        let stored = self.store.get(target.id, &key);
        let stored = stored.ok_or_else(|| ApiError::not_found(target.id.resource(), &key.name))?;
        Ok(scale::of(target.id.resource(), &stored.value()))
    }

    /// Replaces the scale of an object.
    pub(super) fn put_scale(
        &self,
        target: &Target,
        asked: &Value,
        options: WriteOptions<'_>,
    ) -> Result<Value, ApiError> {
        self.change_scale(target, options, |_| Ok(asked.clone()))
    }

    /// Patches the scale of an object.
    pub(super) fn patch_scale(
        &self,
        target: &Target,
        patch: &Patch,
        options: WriteOptions<'_>,
    ) -> Result<Value, ApiError> {
        self.change_scale(target, options, |current| {
            let mut scale = current.clone();
            patch.apply(target.id.resource(), target.version, &mut scale)?;
            Ok(scale)
        })
    }

    fn change_scale(
        &self,
        target: &Target,
        options: WriteOptions<'_>,
        change: impl Fn(&Value) -> Result<Value, ApiError>,
    ) -> Result<Value, ApiError> {
        let resource = target.id.resource();
        let updated = self.update(target, options, |stored| {
            let mut object = Value::clone(&stored.value());
            let asked = change(&scale::of(resource, &object))?;
            scale::put(resource, &asked, &mut object)
                .map_err(|cause| invalid(resource, &stored.key().name, cause))?;
            let value = kinds::to_hub(resource, resource.hub, object)?;
            Ok(Candidate { value, ownership: Ownership::Tracked { base: None } })
        })?;
        Ok(scale::of(resource, &updated.value()))
    }
}

/// 422 that is about the scale, not about what it belongs to. The scales of custom objects have no rules of their own.
fn invalid(resource: &Resource, name: &str, cause: Cause) -> ApiError {
    let mut error = ApiError::invalid(resource, name, vec![cause]);
    if resource.custom.is_none() {
        if let Some(details) = &mut error.details {
            "autoscaling".clone_into(&mut details.group);
            "Scale".clone_into(&mut details.kind);
        }
        let own = format!("{}.{}", resource.kind, resource.group);
        error.message = error.message.replacen(&own, "Scale.autoscaling", 1);
    }
    error
}
