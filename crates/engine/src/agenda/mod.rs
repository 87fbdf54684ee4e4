//! The agenda: which unit is next, which sleep and what wakes them, which pause, since when gangs wait, and what was
//! reported. Wake-ups are derived from the change log in one place, `wake.rs`, so that no mutator can forget one.

pub(crate) mod patience;
mod queue;
pub(crate) mod refused;
mod reported;
mod retries;
mod safety_flush;
pub(crate) mod sleepers;
pub(crate) mod undecided;
mod wake;

use crate::decision::{UnitKey, Waiting};
use crate::queries::census::WaitState;
use crate::state::State;
use crate::state::digest::hash;
use patience::Patience;
use queue::{Queue, Rank};
use refused::Refused;
use reported::Reported;
use retries::Retries;
use rustc_hash::FxHashSet;
use safety_flush::SafetyFlush;
use sleepers::{Sleepers, WakesOn};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tutti_model::Time;
use undecided::{Effort, Undecided};

/// How often things happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// A unit was looked at.
    pub(crate) attempts: u64,
    /// A unit that slept was woken because something happened that could help it.
    pub(crate) wake_ups: u64,
    /// A request was solved.
    pub(crate) solves: u64,
}

/// All units that want something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agenda {
    queue: Queue,
    /// Groups and composites of which something has changed since the last decision.
    touched: BTreeSet<UnitKey>,
    sleepers: Sleepers,
    flush: SafetyFlush,
    retries: Retries,
    undecided: Undecided,
    patience: Patience,
    reported: Reported,
    /// Units that are looked at before all others, once.
    firsts: FxHashSet<UnitKey>,
    pub(crate) refused: Refused,
    pub(crate) counts: Counts,
}

impl Agenda {
    /// The same without the past.
    pub(crate) fn fork(&self) -> Self {
        Self { refused: Refused::default(), ..self.clone() }
    }

    /// The next unit and how hard to try, or when to ask again.
    pub(crate) fn next(&mut self, state: &State, now: Time) -> Result<(UnitKey, Effort), Option<Time>> {
        self.enqueue_touched(state, now);
        let found = match self.queue.pop(now) {
            Ok(unit) => Ok((unit, Effort::Usual)),
            Err(pause_ends) => self.undecided.pop(now).ok_or(pause_ends),
        };
        let (unit, effort) = found.map_err(|pause_ends| {
            [pause_ends, self.flush.next(), self.undecided.next()].into_iter().flatten().min()
        })?;
        self.counts.attempts += 1;
        self.firsts.remove(&unit);
        if effort != Effort::Usual {
            self.sleepers.remove(&unit);
            self.flush.wakes(&unit);
        }
        Ok((unit, effort))
    }

    /// Puts units of which something has changed into the queue or out of it.
    pub(crate) fn enqueue_touched(&mut self, state: &State, now: Time) {
        while let Some(unit) = self.touched.pop_first() {
            self.enqueue(&unit, state, now);
        }
    }

    /// Puts a unit into the queue again, or out of it if it has nothing to ask for.
    fn enqueue(&mut self, unit: &UnitKey, state: &State, now: Time) {
        let members = state.pods().members(unit);
        if !state.asks_for_seats(&members) {
            self.queue.remove(unit);
            if !members.iter().any(|(_, row)| row.is_live()) {
                self.forget(unit);
            }
            return;
        }
        let importance = state.importance_of(unit, &members);
        let rank = Rank { first: Reverse(self.firsts.contains(unit)), importance };
        self.queue.push(unit.clone(), rank, self.retries.not_before(unit, now));
    }

    /// A unit is no unit any more: it is over, or part of another one.
    fn forget(&mut self, unit: &UnitKey) {
        self.sleepers.remove(unit);
        self.flush.wakes(unit);
        self.queue.remove(unit);
        self.touched.remove(unit);
        self.undecided.end(unit);
        self.retries.end(unit);
        self.patience.ends(unit);
        self.reported.forget(unit);
        self.firsts.remove(unit);
    }

    /// A binding of a unit has failed: it pauses before it is tried again.
    pub(crate) fn bind_failed(&mut self, unit: &UnitKey, now: Time) {
        self.retries.failed(unit, now);
    }

    /// A unit was placed.
    pub(crate) fn placed(&mut self, unit: &UnitKey) {
        self.flush.placed(unit);
        self.undecided.end(unit);
        self.patience.ends(unit);
        self.reported.forget(unit);
    }

    /// A unit found no room, proven or not, and sleeps.
    pub(crate) fn sleeps(
        &mut self,
        unit: &UnitKey,
        wakes_on: WakesOn,
        unproven: Option<Effort>,
        state: &State,
        now: Time,
    ) {
        match unproven {
            Some(effort) => self.undecided.tried(unit, effort, now),
            None => self.undecided.end(unit),
        }
        self.flush.sleeps(unit, now);
        self.sleepers.insert(unit.clone(), wakes_on, state);
    }

    /// A unit that was set aside is looked at again when it changes, and now and then.
    pub(crate) fn set_aside(&mut self, unit: &UnitKey, now: Time) {
        self.flush.sleeps(unit, now);
    }

    /// Takes note of why a unit waits; true if that is to be reported.
    pub(crate) fn report(&mut self, waiting: &Waiting, now: Time) -> bool {
        self.reported.note(waiting, now)
    }

    /// A gang has no room now.
    pub(crate) fn waits_for_room(&mut self, unit: &UnitKey, now: Time) {
        self.patience.waits(unit, now);
    }

    /// A gang has waited since then, as an engine that decided before this one knows.
    pub(crate) fn carry_waiting_since(&mut self, unit: UnitKey, since: Time) {
        self.patience.carry(unit, since);
    }

    /// Gangs that wait for room, and since when, by name.
    pub(crate) fn waiting_since(&self) -> Vec<(UnitKey, Time)> {
        let mut waiting: Vec<(UnitKey, Time)> =
            self.patience.iter().map(|(unit, since)| (unit.clone(), since)).collect();
        waiting.sort_unstable();
        waiting
    }

    /// There is no plan for a gang: it waits from now on.
    pub(crate) fn waits_anew(&mut self, unit: &UnitKey, now: Time) {
        self.patience.begins_anew(unit, now);
    }

    /// Gangs that have waited for room for so many seconds.
    pub(crate) fn starving(&self, patience: i64, now: Time) -> Vec<UnitKey> {
        self.patience.due(patience, now)
    }

    /// A plan was made or renewed.
    pub(crate) fn planned(&mut self, unit: &UnitKey, now: Time) {
        self.patience.planned(unit, now);
    }

    /// True if the plan of a unit is to be made anew.
    pub(crate) fn plan_is_stale(&self, unit: &UnitKey, now: Time) -> bool {
        self.patience.is_stale(unit, now)
    }

    /// Takes in what has become of the plan that there was.
    pub(crate) fn follow_plan(&mut self, state: &State, now: Time) {
        self.patience.follow_plan(state, now);
    }

    /// The plan of a unit is given up for now.
    pub(crate) fn gives_up_plan(&mut self, unit: &UnitKey) {
        self.patience.gives_up_plan(unit);
    }

    /// When the next gang will have waited for so many seconds.
    pub(crate) fn patience_ends(&self, patience: i64) -> Option<Time> {
        self.patience.next(patience)
    }

    /// How often a unit could be placed that only the safety flush had woken.
    pub(crate) fn flush_finds(&self) -> u64 {
        self.flush.finds_count()
    }

    /// Units about which something was reported that was not taken back.
    pub(crate) fn reported_count(&self) -> usize {
        self.reported.len()
    }

    /// Every unit that waits, and how; the next one first.
    pub(crate) fn waiters(&self, state: &State) -> Vec<(UnitKey, WaitState)> {
        let mut asleep: Vec<(UnitKey, WaitState)> =
            self.sleepers.units().map(|unit| (unit.clone(), WaitState::Asleep)).collect();
        asleep.sort_unstable();
        let queued = self.queue.in_order().filter(|(unit, _)| !self.touched.contains(unit));
        let about_to = self.about_to_queue(state).map(|unit| (unit.clone(), WaitState::Ready));
        queued.chain(about_to).chain(asleep).collect()
    }

    /// How a unit waits; `None` if it waits for something else than its turn or room.
    pub(crate) fn wait_state(&self, unit: &UnitKey) -> Option<WaitState> {
        if self.touched.contains(unit) {
            return Some(WaitState::Ready);
        }
        let queued = self.queue.state_of(unit);
        queued.or_else(|| self.sleepers.contains(unit).then_some(WaitState::Asleep))
    }

    /// Units for which something has changed since the last decision, and that ask for seats.
    fn about_to_queue(&self, state: &State) -> impl Iterator<Item = &UnitKey> {
        self.touched.iter().filter(|unit| state.asks_for_seats(&state.pods().members(unit)))
    }

    /// A number that differs if anything differs that a decision depends on.
    pub(crate) fn digest(&self, state: &State) -> u64 {
        let mut sum = 0_u64;
        let mut add = |part: u64| sum = sum.wrapping_add(part);
        let queued = self.queue.units().filter(|unit| !self.touched.contains(unit));
        for unit in queued.chain(self.about_to_queue(state)) {
            add(hash(("waits for its turn", unit)));
        }
        self.sleepers.units().for_each(|unit| add(hash(("sleeps", unit))));
        self.firsts.iter().for_each(|unit| add(hash(("comes first", unit))));
        self.retries.iter().for_each(|retry| add(hash(("has failed", retry))));
        self.undecided.iter().for_each(|open| add(hash(("is undecided", open))));
        self.patience.iter().for_each(|waits| add(hash(("waits since", waits))));
        sum
    }
}
