//! One large group with members of several kinds, or with wishes about other pods: domain by domain, each as a problem
//! of its own.
//!
//! Domains of narrow levels come first, tight ones before roomy ones. First everybody is to be placed, by construction;
//! then as many as possible; then the search decides about the minimum, domain by domain under one budget.

use super::ground::{Ground, Region};
use super::shortages;
use crate::solve::budget::Budget;
use crate::solve::construct::{self, Packing};
use crate::solve::problem::Problem;
use crate::solve::search::{Found, Skips, search};
use crate::solve::{Outcome, Request, Tables, cover};

/// Domains of a preferred level that are tried before a wider one is.
const TRIED_PER_LEVEL_MAX: usize = 64;

pub(super) fn solve(
    ground: &Ground<'_>,
    request: &Request,
    tables: &Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    let wanted = request.wanted();
    let mut best: Option<(Packing, Problem)> = None;
    for region in preferred(ground).into_iter().chain(required(ground)) {
        let problem = narrowed(ground, &region);
        if problem.excluded_by_bounds(request.need) {
            continue;
        }
        let packing = construct::best(&problem);
        let placed = packing.placed_count();
        if placed >= request.need && best.as_ref().is_none_or(|(other, _)| other.placed_count() < placed) {
            best = Some((packing, problem));
        }
        if placed == wanted {
            break;
        }
    }
    if let Some((packing, problem)) = best {
        return Outcome::Placed(packing.seats(&problem));
    }
    let mut is_open = false;
    for region in required(ground) {
        let problem = narrowed(ground, &region);
        if problem.excluded_by_bounds(request.need) {
            continue;
        }
        match look(&problem, wanted - request.need, budget) {
            Found::Placement(packing) => return Outcome::Placed(packing.seats(&problem)),
            Found::Nothing => {}
            Found::OutOfBudget => is_open = true,
        }
    }
    let why = shortages::tree(ground, tables);
    if is_open { Outcome::Undecided(why) } else { Outcome::Infeasible(why) }
}

fn look(problem: &Problem, skips_max: u32, budget: &mut Budget) -> Found {
    if cover::suits(problem) {
        cover::search(problem, skips_max, budget)
    } else {
        search(problem, Skips::of_one_team(problem, skips_max), budget)
    }
}

/// The problem within a region.
fn narrowed(ground: &Ground<'_>, region: &Region) -> Problem {
    let bins: Vec<usize> = (0..region.len()).filter(|&bin| region[bin]).collect();
    let counts: Vec<u32> = ground.problem.kinds.iter().map(|kind| kind.count).collect();
    ground.problem.narrowed(&bins, |_, _| true, &counts, &[])
}

/// The domains of the narrowest required level that members may go to, those with most kin first, then the tightest.
fn required(ground: &Ground<'_>) -> Vec<Region> {
    let everywhere: Region = vec![true; ground.problem.bins.len()];
    let Some(level) = ground.part(0).required() else { return vec![everywhere] };
    let anchor = ground.anchor(0, 0, level);
    let domains =
        ground.domains_in(0, level, &everywhere).into_iter().filter(|&domain| anchor.allows(domain));
    let mut regions: Vec<(std::cmp::Reverse<u32>, u64, Region)> = domains
        .map(|domain| {
            let region = ground.within(0, level, domain, &everywhere);
            (std::cmp::Reverse(anchor.pull(domain)), room(ground, &region), region)
        })
        .collect();
    regions.sort_by_key(|(pull, room, _)| (*pull, *room));
    regions.into_iter().map(|(.., region)| region).collect()
}

/// Domains of preferred levels that lie within those, the narrowest level first.
fn preferred(ground: &Ground<'_>) -> Vec<Region> {
    let asks = ground.part(0);
    let wanted: u64 = ground.problem.kinds.iter().map(|kind| u64::from(kind.count)).sum();
    let first = asks.required().map_or(0, |level| level + 1);
    let mut regions = Vec::new();
    for wide in required(ground) {
        let before = regions.len();
        for level in (first..asks.levels.len()).rev() {
            let anchor = ground.anchor(0, 0, level);
            let domains = ground.domains_in(0, level, &wide).into_iter();
            let domains = domains.filter(|&domain| anchor.is_all_in(domain));
            let mut inside: Vec<(u64, Region)> = domains
                .map(|domain| ground.within(0, level, domain, &wide))
                .filter(|region| ground.fit(0, region) >= wanted)
                .map(|region| (room(ground, &region), region))
                .collect();
            inside.sort_by_key(|(room, _)| *room);
            regions.extend(
                inside.into_iter().take(TRIED_PER_LEVEL_MAX).map(|(_, region)| (level, before, region)),
            );
        }
    }
    // Narrow levels of all domains before wider ones of any.
    regions.sort_by_key(|(level, order, _)| (std::cmp::Reverse(*level), *order));
    regions.into_iter().map(|(.., region)| region).collect()
}

fn room(ground: &Ground<'_>, region: &Region) -> u64 {
    (0..region.len()).filter(|&bin| region[bin]).map(|bin| ground.room(0, bin)).sum()
}
