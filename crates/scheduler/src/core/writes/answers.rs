//! What requests answer.

use super::super::message::{Answer, BindOutcome, Fact, Lookup, WriteKey, WriteOutcome};
use super::super::starts::Verdict;
use super::super::{Core, MemberState};
use super::queue::{AfterFailure, WriteQueue};
use super::window::Window;
use std::hash::Hash;
use tutti_engine::Event;
use tutti_k8s::ObjectKind;
use tutti_model::{ObjectKey, Text, Time};

impl Core {
    pub(in super::super) fn answered(&mut self, answer: Answer, now: Time) {
        match answer {
            Answer::Bind { seat, outcome } => {
                if matches!(outcome, BindOutcome::Throttled { .. }) {
                    self.counters.throttled += 1;
                }
                if let Some(verdict) = self.starts.bindings.bind_answered(&seat, outcome, now) {
                    self.judged(&seat.pod, &seat.uid, verdict, now);
                }
            }
            Answer::Pod { pod, uid, found } => {
                self.counters.throttled += u64::from(matches!(found, Lookup::Throttled { .. }));
                let nodes = &self.nodes;
                let exists = |node: &Text| nodes.contains_key(node);
                if let Some(verdict) = self.starts.bindings.lookup_answered(&pod, &uid, found, exists, now) {
                    self.judged(&pod, &uid, verdict, now);
                }
            }
            Answer::Group { group, found } => self.group_answered(&group, found, now),
            Answer::Write { key, outcome } => self.write_answered(key, outcome, now),
        }
    }

    fn judged(&mut self, pod: &ObjectKey, uid: &Text, verdict: Verdict, now: Time) {
        self.binding_ends(pod);
        match verdict {
            Verdict::Bound { node, wanted } => self.learned_node(pod, uid, &node, &wanted, now),
            Verdict::Failed { node, why } => self.bind_failed(pod, uid, &node, &why, now),
            Verdict::Gone => {
                // The watch will say so too, but the seats should not wait for it.
                if self.pods.get(pod).is_some_and(|known| known.uid == *uid) {
                    self.found_gone(ObjectKind::Pod, pod, uid);
                    self.pod_gone(pod, now);
                }
            }
            Verdict::Unknown { node, why } => {
                self.counters.bind_unknowns += 1;
                let pod = pod.clone();
                self.report(Fact::BindUnknown { pod, node, why });
            }
        }
    }

    /// A binding did certainly not happen.
    pub(in super::super) fn bind_failed(
        &mut self,
        pod: &ObjectKey,
        uid: &Text,
        node: &Text,
        why: &Text,
        now: Time,
    ) {
        self.binding_ends(pod);
        self.say_bind_failed(pod, node, why, now);
        self.tell(Event::BindFailed { pod: pod.clone(), uid: uid.clone() }, now);
        self.read_kept(std::slice::from_ref(pod), now);
    }

    /// Says of a pod that it was not bound.
    pub(in super::super) fn say_bind_failed(&mut self, pod: &ObjectKey, node: &Text, why: &Text, now: Time) {
        self.counters.bind_failures += 1;
        self.report(Fact::BindFailed { pod: pod.clone(), node: node.clone(), why: why.clone() });
        self.complain_of_binding(pod, node, why, now);
    }

    /// A request told where a pod is, before the watch did.
    fn learned_node(&mut self, key: &ObjectKey, uid: &Text, node: &Text, wanted: &Text, now: Time) {
        let Some(known) = self.pods.get_mut(key).filter(|known| known.uid == *uid) else {
            return;
        };
        if known.node.is_some() {
            return;
        }
        known.node = Some(node.clone());
        known.scheduled = None;
        let controlled = known.controlled;
        let standing = known.pod.as_mut().map(|pod| {
            pod.node = Some(node.clone());
            MemberState::of(pod, controlled)
        });
        self.tell(Event::PodBound { pod: key.clone(), uid: uid.clone(), node: node.clone() }, now);
        if let Some(standing) = standing {
            self.set_standing(key, standing);
        }
        self.settled(key, node, wanted, now);
    }

    /// The watch told where a pod is.
    pub(in super::super) fn pod_has_node(&mut self, key: &ObjectKey, node: &Text, now: Time) {
        if let Some(wanted) = self.seat_ends(key, now) {
            self.settled(key, node, &wanted, now);
        }
        self.pod_writes.cancel(key);
    }

    fn settled(&mut self, key: &ObjectKey, node: &Text, wanted: &Text, now: Time) {
        self.pod_writes.cancel(key);
        if node == wanted {
            let waits_since = self.pods.get(key).and_then(|known| known.waits_since);
            self.count_bound(waits_since, now);
            self.announce_bound(key, node, now);
        } else {
            self.counters.bound_elsewhere += 1;
            self.report(Fact::BoundElsewhere {
                pod: key.clone(),
                wanted: wanted.clone(),
                found: node.clone(),
            });
        }
    }

    fn write_answered(&mut self, key: WriteKey, outcome: WriteOutcome, now: Time) {
        match &outcome {
            WriteOutcome::Done => self.write_window.good(),
            WriteOutcome::Throttled { .. } => self.counters.throttled += 1,
            WriteOutcome::Rejected(_) | WriteOutcome::Failed(_) | WriteOutcome::Conflict(_) => {}
        }
        let given_up = match &key {
            WriteKey::Group(group) => {
                ended(&mut self.group_writes, group, outcome, &mut self.write_window, now)
            }
            WriteKey::Pod(pod) => {
                let is_done = outcome == WriteOutcome::Done;
                let given_up = ended(&mut self.pod_writes, pod, outcome, &mut self.write_window, now);
                if !is_done && !self.pod_writes.contains(pod) {
                    self.pod_condition_not_written(pod);
                }
                given_up
            }
            WriteKey::Event(event) => ended(&mut self.events, event, outcome, &mut self.write_window, now),
            WriteKey::Eviction(pod) => self.eviction_answered(pod, outcome, now),
            WriteKey::Storage(storage) => self.storage_answered(storage, outcome, now),
            WriteKey::Marks(group) => {
                let is_done = outcome == WriteOutcome::Done;
                if matches!(outcome, WriteOutcome::Conflict(_)) {
                    self.starts.looks.look(group);
                }
                let given_up = ended(&mut self.mark_writes, group, outcome, &mut self.write_window, now);
                if is_done && !self.mark_writes.contains(group) {
                    self.marks_written(group, true, now);
                }
                given_up
            }
        };
        if let Some(why) = given_up {
            self.write_given_up(key, why, now);
        }
    }
}

/// Takes note in its queue of how a write has ended. Gives why it was given up, if it was.
pub(in super::super) fn ended<K: Hash + Eq + Clone, V: Clone>(
    queue: &mut WriteQueue<K, V>,
    key: &K,
    outcome: WriteOutcome,
    window: &mut Window,
    now: Time,
) -> Option<Text> {
    match outcome {
        WriteOutcome::Done => {
            queue.done(key);
            None
        }
        WriteOutcome::Rejected(why) => {
            queue.done(key);
            Some(why)
        }
        WriteOutcome::Failed(why) | WriteOutcome::Conflict(why) => {
            (queue.failed(key, now) == AfterFailure::GivenUp).then_some(why)
        }
        WriteOutcome::Throttled { pause, .. } => {
            let until = window.throttled(pause, now);
            queue.postpone(key, until);
            None
        }
    }
}
