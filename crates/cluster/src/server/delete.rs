//! Removing objects, at once or in steps: grace, finalizers, preconditions.

use super::path::Target;
use super::propagation::{self, Propagation};
use super::update::MODIFIED;
use super::{ApiServer, metadata, rules};
use crate::error::{ApiError, Cause, CauseReason};
use crate::store::{Change, Commit, CommitError, Content, Object, rfc3339_seconds};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

/// How often a deletion is computed anew because the object was written meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// Longest grace: a week. More would overflow no arithmetic, but is no grace.
const GRACE_SECONDS_MAX: i64 = 7 * 24 * 3600;

/// `DeleteOptions`, as far as they are served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeleteOptions {
    pub(super) grace_seconds: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) propagation: Option<Propagation>,
    pub(super) dry_run: bool,
}

impl DeleteOptions {
    /// Reads the options from a body; `Value::Null` is no options.
    pub(super) fn from_body(body: &Value) -> Result<Self, ApiError> {
        let wrong = |field: &str, expected: &str| {
            Err(ApiError::bad_request(format!("DeleteOptions: {field} must be {expected}")))
        };
        let mut options = Self::default();
        match body.get("gracePeriodSeconds") {
            None | Some(Value::Null) => {}
            Some(value) => match value.as_i64() {
                Some(seconds) => options.grace_seconds = Some(seconds.min(GRACE_SECONDS_MAX)),
                None => return wrong("gracePeriodSeconds", "a whole number"),
            },
        }
        match body.get("propagationPolicy").unwrap_or(&Value::Null) {
            Value::Null => {}
            Value::String(policy) => {
                options.propagation = Propagation::parse(policy)?;
                if body.get("orphanDependents").is_some_and(|v| !v.is_null()) {
                    let why = "orphanDependents and deletionPropagation cannot be both set";
                    let message = format!("Invalid value: {policy:?}: {why}");
                    let cause = Cause::new(CauseReason::Invalid, "propagationPolicy", message);
                    return Err(ApiError::invalid_options("DeleteOptions", vec![cause]));
                }
            }
            _ => return wrong("propagationPolicy", "a string"),
        }
        // How old clients ask for the same.
        match body.get("orphanDependents").unwrap_or(&Value::Null) {
            Value::Null => {}
            Value::Bool(true) => options.propagation = Some(Propagation::Orphan),
            Value::Bool(false) => options.propagation = Some(Propagation::Background),
            _ => return wrong("orphanDependents", "true or false"),
        }
        for (field, slot) in [("uid", &mut options.uid), ("resourceVersion", &mut options.resource_version)] {
            match body.get("preconditions").and_then(|p| p.get(field)).unwrap_or(&Value::Null) {
                Value::Null => {}
                Value::String(text) => *slot = Some(text.clone()),
                _ => return wrong(&format!("preconditions.{field}"), "a string"),
            }
        }
        match body.get("dryRun").unwrap_or(&Value::Null) {
            Value::Null => {}
            Value::Array(list) if list.iter().all(|v| v == "All") => options.dry_run = !list.is_empty(),
            _ => return wrong("dryRun", "a list that holds nothing but All"),
        }
        Ok(options)
    }
}

/// What a deletion did.
#[derive(Debug)]
pub(super) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Object>),
    /// The object waits for grace or finalizers.
    Pending(Arc<Object>),
}

/// What has to be done to a stored object to delete it.
enum Step {
    Remove,
    /// Say that it goes, and remove it then if nothing holds it.
    Mark(Value),
    Wait,
}

impl ApiServer {
    /// Deletes an object, or starts to.
    pub(super) fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        let resource = target.id.resource();
        let key = target.key()?;
        let mut marked: Option<Arc<Object>> = None;
        let uid_of = |object: &Object| metadata::text(&object.value(), "uid").to_owned();
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.store.get(target.id, &key);
            // Once it is marked, its kubelet may be the one that removes it, and then somebody may make it again.
            if let Some(marked) = &marked
                && stored.as_deref().is_none_or(|stored| uid_of(stored) != uid_of(marked))
            {
                return Ok(Deleted::Gone(Arc::clone(marked)));
            }
            let stored = stored.ok_or_else(|| ApiError::not_found(resource, &key.name))?;
            if rules::is_immortal(resource, &key.name) {
                return Err(ApiError::forbidden(resource, &key.name, "this namespace may not be deleted"));
            }
            // Once the object is marked, which changes its version, it is known to be the one that is meant.
            if marked.is_none() {
                check_preconditions(&stored, options)?;
            }
            let step = self.deletion_step(&stored, options);
            match self.take_step(&stored, step, options.dry_run) {
                Ok(Deleted::Pending(object)) if rules::is_released(resource, &object.value()) => {
                    if options.dry_run {
                        return Ok(Deleted::Gone(object));
                    }
                    marked = Some(object);
                }
                Ok(deleted) => return Ok(deleted),
                // Missing or changed: the next look says which.
                Err(_) => {}
            }
        }
        Err(ApiError::conflict(resource, &key.name, MODIFIED))
    }

    fn take_step(&self, stored: &Arc<Object>, step: Step, dry_run: bool) -> Result<Deleted, CommitError> {
        let (id, key, expected) = (stored.id(), stored.key().clone(), stored.revision());
        let content = |value| Content { value, managed: stored.managed().clone() };
        match step {
            Step::Wait => Ok(Deleted::Pending(Arc::clone(stored))),
            Step::Remove if dry_run => Ok(Deleted::Gone(Arc::clone(stored))),
            Step::Mark(value) if dry_run => {
                Ok(Deleted::Pending(Arc::new(Object::detached(id, key, expected, content(value)))))
            }
            Step::Remove => {
                let change = Change::Remove { expected, last: content(Value::clone(&stored.value())) };
                self.commit(Commit { id, key, change, guard: None }).map(Deleted::Gone)
            }
            Step::Mark(value) => {
                let change = Change::Replace { expected, content: content(value) };
                self.commit(Commit { id, key, change, guard: None }).map(Deleted::Pending)
            }
        }
    }

    fn deletion_step(&self, stored: &Object, options: &DeleteOptions) -> Step {
        let resource = stored.id().resource();
        let object = &stored.value();
        let asked = options.grace_seconds;
        let finalizers = propagation::finalizers(resource, object, options.propagation);
        let held = !finalizers.is_empty() || rules::removed_by_janitor(resource);
        let grace = rules::grace_seconds(resource, object, asked);
        let now = self.store.environment().now();
        let with_finalizers = |mut object: Value| {
            propagation::set_finalizers(&mut object, &finalizers);
            Step::Mark(object)
        };
        if !metadata::is_terminating(object) {
            // Whoever watches a pod learns that it goes before it is gone.
            let at_once = grace == 0 && !held && !rules::is_pod(resource);
            return if at_once { Step::Remove } else { with_finalizers(marked(stored, now, grace)) };
        }
        // A repeated deletion may shorten the wait but never prolong it. Without a number of its own it does
        // not even shorten it, except where grace no longer applies.
        let current = metadata::grace_seconds(object);
        if grace == 0 && !held && (current == 0 || !runs(stored)) {
            return Step::Remove;
        }
        if grace < current && asked.is_some() {
            return with_finalizers(shortened(stored, grace));
        }
        // A later deletion may have another opinion about dependents.
        let same = metadata::finalizers(object).eq(finalizers.iter().map(String::as_str));
        if same { Step::Wait } else { with_finalizers(Value::clone(object)) }
    }
}

/// The object must be the one that the client means to delete.
fn check_preconditions(stored: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
    let (resource, name, object) = (stored.id().resource(), &stored.key().name, stored.value());
    let refuse = |field: &str, asked: &str, found: &str, how: &str| {
        let why = format!(
            "the {field} in the precondition ({asked}) does not match the {field} in record ({found}). The object \
             might have been {how}"
        );
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", resource.kind, &**name);
        let mut error = ApiError::new(409, "Conflict", message).about(resource, name);
        if let Some(details) = &mut error.details {
            details.kind = resource.kind.to_owned();
        }
        Err(error)
    };
    let uid = metadata::text(&object, "uid");
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != uid) {
        return refuse("UID", asked, uid, "deleted and then recreated");
    }
    let version = stored.revision().to_string();
    match options.resource_version.as_deref().filter(|asked| *asked != version) {
        Some(asked) => refuse("ResourceVersion", asked, &version, "modified"),
        None => Ok(()),
    }
}

/// True if the object is a pod whose kubelet still has to stop it.
fn runs(stored: &Object) -> bool {
    rules::grace_seconds(stored.id().resource(), &stored.value(), Some(1)) > 0
}

/// The object with the marks of a deletion that waits.
fn marked(stored: &Object, now: Timestamp, grace: i64) -> Value {
    let mut object = Value::clone(&stored.value());
    let end = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    metadata::set(&mut object, "deletionTimestamp", json!(rfc3339_seconds(end)));
    let resource = stored.id().resource();
    if !rules::is_namespace(resource) {
        metadata::set(&mut object, "deletionGracePeriodSeconds", json!(grace));
    }
    let generation = metadata::generation(&object);
    if generation > 0 {
        metadata::set(&mut object, "generation", json!(generation + 1));
    }
    if rules::is_namespace(resource)
        && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
    {
        status.insert("phase".to_owned(), json!("Terminating"));
    }
    object
}

/// The object with an earlier end of its grace.
fn shortened(stored: &Object, grace: i64) -> Value {
    let mut object = Value::clone(&stored.value());
    let saved = metadata::grace_seconds(&object) - grace;
    let end = metadata::text(&object, "deletionTimestamp").parse::<Timestamp>();
    if let Ok(end) = end.and_then(|end| end.checked_sub(SignedDuration::from_secs(saved))) {
        metadata::set(&mut object, "deletionTimestamp", json!(rfc3339_seconds(end)));
    }
    metadata::set(&mut object, "deletionGracePeriodSeconds", json!(grace));
    object
}
