//! Groups and composites as units: which tree they are part of, and how important it is.

use crate::agenda::queue::Rank;
use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::state::pods::PodRow;
use std::cmp::Reverse;
use tutti_model::{Group, ObjectKey, Time};

impl Engine {
    /// Sets or removes the object of a group or composite.
    pub(crate) fn set_group(&mut self, unit: &UnitKey, object: Option<Group>, now: Time) {
        if self.pods.object(unit) == object.as_ref() {
            return;
        }
        let root_before = self.pods.root_of(unit);
        let hierarchy_before = self.pods.set_hierarchy(unit, None);
        let keys = object.as_ref().map(|group| group.topology.keys()).unwrap_or_default();
        match unit {
            UnitKey::Composite(key) => self.pods.set_composite(key, object),
            UnitKey::Group(key) | UnitKey::Pod(key) => self.pods.set_group(key, object),
        };
        if !keys.is_empty() {
            let id = self.relations.hierarchies.acquire(&keys, &self.nodes);
            self.pods.set_hierarchy(unit, Some(id));
        }
        if let Some(id) = hierarchy_before {
            self.relations.hierarchies.release(id);
        }
        let root = self.pods.root_of(unit);
        if root != root_before {
            self.touch(&root_before, now);
            let members: Vec<ObjectKey> =
                self.pods.members(unit).into_iter().map(|(key, _)| key.clone()).collect();
            for member in members {
                self.follow_nomination(&member, now);
            }
        }
        self.touch(&root, now);
    }

    /// Where a unit stands among those that wait for their turn.
    pub(crate) fn rank(&self, unit: &UnitKey, members: &[(&ObjectKey, &PodRow)]) -> Rank {
        let group = self.pods.object(unit);
        let highest = members.iter().map(|(_, row)| row.priority).max().unwrap_or(0);
        let oldest = members.iter().map(|(_, row)| row.created).min().unwrap_or_default();
        Rank {
            first: Reverse(self.firsts.contains(unit)),
            priority: Reverse(group.and_then(|group| group.priority).unwrap_or(highest)),
            broken: Reverse(self.is_broken(unit, members)),
            created: group.map_or(oldest, |group| group.created),
        }
    }

    /// True if a group, or one of a composite, has some of the members that it needs, but not all.
    fn is_broken(&self, unit: &UnitKey, members: &[(&ObjectKey, &PodRow)]) -> bool {
        match unit {
            UnitKey::Pod(_) => false,
            UnitKey::Group(_) => {
                let counted = members.iter().filter(|(_, row)| row.counts()).count() as u32;
                let minimum = self.pods.object(unit).map_or(0, |group| group.policy.minimum());
                counted > 0 && counted < minimum
            }
            UnitKey::Composite(_) => {
                let mut groups: Vec<&ObjectKey> =
                    members.iter().filter_map(|(_, row)| row.group.as_ref()).collect();
                groups.sort_unstable();
                groups.dedup();
                groups.into_iter().any(|group| {
                    let of_group = |(_, row): &&(&ObjectKey, &PodRow)| row.group.as_ref() == Some(group);
                    let of_group: Vec<_> = members.iter().filter(of_group).copied().collect();
                    self.is_broken(&UnitKey::Group(group.clone()), &of_group)
                })
            }
        }
    }
}
