//! Members of a gang that is taken back: first it is said on the pod that it is disrupted and why, then it is deleted,
//! and only if it is still the same pod.

use super::super::Core;
use super::super::message::{Effect, WriteOutcome};
use super::super::writes::answers::ended;
use super::{GangState, MemberState};
use tutti_k8s::pod::DISRUPTION_TARGET;
use tutti_k8s::{Condition, ConditionStatus};
use tutti_model::{ObjectKey, Text, Time};

/// A member that is still there after this time is deleted again.
pub(super) const EVICT_AGAIN_SECONDS: i64 = 30;
/// Why, in one word, on the pod.
const REASON: &str = "GangUnwound";

/// What is to be done next about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Eviction {
    /// Say that it is disrupted.
    Mark {
        /// Identity of the pod.
        uid: Text,
        /// Its group.
        group: ObjectKey,
    },
    /// Delete it.
    Delete {
        /// Identity of the pod.
        uid: Text,
    },
}

impl Core {
    /// Begins to delete a member, unless that was begun.
    pub(in super::super) fn evict(&mut self, pod: &ObjectKey, group: &ObjectKey, now: Time) {
        let Some(known) = self.pods.get_mut(pod) else {
            return;
        };
        if self.evictions.contains(pod) || known.evict_after.is_some_and(|after| now < after) {
            return;
        }
        known.evict_after = Some(now.plus_seconds(EVICT_AGAIN_SECONDS));
        let eviction = Eviction::Mark { uid: known.uid.clone(), group: group.clone() };
        // A queue that is full is tried again like everything else here.
        self.evictions.put(pod.clone(), eviction, now);
    }

    /// True if a pod still runs and its gang is still being unwound: a try that comes after that would delete what
    /// nobody has announced any more.
    pub(in super::super) fn is_to_be_evicted(&self, pod: &ObjectKey) -> bool {
        self.pods.get(pod).is_some_and(|known| {
            let state = known.group.as_ref().and_then(|group| self.gang_state(group));
            matches!(known.standing, MemberState::Bound { .. }) && state == Some(GangState::Unwinding)
        })
    }

    /// The request of an eviction. One that deletes may happen for as long as any request may, answered or not.
    pub(in super::super) fn eviction_request(
        &mut self,
        pod: ObjectKey,
        eviction: Eviction,
        now: Time,
    ) -> Effect {
        match eviction {
            Eviction::Mark { uid, group } => {
                let message =
                    format!("pod group {} did not become complete and is started again", group.name);
                let condition = Box::new(Condition {
                    kind: DISRUPTION_TARGET.into(),
                    status: ConditionStatus::True,
                    reason: REASON.into(),
                    message: message.into(),
                    observed_generation: 0,
                    changed: Some(now),
                });
                Effect::MarkDisrupted { pod, uid, condition }
            }
            Eviction::Delete { uid } => {
                let until = now + self.config.outcome_settles_after;
                if let Some(known) = self.pods.get_mut(&pod) {
                    known.may_go_until = Some(until);
                }
                Effect::DeletePod { pod, uid }
            }
        }
    }

    /// A step of an eviction was answered. Gives why it was given up, if it was.
    pub(in super::super) fn eviction_answered(
        &mut self,
        pod: &ObjectKey,
        outcome: WriteOutcome,
        now: Time,
    ) -> Option<Text> {
        match outcome {
            WriteOutcome::Done => {
                match self.evictions.done(pod) {
                    Some(Eviction::Mark { uid, .. }) => {
                        self.evictions.put(pod.clone(), Eviction::Delete { uid }, now);
                    }
                    Some(Eviction::Delete { .. }) => self.counters.evictions += 1,
                    None => {}
                }
                None
            }
            other => ended(&mut self.evictions, pod, other, &mut self.write_window, now),
        }
    }
}
