//! Pauses after failed bindings, longer after each failure in a row.

use crate::decision::UnitKey;
use rustc_hash::FxHashMap;
use tutti_model::Time;

/// First pause after a failed binding.
const SECONDS_MIN: i64 = 1;
/// Longest pause after failed bindings.
const SECONDS_MAX: i64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Retry {
    failures: u32,
    not_before: Time,
}

/// Units whose bindings have failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Retries {
    by_unit: FxHashMap<UnitKey, Retry>,
}

impl Retries {
    /// A binding of a unit has failed: it is not tried for a while. Members that fail while it pauses already are part
    /// of the same trouble: a gang must not pause longer because it has more of them.
    pub(super) fn failed(&mut self, unit: &UnitKey, now: Time) {
        let retry = self.by_unit.get(unit);
        if retry.is_some_and(|retry| now < retry.not_before) {
            return;
        }
        let failures = retry.map_or(0, |retry| retry.failures).saturating_add(1);
        let pause = (SECONDS_MIN << failures.min(16).saturating_sub(1)).min(SECONDS_MAX);
        self.by_unit.insert(unit.clone(), Retry { failures, not_before: now.plus_seconds(pause) });
    }

    /// A row of failures has ended, or the unit has.
    pub(super) fn end(&mut self, unit: &UnitKey) {
        self.by_unit.remove(unit);
    }

    /// When a unit may be tried again, if that is yet to come.
    pub(super) fn not_before(&self, unit: &UnitKey, now: Time) -> Option<Time> {
        self.by_unit.get(unit).map(|retry| retry.not_before).filter(|&time| time > now)
    }

    /// Units and how often in a row they failed, in no meaningful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&UnitKey, u32, Time)> {
        self.by_unit.iter().map(|(unit, retry)| (unit, retry.failures, retry.not_before))
    }
}
