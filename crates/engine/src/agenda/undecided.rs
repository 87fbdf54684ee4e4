//! Units for which no placement was found within the budget, and none was excluded. They are tried once more after a
//! pause, with more of the budget, when there is nothing else to do. If that was in vain, only a change helps: the same
//! search on the same cluster has the same end. Pauses grow until the unit is decided.

use crate::decision::UnitKey;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tutti_model::Time;

/// First pause before the next try.
const SECONDS_MIN: i64 = 1;
/// Longest pause.
const SECONDS_MAX: i64 = 300;

/// How much of the budget of one decision a try may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum Effort {
    /// Half.
    #[default]
    Usual,
    /// Three quarters, so that the rest of a call fits beside it.
    Most,
}

impl Effort {
    /// The share of a budget.
    pub(crate) fn share(self, steps: u64) -> u64 {
        match self {
            Self::Usual => steps / 2,
            Self::Most => steps - steps / 4,
        }
    }

    fn next(self) -> Option<Self> {
        match self {
            Self::Usual => Some(Self::Most),
            Self::Most => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Open {
    tries: u32,
    next: Option<(Time, Effort)>,
}

/// Units that are undecided.
#[derive(Debug, Clone, Default)]
pub(crate) struct Undecided {
    by_unit: FxHashMap<UnitKey, Open>,
    due: BTreeSet<(Time, UnitKey)>,
}

impl Undecided {
    /// A try with this effort has decided nothing.
    pub(super) fn tried(&mut self, unit: &UnitKey, effort: Effort, now: Time) {
        let tries = self.by_unit.get(unit).map_or(0, |open| open.tries);
        self.end_turn(unit);
        let pause = (SECONDS_MIN << tries.min(16)).min(SECONDS_MAX);
        let next = effort.next().map(|effort| (now.plus_seconds(pause), effort));
        if let Some((time, _)) = next {
            self.due.insert((time, unit.clone()));
        }
        self.by_unit.insert(unit.clone(), Open { tries: tries.saturating_add(1), next });
    }

    /// A unit was decided, or is gone.
    pub(super) fn end(&mut self, unit: &UnitKey) {
        self.end_turn(unit);
        self.by_unit.remove(unit);
    }

    /// A unit is tried for another reason.
    pub(super) fn end_turn(&mut self, unit: &UnitKey) {
        if let Some(open) = self.by_unit.get_mut(unit)
            && let Some((time, _)) = open.next.take()
        {
            self.due.remove(&(time, unit.clone()));
        }
    }

    /// The next unit whose pause is over, and how hard to try.
    pub(super) fn pop(&mut self, now: Time) -> Option<(UnitKey, Effort)> {
        let (time, unit) = self.due.first()?;
        if *time > now {
            return None;
        }
        let unit = unit.clone();
        let effort =
            self.by_unit.get(&unit).and_then(|open| open.next).map_or(Effort::Most, |(_, effort)| effort);
        self.end_turn(&unit);
        Some((unit, effort))
    }

    /// When the next pause is over.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Units with their tries and when the next one is, in no meaningful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&UnitKey, u32, Option<(Time, Effort)>)> {
        self.by_unit.iter().map(|(unit, open)| (unit, open.tries, open.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::ObjectKey;

    #[test]
    fn each_try_is_harder_and_later_and_the_last_one_waits_for_a_change() {
        let unit = UnitKey::Group(ObjectKey::new("a", "g"));
        let mut undecided = Undecided::default();
        undecided.tried(&unit, Effort::Usual, Time(0));
        assert_eq!((undecided.pop(Time(999)), undecided.next()), (None, Some(Time(1_000))));
        assert_eq!(undecided.pop(Time(1_000)), Some((unit.clone(), Effort::Most)));
        undecided.tried(&unit, Effort::Most, Time(1_000));
        assert_eq!(undecided.next(), None, "the same search would have the same end");
        undecided.tried(&unit, Effort::Usual, Time(9_000));
        assert_eq!(undecided.next(), Some(Time(13_000)), "pauses grow until it is decided");
    }
}
