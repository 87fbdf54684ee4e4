//! Seats and room: who sits where, and what that takes. Everything that follows from a seat (what is free, how many
//! pods of a selector are where, ports, shared volumes, the pods of a node) changes here, together.

use super::State;
use super::changes::{Change, Freed};
use super::nodes::NodeId;
use super::pods::{PodRow, Sits};
use super::shape::{Load, Shape, ShapeId};
use crate::rules;
use std::sync::Arc;
use tutti_model::ObjectKey;

impl State {
    /// Gives back the seat that a pod had and takes the one that it has. The row of the pod is not changed.
    pub(super) fn move_seat(&mut self, key: &ObjectKey, before: Option<&PodRow>, after: Option<&PodRow>) {
        let seat =
            |row: Option<&PodRow>| row.and_then(|row| Some((row.node()?, row.shape, !row.terminating)));
        let (from, to) = (seat(before), seat(after));
        if from == to {
            return;
        }
        if let Some((node, shape, lasting)) = to {
            self.take_seat(key, node, shape, lasting);
        }
        if let Some((node, shape, lasting)) = from {
            self.give_seat(key, node, shape, lasting);
        }
    }

    /// Changes where a pod sits by our own decision or without it. Tells where it sat before.
    pub(super) fn set_seat(&mut self, key: &ObjectKey, sits: Sits) -> Option<Sits> {
        let row = self.pods.pod(key)?;
        let (before, shape, lasting) = (row.sits, row.shape, !row.terminating);
        self.pods.seat(key, sits);
        if before.node() != sits.node() {
            if let Some(node) = sits.node() {
                self.take_seat(key, node, shape, lasting);
            }
            if let Some(node) = before.node() {
                self.give_seat(key, node, shape, lasting);
            }
        }
        Some(before)
    }

    fn take_seat(&mut self, key: &ObjectKey, node: NodeId, shape: ShapeId, lasting: bool) {
        let shape = Arc::clone(self.shapes.get(shape));
        self.take_room(node, shape.load(), 1);
        self.pods.note_on_node(key, node, true);
        self.relations.shift(&shape, node, lasting, true);
        self.note_neighbour(&shape);
    }

    fn give_seat(&mut self, key: &ObjectKey, node: NodeId, shape: ShapeId, lasting: bool) {
        let shape = Arc::clone(self.shapes.get(shape));
        self.pods.note_on_node(key, node, false);
        self.relations.shift(&shape, node, lasting, false);
        self.note_neighbour(&shape);
        self.give_room(node, shape.load(), 1);
    }

    /// Takes room on a node.
    pub(super) fn take_room(&mut self, node: NodeId, load: Load<'_>, count: u32) {
        self.nodes.take(node, load, count);
        self.changes.push(Change::Node { id: node, freed: Freed::NOTHING, facts: false });
    }

    /// Gives room on a node back.
    pub(super) fn give_room(&mut self, node: NodeId, load: Load<'_>, count: u32) {
        self.nodes.give(node, load, count);
        self.changes.push(Change::Node { id: node, freed: freed_by(load), facts: false });
        self.drop_row_if_unused(node);
    }

    /// Makes less (or more, below zero) free on a node for a moment. That frees nothing for others.
    pub(super) fn shift_room(&mut self, node: NodeId, load: Load<'_>, count: i64) {
        self.nodes.shift(node, load, count);
        self.changes.push(Change::Node { id: node, freed: Freed::NOTHING, facts: false });
    }

    /// Forgets the row of a node of which nothing is known, unless that may be taken back.
    pub(super) fn drop_row_if_unused(&mut self, node: NodeId) {
        if !self.is_trial {
            self.nodes.drop_row_if_unused(node);
        }
    }

    /// A pod of this shape came or went, which matters to pods with terms about it and to those that share something.
    pub(super) fn note_neighbour(&mut self, shape: &Shape) {
        let owned = shape.inter_pod.anti_affinity.iter().map(|(selector, _)| selector);
        for &selector in shape.matches.iter().chain(owned) {
            // A selector of preferences keeps no pod from being placed.
            if self.relations.counts.is_binding(selector) {
                self.changes.push(Change::Selector(selector));
            }
        }
        if !rules::ports::ignores(shape) {
            self.changes.push(Change::Ports);
        }
        if !rules::attach_limit::ignores(shape) {
            self.changes.push(Change::Attachments);
        }
    }
}

/// What giving a load back frees.
fn freed_by(load: Load<'_>) -> Freed {
    let own = load.requests.iter().map(|&(resource, _)| resource);
    Freed::of(own.chain(load.shared.iter().map(|&(resource, _)| resource)))
}

/// What was free on nodes that were emptied for a moment.
pub(super) type Emptied = Vec<(NodeId, Vec<i64>)>;

impl State {
    /// Empties nodes for a moment. What comes back is to be given to [`State::refill_nodes`].
    pub(super) fn empty_nodes(&mut self, nodes: impl Iterator<Item = NodeId>) -> Emptied {
        let rows = self.nodes.empty(nodes);
        self.note_rows(&rows);
        rows
    }

    /// Takes [`State::empty_nodes`] back.
    pub(super) fn refill_nodes(&mut self, rows: Emptied) {
        self.note_rows(&rows);
        self.nodes.refill(rows);
    }

    fn note_rows(&mut self, rows: &Emptied) {
        for &(id, _) in rows {
            self.changes.push(Change::Node { id, freed: Freed::NOTHING, facts: false });
        }
    }
}
