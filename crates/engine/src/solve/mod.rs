//! The group cycle: where do these members go, all of them or at least the minimum – or why is that impossible?
//!
//! Tiers, from cheap to dear. The rule that keeps answers sound: bounds may only refuse, constructions may only
//! place, an exhausted search may do both. What is neither placed nor refused is *undecided* and says so.
//!
//! 1. Bounds: each kind of member by itself, each resource by itself.
//! 2. Members of one shape: closed forms, exact.
//! 3. Constructions in several orders.
//! 4. Exact search within a budget of branches.

mod budget;
mod closed_form;
mod construct;
mod cover;
mod descent;
mod each_node;
mod explain;
mod fillings;
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
use problem::Problem;
pub(crate) use request::{Belonging, ChildSpread, Part, Request, RunningMember, SliceRule, Tree};
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
        && tables.is_independent(tables.shapes.get(shape))
    {
        return one_shape::solve(shape, count, request.need, request.style, tables);
    }
    let problem = Problem::new(request, tables);
    solve_problem(&problem, request, tables, budget)
}

/// All tiers, cheap ones first.
fn solve_problem(problem: &Problem, request: &Request, tables: &Tables<'_>, budget: &mut Budget) -> Outcome {
    if problem.excluded_by_bounds(request.need) {
        let best = construct::best(problem);
        return Outcome::Infeasible(explain::mixed(problem, &best, request.need, tables, &explain::anywhere));
    }
    if let [kind] = &problem.kinds[..] {
        let order = preference::order(problem, request.style, tables);
        if let Some(fill) = closed_form::fill(problem, kind.count, &order) {
            let placed: u32 = fill.iter().map(|&(_, count)| count).sum();
            if placed >= request.need {
                return Outcome::Placed(fill.iter().map(|&(bin, n)| (0, problem.bins[bin], n)).collect());
            }
            let best = Packing::of_fill(problem, &fill);
            return Outcome::Infeasible(explain::mixed(
                problem,
                &best,
                request.need,
                tables,
                &explain::anywhere,
            ));
        }
    }
    let best = construct::best(problem);
    if best.placed_count() >= request.need {
        return Outcome::Placed(best.seats(problem));
    }
    let why = || explain::mixed(problem, &best, request.need, tables, &explain::anywhere);
    let skips_max = request.wanted() - request.need;
    let found = if cover::suits(problem) {
        cover::search(problem, skips_max, budget)
    } else {
        search::search(problem, search::Skips::of_one_team(problem, skips_max), budget)
    };
    match found {
        search::Found::Placement(packing) => Outcome::Placed(packing.seats(problem)),
        search::Found::Nothing => Outcome::Infeasible(why()),
        search::Found::OutOfBudget => Outcome::Undecided(why()),
    }
}
