//! Claims, volumes, classes and attach limits as the engine remembers them, and who uses which claim.
//!
//! * `needs`: what a pod's claims come down to for the solver, or why it cannot be tried;
//! * `plan`: which unbound claim gets which volume once its pod has a node;
//! * `events`: what happens when any of it changes.

mod events;
mod needs;
mod plan;

use crate::state::digest::hash;
use crate::state::shape::{ResourceId, Resources};
pub(crate) use needs::{Ask, Needs, Place, Resolved, places_of};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::{Disk, ObjectKey, Resource, StorageClass, Text, Volume, VolumeClaim, VolumeUse};

/// What a node without a limit can attach: more than there are volumes, and far from overflow.
const UNLIMITED: i64 = 1 << 40;

/// What is to become of an unbound claim whose pod got a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClaimPlan {
    /// It gets this volume, which exists.
    Volume(Text),
    /// A volume is made for it where this node reaches it.
    Provision(Text),
}

/// Whether the volumes of a pod are there for it on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeState {
    /// All its claims are bound to volumes that the node reaches.
    Ready,
    /// A claim is not bound, or its volume was not seen.
    Missing,
    /// A volume cannot be reached from the node.
    OutOfReach,
}

/// A CSI driver of which some node can attach only so many volumes.
#[derive(Debug, Clone)]
struct LimitedDriver {
    resource: ResourceId,
    /// Nodes that name a limit.
    nodes: usize,
}

/// All that is known about storage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volumes {
    claims: BTreeMap<ObjectKey, VolumeClaim>,
    volumes: BTreeMap<Text, Volume>,
    classes: BTreeMap<Text, StorageClass>,
    /// By node and driver.
    limits: FxHashMap<Text, BTreeMap<Text, u32>>,
    limited: BTreeMap<Text, LimitedDriver>,
    /// Resources that stand for attached volumes, of drivers that are or once were limited.
    attach_resources: BTreeSet<ResourceId>,
    /// Pods that have not ended, by the claims that they name.
    users: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Claims by class.
    by_class: BTreeMap<Text, BTreeSet<ObjectKey>>,
    /// Claims by the volume that they name.
    by_volume: BTreeMap<Text, BTreeSet<ObjectKey>>,
    /// Volumes by what is attached for them.
    by_disk: BTreeMap<Disk, BTreeSet<Text>>,
    /// Volumes by the claim that they are kept for.
    kept: BTreeMap<ObjectKey, BTreeSet<Text>>,
    /// Unbound claims of pods that have a node by our decision.
    plans: BTreeMap<ObjectKey, ClaimPlan>,
}

impl Volumes {
    pub(crate) fn class_of(&self, claim: &VolumeClaim) -> Option<&StorageClass> {
        self.classes.get(&claim.class)
    }

    /// Pods that have not ended and name this claim.
    pub(crate) fn users(&self, claim: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.users.get(claim).into_iter().flatten()
    }

    /// True if more than one pod names the claim.
    fn is_shared(&self, claim: &ObjectKey) -> bool {
        self.users.get(claim).is_some_and(|users| users.len() > 1)
    }

    /// True if a volume can be given to a claim that it suits: nobody has it, and nobody was promised it.
    fn is_free(&self, volume: &Volume) -> bool {
        volume.claim.is_none()
            && volume.available
            && !volume.terminating
            && !self.by_volume.contains_key(&volume.name)
            && !self
                .plans
                .values()
                .any(|plan| matches!(plan, ClaimPlan::Volume(name) if *name == volume.name))
    }

    /// Volumes that nobody has, smallest first.
    pub(crate) fn free_volumes(&self) -> Vec<&Volume> {
        let promised: BTreeSet<&Text> = self.plans.values().filter_map(ClaimPlan::volume).collect();
        let free = |volume: &&Volume| {
            volume.claim.is_none()
                && volume.available
                && !volume.terminating
                && !self.by_volume.contains_key(&volume.name)
                && !promised.contains(&volume.name)
        };
        let mut volumes: Vec<&Volume> = self.volumes.values().filter(free).collect();
        volumes.sort_by(|a, b| (a.size, &a.name).cmp(&(b.size, &b.name)));
        volumes
    }

    /// Room for attached volumes on a node, by resource.
    pub(crate) fn room_to_attach(&self, node: &Text) -> Vec<(ResourceId, i64)> {
        let limits = self.limits.get(node);
        let most = |(driver, limited): (&Text, &LimitedDriver)| {
            let limit = limits.and_then(|limits| limits.get(driver));
            (limited.resource, limit.map_or(UNLIMITED, |&limit| i64::from(limit)))
        };
        self.limited.iter().map(most).collect()
    }

    /// True if the resource stands for attached volumes.
    pub(crate) fn is_attach_resource(&self, resource: ResourceId) -> bool {
        self.attach_resources.contains(&resource)
    }

    /// A number that differs if anything differs that is known about storage.
    pub(crate) fn digest(&self) -> u64 {
        let mut limits: Vec<_> = self.limits.iter().collect();
        limits.sort_unstable();
        let known = (&self.claims, &self.volumes, &self.classes, limits);
        hash((known, &self.users, &self.plans))
    }

    /// Notes who uses which claims. Gives the claims that are now shared by more or fewer pods.
    fn set_user(&mut self, pod: &ObjectKey, claims: &[ObjectKey], uses: bool) -> Vec<ObjectKey> {
        let mut changed = Vec::new();
        for claim in claims {
            let users = self.users.entry(claim.clone()).or_default();
            if if uses { users.insert(pod.clone()) } else { users.remove(pod) } {
                changed.push(claim.clone());
            }
            if users.is_empty() {
                self.users.remove(claim);
            }
        }
        changed
    }

    fn note_limit(&mut self, driver: &Text, resources: &mut Resources) -> bool {
        if let Some(limited) = self.limited.get_mut(driver) {
            limited.nodes += 1;
            return false;
        }
        let resource = resources.id(&attach_resource(driver));
        self.attach_resources.insert(resource);
        self.limited.insert(driver.clone(), LimitedDriver { resource, nodes: 1 });
        true
    }

    fn forget_limit(&mut self, driver: &Text) -> bool {
        let Some(limited) = self.limited.get_mut(driver) else { return false };
        limited.nodes -= 1;
        limited.nodes == 0 && self.limited.remove(driver).is_some()
    }
}

impl ClaimPlan {
    fn volume(&self) -> Option<&Text> {
        match self {
            Self::Volume(name) => Some(name),
            Self::Provision(_) => None,
        }
    }
}

/// The claims that a pod names, each once.
pub(crate) fn claim_keys(pod: &ObjectKey, uses: &[VolumeUse]) -> Vec<ObjectKey> {
    let key = |using: &VolumeUse| ObjectKey::new(pod.namespace.clone(), using.claim.clone());
    let mut keys: Vec<ObjectKey> = uses.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Attached volumes of a driver, as a resource of nodes. No resource of Kubernetes has a space in its name.
pub(crate) fn attach_resource(driver: &str) -> Resource {
    Resource::new(&format!("{ATTACH_PREFIX}{driver}"))
}

/// The driver of such a resource.
pub(crate) fn attach_driver(resource: &Resource) -> Option<&str> {
    resource.name().strip_prefix(ATTACH_PREFIX)
}

const ATTACH_PREFIX: &str = "attached volumes of ";
