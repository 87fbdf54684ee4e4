//! The change log: what happened to the cluster, in order. Every mutator of [`super::State`] writes here, and nothing
//! else tells readers that something is new: room catches up with it, and the agenda derives wake-ups from it.

use super::counts::SelectorId;
use super::nodes::NodeId;
use super::shape::ResourceId;
use crate::decision::UnitKey;

/// Changes that are remembered. A reader that is further behind reads whole tables.
const LENGTH_MAX: usize = 65_536;

/// Resources of which a node has come to have more free, as a set of numbers. Those beyond the last bit share it, so
/// that a set may say more than is true but never less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Freed(u64);

impl Freed {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self(0);

    /// These resources.
    pub(crate) fn of(resources: impl Iterator<Item = ResourceId>) -> Self {
        Self(resources.fold(0, |set, resource| set | Self::bit(resource)))
    }

    /// True if this resource may be among them.
    pub(crate) fn has(self, resource: ResourceId) -> bool {
        self.0 & Self::bit(resource) != 0
    }

    /// True if nothing was freed.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }

    fn bit(resource: ResourceId) -> u64 {
        1 << resource.index().min(63)
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A node offers more or less than before.
    Node {
        /// Which one.
        id: NodeId,
        /// Resources of which more is free.
        freed: Freed,
        /// True if it came, went, or changed its labels, taints, features or cordon.
        facts: bool,
    },
    /// More or fewer pods are matched by a selector, or have anti-affinity to what it matches, somewhere.
    Selector(SelectorId),
    /// A pod with host ports came or went.
    Ports,
    /// A pod with volumes that several pods use came or went.
    Attachments,
    /// Something about a unit itself has changed: its members, what they require, its group.
    Unit(UnitKey),
    /// A unit has become part of a larger one and is none of its own any more.
    Joined(UnitKey),
    /// A member of a unit was bound, which ends a row of failures.
    Bound(UnitKey),
    /// A unit is not to be tried any more, until it is resumed.
    Suspended(UnitKey),
    /// Part of a trial that was taken back.
    Undone,
}

/// The log.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeLog {
    entries: Vec<Change>,
    /// Number of the first entry.
    start: u64,
    /// Number of the next entry that the agenda has not seen.
    unseen: u64,
}

impl ChangeLog {
    /// Writes an entry.
    pub(super) fn push(&mut self, change: Change) {
        if self.entries.len() >= LENGTH_MAX {
            // What the agenda has not seen stays, however much that is.
            let seen = (self.unseen - self.start) as usize;
            let dropped = (self.entries.len() / 2).min(seen);
            self.entries.drain(..dropped);
            self.start += dropped as u64;
        }
        self.entries.push(change);
    }

    /// Number of the next entry; a reader remembers it as how far it has read.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Nodes that changed since, or nothing if that is too long ago. The number of entries says how much there is to
    /// read.
    pub(crate) fn nodes_since(&self, cursor: u64) -> Option<(usize, impl Iterator<Item = NodeId>)> {
        let skip = usize::try_from(cursor.checked_sub(self.start)?).ok()?;
        let entries = self.entries.get(skip..)?;
        let node = |change: &Change| match change {
            Change::Node { id, .. } => Some(*id),
            _ => None,
        };
        Some((entries.len(), entries.iter().filter_map(node)))
    }

    /// The next entry for the agenda.
    pub(super) fn next(&mut self) -> Option<Change> {
        let at = usize::try_from(self.unseen - self.start).ok()?;
        let entry = self.entries.get_mut(at)?;
        self.unseen += 1;
        // Other readers look at nodes only.
        Some(match entry {
            Change::Node { id, freed, facts } => Change::Node { id: *id, freed: *freed, facts: *facts },
            other => std::mem::replace(other, Change::Undone),
        })
    }

    /// Entries since then were a trial that was taken back: the agenda does not hear of them.
    pub(super) fn forget_since(&mut self, cursor: u64) {
        if self.unseen >= cursor {
            self.unseen = self.end();
            return;
        }
        let skip = usize::try_from(cursor.saturating_sub(self.start)).unwrap_or(usize::MAX);
        for change in self.entries.iter_mut().skip(skip) {
            match change {
                Change::Node { freed, facts, .. } => (*freed, *facts) = (Freed::NOTHING, false),
                other => *other = Change::Undone,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::NodeTable;
    use super::*;

    fn node(id: NodeId) -> Change {
        Change::Node { id, freed: Freed::NOTHING, facts: false }
    }

    #[test]
    fn readers_see_what_changed_since_they_read() {
        let mut table = NodeTable::default();
        let (a, b) = (table.id(&"a".into()), table.id(&"b".into()));
        let mut log = ChangeLog::default();
        log.push(node(a));
        let cursor = log.end();
        log.push(Change::Ports);
        log.push(node(b));
        let (entries, nodes) = log.nodes_since(cursor).expect("it is not long ago");
        assert_eq!((entries, nodes.collect::<Vec<_>>()), (2, vec![b]));
        for _ in 0..2 * LENGTH_MAX {
            while log.next().is_some() {}
            log.push(node(a));
        }
        assert!(log.nodes_since(cursor).is_none(), "too long ago");
        assert!(log.nodes_since(log.end()).is_some_and(|(entries, _)| entries == 0));
    }

    #[test]
    fn what_the_agenda_has_not_seen_is_never_dropped() {
        let mut table = NodeTable::default();
        let a = table.id(&"a".into());
        let mut log = ChangeLog::default();
        for _ in 0..LENGTH_MAX + 10 {
            log.push(node(a));
        }
        assert_eq!(std::iter::from_fn(|| log.next()).count(), LENGTH_MAX + 10);
    }
}
