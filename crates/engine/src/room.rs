//! Room: how many more copies of a shape every node takes.
//!
//! Computed once for a shape that somebody waits with and kept up to date from the node table's change log, so
//! that a decision costs what changed since the last one for that shape.

use crate::nodes::{NodeId, NodeTable};
use crate::shape::{Shape, ShapeId};
use rustc_hash::FxHashMap;

/// Shapes whose room is remembered; more than that are computed anew when they are asked for.
const ROOMS_MAX: usize = 256;

/// The room of one shape.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    cursor: u64,
    used_at: u64,
    by_node: Vec<u32>,
    total: u64,
}

impl Room {
    /// Copies that fit on a node.
    pub(crate) fn on(&self, node: NodeId) -> u32 {
        self.by_node.get(node.index()).copied().unwrap_or(0)
    }

    /// Copies that fit on all nodes together.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Nodes with room, in no meaningful order.
    pub(crate) fn nodes(&self, table: &NodeTable) -> Vec<NodeId> {
        table.ids().filter(|&id| self.on(id) > 0).collect()
    }

    fn build(table: &NodeTable, shape: &Shape) -> Self {
        let by_node: Vec<u32> = table.ids().map(|id| table.room(id, shape)).collect();
        let total = by_node.iter().map(|&room| u64::from(room)).sum();
        Self {
            cursor: table.log_end(),
            used_at: 0,
            by_node,
            total,
        }
    }

    fn catch_up(&mut self, table: &NodeTable, shape: &Shape) {
        match table.changed_since(self.cursor) {
            Some(changed) if changed.len() <= table.rows_count() => {
                self.by_node.resize(table.rows_count(), 0);
                for &id in changed {
                    let room = table.room(id, shape);
                    let before = std::mem::replace(&mut self.by_node[id.index()], room);
                    self.total = self.total + u64::from(room) - u64::from(before);
                }
                self.cursor = table.log_end();
            }
            _ => *self = Self::build(table, shape),
        }
    }
}

/// Room of the shapes that were asked for lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rooms {
    rooms: FxHashMap<ShapeId, Room>,
    /// Counts look-ups; only tells which room was used longest ago.
    uses: u64,
}

impl Rooms {
    /// The room of a shape, now.
    pub(crate) fn of(&mut self, id: ShapeId, shape: &Shape, table: &NodeTable) -> &Room {
        self.uses += 1;
        if self.rooms.len() >= ROOMS_MAX && !self.rooms.contains_key(&id) {
            self.forget_oldest();
        }
        let room = self.rooms.entry(id).or_insert_with(|| Room::build(table, shape));
        room.catch_up(table, shape);
        room.used_at = self.uses;
        room
    }

    /// Forgets a shape whose number may be used again.
    pub(crate) fn forget(&mut self, id: ShapeId) {
        self.rooms.remove(&id);
    }

    fn forget_oldest(&mut self) {
        // `used_at` is unique, so the order of the map does not matter.
        if let Some(id) = self
            .rooms
            .iter()
            .min_by_key(|(_, room)| room.used_at)
            .map(|(&id, _)| id)
        {
            self.rooms.remove(&id);
        }
    }
}
