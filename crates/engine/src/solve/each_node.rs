//! Each node by itself: could the request be met there alone? Every tier of the solver answers, as it would in earnest.

use super::problem::Problem;
use super::{Budget, Outcome, Request, Tables, solve_problem};
use crate::state::nodes::NodeId;
use std::sync::Arc;

/// The nodes on each of which the request could be met, in no meaningful order.
pub(crate) fn feasible(request: &Request, tables: &mut Tables<'_>, branches_max: u32) -> Vec<NodeId> {
    let budget = || Budget::of_branches(branches_max);
    if let [(id, _)] = request.shapes[..] {
        let shape = Arc::clone(tables.shapes.get(id));
        if tables.is_independent(&shape) {
            let room = tables.rooms.of(id, &shape, tables.nodes, tables.changes);
            return tables.nodes.ids().filter(|&node| room.on(node) >= request.need).collect();
        }
    }
    let Some(problem) = Problem::new(request, tables, &mut budget()) else { return Vec::new() };
    let alone = |&bin: &usize| {
        let outcome = solve_problem(&problem.restricted_to(bin), request, tables, &mut budget());
        matches!(outcome, Outcome::Placed(_))
    };
    (0..problem.bins.len()).filter(alone).map(|bin| problem.bins[bin]).collect()
}
