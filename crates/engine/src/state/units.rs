//! Units as they are now: how important they are, and whether they lack members that they need.

use super::State;
use super::pods::PodRow;
use crate::decision::UnitKey;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tutti_model::{ObjectKey, Time};

/// How important a unit is; smaller comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Importance {
    /// Higher priority first.
    pub(crate) priority: Reverse<i32>,
    /// A gang that has lost members or never got them all comes before its equals.
    pub(crate) incomplete: Reverse<bool>,
    /// Older first.
    pub(crate) created: Time,
}

impl State {
    /// How important a unit is.
    pub(crate) fn importance(&self, unit: &UnitKey) -> Importance {
        self.importance_of(unit, &self.pods.members(unit))
    }

    /// The same, for a caller that has the members at hand.
    pub(crate) fn importance_of(&self, unit: &UnitKey, members: &[(&ObjectKey, &PodRow)]) -> Importance {
        let group = self.pods.object(unit);
        let highest = members.iter().map(|(_, row)| row.priority).max().unwrap_or(0);
        let oldest = members.iter().map(|(_, row)| row.created).min().unwrap_or_default();
        Importance {
            priority: Reverse(group.and_then(|group| group.priority).unwrap_or(highest)),
            incomplete: Reverse(self.is_incomplete(unit, members)),
            created: group.map_or(oldest, |group| group.created),
        }
    }

    /// True if a group, or one of a composite, has some of the members that it needs, but not all.
    fn is_incomplete(&self, unit: &UnitKey, members: &[(&ObjectKey, &PodRow)]) -> bool {
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
                groups.into_iter().any(|group| self.missing_of_group(group).is_some())
            }
        }
    }

    /// How many more members of an incomplete gang must get a seat, or of the incomplete gangs of a composite; `None` if
    /// it is not incomplete. A gang that is suspended asks for nothing.
    pub(crate) fn missing(&self, unit: &UnitKey) -> Option<u32> {
        if self.is_suspended(unit) {
            return None;
        }
        match unit {
            UnitKey::Pod(_) => None,
            UnitKey::Group(key) => self.missing_of_group(key),
            UnitKey::Composite(_) => {
                let groups: BTreeSet<&ObjectKey> =
                    self.pods.members(unit).into_iter().filter_map(|(_, row)| row.group.as_ref()).collect();
                let missing: u32 = groups.into_iter().filter_map(|group| self.missing_of_group(group)).sum();
                (missing > 0).then_some(missing)
            }
        }
    }

    fn missing_of_group(&self, group: &ObjectKey) -> Option<u32> {
        let row = self.pods.group(group)?;
        let minimum = row.object.as_ref()?.policy.minimum();
        let counts = |member: &&ObjectKey| self.pods.pod(member).is_some_and(PodRow::counts);
        let counted = row.members.iter().filter(counts).count() as u32;
        (counted > 0 && counted < minimum).then(|| minimum - counted)
    }

    /// Every incomplete unit, in order.
    pub(crate) fn incomplete_units(&self) -> Vec<UnitKey> {
        let groups = self.pods.groups().map(|(key, _)| UnitKey::Group(key.clone()));
        let units: BTreeSet<UnitKey> = groups.map(|group| self.pods.root_of(&group)).collect();
        units.into_iter().filter(|unit| self.missing(unit).is_some()).collect()
    }

    /// True if a member waits for a seat that this scheduler could give it.
    pub(crate) fn asks_for_seats(&self, members: &[(&ObjectKey, &PodRow)]) -> bool {
        members.iter().any(|(_, row)| row.wants_seat() && self.profiles.serve(&row.scheduler_name))
    }

    /// True if a unit is not to be tried, or a group of it is not.
    pub(crate) fn is_suspended(&self, unit: &UnitKey) -> bool {
        if self.suspended.is_empty() || self.suspended.contains(unit) {
            return !self.suspended.is_empty();
        }
        let is_group_suspended = |group: &ObjectKey| self.suspended.contains(&UnitKey::Group(group.clone()));
        let is_composite = matches!(unit, UnitKey::Composite(_));
        is_composite
            && self
                .pods
                .members(unit)
                .iter()
                .any(|(_, row)| row.group.as_ref().is_some_and(is_group_suspended))
    }
}
