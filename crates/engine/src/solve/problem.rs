//! A request over several shapes, cut down to what matters: the resources asked for and the nodes with room.

use super::budget::{Budget, DIVISION};
use super::{Request, Tables};
use crate::rules::quota::Quota;
use crate::rules::{Constraints, Scope, resources};
use crate::state::nodes::NodeId;
use crate::state::shape::{ResourceId, ShapeId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Steps that the room of one shape on one node takes.
const STEPS_PER_ROOM: usize = 4;
/// Steps that a bin takes, beside what is done for every kind and resource.
const STEPS_PER_BIN: usize = 96;

/// What makes bins alike: what is free, who is allowed, what rules see.
type Likeness = (Vec<i64>, Vec<bool>, Vec<u32>);

/// Members of one shape.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) shape: ShapeId,
    pub(super) count: u32,
    /// Amounts, in the order of [`Problem::resources`].
    pub(super) demand: Vec<i64>,
    /// Copies that fit into the cluster if only this kind were placed.
    pub(super) room: u64,
    /// The largest share of any one resource that a member takes of all that is free, in billionths. The larger,
    /// the harder to place.
    pub(super) share: i64,
}

/// The request and the nodes that could serve it. Nodes are called bins here; they are ordered by name.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) resources: Vec<ResourceId>,
    pub(super) kinds: Vec<Kind>,
    pub(super) bins: Vec<NodeId>,
    /// What is free in a bin: `free[bin * resources + resource]`.
    pub(super) free: Vec<i64>,
    /// Whether a kind may use a bin: `allowed[bin * kinds + kind]`.
    pub(super) allowed: Vec<bool>,
    /// Bins with the same number are alike in everything.
    pub(super) class_of: Vec<u32>,
    pub(super) classes_count: usize,
    /// Sum of what is free over all bins.
    pub(super) total: Vec<i64>,
    /// What members and existing pods demand of each other.
    pub(super) constraints: Constraints,
}

impl Problem {
    /// Nothing if the budget does not last.
    pub(super) fn new(request: &Request, tables: &mut Tables<'_>, budget: &mut Budget) -> Option<Self> {
        let kinds_count = request.shapes.len();
        let mut shapes: Vec<ShapeId> = request.shapes.iter().map(|&(shape, _)| shape).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let per_node = STEPS_PER_ROOM * shapes.len() + kinds_count;
        if !budget.spend(per_node * tables.nodes.rows_count()) {
            return None;
        }
        let mut resources: Vec<ResourceId> = Vec::new();
        let mut rooms = Vec::new();
        for &(id, _) in &request.shapes {
            let shape = Arc::clone(tables.shapes.get(id));
            resources.extend(shape.requests.iter().map(|&(resource, _)| resource));
            resources.extend(shape.volumes.shared.iter().map(|&(resource, _)| resource));
            let room = tables.rooms.of(id, &shape, tables.nodes, tables.changes);
            rooms.push((room.by_node().to_vec(), room.total()));
        }
        // By name, so that restarts, which may number resources differently, search in the same order.
        resources.sort_by(|&a, &b| tables.resources.name(a).cmp(tables.resources.name(b)));
        resources.dedup();
        let mut bins: Vec<NodeId> =
            tables.nodes.ids().filter(|&node| rooms.iter().any(|(room, _)| room[node.index()] > 0)).collect();
        bins.sort_by(|&a, &b| tables.nodes.name(a).cmp(tables.nodes.name(b)));
        // Kinds are sorted by difficulty and rows are copied; rules are read bin by bin, and bins are put into classes.
        let width = kinds_count + 4 * resources.len();
        let rules = rules_cost(request, tables, bins.len());
        if !budget.spend(bins.len() * (STEPS_PER_BIN + width) + rules + kinds_count * resources.len()) {
            return None;
        }
        let free: Vec<i64> = bins
            .iter()
            .flat_map(|&node| resources.iter().map(move |&resource| (node, resource)))
            .map(|(node, resource)| tables.nodes.free(node, resource).max(0))
            .collect();
        let allowed: Vec<bool> =
            bins.iter().flat_map(|&node| rooms.iter().map(move |(room, _)| room[node.index()] > 0)).collect();
        let total = totals(&free, resources.len());
        let mut kinds = Vec::new();
        for (&(shape, count), &(_, room)) in request.shapes.iter().zip(&rooms) {
            let asking = tables.shapes.get(shape);
            let demand: Vec<i64> =
                resources.iter().map(|&resource| resources::requested(asking, resource)).collect();
            let share = dominant_share(&demand, &total);
            kinds.push(Kind { shape, count, demand, room, share });
        }
        let mut problem = Self {
            resources,
            kinds,
            bins,
            free,
            allowed,
            class_of: Vec::new(),
            classes_count: 0,
            total,
            constraints: Constraints::default(),
        };
        let scope = problem.scope(tables);
        let constraints = Constraints::new(&scope);
        let mut allowed = problem.allowed.clone();
        constraints.forbid(&scope, &mut allowed);
        (problem.constraints, problem.allowed) = (constraints, allowed);
        if !problem.constraints.is_empty() {
            problem.count_room();
        }
        problem.find_classes();
        Some(problem)
    }

    /// Steps that it takes to look at every bin for every kind, or to narrow the problem down.
    pub(super) fn cost_of_a_copy(&self) -> usize {
        let width = self.kinds.len() * (2 + DIVISION * self.resources.len());
        self.bins.len() * (STEPS_PER_BIN + width) + self.constraints_cost()
    }

    /// Steps that it takes to see what one more member means to the rules.
    pub(super) fn cost_of_a_put(&self) -> usize {
        8 + self.constraints.cost().hold / 2
    }

    /// Steps that it takes to copy the rules.
    pub(super) fn constraints_cost(&self) -> usize {
        let cost = self.constraints.cost();
        16 + cost.hold + self.bins.len() * (cost.look + cost.hold_per_member)
    }

    /// What rules are read from.
    pub(super) fn scope<'a>(&'a self, tables: &'a Tables<'_>) -> Scope<'a> {
        Scope {
            shapes: self.kinds.iter().map(|kind| Arc::clone(tables.shapes.get(kind.shape))).collect(),
            counts: self.kinds.iter().map(|kind| kind.count).collect(),
            bins: &self.bins,
            resources: &self.resources,
            free: &self.free,
            nodes: tables.nodes,
            relations: tables.relations,
            volumes: tables.volumes,
        }
    }

    /// Copies of a kind that fit into what is free in a bin, whether they may or not.
    pub(super) fn copies(&self, kind: usize, free: &[i64]) -> u64 {
        resources::copies_of(&self.kinds[kind].demand, free)
    }

    /// Copies that fit into an untouched bin by themselves.
    pub(super) fn room_in(&self, kind: usize, bin: usize) -> u64 {
        if !self.is_allowed(kind, bin) {
            return 0;
        }
        self.copies(kind, self.free_in(bin)).min(self.constraints.most(kind, bin))
    }

    /// The same problem with fewer bins, less that is allowed, other numbers of members, and quotas. Quotas speak of
    /// the bins of this problem.
    pub(super) fn narrowed(
        &self,
        bins: &[usize],
        allowed: impl Fn(usize, usize) -> bool,
        counts: &[u32],
        quotas: &[Quota],
    ) -> Self {
        let kinds_count = self.kinds.len();
        let mut kinds = self.kinds.clone();
        for (kind, &count) in kinds.iter_mut().zip(counts) {
            kind.count = count;
        }
        let mut narrow = Self {
            resources: self.resources.clone(),
            kinds,
            bins: bins.iter().map(|&bin| self.bins[bin]).collect(),
            free: bins.iter().flat_map(|&bin| self.free_in(bin).iter().copied()).collect(),
            allowed: bins
                .iter()
                .flat_map(|&bin| (0..kinds_count).map(move |kind| (kind, bin)))
                .map(|(kind, bin)| self.is_allowed(kind, bin) && allowed(kind, bin))
                .collect(),
            class_of: Vec::new(),
            classes_count: 0,
            total: Vec::new(),
            constraints: self.constraints.narrowed(bins, quotas),
        };
        narrow.total = totals(&narrow.free, narrow.resources.len());
        for kind in &mut narrow.kinds {
            kind.share = dominant_share(&kind.demand, &narrow.total);
        }
        narrow.count_room();
        narrow.find_classes();
        narrow
    }

    /// The same problem with nothing allowed outside of one bin.
    pub(super) fn restricted_to(&self, bin: usize) -> Self {
        let mut only = self.clone();
        let kinds = only.kinds.len();
        for (at, allowed) in only.allowed.iter_mut().enumerate() {
            *allowed &= at / kinds == bin;
        }
        only.count_room();
        only.find_classes();
        only
    }

    fn count_room(&mut self) {
        for kind in 0..self.kinds.len() {
            let room = (0..self.bins.len()).map(|bin| self.room_in(kind, bin)).sum::<u64>();
            self.kinds[kind].room = room.min(self.constraints.most_anywhere(kind));
        }
    }

    /// What is free in a bin.
    pub(super) fn free_in(&self, bin: usize) -> &[i64] {
        &self.free[bin * self.resources.len()..(bin + 1) * self.resources.len()]
    }

    /// Whether a kind may use a bin at all.
    pub(super) fn is_allowed(&self, kind: usize, bin: usize) -> bool {
        self.allowed[bin * self.kinds.len() + kind]
    }

    /// True if it is certain that no `need` members can be placed together.
    pub(super) fn excluded_by_bounds(&self, need: u32) -> bool {
        let placeable: u64 = self.kinds.iter().map(|kind| kind.room.min(u64::from(kind.count))).sum();
        if placeable < u64::from(need) {
            return true;
        }
        (0..self.resources.len())
            .any(|resource| self.least_demand(resource, need) > i128::from(self.total[resource]))
    }

    /// What the least demanding `need` members ask of one resource. No set of that size asks for less.
    pub(super) fn least_demand(&self, resource: usize, need: u32) -> i128 {
        let mut demands: Vec<(i64, u32)> =
            self.kinds.iter().map(|kind| (kind.demand[resource], kind.count)).collect();
        demands.sort_unstable();
        let mut left = need;
        let mut sum = 0;
        for (amount, count) in demands {
            let taken = count.min(left);
            sum += i128::from(amount) * i128::from(taken);
            left -= taken;
        }
        sum
    }

    /// Kinds from hard to easy to place.
    pub(super) fn by_difficulty(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.kinds.len()).collect();
        order.sort_by(|&a, &b| {
            let (ka, kb) = (&self.kinds[a], &self.kinds[b]);
            kb.share.cmp(&ka.share).then_with(|| kb.demand.cmp(&ka.demand)).then(a.cmp(&b))
        });
        order
    }

    fn find_classes(&mut self) {
        let mut numbers: FxHashMap<Likeness, u32> = FxHashMap::default();
        let kinds = self.kinds.len();
        let seen = self.constraints.seen();
        let mut class_of = Vec::with_capacity(self.bins.len());
        for bin in 0..self.bins.len() {
            let allowed = self.allowed[bin * kinds..(bin + 1) * kinds].to_vec();
            let seen = seen.iter().map(|seen| seen[bin]).collect();
            let next = numbers.len() as u32;
            class_of.push(*numbers.entry((self.free_in(bin).to_vec(), allowed, seen)).or_insert(next));
        }
        self.classes_count = numbers.len();
        self.class_of = class_of;
    }
}

/// Steps that it takes to read what members demand of each other and of volumes.
fn rules_cost(request: &Request, tables: &Tables<'_>, bins: usize) -> usize {
    let rows = tables.nodes.rows_count();
    let asks_for_volumes = |&(shape, _): &(ShapeId, u32)| !tables.shapes.get(shape).volumes.asks.is_empty();
    let is_asked = request.shapes.iter().any(asks_for_volumes);
    let free_volumes = if is_asked { tables.volumes.free_volumes().len() } else { 0 };
    let cost = |&(shape, count): &(ShapeId, u32)| {
        let shape = tables.shapes.get(shape);
        let terms = &shape.inter_pod;
        let affinity = terms.affinity.as_ref().map_or(0, |(_, keys)| keys.len());
        let asks = shape.volumes.asks.len() + shape.volumes.shared.len();
        bins * (8 * (terms.anti_affinity.len() + affinity + shape.matches.len()) + 32 * asks)
            + 16 * rows * terms.spread.len()
            + 8 * bins.min(64) * asks * count as usize
            + asks * free_volumes
    };
    request.shapes.iter().map(cost).sum()
}

/// Sums over all bins, by resource.
fn totals(free: &[i64], resources: usize) -> Vec<i64> {
    let mut total = vec![0_i64; resources];
    for row in free.chunks_exact(resources.max(1)) {
        for (sum, amount) in total.iter_mut().zip(row) {
            *sum = sum.saturating_add(*amount);
        }
    }
    total
}

fn dominant_share(demand: &[i64], total: &[i64]) -> i64 {
    demand
        .iter()
        .zip(total)
        .map(|(&amount, &all)| (i128::from(amount) * 1_000_000_000 / i128::from(all.max(1))) as i64)
        .max()
        .unwrap_or(0)
}
