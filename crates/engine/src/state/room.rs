//! Room: how many more copies of a shape every node takes, and which node is liked best.
//!
//! Computed once for a shape that somebody waits with and kept up to date from the node table's change log, so
//! that a decision costs what changed since the last one for that shape.

use crate::score::packing;
use crate::score::rating::{Class, Measure, Rating, Scoring};
use crate::score::total::Candidate;
use crate::state::changes::ChangeLog;
use crate::state::hierarchy::{Hierarchies, HierarchyId};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::room_sums::DomainRooms;
use crate::state::shape::{Shape, ShapeId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::Text;

/// Shapes whose room is remembered; more than that are computed anew when they are asked for.
const ROOMS_MAX: usize = 256;
/// So many entries of the change log are read rather than a small table.
const ENTRIES_MIN: usize = 64;

/// Preference among nodes that will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    /// Fill nodes up, so that large holes stay whole. For groups.
    Pack,
    /// As the profile says. For pods on their own.
    Profile,
}

/// The room of one shape.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    cursor: u64,
    used_at: u64,
    by_node: Vec<u32>,
    total: u64,
    by_domain: DomainRooms,
    ranking: Option<Ranking>,
}

/// Nodes with room, most welcome first. Worth its keep only for shapes that come again.
#[derive(Debug, Clone)]
struct Ranking {
    gauge: Gauge,
    /// How each node stands, and under what name. Rows change hands, so names are not asked for again.
    places: Vec<Option<(Rating, Text)>>,
    /// By class, because what a class counts for depends on which other classes there are.
    order: BTreeMap<Class, BTreeSet<(Reverse<i64>, Text, NodeId)>>,
}

/// What nodes are ranked by.
#[derive(Debug, Clone)]
enum Gauge {
    Pack,
    Profile(Measure),
}

impl Gauge {
    fn new(style: Style, shape: &Shape, table: &NodeTable, scoring: &Scoring) -> Self {
        match style {
            Style::Pack => Self::Pack,
            Style::Profile => Self::Profile(Measure::new(scoring, shape, table)),
        }
    }

    fn style(&self) -> Style {
        match self {
            Self::Pack => Style::Pack,
            Self::Profile(_) => Style::Profile,
        }
    }

    fn rating(&self, shape: &Shape, table: &NodeTable, scoring: &Scoring, node: NodeId) -> Rating {
        match self {
            Self::Pack => Rating { class: Class::default(), local: packing::score(table, node, shape) },
            Self::Profile(measure) => measure.rating(scoring, shape, table, node),
        }
    }
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

    /// Copies that fit, by level and domain of a hierarchy, beside [`Room::by_node`].
    pub(crate) fn by_domain(&mut self, id: HierarchyId, hierarchies: &Hierarchies) -> (&[Vec<u64>], &[u32]) {
        (self.by_domain.of(id, hierarchies, &self.by_node), &self.by_node)
    }

    /// Copies that fit on all nodes together.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The fullest nodes that together take `count` copies, and how many each takes. Ties go by name.
    pub(crate) fn fullest(&self, count: u32, shape: &Shape, table: &NodeTable) -> Vec<(NodeId, u32)> {
        match &self.ranking {
            Some(ranking) if ranking.gauge.style() == Style::Pack => {
                self.fill(count, ranking.order.values().flatten().map(|(_, _, node)| *node))
            }
            _ => {
                let key = |node| (Reverse(packing::score(table, node, shape)), table.name(node));
                let nodes = table.ids().filter(|&node| self.on(node) > 0);
                let mut nodes: Vec<(_, NodeId)> = nodes.map(|node| (key(node), node)).collect();
                nodes.sort_unstable();
                self.fill(count, nodes.into_iter().map(|(_, node)| node))
            }
        }
    }

    /// The node that the profile likes best, if that is known without comparing all nodes; other pods are not looked
    /// at.
    pub(crate) fn favourite(&self, scoring: &Scoring) -> Option<NodeId> {
        let ranking = self.ranking.as_ref().filter(|ranking| ranking.gauge.style() == Style::Profile)?;
        let worst = ranking.order.keys().fold(Class::default(), |worst, &class| worst.max(class));
        let tops = ranking.order.iter().filter_map(|(&class, nodes)| {
            let (Reverse(local), name, node) = nodes.first()?;
            Some((Reverse(local + scoring.of_class(class, worst)), name, *node))
        });
        tops.min().map(|(_, _, node)| node)
    }

    /// All nodes with room, and how they stand.
    pub(crate) fn candidates(&self, shape: &Shape, table: &NodeTable, scoring: &Scoring) -> Vec<Candidate> {
        let nodes = table.ids().filter(|&node| self.on(node) > 0);
        match &self.ranking {
            Some(ranking) if ranking.gauge.style() == Style::Profile => {
                nodes.filter_map(|node| Some((node, ranking.rating(node)?))).collect()
            }
            _ => {
                let measure = Measure::new(scoring, shape, table);
                nodes.map(|node| (node, measure.rating(scoring, shape, table, node))).collect()
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

    fn build(table: &NodeTable, changes: &ChangeLog, shape: &Shape) -> Self {
        let by_node = table.rooms(shape);
        let total = by_node.iter().map(|&room| u64::from(room)).sum();
        let by_domain = DomainRooms::default();
        Self { cursor: changes.end(), used_at: 0, by_node, total, by_domain, ranking: None }
    }

    fn rank(&mut self, table: &NodeTable, shape: &Shape, style: Style, scoring: &Scoring) {
        let gauge = Gauge::new(style, shape, table, scoring);
        let mut ranking = Ranking { gauge, places: vec![None; self.by_node.len()], order: BTreeMap::new() };
        for node in table.ids().filter(|&node| self.on(node) > 0) {
            ranking.insert(node, table, shape, scoring);
        }
        self.ranking = Some(ranking);
    }

    fn catch_up(&mut self, table: &NodeTable, changes: &ChangeLog, shape: &Shape, scoring: &Scoring) {
        let (entries, changed) = match changes.nodes_since(self.cursor) {
            Some((entries, changed)) if entries <= table.rows_count().max(ENTRIES_MIN) => (entries, changed),
            _ => {
                *self = Self { used_at: self.used_at, ..Self::build(table, changes, shape) };
                return;
            }
        };
        self.by_node.resize(table.rows_count(), 0);
        if let Some(Ranking { gauge: Gauge::Profile(measure), .. }) = &mut self.ranking
            && entries > 0
            && measure.refresh(shape, table)
        {
            // Images have spread: nodes that did not change stand differently.
            self.ranking = None;
        }
        for id in changed {
            let room = table.room(id, shape);
            let before = std::mem::replace(&mut self.by_node[id.index()], room);
            self.total = self.total + u64::from(room) - u64::from(before);
            self.by_domain.note(id, before, room, table.rows_count());
            if let Some(ranking) = &mut self.ranking {
                ranking.remove(id);
                if room > 0 {
                    ranking.insert(id, table, shape, scoring);
                }
            }
        }
        self.cursor = changes.end();
    }
}

impl Ranking {
    fn rating(&self, node: NodeId) -> Option<Rating> {
        self.places.get(node.index())?.as_ref().map(|(rating, _)| *rating)
    }

    fn insert(&mut self, node: NodeId, table: &NodeTable, shape: &Shape, scoring: &Scoring) {
        let rating = self.gauge.rating(shape, table, scoring, node);
        let name = table.name(node).clone();
        if self.places.len() <= node.index() {
            self.places.resize(node.index() + 1, None);
        }
        self.places[node.index()] = Some((rating, name.clone()));
        self.order.entry(rating.class).or_default().insert((Reverse(rating.local), name, node));
    }

    fn remove(&mut self, node: NodeId) {
        let Some((rating, name)) = self.places.get_mut(node.index()).and_then(Option::take) else {
            return;
        };
        if let Some(nodes) = self.order.get_mut(&rating.class) {
            nodes.remove(&(Reverse(rating.local), name, node));
            if nodes.is_empty() {
                self.order.remove(&rating.class);
            }
        }
    }
}

/// Room of the shapes that were asked for lately.
#[derive(Debug, Clone)]
pub(crate) struct Rooms {
    /// By number of the profile.
    scorings: Vec<Scoring>,
    rooms: FxHashMap<ShapeId, Room>,
    /// Counts look-ups; only tells which room was used longest ago.
    uses: u64,
}

impl Rooms {
    pub(crate) fn new(scorings: Vec<Scoring>) -> Self {
        Self { scorings, rooms: FxHashMap::default(), uses: 0 }
    }

    /// The same with nothing remembered.
    pub(super) fn emptied(&self) -> Self {
        Self::new(self.scorings.clone())
    }

    /// How nodes are compared for a shape.
    pub(crate) fn scoring(&self, shape: &Shape) -> &Scoring {
        scoring_of(&self.scorings, shape)
    }

    /// The room of a shape, now.
    pub(crate) fn of(
        &mut self,
        id: ShapeId,
        shape: &Shape,
        table: &NodeTable,
        changes: &ChangeLog,
    ) -> &mut Room {
        self.uses += 1;
        if self.rooms.len() >= ROOMS_MAX && !self.rooms.contains_key(&id) {
            self.forget_oldest();
        }
        let room = self.rooms.entry(id).or_insert_with(|| Room::build(table, changes, shape));
        room.catch_up(table, changes, shape, scoring_of(&self.scorings, shape));
        room.used_at = self.uses;
        room
    }

    /// The same for somebody who will ask for the best nodes; a shape that comes again keeps them ranked.
    pub(crate) fn ranked(
        &mut self,
        id: ShapeId,
        shape: &Shape,
        style: Style,
        table: &NodeTable,
        changes: &ChangeLog,
    ) -> (&Room, &Scoring) {
        let is_known = self.rooms.contains_key(&id);
        self.of(id, shape, table, changes);
        let Self { scorings, rooms, .. } = self;
        let scoring = scoring_of(scorings, shape);
        let room = rooms.entry(id).or_insert_with(|| Room::build(table, changes, shape));
        if is_known && room.ranking.as_ref().is_none_or(|ranking| ranking.gauge.style() != style) {
            room.rank(table, shape, style, scoring);
        }
        (room, scoring)
    }

    /// Forgets a shape whose number may be used again.
    pub(super) fn forget(&mut self, id: ShapeId) {
        self.rooms.remove(&id);
    }

    fn forget_oldest(&mut self) {
        // `used_at` is unique, so the order of the map does not matter.
        if let Some(id) = self.rooms.iter().min_by_key(|(_, room)| room.used_at).map(|(&id, _)| id) {
            self.rooms.remove(&id);
        }
    }
}

/// How nodes are compared for a shape.
///
/// # Panics
/// If there is no profile at all: shapes are numbered by those that there are.
fn scoring_of<'a>(scorings: &'a [Scoring], shape: &Shape) -> &'a Scoring {
    &scorings[shape.profile.0 as usize]
}
