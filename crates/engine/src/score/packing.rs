//! How groups choose: nodes are filled up, so that large holes stay whole for those who need them.

use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::Shape;

/// How full a node would be with one more copy, in thousandths, on average over what the shape requests.
pub(crate) fn score(table: &NodeTable, node: NodeId, shape: &Shape) -> i64 {
    let mut sum = 0_i64;
    for &(resource, amount) in &shape.requests {
        let allocatable = table.allocatable(node, resource).max(1);
        let used = allocatable.saturating_sub(table.free(node, resource)).saturating_add(amount);
        // Bounded so that a thousand times the amount still fits; no machine has that much of anything.
        sum = sum.saturating_add(used.clamp(0, 1 << 53) * 1000 / allocatable);
    }
    sum / shape.requests.len().max(1) as i64
}
