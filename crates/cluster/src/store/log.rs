//! The recent past of one resource: a ring of events, bounded in number and in bytes.

use super::object::Object;
use std::collections::VecDeque;
use std::sync::Arc;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

/// One write, as watchers see it.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The object after the write; for a deletion its last state, with the revision of the deletion.
    pub object: Arc<Object>,
    /// The object before the write, if there was one: watchers with a selector need both sides.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// The revision of the write.
    pub fn revision(&self) -> u64 {
        self.object.revision()
    }

    /// Saves memory once most watchers have seen the event. The present state is compacted too, since nobody
    /// has written it for a while – unless it is small, as is most of what every write looks at.
    pub(super) fn compact(&self) {
        if let Some(previous) = &self.previous {
            previous.compact();
        }
        if self.kind == EventKind::Deleted || self.object.size() >= COMPACTED_BYTES_MIN {
            self.object.compact();
        }
    }
}

/// Present objects below this size keep their parsed form.
const COMPACTED_BYTES_MIN: usize = 512;

/// How many of the newest events stay as fast to read as possible.
const WARM_EVENTS: usize = 2048;

/// How much of the past is kept for each resource.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of events.
    pub events_max: usize,
    /// Sum of the JSON sizes of their objects.
    pub bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Room for a burst of 100,000 pods, each created and bound, before a watcher that fell asleep must
        // list again. Old versions of objects are mostly shared with nobody, so bytes are limited too.
        Self { events_max: 262_144, bytes_max: 512 << 20 }
    }
}

/// A revision is so old that the events after it are no longer all known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({floor})")]
pub struct TooOld {
    /// The revision that was asked for.
    pub asked: u64,
    /// The oldest revision that can be asked for.
    pub floor: u64,
}

#[derive(Debug)]
pub(super) struct EventLog {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Everything that happened after this revision is in the ring.
    floor: u64,
    limits: Limits,
}

impl EventLog {
    pub(super) fn new(limits: Limits) -> Self {
        Self { events: VecDeque::new(), bytes: 0, floor: 0, limits }
    }

    /// Appends an event. Returns one that is no longer among the newest, to be compacted outside of the lock.
    pub(super) fn push(&mut self, event: Event) -> Option<Arc<Event>> {
        self.bytes += event.object.size();
        self.events.push_back(Arc::new(event));
        while self.events.len() > self.limits.events_max || self.bytes > self.limits.bytes_max {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.object.size());
            self.floor = oldest.revision();
        }
        let cooled = self.events.len().checked_sub(WARM_EVENTS + 1)?;
        self.events.get(cooled).cloned()
    }

    /// All events after a revision, oldest first.
    pub(super) fn after(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Event>>, TooOld> {
        if revision < self.floor {
            return Err(TooOld { asked: revision, floor: self.floor });
        }
        let start = self.events.partition_point(|e| e.revision() <= revision);
        Ok(self.events.range(start..))
    }
}
