//! Room for gangs that have waited for too long. Small work may pass a gang that has no room, but not for ever: after
//! some time the gang gets a plan, and whatever becomes free at the seats of the plan is kept for it.
//!
//! A plan says where the gang would sit if some nodes were empty: those that have the least on them, and as few as are
//! enough. Its seats may take more than what is free there now, and then nobody else of the same importance gets what
//! becomes free. Only one gang has a plan at a time, because two could keep each other's room; the first in the order
//! of the queue gets it. A gang that would not fit on empty nodes gets none, so that nothing is kept for somebody who
//! cannot come. Who has waited since when is not told by facts: a new leader begins to count anew.

use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::solve::{Outcome, Seats, solve};
use crate::state::holds::{Claimant, Held, HeldRoom, Promise};
use crate::state::nodes::NodeId;
use crate::unit::attempt::Attempt;
use crate::unit::members::Members;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tutti_model::Time;

/// After this time a plan that has not come true is made anew: other nodes may have become the emptier ones.
const PLAN_SECONDS: i64 = 60;
/// Gangs that are planned for at one go. The others are due at once again.
const PLANS_MAX: usize = 4;

/// Who waits for room since when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starving {
    order: BTreeSet<(Time, UnitKey)>,
    since: FxHashMap<UnitKey, Time>,
    /// Who has a plan, and when it was made.
    planned: Option<(UnitKey, Time)>,
}

impl Starving {
    /// A unit has no room now.
    fn waits(&mut self, unit: &UnitKey, now: Time) {
        if !self.since.contains_key(unit) {
            self.since.insert(unit.clone(), now);
            self.order.insert((now, unit.clone()));
        }
    }

    /// A unit does not wait for room, or not any more.
    fn ends(&mut self, unit: &UnitKey) {
        if let Some(since) = self.since.remove(unit) {
            self.order.remove(&(since, unit.clone()));
        }
        if self.is_planned(unit) {
            self.planned = None;
        }
    }

    /// Whoever has waited for so many seconds.
    fn due(&self, patience: i64, now: Time) -> Vec<UnitKey> {
        let over = |since: &Time| since.plus_seconds(patience) <= now;
        self.order.iter().take_while(|(since, _)| over(since)).map(|(_, unit)| unit.clone()).collect()
    }

    /// When somebody will have waited for so many seconds, unless somebody has a plan already.
    pub(crate) fn next(&self, patience: i64) -> Option<Time> {
        if self.planned.is_some() {
            return None;
        }
        self.order.first().map(|(since, _)| since.plus_seconds(patience))
    }

    pub(crate) fn is_planned(&self, unit: &UnitKey) -> bool {
        self.planned.as_ref().is_some_and(|(planned, _)| planned == unit)
    }
}

impl Engine {
    /// A unit was refused for lack of room. A pod for itself, or one of many that may start alone, is no gang.
    pub(crate) fn starves(&mut self, unit: &UnitKey, members: &Members, now: Time) {
        if self.patience().is_none() {
            return;
        }
        if members.need() < 2 && !matches!(unit, UnitKey::Composite(_)) {
            return;
        }
        self.starving.waits(unit, now);
        let is_stale = |made: &Time| made.plus_seconds(PLAN_SECONDS) <= now;
        if self.starving.planned.as_ref().is_some_and(|(planned, made)| planned == unit && is_stale(made)) {
            self.plan(unit, members, now);
        }
    }

    /// A unit does not wait for room, or not any more; nothing is kept for it.
    pub(crate) fn starves_no_more(&mut self, unit: &UnitKey, now: Time) {
        if self.starving.is_planned(unit) {
            self.replace_promise(Promise::Plan(unit.clone()), None, now);
        }
        self.starving.ends(unit);
    }

    /// Plans for whoever has waited for too long, unless somebody has a plan.
    pub(crate) fn plan_for_the_starving(&mut self, now: Time) {
        let Some(patience) = self.patience().filter(|_| self.starving.planned.is_none()) else { return };
        let mut due = self.starving.due(patience, now);
        due.sort_by_cached_key(|unit| self.rank(unit, &self.pods.members(unit)));
        for unit in due.into_iter().take(PLANS_MAX) {
            match self.attempt(&unit) {
                Attempt::Solve(members) => self.plan(&unit, &members, now),
                _ => self.starves_no_more(&unit, now),
            }
            if self.starving.is_planned(&unit) {
                // It learns of it with its next refusal.
                self.touch(&unit, now);
                return;
            }
        }
    }

    /// Makes a plan, or lets the unit wait for as long again if there is none.
    fn plan(&mut self, unit: &UnitKey, members: &Members, now: Time) {
        let lifted = self.lift_holds(unit);
        let seats = self.seats_on_emptied_nodes(members);
        self.holds.restore(&lifted, &mut self.nodes);
        self.starves_no_more(unit, now);
        // Waiting starts now; for whoever has a plan it does not matter.
        self.starving.waits(unit, now);
        let Some(seats) = seats else { return };
        let claimant = self.starving_claimant(unit);
        let room = |&(index, node, count): &(usize, NodeId, u32)| -> HeldRoom {
            (node, self.shapes.get(members.shape(index)).requests.clone(), count)
        };
        let held = Held {
            unit: unit.clone(),
            priority: self.rank(unit, &self.pods.members(unit)).priority.0,
            expires: None,
            claimant: Some(claimant),
            seats: seats.iter().map(room).collect(),
        };
        self.starving.planned = Some((unit.clone(), now));
        self.replace_promise(Promise::Plan(unit.clone()), Some(held), now);
    }

    /// Seats that are kept for somebody who has waited for very long.
    pub fn seats_kept_count(&self) -> u64 {
        let Some((unit, _)) = &self.starving.planned else { return 0 };
        let seats = self.holds.seats(&Promise::Plan(unit.clone()));
        seats.iter().map(|(_, _, count)| u64::from(*count)).sum()
    }

    /// Takes in that somebody has a plan; false if somebody else has one, or it is none.
    pub(crate) fn take_plan(&mut self, unit: &UnitKey, is_kept: bool, now: Time) -> bool {
        if !is_kept || self.starving.planned.as_ref().is_some_and(|(planned, _)| planned != unit) {
            return false;
        }
        self.starving.waits(unit, now);
        self.starving.planned = Some((unit.clone(), now));
        true
    }

    /// Who has a plan, as others see it.
    pub(crate) fn starving_claimant(&self, unit: &UnitKey) -> Claimant {
        let created = self.rank(unit, &self.pods.members(unit)).created;
        Claimant { starves: true, created, unit: unit.clone() }
    }

    /// Where the members would sit if a few nodes were empty. Changes nothing.
    fn seats_on_emptied_nodes(&mut self, members: &Members) -> Option<Seats> {
        let request = members.request();
        let mut used: Vec<(u64, NodeId)> = self.nodes.ids().map(|id| (self.nodes.used(id), id)).collect();
        let rows = self.nodes.empty(self.nodes.ids());
        let takes_any = |id: NodeId| {
            request.shapes.iter().any(|&(shape, _)| self.nodes.room(id, self.shapes.get(shape)) > 0)
        };
        used.retain(|&(_, id)| takes_any(id));
        used.sort_by(|a, b| (a.0, self.nodes.name(a.1)).cmp(&(b.0, self.nodes.name(b.1))));
        let mut found = self.seats(members);
        self.nodes.refill(rows);
        let (mut too_few, mut enough) = (0, used.len());
        while found.is_some() && enough - too_few > 1 {
            let middle = usize::midpoint(too_few, enough);
            let rows = self.nodes.empty(used[..middle].iter().map(|&(_, id)| id));
            let seats = self.seats(members);
            self.nodes.refill(rows);
            if seats.is_some() {
                (enough, found) = (middle, seats);
            } else {
                too_few = middle;
            }
        }
        found
    }

    fn seats(&mut self, members: &Members) -> Option<Seats> {
        let (mut tables, mut budget) = self.tables();
        match solve(&members.request(), &mut tables, &mut budget) {
            Outcome::Placed(seats) => Some(seats),
            Outcome::Infeasible(_) | Outcome::Undecided(_) => None,
        }
    }
}
