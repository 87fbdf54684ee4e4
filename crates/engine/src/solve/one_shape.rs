//! Members that all require the same: the room of every node is known, so the answer is a sum.

use super::explain;
use super::{Outcome, Style, Tables};
use crate::nodes::{NodeId, NodeTable};
use crate::shape::{Shape, ShapeId};
use std::cmp::Reverse;
use std::sync::Arc;

pub(super) fn solve(id: ShapeId, wanted: u32, need: u32, style: Style, tables: &mut Tables<'_>) -> Outcome {
    let shape = Arc::clone(tables.shapes.get(id));
    let room = tables.rooms.of(id, &shape, tables.nodes);
    if room.total() < u64::from(need) {
        let fit = room.total() as u32;
        return Outcome::Infeasible(explain::one_shape(&shape, fit, need, tables));
    }
    let table = tables.nodes;
    let by_preference = |&node: &NodeId| {
        (
            Reverse(score(table, node, &shape, style)),
            table.name(node).clone(),
        )
    };
    let mut nodes = room.nodes(table);
    if wanted == 1 {
        // One pod needs the best node, not an order of all of them.
        nodes = nodes.into_iter().min_by_key(by_preference).into_iter().collect();
    } else {
        nodes.sort_by_cached_key(by_preference);
    }
    let mut seats = Vec::new();
    let mut left = wanted;
    for node in nodes {
        let count = room.on(node).min(left);
        seats.push((0, node, count));
        left -= count;
        if left == 0 {
            break;
        }
    }
    Outcome::Placed(seats)
}

/// How welcome one more copy is on a node, in thousandths: how full the node would be (packing) or how empty
/// (spreading), on average over what the shape requests.
fn score(table: &NodeTable, node: NodeId, shape: &Shape, style: Style) -> i64 {
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
