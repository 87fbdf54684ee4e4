//! What a condition is believed to be: what was seen last, and what was written since.

use tutti_k8s::{Condition, ConditionStatus};
use tutti_model::{Text, Time};

/// The belief about one condition of one object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Belief {
    seen: Option<Condition>,
    written: Option<Condition>,
    sent_at: Option<Time>,
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

impl Belief {
    /// The object was seen with this condition. What we wrote stays believed until it is seen, because a watch may be
    /// behind, or until it is seen that the condition holds, which is final.
    pub(crate) fn see(&mut self, seen: Option<Condition>) {
        if let (Some(seen), Some(written)) = (&seen, &self.written)
            && (seen.says_the_same(written) || seen.holds())
        {
            self.written = None;
        }
        self.seen = seen;
    }

    /// A write was given up; it is not believed any more.
    pub(crate) fn give_up(&mut self) {
        self.written = None;
    }

    /// True if either side says that the condition holds.
    pub(crate) fn holds(&self) -> bool {
        [&self.seen, &self.written].into_iter().flatten().any(Condition::holds)
    }

    /// The condition to write, or `None` if it is believed to be so already. The time of the last change is
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

    /// When this condition may be written: at once if it is of another kind than the last, not too often if
    /// only its message changes.
    pub(crate) fn not_before(&self, condition: &Condition, due: Time, interval_s: i64) -> Time {
        let current = self.written.as_ref().or(self.seen.as_ref());
        let same = current.is_some_and(|c| c.status == condition.status && c.reason == condition.reason);
        match self.sent_at {
            Some(at) if same => at.plus_seconds(interval_s).max(due),
            _ => due,
        }
    }

    /// A write of this condition was queued.
    pub(crate) fn write(&mut self, condition: Condition) {
        self.written = Some(condition);
    }

    /// A write went out.
    pub(crate) fn sent(&mut self, now: Time) {
        self.sent_at = Some(now);
    }
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
        let mut belief = Belief::default();
        let first = belief.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        belief.write(first.clone());
        belief.see(None);
        assert_eq!(belief.next(&wanted(ConditionStatus::False, "a"), NOW), None);
        belief.see(Some(first));
        assert_eq!(belief.next(&wanted(ConditionStatus::False, "a"), NOW), None);
    }

    #[test]
    fn what_was_to_be_written_counts_no_more_once_the_condition_was_seen_to_hold() {
        let mut belief = Belief::default();
        let waits = belief.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        let good = belief.next(&wanted(ConditionStatus::True, "b"), NOW).unwrap();
        belief.write(waits);
        belief.see(Some(good));
        assert!(belief.holds());
        belief.see(None);
        assert!(
            belief.next(&wanted(ConditionStatus::False, "a"), NOW).is_some(),
            "somebody has taken it away"
        );
    }

    #[test]
    fn the_time_of_change_moves_with_the_status_only() {
        let mut belief = Belief::default();
        let first = belief.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        belief.see(Some(first));
        let later = NOW.plus_seconds(9);
        let second = belief.next(&wanted(ConditionStatus::False, "b"), later).unwrap();
        assert_eq!(second.changed, Some(NOW));
        let third = belief.next(&wanted(ConditionStatus::True, "b"), later).unwrap();
        assert_eq!(third.changed, Some(later));
    }

    #[test]
    fn a_message_that_changes_all_the_time_is_written_now_and_then() {
        let mut belief = Belief::default();
        let first = belief.next(&wanted(ConditionStatus::False, "a"), NOW).unwrap();
        assert_eq!(belief.not_before(&first, NOW, 5), NOW);
        belief.write(first);
        belief.sent(NOW);
        let second = belief.next(&wanted(ConditionStatus::False, "b"), NOW).unwrap();
        assert_eq!(belief.not_before(&second, NOW, 5), NOW.plus_seconds(5));
        let good = belief.next(&wanted(ConditionStatus::True, ""), NOW).unwrap();
        assert_eq!(belief.not_before(&good, NOW, 5), NOW);
    }
}
