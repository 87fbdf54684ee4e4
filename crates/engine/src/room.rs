//! Room: how many more copies of a shape every node takes, and which node is liked best.
//!
//! Computed once for a shape that somebody waits with and kept up to date from the node table's change log, so
//! that a decision costs what changed since the last one for that shape.

use crate::nodes::{NodeId, NodeTable};
use crate::shape::{Shape, ShapeId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tutti_model::Text;

/// Shapes whose room is remembered; more than that are computed anew when they are asked for.
const ROOMS_MAX: usize = 256;

/// Preference among nodes that will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Fill nodes up, so that large holes stay whole. For groups.
    Pack,
    /// Even out the load, as Kubernetes does by default. For pods on their own.
    Spread,
}

/// The room of one shape.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    cursor: u64,
    used_at: u64,
    by_node: Vec<u32>,
    total: u64,
    ranking: Option<Ranking>,
}

/// Nodes with room, most welcome first. Worth its keep only for shapes that come again.
#[derive(Debug, Clone)]
struct Ranking {
    style: Style,
    /// Under what each node stands in the order. Rows change hands, so names are not asked for again.
    keys: Vec<Option<(Reverse<i64>, Text)>>,
    order: BTreeSet<(Reverse<i64>, Text, NodeId)>,
}

impl Room {
    /// Copies that fit on a node.
    pub(crate) fn on(&self, node: NodeId) -> u32 {
        self.by_node.get(node.index()).copied().unwrap_or(0)
    }

    /// Copies that fit, by number of the node.
    pub(crate) fn by_node(&self) -> &[u32] {
        &self.by_node
    }

    /// Copies that fit on all nodes together.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The most welcome nodes that together take `count` copies, and how many each takes. Ties go by name.
    pub(crate) fn best(
        &self,
        count: u32,
        style: Style,
        shape: &Shape,
        table: &NodeTable,
    ) -> Vec<(NodeId, u32)> {
        match &self.ranking {
            Some(ranking) if ranking.style == style => {
                self.fill(count, ranking.order.iter().map(|(_, _, node)| *node))
            }
            _ => {
                let key = |&node: &NodeId| (Reverse(score(table, node, shape, style)), table.name(node));
                let nodes = table.ids().filter(|&node| self.on(node) > 0);
                if count == 1 {
                    return self.fill(count, nodes.min_by_key(key).into_iter());
                }
                let mut nodes: Vec<(_, NodeId)> = nodes.map(|node| (key(&node), node)).collect();
                nodes.sort_unstable();
                self.fill(count, nodes.into_iter().map(|(_, node)| node))
            }
        }
    }

    fn fill(&self, count: u32, nodes: impl Iterator<Item = NodeId>) -> Vec<(NodeId, u32)> {
        let mut left = count;
        let mut seats = Vec::new();
        for node in nodes {
            let taken = self.on(node).min(left);
            seats.push((node, taken));
            left -= taken;
            if left == 0 {
                break;
            }
        }
        seats
    }

    fn build(table: &NodeTable, shape: &Shape) -> Self {
        let by_node: Vec<u32> = table.ids().map(|id| table.room(id, shape)).collect();
        let total = by_node.iter().map(|&room| u64::from(room)).sum();
        Self { cursor: table.log_end(), used_at: 0, by_node, total, ranking: None }
    }

    fn rank(&mut self, table: &NodeTable, shape: &Shape, style: Style) {
        let mut ranking = Ranking { style, keys: vec![None; self.by_node.len()], order: BTreeSet::new() };
        for node in table.ids().filter(|&node| self.on(node) > 0) {
            ranking.insert(node, table, shape);
        }
        self.ranking = Some(ranking);
    }

    fn catch_up(&mut self, table: &NodeTable, shape: &Shape) {
        let changed = match table.changed_since(self.cursor) {
            Some(changed) if changed.len() <= table.rows_count() => changed,
            _ => {
                *self = Self { used_at: self.used_at, ..Self::build(table, shape) };
                return;
            }
        };
        self.by_node.resize(table.rows_count(), 0);
        for &id in changed {
            let room = table.room(id, shape);
            let before = std::mem::replace(&mut self.by_node[id.index()], room);
            self.total = self.total + u64::from(room) - u64::from(before);
            if let Some(ranking) = &mut self.ranking {
                ranking.remove(id);
                if room > 0 {
                    ranking.insert(id, table, shape);
                }
            }
        }
        self.cursor = table.log_end();
    }
}

impl Ranking {
    fn insert(&mut self, node: NodeId, table: &NodeTable, shape: &Shape) {
        let (score, name) = (Reverse(score(table, node, shape, self.style)), table.name(node).clone());
        if self.keys.len() <= node.index() {
            self.keys.resize(node.index() + 1, None);
        }
        self.keys[node.index()] = Some((score, name.clone()));
        self.order.insert((score, name, node));
    }

    fn remove(&mut self, node: NodeId) {
        if let Some((score, name)) = self.keys.get_mut(node.index()).and_then(Option::take) {
            self.order.remove(&(score, name, node));
        }
    }
}

/// How welcome one more copy is on a node, in thousandths: how full the node would be (packing) or how empty
/// (spreading), on average over what the shape requests.
pub(crate) fn score(table: &NodeTable, node: NodeId, shape: &Shape, style: Style) -> i64 {
    let mut sum = 0_i64;
    for &(resource, amount) in &shape.requests {
        let allocatable = table.allocatable(node, resource).max(1);
        let used = allocatable.saturating_sub(table.free(node, resource)).saturating_add(amount);
        // Bounded so that a thousand times the amount still fits; no machine has that much of anything.
        sum = sum.saturating_add(used.clamp(0, 1 << 53) * 1000 / allocatable);
    }
    let full = sum / shape.requests.len().max(1) as i64;
    match style {
        Style::Pack => full,
        Style::Spread => -full,
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
        self.current(id, shape, table)
    }

    /// The same for somebody who will ask for the best nodes; a shape that comes again keeps them ranked.
    pub(crate) fn ranked(&mut self, id: ShapeId, shape: &Shape, style: Style, table: &NodeTable) -> &Room {
        let is_known = self.rooms.contains_key(&id);
        let room = self.current(id, shape, table);
        if is_known && room.ranking.as_ref().is_none_or(|ranking| ranking.style != style) {
            room.rank(table, shape, style);
        }
        room
    }

    /// Forgets a shape whose number may be used again.
    pub(crate) fn forget(&mut self, id: ShapeId) {
        self.rooms.remove(&id);
    }

    fn current(&mut self, id: ShapeId, shape: &Shape, table: &NodeTable) -> &mut Room {
        self.uses += 1;
        if self.rooms.len() >= ROOMS_MAX && !self.rooms.contains_key(&id) {
            self.forget_oldest();
        }
        let room = self.rooms.entry(id).or_insert_with(|| Room::build(table, shape));
        room.catch_up(table, shape);
        room.used_at = self.uses;
        room
    }

    fn forget_oldest(&mut self) {
        // `used_at` is unique, so the order of the map does not matter.
        if let Some(id) = self.rooms.iter().min_by_key(|(_, room)| room.used_at).map(|(&id, _)| id) {
            self.rooms.remove(&id);
        }
    }
}
