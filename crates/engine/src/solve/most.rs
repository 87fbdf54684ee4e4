//! As many members as possible: what a placement leaves out is searched for, where that is small enough.

use super::budget::Budget;
use super::construct::Packing;
use super::limits::Limits;
use super::look;
use super::problem::Problem;
use super::search::Found;

/// A placement of more members than this one, the most there can be if the budget lasts; else the same.
pub(super) fn improved(problem: &Problem, best: Packing, limits: Limits, budget: &mut Budget) -> Packing {
    let wanted: u32 = problem.kinds.iter().map(|kind| kind.count).sum();
    if wanted > limits.most_members || problem.bins.len() > limits.most_nodes {
        return best;
    }
    let mut best = best;
    while best.placed_count() < wanted && !problem.excluded_by_bounds(best.placed_count() + 1) {
        match look(problem, wanted - best.placed_count() - 1, limits, budget) {
            // A search that finds fewer than it was asked for would go on forever.
            Found::Placement(more) if more.placed_count() > best.placed_count() => best = more,
            _ => break,
        }
    }
    best
}
