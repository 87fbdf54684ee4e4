//! Server-side apply: the verb. What it decides is in [`crate::ownership`].

use super::managers::{self, Ownership};
use super::path::Target;
use super::update::Candidate;
use super::{ApiServer, WriteOptions, body, metadata};
use crate::error::{ApiError, Cause, CauseReason};
use crate::kinds;
use crate::ownership::apply::Apply;
use crate::ownership::{FieldSet, Managed, Operation};
use crate::registry::api_version;
use crate::schema::{self, KindVersions};
use crate::store::Object;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where `kubectl apply` without `--server-side` keeps what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager whose former client-side applies count as its own.
const KUBECTL: &str = "kubectl";

/// How often an apply is tried again because the object came or went meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// What an apply did.
pub(super) enum Outcome {
    /// There was no such object.
    Created(Arc<Object>),
    /// There was one.
    Updated(Arc<Object>),
}

/// 422 for an apply without a name for its manager.
pub(super) fn manager_required() -> ApiError {
    let cause = Cause {
        reason: CauseReason::Required,
        field: "fieldManager".to_owned(),
        message: "Required value: is required for apply patch".to_owned(),
    };
    ApiError::invalid_options("PatchOptions", vec![cause])
}

/// 422 for `force` where nothing is applied.
pub(super) fn force_forbidden() -> ApiError {
    let cause = Cause {
        reason: CauseReason::Forbidden,
        field: "force".to_owned(),
        message: "Forbidden: may not be specified for non-apply patch".to_owned(),
    };
    ApiError::invalid_options("PatchOptions", vec![cause])
}

impl ApiServer {
    /// Applies an object. Warnings are added to `warnings`.
    pub(super) fn apply(
        &self,
        target: &Target,
        applied: &Value,
        force: bool,
        options: WriteOptions<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Outcome, ApiError> {
        check_applied(target, applied)?;
        let key = target.key()?;
        for _ in 0..ATTEMPTS_MAX {
            if target.sub.is_none() && self.store.get(target.id, &key).is_none() {
                match self.create_applied(target, applied, options, warnings) {
                    Err(error) if error.reason == "AlreadyExists" => continue,
                    other => return other.map(Outcome::Created),
                }
            }
            let updated = self.update(target, options, |stored| {
                self.applied_to(target, applied, force, options, stored, warnings)
            });
            match updated {
                Err(error) if error.code == 404 && target.sub.is_none() => {}
                other => return other.map(Outcome::Updated),
            }
        }
        let why = "it was created and deleted again and again meanwhile; try again";
        Err(ApiError::conflict(target.id.resource(), &key.name, why))
    }

    /// What an apply makes of a stored object.
    fn applied_to(
        &self,
        target: &Target,
        applied: &Value,
        force: bool,
        options: WriteOptions<'_>,
        stored: &Object,
        warnings: &mut Vec<String>,
    ) -> Result<Candidate, ApiError> {
        let resource = target.id.resource();
        let live = stored.in_version(target.version);
        let writer = managers::writer(target, options.manager, Operation::Apply);
        let versions = KindVersions::of(resource);
        let apply = Apply {
            versions: &versions,
            applied,
            writer: &writer,
            force,
            scope: &managers::scope(target),
            empty: &managers::empty_object(resource),
            now: self.store.environment().now().as_second(),
        };
        let last_applied = last_applied(&live).filter(|_| options.manager == KUBECTL);
        let yielded = last_applied
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .filter(|last| last.get("apiVersion").and_then(Value::as_str) == Some(&*writer.api_version))
            .map(|last| apply.unchanged_since(&last, &live));
        let done = apply.to(&live, stored.managed(), &yielded.unwrap_or_default())?;
        let mut object = done.object.unwrap_or_else(|| Value::clone(&live));
        if last_applied.is_some() {
            remember_applied(&mut object, applied);
        }
        // The applied object is no word on which state of the live one it is meant for, unless it says so.
        for field in ["resourceVersion", "uid"] {
            let asked = metadata::text(applied, field);
            let value = if asked.is_empty() { metadata::text(&live, field) } else { asked };
            metadata::set(&mut object, field, json!(value));
        }
        warnings.clear();
        warnings.extend(body::admit(target, &mut object, &[], options.validation)?);
        let value = kinds::to_hub(resource, target.version, object)?;
        Ok(Candidate { value, ownership: Ownership::Decided(done.managed) })
    }

    fn create_applied(
        &self,
        target: &Target,
        applied: &Value,
        options: WriteOptions<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<Object>, ApiError> {
        let resource = target.id.resource();
        let name = target.name.as_deref().unwrap_or_default();
        let uid = metadata::text(applied, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(resource, name, &why));
        }
        let writer = managers::writer(target, options.manager, Operation::Apply);
        let apply = Apply {
            versions: &KindVersions::of(resource),
            applied,
            writer: &writer,
            force: true,
            scope: &managers::scope(target),
            empty: &json!({}),
            now: self.store.environment().now().as_second(),
        };
        let done = apply.to(&json!({}), &Managed::default(), &FieldSet::default())?;
        let mut object = done.object.unwrap_or_else(|| applied.clone());
        metadata::set(&mut object, "name", json!(name));
        warnings.clear();
        warnings.extend(body::admit(target, &mut object, &[], options.validation)?);
        let collection = Target { name: None, ..target.clone() };
        self.create(&collection, object, options, Some(&done.managed))
    }
}

/// The applied object must be of the kind and version of the path, have no managed fields, and no fields or
/// types that the schema does not know: nobody could manage those.
fn check_applied(target: &Target, applied: &Value) -> Result<(), ApiError> {
    let resource = target.id.resource();
    let expected = api_version(resource.group, target.version);
    let text = |field| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != expected || text("kind") != resource.kind {
        return Err(ApiError::bad_request(format!(
            "invalid object type: {}, Kind={}; the path expects {expected}, Kind={}",
            text("apiVersion"),
            text("kind"),
            resource.kind
        )));
    }
    let metadata = metadata::of(applied);
    if applied.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err(ApiError::bad_request("metadata must be an object"));
    }
    if metadata.is_some_and(|m| m.get("managedFields").is_some_and(|v| !v.is_null())) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let (found, name) = (metadata::text(applied, "name"), target.name.as_deref().unwrap_or_default());
    if !found.is_empty() && found != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({name})"
        )));
    }
    let refuse = |path: &str, why: &str| {
        let (namespace, kind) = (&target.namespace, resource.kind);
        Err(ApiError::bad_request(format!(
            "failed to create typed patch object ({namespace}/{name}; {expected}, Kind={kind}): .{path}: {why}"
        )))
    };
    if let Some(unknown) = schema::unknown_fields(resource, target.version, applied).first() {
        return refuse(unknown, "field not declared in schema");
    }
    if let Some(wrong) = schema::wrong_types(resource, target.version, applied).first() {
        return refuse(&wrong.field, &wrong.message);
    }
    Ok(())
}

fn last_applied(object: &Value) -> Option<&str> {
    let annotations = metadata::of(object)?.get("annotations")?.as_object()?;
    annotations.get(LAST_APPLIED)?.as_str().filter(|text| !text.is_empty())
}

/// Keeps the annotation of client-side apply true, for those who go back to it.
fn remember_applied(object: &mut Value, applied: &Value) {
    let mut applied = applied.clone();
    let annotations = |object: &mut Value| -> Option<()> {
        metadata::of_mut(object)?.get_mut("annotations")?.as_object_mut()?.remove(LAST_APPLIED);
        Some(())
    };
    annotations(&mut applied);
    let place =
        metadata::of_mut(object).and_then(|m| m.get_mut("annotations")).and_then(Value::as_object_mut);
    if let Some(place) = place.filter(|place| place.contains_key(LAST_APPLIED)) {
        place.insert(LAST_APPLIED.to_owned(), json!(format!("{applied}\n")));
    }
}
