//! Members that all require the same and nothing of other pods: the room of every node is known, so the answer is a
//! sum.

use super::{Outcome, Style, Tables, explain};
use crate::shape::ShapeId;
use std::sync::Arc;

pub(super) fn solve(id: ShapeId, wanted: u32, need: u32, style: Style, tables: &mut Tables<'_>) -> Outcome {
    let shape = Arc::clone(tables.shapes.get(id));
    let room = tables.rooms.ranked(id, &shape, style, tables.nodes);
    if room.total() < u64::from(need) {
        let fit = room.total() as u32;
        return Outcome::Infeasible(explain::one_shape(&shape, fit, need, tables));
    }
    let seats = room.best(wanted, style, &shape, tables.nodes);
    Outcome::Placed(seats.into_iter().map(|(node, count)| (0, node, count)).collect())
}
