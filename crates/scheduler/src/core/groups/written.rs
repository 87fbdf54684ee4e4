//! A condition as it was last written: what was seen of it, and what was written since.

use tutti_k8s::{Condition, ConditionStatus};
use tutti_model::{Text, Time};

/// One condition of one object, as far as is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConditionWritten {
    seen: Option<Condition>,
    written: Option<Condition>,
    sent_at: Option<Time>,
    /// How often it was written in other words since it has the reason that it has.
    rewordings: u32,
}

/// A condition to be, without what follows from the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) kind: Text,
    pub(crate) status: ConditionStatus,
    pub(crate) reason: &'static str,
    pub(crate) message: Text,
    pub(crate) observed_generation: i64,
}

impl ConditionWritten {
    /// The object was seen with this condition. What we wrote stays true until it is seen, because a watch may be
    /// behind, or until it is seen that the condition holds, which is final.
    pub(crate) fn see(&mut self, seen: Option<Condition>) {
        if let (Some(seen), Some(written)) = (&seen, &self.written)
            && (seen.says_the_same(written) || seen.holds())
        {
            self.written = None;
        }
        self.seen = seen;
    }

    /// A write was given up; it was not written.
    pub(crate) fn give_up(&mut self) {
        self.written = None;
    }

    /// True if either side says that the condition holds.
    pub(crate) fn holds(&self) -> bool {
        [&self.seen, &self.written].into_iter().flatten().any(Condition::holds)
    }

    /// The condition to write, or `None` if it is so already. The time of the last change is
    /// kept unless the status changes.
    pub(crate) fn next(&self, wanted: &Wanted, now: Time) -> Option<Condition> {
        let current = self.written.as_ref().or(self.seen.as_ref());
        let kept =
            current.filter(|current| current.status == wanted.status).and_then(|current| current.changed);
        let condition = Condition {
            kind: wanted.kind.clone(),
            status: wanted.status,
            reason: wanted.reason.into(),
            message: wanted.message.clone(),
            observed_generation: wanted.observed_generation,
            changed: Some(kept.unwrap_or(now)),
        };
        let news = current.is_none_or(|current| !current.says_the_same(&condition));
        news.then_some(condition)
    }

    /// True if a condition says for another reason than the last one what is the case, or something else.
    pub(crate) fn is_another_reason(&self, condition: &Condition) -> bool {
        let current = self.written.as_ref().or(self.seen.as_ref());
        current.is_none_or(|c| c.status != condition.status || c.reason != condition.reason)
    }

    /// When this condition may be written: at once if it has another reason than the last one, and less and less often if
    /// only its words change.
    pub(crate) fn not_before(&self, condition: &Condition, due: Time, interval_s: i64) -> Time {
        match self.sent_at {
            Some(at) if !self.is_another_reason(condition) => {
                at.plus_seconds(growing(interval_s, self.rewordings)).max(due)
            }
            _ => due,
        }
    }

    /// A write of this condition was queued.
    pub(crate) fn write(&mut self, condition: Condition) {
        if self.is_another_reason(&condition) {
            self.rewordings = 0;
        }
        self.written = Some(condition);
    }

    /// A write went out.
    pub(crate) fn sent(&mut self, now: Time) {
        if self.sent_at.is_some() {
            self.rewordings = self.rewordings.saturating_add(1);
        }
        self.sent_at = Some(now);
    }
}

/// Longest interval between two that say the same in other words.
const INTERVAL_SECONDS_MAX: i64 = 1_800;

/// An interval that has doubled so many times.
pub(crate) fn growing(interval_s: i64, times: u32) -> i64 {
    interval_s.saturating_mul(1 << times.min(16)).min(INTERVAL_SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(50_000);

    fn wanted(status: ConditionStatus, message: &str) -> Wanted {
        Wanted { kind: "T".into(), status, reason: "R", message: message.into(), observed_generation: 1 }
    }

    #[test]
    fn the_same_is_not_written_twice_even_if_the_watch_is_behind() {
        let mut condition = ConditionWritten::default();
        let first = condition.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        condition.write(first.clone());
        condition.see(None);
        assert_eq!(condition.next(&wanted(ConditionStatus::False, "a"), NOW), None);
        condition.see(Some(first));
        assert_eq!(condition.next(&wanted(ConditionStatus::False, "a"), NOW), None);
    }

    #[test]
    fn what_was_to_be_written_counts_no_more_once_the_condition_was_seen_to_hold() {
        let mut condition = ConditionWritten::default();
        let waits = condition.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        let good = condition.next(&wanted(ConditionStatus::True, "b"), NOW).unwrap();
        condition.write(waits);
        condition.see(Some(good));
        assert!(condition.holds());
        condition.see(None);
        assert!(
            condition.next(&wanted(ConditionStatus::False, "a"), NOW).is_some(),
            "another client has taken it away"
        );
    }

    #[test]
    fn the_time_of_change_moves_with_the_status_only() {
        let mut condition = ConditionWritten::default();
        let first = condition.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        condition.see(Some(first));
        let later = NOW.plus_seconds(9);
        let second = condition.next(&wanted(ConditionStatus::False, "b"), later).unwrap();
        assert_eq!(second.changed, Some(NOW));
        let third = condition.next(&wanted(ConditionStatus::True, "b"), later).unwrap();
        assert_eq!(third.changed, Some(later));
    }

    #[test]
    fn a_message_that_changes_all_the_time_is_written_now_and_then() {
        let mut condition = ConditionWritten::default();
        let first = condition.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        assert_eq!(condition.not_before(&first, NOW, 5), NOW);
        condition.write(first);
        condition.sent(NOW);
        let second = condition.next(&wanted(ConditionStatus::False, "b"), NOW).unwrap();
        assert_eq!(condition.not_before(&second, NOW, 5), NOW.plus_seconds(5));
        let good = condition.next(&wanted(ConditionStatus::True, ""), NOW).unwrap();
        assert_eq!(condition.not_before(&good, NOW, 5), NOW);
        // Every further time takes twice as long.
        let mut now = NOW;
        for (message, seconds) in [("b", 5), ("c", 10), ("d", 20)] {
            let next = condition.next(&wanted(ConditionStatus::False, message), now).unwrap();
            let due = condition.not_before(&next, now, 5);
            assert_eq!(due, now.plus_seconds(seconds));
            condition.write(next);
            condition.sent(due);
            now = due;
        }
    }
}
