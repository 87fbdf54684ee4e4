//! The group cycle: where do these members go, all of them or at least the minimum – or why is that impossible?
//!
//! Tiers, from cheap to dear. The rule that keeps answers sound: bounds may only refuse, constructions may only
//! place, an exhausted search may do both. What is neither placed nor refused is *undecided* and says so.
//!
//! 1. Bounds: each kind of member by itself, each resource by itself.
//! 2. Members of one shape: closed forms, exact.
//! 3. Constructions in several orders.
//! 4. Exact search.
//!
//! One [`Budget`] pays for everything that an attempt does. When it ends, what is not decided is undecided, and an
//! explanation says less.

mod budget;
mod closed_form;
mod construct;
mod cover;
mod descent;
mod each_node;
mod explain;
mod fillings;
mod limits;
mod most;
mod one_shape;
mod preference;
mod prices;
mod problem;
mod request;
mod search;
mod single;
mod tree;

use crate::refusal::NoRoom;
use crate::rules;
use crate::state::changes::ChangeLog;
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::relations::Relations;
use crate::state::room::Rooms;
pub(crate) use crate::state::room::Style;
use crate::state::shape::{Resources, Shape, Shapes};
use crate::state::volumes::Volumes;
pub(crate) use budget::Budget;
use construct::Packing;
pub(crate) use each_node::feasible;
pub use limits::Limits;
use problem::Problem;
pub(crate) use request::{Belonging, ChildSpread, Fence, Part, Request, RunningMember, SliceRule, Tree};
use search::Found;
pub(crate) use tree::scattered;

/// Seats: index into the request's shapes, node, how many.
pub(crate) type Seats = Vec<(usize, NodeId, u32)>;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// These seats, at least `need` in all.
    Placed(Seats),
    /// No placement of `need` members exists.
    Infeasible(NoRoom),
    /// None was found and none was excluded.
    Undecided(NoRoom),
}

/// The tables that a request is solved on.
pub(crate) struct Tables<'a> {
    pub(crate) nodes: &'a NodeTable,
    pub(crate) shapes: &'a Shapes,
    pub(crate) resources: &'a Resources,
    pub(crate) relations: &'a Relations,
    pub(crate) volumes: &'a Volumes,
    pub(crate) changes: &'a ChangeLog,
    pub(crate) rooms: &'a mut Rooms,
    pub(crate) limits: Limits,
}

impl Tables<'_> {
    /// True if other pods, ports and free volumes do not matter to a shape.
    fn is_independent(&self, shape: &Shape) -> bool {
        rules::is_independent(shape, self.relations)
    }
}

/// Answers a request; changes nothing but caches.
pub(crate) fn solve(request: &Request, tables: &mut Tables<'_>, budget: &mut Budget) -> Outcome {
    if let Some(tree) = &request.tree {
        return tree::solve(request, tree, tables, budget);
    }
    if let [(shape, count)] = request.shapes[..]
        && tables.limits.closed_forms
        && tables.is_independent(tables.shapes.get(shape))
    {
        return one_shape::solve(shape, count, request.need, request.style, tables, budget);
    }
    match Problem::new(request, tables, budget) {
        Some(problem) => solve_problem(&problem, request, tables, budget),
        None => Outcome::Undecided(explain::briefly(0, request.need, tables)),
    }
}

/// All tiers, cheap ones first.
fn solve_problem(problem: &Problem, request: &Request, tables: &Tables<'_>, budget: &mut Budget) -> Outcome {
    let (need, limits) = (request.need, tables.limits);
    let why = |best: &Packing, budget: &mut Budget| {
        explain::mixed(problem, best, need, tables, &explain::anywhere, budget)
    };
    if problem.excluded_by_bounds(need) {
        budget.for_explanation();
        let best = construct::best(problem, budget);
        return Outcome::Infeasible(why(&best, budget));
    }
    if let [kind] = &problem.kinds[..]
        && limits.closed_forms
        && budget.spend(preference::cost(problem))
    {
        let order = preference::order(problem, request.style, tables);
        if let Some(fill) = closed_form::fill(problem, kind.count, &order) {
            let placed: u32 = fill.iter().map(|&(_, count)| count).sum();
            if placed >= need {
                return Outcome::Placed(fill.iter().map(|&(bin, n)| (0, problem.bins[bin], n)).collect());
            }
            return Outcome::Infeasible(why(&Packing::of_fill(problem, &fill), budget));
        }
    }
    let best = if limits.constructions {
        budget.share(2, |budget| construct::best(problem, budget))
    } else {
        Packing::empty(problem)
    };
    if best.placed_count() >= need {
        return Outcome::Placed(most::improved(problem, best, limits, budget).seats(problem));
    }
    match look(problem, request.wanted() - need, limits, budget) {
        Found::Placement(packing) => {
            Outcome::Placed(most::improved(problem, packing, limits, budget).seats(problem))
        }
        Found::Nothing => Outcome::Infeasible(why(&best, budget)),
        Found::OutOfBudget => Outcome::Undecided(why(&best, budget)),
    }
}

/// The search that suits a problem, for a placement that leaves out at most so many members.
fn look(problem: &Problem, skips_max: u32, limits: Limits, budget: &mut Budget) -> Found {
    if limits.cover && cover::suits(problem) {
        cover::search(problem, skips_max, budget)
    } else if limits.search {
        search::search(problem, search::Skips::of_one_team(problem, skips_max), budget)
    } else {
        Found::OutOfBudget
    }
}
