//! Turns a failed attempt into data that says what is missing.

use super::Tables;
use super::budget::Budget;
use super::construct::Packing;
use super::problem::Problem;
use crate::refusal::{NoRoom, NodeReason, Shortage};
use crate::rules::{self, Loads, attach_limit, resources::short};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::{ResourceId, Resources, Shape};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tutti_model::Text;

/// Steps that a node takes, beside what is done for every resource.
const STEPS_PER_NODE: usize = 24;
/// Steps that it takes to tell why other pods keep a member out of a node.
const STEPS_OF_RULES: usize = 64;

/// What is said if there is no budget for more.
pub(super) fn briefly(fit: u32, need: u32, tables: &Tables<'_>) -> NoRoom {
    let nodes = nodes_count(tables.nodes, &anywhere);
    NoRoom { needed: need, fit: fit.min(need.saturating_sub(1)), nodes, ..NoRoom::default() }
}

/// Why `need` members of one shape do not fit on the nodes that are looked at, when `fit` do.
pub(super) fn one_shape(
    shape: &Shape,
    fit: u32,
    need: u32,
    tables: &Tables<'_>,
    within: &dyn Fn(NodeId) -> bool,
    budget: &mut Budget,
) -> NoRoom {
    budget.for_explanation();
    if !budget.spend(tables.nodes.rows_count() * (STEPS_PER_NODE + 16 * shape.requests.len())) {
        return briefly(fit, need, tables);
    }
    let (nodes, resources) = (tables.nodes, tables.resources);
    let after = |node: NodeId, resource: ResourceId| {
        let free = nodes.free(node, resource);
        free - i64::from(nodes.room(node, shape)) * rules::resources::requested(shape, resource)
    };
    let ruled_out = reasons(shape, nodes, resources, after, |_| None, within);
    let missing = i64::from(need - fit);
    // A resource is to blame for itself if the members would not fit even if nothing else were asked for.
    let usable: Vec<NodeId> = usable_nodes(shape, nodes).filter(|&node| within(node)).collect();
    let alone = |&&(resource, amount): &&(ResourceId, i64)| {
        let copies: i128 =
            usable.iter().map(|&node| i128::from(nodes.free(node, resource).max(0) / amount)).sum();
        copies < i128::from(need)
    };
    let mut short: Vec<&(ResourceId, i64)> = shape.requests.iter().filter(alone).collect();
    if usable.is_empty() {
        short.clear();
    } else if short.is_empty() {
        short = shape
            .requests
            .iter()
            .filter(|(r, _)| is_most_frequent(&ruled_out, resources, *r))
            .take(1)
            .collect();
    }
    let mut short: Vec<Shortage> = short
        .into_iter()
        .map(|&(resource, amount)| Shortage {
            resource: resources.name(resource).clone(),
            missing: amount.saturating_mul(missing),
        })
        .collect();
    sort_by_frequency(&mut short, &ruled_out);
    let roomiest = roomiest(usable.iter().map(|&node| (node, nodes.room(node, shape).min(fit))), nodes);
    let nodes = nodes_count(nodes, within);
    NoRoom { needed: need, fit, roomiest, nodes, short, ruled_out, ..NoRoom::default() }
}

/// Why `need` members of several shapes do not fit, when the best construction placed fewer.
pub(super) fn mixed(
    problem: &Problem,
    best: &Packing,
    need: u32,
    tables: &Tables<'_>,
    within: &dyn Fn(NodeId) -> bool,
    budget: &mut Budget,
) -> NoRoom {
    budget.for_explanation();
    let fit = best.placed_count().min(need.saturating_sub(1));
    let rules = if problem.constraints.is_empty() { 0 } else { STEPS_OF_RULES };
    let by_node = STEPS_PER_NODE + 8 * problem.resources.len() + rules;
    let by_kind = problem.kinds.len() * (64 + 8 * problem.resources.len());
    let puts = best.placed_count() as usize * problem.cost_of_a_put();
    if !budget.spend(tables.nodes.rows_count() * by_node + by_kind + puts + problem.constraints_cost()) {
        return briefly(fit, need, tables);
    }
    let left_out = |&kind: &usize| best.placed_of(kind) < problem.kinds[kind].count;
    // The least demanding of those that were left out: what keeps it out keeps the others out, too.
    let kind = problem.by_difficulty().into_iter().rev().find(left_out).unwrap_or(0);
    let shape = tables.shapes.get(problem.kinds[kind].shape);
    let mut free_after: Vec<Option<&[i64]>> = vec![None; tables.nodes.rows_count()];
    for (bin, node) in problem.bins.iter().enumerate() {
        free_after[node.index()] = Some(problem.free_in(bin));
    }
    for (bin, free) in best.used() {
        free_after[problem.bins[bin].index()] = Some(free);
    }
    let after = |node: NodeId, resource: ResourceId| {
        let column = problem.resources.iter().position(|&r| r == resource);
        match (free_after[node.index()], column) {
            (Some(free), Some(column)) => free[column],
            _ => tables.nodes.free(node, resource),
        }
    };
    let mut bin_of: Vec<Option<usize>> = vec![None; tables.nodes.rows_count()];
    for (bin, node) in problem.bins.iter().enumerate() {
        bin_of[node.index()] = Some(bin);
    }
    let mut loads = Loads::new(&problem.constraints);
    let scope = problem.scope(tables);
    for (kind, bin) in best.members() {
        loads.put(kind, bin);
    }
    let other_pods = |node: NodeId| {
        let bin = bin_of[node.index()]?;
        problem.constraints.ruled_out(&scope, kind, bin).or_else(|| loads.why_not(kind, bin))
    };
    let ruled_out = reasons(shape, tables.nodes, tables.resources, after, other_pods, within);
    let mut short: Vec<Shortage> = Vec::new();
    for (column, &resource) in problem.resources.iter().enumerate() {
        let over = problem.least_demand(column, need) - i128::from(problem.total[column]);
        if over > 0 {
            let missing = i64::try_from(over).unwrap_or(i64::MAX);
            short.push(Shortage { resource: tables.resources.name(resource).clone(), missing });
        }
    }
    if short.is_empty() && usable_nodes(shape, tables.nodes).any(within) {
        let amount =
            |&&(resource, _): &&(ResourceId, i64)| is_most_frequent(&ruled_out, tables.resources, resource);
        short = shape
            .requests
            .iter()
            .filter(amount)
            .take(1)
            .map(|&(r, missing)| Shortage { resource: tables.resources.name(r).clone(), missing })
            .collect();
    }
    sort_by_frequency(&mut short, &ruled_out);
    let mut members = vec![0_u32; problem.bins.len()];
    for (_, bin) in best.members() {
        members[bin] += 1;
    }
    // Where more would fit if nothing else were asked for, no node has more than fit together.
    let members = members.into_iter().map(|members| members.min(fit));
    let roomiest = roomiest(problem.bins.iter().copied().zip(members), tables.nodes);
    let nodes = nodes_count(tables.nodes, within);
    NoRoom { needed: need, fit, roomiest, nodes, short, ruled_out, ..NoRoom::default() }
}

fn roomiest(rooms: impl Iterator<Item = (NodeId, u32)>, table: &NodeTable) -> Option<(Text, u32)> {
    let best =
        rooms.filter(|&(_, room)| room > 0).max_by_key(|&(node, room)| (room, Reverse(table.name(node))));
    best.map(|(node, room)| (table.name(node).clone(), room))
}

/// Everywhere.
pub(super) fn anywhere(_: NodeId) -> bool {
    true
}

fn nodes_count(table: &NodeTable, within: &dyn Fn(NodeId) -> bool) -> u32 {
    table.ids().filter(|&id| table.node(id).is_some() && within(id)).count() as u32
}

fn usable_nodes<'a>(shape: &'a Shape, table: &'a NodeTable) -> impl Iterator<Item = NodeId> + 'a {
    table.ids().filter(|&id| table.node(id).is_some_and(|node| rules::forbidden(shape, node).is_none()))
}

/// For how many nodes each reason rules out one more copy, when this much is free.
fn reasons(
    shape: &Shape,
    table: &NodeTable,
    resources: &Resources,
    free: impl Fn(NodeId, ResourceId) -> i64,
    other_pods: impl Fn(NodeId) -> Option<NodeReason>,
    within: &dyn Fn(NodeId) -> bool,
) -> Vec<(NodeReason, u32)> {
    let mut counts: BTreeMap<NodeReason, u32> = BTreeMap::new();
    for id in table.ids().filter(|&id| within(id)) {
        let Some(node) = table.node(id) else { continue };
        if let Some(reason) = rules::forbidden(shape, node) {
            *counts.entry(reason).or_default() += 1;
            continue;
        }
        let mut is_short = false;
        for resource in short(shape, |resource| free(id, resource)) {
            is_short = true;
            let reason = NodeReason::Insufficient(resources.name(resource).clone());
            *counts.entry(reason).or_default() += 1;
        }
        let full = || attach_limit::forbids(shape, id, table);
        if !is_short && let Some(reason) = other_pods(id).or_else(full) {
            *counts.entry(reason).or_default() += 1;
        }
    }
    let mut counts: Vec<(NodeReason, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, nodes)| Reverse(*nodes));
    counts
}

fn is_most_frequent(ruled_out: &[(NodeReason, u32)], resources: &Resources, resource: ResourceId) -> bool {
    let first = ruled_out.iter().find_map(|(reason, _)| match reason {
        NodeReason::Insufficient(resource) => Some(resource),
        _ => None,
    });
    first == Some(resources.name(resource))
}

fn sort_by_frequency(short: &mut [Shortage], ruled_out: &[(NodeReason, u32)]) {
    short.sort_by_key(|shortage| {
        let nodes = ruled_out
            .iter()
            .find(|(reason, _)| matches!(reason, NodeReason::Insufficient(r) if *r == shortage.resource));
        (Reverse(nodes.map_or(0, |(_, nodes)| *nodes)), shortage.resource.clone())
    });
}
