//! Changing objects: PUT and PATCH, of the whole or of the status.

use super::create::check_namespace;
use super::managers::Ownership;
use super::path::{Sub, Target};
use super::{ApiServer, WriteOptions, managers, metadata, rules};
use crate::error::{ApiError, Cause, CauseReason};
use crate::kinds::{self, pod_resize};
use crate::registry::{Resource, StatusRule};
use crate::schema;
use crate::store::{Change, Commit, CommitError, Content, Object};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often a change is computed anew because the object was written meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// What clients know to mean "read again, then write again".
pub(super) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What a write would make of an object.
pub(super) struct Candidate {
    /// The object in hub form.
    pub(super) value: Value,
    /// What the write says of managed fields.
    pub(super) ownership: Ownership,
}

impl ApiServer {
    /// Replaces an object by what `compute` makes of the stored one. Called again with the newer object if
    /// another write comes between.
    pub(super) fn update(
        &self,
        target: &Target,
        options: WriteOptions<'_>,
        mut compute: impl FnMut(&Object) -> Result<Candidate, ApiError>,
    ) -> Result<Arc<Object>, ApiError> {
        let resource = target.id.resource();
        let key = target.key()?;
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.store.get(target.id, &key);
            let stored = stored.ok_or_else(|| ApiError::not_found(resource, &key.name))?;
            // Held on to, so that it is parsed once at most.
            let old = stored.value();
            let Candidate { value, ownership } = compute(&stored)?;
            let value = match target.sub {
                Some(Sub::Status) => next_status(target, &stored, value)?,
                Some(Sub::Resize) => next_size(target, &stored, value)?,
                _ => next_object(target, &stored, value)?,
            };
            let now = self.store.environment().now();
            let managed = managers::updated(target, &stored, &old, &value, ownership, options, now);
            match self.replace(&stored, Content { value, managed }, options) {
                Ok(object) => return Ok(object),
                Err(CommitError::Missing) => return Err(ApiError::not_found(resource, &key.name)),
                Err(_) => {}
            }
        }
        Err(ApiError::conflict(resource, &key.name, MODIFIED))
    }

    /// Writes the new state of an object, unless nothing changed. A terminating object that nothing holds any
    /// longer is removed instead.
    pub(super) fn replace(
        &self,
        stored: &Arc<Object>,
        new: Content,
        options: WriteOptions<'_>,
    ) -> Result<Arc<Object>, CommitError> {
        if new.value == *stored.value() && new.managed.is_same(stored.managed()) {
            return Ok(Arc::clone(stored));
        }
        let (id, key, expected) = (stored.id(), stored.key().clone(), stored.revision());
        if options.dry_run {
            return Ok(Arc::new(Object::detached(id, key, expected, new)));
        }
        if !rules::is_released(id.resource(), &new.value) {
            let change = Change::Replace { expected, content: new };
            return self.commit(Commit { id, key, change, guard: None });
        }
        // Watchers are told of the state that was stored last; the one that nothing holds any longer never is.
        let last = Content { value: Value::clone(&stored.value()), managed: stored.managed().clone() };
        let change = Change::Remove { expected, last };
        let removed = self.commit(Commit { id, key: key.clone(), change, guard: None })?;
        Ok(Arc::new(Object::detached(id, key, expected, new).at_revision(removed.revision())))
    }
}

/// The stored object after a write of `candidate` through the main endpoint.
fn next_object(target: &Target, stored: &Object, mut candidate: Value) -> Result<Value, ApiError> {
    let resource = target.id.resource();
    let old = &stored.value();
    check_identity(target, stored, &candidate)?;
    if metadata::text(&candidate, "resourceVersion").is_empty()
        && !rules::allows_unconditional_update(resource)
    {
        let cause = Cause {
            reason: CauseReason::Invalid,
            field: "metadata.resourceVersion".to_owned(),
            message: "Invalid value: 0: must be specified for an update".to_owned(),
        };
        let mut error = ApiError::invalid(resource, &stored.key().name, vec![cause]);
        if let Some(details) = &mut error.details {
            details.kind = resource.plural.to_owned();
        }
        error.message = error.message.replacen(resource.kind, resource.plural, 1);
        return Err(error);
    }
    keep_system_fields(old, &mut candidate);
    metadata::drop_empty(&mut candidate);
    if resource.status != StatusRule::None {
        keep(old, &mut candidate, "status");
    }
    kinds::set_defaults(resource, &mut candidate);
    ApiServer::admit_update(resource, old, &mut candidate);
    let mut causes = forbidden_finalizers(old, &candidate);
    causes.extend(kinds::validate_update(resource, old, &candidate));
    if !causes.is_empty() {
        return Err(invalid(target, &stored.key().name, causes));
    }
    if rules::counts_generations(resource) && spec_differs(old, &candidate) {
        metadata::set(&mut candidate, "generation", json!(metadata::generation(old) + 1));
    }
    Ok(candidate)
}

/// The stored pod after a write of `candidate` through `/resize`: only the resources of containers are taken.
fn next_size(target: &Target, stored: &Object, mut candidate: Value) -> Result<Value, ApiError> {
    let resource = target.id.resource();
    check_identity(target, stored, &candidate)?;
    let old = &stored.value();
    kinds::set_defaults(resource, &mut candidate);
    let mut new = pod_resize::resized(old, &candidate);
    let mut causes = schema::wrong_types(resource, resource.hub, &new);
    if causes.is_empty() {
        causes = pod_resize::validate(old, &new);
    }
    if !causes.is_empty() {
        return Err(invalid(target, &stored.key().name, causes));
    }
    if spec_differs(old, &new) {
        metadata::set(&mut new, "generation", json!(metadata::generation(old) + 1));
    }
    Ok(new)
}

/// The stored object after a write of `candidate` through `/status`: only the status is taken, and of some kinds
/// the metadata that everybody may write.
fn next_status(target: &Target, stored: &Object, mut candidate: Value) -> Result<Value, ApiError> {
    let resource = target.id.resource();
    check_identity(target, stored, &candidate)?;
    let status = candidate.as_object_mut().and_then(|map| map.remove("status"));
    let mut new = Value::clone(&stored.value());
    if rules::status_takes_metadata(resource) {
        for field in ["labels", "annotations"] {
            match metadata::of(&candidate).and_then(|metadata| metadata.get(field)) {
                Some(value) => metadata::set(&mut new, field, value.clone()),
                None => metadata::remove(&mut new, field),
            }
        }
        metadata::drop_empty(&mut new);
    }
    if let Some(map) = new.as_object_mut() {
        match status {
            Some(status) => map.insert("status".to_owned(), status),
            None => map.remove("status"),
        };
    }
    kinds::complete_status(resource, &stored.value(), &mut new);
    let causes = kinds::validate_status(resource, &stored.value(), &new);
    if !causes.is_empty() {
        return Err(invalid(target, &stored.key().name, causes));
    }
    Ok(new)
}

/// 422 that names fields as the version of the client does.
pub(super) fn invalid(target: &Target, name: &str, causes: Vec<Cause>) -> ApiError {
    let causes = kinds::causes_in_version(target.id.resource(), target.version, causes);
    ApiError::invalid(target.id.resource(), name, causes)
}

/// The object in a request must be the stored one: same name, same identity, and same version if it says so.
fn check_identity(target: &Target, stored: &Object, candidate: &Value) -> Result<(), ApiError> {
    let resource = target.id.resource();
    let name = &stored.key().name;
    let found = metadata::text(candidate, "name");
    if !found.is_empty() && *found != **name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({name})"
        )));
    }
    check_namespace(target, candidate)?;
    check_preconditions(
        resource,
        stored,
        Some(metadata::text(candidate, "uid")),
        Some(metadata::text(candidate, "resourceVersion")),
    )
}

/// Compares identity and version, where they are given and not empty, with those of the stored object.
pub(super) fn check_preconditions(
    resource: &Resource,
    stored: &Object,
    uid: Option<&str>,
    version: Option<&str>,
) -> Result<(), ApiError> {
    let name = &stored.key().name;
    let object = stored.value();
    let stored_uid = metadata::text(&object, "uid");
    if let Some(uid) = uid.filter(|uid| !uid.is_empty() && *uid != stored_uid) {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}");
        return Err(ApiError::conflict(resource, name, &why));
    }
    let Some(version) = version.filter(|version| !matches!(*version, "" | "0")) else {
        return Ok(());
    };
    let Ok(revision) = version.parse::<u64>() else {
        return Err(ApiError::bad_request(format!(
            "metadata.resourceVersion: {version:?} is not a whole number"
        )));
    };
    if revision == stored.revision() { Ok(()) } else { Err(ApiError::conflict(resource, name, MODIFIED)) }
}

fn keep_system_fields(old: &Value, new: &mut Value) {
    let (Some(old), Some(new)) = (metadata::of(old), metadata::of_mut(new)) else {
        return;
    };
    let kept = ["name", "namespace", "resourceVersion"];
    for field in metadata::SYSTEM_FIELDS.into_iter().chain(kept) {
        match old.get(field) {
            Some(value) => new.insert(field.to_owned(), value.clone()),
            None => new.remove(field),
        };
    }
}

fn keep(old: &Value, new: &mut Value, field: &str) {
    let Some(map) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// Everything but metadata and status counts as the spec.
fn spec_differs(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return old != new;
    };
    let fields: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    fields.into_iter().any(|f| !matches!(f.as_str(), "metadata" | "status") && old.get(f) != new.get(f))
}

/// Nobody may add a reason to wait to an object that is going.
fn forbidden_finalizers(old: &Value, new: &Value) -> Vec<Cause> {
    if !metadata::is_terminating(old) {
        return Vec::new();
    }
    let known: BTreeSet<&str> = metadata::finalizers(old).collect();
    let added: Vec<&str> = metadata::finalizers(new).filter(|f| !known.contains(f)).collect();
    if added.is_empty() {
        return Vec::new();
    }
    let added: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
    let message = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        added.join(", ")
    );
    vec![Cause { reason: CauseReason::Forbidden, field: "metadata.finalizers".to_owned(), message }]
}
