//! Which of the nodes that will do is liked best.

use super::problem::Problem;
use super::{Style, Tables};
use crate::nodes::{NodeId, NodeTable};
use crate::shape::Shape;
use std::cmp::Reverse;

/// The bins of a problem with one kind, most welcome first; ties by name.
pub(super) fn order(problem: &Problem, style: Style, tables: &Tables<'_>) -> Vec<usize> {
    let Some(kind) = problem.kinds.first() else {
        return Vec::new();
    };
    let shape = tables.shapes.get(kind.shape);
    let mut order: Vec<usize> = (0..problem.bins.len()).collect();
    order.sort_by_cached_key(|&bin| (Reverse(score(tables.nodes, problem.bins[bin], shape, style)), bin));
    order
}

/// How welcome one more copy is on a node, in thousandths: how full the node would be (packing) or how empty
/// (spreading), on average over what the shape requests.
pub(super) fn score(table: &NodeTable, node: NodeId, shape: &Shape, style: Style) -> i64 {
    let mut sum: i128 = 0;
    for &(resource, amount) in &shape.requests {
        let allocatable = i128::from(table.allocatable(node, resource).max(1));
        let used = allocatable - i128::from(table.free(node, resource)) + i128::from(amount);
        sum += used * 1000 / allocatable;
    }
    let full = (sum / shape.requests.len().max(1) as i128) as i64;
    match style {
        Style::Pack => full,
        Style::Spread => -full,
    }
}
