//! Members that all require the same: the room of every node is known, so the answer is a sum.

use super::score::score;
use super::{Outcome, Style, Tables, explain};
use crate::nodes::NodeId;
use crate::shape::ShapeId;
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
