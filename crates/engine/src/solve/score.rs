//! Which of the nodes that will do is liked best.

use super::problem::Problem;
use super::{Style, Tables};
use crate::room::score;
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
