//! One version of one object, immutable and shared: by the table, by the event log, by every reader.

use crate::kinds;
use crate::registry::ResourceId;
use axum::body::Bytes;
use serde_json::Value;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// How many served versions of an object keep their encoded form. More versions than this work, but are
/// encoded anew for every reader.
const ENCODINGS_MAX: usize = 2;

/// Where an object lives within its resource. Ordered by namespace, then name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object; the namespace is empty for cluster-scoped ones.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// An object as it was after one write.
#[derive(Debug)]
pub struct Object {
    id: ResourceId,
    key: Key,
    revision: u64,
    /// Gone once the object is history: a parsed object takes ten times the memory of its JSON.
    value: RwLock<Option<Arc<Value>>>,
    size: usize,
    // Most objects are read by several watchers and a list or two: they are encoded once a version.
    encoded: [OnceLock<Bytes>; ENCODINGS_MAX],
}

impl Object {
    /// An object with a value in hub form. `size` is what [`json_size`] says of it: the caller may have
    /// computed it outside of a lock.
    pub(super) fn new(id: ResourceId, key: Key, revision: u64, value: Value, size: usize) -> Self {
        Self {
            id,
            key,
            revision,
            value: RwLock::new(Some(Arc::new(value))),
            size,
            encoded: Default::default(),
        }
    }

    /// An object that is not in the store: what a dry run would have written.
    pub fn detached(id: ResourceId, key: Key, revision: u64, value: Value) -> Self {
        Self::new(id, key, revision, value, 0)
    }

    /// The same state with another `resourceVersion`, for watchers to whom a later write is its end.
    pub fn at_revision(&self, revision: u64) -> Self {
        let mut value = Value::clone(&self.value());
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        }
        Self::new(self.id, self.key.clone(), revision, value, self.size)
    }

    /// What kind of object this is.
    pub fn id(&self) -> ResourceId {
        self.id
    }

    /// Where it lives.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The revision of the write that made it so.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object in hub form.
    pub fn value(&self) -> Arc<Value> {
        let value = self.value.read().unwrap_or_else(PoisonError::into_inner).clone();
        // What was encoded here can be decoded; there is no third form that an object could have.
        value.unwrap_or_else(|| {
            let json = self.hub_slot().and_then(|slot| slot.get());
            Arc::new(json.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default())
        })
    }

    /// Keeps nothing but the JSON. For objects that are history: they are still read, but rarely.
    pub(super) fn compact(&self) {
        let Some(slot) = self.hub_slot() else { return };
        slot.get_or_init(|| self.encode(self.id.resource().hub));
        *self.value.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn hub_slot(&self) -> Option<&OnceLock<Bytes>> {
        let resource = self.id.resource();
        let slot = resource.versions.iter().position(|v| *v == resource.hub)?;
        self.encoded.get(slot)
    }

    /// Approximate length of its JSON.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The object in a served version; shared if that is the stored one.
    pub fn in_version(&self, version: &str) -> Arc<Value> {
        let resource = self.id.resource();
        if resource.hub == version {
            self.value()
        } else {
            Arc::new(kinds::from_hub(resource, version, &self.value()))
        }
    }

    /// The JSON of the object in a served version.
    pub fn json(&self, version: &str) -> Bytes {
        let slot = self.id.resource().versions.iter().position(|v| *v == version);
        match slot.and_then(|slot| self.encoded.get(slot)) {
            Some(cache) => cache.get_or_init(|| self.encode(version)).clone(),
            None => self.encode(version),
        }
    }

    fn encode(&self, version: &str) -> Bytes {
        let resource = self.id.resource();
        let bytes = if resource.hub == version {
            serde_json::to_vec(&*self.value())
        } else {
            serde_json::to_vec(&kinds::from_hub(resource, version, &self.value()))
        };
        // A JSON value has only string keys and no foreign serialisers: encoding it cannot fail.
        bytes.unwrap_or_default().into()
    }
}

/// Approximate length of the JSON of a value: exact but for escapes and long numbers.
pub fn json_size(value: &Value) -> usize {
    const NUMBER: usize = 8;
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => NUMBER,
        Value::String(s) => s.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|v| json_size(v) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(k, v)| k.len() + 4 + json_size(v)).sum::<usize>(),
    }
}
