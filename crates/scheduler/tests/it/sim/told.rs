//! What a process was told, by its watches and by answers to its requests, and what follows from it: nobody is sent to a
//! node that was known to be full, closed or the wrong one when the bindings went out.

use super::Sim;
use super::tally::Deed;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::Seat;
use tutti_k8s::{ObjectKind, PodReading};
use tutti_model::taint::untolerated;
use tutti_model::{Node, ObjectKey, Text};
use tutti_scheduler::core::message::{Answer, BindOutcome, Effect, Fact, Input, Lookup};

#[derive(Debug)]
struct ToldPod {
    uid: Text,
    node: Option<Text>,
    cpu: i64,
    is_over: bool,
    /// It is for another scheduler.
    is_foreign: bool,
}

/// What one process knows.
#[derive(Debug, Default)]
pub(super) struct Told {
    nodes: BTreeMap<Text, Node>,
    pods: BTreeMap<ObjectKey, ToldPod>,
    /// Names in lists of pods and nodes that are under way.
    listing: BTreeMap<ObjectKind, BTreeSet<ObjectKey>>,
    /// Seats that it asked for, until it knows how that ended.
    asked: BTreeMap<ObjectKey, Text>,
    /// Identities of pods that a look did not find any more; the watch may still tell of them.
    found_gone: BTreeMap<ObjectKey, Text>,
}

impl Told {
    pub(super) fn hear(&mut self, input: &Input) {
        match input {
            Input::ListStarted(kind @ (ObjectKind::Pod | ObjectKind::Node)) => {
                self.listing.insert(*kind, BTreeSet::new());
            }
            Input::ListDone(kind) => self.list_done(*kind),
            Input::PodSet(reading) => self.pod_set(reading),
            Input::PodGone(pod) => {
                self.found_gone.remove(pod);
                self.pod_gone(pod);
            }
            Input::NodeSet(reading) => {
                self.listed(ObjectKind::Node, &ObjectKey::new("", reading.node.name.clone()));
                self.nodes.insert(reading.node.name.clone(), reading.node.clone());
            }
            Input::NodeGone(name) => {
                self.nodes.remove(name);
            }
            Input::Answer(Answer::Bind { seat, outcome: BindOutcome::Done }) => {
                self.sits(&seat.pod, &seat.uid, &seat.node);
            }
            Input::Answer(Answer::Pod { pod, uid, found }) => match found {
                Lookup::Found { uid: found, node: Some(node) } if found == uid => self.sits(pod, uid, node),
                Lookup::Found { uid: found, .. } if found == uid => {}
                Lookup::Found { .. } | Lookup::Gone => {
                    if self.asked.contains_key(pod)
                        && self.pods.get(pod).is_some_and(|known| known.uid == *uid)
                    {
                        self.found_gone.insert(pod.clone(), uid.clone());
                        self.pod_gone(pod);
                    }
                }
                Lookup::Throttled { .. } | Lookup::Unknown(_) => {}
            },
            _ => {}
        }
    }

    fn listed(&mut self, kind: ObjectKind, key: &ObjectKey) {
        if let Some(listed) = self.listing.get_mut(&kind) {
            listed.insert(key.clone());
        }
    }

    fn list_done(&mut self, kind: ObjectKind) {
        let Some(listed) = self.listing.remove(&kind) else {
            return;
        };
        if kind == ObjectKind::Pod {
            self.pods.retain(|pod, _| listed.contains(pod));
            self.asked.retain(|pod, _| listed.contains(pod));
            self.found_gone.retain(|pod, _| listed.contains(pod));
        } else {
            self.nodes.retain(|node, _| listed.contains(&ObjectKey::new("", node.clone())));
        }
    }

    fn pod_set(&mut self, reading: &PodReading) {
        let pod = &reading.pod;
        self.listed(ObjectKind::Pod, &pod.key);
        if self.found_gone.get(&pod.key) == Some(&pod.uid) {
            return;
        }
        self.found_gone.remove(&pod.key);
        let before = self.pods.remove(&pod.key).filter(|before| before.uid == pod.uid);
        if before.is_none() || pod.node.is_some() {
            self.asked.remove(&pod.key);
        }
        let told = ToldPod {
            uid: pod.uid.clone(),
            // A pod never leaves its node, so one that was seen without is an older picture.
            node: pod.node.clone().or(before.and_then(|before| before.node)),
            cpu: pod.requests.get("cpu"),
            is_over: pod.phase.is_terminal(),
            is_foreign: &*pod.scheduler_name != "tutti",
        };
        self.pods.insert(pod.key.clone(), told);
    }

    fn pod_gone(&mut self, pod: &ObjectKey) {
        self.pods.remove(pod);
        self.asked.remove(pod);
    }

    /// An answer has told where a pod is.
    fn sits(&mut self, pod: &ObjectKey, uid: &Text, node: &Text) {
        if let Some(found) = self.pods.get_mut(pod).filter(|found| found.uid == *uid && found.node.is_none())
        {
            found.node = Some(node.clone());
            self.asked.remove(pod);
        }
    }

    fn on<'a>(&'a self, node: &'a Text) -> impl Iterator<Item = &'a ToldPod> {
        self.pods.values().filter(move |pod| pod.node.as_ref() == Some(node) && !pod.is_over)
    }

    /// What is taken of a node by all who are known to be there, and by all who were sent there.
    fn used(&self, node: &Text) -> i64 {
        let there: i64 = self.on(node).map(|pod| pod.cpu).sum();
        let asked = self.asked.iter().filter(|(_, on)| *on == node);
        let coming: i64 = asked.filter_map(|(pod, _)| self.pods.get(pod)).map(|pod| pod.cpu).sum();
        there + coming
    }
}

impl Sim {
    /// Follows what a process sends, and holds every start against what it was told.
    ///
    /// Bindings that follow the word that something is placed are those of that placement. What comes before it was
    /// placed in an earlier step, or is sent again.
    pub(super) fn check_starts(&mut self, index: usize, effects: &[Effect]) -> Result<(), String> {
        let mut is_start = false;
        for effect in effects {
            let told = &mut self.replicas[index].told;
            match effect {
                Effect::Report(Fact::Placed { .. }) => is_start = true,
                Effect::Report(Fact::BindFailed { pod, .. }) => {
                    told.asked.remove(pod);
                }
                Effect::Bind(seat) => {
                    told.asked.insert(seat.pod.clone(), seat.node.clone());
                    if is_start {
                        self.check_seat(index, seat)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_seat(&mut self, index: usize, seat: &Seat) -> Result<(), String> {
        let told = &self.replicas[index].told;
        let Some(node) = told.nodes.get(&seat.node) else {
            return Err(format!("{} is sent to {}, which is known to be gone", seat.pod, seat.node));
        };
        let (used, has) = (told.used(&seat.node), node.allocatable.get("cpu"));
        if used > has {
            let Seat { pod, node, .. } = seat;
            return Err(format!("{pod} is sent to {node}, where {used} of {has} are known to be taken"));
        }
        let beside_others = told.on(&seat.node).any(|pod| pod.is_foreign);
        if let Some(pod) = self.server.pods.get(&seat.pod).filter(|pod| pod.pod.uid == seat.uid) {
            let wrong = [
                (node.unschedulable, "is known to be cordoned"),
                (untolerated(&node.taints, &pod.pod.tolerations).is_some(), "is known to be tainted"),
                (!pod.pod.affinity.matches(&node.name, &node.labels), "is known to be the wrong one"),
                (!self.server.storage.serves(&pod.pod, &node.labels), "has not all of its volumes"),
            ];
            if let Some((_, why)) = wrong.into_iter().find(|(wrong, _)| *wrong) {
                return Err(format!("{} is sent to {}, which {why}", seat.pod, seat.node));
            }
        }
        if beside_others {
            self.tally.count(Deed::BindBesideOthers);
        }
        Ok(())
    }
}
