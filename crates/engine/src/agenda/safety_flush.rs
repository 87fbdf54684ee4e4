//! The safety net under wake-ups: a unit that has slept for very long is looked at again. If that ever helps, something
//! happened that should have woken the unit and did not; so it is counted.

use crate::decision::UnitKey;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use tutti_model::Time;

/// After this time a unit is looked at again although nothing happened that could help it.
const FLUSH_SECONDS: i64 = 300;

/// Which units sleep, and since when.
#[derive(Debug, Clone, Default)]
pub(crate) struct SafetyFlush {
    order: BTreeSet<(Time, UnitKey)>,
    since: FxHashMap<UnitKey, Time>,
    /// Units that were looked at again for no other reason than the time.
    flushed: FxHashSet<UnitKey>,
    finds_count: u64,
}

impl SafetyFlush {
    /// A unit goes to sleep.
    pub(crate) fn sleeps(&mut self, unit: &UnitKey, now: Time) {
        self.wakes(unit);
        self.since.insert(unit.clone(), now);
        self.order.insert((now, unit.clone()));
    }

    /// A unit is looked at again, for any reason, or is gone.
    pub(crate) fn wakes(&mut self, unit: &UnitKey) {
        self.flushed.remove(unit);
        if let Some(since) = self.since.remove(unit) {
            self.order.remove(&(since, unit.clone()));
        }
    }

    /// A unit was looked at again because of [`SafetyFlush::due`] alone.
    pub(crate) fn flushed(&mut self, unit: UnitKey) {
        self.flushed.insert(unit);
    }

    /// A unit was placed.
    pub(crate) fn placed(&mut self, unit: &UnitKey) {
        self.finds_count += u64::from(self.flushed.remove(unit));
    }

    /// Units that have slept for too long.
    pub(crate) fn due(&self, now: Time) -> Vec<UnitKey> {
        let over = |since: &Time| since.plus_seconds(FLUSH_SECONDS) <= now;
        self.order.iter().take_while(|(since, _)| over(since)).map(|(_, unit)| unit.clone()).collect()
    }

    /// When the next unit will have slept for too long.
    pub(crate) fn next(&self) -> Option<Time> {
        self.order.first().map(|(since, _)| since.plus_seconds(FLUSH_SECONDS))
    }

    /// Units that were placed although nothing had woken them.
    pub(crate) fn finds_count(&self) -> u64 {
        self.finds_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::ObjectKey;

    #[test]
    fn a_unit_that_sleeps_for_too_long_is_looked_at_and_a_find_is_counted() {
        let unit = UnitKey::Pod(ObjectKey::new("a", "p"));
        let mut flush = SafetyFlush::default();
        flush.sleeps(&unit, Time(0));
        assert_eq!(flush.next(), Some(Time(300_000)));
        assert_eq!(flush.due(Time(299_999)), []);
        assert_eq!(flush.due(Time(300_000)), std::slice::from_ref(&unit));
        flush.wakes(&unit);
        flush.flushed(unit.clone());
        flush.placed(&unit);
        assert_eq!((flush.finds_count(), flush.next()), (1, None));
    }

    #[test]
    fn a_unit_that_was_woken_in_time_is_no_find() {
        let unit = UnitKey::Pod(ObjectKey::new("a", "p"));
        let mut flush = SafetyFlush::default();
        flush.sleeps(&unit, Time(0));
        flush.flushed(unit.clone());
        // Something happens before its turn comes.
        flush.wakes(&unit);
        flush.placed(&unit);
        assert_eq!(flush.finds_count(), 0);
    }
}
