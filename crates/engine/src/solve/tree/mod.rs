//! Groups that ask something of the topology, and trees of groups.
//!
//! Tiers as elsewhere: one group of identical members is decided by sums ([`uniform`], in slices [`sliced`]); bounds
//! refuse what is hopeless ([`bounds`]); small trees are decided by looking at every choice of domains, which also finds
//! the best one ([`exact`]); one large mixed group domain by domain ([`regions`]); large trees by construction
//! ([`build`]).

mod anchor;
mod bounds;
mod build;
mod exact;
mod fullness;
mod ground;
mod objective;
mod options;
mod regions;
mod shortages;
mod sliced;
mod slicing;
mod targets;
mod uniform;

use super::budget::Budget;
use super::request::{Part, Request, Tree};
use super::{Outcome, Tables, explain};
use crate::refusal::Scattered;
use crate::state::hierarchy::Hierarchies;
use crate::state::nodes::NodeId;
use exact::Answer;
use ground::Ground;
use std::sync::Arc;
use tutti_model::Text;

/// Of what is left, one part in this many is for what may decide nothing; the rest is for what comes after it.
const SHARE: u64 = 2;
/// A construction of a large tree gets all but one part in this many.
const BUILD_LEAVES: u64 = 8;

/// Answers a request with a tree; changes nothing but caches.
pub(super) fn solve(
    request: &Request,
    tree: &Arc<Tree>,
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    let mut outcome = match in_closed_form(request, tree, tables, budget) {
        Some(outcome) => outcome,
        None => decide(request, tree, tables, budget),
    };
    if let Outcome::Placed(seats) = &mut outcome {
        sort_by_rank(seats, tree, tables);
    }
    outcome
}

/// One group of identical members, who want nothing of other pods.
fn in_closed_form(
    request: &Request,
    tree: &Tree,
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> Option<Outcome> {
    let (group, [kind], [belonging]) = (tree.only_group()?, &request.shapes[..], &tree.kinds[..]) else {
        return None;
    };
    let id = group.hierarchy?;
    if !tables.limits.closed_forms || !tables.is_independent(tables.shapes.get(kind.0)) {
        return None;
    }
    match group.slices {
        None if group.levels.is_empty() => None,
        None => Some(uniform::solve(group, id, *kind, request.need, tables, budget)),
        Some(_) if belonging.slice.is_some() || belonging.leads => None,
        Some(rule) => Some(sliced::solve(group, (id, rule), *kind, request.need, tables, budget)),
    }
}

fn decide(request: &Request, tree: &Arc<Tree>, tables: &mut Tables<'_>, budget: &mut Budget) -> Outcome {
    let Some(ground) = Ground::new(request, tree, tables, budget) else {
        return Outcome::Undecided(explain::briefly(0, request.need, tables));
    };
    let limits = tables.limits;
    let is_excluded = |budget: &mut Budget| budget.share(SHARE, |budget| bounds::exclude(&ground, budget));
    let is_small = exact::is_small(&ground, limits);
    if is_small {
        if is_excluded(budget) {
            return Outcome::Infeasible(shortages::tree(&ground, tables, budget));
        }
        match exact::solve(&ground, limits, budget) {
            Answer::Placed(seats) => return Outcome::Placed(seats),
            Answer::Nothing => return Outcome::Infeasible(shortages::tree(&ground, tables, budget)),
            Answer::Unknown => {}
        }
    }
    if limits.regions && tree.only_group().is_some_and(|group| group.slices.is_none()) {
        return regions::solve(&ground, request, tables, budget);
    }
    if limits.build
        && let Some(seats) = budget.most(BUILD_LEAVES, |budget| build::solve(&ground, budget))
    {
        return Outcome::Placed(seats);
    }
    if !is_small && is_excluded(budget) {
        return Outcome::Infeasible(shortages::tree(&ground, tables, budget));
    }
    // Many choices; but perhaps the first ones will do, or all of them are soon seen to be hopeless.
    if !is_small && exact::has_few_cells(&ground, limits) {
        match exact::solve(&ground, limits, budget) {
            Answer::Placed(seats) => return Outcome::Placed(seats),
            Answer::Nothing => return Outcome::Infeasible(shortages::tree(&ground, tables, budget)),
            Answer::Unknown => {}
        }
    }
    if limits.build
        && limits.constructions
        && let Some(seats) = exact::any(&ground, limits, budget)
    {
        return Outcome::Placed(seats);
    }
    Outcome::Undecided(shortages::tree(&ground, tables, budget))
}

/// Members of a part that run where the level that it requires does not allow them.
pub(crate) fn scattered(part: &Part, hierarchies: &Hierarchies) -> Option<Scattered> {
    shortages::scattered(hierarchies.get(part.hierarchy?), part)
}

/// Members are handed out by rank in the order of seats, so seats in one domain follow each other.
fn sort_by_rank(seats: &mut [(usize, NodeId, u32)], tree: &Tree, tables: &Tables<'_>) {
    if !tree.parts.iter().any(|part| part.is_ranked) {
        return;
    }
    let place = |kind: usize, node: NodeId| -> Vec<Text> {
        let mut at = Some(tree.kinds[kind].part);
        while let Some(part) = at {
            if let Some(id) = tree.parts[part].hierarchy {
                let hierarchy = tables.relations.hierarchies.get(id);
                let domains =
                    (0..hierarchy.levels_count()).rev().map(|level| (level, hierarchy.domain(level, node)));
                let narrowest =
                    domains.into_iter().find(|&(_, domain)| domain != crate::state::hierarchy::NO_DOMAIN);
                return narrowest
                    .map(|(level, domain)| hierarchy.path(level, domain).into_iter().cloned().collect())
                    .unwrap_or_default();
            }
            at = tree.parts[part].parent;
        }
        Vec::new()
    };
    seats.sort_by_cached_key(|&(kind, node, _)| (kind, place(kind, node), tables.nodes.name(node).clone()));
}
