//! How many wait, and for what.

use crate::agenda::Agenda;
use crate::decision::{Seat, UnitKey};
use crate::state::State;
use crate::state::pods::Sits;
use std::collections::BTreeSet;
use tutti_model::Time;

/// Units and the pods in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiters {
    /// Groups; a composite with all its groups counts as one.
    pub groups: u64,
    /// Pods that are units of their own.
    pub single_pods: u64,
    /// All pods, of groups and single ones.
    pub pods: u64,
}

/// Who waits, by what they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// For their turn.
    pub active: Waiters,
    /// For the end of a pause after a failure.
    pub backoff: Waiters,
    /// For room.
    pub unschedulable: Waiters,
    /// For their group, for more members of it, or for its owner to change something.
    pub incomplete: Waiters,
    /// Pods that gates hold back.
    pub gated: u64,
}

/// How a unit waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitState {
    /// In the queue, to be decided.
    Ready,
    /// In the queue, after a pause.
    Paused(Time),
    /// Asleep, until something happens that could help.
    Asleep,
}

impl WaitState {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Paused(_) => "paused",
            Self::Asleep => "asleep",
        }
    }

    /// When a pause ends.
    pub fn until(self) -> Option<Time> {
        match self {
            Self::Paused(until) => Some(until),
            Self::Ready | Self::Asleep => None,
        }
    }
}

/// Seats that were decided and that the API server has not confirmed, by pod.
pub(crate) fn assumed(state: &State) -> Vec<Seat> {
    let seat = |(key, row): (&tutti_model::ObjectKey, &crate::state::pods::PodRow)| match row.sits {
        Sits::Assumed(node) => {
            let (uid, node) = (row.uid.clone(), state.nodes().name(node).clone());
            Some(Seat { pod: key.clone(), uid, node })
        }
        Sits::Nowhere | Sits::Bound(_) => None,
    };
    let mut seats: Vec<Seat> = state.pods().iter().filter_map(seat).collect();
    seats.sort_unstable_by(|a, b| a.pod.cmp(&b.pod));
    seats
}

/// Counts the units that wait. Goes through all pods.
pub(crate) fn census(state: &State, agenda: &Agenda) -> Census {
    let mut census = Census::default();
    let mut counted = BTreeSet::new();
    for (key, row) in state.pods().iter() {
        if !state.profiles().serve(&row.scheduler_name) {
            continue;
        }
        if row.gated && row.is_live() && row.node().is_none() {
            census.gated += 1;
        }
        if !row.wants_seat() {
            continue;
        }
        let unit = state.pods().unit_of(key, row);
        let waiters = match agenda.wait_state(&unit) {
            Some(WaitState::Ready) => &mut census.active,
            Some(WaitState::Paused(_)) => &mut census.backoff,
            Some(WaitState::Asleep) => &mut census.unschedulable,
            None => &mut census.incomplete,
        };
        waiters.pods += 1;
        match &unit {
            UnitKey::Pod(_) => waiters.single_pods += 1,
            UnitKey::Group(_) | UnitKey::Composite(_) => {
                waiters.groups += u64::from(counted.insert(unit));
            }
        }
    }
    census
}
