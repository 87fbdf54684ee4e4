//! First claim of broken gangs. A gang of which some members sit, but fewer than its minimum, keeps every seat that
//! it can still use while it is not complete, so that a newcomer does not take the room that would complete it.
//!
//! Two kinds of seats are claimed. A seat that a member has *vacated* – it failed, was deleted, or its binding did not
//! happen – is kept for a while, because whoever replaces the member is seen a moment later. And when the gang was
//! tried and not all of it has room, the seats that it does have room for are kept until the rest is found.
//!
//! Claims of equals could block each other for ever, each holding half of what the other needs. So a broken gang may
//! use what a younger one of its priority has claimed.

use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::solve::{Outcome, solve};
use crate::state::holds::{Claimant, Held, Promise};
use crate::state::nodes::NodeId;
use crate::state::pods::PodRow;
use crate::state::shape::ShapeId;
use crate::unit::members::Members;
use std::collections::BTreeSet;
use tutti_model::{ObjectKey, Text, Time};

/// How long a vacated seat is kept for whoever replaces the member. Controllers do so within seconds.
const VACATED_SECONDS: i64 = 60;

impl Engine {
    /// How many more members of a broken gang must get a seat, or of the broken gangs of a composite; `None` if it is not
    /// broken. A gang that is being unwound claims nothing.
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

    /// Who claims, as others see it.
    pub(crate) fn claimant(&self, unit: &UnitKey) -> Option<(i32, Claimant)> {
        let rank = self.rank(unit, &self.pods.members(unit));
        let claimant = Claimant { starves: false, created: rank.created, unit: unit.clone() };
        rank.broken.0.then_some((rank.priority.0, claimant))
    }

    /// A member has left its seat on a node, by name because its row may be gone, without having done its work.
    pub(crate) fn vacate(&mut self, key: &ObjectKey, row: &PodRow, node: Option<Text>, now: Time) {
        let (Some(node), unit) = (node, self.pods.unit_of(key, row)) else {
            return;
        };
        let (Some(missing), Some((priority, claimant))) = (self.missing(&unit), self.claimant(&unit)) else {
            return;
        };
        let promise = Promise::Vacated(unit.clone());
        let mut seats = self.holds.seats(&promise);
        let node = self.nodes.id(&node);
        seats.push((node, self.shapes.get(row.shape).requests.clone(), 1));
        // The latest are the likeliest to be asked for again.
        let excess = seats.len().saturating_sub(missing as usize);
        seats.drain(..excess);
        let expires = Some(now.plus_seconds(VACATED_SECONDS));
        let held = Held { unit, priority, expires, claimant: Some(claimant), seats };
        self.replace_promise(promise, Some(held), now);
    }

    /// The name of the node where a pod sits.
    pub(crate) fn seat_of(&self, row: &PodRow) -> Option<Text> {
        row.node().map(|node| self.nodes.name(node).clone())
    }

    /// Seats that a broken gang could use although not all of it has room. To be asked while its own promises are
    /// lifted.
    pub(crate) fn usable_seats(&mut self, unit: &UnitKey, members: &Members) -> Vec<(ShapeId, NodeId, u32)> {
        // What a part of a tree could use says nothing about the rest.
        let Some(missing) = self.missing(unit).filter(|_| matches!(unit, UnitKey::Group(_))) else {
            return Vec::new();
        };
        let request = members.request().for_any();
        let (mut tables, mut budget) = self.tables();
        let outcome = solve(&request, &mut tables, &mut budget);
        self.note_steps(&budget);
        let Outcome::Placed(found) = outcome else {
            return Vec::new();
        };
        let mut left = missing;
        let mut seats = Vec::new();
        for (index, node, count) in found {
            let count = count.min(left);
            left -= count;
            if count > 0 {
                seats.push((members.shape(index), node, count));
            }
        }
        seats
    }

    /// Claims seats in place of what was claimed before. Whoever's claims these seats were looks for others.
    pub(crate) fn claim(
        &mut self,
        unit: &UnitKey,
        seats: &[(ShapeId, NodeId, u32)],
        lifted: &[Promise],
        now: Time,
    ) {
        let held = self.claimant(unit).filter(|_| !seats.is_empty()).map(|(priority, claimant)| {
            let seats = seats
                .iter()
                .map(|&(shape, node, count)| (node, self.shapes.get(shape).requests.clone(), count))
                .collect();
            Held { unit: unit.clone(), priority, expires: None, claimant: Some(claimant), seats }
        });
        // The members that were waited for are here, and were asked where they would sit.
        self.replace_promise(Promise::Vacated(unit.clone()), None, now);
        if self.replace_promise(Promise::Claim(unit.clone()), held, now) {
            self.ask_claimants_again(unit, lifted, now);
        }
    }

    /// Somebody may have taken what others had claimed.
    pub(crate) fn ask_claimants_again(&mut self, unit: &UnitKey, lifted: &[Promise], now: Time) {
        for promise in lifted {
            if let Promise::Claim(other) = promise
                && other != unit
            {
                self.touch(other, now);
            }
        }
    }

    /// A gang that is not broken, or not any more, claims nothing.
    pub(crate) fn end_claims_unless_broken(&mut self, unit: &UnitKey, now: Time) {
        if !self.holds.claims(unit) || self.missing(unit).is_some() {
            return;
        }
        self.replace_promise(Promise::Vacated(unit.clone()), None, now);
        self.replace_promise(Promise::Claim(unit.clone()), None, now);
    }

    /// Somebody else has decided until now: every broken gang is looked at once before all other work, whatever its
    /// priority, so that what was begun is finished first.
    pub(crate) fn take_over(&mut self, now: Time) {
        let groups = self.pods.groups().map(|(key, _)| UnitKey::Group(key.clone()));
        let units: BTreeSet<UnitKey> = groups.map(|group| self.pods.root_of(&group)).collect();
        for unit in units {
            if self.missing(&unit).is_some() {
                self.firsts.insert(unit.clone());
                self.touch(&unit, now);
            }
        }
    }

    /// A unit, or the tree that a group is part of, is not to be tried until it is resumed, and keeps no seats meanwhile.
    pub(crate) fn set_suspended(&mut self, unit: &UnitKey, suspended: bool, now: Time) {
        let root = self.pods.root_of(unit);
        if suspended {
            self.suspended.insert(unit.clone());
            self.end_hold_of(&root, now);
        } else {
            self.suspended.remove(unit);
        }
        self.touch(&root, now);
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
