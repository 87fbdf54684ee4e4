//! Volume reach: every volume of a pod can be reached from its node.
//!
//! The parts of Kubernetes' `VolumeBinding` and `VolumeZone` that are about volumes that exist: the node affinity of a
//! persistent volume and its labels of zone and region. A claim whose volume is being made for a node, or can only be
//! made in some places, is held to these.

use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use tutti_model::Node;

/// The words of a refusal.
pub(crate) const WORDS: &str = "out of reach of a volume";

/// Why the rule keeps a shape off a node.
pub(crate) fn forbids(shape: &Shape, node: &Node) -> Option<NodeReason> {
    let reaches_all = shape.volumes.places.iter().all(|place| place.accepts(node));
    (!reaches_all).then_some(NodeReason::VolumeOutOfReach)
}

/// True if the rule keeps the shape off no node.
pub(super) fn is_undemanding(shape: &Shape) -> bool {
    shape.volumes.places.is_empty()
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::VolumeOutOfReach)
}
