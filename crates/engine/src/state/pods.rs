//! Pods and groups as the engine remembers them: what a member counts for, and which unit it belongs to.

use crate::decision::UnitKey;
use crate::refusal::Unsupported;
use crate::state::hierarchy::HierarchyId;
use crate::state::label_index::LabelIndex;
use crate::state::nodes::NodeId;
use crate::state::shape::ShapeId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use tutti_model::tree::{Ancestry, TREE_DEPTH_MAX, ancestry};
use tutti_model::{Group, Labels, ModelError, ObjectKey, Phase, Pod, Text, Time, VolumeUse};

/// Where a pod sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sits {
    /// Nowhere.
    Nowhere,
    /// On a node by our decision, which the API server has not confirmed yet.
    Assumed(NodeId),
    /// On a node by the API server's word.
    Bound(NodeId),
}

impl Sits {
    /// The node, if it is on one.
    pub(crate) fn node(self) -> Option<NodeId> {
        match self {
            Self::Nowhere => None,
            Self::Assumed(node) | Self::Bound(node) => Some(node),
        }
    }
}

/// Whether a pod has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Active,
    Succeeded,
    Failed,
}

/// What is told about a pod, as far as decisions depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodFacts {
    pub(crate) uid: Text,
    pub(crate) created: Time,
    pub(crate) scheduler_name: Text,
    pub(crate) priority: i32,
    pub(crate) group: Option<ObjectKey>,
    pub(crate) rank: Option<u32>,
    pub(crate) leader: bool,
    /// What other pods' terms look at.
    pub(crate) labels: Labels,
    pub(crate) gated: bool,
    /// Volume claims that it names.
    pub(crate) claims: Vec<VolumeUse>,
    /// The first thing it needs that is not placed yet.
    pub(crate) unsupported: Option<Unsupported>,
    /// Where room is promised to it.
    pub(crate) nominated: Option<Text>,
    pub(crate) life: Life,
    pub(crate) terminating: bool,
}

/// A pod: what is told about it, which a fork shares, and what follows from that and from decisions. Two rows that are
/// equal decide alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodRow {
    pub(super) facts: Arc<PodFacts>,
    pub(crate) shape: ShapeId,
    pub(crate) sits: Sits,
}

impl Deref for PodRow {
    type Target = PodFacts;

    fn deref(&self) -> &PodFacts {
        &self.facts
    }
}

impl PodRow {
    pub(crate) fn new(pod: &Pod, shape: ShapeId, sits: Sits) -> Self {
        let life = match pod.phase {
            Phase::Pending | Phase::Running => Life::Active,
            Phase::Succeeded => Life::Succeeded,
            Phase::Failed => Life::Failed,
        };
        let device = pod.device_claims.first().cloned().map(Unsupported::DeviceClaim);
        let facts = PodFacts {
            uid: pod.uid.clone(),
            created: pod.created,
            scheduler_name: pod.scheduler_name.clone(),
            priority: pod.priority,
            group: pod.group.clone(),
            rank: pod.rank,
            leader: pod.leader,
            labels: pod.labels.clone(),
            gated: !pod.gates.is_empty(),
            claims: pod.volume_claims.clone(),
            unsupported: device,
            nominated: pod.nominated.clone(),
            life,
            terminating: pod.terminating,
        };
        // A pod that has ended gives its seat back.
        let sits = if life == Life::Active { sits } else { Sits::Nowhere };
        Self { facts: Arc::new(facts), shape, sits }
    }

    /// True if its claims are in use, or will be once it has a place.
    pub(crate) fn uses_claims(&self) -> bool {
        self.life == Life::Active
    }

    /// The node where it takes room.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.sits.node()
    }

    /// True if it waits for a place and nothing holds it back.
    pub(crate) fn wants_seat(&self) -> bool {
        self.life == Life::Active && self.sits == Sits::Nowhere && !self.gated && !self.terminating
    }

    /// True if nothing but gates keeps it from wanting a seat.
    pub(crate) fn is_held_back(&self) -> bool {
        self.life == Life::Active && self.sits == Sits::Nowhere && self.gated && !self.terminating
    }

    /// The node where room is kept for it while it waits, held back or not.
    pub(crate) fn promised(&self) -> Option<&Text> {
        let waits = self.life == Life::Active && self.sits == Sits::Nowhere && !self.terminating;
        self.nominated.as_ref().filter(|_| waits)
    }

    /// True if it counts to the minimum of its group already.
    pub(crate) fn counts(&self) -> bool {
        match self.life {
            Life::Active => self.sits != Sits::Nowhere && !self.terminating,
            Life::Succeeded => true,
            Life::Failed => false,
        }
    }

    /// True if it still speaks for what its group is: ended and dying members do not.
    pub(crate) fn is_live(&self) -> bool {
        self.life == Life::Active && !self.terminating
    }
}

/// A group and who names it.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupRow {
    /// None while only its members were seen.
    pub(crate) object: Option<Group>,
    /// By name, so that everything that is derived from them has one order.
    pub(crate) members: BTreeSet<ObjectKey>,
    /// The domains that it asks for.
    pub(crate) hierarchy: Option<HierarchyId>,
}

/// A composite and who names it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompositeRow {
    /// None while only its children were seen.
    pub(crate) object: Option<Group>,
    /// Groups and composites, by kind and name.
    pub(crate) children: BTreeSet<UnitKey>,
    /// The domains that it asks for.
    pub(crate) hierarchy: Option<HierarchyId>,
}

/// All pods and groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodTable {
    pods: FxHashMap<ObjectKey, PodRow>,
    /// Pods with a seat, by node, in no meaningful order.
    on_node: FxHashMap<NodeId, Vec<ObjectKey>>,
    groups: FxHashMap<ObjectKey, GroupRow>,
    composites: FxHashMap<ObjectKey, CompositeRow>,
    by_labels: LabelIndex,
}

impl PodTable {
    pub(crate) fn pod(&self, key: &ObjectKey) -> Option<&PodRow> {
        self.pods.get(key)
    }

    /// Pods with a seat on a node, by name.
    pub(crate) fn on_node(&self, node: NodeId) -> Vec<&ObjectKey> {
        let mut pods: Vec<&ObjectKey> = self.on_node.get(&node).into_iter().flatten().collect();
        pods.sort_unstable();
        pods
    }

    /// Notes that a pod sits on a node, or no longer.
    pub(super) fn note_on_node(&mut self, key: &ObjectKey, node: NodeId, sits: bool) {
        let pods = self.on_node.entry(node).or_default();
        if sits {
            pods.push(key.clone());
        } else if let Some(at) = pods.iter().position(|other| other == key) {
            pods.swap_remove(at);
        }
        if pods.is_empty() {
            self.on_node.remove(&node);
        }
    }

    pub(crate) fn group(&self, key: &ObjectKey) -> Option<&GroupRow> {
        self.groups.get(key)
    }

    /// Adds or replaces a pod. The group of a pod never changes while the pod lives.
    pub(super) fn insert(&mut self, key: ObjectKey, mut row: PodRow) -> PodRow {
        let labels = match self.pods.get(&key) {
            Some(before) if before.labels == row.labels => before.labels.clone(),
            Some(before) => {
                self.by_labels.remove(&key, &before.labels);
                self.by_labels.insert(&key, &row.labels)
            }
            None => self.by_labels.insert(&key, &row.labels),
        };
        Arc::make_mut(&mut row.facts).labels = labels;
        if let Some(group) = &row.group {
            self.groups.entry(group.clone()).or_default().members.insert(key.clone());
        }
        self.pods.insert(key, row.clone());
        row
    }

    /// Removes a pod.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<PodRow> {
        let row = self.pods.remove(key)?;
        self.by_labels.remove(key, &row.labels);
        if let Some(group) = &row.group
            && let Some(entry) = self.groups.get_mut(group)
        {
            entry.members.remove(key);
            self.drop_group_if_unused(&group.clone());
        }
        Some(row)
    }

    /// Changes where a pod sits.
    pub(super) fn seat(&mut self, key: &ObjectKey, sits: Sits) {
        if let Some(row) = self.pods.get_mut(key) {
            row.sits = sits;
        }
    }

    /// Gives a pod another shape.
    pub(super) fn reshape(&mut self, key: &ObjectKey, shape: ShapeId) {
        if let Some(row) = self.pods.get_mut(key) {
            row.shape = shape;
        }
    }

    /// Pods by namespace and labels.
    pub(super) fn by_labels(&self) -> &LabelIndex {
        &self.by_labels
    }

    /// All pods, in no meaningful order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &PodRow)> {
        self.pods.iter()
    }

    /// All groups, in no meaningful order.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&ObjectKey, &GroupRow)> {
        self.groups.iter()
    }

    /// Sets or removes the object of a group; tells whether that is news.
    pub(super) fn set_group(&mut self, key: &ObjectKey, object: Option<Group>) -> bool {
        let parent = object.as_ref().and_then(|group| group.parent.clone());
        let entry = self.groups.entry(key.clone()).or_default();
        if entry.object == object {
            self.drop_group_if_unused(key);
            return false;
        }
        let before = std::mem::replace(&mut entry.object, object).and_then(|group| group.parent);
        self.drop_group_if_unused(key);
        self.move_child(&UnitKey::Group(key.clone()), before, parent);
        true
    }

    /// Sets or removes the object of a composite; tells whether that is news.
    pub(super) fn set_composite(&mut self, key: &ObjectKey, object: Option<Group>) -> bool {
        let parent = object.as_ref().and_then(|group| group.parent.clone());
        let entry = self.composites.entry(key.clone()).or_default();
        if entry.object == object {
            self.drop_composite_if_unused(key);
            return false;
        }
        let before = std::mem::replace(&mut entry.object, object).and_then(|group| group.parent);
        self.drop_composite_if_unused(key);
        self.move_child(&UnitKey::Composite(key.clone()), before, parent);
        true
    }

    fn move_child(&mut self, child: &UnitKey, from: Option<ObjectKey>, to: Option<ObjectKey>) {
        if from == to {
            return;
        }
        if let Some(parent) = from
            && let Some(row) = self.composites.get_mut(&parent)
        {
            row.children.remove(child);
            self.drop_composite_if_unused(&parent);
        }
        if let Some(parent) = to {
            self.composites.entry(parent).or_default().children.insert(child.clone());
        }
    }

    /// Which domains a group or composite asks for; tells which it asked for before.
    pub(super) fn set_hierarchy(&mut self, unit: &UnitKey, id: Option<HierarchyId>) -> Option<HierarchyId> {
        let slot = match unit {
            UnitKey::Group(key) => &mut self.groups.get_mut(key)?.hierarchy,
            UnitKey::Composite(key) => &mut self.composites.get_mut(key)?.hierarchy,
            UnitKey::Pod(_) => return None,
        };
        std::mem::replace(slot, id)
    }

    /// What is decided together with this pod.
    pub(crate) fn unit_of(&self, key: &ObjectKey, row: &PodRow) -> UnitKey {
        match &row.group {
            Some(group) => self.root_of(&UnitKey::Group(group.clone())),
            None => UnitKey::Pod(key.clone()),
        }
    }

    /// The top of the tree that a group or composite is part of, as far as it was seen. What is not in a proper tree is
    /// on its own.
    pub(crate) fn root_of(&self, unit: &UnitKey) -> UnitKey {
        if self.object(unit).is_none_or(|object| object.parent.is_none()) {
            return unit.clone();
        }
        match self.ancestry_of(unit) {
            Ok(Ancestry::Complete(path)) if path.len() > 1 => {
                path.last().map_or_else(|| unit.clone(), |root| UnitKey::Composite(root.clone()))
            }
            Ok(Ancestry::Incomplete { missing }) => UnitKey::Composite(missing),
            _ => unit.clone(),
        }
    }

    /// The way up from a group or composite.
    pub(crate) fn ancestry_of(&self, unit: &UnitKey) -> Result<Ancestry, ModelError> {
        let parent_of = |key: &ObjectKey| {
            self.composites.get(key)?.object.as_ref().map(|composite| composite.parent.clone())
        };
        let parent = self.object(unit).and_then(|object| object.parent.as_ref());
        ancestry(unit.object(), parent, parent_of)
    }

    /// The object of a group or composite, if it was seen.
    pub(crate) fn object(&self, unit: &UnitKey) -> Option<&Group> {
        match unit {
            UnitKey::Group(key) => self.groups.get(key)?.object.as_ref(),
            UnitKey::Composite(key) => self.composites.get(key)?.object.as_ref(),
            UnitKey::Pod(_) => None,
        }
    }

    /// The pods of a unit, by name.
    pub(crate) fn members<'a>(&'a self, unit: &'a UnitKey) -> Vec<(&'a ObjectKey, &'a PodRow)> {
        match unit {
            UnitKey::Pod(key) => self.pod(key).map(|row| (key, row)).into_iter().collect(),
            UnitKey::Group(key) => match self.groups.get(key) {
                Some(group) => group.members.iter().filter_map(|m| Some((m, self.pod(m)?))).collect(),
                None => Vec::new(),
            },
            UnitKey::Composite(_) => {
                let mut members = Vec::new();
                self.gather(unit, TREE_DEPTH_MAX, &mut members);
                members.sort_unstable_by_key(|(key, _)| *key);
                members
            }
        }
    }

    /// Children are only followed as deep as trees may be, so that a circle ends.
    fn gather<'a>(&'a self, unit: &'a UnitKey, depth: usize, members: &mut Vec<(&'a ObjectKey, &'a PodRow)>) {
        match unit {
            UnitKey::Composite(key) if depth > 1 => {
                for child in self.composites.get(key).into_iter().flat_map(|row| &row.children) {
                    self.gather(child, depth - 1, members);
                }
            }
            UnitKey::Composite(_) => {}
            _ => members.extend(self.members(unit)),
        }
    }

    /// All composites, in no meaningful order.
    pub(crate) fn composites(&self) -> impl Iterator<Item = (&ObjectKey, &CompositeRow)> {
        self.composites.iter()
    }

    pub(crate) fn composite(&self, key: &ObjectKey) -> Option<&CompositeRow> {
        self.composites.get(key)
    }

    fn drop_composite_if_unused(&mut self, key: &ObjectKey) {
        if self.composites.get(key).is_some_and(|row| row.object.is_none() && row.children.is_empty()) {
            self.composites.remove(key);
        }
    }

    fn drop_group_if_unused(&mut self, key: &ObjectKey) {
        if self.groups.get(key).is_some_and(|group| group.object.is_none() && group.members.is_empty()) {
            self.groups.remove(key);
        }
    }
}
