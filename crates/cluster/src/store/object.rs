//! One version of one object, immutable and shared: by the table, by the event log, by every reader.

use super::encoded::Encoded;
use crate::kinds;
use crate::ownership::Managed;
use crate::registry::ResourceId;
use axum::body::Bytes;
use serde_json::Value;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

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

/// What is stored of an object: its value, and beside it who manages which field. The value itself has no
/// `metadata.managedFields`; they are written into what clients get.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// The object in hub form.
    pub value: Value,
    /// Who manages what.
    pub managed: Managed,
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self { value, managed: Managed::default() }
    }
}

/// The parsed form of an object. It takes several times the memory of the JSON, so objects that nobody has
/// written for a while keep only that, and are parsed for those who look into them.
#[derive(Debug)]
enum Parsed {
    Kept(Arc<Value>),
    /// Shared by those who look at it at the same time.
    OnDemand(Weak<Value>),
}

/// An object as it was after one write.
#[derive(Debug)]
pub struct Object {
    id: ResourceId,
    key: Key,
    revision: u64,
    managed: Managed,
    parsed: RwLock<Parsed>,
    size: usize,
    // Most objects are read by several watchers and a list or two: they are encoded once a version.
    encoded: [OnceLock<Encoded>; ENCODINGS_MAX],
}

impl Object {
    /// An object with a value in hub form. `size` is what [`json_size`] says of it: the caller may have
    /// computed it outside of a lock.
    pub(super) fn new(id: ResourceId, key: Key, revision: u64, content: Content, size: usize) -> Self {
        Self {
            id,
            key,
            revision,
            managed: content.managed,
            parsed: RwLock::new(Parsed::Kept(Arc::new(content.value))),
            size,
            encoded: Default::default(),
        }
    }

    /// An object that is not in the store: what a dry run would have written.
    pub fn detached(id: ResourceId, key: Key, revision: u64, content: Content) -> Self {
        Self::new(id, key, revision, content, 0)
    }

    /// The same state with another `resourceVersion`, for watchers to whom a later write is its end.
    pub fn at_revision(&self, revision: u64) -> Self {
        let mut value = Value::clone(&self.value());
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        }
        let content = Content { value, managed: self.managed.clone() };
        Self::new(self.id, self.key.clone(), revision, content, self.size)
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

    /// Who manages which field.
    pub fn managed(&self) -> &Managed {
        &self.managed
    }

    /// The object in hub form, without `metadata.managedFields`. Hold on to it for as long as it is needed: it
    /// may have to be parsed anew.
    pub fn value(&self) -> Arc<Value> {
        match &*self.parsed.read().unwrap_or_else(PoisonError::into_inner) {
            Parsed::Kept(value) => return Arc::clone(value),
            Parsed::OnDemand(shared) => {
                if let Some(value) = shared.upgrade() {
                    return value;
                }
            }
        }
        // What was encoded here can be decoded; there is no third form that an object could have.
        let encoded = self.hub_slot().and_then(OnceLock::get);
        let value = Arc::new(encoded.map(Encoded::parse).unwrap_or_default());
        *self.parsed.write().unwrap_or_else(PoisonError::into_inner) =
            Parsed::OnDemand(Arc::downgrade(&value));
        value
    }

    /// Keeps nothing but the JSON, for objects that are not written any longer, or only rarely.
    pub(super) fn compact(&self) {
        let Some(slot) = self.hub_slot() else { return };
        slot.get_or_init(|| self.encode(self.id.resource().hub));
        let mut parsed = self.parsed.write().unwrap_or_else(PoisonError::into_inner);
        if let Parsed::Kept(value) = &*parsed {
            *parsed = Parsed::OnDemand(Arc::downgrade(value));
        }
    }

    fn hub_slot(&self) -> Option<&OnceLock<Encoded>> {
        self.slot(self.id.resource().hub)
    }

    fn slot(&self, version: &str) -> Option<&OnceLock<Encoded>> {
        let resource = self.id.resource();
        // The stored form comes first, and need not be one that is served.
        let others = || resource.versions.iter().filter(|v| **v != resource.hub);
        let slot = if version == resource.hub { 0 } else { 1 + others().position(|v| *v == version)? };
        self.encoded.get(slot)
    }

    /// Approximate length of its JSON.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The object in a served version, without `metadata.managedFields`; shared if that is the stored one.
    pub fn in_version(&self, version: &str) -> Arc<Value> {
        let resource = self.id.resource();
        if resource.hub == version {
            self.value()
        } else {
            Arc::new(kinds::from_hub(resource, version, &self.value()))
        }
    }

    /// The object in a served version, with `metadata.managedFields`.
    pub fn complete_in_version(&self, version: &str) -> Arc<Value> {
        let mut value = self.in_version(version);
        if !self.managed.is_empty()
            && let Some(metadata) =
                Arc::make_mut(&mut value).get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("managedFields".to_owned(), self.managed.to_json());
        }
        value
    }

    /// The JSON of the object in a served version.
    pub fn json(&self, version: &str) -> Bytes {
        let mut out = Vec::new();
        self.write_json(version, &mut out);
        out.into()
    }

    /// Appends the JSON of the object in a served version.
    pub fn write_json(&self, version: &str, out: &mut Vec<u8>) {
        match self.slot(version) {
            Some(slot) => slot.get_or_init(|| self.encode(version)).write(&self.managed, out),
            None => self.encode(version).write(&self.managed, out),
        }
    }

    /// Appends the JSON of the object as an item of a list, which says what its items are. Lists of custom objects do
    /// not, and their items are complete.
    pub fn write_item(&self, version: &str, out: &mut Vec<u8>) {
        if self.id.resource().custom.is_some() {
            return self.write_json(version, out);
        }
        match self.slot(version) {
            Some(slot) => slot.get_or_init(|| self.encode(version)).write_item(&self.managed, out),
            None => self.encode(version).write_item(&self.managed, out),
        }
    }

    fn encode(&self, version: &str) -> Encoded {
        Encoded::new(&self.in_version(version))
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
