//! The group cycle: where do these members go, all of them or at least the minimum – or why is that impossible?
//!
//! Three tiers, from cheap to dear. The rule that keeps answers sound: bounds may only refuse, constructions may
//! only place, an exhausted search may do both. What is neither placed nor refused is *undecided* and says so.
//!
//! 1. Members of one shape: a closed form, exact.
//! 2. Several shapes: bounds, then constructions in several orders.
//! 3. Exact search within a budget of branches.

mod construct;
mod explain;
mod one_shape;
mod problem;
mod search;

use crate::nodes::{NodeId, NodeTable};
use crate::refusal::NoRoom;
use crate::room::Rooms;
use crate::shape::{Resources, ShapeId, Shapes};

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// How many members of each shape want a seat; each shape once.
    pub(crate) shapes: Vec<(ShapeId, u32)>,
    /// How many of them, whichever, must get one for any to get one. At least 1, at most all.
    pub(crate) need: u32,
    /// How nodes are chosen among those that will do.
    pub(crate) style: Style,
}

impl Request {
    fn wanted(&self) -> u32 {
        self.shapes.iter().map(|&(_, count)| count).sum()
    }
}

/// Preference among nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Fill nodes up, so that large holes stay whole. For groups.
    Pack,
    /// Even out the load, as Kubernetes does by default. For pods on their own.
    Spread,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// These seats: index into the request's shapes, node, how many. At least `need` in all.
    Placed(Vec<(usize, NodeId, u32)>),
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
    pub(crate) rooms: &'a mut Rooms,
}

/// Answers a request; changes nothing but caches.
pub(crate) fn solve(request: &Request, tables: &mut Tables<'_>, branches_max: u32) -> Outcome {
    if let [(shape, count)] = request.shapes[..] {
        return one_shape::solve(shape, count, request.need, request.style, tables);
    }
    let problem = problem::Problem::new(request, tables);
    let refused = problem.excluded_by_bounds(request.need);
    let best = construct::best(&problem, request.need);
    if best.placed_count() >= request.need && !refused {
        return Outcome::Placed(best.seats(&problem));
    }
    let why = || explain::mixed(&problem, &best, request.need, tables);
    if refused {
        return Outcome::Infeasible(why());
    }
    match search::search(&problem, request.wanted() - request.need, branches_max) {
        search::Found::Placement(packing) => Outcome::Placed(packing.seats(&problem)),
        search::Found::Nothing => Outcome::Infeasible(why()),
        search::Found::OutOfBudget => Outcome::Undecided(why()),
    }
}
