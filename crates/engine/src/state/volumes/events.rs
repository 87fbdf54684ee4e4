//! What happens when claims, volumes, classes or limits change: the pods concerned get another shape, and those who
//! could be helped are asked again.

use super::plan::Seated;
use super::{ClaimPlan, VolumeState, Volumes, claim_keys};
use crate::state::State;
use crate::state::index::remove_from;
use crate::state::nodes::NodeId;
use crate::state::pods::PodRow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_model::{AttachLimits, ObjectKey, StorageClass, Text, Volume, VolumeClaim, VolumeUse};

/// Who is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// Pods whose requirements have changed.
    Changed,
    /// All pods concerned: what has changed may be what they wait for.
    All,
}

impl State {
    /// Whether the volumes of a pod are there for it on a node. Of a pod or node that is not known nothing is.
    pub(crate) fn volumes_for(&self, pod: &ObjectKey, node: &Text) -> VolumeState {
        let node = self.nodes.find(node).and_then(|id| self.nodes.node(id));
        match (self.pods.pod(pod), node) {
            (Some(row), Some(node)) => self.volumes.state(pod, &row.claims, node),
            _ => VolumeState::Missing,
        }
    }

    /// Takes in a claim, or that it is gone.
    pub(crate) fn set_claim(&mut self, key: &ObjectKey, claim: Option<VolumeClaim>) {
        let before = self.volumes.claims.get(key).cloned();
        if before == claim {
            return;
        }
        let mut concerned = self.volumes.neighbours(key);
        self.volumes.put_claim(key, claim.clone());
        concerned.extend(self.volumes.neighbours(key));
        if claim.as_ref().is_none_or(|claim| claim.volume.is_some()) {
            // What was planned has happened, or never will.
            self.end_plan(key);
        }
        let users: BTreeSet<ObjectKey> = self.volumes.users(key).cloned().collect();
        self.refresh(&users, Wake::All);
        self.refresh(&concerned, Wake::Changed);
        let named = |claim: Option<VolumeClaim>| claim.and_then(|claim| claim.volume);
        let (before, after) = (named(before), named(claim));
        if let Some(volume) = before.filter(|volume| after.as_ref() != Some(volume)) {
            self.volume_freed(&volume);
        }
    }

    /// Takes in a volume, or that it is gone.
    pub(crate) fn set_volume(&mut self, name: &Text, volume: Option<Volume>) {
        let before = self.volumes.volumes.get(name).cloned();
        if before == volume {
            return;
        }
        let mut claims = self.volumes.claims_about(name);
        let mut choosers = self.volumes.choosers(name);
        self.volumes.put_volume(name, volume);
        claims.extend(self.volumes.claims_about(name));
        choosers.extend(self.volumes.choosers(name));
        self.refresh(&self.volumes.users_of(&claims), Wake::All);
        self.refresh(&choosers, Wake::Changed);
        self.volume_freed(name);
    }

    /// Takes in a class, or that it is gone.
    pub(crate) fn set_class(&mut self, name: &Text, class: Option<StorageClass>) {
        if self.volumes.classes.get(name) == class.as_ref() {
            return;
        }
        match class {
            Some(class) => self.volumes.classes.insert(name.clone(), class),
            None => self.volumes.classes.remove(name),
        };
        let claims = self.volumes.by_class.get(name).cloned().unwrap_or_default();
        self.refresh(&self.volumes.users_of(&claims), Wake::All);
    }

    /// Takes in how many volumes a node can attach; no limits are none.
    pub(crate) fn set_attach_limits(&mut self, limits: AttachLimits) {
        let AttachLimits { node, limits } = limits;
        let before = self.volumes.limits.get(&node).cloned().unwrap_or_default();
        if before == limits {
            return;
        }
        let mut drivers_changed = false;
        for driver in limits.keys().filter(|driver| !before.contains_key(*driver)) {
            drivers_changed |= self.volumes.note_limit(driver, &mut self.resources);
        }
        for driver in before.keys().filter(|driver| !limits.contains_key(*driver)) {
            drivers_changed |= self.volumes.forget_limit(driver);
        }
        if limits.is_empty() {
            self.volumes.limits.remove(&node);
        } else {
            self.volumes.limits.insert(node.clone(), limits);
        }
        if drivers_changed {
            // Room for volumes of that driver has begun or ceased to be counted, everywhere.
            for id in self.nodes.ids() {
                self.limit_attachments(id);
            }
            let users: BTreeSet<ObjectKey> = self.volumes.users.values().flatten().cloned().collect();
            self.refresh(&users, Wake::Changed);
        } else {
            let id = self.nodes.id(&node);
            self.limit_attachments(id);
        }
    }

    fn limit_attachments(&mut self, id: NodeId) {
        let Some(node) = self.nodes.node(id).cloned() else {
            self.drop_row_if_unused(id);
            return;
        };
        self.put_node(id, Some(node));
    }

    /// Notes which claims a pod uses, and that others share them with it or no longer do.
    pub(crate) fn set_claims_of(&mut self, pod: &ObjectKey, uses: &[VolumeUse]) {
        let before = self.pods.pod(pod).filter(|row| row.uses_claims());
        let before = before.map_or_else(Vec::new, |row| claim_keys(pod, &row.claims));
        let after = claim_keys(pod, uses);
        if before == after {
            return;
        }
        let mut changed = self.volumes.set_user(pod, &before, false);
        changed.extend(self.volumes.set_user(pod, &after, true));
        let mut concerned = BTreeSet::new();
        for claim in changed {
            concerned.extend(self.volumes.neighbours(&claim));
        }
        concerned.remove(pod);
        self.refresh(&concerned, Wake::Changed);
    }

    /// What is to become of the unbound claims of pods that are to be given a node. Nothing if there are too few volumes:
    /// the solver rules that out, but by other means, and if the two should disagree nobody is seated.
    pub(crate) fn plan_claims<'a>(
        &'a self,
        seated: impl Iterator<Item = (&'a ObjectKey, NodeId)>,
    ) -> Option<BTreeMap<ObjectKey, ClaimPlan>> {
        let seat = |(pod, node)| -> Option<Seated<'a>> {
            let claims = self.pods.pod(pod)?.claims.as_slice();
            Some((pod, claims, self.nodes.node(node)?))
        };
        let mut seats: Vec<Seated<'_>> =
            seated.filter_map(seat).filter(|(_, claims, _)| !claims.is_empty()).collect();
        seats.sort_unstable_by_key(|(pod, _, _)| *pod);
        self.volumes.plan(&seats)
    }

    /// A pod has left its node: what was planned for its claims is off, and who waited for them may have them.
    pub(crate) fn claims_left(&mut self, pod: &ObjectKey, row: &PodRow) {
        for claim in claim_keys(pod, &row.claims) {
            let seated = |user: &ObjectKey| self.pods.pod(user).is_some_and(|row| row.node().is_some());
            if self.volumes.users(&claim).any(seated) {
                continue;
            }
            self.end_plan(&claim);
            let users: BTreeSet<ObjectKey> = self.volumes.users(&claim).cloned().collect();
            self.refresh(&users, Wake::All);
        }
    }

    /// Remembers what is to become of claims.
    pub(crate) fn begin_plans(&mut self, plans: &BTreeMap<ObjectKey, ClaimPlan>) {
        let mut concerned = BTreeSet::new();
        for (claim, plan) in plans {
            self.volumes.plans.insert(claim.clone(), plan.clone());
            concerned.extend(self.volumes.neighbours(claim));
        }
        self.refresh(&concerned, Wake::Changed);
    }

    fn end_plan(&mut self, claim: &ObjectKey) {
        if let Some(ClaimPlan::Volume(volume)) = self.volumes.plans.remove(claim) {
            self.volume_freed(&volume);
        }
    }

    /// Asks those again who could be given this volume, if it is free.
    fn volume_freed(&mut self, name: &Text) {
        let Some(volume) = self.volumes.volumes.get(name).filter(|volume| self.volumes.is_free(volume))
        else {
            return;
        };
        let unbound = self.volumes.by_class.get(&volume.class).into_iter().flatten();
        let suited = |key: &&ObjectKey| {
            let claim = self.volumes.claims.get(*key);
            claim.is_some_and(|claim| claim.volume.is_none() && volume.suits(claim))
        };
        let claims: BTreeSet<ObjectKey> = unbound.filter(suited).cloned().collect();
        self.refresh(&self.volumes.users_of(&claims), Wake::All);
    }

    fn refresh(&mut self, pods: &BTreeSet<ObjectKey>, wake: Wake) {
        for pod in pods {
            let changed = self.reshape_by_claims(pod);
            if (changed || wake == Wake::All)
                && let Some(unit) =
                    self.pods.pod(pod).filter(|row| row.wants_seat()).map(|row| self.pods.unit_of(pod, row))
            {
                self.note_unit(&unit);
            }
        }
    }

    /// Gives a pod the shape that its claims call for now. True if it is another one.
    fn reshape_by_claims(&mut self, pod: &ObjectKey) -> bool {
        let Some(row) = self.pods.pod(pod).cloned() else { return false };
        let resolved = self.volumes.resolve(pod, &row.claims);
        let held = Arc::clone(self.shapes.get(row.shape));
        let own = held.requests.iter().filter(|(resource, _)| !self.volumes.is_attach_resource(*resource));
        let mut requests: Vec<_> = own.copied().chain(resolved.attach).collect();
        requests.sort_unstable();
        if requests == held.requests && resolved.needs == held.volumes {
            return false;
        }
        let (shape, is_new) = self.shapes.acquire_with_volumes(row.shape, requests, resolved.needs);
        if is_new {
            self.nodes.images_mut().retain(&self.shapes.get(shape).images);
        }
        self.pods.reshape(pod, shape);
        if let Some(node) = row.node() {
            let taken = Arc::clone(self.shapes.get(shape));
            self.take_room(node, taken.load(), 1);
            self.give_room(node, held.load(), 1);
            self.note_neighbour(&taken);
        }
        if row.wants_seat() {
            self.note_unit(&self.pods.unit_of(pod, &row));
        }
        self.follow_nomination(pod);
        self.release_shape(row.shape);
        true
    }
}

impl Volumes {
    fn put_claim(&mut self, key: &ObjectKey, claim: Option<VolumeClaim>) {
        if let Some(before) = self.claims.remove(key) {
            remove_from(&mut self.by_class, &before.class, key);
            if let Some(volume) = &before.volume {
                remove_from(&mut self.by_volume, volume, key);
            }
        }
        if let Some(claim) = claim {
            self.by_class.entry(claim.class.clone()).or_default().insert(key.clone());
            if let Some(volume) = &claim.volume {
                self.by_volume.entry(volume.clone()).or_default().insert(key.clone());
            }
            self.claims.insert(key.clone(), claim);
        }
    }

    fn put_volume(&mut self, name: &Text, volume: Option<Volume>) {
        if let Some(before) = self.volumes.remove(name) {
            if let Some(disk) = &before.disk {
                remove_from(&mut self.by_disk, disk, name);
            }
            if let Some(claim) = &before.claim {
                remove_from(&mut self.kept, &claim.key, name);
            }
        }
        if let Some(volume) = volume {
            if let Some(disk) = &volume.disk {
                self.by_disk.entry(disk.clone()).or_default().insert(name.clone());
            }
            if let Some(claim) = &volume.claim {
                self.kept.entry(claim.key.clone()).or_default().insert(name.clone());
            }
            self.volumes.insert(name.clone(), volume);
        }
    }

    fn users_of(&self, claims: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        claims.iter().flat_map(|claim| self.users(claim)).cloned().collect()
    }

    /// Claims that name a volume or that it is kept for.
    fn claims_about(&self, name: &Text) -> BTreeSet<ObjectKey> {
        let mut claims = self.by_volume.get(name).cloned().unwrap_or_default();
        let volume = self.volumes.get(name);
        claims.extend(volume.and_then(|volume| volume.claim.as_ref()).map(|kept| kept.key.clone()));
        if let Some(disk) = volume.and_then(|volume| volume.disk.as_ref()) {
            let alike = self.by_disk.get(disk).into_iter().flatten();
            claims.extend(alike.filter_map(|name| self.by_volume.get(name)).flatten().cloned());
        }
        claims
    }

    /// Users of claims that are given a volume in turn, one of which may be this.
    fn choosers(&self, volume: &Text) -> BTreeSet<ObjectKey> {
        let class = self.volumes.get(volume).map(|volume| &volume.class);
        class.map_or_else(BTreeSet::new, |class| self.sharers(class))
    }

    /// Users of claims of a class that several pods share and that are not bound.
    fn sharers(&self, class: &Text) -> BTreeSet<ObjectKey> {
        let claims = self.by_class.get(class).into_iter().flatten();
        let unbound = |key: &&ObjectKey| self.claims.get(*key).is_some_and(|claim| claim.volume.is_none());
        let shared = claims.filter(|key| self.is_shared(key)).filter(unbound);
        shared.flat_map(|key| self.users(key)).cloned().collect()
    }

    /// Pods whose requirements may depend on a claim: its users, those of the same disk, and those who are given
    /// volumes of its class in turn.
    fn neighbours(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut pods: BTreeSet<ObjectKey> = self.users(key).cloned().collect();
        let Some(claim) = self.claims.get(key) else { return pods };
        if let Some(volume) = &claim.volume {
            pods.extend(self.users_of(&self.claims_about(volume)));
        } else if self.class_of(claim).is_some_and(|class| class.waits && class.provisioner.is_none()) {
            pods.extend(self.sharers(&claim.class));
        }
        pods
    }
}
