//! Room for gangs that have waited for too long. Small work may pass a gang that has no room, but not forever: after
//! some time the gang gets a *plan*, and whatever becomes free at the seats of the plan is held for it.
//!
//! A plan says where the gang would sit if some nodes were empty: those that have the least on them, and as few as are
//! enough. Its seats may take more than what is free there now, and then no unit of the same importance gets what becomes
//! free. Only one gang has a plan at a time, because two could keep each other's room; the most important one gets it, and
//! the next one has its turn when the plan has lived for long without coming true. A gang that would not fit on empty nodes
//! gets none, so that nothing is held in vain. Facts do not tell since when a gang waits: a new leader begins to count
//! anew.

use crate::decision::UnitKey;
use crate::solve::{Budget, Outcome, Seats, solve};
use crate::state::State;
use crate::state::nodes::NodeId;
use crate::state::txn::Txn;
use crate::unit::members::Members;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tutti_model::Time;

/// For how long a plan may hold room without coming true. Then the next gang has its turn.
pub(crate) const PLAN_SECONDS: i64 = 1_800;
/// After this time a plan is made anew: other nodes may have become the emptier ones.
const RENEW_SECONDS: i64 = 60;

/// Which gangs wait for room, and since when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience {
    order: BTreeSet<(Time, UnitKey)>,
    since: FxHashMap<UnitKey, Time>,
    /// Since when units waited under an engine that decided before this one, until they wait here.
    carried: FxHashMap<UnitKey, Time>,
    /// When the plan that there is was made or last renewed, and for whom.
    planned: Option<(UnitKey, Time)>,
}

impl Patience {
    /// A unit has no room now. Whatever else it waits for in between, it has waited since the first time.
    pub(super) fn waits(&mut self, unit: &UnitKey, now: Time) {
        if !self.since.contains_key(unit) {
            let since = self.carried.remove(unit).map_or(now, |since| since.min(now));
            self.since.insert(unit.clone(), since);
            self.order.insert((since, unit.clone()));
        }
    }

    /// A unit was placed, was suspended, or is over.
    pub(super) fn ends(&mut self, unit: &UnitKey) {
        self.carried.remove(unit);
        if let Some(since) = self.since.remove(unit) {
            self.order.remove(&(since, unit.clone()));
        }
    }

    /// A unit has waited since then, as an engine that decided before this one knows. It counts from its first refusal
    /// on.
    pub(super) fn carry(&mut self, unit: UnitKey, since: Time) {
        self.carried.insert(unit, since);
    }

    /// A unit has had its turn, or there was no plan for it: it waits from now on.
    pub(super) fn begins_anew(&mut self, unit: &UnitKey, now: Time) {
        self.ends(unit);
        self.waits(unit, now);
    }

    /// Units that have waited for so many seconds.
    pub(super) fn due(&self, patience: i64, now: Time) -> Vec<UnitKey> {
        let over = |since: &Time| since.plus_seconds(patience) <= now;
        self.order.iter().take_while(|(since, _)| over(since)).map(|(_, unit)| unit.clone()).collect()
    }

    /// When the next unit will have waited for so many seconds.
    pub(super) fn next(&self, patience: i64) -> Option<Time> {
        self.order.first().map(|(since, _)| since.plus_seconds(patience))
    }

    /// A plan was made or renewed.
    pub(super) fn planned(&mut self, unit: &UnitKey, now: Time) {
        self.planned = Some((unit.clone(), now));
    }

    /// True if the plan of a unit is so old that it is made anew.
    pub(super) fn is_stale(&self, unit: &UnitKey, now: Time) -> bool {
        let is_old = |made: &Time| made.plus_seconds(RENEW_SECONDS) <= now;
        self.planned.as_ref().is_none_or(|(planned, made)| planned != unit || is_old(made))
    }

    /// A plan whose time was over, or that was given up, is none any more; a unit that still waits has had its turn.
    pub(super) fn follow_plan(&mut self, state: &State, now: Time) {
        if let Some((unit, _)) = &self.planned
            && !state.holds().is_planned(unit)
        {
            let unit = unit.clone();
            self.planned = None;
            if self.since.contains_key(&unit) {
                self.begins_anew(&unit, now);
            }
        }
    }

    /// The plan of a unit is given up for now, without its having had its turn.
    pub(super) fn gives_up_plan(&mut self, unit: &UnitKey) {
        if self.planned.as_ref().is_some_and(|(planned, _)| planned == unit) {
            self.planned = None;
        }
    }

    /// Units and since when they wait, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&UnitKey, Time)> {
        self.order.iter().map(|(since, unit)| (unit, *since))
    }
}

/// Where the members of a unit would sit if a few nodes were empty. Changes nothing.
pub(crate) fn seats_on_emptied_nodes(
    state: &mut State,
    unit: &UnitKey,
    members: &Members,
    budget: &mut Budget,
) -> Option<Seats> {
    let mut txn = Txn::begin(state);
    txn.lift_holds(unit);
    let request = members.request();
    let nodes = txn.state().nodes();
    let all: Vec<NodeId> = nodes.ids().collect();
    if !budget.spend(all.len() * (8 + 4 * request.shapes.len())) {
        return None;
    }
    let mut used: Vec<(u64, NodeId)> = all.iter().map(|&id| (nodes.used(id), id)).collect();
    let mut solved = |txn: &mut Txn<'_>, nodes: &[(u64, NodeId)]| {
        let nodes: Vec<NodeId> = nodes.iter().map(|&(_, id)| id).collect();
        txn.on_emptied_nodes(nodes.into_iter(), |txn| match solve(&request, &mut txn.tables(), budget) {
            Outcome::Placed(seats) => Some(seats),
            Outcome::Infeasible(_) | Outcome::Undecided(_) => None,
        })
    };
    txn.on_emptied_nodes(all.iter().copied(), |txn| {
        let (nodes, shapes) = (txn.state().nodes(), txn.state().shapes());
        let takes_any =
            |id: NodeId| request.shapes.iter().any(|&(shape, _)| nodes.room(id, shapes.get(shape)) > 0);
        used.retain(|&(_, id)| takes_any(id));
        used.sort_by(|a, b| (a.0, nodes.name(a.1)).cmp(&(b.0, nodes.name(b.1))));
    });
    let mut found = solved(&mut txn, &used);
    let (mut too_few, mut enough) = (0, used.len());
    while found.is_some() && enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        match solved(&mut txn, &used[..middle]) {
            Some(seats) => (enough, found) = (middle, Some(seats)),
            None => too_few = middle,
        }
    }
    found
}
