//! The cluster as it is: nodes, pods, groups, volumes, and what follows from them.
//!
//! One ledger. The mutators of [`State`] (`facts.rs` for what is told, `ledger.rs` for seats and room, `holds.rs` for
//! promised seats, `terms.rs` for what pods have to do with each other, `volumes/`) keep every table consistent and write
//! to one change log. Inside a [`txn::Txn`] they can be taken back. No table is changed outside of this folder.

pub(crate) mod changes;
pub(crate) mod counts;
pub(crate) mod digest;
mod facts;
pub(crate) mod hierarchy;
pub(crate) mod holds;
pub(crate) mod images;
pub(crate) mod index;
mod label_index;
mod ledger;
pub(crate) mod nodes;
pub(crate) mod pods;
mod profiles;
pub(crate) mod relations;
pub(crate) mod room;
mod room_sums;
mod selector_index;
pub(crate) mod shape;
mod terms;
pub(crate) mod topology;
pub(crate) mod txn;
pub(crate) mod units;
pub(crate) mod volumes;

use crate::config::Config;
use crate::decision::UnitKey;
use crate::score::rating::Scoring;
use crate::solve::{Limits, Tables};
use changes::{Change, ChangeLog};
use hierarchy::HierarchyId;
use holds::Holds;
use nodes::NodeTable;
use pods::PodTable;
use profiles::Profiles;
use relations::Relations;
use room::Rooms;
use rustc_hash::FxHashSet;
use shape::{Resources, ShapeId, Shapes};
use std::sync::Arc;
use tutti_model::{ObjectKey, ResourceList, Text};
use volumes::Volumes;

/// All tables.
#[derive(Debug, Clone)]
pub(crate) struct State {
    profiles: Profiles,
    resources: Resources,
    shapes: Shapes,
    nodes: NodeTable,
    pods: PodTable,
    relations: Relations,
    holds: Holds,
    volumes: Volumes,
    /// Units that are not to be tried.
    suspended: FxHashSet<UnitKey>,
    changes: ChangeLog,
    /// Caches that are rebuilt on demand.
    rooms: Rooms,
    /// Up to which size each way of solving is tried.
    limits: Limits,
    /// True inside of a transaction: rows of nodes that nobody uses are kept until it ends.
    is_trial: bool,
}

impl State {
    /// A cluster of which nothing is known.
    pub(crate) fn new(config: &Config) -> Self {
        let mut resources = Resources::default();
        let scorings = config.profiles.iter().map(|named| Scoring::new(&named.profile, &mut resources));
        let rooms = Rooms::new(scorings.collect());
        Self {
            profiles: Profiles::new(config.profiles.clone()),
            resources,
            shapes: Shapes::default(),
            nodes: NodeTable::default(),
            pods: PodTable::default(),
            relations: Relations::default(),
            holds: Holds::default(),
            volumes: Volumes::default(),
            suspended: FxHashSet::default(),
            changes: ChangeLog::default(),
            rooms,
            limits: config.limits,
            is_trial: false,
        }
    }

    /// The same facts without caches and without the past.
    pub(crate) fn fork(&self) -> Self {
        Self {
            profiles: self.profiles.clone(),
            resources: self.resources.clone(),
            shapes: self.shapes.clone(),
            nodes: self.nodes.clone(),
            pods: self.pods.clone(),
            relations: self.relations.clone(),
            holds: self.holds.clone(),
            volumes: self.volumes.clone(),
            suspended: self.suspended.clone(),
            changes: ChangeLog::default(),
            rooms: self.rooms.emptied(),
            limits: self.limits,
            is_trial: false,
        }
    }

    /// Which schedulers' pods are placed.
    pub(crate) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// What pods require.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// What nodes have.
    pub(crate) fn nodes(&self) -> &NodeTable {
        &self.nodes
    }

    /// Pods, groups and composites.
    pub(crate) fn pods(&self) -> &PodTable {
        &self.pods
    }

    /// What pods have to do with each other.
    pub(crate) fn relations(&self) -> &Relations {
        &self.relations
    }

    /// Promised seats.
    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Claims and volumes.
    pub(crate) fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// Units that are not to be tried, in no meaningful order.
    pub(crate) fn suspended(&self) -> &FxHashSet<UnitKey> {
        &self.suspended
    }

    /// What happened.
    pub(crate) fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// The next change that the agenda has not heard of.
    pub(crate) fn next_change(&mut self) -> Option<Change> {
        self.changes.next()
    }

    /// What requests are solved on.
    pub(crate) fn tables(&mut self) -> Tables<'_> {
        Tables {
            nodes: &self.nodes,
            shapes: &self.shapes,
            resources: &self.resources,
            relations: &self.relations,
            volumes: &self.volumes,
            changes: &self.changes,
            rooms: &mut self.rooms,
            limits: self.limits,
        }
    }

    /// How many copies of a shape fit now, on all nodes together.
    pub(crate) fn room(&mut self, id: ShapeId) -> u64 {
        let shape = Arc::clone(self.shapes.get(id));
        self.rooms.of(id, &shape, &self.nodes, &self.changes).total()
    }

    /// How many copies of a shape fit into the roomiest domain of a level.
    pub(crate) fn room_in_a_domain(&mut self, id: ShapeId, hierarchy: HierarchyId, level: usize) -> u64 {
        let shape = Arc::clone(self.shapes.get(id));
        let room = self.rooms.of(id, &shape, &self.nodes, &self.changes);
        let (sums, _) = room.by_domain(hierarchy, &self.relations.hierarchies);
        sums.get(level).and_then(|sums| sums.iter().max()).copied().unwrap_or(0)
    }

    /// The name of the node where a pod sits.
    pub(crate) fn seat_of(&self, row: &pods::PodRow) -> Option<Text> {
        row.node().map(|node| self.nodes.name(node).clone())
    }

    /// What a pod takes from its node; nothing if it is not known.
    pub(crate) fn requests_of(&self, pod: &ObjectKey) -> ResourceList {
        let Some(row) = self.pods.pod(pod) else { return ResourceList::new() };
        let requests = &self.shapes.get(row.shape).requests;
        requests.iter().map(|&(id, amount)| (self.resources.name(id).clone(), amount)).collect()
    }
}
