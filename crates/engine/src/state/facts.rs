//! What is told about nodes, pods, groups and namespaces, taken into every table that it concerns.

use super::State;
use super::changes::{Change, Freed};
use super::hierarchy::HierarchyId;
use super::holds::HoldKey;
use super::nodes::NodeId;
use super::pods::{Life, PodRow, Sits};
use super::shape::{AboutPods, ResourceId, ShapeId};
use super::volumes::ClaimPlan;
use crate::decision::UnitKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use tutti_model::{Group, Node, ObjectKey, Pod, Text, Time};

impl State {
    /// Takes in a node, or that it is gone.
    pub(crate) fn set_node(&mut self, name: &Text, node: Option<&Node>) {
        let id = self.nodes.id(name);
        if self.nodes.set_images(id, node.map_or(&[], |node| &node.images)) {
            self.changes.push(Change::Node { id, freed: Freed::NOTHING, facts: false });
        }
        // Images are kept apart from the rest, because only the rest decides what fits.
        let node = node.map(|node| Node { images: Vec::new(), ..node.clone() });
        if node.is_some() && self.nodes.node(id) == node.as_ref() {
            return;
        }
        self.relations.set_node(id, node.as_ref());
        self.put_node(id, node);
    }

    /// Sets what a row of the node table offers.
    pub(super) fn put_node(&mut self, id: NodeId, node: Option<Node>) {
        let before = (self.nodes.node(id).cloned(), self.free_by_resource(id));
        let room_to_attach = node.as_ref().map(|node| self.volumes.room_to_attach(&node.name));
        self.nodes.set(id, node, &room_to_attach.unwrap_or_default(), &mut self.resources);
        let facts = !is_open_alike(before.0.as_ref(), self.nodes.node(id));
        let freed = if facts && self.nodes.node(id).is_some() {
            Freed::of(self.resources.ids())
        } else {
            let was_free = |resource: ResourceId| before.1.get(resource.index()).copied().unwrap_or(0);
            let more = |resource: &ResourceId| self.nodes.free(id, *resource) > was_free(*resource);
            Freed::of(self.resources.ids().filter(more))
        };
        self.changes.push(Change::Node { id, freed, facts });
        self.drop_row_if_unused(id);
    }

    fn free_by_resource(&self, id: NodeId) -> Vec<i64> {
        self.resources.ids().map(|resource| self.nodes.free(id, resource)).collect()
    }

    /// Takes in a pod.
    pub(crate) fn set_pod(&mut self, pod: &Pod, now: Time) {
        if self.pods.pod(&pod.key).is_some_and(|row| row.uid != pod.uid || row.group != pod.group) {
            self.remove_pod(&pod.key, now);
        }
        // Terms first: a selector that comes to life may give this very pod another shape.
        let inter_pod = self.acquire_terms(pod);
        let matches = self.relations.matching(&pod.key, &pod.labels);
        let before = self.pods.pod(&pod.key).cloned();
        let sits = match (&pod.node, &before) {
            // Its node may be long gone, and nobody has to remember it.
            (Some(_), _) if pod.phase.is_terminal() => Sits::Nowhere,
            (Some(node), _) => Sits::Bound(self.nodes.id(node)),
            // An older picture of the pod than our own decision.
            (None, Some(row)) => row.sits,
            (None, None) => Sits::Nowhere,
        };
        let images: Vec<_> = pod.images.iter().map(|name| self.nodes.images_mut().acquire(name)).collect();
        // The users of a claim come before what it requires: that depends on who shares it.
        let claims = if pod.phase.is_terminal() { &[][..] } else { &pod.volume_claims };
        self.set_claims_of(&pod.key, claims);
        let volumes = self.volumes.resolve(&pod.key, &pod.volume_claims);
        let (profile, _) = self.profiles.of(&pod.scheduler_name);
        let about_pods = AboutPods { inter_pod, matches };
        let (shape, is_new) =
            self.shapes.acquire(pod, profile, about_pods, images.clone(), volumes, &mut self.resources);
        if !is_new {
            self.nodes.images_mut().release_all(&images);
        }
        let after = PodRow::new(pod, shape, sits);
        if before.as_ref() == Some(&after) {
            self.let_go(shape);
            return;
        }
        let after = self.pods.insert(pod.key.clone(), after);
        if matches!(after.sits, Sits::Bound(_)) {
            self.changes.push(Change::Bound(self.pods.unit_of(&pod.key, &after)));
        }
        let left = before.as_ref().filter(|_| after.life == Life::Failed).and_then(|row| self.seat_of(row));
        self.move_seat(&pod.key, before.as_ref(), Some(&after));
        self.hold_vacated_seat(&pod.key, &after, left, now);
        self.follow_nomination(&pod.key);
        if let Some(row) = before.as_ref().filter(|row| row.node().is_some() && after.node().is_none()) {
            self.claims_left(&pod.key, row);
        }
        // That the API server agrees with a decision is no news to the unit.
        let is_news = before.as_ref().is_none_or(|row| {
            row.node() != after.node() || PodRow { sits: row.sits, ..after.clone() } != *row
        });
        if let Some(row) = &before {
            self.let_go(row.shape);
        }
        if is_news {
            self.note_unit(&self.pods.unit_of(&pod.key, &after));
        }
    }

    /// Takes in that a pod is gone.
    pub(crate) fn remove_pod(&mut self, key: &ObjectKey, now: Time) {
        let unit = self.pods.pod(key).map(|row| self.pods.unit_of(key, row));
        self.set_claims_of(key, &[]);
        let Some(row) = self.pods.remove(key) else { return };
        let left = self.seat_of(&row);
        self.move_seat(key, Some(&row), None);
        self.hold_vacated_seat(key, &row, left, now);
        self.follow_nomination(key);
        self.let_go(row.shape);
        self.claims_left(key, &row);
        if let Some(unit) = unit {
            self.note_unit(&unit);
        }
    }

    /// A pod sits where the API server says. Mostly that is where it was to be, and then nothing moves.
    pub(crate) fn pod_bound(&mut self, key: &ObjectKey, uid: &Text, node: &Text) {
        let Some(before) = self.pods.pod(key).filter(|row| row.uid == *uid && row.life == Life::Active)
        else {
            return;
        };
        let before = before.clone();
        let sits = Sits::Bound(self.nodes.id(node));
        let unit = self.pods.unit_of(key, &before);
        self.changes.push(Change::Bound(unit.clone()));
        self.set_seat(key, sits);
        if before.node() != sits.node() {
            self.follow_nomination(key);
            self.note_unit(&unit);
        }
    }

    /// The seat of a pod that was to be bound is free again. Gives the unit, if the pod had such a seat.
    pub(crate) fn unassume(&mut self, key: &ObjectKey, uid: &Text, now: Time) -> Option<UnitKey> {
        let before = self.pods.pod(key).filter(|row| row.uid == *uid)?;
        let before = before.clone();
        if !matches!(before.sits, Sits::Assumed(_)) {
            return None;
        }
        let left = self.seat_of(&before);
        self.set_seat(key, Sits::Nowhere);
        self.hold_vacated_seat(key, &before, left, now);
        self.follow_nomination(key);
        self.claims_left(key, &before);
        let unit = self.pods.unit_of(key, &before);
        self.note_unit(&unit);
        Some(unit)
    }

    /// Sets or removes the object of a group or composite.
    pub(crate) fn set_group(&mut self, unit: &UnitKey, object: Option<Group>) {
        if self.pods.object(unit) == object.as_ref() {
            return;
        }
        let root_before = self.pods.root_of(unit);
        let hierarchy_before = self.pods.set_hierarchy(unit, None);
        let keys = object.as_ref().map(|group| group.topology.keys()).unwrap_or_default();
        match unit {
            UnitKey::Composite(key) => self.pods.set_composite(key, object),
            UnitKey::Group(key) | UnitKey::Pod(key) => self.pods.set_group(key, object),
        };
        if !keys.is_empty() {
            let id = self.relations.hierarchies.acquire(&keys, &self.nodes);
            self.pods.set_hierarchy(unit, Some(id));
        }
        if let Some(id) = hierarchy_before {
            self.relations.hierarchies.release(id);
        }
        let root = self.pods.root_of(unit);
        if root != root_before {
            self.note_unit(&root_before);
            let members: Vec<ObjectKey> =
                self.pods.members(unit).into_iter().map(|(key, _)| key.clone()).collect();
            for member in members {
                self.follow_nomination(&member);
            }
        }
        self.note_unit(unit);
    }

    /// Has domains of these levels counted, although no group asks for them.
    pub(crate) fn acquire_levels(&mut self, levels: &[Text]) -> HierarchyId {
        self.relations.hierarchies.acquire(levels, &self.nodes)
    }

    /// A unit, or the tree that a group is part of, is not to be tried until it is resumed, and keeps no seats
    /// meanwhile.
    pub(crate) fn set_suspended(&mut self, unit: &UnitKey, suspended: bool) {
        let root = self.pods.root_of(unit);
        if suspended {
            self.suspended.insert(unit.clone());
            self.end_holds_of(&root);
            self.changes.push(Change::Suspended(root.clone()));
        } else {
            self.suspended.remove(unit);
        }
        self.note_unit(&root);
    }

    /// A unit was given seats: what was held for it is not needed any more, its claims are planned for, and gangs that
    /// held what it may have used look for other seats.
    pub(crate) fn settle<'a>(
        &mut self,
        unit: &UnitKey,
        pods: impl Iterator<Item = &'a ObjectKey>,
        claims: &BTreeMap<ObjectKey, ClaimPlan>,
        lifted: &[HoldKey],
    ) {
        self.end_holds_of(unit);
        self.note_holders(unit, lifted);
        for pod in pods {
            self.follow_nomination(pod);
        }
        self.begin_plans(claims);
    }

    /// Gangs whose usable seats another unit may have taken look for others.
    pub(crate) fn note_holders(&mut self, unit: &UnitKey, lifted: &[HoldKey]) {
        for key in lifted {
            if let HoldKey::Usable(other) = key
                && other != unit
            {
                self.note_unit(other);
            }
        }
    }

    /// Something about a unit has changed: it is to be looked at again, as the tree that it is part of.
    pub(crate) fn note_unit(&mut self, unit: &UnitKey) {
        let root = self.pods.root_of(unit);
        if root != *unit {
            self.changes.push(Change::Joined(unit.clone()));
        }
        self.end_needless_holds(&root);
        self.changes.push(Change::Unit(root));
    }

    /// Gives back a pod's use of its shape and of the selectors of its terms.
    pub(super) fn let_go(&mut self, shape: ShapeId) {
        let held = Arc::clone(self.shapes.get(shape));
        self.release_shape(shape);
        self.release_terms(&held.inter_pod);
    }

    pub(super) fn release_shape(&mut self, shape: ShapeId) {
        if let Some((id, forgotten)) = self.shapes.release(shape) {
            self.rooms.forget(id);
            self.nodes.images_mut().release_all(&forgotten.images);
        }
    }
}

/// True if two pictures of a node let the same pods in, and it is in the same domains.
fn is_open_alike(before: Option<&Node>, after: Option<&Node>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some(before), Some(after)) => {
            let Node { name: _, labels, taints, unschedulable, allocatable: _, images: _, features } = after;
            before.labels == *labels
                && before.taints == *taints
                && before.unschedulable == *unschedulable
                && before.features == *features
        }
        _ => false,
    }
}
