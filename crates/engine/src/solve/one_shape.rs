//! Members that all require the same and nothing of other pods: the room of every node is known, so the answer is a
//! sum.

use super::{Budget, Outcome, Style, Tables, explain};
use crate::score::total::{best, looks_at_pods};
use crate::state::shape::ShapeId;
use std::sync::Arc;

pub(super) fn solve(
    id: ShapeId,
    wanted: u32,
    need: u32,
    style: Style,
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    // Nothing is searched for; what is looked at grows with the number of nodes.
    budget.charge(tables.nodes.rows_count());
    let shape = Arc::clone(tables.shapes.get(id));
    let (room, scoring) = tables.rooms.ranked(id, &shape, style, tables.nodes, tables.changes);
    if room.total() < u64::from(need) {
        let fit = room.total() as u32;
        return Outcome::Infeasible(explain::one_shape(
            &shape,
            fit,
            need,
            tables,
            &explain::anywhere,
            budget,
        ));
    }
    // The profile compares nodes for one pod; more than one come as a group.
    if style == Style::Pack || wanted != 1 {
        let seats = room.fullest(wanted, &shape, tables.nodes);
        return Outcome::Placed(seats.into_iter().map(|(node, count)| (0, node, count)).collect());
    }
    let (nodes, relations) = (tables.nodes, tables.relations);
    let known = if looks_at_pods(&shape, relations) { None } else { room.favourite(scoring) };
    let node = known.or_else(|| {
        let candidates = room.candidates(&shape, nodes, scoring);
        best(&candidates, &shape, scoring, nodes, relations)
    });
    Outcome::Placed(node.into_iter().map(|node| (0, node, 1)).collect())
}
