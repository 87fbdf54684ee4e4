//! Cordon: an unschedulable node takes no new pods.
//!
//! Kubernetes' `NodeUnschedulable`. A node with `spec.unschedulable` is treated as if it had the taint
//! `node.kubernetes.io/unschedulable:NoSchedule`, with or without the taint itself: pods that tolerate it are placed.

use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use tutti_model::{Effect, Node, Taint};

/// The words of a refusal.
pub(crate) const WORDS: &str = "cordoned";

/// Why the rule keeps a shape off a node.
pub(crate) fn forbids(shape: &Shape, node: &Node) -> Option<NodeReason> {
    (node.unschedulable && !tolerates(shape)).then_some(NodeReason::Unschedulable)
}

/// True if the rule keeps no shape off a node.
pub(super) fn is_open(node: &Node) -> bool {
    !node.unschedulable
}

fn tolerates(shape: &Shape) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: Effect::NoSchedule,
    };
    shape.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Unschedulable)
}
