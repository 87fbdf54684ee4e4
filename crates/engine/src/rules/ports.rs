//! Ports: no two pods on a node use the same host port of an overlapping address and the same protocol.
//!
//! Kubernetes' `NodePorts`.

use super::{Cost, Scope, Triggers};
use crate::refusal::NodeReason;
use crate::state::nodes::NodeId;
use crate::state::relations::Relations;
use crate::state::shape::Shape;
use tutti_model::HostPort;

/// The words of a refusal.
pub(crate) const WORDS: &str = "host port in use";

fn conflict(shape: &Shape, others: &[HostPort]) -> bool {
    shape.ports.iter().any(|port| others.iter().any(|other| port.conflicts(other)))
}

/// Which kinds of a problem cannot share a bin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports {
    kinds: usize,
    /// `conflicts[a * kinds + b]`. Empty if no kind has ports.
    conflicts: Vec<bool>,
}

impl Ports {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        let kinds = scope.shapes.len();
        if scope.shapes.iter().all(|shape| ignores(shape)) {
            return Self { kinds, conflicts: Vec::new() };
        }
        let pairs = (0..kinds).flat_map(|a| (0..kinds).map(move |b| (a, b)));
        let conflicts = pairs.map(|(a, b)| conflict(&scope.shapes[a], &scope.shapes[b].ports));
        Self { kinds, conflicts: conflicts.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.conflicts.is_empty()
    }

    fn conflict(&self, a: usize, b: usize) -> bool {
        self.conflicts.get(a * self.kinds + b).copied().unwrap_or(false)
    }

    /// Copies of a kind that a bin takes by themselves.
    pub(crate) fn most(&self, kind: usize) -> u64 {
        if self.conflict(kind, kind) { 1 } else { u64::MAX }
    }

    pub(super) fn cost(&self) -> Cost {
        let look = if self.is_empty() { 0 } else { self.kinds };
        Cost { look, ..Cost::default() }
    }
}

/// Why pods that exist keep a shape off a node.
pub(super) fn ruled_out(shape: &Shape, node: NodeId, relations: &Relations) -> Option<NodeReason> {
    let taken = relations.ports.get(&node).is_some_and(|used| conflict(shape, used));
    taken.then_some(NodeReason::Ports)
}

/// Members by bin and kind, in a partial placement.
#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    rules: &'a Ports,
    /// `members[bin * kinds + kind]`. Empty if no kind has ports.
    members: Vec<u32>,
}

impl<'a> Load<'a> {
    pub(super) fn new(rules: &'a Ports, bins: usize) -> Self {
        let members = if rules.is_empty() { Vec::new() } else { vec![0; bins * rules.kinds] };
        Self { rules, members }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        if let Some(members) = self.members.get_mut(bin * self.rules.kinds + kind) {
            *members += 1;
        }
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        if let Some(members) = self.members.get_mut(bin * self.rules.kinds + kind) {
            *members -= 1;
        }
    }

    pub(super) fn admits(&self, kind: usize, bin: usize) -> bool {
        let kinds = self.rules.kinds;
        self.members.is_empty()
            || !(0..kinds)
                .any(|other| self.members[bin * kinds + other] > 0 && self.rules.conflict(kind, other))
    }

    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (!self.admits(kind, bin)).then_some(NodeReason::Ports)
    }
}

/// True if the rule never concerns the shape.
pub(crate) fn ignores(shape: &Shape) -> bool {
    shape.ports.is_empty()
}

/// A pod that had a port and is gone can unblock a shape that has ports.
pub(super) fn add_triggers(shape: &Shape, triggers: &mut Triggers) {
    triggers.ports |= !ignores(shape);
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Ports)
}
