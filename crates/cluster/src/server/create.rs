//! Making objects.

use super::path::Target;
use super::update::invalid;
use super::{ApiServer, WriteOptions, managers, metadata, rules};
use crate::error::{ApiError, Cause, CauseReason};
use crate::kinds;
use crate::ownership::Managed;
use crate::registry::{ResourceId, StatusRule};
use crate::store::{Change, Commit, CommitError, Content, Guard, Key, Object, rfc3339_seconds};
use serde_json::{Value, json};
use std::sync::Arc;

/// How often a name is generated anew, and how often a create is tried again because its namespace changed.
const ATTEMPTS_MAX: usize = 8;

/// Length of a generated name, the random part included. Kubernetes cuts the given part so that names that
/// become parts of host names fit.
const GENERATED_NAME_MAX: usize = 63;

/// Letters of generated names: no vowels and nothing that looks like another, so that no words appear.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Random letters of a generated name.
const NAME_LETTERS_COUNT: usize = 5;

impl ApiServer {
    /// Creates an object from a decoded and admitted body in the version of the target. All its fields belong
    /// to its creator, unless an apply has decided `managed` already.
    pub(super) fn create(
        &self,
        target: &Target,
        body: Value,
        options: WriteOptions<'_>,
        managed: Option<&Managed>,
    ) -> Result<Arc<Object>, ApiError> {
        let resource = target.id.resource();
        if !self.catalog.accepts_new(target.id) {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::new(405, "MethodNotAllowed", message).about(resource, ""));
        }
        let mut object = kinds::to_hub(resource, target.version, body)?;
        self.prepare_new(target, &mut object)?;
        let prefix = metadata::text(&object, "generateName").to_owned();
        let generated = metadata::text(&object, "name").is_empty() && !prefix.is_empty();
        let left_to_cluster = managers::left_to_cluster(resource, &object);
        for _ in 0..ATTEMPTS_MAX {
            if generated {
                let name = self.generated_name(&prefix);
                metadata::set(&mut object, "name", Value::String(name));
            }
            let name = metadata::text(&object, "name").to_owned();
            let guard = self.namespace_guard(target, &name)?;
            let mut object = object.clone();
            kinds::prepare_new(resource, &mut object);
            kinds::set_defaults(resource, &mut object);
            // What admission adds is the decision of the cluster, which manages no fields.
            let managed = match managed {
                Some(managed) => managed.clone(),
                None => {
                    let now = self.store.environment().now();
                    managers::created(target, &object, &left_to_cluster, options, now)
                }
            };
            self.admit_new(resource, &mut object)?;
            let causes = kinds::validate_create(resource, &object);
            if !causes.is_empty() {
                return Err(invalid(target, &name, causes));
            }
            self.check_admitted(resource, &object)?;
            let key = Key::new(&target.namespace, &name);
            let content = Content { value: object, managed };
            match self.insert(target, key, content, guard, options) {
                Ok(created) => return Ok(created),
                Err(CommitError::Exists) if generated => {}
                Err(CommitError::Exists) => return Err(ApiError::already_exists(resource, &name)),
                // The namespace was written meanwhile; look at it again.
                Err(_) => {}
            }
        }
        let why =
            format!("no free name or no quiet namespace was found in {ATTEMPTS_MAX} attempts; try again");
        Err(ApiError::conflict(resource, metadata::text(&object, "name"), &why))
    }

    /// Stores an object of the cluster itself, which need not pass the rules for those of users.
    pub(super) fn create_unchecked(
        &self,
        id: ResourceId,
        name: &str,
        mut object: Value,
    ) -> Result<Arc<Object>, ApiError> {
        let target =
            Target { id, version: id.resource().hub, namespace: String::new(), name: None, sub: None };
        self.prepare_new(&target, &mut object)?;
        let commit =
            Commit { id, key: Key::new("", name), change: Change::Create(object.into()), guard: None };
        self.commit(commit).map_err(|_| ApiError::already_exists(id.resource(), name))
    }

    fn insert(
        &self,
        target: &Target,
        key: Key,
        content: Content,
        guard: Option<Guard>,
        options: WriteOptions<'_>,
    ) -> Result<Arc<Object>, CommitError> {
        if !options.dry_run {
            return self.commit(Commit { id: target.id, key, change: Change::Create(content), guard });
        }
        let change = Change::Create(Content::default());
        self.store.check(&Commit { id: target.id, key: key.clone(), change, guard })?;
        Ok(Arc::new(Object::detached(target.id, key, 0, content)))
    }

    /// Sets what the server decides about a new object, and takes away what the client may not decide.
    fn prepare_new(&self, target: &Target, object: &mut Value) -> Result<(), ApiError> {
        let resource = target.id.resource();
        if !matches!(metadata::text(object, "resourceVersion"), "" | "0") {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        check_namespace(target, object)?;
        metadata::drop_empty(object);
        if resource.status == StatusRule::Separate
            && let Some(map) = object.as_object_mut()
        {
            map.remove("status");
        }
        let environment = self.store.environment();
        let Some(metadata) = metadata::of_mut(object) else {
            return Err(ApiError::bad_request("metadata must be an object"));
        };
        for field in
            metadata::SYSTEM_FIELDS.into_iter().chain(["resourceVersion", "selfLink", "managedFields"])
        {
            metadata.remove(field);
        }
        if resource.namespaced {
            metadata.insert("namespace".to_owned(), json!(target.namespace));
        } else {
            // A namespace on an object that lives in none is ignored.
            metadata.remove("namespace");
        }
        metadata.insert("uid".to_owned(), json!(environment.uid()));
        metadata.insert("creationTimestamp".to_owned(), json!(rfc3339_seconds(environment.now())));
        if rules::has_generation(resource) {
            metadata.insert("generation".to_owned(), json!(1));
        }
        Ok(())
    }

    /// The namespace must exist and live, at the very moment of the write.
    fn namespace_guard(&self, target: &Target, name: &str) -> Result<Option<Guard>, ApiError> {
        let (true, Some(id)) = (target.id.resource().namespaced, rules::namespaces()) else {
            return Ok(None);
        };
        let key = Key::new("", &target.namespace);
        let Some(namespace) = self.store.get(id, &key) else {
            return Err(ApiError::not_found(id.resource(), &target.namespace));
        };
        if metadata::is_terminating(&namespace.value()) {
            let why = format!(
                "unable to create new content in namespace {} because it is being terminated",
                target.namespace
            );
            let message = format!("namespace {} is being terminated", target.namespace);
            let cause = Cause::new(CauseReason::NamespaceTerminating, "metadata.namespace", message);
            return Err(ApiError::forbidden(target.id.resource(), name, &why).because(cause));
        }
        Ok(Some(Guard::Unchanged { id, key, revision: namespace.revision() }))
    }

    fn generated_name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(GENERATED_NAME_MAX - NAME_LETTERS_COUNT);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = prefix.get(..end).unwrap_or_default().to_owned();
        let mut random = self.store.environment().random();
        let letters = NAME_LETTERS.len() as u64;
        for _ in 0..NAME_LETTERS_COUNT {
            let letter = NAME_LETTERS.get((random % letters) as usize).copied().unwrap_or(b'x');
            name.push(char::from(letter));
            random /= letters;
        }
        name
    }
}

/// The namespace in an object must be that of the path.
pub(super) fn check_namespace(target: &Target, object: &Value) -> Result<(), ApiError> {
    let found = metadata::text(object, "namespace");
    if !target.id.resource().namespaced {
        return Ok(());
    }
    if target.namespace.is_empty() {
        return Err(ApiError::bad_request("an empty namespace may not be set during creation"));
    }
    if found.is_empty() || found == target.namespace {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}
