//! What the promises mean for composites, said once more and independently: a tree starts as one.

use super::Sim;
use super::server::{Server, SimGroup};
use super::tally::Deed;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::UnitKey;
use tutti_model::ObjectKey;

/// Levels that a tree of a story may have; more are a circle.
const DEPTH_MAX: usize = 4;

/// Members that count, and those of them that are bound, by group.
type Counted<'a> = BTreeMap<&'a ObjectKey, (u32, u32)>;

impl Server {
    /// Composites above a group, the nearest first, as far as they are there.
    pub(super) fn above(&self, group: &ObjectKey) -> Vec<ObjectKey> {
        let mut path = Vec::new();
        let mut next = self.groups.get(group).and_then(|group| group.group.parent.clone());
        while let Some(composite) = next.filter(|_| path.len() < DEPTH_MAX) {
            next = self.composites.get(&composite).and_then(|found| found.group.parent.clone());
            path.push(composite);
        }
        path
    }

    /// The same, as they are.
    pub(super) fn composites_above(&self, group: &ObjectKey) -> impl Iterator<Item = &SimGroup> {
        self.above(group).into_iter().filter_map(|composite| self.composites.get(&composite))
    }

    /// True if no composite above a group is missing.
    pub(super) fn has_whole_tree(&self, group: &ObjectKey) -> bool {
        self.above(group).iter().all(|composite| self.composites.contains_key(composite))
    }

    /// Groups with the same root, the group itself included.
    pub(super) fn groups_beside(&self, group: &ObjectKey) -> BTreeSet<ObjectKey> {
        let Some(root) = self.above(group).pop() else {
            return BTreeSet::from([group.clone()]);
        };
        let has_root = |other: &&ObjectKey| self.above(other).last() == Some(&root);
        self.groups.keys().filter(has_root).cloned().chain([group.clone()]).collect()
    }

    /// True if a composite above a group is there and has too few groups with what they need.
    pub(super) fn is_tree_short(&self, group: &ObjectKey, counted: &Counted<'_>) -> bool {
        if !self.has_whole_tree(group) {
            return false;
        }
        self.above(group).iter().any(|composite| !self.is_composite_met(composite, counted, DEPTH_MAX))
    }

    fn is_composite_met(&self, composite: &ObjectKey, counted: &Counted<'_>, depth: usize) -> bool {
        let Some(found) = self.composites.get(composite).filter(|_| depth > 0) else {
            return false;
        };
        let is_child = |parent: &Option<ObjectKey>| parent.as_ref() == Some(composite);
        let groups = self.groups.iter().filter(|(key, group)| {
            let count = counted.get(key).map_or(0, |(count, _)| *count);
            is_child(&group.group.parent) && count >= group.minimum()
        });
        let composites = self.composites.iter().filter(|(key, inner)| {
            is_child(&inner.group.parent) && self.is_composite_met(key, counted, depth - 1)
        });
        (groups.count() + composites.count()) as u32 >= found.minimum()
    }
}

impl Sim {
    /// No tree starts with fewer groups than its composites must have.
    pub(super) fn check_tree_starts(
        &mut self,
        index: usize,
        term: u64,
        starts: &BTreeMap<ObjectKey, u32>,
    ) -> Result<(), String> {
        for group in starts.keys() {
            let Some(root) = self.server.above(group).pop() else { continue };
            let beside = self.server.groups_beside(group);
            let has_bound = beside.iter().any(|group| self.has_bound(group));
            // Others of it may have been sent before, by a leader that thought them enough.
            let is_first = self.sent.insert((term, UnitKey::Composite(root.clone())));
            let starting_beside = starts.keys().filter(|group| beside.contains(*group));
            let is_sure = self.replicas[index].has_heard_all() && self.is_as_confirmed(starting_beside);
            if !is_first || has_bound || !is_sure {
                continue;
            }
            self.tally.count(Deed::TreeStart);
            let starting: Counted<'_> = beside
                .iter()
                .map(|group| (group, self.begun(index, group, starts)))
                .map(|(group, begun)| (group, (begun, begun)))
                .collect();
            if self.server.is_tree_short(group, &starting) {
                return Err(format!("composite {root} starts in part, with {starts:?}"));
            }
        }
        Ok(())
    }

    /// True if groups and what is above them ask for no more than when they were last read.
    fn is_as_confirmed<'a>(&self, mut groups: impl Iterator<Item = &'a ObjectKey>) -> bool {
        let asks_no_more = |unit: UnitKey, minimum: u32| {
            minimum <= 1 || self.confirmed.get(&unit).is_some_and(|&read| minimum <= read)
        };
        groups.all(|group| {
            let own = self
                .server
                .groups
                .get(group)
                .is_none_or(|found| asks_no_more(UnitKey::Group(group.clone()), found.minimum()));
            own && self.server.above(group).into_iter().all(|composite| {
                let minimum = self.server.composites.get(&composite).map_or(1, SimGroup::minimum);
                asks_no_more(UnitKey::Composite(composite), minimum)
            })
        })
    }
}
