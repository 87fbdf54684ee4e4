//! What was reported about units that wait, so that a reason is reported when it calls for another action, and changed
//! numbers alone only now and then.

use crate::decision::{UnitKey, Waiting};
use crate::refusal::{ReasonCode, Refusal};
use rustc_hash::FxHashMap;
use tutti_model::{ObjectKey, Time};

/// How long numbers may be out of date at first, and at most. The time doubles with each report.
const SECONDS_MIN: i64 = 30;
const SECONDS_MAX: i64 = 600;

#[derive(Debug, Clone)]
struct Report {
    refusal: Refusal,
    members: Vec<ObjectKey>,
    is_planned: bool,
    /// What the groups of a tree wait for, each by itself.
    groups: Vec<Option<ReasonCode>>,
    at: Time,
    /// For how long changed numbers are no news.
    seconds: i64,
}

/// The last report about each unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reported {
    by_unit: FxHashMap<UnitKey, Report>,
}

impl Reported {
    /// Takes note of why a unit waits; true if that is to be reported.
    pub(super) fn note(&mut self, waiting: &Waiting, now: Time) -> bool {
        let before = self.by_unit.get(&waiting.unit);
        let groups: Vec<Option<ReasonCode>> = waiting
            .groups
            .iter()
            .map(|group| group.waits.as_ref().map(|refusal| refusal.reason().code))
            .collect();
        // Another minimum is another question, and its answer is news.
        let is_same = |before: &Report| {
            before.members == waiting.members
                && before.is_planned == waiting.is_planned
                && before.groups == groups
                && before.refusal.needed() == waiting.refusal.needed()
        };
        let mut seconds = SECONDS_MIN;
        if let Some(before) = before.filter(|before| is_same(before)) {
            if before.refusal == waiting.refusal {
                return false;
            }
            if before.refusal.reason() == waiting.refusal.reason() {
                if now < before.at.plus_seconds(before.seconds) {
                    return false;
                }
                seconds = (2 * before.seconds).min(SECONDS_MAX);
            }
        }
        let Waiting { unit, members, refusal, is_planned, .. } = waiting;
        let (refusal, members) = (refusal.clone(), members.clone());
        let report = Report { refusal, members, is_planned: *is_planned, groups, at: now, seconds };
        self.by_unit.insert(unit.clone(), report);
        true
    }

    /// A unit was placed, is gone, or is part of another one.
    pub(super) fn forget(&mut self, unit: &UnitKey) {
        self.by_unit.remove(unit);
    }

    /// Units about which something was reported.
    pub(super) fn len(&self) -> usize {
        self.by_unit.len()
    }
}
