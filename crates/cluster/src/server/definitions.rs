//! Definitions of custom kinds: what follows from a write of one. The kinds that are served follow at once, in the
//! same request, so that whoever has made a definition can use it; objects of a kind go before its definition does.

use super::delete::DeleteOptions;
use super::path::Target;
use super::{ApiServer, metadata};
use crate::custom::{self, Judged};
use crate::registry::{CustomState, ResourceId};
use crate::store::{Change, Commit, Content, Object, Range, rfc3339_seconds};
use serde_json::Value;
use std::sync::{Arc, PoisonError};

/// Objects of a kind that are deleted in one step.
const SWEEP_MAX: usize = 1024;

/// The resource of definitions.
pub(super) fn definitions() -> Option<ResourceId> {
    ResourceId::of_kind(custom::GROUP, custom::KIND)
}

impl ApiServer {
    /// Serves what the definitions say, and tells them so in their status.
    pub(super) fn serve_definitions(&self) {
        // One at a time: of two writers, the later one must also be the later one to decide what is served.
        let _order = self.serving_definitions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = definitions() else { return };
        let mut stored = self.store.list(id, Range::default()).objects;
        // Who has names keeps them; beyond that, who came first.
        stored.sort_by_cached_key(|object| {
            let value = object.value();
            let created = metadata::text(&value, "creationTimestamp").to_owned();
            (!custom::is_established(&value), created, object.key().clone())
        });
        let values: Vec<Arc<Value>> = stored.iter().map(|object| object.value()).collect();
        let judged = custom::judge(values.iter().map(|value| &**value));
        // Before anybody can find a new kind, there must be a place for its objects.
        self.store.grow(self.catalog.ids().count() + judged.len());
        self.catalog.set_custom(judged.iter().filter_map(|judged| {
            let state = if judged.terminating { CustomState::Terminating } else { CustomState::Served };
            judged.resource.as_ref().ok().map(|resource| (*resource, state))
        }));
        for (object, judged) in stored.iter().zip(&judged) {
            self.write_status(object, judged);
        }
    }

    fn write_status(&self, object: &Object, judged: &Judged) {
        let now = rfc3339_seconds(self.store.environment().now());
        let mut value = Value::clone(&object.value());
        let Some(status) = judged.status(&value, &now) else { return };
        if let Some(map) = value.as_object_mut() {
            map.insert("status".to_owned(), status);
        }
        let content = Content { value, managed: object.managed().clone() };
        let change = Change::Replace { expected: object.revision(), content };
        // If it was written meanwhile, the writer comes here next.
        let _ = self.store.commit(Commit { id: object.id(), key: object.key().clone(), change, guard: None });
    }

    /// Deletes objects whose definition is going, and the definition once they are gone. True if there is more to
    /// do now.
    pub(super) fn sweep_definitions(&self) -> bool {
        let Some(id) = definitions() else { return false };
        let mut more = false;
        for definition in self.store.list(id, Range::default()).objects {
            let value = definition.value();
            if metadata::is_terminating(&value) {
                more |= self.sweep_definition(&definition, &value);
            }
        }
        more
    }

    fn sweep_definition(&self, definition: &Object, value: &Value) -> bool {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let kind = self.catalog.of_kind(text("/spec/group"), text("/spec/names/kind"));
        // A definition that never got its names has no objects; those of its kind belong to another one.
        let kind = kind.filter(|kind| {
            kind.resource().custom.is_some() && kind.resource().plural == text("/spec/names/plural")
        });
        let objects = kind.map_or_else(Vec::new, |kind| self.store.list(kind, Range::default()).objects);
        let mut more = false;
        for object in
            objects.iter().filter(|object| !metadata::is_terminating(&object.value())).take(SWEEP_MAX)
        {
            let target = Target {
                id: object.id(),
                version: object.id().resource().hub,
                namespace: object.key().namespace.to_string(),
                name: Some(object.key().name.to_string()),
                sub: None,
            };
            // Gone already, or kept by a finalizer: the next step sees.
            more |= self.delete(&target, &DeleteOptions::default()).is_ok();
        }
        if objects.is_empty() && metadata::finalizers(value).next().is_none() {
            let last = Content { value: value.clone(), managed: definition.managed().clone() };
            let change = Change::Remove { expected: definition.revision(), last };
            let commit = Commit { id: definition.id(), key: definition.key().clone(), change, guard: None };
            return self.commit(commit).is_err();
        }
        more
    }
}
