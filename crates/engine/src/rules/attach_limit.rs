//! Attach limit: a node attaches at most so many volumes of a CSI driver.
//!
//! Kubernetes' `NodeVolumeLimits`. A volume that only one pod uses is an amount like any other (see
//! [`super::resources`]). This rule is about volumes that several pods use: such a volume is attached to a node once, however
//! many of its users are there. It can only get worse as members are added.

use super::{Cost, Scope, Triggers, resources, rows};
use crate::refusal::NodeReason;
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::Shape;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tutti_model::Text;

/// The words of a refusal.
pub(crate) const WORDS: &str = "no more volumes can be attached";

/// Steps of a look: a few look-ups.
const LOOK: usize = 8;

/// Volumes that more than one pod uses, in one problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttachLimits {
    kinds: usize,
    /// By kind: resource column and number of the volume.
    used: Vec<Vec<(usize, usize)>>,
    /// By kind: what volumes of its own take, by column. Only columns of shared volumes.
    own: Vec<Vec<(usize, i64)>>,
    /// `there[bin * count + volume]`: a pod that exists uses it there.
    there: Vec<bool>,
    /// Volumes. Without any, all other fields are empty.
    count: usize,
    /// What is free for volumes: `free[bin * width + column]`.
    free: Vec<i64>,
    width: usize,
    /// `most[bin * kinds + kind]`: copies that a bin takes by themselves.
    most: Vec<u32>,
}

impl AttachLimits {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        let mut names: Vec<&Text> =
            scope.shapes.iter().flat_map(|shape| &shape.volumes.shared).map(|(_, name)| name).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Self::default();
        }
        let column = |resource| scope.resources.iter().position(|&other| other == resource);
        let used = |shape: &Arc<Shape>| {
            let shared = shape.volumes.shared.iter();
            shared
                .filter_map(|(resource, name)| Some((column(*resource)?, names.binary_search(&name).ok()?)))
                .collect()
        };
        let used: Vec<Vec<(usize, usize)>> = scope.shapes.iter().map(used).collect();
        let mut columns: Vec<usize> = used.iter().flatten().map(|&(column, _)| column).collect();
        columns.sort_unstable();
        columns.dedup();
        let own = |shape: &Arc<Shape>| {
            columns.iter().map(|&at| (at, resources::requested(shape, scope.resources[at]))).collect()
        };
        let there = scope
            .bins
            .iter()
            .flat_map(|&node| names.iter().map(move |name| scope.nodes.has_volume(node, name)));
        let rooms = scope.bins.iter().flat_map(|&node| scope.shapes.iter().map(move |shape| (node, shape)));
        Self {
            kinds: scope.shapes.len(),
            own: scope.shapes.iter().map(own).collect(),
            there: there.collect(),
            count: names.len(),
            free: scope.free.to_vec(),
            width: scope.resources.len(),
            most: rooms.map(|(node, shape)| scope.nodes.room(node, shape)).collect(),
            used,
        }
    }

    pub(super) fn narrowed(&self, bins: &[usize]) -> Self {
        if self.is_empty() {
            return self.clone();
        }
        Self {
            there: rows(&self.there, self.count, bins),
            free: rows(&self.free, self.width, bins),
            most: rows(&self.most, self.kinds, bins),
            ..self.clone()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Copies of a kind that a bin takes by themselves.
    pub(crate) fn most(&self, kind: usize, bin: usize) -> u32 {
        self.most.get(bin * self.kinds + kind).copied().unwrap_or(u32::MAX)
    }

    pub(super) fn cost(&self) -> Cost {
        let look = if self.is_empty() { 0 } else { LOOK };
        Cost { look, ..Cost::default() }
    }

    /// What the rule sees of every bin: which of the volumes are there.
    pub(super) fn seen(&self) -> Option<Vec<u32>> {
        if self.is_empty() {
            return None;
        }
        let mut numbers = FxHashMap::default();
        let number = |there: &[bool]| {
            let next = numbers.len() as u32;
            *numbers.entry(there.to_vec()).or_insert(next)
        };
        Some(self.there.chunks_exact(self.count).map(number).collect())
    }

    /// Why pods that exist keep a kind out of a bin.
    pub(super) fn ruled_out(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (self.most(kind, bin) == 0).then_some(NodeReason::AttachLimit)
    }
}

/// Why volumes that are attached to a node keep a shape off it, provided that all it requests is free.
pub(crate) fn forbids(shape: &Shape, node: NodeId, nodes: &NodeTable) -> Option<NodeReason> {
    (!ignores(shape) && nodes.room(node, shape) == 0).then_some(NodeReason::AttachLimit)
}

/// Volumes that members attach, in a partial placement.
#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    rules: &'a AttachLimits,
    /// By bin and volume: members that use it.
    users: FxHashMap<(usize, usize), u32>,
    /// By bin and column: room that members take for volumes, their own and shared ones.
    taken: FxHashMap<(usize, usize), i64>,
}

impl<'a> Load<'a> {
    pub(super) fn new(rules: &'a AttachLimits) -> Self {
        Self { rules, users: FxHashMap::default(), taken: FxHashMap::default() }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        let rules = self.rules;
        for &(column, volume) in rules.used.get(kind).into_iter().flatten() {
            if self.is_new(volume, bin) {
                *self.taken.entry((bin, column)).or_default() += 1;
            }
            *self.users.entry((bin, volume)).or_default() += 1;
        }
        for &(column, own) in rules.own.get(kind).into_iter().flatten() {
            *self.taken.entry((bin, column)).or_default() += own;
        }
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        let rules = self.rules;
        for &(column, volume) in rules.used.get(kind).into_iter().flatten() {
            if let Some(users) = self.users.get_mut(&(bin, volume)) {
                *users -= 1;
                if *users == 0 {
                    self.users.remove(&(bin, volume));
                }
            }
            if self.is_new(volume, bin) {
                *self.taken.entry((bin, column)).or_default() -= 1;
            }
        }
        for &(column, own) in rules.own.get(kind).into_iter().flatten() {
            *self.taken.entry((bin, column)).or_default() -= own;
        }
    }

    pub(super) fn admits(&self, kind: usize, bin: usize) -> bool {
        let rules = self.rules;
        let Some(own) = rules.own.get(kind) else { return true };
        own.iter().all(|&(column, own)| {
            let shared = rules.used[kind].iter().filter(|&&(of, _)| of == column);
            let new = shared.filter(|&&(_, volume)| self.is_new(volume, bin)).count() as i64;
            let taken = self.taken.get(&(bin, column)).copied().unwrap_or(0);
            new + own == 0 || taken + new + own <= rules.free[bin * rules.width + column]
        })
    }

    fn is_new(&self, volume: usize, bin: usize) -> bool {
        let rules = self.rules;
        !rules.there[bin * rules.count + volume] && !self.users.contains_key(&(bin, volume))
    }

    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (!self.admits(kind, bin)).then_some(NodeReason::AttachLimit)
    }
}

/// True if the rule never concerns the shape.
pub(crate) fn ignores(shape: &Shape) -> bool {
    shape.volumes.shared.is_empty()
}

/// A pod that shares volumes can unblock by coming (they are attached where it is) or going. Room that a node gains counts
/// even if there is none for one more copy: see [`crate::agenda::sleepers`].
pub(super) fn add_triggers(shape: &Shape, triggers: &mut Triggers) {
    triggers.attachments |= !ignores(shape);
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::AttachLimit)
}
