//! Which unit is next: those that are ready, by priority, incomplete gangs first, then age and name; and units that
//! pause after a failure. After a takeover, what was begun comes before all of them.

use crate::decision::UnitKey;
use crate::queries::census::WaitState;
use crate::state::units::Importance;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tutti_model::Time;

/// Where a unit stands among the ready ones; smaller comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// What an earlier scheduler has begun comes before all else, once.
    pub(crate) first: Reverse<bool>,
    pub(crate) importance: Importance,
}

/// Units that are to be decided.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    ready: BTreeSet<(Rank, UnitKey)>,
    paused: BTreeSet<(Time, UnitKey)>,
    entries: FxHashMap<UnitKey, Entry>,
}

#[derive(Debug, Clone)]
enum Entry {
    Ready(Rank),
    Paused(Time, Rank),
}

impl Queue {
    /// Makes a unit ready, or paused until a time that is yet to come.
    pub(crate) fn push(&mut self, unit: UnitKey, rank: Rank, not_before: Option<Time>) {
        self.remove(&unit);
        let entry = match not_before {
            Some(time) => {
                self.paused.insert((time, unit.clone()));
                Entry::Paused(time, rank)
            }
            None => {
                self.ready.insert((rank.clone(), unit.clone()));
                Entry::Ready(rank)
            }
        };
        self.entries.insert(unit, entry);
    }

    /// Takes a unit out, wherever it is.
    pub(crate) fn remove(&mut self, unit: &UnitKey) {
        match self.entries.remove(unit) {
            Some(Entry::Ready(rank)) => {
                self.ready.remove(&(rank, unit.clone()));
            }
            Some(Entry::Paused(time, _)) => {
                self.paused.remove(&(time, unit.clone()));
            }
            None => {}
        }
    }

    /// How a unit waits; `None` if it is not in the queue.
    pub(super) fn state_of(&self, unit: &UnitKey) -> Option<WaitState> {
        self.entries.get(unit).map(|entry| match entry {
            Entry::Ready(_) => WaitState::Ready,
            Entry::Paused(until, _) => WaitState::Paused(*until),
        })
    }

    /// Every unit that waits for its turn, the next one first.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (UnitKey, WaitState)> {
        let ready = self.ready.iter().map(|(_, unit)| (unit.clone(), WaitState::Ready));
        let paused = self.paused.iter().map(|(until, unit)| (unit.clone(), WaitState::Paused(*until)));
        ready.chain(paused)
    }

    /// Every unit that waits for its turn, in no meaningful order.
    pub(crate) fn units(&self) -> impl Iterator<Item = &UnitKey> {
        self.entries.keys()
    }

    /// The next unit, or when the next pause ends.
    pub(crate) fn pop(&mut self, now: Time) -> Result<UnitKey, Option<Time>> {
        while let Some((time, _)) = self.paused.first()
            && *time <= now
            && let Some((_, unit)) = self.paused.pop_first()
        {
            if let Some(Entry::Paused(_, rank)) = self.entries.remove(&unit) {
                self.push(unit, rank, None);
            }
        }
        match self.ready.pop_first() {
            Some((_, unit)) => {
                self.entries.remove(&unit);
                Ok(unit)
            }
            None => Err(self.paused.first().map(|(time, _)| *time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::ObjectKey;

    fn unit(name: &str) -> UnitKey {
        UnitKey::Pod(ObjectKey::new("default", name))
    }

    fn rank(priority: i32, incomplete: bool, created: i64) -> Rank {
        let importance = Importance {
            priority: Reverse(priority),
            incomplete: Reverse(incomplete),
            created: Time(created),
        };
        Rank { first: Reverse(false), importance }
    }

    #[test]
    fn priority_comes_before_incomplete_gangs_before_age_before_name() {
        let mut queue = Queue::default();
        queue.push(unit("young"), rank(0, false, 2), None);
        queue.push(unit("old-b"), rank(0, false, 1), None);
        queue.push(unit("old-a"), rank(0, false, 1), None);
        queue.push(unit("incomplete"), rank(0, true, 9), None);
        queue.push(unit("important"), rank(5, false, 9), None);
        queue.push(unit("begun"), Rank { first: Reverse(true), ..rank(-5, true, 9) }, None);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(Time(0)).ok()).collect();
        assert_eq!(order, ["begun", "important", "incomplete", "old-a", "old-b", "young"].map(unit));
    }

    #[test]
    fn a_paused_unit_waits_for_its_time_and_says_when() {
        let mut queue = Queue::default();
        queue.push(unit("a"), rank(0, false, 0), Some(Time(10)));
        assert_eq!(queue.pop(Time(9)), Err(Some(Time(10))));
        assert_eq!(queue.pop(Time(10)), Ok(unit("a")));
        assert_eq!(queue.pop(Time(11)), Err(None));
    }

    #[test]
    fn a_unit_is_in_the_queue_once() {
        let mut queue = Queue::default();
        queue.push(unit("a"), rank(0, false, 0), None);
        queue.push(unit("a"), rank(3, false, 0), None);
        assert_eq!(queue.pop(Time(0)), Ok(unit("a")));
        assert_eq!(queue.pop(Time(0)), Err(None));
    }
}
