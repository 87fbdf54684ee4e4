//! How full domains are, for choices that are equal in all other respects: the fuller one by fraction, as kube-scheduler
//! scores placements, so that those that are nearly empty stay so.

use crate::solve::Tables;
use crate::state::hierarchy::{Cell, Hierarchy, NO_DOMAIN};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::{ResourceId, Resources, Shape};
use tutti_model::Resource;

/// What is used and what there is of some resources, on some nodes together.
#[derive(Debug, Clone, Default)]
pub(super) struct Fullness {
    /// By resource: used and allocatable.
    sums: Vec<(i128, i128)>,
}

impl Fullness {
    /// Of these nodes.
    pub(super) fn of(nodes: impl Iterator<Item = NodeId>, asked: &[ResourceId], table: &NodeTable) -> Self {
        let mut this = Self { sums: vec![(0, 0); asked.len()] };
        for node in nodes {
            for (sum, &resource) in this.sums.iter_mut().zip(asked) {
                let allocatable = table.allocatable(node, resource);
                sum.0 += i128::from(allocatable) - i128::from(table.free(node, resource));
                sum.1 += i128::from(allocatable);
            }
        }
        this
    }

    /// Of more nodes, with the same resources.
    pub(super) fn add(&mut self, other: &Self) {
        self.sums.resize(self.sums.len().max(other.sums.len()), (0, 0));
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }

    /// In thousandths, on average over the resources that there are.
    pub(super) fn thousandths(&self) -> u64 {
        let there = self.sums.iter().filter(|(_, allocatable)| *allocatable > 0);
        let (sum, count) = there.fold((0, 0), |(sum, count), &(used, allocatable)| {
            (sum + used.clamp(0, allocatable) * 1000 / allocatable, count + 1)
        });
        if count == 0 { 0 } else { (sum / count) as u64 }
    }
}

/// The resources that count: what members ask for, apart from a seat.
pub(super) fn asked<'s>(shapes: impl Iterator<Item = &'s Shape>, resources: &Resources) -> Vec<ResourceId> {
    let mut asked: Vec<ResourceId> =
        shapes.flat_map(|shape| shape.requests.iter().map(|&(id, _)| id)).collect();
    asked.retain(|&id| resources.name(id).name() != Resource::PODS);
    asked.sort_unstable();
    asked.dedup();
    asked
}

/// Whom the domains of one group are compared for.
pub(super) struct Comparison<'a> {
    tree: &'a Hierarchy,
    table: &'a NodeTable,
    asked: Vec<ResourceId>,
    levels: usize,
}

impl<'a> Comparison<'a> {
    /// For members of one shape, who ask for so many levels.
    pub(super) fn new(shape: &Shape, levels: usize, tree: &'a Hierarchy, tables: &Tables<'a>) -> Self {
        let asked = asked(std::iter::once(shape), tables.resources);
        Self { tree, table: tables.nodes, asked, levels }
    }

    /// How full some cells are together, in thousandths.
    pub(super) fn of_cells(&self, cells: impl Iterator<Item = Cell>) -> u64 {
        let mut sum = Fullness::default();
        for cell in cells {
            sum.add(&Fullness::of(
                nodes_of(self.tree, self.levels, cell, self.table),
                &self.asked,
                self.table,
            ));
        }
        sum.thousandths()
    }
}

/// The nodes of a cell: those of its domain that are in none of a narrower level.
pub(super) fn nodes_of<'t>(
    tree: &'t Hierarchy,
    levels: usize,
    cell: Cell,
    table: &'t NodeTable,
) -> impl Iterator<Item = NodeId> + 't {
    let inside = (cell.depth > 0).then(|| tree.nodes(cell.depth - 1, cell.domain).iter().copied());
    let outside = (cell.depth == 0).then(|| table.ids());
    let is_own = move |node: &NodeId| cell.depth == levels || tree.domain(cell.depth, *node) == NO_DOMAIN;
    inside.into_iter().flatten().chain(outside.into_iter().flatten()).filter(is_own)
}
