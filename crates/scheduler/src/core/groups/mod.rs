//! Groups and composites: one row for each, with the object as it was last seen, what was written to it, what it is part
//! of, and its members. A row is there as soon as a pod or group names it, and for as long as one does.
//!
//! * `seen`: what watches and looks tell of them;
//! * `tree`: which groups belong together, and whether they have what they need;
//! * `broken`: what becomes of gangs below their minimum, and `evictions`: members of those that are taken back;
//! * `priorities`: what classes of groups stand for;
//! * `written`: a condition as it was last written.

pub(super) mod broken;
pub(super) mod evictions;
pub(super) mod priorities;
mod seen;
pub(super) mod tree;
pub(super) mod written;

use super::starts::ensure;
use super::waits::Constraint;
use super::writes::telling::Complaint;
use super::{Core, UnitKey};
use broken::Gang;
pub use broken::GangState;
pub(super) use broken::MemberState;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tutti_model::{Group, ObjectKey, Policy, Text, Time};
use written::ConditionWritten;

/// Pause after which it is said again on a group that it has started, if the server did not want to hear it; every further
/// one is twice as long.
const SAY_AGAIN_FIRST: Duration = Duration::from_secs(60);
const SAY_AGAIN_MAX: Duration = Duration::from_secs(1800);
/// Composites above each other that are followed. Trees may have far fewer levels; more are a mistake, and wait.
const CHAIN_MAX: usize = 64;

/// A group or composite as it was last seen.
#[derive(Debug)]
pub(super) struct GroupObject {
    pub(super) uid: Text,
    pub(super) version: Text,
    /// The identity that lists and watches told last. They may be behind what a look has told.
    pub(super) watched: Option<Text>,
    pub(super) generation: i64,
    /// What it asks for; `None` if it was not understood. (Not every API server counts generations of groups.)
    pub(super) asks: Option<Box<Group>>,
    /// What was not understood of it.
    pub(super) trouble: Option<Text>,
    pub(super) scheduled: ConditionWritten,
    /// When that it has started may be said again, after the server did not want to hear it, and how long that pause is.
    pub(super) said_again_at: Option<(Time, Duration)>,
    /// The last event that said that it waits.
    pub(super) complaint: Option<Complaint>,
    pub(super) reported: Option<Text>,
}

impl GroupObject {
    pub(super) fn new(uid: Text, version: Text, generation: i64) -> Self {
        Self {
            uid,
            version,
            watched: None,
            generation,
            asks: None,
            trouble: None,
            scheduled: ConditionWritten::default(),
            said_again_at: None,
            complaint: None,
            reported: None,
        }
    }

    /// What was to be said on it was refused. Gives when to try again.
    pub(super) fn say_again(&mut self, now: Time) -> Time {
        let pause = self.said_again_at.map_or(SAY_AGAIN_FIRST, |(_, pause)| (pause * 2).min(SAY_AGAIN_MAX));
        self.said_again_at = Some((now + pause, pause));
        now + pause
    }
}

/// What is known of a group or composite.
#[derive(Debug, Default)]
pub(super) struct GroupRow {
    /// `None` while it is only named.
    object: Option<GroupObject>,
    parent: Option<ObjectKey>,
    children: BTreeSet<UnitKey>,
    /// It has more children than may be placed together, and counts as not being there.
    is_too_large: bool,
    /// How many of the children have what they need, and whether it has itself.
    met_children: u32,
    is_met: bool,
    /// Why it waits, so that one that is made anew or changed can be told again.
    pub(super) waits: Option<(&'static str, Text)>,
    /// What it waits for as a unit, and since when.
    waits_for: Option<(Constraint, Time)>,
    /// Its members and what becomes of them; a composite has none of its own.
    gang: Gang,
}

impl GroupRow {
    fn policy(&self) -> Option<Policy> {
        Some(self.object.as_ref()?.asks.as_ref()?.policy)
    }

    /// True if it has enough members, or enough children that have what they need.
    fn has_enough(&self) -> bool {
        // Only groups have members, and only composites have children.
        self.policy().is_some_and(|policy| self.gang.counted() + self.met_children >= policy.minimum())
    }

    fn has_no_use(&self) -> bool {
        self.object.is_none() && self.children.is_empty() && self.gang.has_no_members()
    }
}

/// All groups and composites.
#[derive(Debug, Default)]
pub(super) struct Groups {
    rows: BTreeMap<UnitKey, GroupRow>,
    /// Groups that have changed since they were looked at.
    changed: BTreeSet<ObjectKey>,
    /// Groups to be looked at by time.
    due: BTreeSet<(Time, ObjectKey)>,
}

impl Groups {
    /// A group as it was last seen.
    pub(super) fn group(&self, key: &ObjectKey) -> Option<&GroupObject> {
        self.object(&UnitKey::Group(key.clone()))
    }

    /// A composite as it was last seen.
    pub(super) fn composite(&self, key: &ObjectKey) -> Option<&GroupObject> {
        self.object(&UnitKey::Composite(key.clone()))
    }

    /// A group or composite as it was last seen.
    pub(super) fn object(&self, unit: &UnitKey) -> Option<&GroupObject> {
        self.rows.get(unit)?.object.as_ref()
    }

    /// The same, to be changed. What it asks for is changed by [`Groups::set_asks`] alone.
    pub(super) fn object_mut(&mut self, unit: &UnitKey) -> Option<&mut GroupObject> {
        self.rows.get_mut(unit)?.object.as_mut()
    }

    /// The names of all groups, or of all composites, that were seen.
    pub(super) fn names(&self, composites: bool) -> Vec<ObjectKey> {
        let is_one = |unit: &UnitKey| matches!(unit, UnitKey::Composite(_)) == composites;
        let seen = self.rows.iter().filter(|(unit, row)| is_one(unit) && row.object.is_some());
        seen.map(|(unit, _)| unit.object().clone()).collect()
    }

    /// How many groups were seen.
    pub(super) fn groups_count(&self) -> usize {
        let is_group = |unit: &UnitKey| matches!(unit, UnitKey::Group(_));
        self.rows.iter().filter(|(unit, row)| is_group(unit) && row.object.is_some()).count()
    }

    /// How many rows there are.
    #[cfg(test)]
    pub(super) fn rows_count(&self) -> usize {
        self.rows.len()
    }

    /// Why a group or composite waits.
    pub(super) fn waits(&self, unit: &UnitKey) -> Option<&(&'static str, Text)> {
        self.rows.get(unit)?.waits.as_ref()
    }

    /// Notes why a group or composite waits, or that it does not.
    pub(super) fn set_waits(&mut self, unit: &UnitKey, waits: Option<(&'static str, Text)>) {
        if let Some(row) = self.rows.get_mut(unit) {
            row.waits = waits;
        }
    }

    /// What a unit waits for and since when, to be replaced. Gives what it waited for before.
    pub(super) fn set_waits_for(
        &mut self,
        unit: &UnitKey,
        waits_for: Option<(Constraint, Time)>,
    ) -> Option<(Constraint, Time)> {
        std::mem::replace(&mut self.rows.get_mut(unit)?.waits_for, waits_for)
    }

    /// What a unit waits for and since when.
    pub(super) fn waits_for(&self, unit: &UnitKey) -> Option<(Constraint, Time)> {
        self.rows.get(unit)?.waits_for
    }

    fn row(&mut self, unit: &UnitKey) -> &mut GroupRow {
        self.rows.entry(unit.clone()).or_default()
    }

    fn gang(&self, group: &ObjectKey) -> Option<&Gang> {
        self.rows.get(&UnitKey::Group(group.clone())).map(|row| &row.gang)
    }

    fn gang_mut(&mut self, group: &ObjectKey) -> Option<&mut Gang> {
        self.rows.get_mut(&UnitKey::Group(group.clone())).map(|row| &mut row.gang)
    }

    /// The scheduler that members of a group ask for.
    pub(super) fn scheduler(&self, group: &ObjectKey) -> Option<&Text> {
        self.gang(group)?.scheduler()
    }

    /// The minimum of a gang; `None` while there is no such group, or it is no gang.
    fn minimum(&self, group: &ObjectKey) -> Option<u32> {
        match self.rows.get(&UnitKey::Group(group.clone()))?.policy()? {
            Policy::Gang { min_count } => Some(min_count.get()),
            Policy::Basic => None,
        }
    }

    /// The minimum of a gang and how many count to it already; `None` if it is no gang.
    pub(super) fn progress(&self, group: &ObjectKey) -> Option<(u32, u32)> {
        Some((self.counted(group), self.minimum(group)?))
    }

    /// Members of a group that count to its minimum.
    pub(super) fn counted(&self, group: &ObjectKey) -> u32 {
        self.gang(group).map_or(0, Gang::counted)
    }

    /// An object was seen: the row keeps it if it is new, and gives it.
    pub(super) fn seen(&mut self, unit: &UnitKey, object: GroupObject) -> (&mut GroupObject, bool) {
        let row = self.row(unit);
        let is_new = row.object.is_none();
        (row.object.get_or_insert(object), is_new)
    }

    /// What a group or composite asks for has changed.
    pub(super) fn set_asks(&mut self, unit: &UnitKey, asks: Option<Box<Group>>) {
        if let Some(object) = self.object_mut(unit) {
            object.asks = asks;
            self.refresh(unit);
        }
    }

    /// An object is gone. Gives it.
    pub(super) fn gone(&mut self, unit: &UnitKey) -> Option<GroupObject> {
        let object = self.rows.get_mut(unit)?.object.take()?;
        self.refresh(unit);
        Some(object)
    }

    /// Forgets a row that nobody names any more. Gives what the unit waited for.
    fn drop_if_unused(&mut self, unit: &UnitKey) -> Option<(Constraint, Time)> {
        if !self.rows.get(unit)?.has_no_use() {
            return None;
        }
        self.set_due(unit.object(), None);
        self.rows.remove(unit)?.waits_for
    }

    /// Brings up to date whether a group or composite has what it needs, and what that means above it.
    fn refresh(&mut self, unit: &UnitKey) {
        let mut unit = unit.clone();
        for _ in 0..CHAIN_MAX {
            let Some(row) = self.rows.get_mut(&unit) else { return };
            let is_met = row.has_enough();
            if row.is_met == is_met {
                return;
            }
            row.is_met = is_met;
            let Some(parent) = row.parent.clone() else { return };
            unit = UnitKey::Composite(parent);
            if let Some(row) = self.rows.get_mut(&unit) {
                row.met_children =
                    if is_met { row.met_children + 1 } else { row.met_children.saturating_sub(1) };
            }
        }
    }
}

/// How far a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupState {
    /// It is not there, not understood, or has too few members to be tried.
    Forming,
    /// It has what it needs except for a place.
    Waiting,
    /// It has a place, and its members are on their way.
    Starting,
    /// At least as many as must be are on nodes or have ended well.
    Running,
    /// It has started, is below its minimum, and is being completed.
    Completing,
    /// It is being taken back.
    Unwinding,
    /// It is below its minimum and left alone.
    Kept,
}

impl Core {
    /// How far a group has come; `None` if it is not known.
    pub fn group_state(&self, group: &ObjectKey) -> Option<GroupState> {
        let row = self.groups.rows.get(&UnitKey::Group(group.clone()))?;
        Some(match self.gang_state(group) {
            Some(GangState::Completing) => GroupState::Completing,
            Some(GangState::Unwinding) => GroupState::Unwinding,
            Some(GangState::Kept) => GroupState::Kept,
            None if row.is_met => GroupState::Running,
            None if self.starts.has_members_of(group) => GroupState::Starting,
            None => {
                let members = row.gang.counts();
                let has_enough = row.policy().is_some_and(|policy| members.0 >= policy.minimum());
                if has_enough { GroupState::Waiting } else { GroupState::Forming }
            }
        })
    }

    /// How the rows of groups relate to each other and to the pods.
    pub(super) fn check_groups(&self) -> Result<(), String> {
        let rows = &self.groups.rows;
        let mut members: BTreeMap<&ObjectKey, (u32, u32, u32, u32)> = BTreeMap::new();
        for pod in self.pods.values() {
            if let Some(group) = &pod.group {
                let (ours, foreign, bound, ended) = members.entry(group).or_default();
                *if pod.ours { ours } else { foreign } += 1;
                *bound += u32::from(matches!(pod.standing, MemberState::Bound { .. }));
                *ended += u32::from(pod.standing == MemberState::Ended);
            }
        }
        for (unit, row) in rows {
            ensure(!row.has_no_use() || self.groups.changed.contains(unit.object()), || {
                format!("nobody needs {unit}")
            })?;
            ensure(row.is_met == row.has_enough(), || format!("it is not known whether {unit} has enough"))?;
            let met = row.children.iter().filter(|child| rows.get(child).is_some_and(|row| row.is_met));
            ensure(met.count() == row.met_children as usize, || {
                format!("children of {unit} are miscounted")
            })?;
            for child in &row.children {
                let parent = rows.get(child).and_then(|row| row.parent.as_ref());
                ensure(parent == Some(unit.object()), || format!("{child} is no child of {unit}"))?;
            }
            if let Some(parent) = &row.parent {
                let above = rows.get(&UnitKey::Composite(parent.clone()));
                let is_child = above.is_some_and(|above| above.children.contains(unit));
                ensure(is_child, || format!("{unit} is not known to {parent}"))?;
            }
            let asks = row.object.as_ref().and_then(|object| object.asks.as_ref());
            let named = asks.and_then(|asks| asks.parent.as_ref());
            ensure(row.object.is_none() || named == row.parent.as_ref(), || {
                format!("{unit} is not where it wants to be")
            })?;
            if let UnitKey::Group(group) = unit {
                let counts = members.remove(group).unwrap_or_default();
                let known = row.gang.counts();
                ensure(counts == known, || format!("members of {group}: {counts:?}, known {known:?}"))?;
                let due = row.gang.due();
                ensure(due.is_none_or(|due| self.groups.due.contains(&(due, group.clone()))), || {
                    format!("{group} is due and not looked at")
                })?;
            }
        }
        match members.first_key_value() {
            Some((group, _)) => Err(format!("{group} has members and no row")),
            None => Ok(()),
        }
    }
}
