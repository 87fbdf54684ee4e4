//! What the core asks for, what came of it, and when to ask again.

use super::view::PodRef;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Something to do in the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Merge-patch the status of a node. The patch carries the resourceVersion that it was made from, so it
    /// can never undo what somebody else wrote meanwhile. Wants an answer.
    PatchNode {
        /// Which node.
        name: String,
        /// The patch.
        patch: Value,
    },
    /// Merge-patch the labels of a node, under the same guard. Wants an answer.
    LabelNode {
        /// Which node.
        name: String,
        /// The patch.
        patch: Value,
    },
    /// Give a sign of life for a node: renew its lease, or make it. Wants an answer.
    RenewLease {
        /// Which node.
        name: String,
        /// The lease.
        lease: Value,
    },
    /// Merge-patch the status of a pod, under the same guard. Wants an answer.
    PatchPod {
        /// Which pod.
        pod: PodRef,
        /// The patch.
        patch: Value,
    },
    /// Remove a pod at once, if it still has this uid. Wants an answer.
    DeletePod {
        /// Which pod.
        pod: PodRef,
    },
    /// Tell people, as an event of the pod. Nobody waits for the answer.
    Warn {
        /// Which pod.
        pod: PodRef,
        /// One word for machines.
        reason: &'static str,
        /// One sentence for people.
        message: String,
    },
}

impl Effect {
    /// Whose answer the core waits for, if it waits.
    pub fn target(&self) -> Option<Target> {
        match self {
            Self::PatchNode { name, .. } | Self::LabelNode { name, .. } => Some(Target::Node(name.clone())),
            Self::RenewLease { name, .. } => Some(Target::Lease(name.clone())),
            Self::PatchPod { pod, .. } | Self::DeletePod { pod } => Some(Target::Pod(pod.clone())),
            Self::Warn { .. } => None,
        }
    }
}

/// An object that effects are about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A node, by name.
    Node(String),
    /// The lease of a node, by name.
    Lease(String),
    /// A pod.
    Pod(PodRef),
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// The object is not what it was; its watch will tell.
    Conflict,
    /// The object is gone; its watch will tell.
    Gone,
    /// It failed and may succeed later.
    Failed(String),
}

/// After a success the watch should show the new object within this time; if not, look again.
const SETTLE: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_FIRST: SignedDuration = SignedDuration::from_millis(200);
const BACKOFF_LONGEST: SignedDuration = SignedDuration::from_secs(30);
/// After so many failures in a row people should know. It is still tried, at the longest interval: an outage
/// must not leave anything behind that nobody looks at again.
const FAILURES_TO_WARN: u32 = 8;

/// The write that an object waits for. There is at most one at a time, which also bounds every queue of
/// effects by the number of objects.
#[derive(Debug, Default)]
pub(super) struct PendingWrite {
    /// The resourceVersion that the write was made from.
    version: String,
    state: State,
    failures: u32,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Nothing is asked for.
    #[default]
    Idle,
    /// Asked for, no answer yet.
    InFlight,
    /// Answered; nothing is to be done before this time unless the object changes.
    Until(Timestamp),
}

/// Whether an object may be written.
#[derive(Debug, PartialEq)]
pub(super) enum Gate {
    /// Yes.
    Open,
    /// No, something else will happen first: an answer or a change of the object.
    Closed,
    /// Not before this time.
    ClosedUntil(Timestamp),
}

impl PendingWrite {
    pub(super) fn gate(&self, now: Timestamp) -> Gate {
        match self.state {
            State::Idle => Gate::Open,
            State::InFlight => Gate::Closed,
            State::Until(time) if now < time => Gate::ClosedUntil(time),
            State::Until(_) => Gate::Open,
        }
    }

    /// A write of the object in this version is on its way.
    pub(super) fn sent(&mut self, version: &str) {
        version.clone_into(&mut self.version);
        self.state = State::InFlight;
    }

    /// The object was seen in this version.
    pub(super) fn seen(&mut self, version: &str) {
        if self.version != version && self.state != State::InFlight {
            self.state = State::Idle;
        }
    }

    /// The answer came; `version` is the newest that was seen of the object.
    pub(super) fn answered(&mut self, outcome: &Outcome, version: &str, now: Timestamp) {
        match outcome {
            Outcome::Done => self.failures = 0,
            Outcome::Conflict | Outcome::Gone => {}
            Outcome::Failed(_) => self.failures = self.failures.saturating_add(1),
        }
        self.state = match outcome {
            Outcome::Failed(_) => State::Until(later(now, backoff(self.failures))),
            // The watch was faster than the answer.
            _ if self.version != version => State::Idle,
            _ => State::Until(later(now, SETTLE)),
        };
    }

    /// True if it fails again and again.
    pub(super) fn is_stuck(&self) -> bool {
        self.failures >= FAILURES_TO_WARN
    }
}

/// Doubles with every failure, up to a limit.
fn backoff(failures: u32) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(16);
    BACKOFF_FIRST.checked_mul(1 << doublings).map_or(BACKOFF_LONGEST, |delay| delay.min(BACKOFF_LONGEST))
}

/// `now + delay`; the end of time is as good as never.
pub(super) fn later(now: Timestamp, delay: SignedDuration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn failures_wait_longer_each_time_up_to_a_limit() {
        let mut write = PendingWrite::default();
        let mut waits = Vec::new();
        for _ in 0..100 {
            write.sent("1");
            write.answered(&Outcome::Failed("no".to_owned()), "1", NOW);
            let Gate::ClosedUntil(time) = write.gate(NOW) else { panic!("it must wait") };
            assert_eq!(write.gate(time), Gate::Open);
            waits.push(time.duration_since(NOW));
        }
        assert_eq!(waits[..3], [BACKOFF_FIRST, BACKOFF_FIRST * 2, BACKOFF_FIRST * 4]);
        assert!(waits.is_sorted() && waits.last() == Some(&BACKOFF_LONGEST));
        assert!(write.is_stuck());
        write.seen("1");
        assert_ne!(write.gate(NOW), Gate::Open, "seeing the same object again changes nothing");
        write.seen("2");
        assert_eq!(write.gate(NOW), Gate::Open);
    }

    #[test]
    fn after_a_success_nothing_is_written_until_the_watch_shows_it() {
        let mut write = PendingWrite::default();
        write.sent("1");
        assert_eq!(write.gate(NOW), Gate::Closed);
        write.answered(&Outcome::Done, "1", NOW);
        assert_eq!(write.gate(NOW), Gate::ClosedUntil(later(NOW, SETTLE)));
        write.seen("2");
        assert_eq!(write.gate(NOW), Gate::Open);
    }

    #[test]
    fn a_watch_that_is_faster_than_the_answer_opens_the_gate_with_the_answer() {
        let mut write = PendingWrite::default();
        write.sent("1");
        write.seen("2");
        assert_eq!(write.gate(NOW), Gate::Closed);
        write.answered(&Outcome::Conflict, "2", NOW);
        assert_eq!(write.gate(NOW), Gate::Open);
    }
}
