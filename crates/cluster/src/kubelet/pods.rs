//! The part of the core that follows pods.

use super::core::{Core, Key, Subject, rearm, settle};
use super::node_status;
use super::rules::{Admission, Next, PodState, check_room, next_of_pod};
use super::view::{Phase, PodRef, PodView};
use super::writes::{Effect, Gate, PendingWrite};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::ResourceList;

impl Core {
    pub(super) fn pods_listed(&mut self, mut pods: Vec<PodView>, now: Timestamp, effects: &mut Vec<Effect>) {
        let present: BTreeSet<PodRef> = pods.iter().map(|pod| pod.pod.clone()).collect();
        let gone: Vec<PodRef> = self
            .pods
            .values()
            .filter(|pod| !present.contains(&pod.view.pod))
            .map(|pod| pod.view.pod.clone())
            .collect();
        for pod in &gone {
            self.forget_pod(pod);
        }
        // What runs was admitted before; the rest came in the order of its age as far as anybody can tell.
        pods.sort_by(|a, b| {
            let rank = |pod: &PodView| (pod.phase != Phase::Running, pod.created);
            rank(a).cmp(&rank(b)).then_with(|| a.pod.cmp(&b.pod))
        });
        for pod in pods {
            self.note_pod(pod, now);
        }
        self.pods_are_listed = true;
        self.advance_everything(now, effects);
    }

    /// Takes a view in without acting on it.
    pub(super) fn note_pod(&mut self, view: PodView, now: Timestamp) -> Key {
        let key = (view.pod.namespace.clone(), view.pod.name.clone());
        if let Some(old) = self.pods.get(&key)
            && (old.view.pod.uid != view.pod.uid || old.view.node != view.node)
        {
            // Another pod of the same name. (A bound pod never moves, so another node means the same.)
            let old = old.view.pod.clone();
            self.forget_pod(&old);
        }
        if let Some(address) = view.address {
            self.pod_addresses.mark(address);
        }
        let stopping = view.deletion_grace_seconds.is_some();
        if let Some(pod) = self.pods.get_mut(&key) {
            pod.write.seen(&view.version);
            pod.view = view;
            if stopping {
                pod.stopping_since.get_or_insert(now);
            }
            return key;
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        if let Some(node) = &view.node {
            self.pods_by_node.entry(node.clone()).or_default().insert(arrival, key.clone());
        }
        let pod = PodState {
            admission: Admission::Open,
            arrival,
            stopping_since: stopping.then_some(now),
            started: None,
            address: view.address,
            complained: false,
            write: PendingWrite::default(),
            wake: None,
            view,
        };
        self.pods.insert(key.clone(), pod);
        key
    }

    pub(super) fn forget_pod(&mut self, gone: &PodRef) {
        let key = (gone.namespace.clone(), gone.name.clone());
        if self.pods.get(&key).is_none_or(|pod| pod.view.pod.uid != gone.uid) {
            return;
        }
        let Some(pod) = self.pods.remove(&key) else { return };
        if let Some(wake) = pod.wake {
            self.timers.remove(&(wake, Subject::Pod(key)));
        }
        for address in [pod.address, pod.view.address].into_iter().flatten() {
            self.pod_addresses.release(address);
        }
        if let Some(node) = &pod.view.node
            && let Some(pods) = self.pods_by_node.get_mut(node)
        {
            pods.remove(&pod.arrival);
            if pods.is_empty() {
                self.pods_by_node.remove(node);
            }
        }
    }

    pub(super) fn advance_pods_of(&mut self, node: &str, now: Timestamp, effects: &mut Vec<Effect>) {
        let keys: Vec<Key> =
            self.pods_by_node.get(node).map(|pods| pods.values().cloned().collect()).unwrap_or_default();
        for key in &keys {
            self.advance_pod(key, now, effects);
        }
    }

    pub(super) fn advance_everything(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let mut order: Vec<(u64, Key)> =
            self.pods.iter().map(|(key, pod)| (pod.arrival, key.clone())).collect();
        order.sort_unstable();
        for (_, key) in &order {
            self.advance_pod(key, now, effects);
        }
    }

    pub(super) fn advance_pod(&mut self, key: &Key, now: Timestamp, effects: &mut Vec<Effect>) {
        // Before both listings are in, a pod that runs already may be unknown, and its room would be given
        // away a second time.
        if !self.is_listed() {
            return;
        }
        self.admit(key, now, effects);
        let Some(pod) = self.pods.get_mut(key) else { return };
        let node = pod.view.node.as_ref().and_then(|name| self.nodes.get(name));
        let next = match pod.write.gate(now) {
            Gate::Closed => Next::Nothing,
            Gate::ClosedUntil(time) => Next::At(time),
            Gate::Open => match node {
                Some(node) if node_status::is_simulated(&node.view) && !node.view.failed => {
                    next_of_pod(pod, node, &self.options, &mut self.pod_addresses, now)
                }
                // Somebody else's, or nobody's: the cluster collects pods whose node is gone.
                _ => Next::Nothing,
            },
        };
        if matches!(next, Next::Now(_)) {
            pod.write.sent(&pod.view.version);
        }
        let wake = settle(next, effects);
        rearm(&mut self.timers, &mut pod.wake, wake, || Subject::Pod(key.clone()));
    }

    /// Decides about a pod that its node has not decided about yet.
    fn admit(&mut self, key: &Key, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(pod) = self.pods.get(key) else { return };
        let node = pod.view.node.as_ref().and_then(|name| self.nodes.get(name));
        let Some(node) = node.filter(|node| node_status::is_simulated(&node.view) && !node.view.failed)
        else {
            return;
        };
        if pod.admission != Admission::Open || pod.view.phase == Phase::Ended {
            return;
        }
        let admission = if pod.view.phase == Phase::Running {
            Admission::Admitted { since: now }
        } else {
            match check_room(&pod.view, &node.view, &self.used_on(&node.view.name)) {
                Ok(()) => Admission::Admitted { since: now },
                Err((reason, message)) => Admission::Rejected { reason, message },
            }
        };
        let Some(pod) = self.pods.get_mut(key) else { return };
        pod.admission = admission;
        if !std::mem::replace(&mut pod.complained, true) {
            for message in &pod.view.complaints {
                let message = message.clone();
                effects.push(Effect::Warn {
                    pod: pod.view.pod.clone(),
                    reason: "InvalidAnnotation",
                    message,
                });
            }
        }
    }

    /// What the pods that were admitted to a node take of it. Summed up anew each time: a node has few pods,
    /// and a sum that is never kept can never be wrong.
    fn used_on(&self, node: &str) -> ResourceList {
        let mut used = ResourceList::new();
        let keys = self.pods_by_node.get(node).into_iter().flat_map(BTreeMap::values);
        for pod in keys.filter_map(|key| self.pods.get(key)) {
            let admitted = matches!(pod.admission, Admission::Admitted { .. });
            let occupies = pod.view.phase == Phase::Running || (admitted && pod.view.phase == Phase::Pending);
            if let (true, Ok(requests)) = (occupies, &pod.view.requests) {
                used.add(requests);
            }
        }
        used
    }
}
