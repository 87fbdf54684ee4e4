//! One large group with members of several kinds, or with terms about other pods: domain by domain, each as a problem
//! of its own.
//!
//! Domains of narrow levels come first, tight ones before roomy ones. First everybody is to be placed, by construction;
//! then as many as possible; then the search decides about the minimum, domain by domain under one budget.

use super::ground::{Ground, Region};
use super::shortages;
use crate::solve::budget::Budget;
use crate::solve::construct::{self, Packing};
use crate::solve::problem::Problem;
use crate::solve::search::Found;
use crate::solve::{Outcome, Request, Tables, look, most};
use crate::state::hierarchy::Cell;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// One part in this many of the budget is for constructions.
const CONSTRUCTIONS_SHARE: u64 = 2;

pub(super) fn solve(
    ground: &Ground<'_>,
    request: &Request,
    tables: &Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    let Some(places) = Places::new(ground, tables.limits.regions_per_level, budget) else {
        return Outcome::Undecided(shortages::tree(ground, tables, budget));
    };
    let found = if tables.limits.constructions {
        budget.share(CONSTRUCTIONS_SHARE, |budget| construct_somewhere(ground, &places, request, budget))
    } else {
        None
    };
    if let Some((packing, problem)) = found {
        return Outcome::Placed(most::improved(&problem, packing, tables.limits, budget).seats(&problem));
    }
    let mut is_open = false;
    for &place in &places.required {
        if !budget.spend(ground.looks(2) + ground.problem.cost_of_a_copy()) {
            is_open = true;
            break;
        }
        let problem = narrowed(ground, &places.region(ground, place));
        if problem.excluded_by_bounds(request.need) {
            continue;
        }
        match look(&problem, request.wanted() - request.need, tables.limits, budget) {
            Found::Placement(packing) => {
                let most = most::improved(&problem, packing, tables.limits, budget);
                return Outcome::Placed(most.seats(&problem));
            }
            Found::Nothing => {}
            Found::OutOfBudget => is_open = true,
        }
    }
    let why = shortages::tree(ground, tables, budget);
    if is_open { Outcome::Undecided(why) } else { Outcome::Infeasible(why) }
}

/// The first construction that places everybody, else the one that places most.
fn construct_somewhere(
    ground: &Ground<'_>,
    places: &Places,
    request: &Request,
    budget: &mut Budget,
) -> Option<(Packing, Problem)> {
    let mut best: Option<(Packing, Problem)> = None;
    for &place in places.preferred.iter().chain(&places.required) {
        if !budget.spend(ground.looks(2) + ground.problem.cost_of_a_copy()) {
            break;
        }
        let problem = narrowed(ground, &places.region(ground, place));
        if problem.excluded_by_bounds(request.need) {
            continue;
        }
        let packing = construct::best(&problem, budget);
        let placed = packing.placed_count();
        if placed >= request.need && best.as_ref().is_none_or(|(other, _)| other.placed_count() < placed) {
            best = Some((packing, problem));
        }
        if placed == request.wanted() {
            break;
        }
    }
    best
}

/// The problem within a region.
fn narrowed(ground: &Ground<'_>, region: &Region) -> Problem {
    let bins: Vec<usize> = (0..region.len()).filter(|&bin| region[bin]).collect();
    let counts: Vec<u32> = ground.problem.kinds.iter().map(|kind| kind.count).collect();
    ground.problem.narrowed(&bins, |_, _| true, &counts, &[])
}

/// A domain of a level; nothing is the whole cluster.
type Place = Option<(usize, u32)>;

/// Domains that members may go to, as numbers: bins are looked up one domain after the other.
struct Places {
    /// Of the narrowest required level: those with most kin first, then the tightest.
    required: Vec<Place>,
    /// Of preferred levels and within those: narrow levels first.
    preferred: Vec<Place>,
}

impl Places {
    /// Nothing if the budget does not last.
    fn new(ground: &Ground<'_>, most_per_level: usize, budget: &mut Budget) -> Option<Self> {
        let asks = ground.part(0);
        let everywhere = ground.everywhere();
        let levels = 1 + asks.levels.len();
        let cost =
            ground.cost_of_domains() + ground.cost_of_fit(0) + ground.looks(4) + ground.cost_of_fullness(0);
        if !budget.spend(levels * cost) {
            return None;
        }
        let required = match asks.required() {
            None => vec![None],
            Some(level) => {
                let (anchor, rooms) = (ground.anchor(0, 0, level), rooms(ground, level));
                let domains = ground.domains_in(0, level, &everywhere).into_iter();
                let mut domains: Vec<u32> = domains.filter(|&domain| anchor.allows(domain)).collect();
                domains.sort_by_cached_key(|&domain| {
                    let full = ground.fullness(0, &[Cell { depth: level + 1, domain }]);
                    (Reverse(anchor.pull(domain)), rooms[domain as usize], Reverse(full))
                });
                domains.into_iter().map(|domain| Some((level, domain))).collect()
            }
        };
        let order: FxHashMap<Place, usize> = required.iter().copied().zip(0..).collect();
        let wanted: u64 = ground.problem.kinds.iter().map(|kind| u64::from(kind.count)).sum();
        let first = asks.required().map_or(0, |level| level + 1);
        let mut preferred = Vec::new();
        for level in (first..asks.levels.len()).rev() {
            let Some(hierarchy) = ground.hierarchy(0) else { break };
            let (anchor, rooms) = (ground.anchor(0, 0, level), rooms(ground, level));
            let fits = ground.fit_by_domain(0, level, &everywhere);
            let wide =
                |domain: u32| asks.required().map(|wide| (wide, hierarchy.ancestor(level, domain, wide)));
            let mut domains = ground.domains_in(0, level, &everywhere);
            domains.retain(|&domain| anchor.is_all_in(domain) && fits[domain as usize] >= wanted);
            let mut inside: Vec<(usize, u64, u32)> = domains
                .into_iter()
                .filter_map(|domain| Some((*order.get(&wide(domain))?, rooms[domain as usize], domain)))
                .collect();
            inside.sort_by_cached_key(|&(wide, room, domain)| {
                (wide, room, Reverse(ground.fullness(0, &[Cell { depth: level + 1, domain }])))
            });
            let mut tried: FxHashMap<usize, usize> = FxHashMap::default();
            inside.retain(|(wide, ..)| {
                let tried = tried.entry(*wide).or_default();
                *tried += 1;
                *tried <= most_per_level
            });
            preferred.extend(inside.into_iter().map(|(.., domain)| Some((level, domain))));
        }
        Some(Self { required, preferred })
    }

    fn region(&self, ground: &Ground<'_>, place: Place) -> Region {
        match place {
            Some((level, domain)) => ground.within(0, level, domain, &ground.everywhere()),
            None => ground.everywhere(),
        }
    }
}

/// Room by domain of a level.
fn rooms(ground: &Ground<'_>, level: usize) -> Vec<u64> {
    let mut rooms: Vec<u64> = Vec::new();
    for (bin, &domain) in ground.domains(0, level).iter().enumerate() {
        if domain != crate::state::hierarchy::NO_DOMAIN {
            rooms.resize(rooms.len().max(domain as usize + 1), 0);
            rooms[domain as usize] = rooms[domain as usize].saturating_add(ground.room(0, bin));
        }
    }
    rooms
}
