//! Objects that nobody deletes because they are only news: events go after a while, the oldest first, and
//! sooner if there are too many. Without this a busy cluster would fill its memory with them.

use super::rules;
use crate::registry::ResourceId;
use crate::store::{Key, Object, Store};
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// How long an event is kept after its last change. As in Kubernetes.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// How many writes of events are remembered; what is older goes early.
const NOTES_MAX: usize = 100_000;

/// A write of an object that expires.
#[derive(Debug)]
struct Note {
    at: Timestamp,
    id: ResourceId,
    key: Key,
    revision: u64,
}

/// All writes of objects that expire, oldest first.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    notes: VecDeque<Note>,
}

impl Expiry {
    /// Notes a write that was seen now.
    pub(super) fn observe(&mut self, object: &Object, now: Timestamp) {
        if rules::expires(object.id().resource()) {
            self.notes.push_back(Note {
                at: now,
                id: object.id(),
                key: object.key().clone(),
                revision: object.revision(),
            });
        }
    }

    /// The next object whose time is up. Objects that were written or removed since they were noted are
    /// passed over: a later note, or none, speaks for them.
    pub(super) fn next_expired(&mut self, store: &dyn Store, now: Timestamp) -> Option<Arc<Object>> {
        while let Some(oldest) = self.notes.front() {
            if now.duration_since(oldest.at) < KEPT && self.notes.len() <= NOTES_MAX {
                return None;
            }
            let note = self.notes.pop_front()?;
            let object = store.get(note.id, &note.key);
            if let Some(object) = object.filter(|object| object.revision() == note.revision) {
                return Some(object);
            }
        }
        None
    }
}
