//! Declared features: a node declares every feature that a pod needs of its kubelet.
//!
//! Kubernetes' `NodeDeclaredFeatures`. Which features a pod needs is read from its spec, where it is translated.

use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use std::fmt;
use tutti_model::Node;

/// Why the rule keeps a shape off a node.
pub(crate) fn forbids(shape: &Shape, node: &Node) -> Option<NodeReason> {
    let missing = shape.features.iter().find(|feature| node.features.binary_search(feature).is_err())?;
    Some(NodeReason::Feature { name: missing.clone() })
}

/// True if the rule keeps the shape off no node.
pub(super) fn is_undemanding(shape: &Shape) -> bool {
    shape.features.is_empty()
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Feature { .. })
}

/// The words of a refusal.
pub(crate) fn words(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "without the declared feature {name}")
}
