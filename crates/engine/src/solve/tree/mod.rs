//! Groups that ask something of the topology, and trees of groups.
//!
//! Tiers as elsewhere: one group of identical members is decided by sums ([`uniform`]); small trees by looking at
//! every choice of domains, which also finds the best one ([`exact`]); one large mixed group domain by domain
//! ([`regions`]); large trees by construction ([`build`]), and if that fails by bounds that may only refuse
//! ([`bounds`]).

mod anchor;
mod bounds;
mod build;
mod exact;
mod ground;
mod objective;
mod options;
mod regions;
mod shortages;
mod targets;
mod uniform;

use super::budget::Budget;
use super::request::{Part, Request, Tree};
use super::{Outcome, Tables};
use crate::refusal::Scattered;
use crate::state::hierarchy::Hierarchies;
use crate::state::nodes::NodeId;
use exact::Answer;
use ground::Ground;
use std::sync::Arc;
use tutti_model::Text;

/// Answers a request with a tree; changes nothing but caches.
pub(super) fn solve(
    request: &Request,
    tree: &Arc<Tree>,
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    let mut outcome = decide(request, tree, tables, budget);
    if let Outcome::Placed(seats) = &mut outcome {
        sort_by_rank(seats, tree, tables);
    }
    outcome
}

fn decide(request: &Request, tree: &Arc<Tree>, tables: &mut Tables<'_>, budget: &mut Budget) -> Outcome {
    if let (Some(group), [kind]) = (tree.only_group(), &request.shapes[..])
        && let Some(id) = group.hierarchy
        && group.slices.is_none()
        && tables.is_independent(tables.shapes.get(kind.0))
    {
        return uniform::solve(group, id, *kind, request.need, tables);
    }
    let ground = Ground::new(request, tree, tables);
    match exact::solve(&ground, budget) {
        Answer::Placed(seats) => return Outcome::Placed(seats),
        Answer::Nothing => return Outcome::Infeasible(shortages::tree(&ground, tables)),
        Answer::Unknown => {}
    }
    if tree.only_group().is_some_and(|group| group.slices.is_none()) {
        return regions::solve(&ground, request, tables, budget);
    }
    if let Some(seats) = build::solve(&ground) {
        return Outcome::Placed(seats);
    }
    let why = shortages::tree(&ground, tables);
    if bounds::exclude(&ground) { Outcome::Infeasible(why) } else { Outcome::Undecided(why) }
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
