//! The behaviour of simulated kubelets as a pure state machine: what was seen and what time it is go in, what
//! to do comes out. The same inputs at the same times always give the same effects.
//!
//! It is level-triggered: for every object the next step follows from its newest view, so a lost answer, a
//! restart or a fresh listing need no code of their own.

use super::addresses::Pool;
use super::lease::{self, LeaseState};
use super::rules::{Next, NodeState, PodState, heartbeat_due, signed};
use super::view::{NodeView, PodRef, PodView};
use super::writes::{Effect, Gate, Outcome, PendingWrite, Target, later};
use super::{Options, node_status};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Something that the core is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// All nodes that there are. Comes first, and again whenever the watch had to start over.
    NodesListed(Vec<NodeView>),
    /// A node was added or changed.
    NodeSeen(NodeView),
    /// The node of this name is gone.
    NodeGone(String),
    /// All pods that are bound to a node.
    PodsListed(Vec<PodView>),
    /// A bound pod was added or changed.
    PodSeen(PodView),
    /// This pod is gone.
    PodGone(PodRef),
    /// What came of an effect.
    Answered(Target, Outcome),
    /// Time has passed.
    Tick,
}

/// All simulated kubelets of a cluster.
#[derive(Debug)]
pub struct Core {
    pub(super) options: Options,
    pub(super) nodes: BTreeMap<String, NodeState>,
    pub(super) pods: BTreeMap<Key, PodState>,
    /// The pods of each node, in the order of their arrival.
    pub(super) pods_by_node: BTreeMap<String, BTreeMap<u64, Key>>,
    /// One entry an object that waits for a time.
    pub(super) timers: BTreeSet<(Timestamp, Subject)>,
    nodes_are_listed: bool,
    pub(super) pods_are_listed: bool,
    pub(super) arrivals: u64,
    pub(super) pod_addresses: Pool,
    node_addresses: Pool,
}

/// Namespace and name.
pub(super) type Key = (String, String);

/// Whom a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Node(String),
    Pod(Key),
}

impl Core {
    /// Kubelets that have seen nothing yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            pods_by_node: BTreeMap::new(),
            timers: BTreeSet::new(),
            nodes_are_listed: false,
            pods_are_listed: false,
            arrivals: 0,
            pod_addresses: Pool::pods(),
            node_addresses: Pool::nodes(),
        }
    }

    /// Takes in what happened and says what to do. Every effect with a target wants an
    /// [`Input::Answered`] later.
    pub fn step(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::NodesListed(nodes) => self.nodes_listed(nodes, now, &mut effects),
            Input::NodeSeen(node) => self.node_seen(node, now, &mut effects),
            Input::NodeGone(name) => {
                self.forget_node(&name);
                self.advance_pods_of(&name, now, &mut effects);
            }
            Input::PodsListed(pods) => self.pods_listed(pods, now, &mut effects),
            Input::PodSeen(pod) => {
                let key = self.note_pod(pod, now);
                self.advance_pod(&key, now, &mut effects);
            }
            Input::PodGone(pod) => self.forget_pod(&pod),
            Input::Answered(target, outcome) => self.answered(&target, &outcome, now, &mut effects),
            Input::Tick => {}
        }
        self.run_timers(now, &mut effects);
        effects
    }

    /// When [`Input::Tick`] is due.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(time, _)| *time)
    }

    pub(super) fn is_listed(&self) -> bool {
        self.nodes_are_listed && self.pods_are_listed
    }

    // === nodes ===

    fn nodes_listed(&mut self, nodes: Vec<NodeView>, now: Timestamp, effects: &mut Vec<Effect>) {
        let present: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let gone: Vec<String> =
            self.nodes.keys().filter(|name| !present.contains(name.as_str())).cloned().collect();
        for name in &gone {
            self.forget_node(name);
        }
        // Addresses that are in use must be known before any is given out.
        for node in &nodes {
            self.mark_node_address(node);
        }
        self.nodes_are_listed = true;
        for node in nodes {
            self.node_seen(node, now, effects);
        }
        for name in &gone {
            self.advance_pods_of(name, now, effects);
        }
        self.advance_everything(now, effects);
    }

    fn mark_node_address(&mut self, node: &NodeView) {
        if let Some(address) = node.address("InternalIP").and_then(|address| address.parse().ok()) {
            self.node_addresses.mark(address);
        }
    }

    fn node_seen(&mut self, view: NodeView, now: Timestamp, effects: &mut Vec<Effect>) {
        self.mark_node_address(&view);
        let name = view.name.clone();
        match self.nodes.get_mut(&name) {
            Some(node) => {
                node.write.seen(&view.version);
                node.view = view;
            }
            None => {
                let node = NodeState {
                    view,
                    write: PendingWrite::default(),
                    wake: None,
                    address: None,
                    lease: LeaseState::default(),
                };
                self.nodes.insert(name.clone(), node);
            }
        }
        self.advance_node(&name, now, effects);
        self.advance_pods_of(&name, now, effects);
    }

    fn forget_node(&mut self, name: &str) {
        let Some(node) = self.nodes.remove(name) else {
            return;
        };
        if let Some(wake) = node.wake {
            self.timers.remove(&(wake, Subject::Node(name.to_owned())));
        }
        let own = node.view.address("InternalIP").and_then(|address| address.parse().ok());
        for address in [own, node.address].into_iter().flatten() {
            self.node_addresses.release(address);
        }
    }

    fn advance_node(&mut self, name: &str, now: Timestamp, effects: &mut Vec<Effect>) {
        let interval = lease::interval(self.options.lease_interval, self.nodes.len());
        let Some(node) = self.nodes.get_mut(name) else {
            return;
        };
        // A failed one does nothing at all until it is restored, which is a change that is seen.
        let lives = node_status::is_simulated(&node.view) && !node.view.failed;
        let status = if lives {
            next_status(node, &mut self.node_addresses, self.options.heartbeat_interval, now)
        } else {
            Next::Nothing
        };
        if matches!(status, Next::Now(_)) {
            node.write.sent(&node.view.version);
        }
        let renewal = if lives { next_renewal(node, interval, now) } else { Next::Nothing };
        let wakes = [settle(status, effects), settle(renewal, effects)];
        let wake = wakes.into_iter().flatten().min();
        rearm(&mut self.timers, &mut node.wake, wake, || Subject::Node(name.to_owned()));
    }

    // === answers and time ===

    fn answered(&mut self, target: &Target, outcome: &Outcome, now: Timestamp, effects: &mut Vec<Effect>) {
        let is_stuck = match target {
            Target::Node(name) => {
                let Some(node) = self.nodes.get_mut(name) else {
                    return;
                };
                node.write.answered(outcome, &node.view.version, now);
                let is_stuck = node.write.is_stuck();
                self.advance_node(name, now, effects);
                is_stuck
            }
            Target::Lease(name) => {
                // Whether it worked or not: the next one is due when it is due.
                if let Some(node) = self.nodes.get_mut(name) {
                    node.lease.in_flight = false;
                }
                self.advance_node(name, now, effects);
                false
            }
            Target::Pod(answered) => {
                let key = (answered.namespace.clone(), answered.name.clone());
                let Some(pod) = self.pods.get_mut(&key) else {
                    return;
                };
                if pod.view.pod.uid != answered.uid {
                    return;
                }
                pod.write.answered(outcome, &pod.view.version, now);
                let is_stuck = pod.write.is_stuck();
                self.advance_pod(&key, now, effects);
                is_stuck
            }
        };
        if let Outcome::Failed(error) = outcome {
            if is_stuck {
                tracing::warn!(?target, error, "a status cannot be written; still trying");
            } else {
                tracing::debug!(?target, error, "cannot write a status; will try again");
            }
        }
    }

    fn run_timers(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        // Each object is taken once: what it asks for next is either an effect or a later time.
        let mut due = Vec::new();
        while let Some((time, _)) = self.timers.first()
            && *time <= now
            && let Some((_, subject)) = self.timers.pop_first()
        {
            due.push(subject);
        }
        for subject in due {
            match subject {
                Subject::Node(name) => {
                    if let Some(node) = self.nodes.get_mut(&name) {
                        node.wake = None;
                    }
                    self.advance_node(&name, now, effects);
                }
                Subject::Pod(key) => {
                    if let Some(pod) = self.pods.get_mut(&key) {
                        pod.wake = None;
                    }
                    self.advance_pod(&key, now, effects);
                }
            }
        }
    }
}

/// What the status of a node needs next.
fn next_status(node: &mut NodeState, addresses: &mut Pool, heartbeat: Duration, now: Timestamp) -> Next {
    let name = node.view.name.clone();
    let due = heartbeat_due(&node.view, heartbeat);
    match (node.write.gate(now), node_status::label_patch(&node.view)) {
        (Gate::Closed, _) => Next::Nothing,
        (Gate::ClosedUntil(time), _) => Next::At(time),
        // Before Ready, because selectors that look at labels should find the node complete.
        (Gate::Open, Some(patch)) => Next::Now(Effect::LabelNode { name, patch }),
        (Gate::Open, None) if due > now => Next::At(due),
        (Gate::Open, None) => {
            if node.view.address("InternalIP").is_none() && node.address.is_none() {
                node.address = addresses.take();
            }
            let address = node.address.map(|address| address.to_string());
            let patch = node_status::patch(&node.view, address.as_deref(), now);
            Next::Now(Effect::PatchNode { name, patch })
        }
    }
}

/// When the lease of a node is to be renewed.
fn next_renewal(node: &mut NodeState, interval: Duration, now: Timestamp) -> Next {
    if node.lease.in_flight {
        return Next::Nothing;
    }
    let due = *node.lease.due.get_or_insert_with(|| lease::first_due(&node.view.name, interval, now));
    if now < due {
        return Next::At(due);
    }
    node.lease = LeaseState { due: Some(later(now, signed(interval))), in_flight: true };
    let lease = lease::lease(&node.view, interval, now);
    Next::Now(Effect::RenewLease { name: node.view.name.clone(), lease })
}

/// Puts an effect out, or says when to look again.
pub(super) fn settle(next: Next, effects: &mut Vec<Effect>) -> Option<Timestamp> {
    match next {
        Next::Nothing => None,
        Next::At(time) => Some(time),
        Next::Now(effect) => {
            effects.push(effect);
            None
        }
    }
}

/// Moves the one timer of an object.
pub(super) fn rearm(
    timers: &mut BTreeSet<(Timestamp, Subject)>,
    wake: &mut Option<Timestamp>,
    next: Option<Timestamp>,
    subject: impl Fn() -> Subject,
) {
    if *wake == next {
        return;
    }
    if let Some(old) = wake.take() {
        timers.remove(&(old, subject()));
    }
    if let Some(new) = next {
        timers.insert((new, subject()));
    }
    *wake = next;
}
