//! The state of the cluster: all objects and their recent past. [`Store`] is what the server asks of it; this one keeps
//! everything in memory.
//!
//! Writes are totally ordered: one lock, one revision counter for everything. What happens under the lock is
//! small – a look-up, a few pointers, one field of the object – and never includes encoding, conversion or
//! validation. Readers take shared pointers and do their work outside. Watchers read the event log at their
//! own pace and are woken by a channel that holds nothing but the newest revision, so that a slow one costs
//! a writer nothing.
//!
//! The store knows nothing of kinds: rules about pods and namespaces live in the server.

mod encoded;
mod env;
mod interface;
mod log;
mod object;

pub use env::{Environment, SystemEnvironment, rfc3339_seconds};
pub use interface::Store;
pub use log::{Event, EventKind, Limits, TooOld};
pub use object::{Content, Key, Object, json_size};

use crate::registry::ResourceId;
use log::EventLog;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::watch;

/// A change of one object.
#[derive(Debug)]
pub enum Change {
    /// It must not exist yet.
    Create(Content),
    /// It must exist at this revision.
    Replace {
        /// Revision that the new value was computed from.
        expected: u64,
        /// The new state.
        content: Content,
    },
    /// It must exist at this revision.
    Remove {
        /// Revision at which the removal was decided.
        expected: u64,
        /// Last state, for watchers.
        last: Content,
    },
}

/// What else must hold at the moment of a write.
#[derive(Debug)]
pub enum Guard {
    /// Another object is still as it was read.
    Unchanged {
        /// Its resource.
        id: ResourceId,
        /// Its key.
        key: Key,
        /// The revision that was read.
        revision: u64,
    },
    /// No object of any resource lives in this namespace.
    NamespaceEmpty(Arc<str>),
}

/// A write, complete.
#[derive(Debug)]
pub struct Commit {
    /// Resource of the object.
    pub id: ResourceId,
    /// Where it lives.
    pub key: Key,
    /// What to do.
    pub change: Change,
    /// Under which further condition.
    pub guard: Option<Guard>,
}

/// Why a write was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Create: it exists.
    #[error("the object exists already")]
    Exists,
    /// Replace or remove: it does not exist.
    #[error("the object does not exist")]
    Missing,
    /// Replace or remove: it has another revision.
    #[error("the object was changed meanwhile")]
    Stale,
    /// The guard does not hold.
    #[error("the condition of the write does not hold")]
    Guard,
}

/// Some objects of one resource, in the order of their keys.
#[derive(Debug)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// The revision at which they all were so.
    pub revision: u64,
    /// True if there are more behind the last one.
    pub more: bool,
}

/// Which objects of a resource to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range<'a> {
    /// Only this namespace.
    pub namespace: Option<&'a str>,
    /// Only keys behind this one.
    pub after: Option<&'a Key>,
    /// At most so many; `None` is no limit.
    pub limit: Option<usize>,
}

/// Events of one resource.
#[derive(Debug)]
pub struct Events {
    /// Oldest first.
    pub events: Vec<Arc<Event>>,
    /// Everything up to this revision is known to a reader that has seen these.
    pub revision: u64,
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    log: EventLog,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    tables: Vec<Table>,
}

/// All objects of the cluster, in memory.
pub struct MemoryStore {
    state: RwLock<State>,
    limits: Limits,
    changed_any: watch::Sender<u64>,
    environment: Arc<dyn Environment>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(limits: Limits, environment: Arc<dyn Environment>) -> Self {
        // Zero means "any" in requests, so no state may have it as its revision.
        let state = RwLock::new(State { revision: 1, tables: Vec::new() });
        let store = Self { state, limits, changed_any: watch::Sender::new(1), environment };
        store.grow(ResourceId::all().count());
        store
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic under the lock cannot leave a half-done write: `apply` has no fallible step.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn grow(&self, resources: usize) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        while state.tables.len() < resources {
            let changed = watch::Sender::new(state.revision);
            state.tables.push(Table { objects: BTreeMap::new(), log: EventLog::new(self.limits), changed });
        }
    }

    fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    fn revision(&self) -> u64 {
        self.read().revision
    }

    fn get(&self, id: ResourceId, key: &Key) -> Option<Arc<Object>> {
        self.read().table(id).objects.get(key).cloned()
    }

    fn get_with_revision(&self, id: ResourceId, key: &Key) -> (Option<Arc<Object>>, u64) {
        let state = self.read();
        (state.table(id).objects.get(key).cloned(), state.revision)
    }

    fn list(&self, id: ResourceId, range: Range<'_>) -> Page {
        let state = self.read();
        let present = state.table(id).range(range).map(|(_, object)| object);
        page(present, range.limit, state.revision)
    }

    fn count(&self, id: ResourceId, range: Range<'_>) -> usize {
        self.read().table(id).range(range).count()
    }

    fn list_at(&self, id: ResourceId, revision: u64, range: Range<'_>) -> Result<Page, TooOld> {
        let state = self.read();
        let table = state.table(id);
        // Of all events of a key since then, the first one tells what was before.
        let mut before: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        for event in table.log.after(revision)?.filter(|event| range.contains(event.object.key())) {
            before.entry(event.object.key()).or_insert(event.previous.as_ref());
        }
        if before.is_empty() {
            return Ok(page(table.range(range).map(|(_, object)| object), range.limit, revision));
        }
        let untouched = table.range(range).filter(|(key, _)| !before.contains_key(key)).map(|(_, o)| o);
        let undone = before.values().filter_map(|object| *object);
        Ok(page(merge_by_key(untouched, undone), range.limit, revision))
    }

    fn events(&self, id: ResourceId, after: u64, max: usize) -> Result<Events, TooOld> {
        let state = self.read();
        let events: Vec<_> = state.table(id).log.after(after)?.take(max).cloned().collect();
        let revision = match events.last() {
            Some(last) if events.len() == max => last.revision(),
            _ => state.revision,
        };
        Ok(Events { events, revision })
    }

    fn subscribe(&self, id: ResourceId) -> watch::Receiver<u64> {
        self.read().table(id).changed.subscribe()
    }

    fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.changed_any.subscribe()
    }

    fn check(&self, commit: &Commit) -> Result<(), CommitError> {
        self.read().check(commit)
    }

    fn commit(&self, commit: Commit) -> Result<Arc<Object>, CommitError> {
        let size = match &commit.change {
            Change::Create(content)
            | Change::Replace { content, .. }
            | Change::Remove { last: content, .. } => json_size(&content.value),
        };
        let (object, cooled, changed) = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            state.check(&commit)?;
            let changed = state.table(commit.id).changed.clone();
            let (object, cooled) = state.apply(commit, size);
            (object, cooled, changed)
        };
        if let Some(event) = cooled {
            event.compact();
        }
        for channel in [&changed, &self.changed_any] {
            // Two writers may get here in either order; the newest revision wins.
            channel.send_if_modified(|newest| {
                let newer = object.revision() > *newest;
                *newest = object.revision().max(*newest);
                newer
            });
        }
        Ok(object)
    }
}

impl State {
    fn table(&self, id: ResourceId) -> &Table {
        &self.tables[id.index()]
    }

    fn check(&self, commit: &Commit) -> Result<(), CommitError> {
        let stored = self.table(commit.id).objects.get(&commit.key);
        match (&commit.change, stored) {
            (Change::Create(_), Some(_)) => return Err(CommitError::Exists),
            (Change::Create(_), None) => {}
            (_, None) => return Err(CommitError::Missing),
            (Change::Replace { expected, .. } | Change::Remove { expected, .. }, Some(object)) => {
                if object.revision() != *expected {
                    return Err(CommitError::Stale);
                }
            }
        }
        let holds = match &commit.guard {
            None => true,
            Some(Guard::Unchanged { id, key, revision }) => {
                self.table(*id).objects.get(key).is_some_and(|o| o.revision() == *revision)
            }
            Some(Guard::NamespaceEmpty(namespace)) => {
                let range = Range { namespace: Some(namespace), ..Range::default() };
                self.tables.iter().all(|table| table.range(range).next().is_none())
            }
        };
        if holds { Ok(()) } else { Err(CommitError::Guard) }
    }

    fn apply(&mut self, commit: Commit, size: usize) -> (Arc<Object>, Option<Arc<Event>>) {
        self.revision += 1;
        let revision = self.revision;
        let Commit { id, key, change, .. } = commit;
        let (kind, mut content) = match change {
            Change::Create(content) => (EventKind::Added, content),
            Change::Replace { content, .. } => (EventKind::Modified, content),
            Change::Remove { last, .. } => (EventKind::Deleted, last),
        };
        if let Some(metadata) = content.value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        }
        let object = Arc::new(Object::new(id, key.clone(), revision, content, size));
        let table = &mut self.tables[id.index()];
        let previous = match kind {
            EventKind::Deleted => table.objects.remove(&key),
            EventKind::Added | EventKind::Modified => table.objects.insert(key, Arc::clone(&object)),
        };
        let cooled = table.log.push(Event { kind, object: Arc::clone(&object), previous });
        (object, cooled)
    }
}

impl Table {
    fn range(&self, range: Range<'_>) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        let start = match (range.after, range.namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| range.namespace.is_none_or(|namespace| *key.namespace == *namespace))
    }
}

impl Range<'_> {
    fn contains(&self, key: &Key) -> bool {
        self.after.is_none_or(|after| key > after)
            && self.namespace.is_none_or(|namespace| *key.namespace == *namespace)
    }
}

fn page<'a>(objects: impl Iterator<Item = &'a Arc<Object>>, limit: Option<usize>, revision: u64) -> Page {
    let mut rest = objects.peekable();
    let objects = rest.by_ref().take(limit.unwrap_or(usize::MAX)).cloned().collect();
    Page { objects, revision, more: rest.peek().is_some() }
}

/// Merges two sequences that are each sorted by key.
fn merge_by_key<'a>(
    left: impl Iterator<Item = &'a Arc<Object>>,
    right: impl Iterator<Item = &'a Arc<Object>>,
) -> impl Iterator<Item = &'a Arc<Object>> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(a), Some(b)) if a.key() <= b.key() => left.next(),
        (_, Some(_)) => right.next(),
        (_, None) => left.next(),
    })
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
