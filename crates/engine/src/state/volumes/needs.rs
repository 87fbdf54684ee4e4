//! What a pod's claims come down to: where it may be, what it takes there, and which volumes it still has to be given.

use super::{ClaimPlan, VolumeState, Volumes, claim_keys};
use crate::refusal::ClaimProblem;
use crate::state::pods::PodTable;
use crate::state::shape::ResourceId;
use std::collections::BTreeSet;
use tutti_model::{
    Disk, Labels, Node, NodeSelectorTerm, ObjectKey, Operator, Requirement, StorageClass, Text, Volume,
    VolumeClaim, VolumeUse,
};

/// Labels that say where a volume or a node is, and what a volume's older label is called on newer nodes.
const ZONE_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];
/// Separates zones in the label of a volume that is in several.
const ZONE_SEPARATOR: &str = "__";

/// Where a volume can be reached from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// Nodes that one of the terms matches.
    Terms(Vec<NodeSelectorTerm>),
    /// Nodes whose label has one of the values, and nodes that have no zone at all.
    Zone(&'static str, Vec<Text>),
}

impl Place {
    fn node(name: &Text) -> Self {
        let requirement =
            Requirement { key: "metadata.name".into(), operator: Operator::In, values: vec![name.clone()] };
        Self::Terms(vec![NodeSelectorTerm { labels: Vec::new(), fields: vec![requirement] }])
    }

    /// True if a pod with the volume may be on the node.
    pub(crate) fn accepts(&self, node: &Node) -> bool {
        match self {
            Self::Terms(terms) => terms.iter().any(|term| term.matches(&node.name, &node.labels)),
            Self::Zone(key, values) => {
                let newer = ZONE_LABELS.iter().find(|(old, _)| old == key).map_or(*key, |(_, newer)| newer);
                let zone = node.labels.get(key).or_else(|| node.labels.get(newer));
                !has_zone(&node.labels)
                    || zone.is_some_and(|zone| values.iter().any(|value| value.as_ref() == zone))
            }
        }
    }
}

fn has_zone(labels: &Labels) -> bool {
    ZONE_LABELS.iter().any(|(key, _)| labels.get(key).is_some())
}

/// An unbound claim that needs a volume, without its name: equal claims are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    /// What the volume must be like; has no name.
    pub(crate) claim: VolumeClaim,
    /// Where a volume can be made instead; nothing if nobody makes any.
    pub(crate) provision: Option<Vec<NodeSelectorTerm>>,
}

impl Ask {
    fn new(claim: &VolumeClaim, class: &StorageClass) -> Self {
        let (nobody, no_uid) = (ObjectKey::new("", ""), Text::default());
        Self {
            claim: VolumeClaim { key: nobody, uid: no_uid, owner: None, ..claim.clone() },
            provision: class.provisioner.is_some().then(|| class.topologies.clone()),
        }
    }

    /// True if a volume can be made for this node.
    pub(crate) fn is_provisioned_for(&self, node: &Node) -> bool {
        self.provision
            .as_ref()
            .is_some_and(|terms| terms.is_empty() || terms.iter().any(|t| t.matches("", &node.labels)))
    }
}

/// What claims require beyond amounts that every copy of a pod takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Needs {
    /// All of them must accept the node.
    pub(crate) places: Vec<Place>,
    /// Volumes that other pods use, too, and the room that they take: once on a node, whoever uses them there.
    pub(crate) shared: Vec<(ResourceId, Text)>,
    /// Claims that have to be given a volume.
    pub(crate) asks: Vec<Ask>,
    /// Claims that other pods name, too, although only one may use them.
    pub(crate) exclusive: Vec<ObjectKey>,
    /// Volumes that were chosen for claims before it was known where their pods go.
    pub(crate) guesses: Vec<Text>,
    /// True if such a choice could have been another: then that there is no room is not proven.
    pub(crate) is_guess: bool,
}

/// What the claims of a pod come down to.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) needs: Needs,
    /// Volumes that only this pod uses, counted by the resource that they take.
    pub(crate) attach: Vec<(ResourceId, i64)>,
}

impl Volumes {
    /// What the claims of a pod come down to as things are.
    pub(crate) fn resolve(&self, pod: &ObjectKey, uses: &[VolumeUse]) -> Resolved {
        let mut resolved = Resolved::default();
        let mut disks = BTreeSet::new();
        for key in claim_keys(pod, uses) {
            let Some(claim) = self.claims.get(&key) else { continue };
            self.place(claim, &mut resolved.needs);
            if let Some(disk) = self.disk_of(claim) {
                disks.insert(disk);
            }
            if claim.is_exclusive() && self.is_shared(&key) {
                resolved.needs.exclusive.push(key);
            }
        }
        for disk in disks {
            let Some(limited) = self.limited.get(&disk.driver) else { continue };
            if self.disk_is_shared(&disk) {
                let name = Text::from(format!("{} {}", disk.driver, disk.handle));
                resolved.needs.shared.push((limited.resource, name));
            } else {
                match resolved.attach.iter_mut().find(|(resource, _)| *resource == limited.resource) {
                    Some((_, count)) => *count += 1,
                    None => resolved.attach.push((limited.resource, 1)),
                }
            }
        }
        let Needs { places, asks, shared, .. } = &mut resolved.needs;
        places.sort_unstable();
        places.dedup();
        shared.sort_unstable();
        asks.sort_by(|a, b| key_of(a).cmp(&key_of(b)));
        resolved.attach.sort_unstable();
        resolved
    }

    /// Adds where a claim's volume can be reached from, or that it needs one.
    fn place(&self, claim: &VolumeClaim, needs: &mut Needs) {
        if let Some(name) = &claim.volume {
            if let Some(volume) = self.volumes.get(name) {
                needs.places.extend(places_of(volume));
            }
            return;
        }
        let Some(class) = self.class_of(claim).filter(|class| class.waits) else { return };
        match (self.plans.get(&claim.key), self.kept_for(claim), &claim.selected_node) {
            (Some(ClaimPlan::Volume(name)), _, _) => {
                needs.places.extend(self.volumes.get(name).into_iter().flat_map(places_of));
            }
            (None, Some(volume), None) => needs.places.extend(places_of(volume)),
            (Some(ClaimPlan::Provision(node)), _, _) | (None, _, Some(node)) => {
                needs.places.push(Place::node(node));
                needs.places.extend(provisioning_place(class));
            }
            (None, None, None) if self.is_shared(&claim.key) => self.guess(claim, class, needs),
            (None, None, None) if class.provisioner.is_some() && class.topologies.is_empty() => {}
            (None, None, None) => needs.asks.push(Ask::new(claim, class)),
        }
    }

    /// Several pods need the same volume, wherever they go: it is chosen before.
    fn guess(&self, claim: &VolumeClaim, class: &StorageClass, needs: &mut Needs) {
        let suits = |volume: &&Volume| volume.suits(claim) && self.is_free(volume);
        let candidates: Vec<&Volume> = self.volumes.values().filter(suits).collect();
        if class.provisioner.is_some() {
            needs.places.extend(provisioning_place(class));
            needs.is_guess |= !candidates.is_empty() && !class.topologies.is_empty();
            return;
        }
        // Another volume might have done better, or this one for another claim.
        needs.is_guess |= !candidates.is_empty();
        match self.guessed(claim) {
            Some(volume) => {
                needs.places.extend(places_of(volume));
                needs.guesses.push(volume.name.clone());
            }
            None => needs.places.push(Place::Terms(Vec::new())),
        }
    }

    /// The volume that is chosen for a shared claim: claims of a class take the smallest in turn, by name.
    pub(super) fn guessed(&self, claim: &VolumeClaim) -> Option<&Volume> {
        let free = self.free_volumes();
        let mut taken: BTreeSet<&Text> = BTreeSet::new();
        for key in self.by_class.get(&claim.class).into_iter().flatten() {
            let Some(other) = self.claims.get(key) else { continue };
            let is_waiting =
                other.volume.is_none() && other.selected_node.is_none() && !self.plans.contains_key(key);
            if !is_waiting || !self.is_shared(key) || self.kept_for(other).is_some() {
                continue;
            }
            let chosen = free.iter().find(|volume| volume.suits(other) && !taken.contains(&volume.name));
            if *key == claim.key {
                return chosen.copied();
            }
            taken.extend(chosen.map(|volume| &volume.name));
        }
        None
    }

    /// A volume that somebody has set aside for a claim.
    pub(super) fn kept_for(&self, claim: &VolumeClaim) -> Option<&Volume> {
        let named = self.kept.get(&claim.key).into_iter().flatten();
        let mut kept = named.filter_map(|name| self.volumes.get(name));
        kept.find(|volume| volume.is_kept_for(claim) && volume.suits(claim))
    }

    /// What is attached for a claim, if a CSI driver does it. Of a volume that does not exist yet the class tells.
    fn disk_of(&self, claim: &VolumeClaim) -> Option<Disk> {
        if let Some(volume) = claim.volume.as_ref().and_then(|name| self.volumes.get(name)) {
            return volume.disk.clone();
        }
        let driver = self.class_of(claim)?.provisioner.clone()?;
        Some(Disk { driver, handle: Text::from(format!("{} {}", claim.key.namespace, claim.key.name)) })
    }

    fn disk_is_shared(&self, disk: &Disk) -> bool {
        let mut users: BTreeSet<&ObjectKey> = BTreeSet::new();
        match self.by_disk.get(disk) {
            Some(volumes) => {
                let claims = volumes.iter().filter_map(|volume| self.by_volume.get(volume)).flatten();
                users.extend(claims.flat_map(|claim| self.users(claim)));
            }
            None => {
                if let Some((namespace, name)) = disk.handle.split_once(' ') {
                    users.extend(self.users(&ObjectKey::new(namespace, name)));
                }
            }
        }
        users.len() > 1
    }

    /// Whether all volumes of a pod are there and within reach of a node.
    pub(crate) fn state(&self, pod: &ObjectKey, uses: &[VolumeUse], node: &Node) -> VolumeState {
        let mut state = VolumeState::Ready;
        for key in claim_keys(pod, uses) {
            let name = self.claims.get(&key).and_then(VolumeClaim::bound_volume);
            match name.and_then(|name| self.volumes.get(name)) {
                None => state = VolumeState::Missing,
                Some(volume) if !places_of(volume).all(|place| place.accepts(node)) => {
                    return VolumeState::OutOfReach;
                }
                Some(_) => {}
            }
        }
        state
    }

    /// Why a pod cannot be tried, and which claim it is about.
    pub(crate) fn problem(
        &self,
        pod: &ObjectKey,
        uid: &Text,
        uses: &[VolumeUse],
        pods: &PodTable,
    ) -> Option<(Text, ClaimProblem)> {
        let mut uses: Vec<&VolumeUse> = uses.iter().collect();
        uses.sort_unstable();
        let problem = |using: &VolumeUse| {
            let key = ObjectKey::new(pod.namespace.clone(), using.claim.clone());
            let Some(claim) = self.claims.get(&key) else { return Some(ClaimProblem::Missing) };
            if using.own && claim.owner.as_ref() != Some(uid) {
                return Some(ClaimProblem::OfAnotherPod);
            }
            self.state_problem(claim).or_else(|| {
                let uses_it = |user: &&ObjectKey| {
                    **user != *pod && pods.pod(user).is_some_and(|row| row.node().is_some())
                };
                let user = self.users(&key).find(uses_it).filter(|_| claim.is_exclusive())?;
                Some(ClaimProblem::InUse { pod: user.name.clone() })
            })
        };
        uses.into_iter().find_map(|using| Some((using.claim.clone(), problem(using)?)))
    }

    fn state_problem(&self, claim: &VolumeClaim) -> Option<ClaimProblem> {
        if claim.terminating {
            return Some(ClaimProblem::Terminating);
        }
        if claim.lost {
            return Some(ClaimProblem::Lost);
        }
        if let Some(name) = claim.bound_volume() {
            let volume = name.clone();
            return (!self.volumes.contains_key(name)).then_some(ClaimProblem::VolumeMissing { volume });
        }
        if claim.class.is_empty() || claim.volume.is_some() {
            return Some(ClaimProblem::Unbound);
        }
        match self.class_of(claim) {
            None => Some(ClaimProblem::ClassMissing { class: claim.class.clone() }),
            Some(class) if !class.waits => Some(ClaimProblem::Unbound),
            Some(_) => None,
        }
    }
}

/// One order of asks, so that pods that ask for the same share a shape.
fn key_of(ask: &Ask) -> impl Ord + '_ {
    let VolumeClaim { class, size, block, modes, attributes_class, selector, .. } = &ask.claim;
    (class, size, block, modes, attributes_class, selector)
}

/// Where a volume can be reached from: by its affinity and by its labels.
pub(crate) fn places_of(volume: &Volume) -> impl Iterator<Item = Place> {
    let affinity = volume.affinity.clone().map(Place::Terms);
    let zones = ZONE_LABELS.iter().filter_map(|(key, _)| {
        let values: BTreeSet<&str> = volume.labels.get(key)?.split(ZONE_SEPARATOR).map(str::trim).collect();
        let usable = !values.contains("");
        usable.then(|| Place::Zone(key, values.into_iter().map(Text::from).collect()))
    });
    affinity.into_iter().chain(zones)
}

/// Where volumes of a class can be made; nowhere if nobody makes any.
fn provisioning_place(class: &StorageClass) -> Option<Place> {
    match (&class.provisioner, class.topologies.is_empty()) {
        (Some(_), true) => None,
        (Some(_), false) => Some(Place::Terms(class.topologies.clone())),
        (None, _) => Some(Place::Terms(Vec::new())),
    }
}
