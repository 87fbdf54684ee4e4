//! Which of the nodes that will do is liked best.

use super::problem::Problem;
use super::{Style, Tables, single};
use crate::score::packing;
use crate::score::rating::Measure;
use crate::score::total::{Candidate, totals};
use crate::state::nodes::NodeId;
use std::cmp::Reverse;

/// Steps that it takes to put the bins of a problem in order and fill them.
pub(super) fn cost(problem: &Problem) -> usize {
    let members: usize = problem.kinds.iter().map(|kind| kind.count as usize).sum();
    128 * problem.bins.len() + 32 * members
}

/// The bins of a problem with one kind, most welcome first; ties by name.
pub(super) fn order(problem: &Problem, style: Style, tables: &Tables<'_>) -> Vec<usize> {
    let Some(kind) = problem.kinds.first() else {
        return Vec::new();
    };
    let shape = tables.shapes.get(kind.shape);
    let mut order: Vec<usize> = (0..problem.bins.len()).collect();
    if style == Style::Pack || kind.count != 1 {
        order.sort_by_cached_key(|&bin| {
            (Reverse(packing::score(tables.nodes, problem.bins[bin], shape)), bin)
        });
        return order;
    }
    // Only nodes that will do are compared with each other.
    let acceptable = single::acceptable(problem);
    order.retain(|&bin| acceptable(bin));
    let scoring = tables.rooms.scoring(shape);
    let measure = Measure::new(scoring, shape, tables.nodes);
    let candidate = |node: NodeId| (node, measure.rating(scoring, shape, tables.nodes, node));
    let candidates: Vec<Candidate> = order.iter().map(|&bin| candidate(problem.bins[bin])).collect();
    let totals = totals(&candidates, shape, scoring, tables.nodes, tables.relations);
    let mut ranked: Vec<(Reverse<i64>, usize)> = totals.into_iter().map(Reverse).zip(order).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, bin)| bin).collect()
}
