//! The `scale` subresource.

use super::managers::Ownership;
use super::path::Target;
use super::update::Candidate;
use super::{ApiServer, WriteOptions};
use crate::error::ApiError;
use crate::kinds::{self, scale};
use crate::patch::Patch;
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
                .map_err(|cause| ApiError::invalid(resource, &stored.key().name, vec![cause]))?;
            let value = kinds::to_hub(resource, resource.hub, object)?;
            Ok(Candidate { value, ownership: Ownership::Tracked { base: None } })
        })?;
        Ok(scale::of(resource, &updated.value()))
    }
}
