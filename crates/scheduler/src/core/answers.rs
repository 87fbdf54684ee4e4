//! What requests answer.

use super::Core;
use super::binds::Verdict;
use super::lane::AfterFailure;
use super::message::{Answer, Fact, WriteKey, WriteOutcome};
use tutti_engine::Event;
use tutti_model::{ObjectKey, Text, Time};

impl Core {
    pub(super) fn answered(&mut self, answer: Answer, now: Time) {
        match answer {
            Answer::Bind { seat, outcome } => {
                if let Some(verdict) = self.binds.bind_answered(&seat, outcome, now) {
                    self.judged(&seat.pod, &seat.uid, verdict, now);
                }
            }
            Answer::Pod { pod, uid, found } => {
                let nodes = &self.nodes;
                let exists = |node: &Text| nodes.contains_key(node);
                if let Some(verdict) = self.binds.lookup_answered(&pod, &uid, found, exists, now) {
                    self.judged(&pod, &uid, verdict, now);
                }
            }
            Answer::Write { key, outcome } => self.write_answered(key, outcome, now),
        }
    }

    fn judged(&mut self, pod: &ObjectKey, uid: &Text, verdict: Verdict, now: Time) {
        match verdict {
            Verdict::Bound { node, wanted } => self.learned_node(pod, uid, &node, &wanted, now),
            Verdict::Failed { node, why } => {
                self.report(Fact::BindFailed { pod: pod.clone(), node: node.clone(), why: why.clone() });
                self.complain_of_binding(pod, &node, &why, now);
                let (pod, uid) = (pod.clone(), uid.clone());
                self.tell(Event::BindFailed { pod, uid }, now);
            }
            Verdict::Gone => {
                // The watch will say so too, but the seats should not wait for it.
                if self.pods.get(pod).is_some_and(|known| known.uid == *uid) {
                    self.pod_gone(pod, now);
                }
            }
            Verdict::Unknown { node, why } => {
                let pod = pod.clone();
                self.report(Fact::BindUnknown { pod, node, why });
            }
        }
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
        if let Some(mut pod) = known.unbound.take() {
            pod.node = Some(node.clone());
            self.tell(Event::PodSet(pod), now);
        }
        self.settled(key, node, wanted, now);
    }

    /// The watch told where a pod is.
    pub(super) fn pod_has_node(&mut self, key: &ObjectKey, node: &Text, now: Time) {
        if let Some(wanted) = self.binds.forget(key) {
            self.settled(key, node, &wanted, now);
        }
        self.pod_writes.cancel(key);
    }

    fn settled(&mut self, key: &ObjectKey, node: &Text, wanted: &Text, now: Time) {
        self.pod_writes.cancel(key);
        if node == wanted {
            self.announce_bound(key, node, now);
        } else {
            self.report(Fact::BoundElsewhere {
                pod: key.clone(),
                wanted: wanted.clone(),
                found: node.clone(),
            });
        }
    }

    fn write_answered(&mut self, key: WriteKey, outcome: WriteOutcome, now: Time) {
        let why = match outcome {
            WriteOutcome::Done => {
                self.write_done(&key);
                return;
            }
            WriteOutcome::Rejected(why) => {
                self.write_done(&key);
                why
            }
            WriteOutcome::Failed(why) => {
                let after = match &key {
                    WriteKey::Group(group) => self.group_writes.failed(group, now),
                    WriteKey::Pod(pod) => self.pod_writes.failed(pod, now),
                    WriteKey::Event(event) => self.events.failed(event, now),
                };
                if after == AfterFailure::Again {
                    return;
                }
                why
            }
        };
        self.write_given_up(key, why);
    }

    fn write_done(&mut self, key: &WriteKey) {
        match key {
            WriteKey::Group(group) => {
                self.group_writes.done(group);
            }
            WriteKey::Pod(pod) => {
                self.pod_writes.done(pod);
            }
            WriteKey::Event(event) => {
                self.events.done(event);
            }
        }
    }
}
