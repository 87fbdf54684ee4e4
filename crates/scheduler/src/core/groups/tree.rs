//! Trees of groups: which composite a group or composite is part of, and whether a tree has what it needs.
//!
//! The engine decides for trees. Here is what has to be known of them while decisions are carried out, because what was
//! decided on may have gone by then.

use super::super::{Core, UnitKey};
use super::{CHAIN_MAX, Groups};
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::Event;
use tutti_model::tree::{Ancestry, TREE_DEPTH_MAX, ancestry};
use tutti_model::{ObjectKey, Time};

/// Groups and composites that may name one composite as their parent. More are refused, so that one tenant does not slow
/// down others.
pub(in super::super) const CHILDREN_MAX: usize = 1_024;

impl Groups {
    /// A group or composite has this parent from now on, or none. Gives the one before if that has lost its last child.
    pub(in super::super) fn set_parent(
        &mut self,
        unit: &UnitKey,
        parent: Option<&ObjectKey>,
    ) -> Option<ObjectKey> {
        let row = self.rows.get_mut(unit)?;
        if row.parent.as_ref() == parent {
            return None;
        }
        let before = std::mem::replace(&mut row.parent, parent.cloned());
        let is_met = u32::from(row.is_met);
        if let Some(before) = before.clone().map(UnitKey::Composite)
            && let Some(row) = self.rows.get_mut(&before)
        {
            row.children.remove(unit);
            row.met_children = row.met_children.saturating_sub(is_met);
            self.refresh(&before);
        }
        if let Some(parent) = parent.cloned().map(UnitKey::Composite) {
            let row = self.row(&parent);
            row.children.insert(unit.clone());
            row.met_children += is_met;
            self.refresh(&parent);
        }
        before.filter(|before| self.children(before).next().is_none())
    }

    fn children(&self, composite: &ObjectKey) -> impl Iterator<Item = &UnitKey> {
        self.rows.get(&UnitKey::Composite(composite.clone())).into_iter().flat_map(|row| &row.children)
    }

    /// How many groups and composites name a composite as their parent.
    pub(in super::super) fn children_count(&self, composite: &ObjectKey) -> usize {
        self.rows.get(&UnitKey::Composite(composite.clone())).map_or(0, |row| row.children.len())
    }

    /// True if more groups are part of a composite than can be placed together.
    pub(in super::super) fn is_too_large(&self, composite: &ObjectKey) -> bool {
        self.children_count(composite) > CHILDREN_MAX
    }

    pub(in super::super) fn parent(&self, unit: &UnitKey) -> Option<&ObjectKey> {
        self.rows.get(unit)?.parent.as_ref()
    }

    /// How many more children of composites would have what they need if so many more members of groups counted.
    fn more_met(&self, more: &BTreeMap<ObjectKey, usize>) -> BTreeMap<ObjectKey, u32> {
        let mut gained: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        for (group, count) in more {
            let Some(row) = self.rows.get(&UnitKey::Group(group.clone())).filter(|row| !row.is_met) else {
                continue;
            };
            let counted = row.gang.counted() as usize + count;
            let mut parent = match row.policy() {
                Some(policy) if counted >= policy.minimum() as usize => row.parent.clone(),
                _ => None,
            };
            for _ in 0..CHAIN_MAX {
                let Some(composite) = parent.take() else { break };
                let gained = gained.entry(composite.clone()).or_default();
                *gained += 1;
                let Some(row) = self.rows.get(&UnitKey::Composite(composite)) else { break };
                let is_enough = |minimum: u32| row.met_children + *gained == minimum;
                if !row.is_met && row.policy().is_some_and(|policy| is_enough(policy.minimum())) {
                    parent.clone_from(&row.parent);
                }
            }
        }
        gained
    }
}

/// A composite that has fewer groups with all that they need than it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ShortComposite {
    pub(in super::super) composite: ObjectKey,
    pub(in super::super) met: u32,
    pub(in super::super) minimum: u32,
}

impl Core {
    /// Tells the engine of a composite. One that was not understood, or that too many groups are part of, counts as not
    /// being there, and its tree waits.
    pub(in super::super) fn tell_composite(&mut self, composite: &ObjectKey, now: Time) {
        let asks = self.groups.composite(composite).and_then(|known| known.asks.clone());
        let event = match asks.filter(|_| !self.groups.is_too_large(composite)) {
            Some(asks) => Event::CompositeSet(asks),
            None => Event::CompositeGone(composite.clone()),
        };
        self.tell(event, now);
    }

    /// A composite has more or fewer children than before: it may have become too large, or be so no longer.
    pub(in super::super) fn children_changed(&mut self, composite: &ObjectKey, now: Time) {
        let is_too_large = self.groups.is_too_large(composite);
        let Some(row) = self.groups.rows.get_mut(&UnitKey::Composite(composite.clone())) else { return };
        if std::mem::replace(&mut row.is_too_large, is_too_large) == is_too_large {
            return;
        }
        self.tell_composite(composite, now);
        if is_too_large {
            self.say_too_large(composite, now);
        }
    }

    /// A group or composite is part of nothing any more.
    pub(in super::super) fn leave_tree(&mut self, unit: &UnitKey, now: Time) {
        let parent = self.groups.parent(unit).cloned();
        let childless = self.groups.set_parent(unit, None);
        if let Some(parent) = parent {
            self.children_changed(&parent, now);
        }
        self.forget_childless(childless, now);
    }

    /// Forgets a row that nobody names any more, and with it why its unit waits.
    pub(in super::super) fn forget_row(&mut self, unit: &UnitKey, now: Time) {
        if let Some(waited) = self.groups.drop_if_unused(unit) {
            self.count_wait(waited, now);
        }
    }

    /// No unit waits any more because of a composite that is not there and that has no parts.
    pub(in super::super) fn forget_childless(&mut self, composite: Option<ObjectKey>, now: Time) {
        if let Some(unit) = composite.map(UnitKey::Composite) {
            self.forget_row(&unit, now);
        }
    }

    /// Composites above a group, the nearest first. What is not in a proper tree has none.
    pub(in super::super) fn composites_above(&self, group: &ObjectKey) -> Vec<ObjectKey> {
        let parent = self.groups.parent(&UnitKey::Group(group.clone()));
        let parent_of = |key: &ObjectKey| {
            let composite = self.groups.composite(key)?.asks.as_ref()?;
            Some(composite.parent.clone())
        };
        match ancestry(group, parent, parent_of) {
            Ok(Ancestry::Complete(path)) => path.into_iter().skip(1).collect(),
            Ok(Ancestry::Incomplete { missing }) => vec![missing],
            Err(_) => Vec::new(),
        }
    }

    /// What is decided together with a group: itself, or the tree that it is part of.
    pub(in super::super) fn unit_of_group(&self, group: &ObjectKey) -> UnitKey {
        let root = self.composites_above(group).pop();
        root.map_or_else(|| UnitKey::Group(group.clone()), UnitKey::Composite)
    }

    /// All groups of the tree that a group is part of, itself included.
    pub(in super::super) fn groups_beside(&self, group: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut groups = self.groups_below(self.composites_above(group));
        groups.insert(group.clone());
        groups
    }

    /// All groups of these composites and of those within them.
    pub(in super::super) fn groups_below(&self, mut composites: Vec<ObjectKey>) -> BTreeSet<ObjectKey> {
        let mut groups = BTreeSet::new();
        // Ends although there may be circles, because none is visited twice.
        let mut seen: BTreeSet<ObjectKey> = BTreeSet::new();
        while let Some(composite) = composites.pop() {
            if !seen.insert(composite.clone()) {
                continue;
            }
            for child in self.groups.children(&composite) {
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
    pub(in super::super) fn groups_around(&self, composite: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut top = composite.clone();
        // No tree is deeper, so a circle ends, too.
        for _ in 0..TREE_DEPTH_MAX {
            match self.groups.parent(&UnitKey::Composite(top.clone())) {
                Some(parent) => top = parent.clone(),
                None => break,
            }
        }
        self.groups_below(vec![top])
    }

    /// True if every composite above a group is there and was understood.
    pub(in super::super) fn knows_tree_of(&self, group: &ObjectKey) -> bool {
        let is_known = |key: &ObjectKey| self.groups.composite(key).is_some_and(|known| known.asks.is_some());
        self.composites_above(group).iter().all(is_known)
    }

    /// True if a group is part of something larger.
    pub(in super::super) fn is_in_tree(&self, group: &ObjectKey) -> bool {
        self.groups.parent(&UnitKey::Group(group.clone())).is_some()
    }

    /// True if everything in a tree has what it needs, and nothing of it is being completed, unwound or kept.
    pub(super) fn is_settled_tree(&self, root: &UnitKey) -> bool {
        let mut units = vec![root.clone()];
        // Ends although there may be circles, because none is visited twice.
        let mut seen: BTreeSet<UnitKey> = BTreeSet::new();
        while let Some(unit) = units.pop() {
            let Some(row) = self.groups.rows.get(&unit) else { return false };
            let is_short = matches!(unit, UnitKey::Composite(_)) && !row.is_met;
            if is_short || row.gang.is_partial() {
                return false;
            }
            if seen.insert(unit) {
                units.extend(row.children.iter().cloned());
            }
        }
        true
    }

    /// The widest composite above a group that has too few groups with all that they need. One that is not known is not
    /// counted as short: it is not known what it needs.
    pub(in super::super) fn short_composite(&self, group: &ObjectKey) -> Option<ShortComposite> {
        self.short_with(group, &BTreeMap::new())
    }

    /// Of these groups, those that are part of a composite that would have too few groups, if so many more members of
    /// groups counted.
    pub(in super::super) fn short_groups<'a>(
        &self,
        groups: impl Iterator<Item = &'a ObjectKey>,
        more: &BTreeMap<ObjectKey, usize>,
    ) -> BTreeSet<ObjectKey> {
        let gained = self.groups.more_met(more);
        groups.filter(|group| self.short_with(group, &gained).is_some()).cloned().collect()
    }

    fn short_with(&self, group: &ObjectKey, gained: &BTreeMap<ObjectKey, u32>) -> Option<ShortComposite> {
        self.composites_above(group).into_iter().rev().find_map(|composite| {
            let row = self.groups.rows.get(&UnitKey::Composite(composite.clone()))?;
            let minimum = row.policy()?.minimum();
            let met = row.met_children + gained.get(&composite).copied().unwrap_or(0);
            (met < minimum).then_some(ShortComposite { composite, met, minimum })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::GroupObject;
    use super::*;
    use std::num::NonZeroU32;
    use tutti_model::{Group, Policy};

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("n", name)
    }

    fn see(groups: &mut Groups, unit: &UnitKey, minimum: u32) {
        groups.seen(unit, GroupObject::new("u".into(), "1".into(), 1));
        let min_count = NonZeroU32::new(minimum).unwrap();
        let policy = Policy::Gang { min_count };
        groups.set_asks(unit, Some(Box::new(Group { policy, ..Group::new(unit.object().clone(), "u") })));
    }

    #[test]
    fn a_child_is_where_it_was_last_said_to_be() {
        let (a, b) = (key("a"), key("b"));
        let child = UnitKey::Group(key("g"));
        let mut groups = Groups::default();
        see(&mut groups, &child, 1);
        assert_eq!(groups.set_parent(&child, Some(&a)), None);
        assert_eq!(groups.set_parent(&child, Some(&b)), Some(a.clone()));
        assert_eq!((groups.children(&a).count(), groups.children(&b).count()), (0, 1));
        assert_eq!(groups.set_parent(&child, None), Some(b));
    }

    #[test]
    fn what_a_group_has_is_counted_all_the_way_up() {
        let (top, inner) = (UnitKey::Composite(key("top")), UnitKey::Composite(key("inner")));
        let mut groups = Groups::default();
        see(&mut groups, &top, 1);
        see(&mut groups, &inner, 2);
        groups.set_parent(&inner, Some(&key("top")));
        for name in ["l", "r"] {
            let group = UnitKey::Group(key(name));
            see(&mut groups, &group, 1);
            groups.set_parent(&group, Some(&key("inner")));
        }
        let more = |names: &[&str]| names.iter().map(|name| (key(name), 1)).collect::<BTreeMap<_, _>>();
        assert_eq!(groups.more_met(&more(&["l"])), BTreeMap::from([(key("inner"), 1)]));
        let both = groups.more_met(&more(&["l", "r"]));
        assert_eq!(both, BTreeMap::from([(key("inner"), 2), (key("top"), 1)]));
        // The same with the members there, and then with a group less.
        for name in ["l", "r"] {
            groups.bind_for_test(&key(name), &key("pod"));
        }
        assert!(groups.rows[&inner].is_met && groups.rows[&top].is_met);
        groups.gone(&UnitKey::Group(key("l")));
        assert!(!groups.rows[&inner].is_met && !groups.rows[&top].is_met);
        assert_eq!((groups.rows[&inner].met_children, groups.rows[&top].met_children), (1, 0));
    }
}
