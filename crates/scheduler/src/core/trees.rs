//! Trees of groups: which composite a group or composite is part of, and whether a tree has what it needs.
//!
//! The engine decides for trees. Here is what has to be known of them while decisions are carried out, because what was
//! decided on may have gone by then.

use super::{Core, KnownGroup, UnitKey};
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::tree::{Ancestry, TREE_DEPTH_MAX, ancestry};
use tutti_model::{ObjectKey, Policy, Time};

/// Children of composites, as far as they were seen.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    children: BTreeMap<ObjectKey, BTreeSet<UnitKey>>,
    parents: BTreeMap<UnitKey, ObjectKey>,
}

impl Trees {
    /// A group or composite has this parent from now on, or none. Gives the one before if that has lost its last child.
    pub(super) fn set_parent(&mut self, unit: &UnitKey, parent: Option<&ObjectKey>) -> Option<ObjectKey> {
        if self.parents.get(unit) == parent {
            return None;
        }
        let before = self.parents.remove(unit);
        if let Some(children) = before.as_ref().and_then(|before| self.children.get_mut(before)) {
            children.remove(unit);
        }
        let childless = before.filter(|before| self.children(before).next().is_none());
        if let Some(childless) = &childless {
            self.children.remove(childless);
        }
        if let Some(parent) = parent {
            self.parents.insert(unit.clone(), parent.clone());
            self.children.entry(parent.clone()).or_default().insert(unit.clone());
        }
        childless
    }

    fn children(&self, composite: &ObjectKey) -> impl Iterator<Item = &UnitKey> {
        self.children.get(composite).into_iter().flatten()
    }
}

/// A composite that has fewer groups with all that they need than it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShortComposite {
    pub(super) composite: ObjectKey,
    pub(super) met: u32,
    pub(super) minimum: u32,
}

impl Core {
    /// A group or composite is part of nothing any more.
    pub(super) fn leave_tree(&mut self, unit: &UnitKey, now: Time) {
        let childless = self.trees.set_parent(unit, None);
        self.forget_childless(childless, now);
    }

    /// Nobody waits any more because of a composite that is not there and that nobody is part of.
    pub(super) fn forget_childless(&mut self, composite: Option<ObjectKey>, now: Time) {
        let unknown = composite.filter(|composite| !self.composites.contains_key(composite));
        if let Some(unit) = unknown.map(UnitKey::Composite) {
            self.waits_no_longer(&unit, now);
        }
    }

    /// Composites above a group, the nearest first. What is not in a proper tree has none.
    pub(super) fn composites_above(&self, group: &ObjectKey) -> Vec<ObjectKey> {
        let parent = self.trees.parents.get(&UnitKey::Group(group.clone()));
        let parent_of = |key: &ObjectKey| {
            let composite = self.composites.get(key)?.asks.as_ref()?;
            Some(composite.parent.clone())
        };
        match ancestry(group, parent, parent_of) {
            Ok(Ancestry::Complete(path)) => path.into_iter().skip(1).collect(),
            Ok(Ancestry::Incomplete { missing }) => vec![missing],
            Err(_) => Vec::new(),
        }
    }

    /// What is decided together with a group: itself, or the tree that it is part of.
    pub(super) fn unit_of_group(&self, group: &ObjectKey) -> UnitKey {
        let root = self.composites_above(group).pop();
        root.map_or_else(|| UnitKey::Group(group.clone()), UnitKey::Composite)
    }

    /// All groups of the tree that a group is part of, itself included.
    pub(super) fn groups_beside(&self, group: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut groups = self.groups_below(self.composites_above(group));
        groups.insert(group.clone());
        groups
    }

    /// All groups of these composites and of those within them.
    pub(super) fn groups_below(&self, mut composites: Vec<ObjectKey>) -> BTreeSet<ObjectKey> {
        let mut groups = BTreeSet::new();
        // Ends although there may be circles, because nobody is visited twice.
        let mut seen: BTreeSet<ObjectKey> = BTreeSet::new();
        while let Some(composite) = composites.pop() {
            if !seen.insert(composite.clone()) {
                continue;
            }
            for child in self.trees.children(&composite) {
                match child {
                    UnitKey::Composite(inner) => composites.push(inner.clone()),
                    UnitKey::Group(inner) => {
                        groups.insert(inner.clone());
                    }
                    UnitKey::Pod(_) => {}
                }
            }
        }
        groups
    }

    /// All groups that have to do with a composite: those of the widest one above it that is named, known or not.
    pub(super) fn groups_around(&self, composite: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut top = composite.clone();
        // No tree is deeper, so a circle ends, too.
        for _ in 0..TREE_DEPTH_MAX {
            match self.trees.parents.get(&UnitKey::Composite(top.clone())) {
                Some(parent) => top = parent.clone(),
                None => break,
            }
        }
        self.groups_below(vec![top])
    }

    /// True if every composite above a group is there and was understood.
    pub(super) fn knows_tree_of(&self, group: &ObjectKey) -> bool {
        let is_known = |key: &ObjectKey| self.composites.get(key).is_some_and(|known| known.asks.is_some());
        self.composites_above(group).iter().all(is_known)
    }

    /// True if a group is part of something larger.
    pub(super) fn is_in_tree(&self, group: &ObjectKey) -> bool {
        self.trees.parents.contains_key(&UnitKey::Group(group.clone()))
    }

    /// The widest composite above a group that has too few groups with all that they need, if `more` members of groups are
    /// counted, too. One that is not known is not counted as short: nobody knows what it needs.
    pub(super) fn short_composite(
        &self,
        group: &ObjectKey,
        more: &BTreeMap<ObjectKey, usize>,
    ) -> Option<ShortComposite> {
        self.composites_above(group).into_iter().rev().find_map(|composite| {
            let minimum = self.composites.get(&composite)?.asks.as_ref()?.policy.minimum();
            let met = self.met_children(&composite, more, TREE_DEPTH_MAX - 1);
            (met < minimum).then_some(ShortComposite { composite, met, minimum })
        })
    }

    fn met_children(&self, composite: &ObjectKey, more: &BTreeMap<ObjectKey, usize>, levels: usize) -> u32 {
        self.trees.children(composite).filter(|child| self.is_met(child, more, levels)).count() as u32
    }

    /// True if a group has enough members, or a composite enough groups. So many levels are looked at: what is deeper
    /// than a tree may be counts for nothing.
    fn is_met(&self, unit: &UnitKey, more: &BTreeMap<ObjectKey, usize>, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else {
            return false;
        };
        let policy = |known: Option<&KnownGroup>| -> Option<Policy> { Some(known?.asks.as_ref()?.policy) };
        match unit {
            UnitKey::Group(group) => policy(self.groups.get(group)).is_some_and(|policy| {
                let more = more.get(group).copied().unwrap_or(0);
                self.gangs.counted(group) as usize + more >= policy.minimum() as usize
            }),
            UnitKey::Composite(composite) => policy(self.composites.get(composite))
                .is_some_and(|policy| self.met_children(composite, more, below) >= policy.minimum()),
            UnitKey::Pod(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_where_it_was_last_said_to_be() {
        let (a, b) = (ObjectKey::new("n", "a"), ObjectKey::new("n", "b"));
        let child = UnitKey::Group(ObjectKey::new("n", "g"));
        let mut trees = Trees::default();
        assert_eq!(trees.set_parent(&child, Some(&a)), None);
        assert_eq!(trees.set_parent(&child, Some(&b)), Some(a.clone()));
        assert_eq!((trees.children(&a).count(), trees.children(&b).count()), (0, 1));
        assert_eq!(trees.set_parent(&child, None), Some(b));
        assert!(trees.children.is_empty() && trees.parents.is_empty(), "{trees:?}");
    }
}
