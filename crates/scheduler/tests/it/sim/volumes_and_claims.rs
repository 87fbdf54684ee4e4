//! Claims and volumes, and what looks after them: the provisioner, and the controller that binds claims to volumes.

use super::server::{Server, zone_labels};
use super::tally::Deed;
use super::{Happening, Sim};
use std::collections::BTreeMap;
use tutti_k8s::{ClaimReading, ClassReading, ObjectKind, VolumeReading};
use tutti_model::{
    AccessMode, ClaimRef, Labels, NodeSelectorTerm, ObjectKey, Operator, Pod, Requirement, StorageClass,
    Text, Volume, VolumeClaim,
};
use tutti_scheduler::core::message::{Input, WriteOutcome};

/// Volumes of this class are made when somebody needs one.
pub(super) const MADE: &str = "made";
/// Volumes of this class are there or are not.
pub(super) const LOCAL: &str = "local";

/// All that there is.
#[derive(Debug, Default)]
pub(super) struct Storage {
    claims: BTreeMap<ObjectKey, (VolumeClaim, u64)>,
    volumes: BTreeMap<Text, (Volume, u64)>,
}

impl Storage {
    pub(super) fn list(&self, kind: ObjectKind) -> Vec<Input> {
        match kind {
            ObjectKind::Claim => self.claims.values().map(claim_set).collect(),
            ObjectKind::Volume => self.volumes.values().map(volume_set).collect(),
            ObjectKind::StorageClass => [(MADE, true), (LOCAL, false)].map(class_set).into(),
            _ => Vec::new(),
        }
    }

    /// True if all claims of a pod have volumes that can be reached from where these labels are.
    pub(super) fn serves(&self, pod: &Pod, labels: &Labels) -> bool {
        pod.volume_claims.iter().all(|used| {
            let claim = self.claims.get(&ObjectKey::new(pod.key.namespace.clone(), used.claim.clone()));
            let volume = claim.and_then(|(claim, _)| self.volumes.get(claim.bound_volume()?));
            volume.is_some_and(|(volume, _)| volume.is_reached_from(labels))
        })
    }

    /// Claims of a class that have no volume.
    pub(super) fn unbound(&self, class: &str) -> usize {
        self.claims.values().filter(|(claim, _)| !claim.bound && &*claim.class == class).count()
    }

    /// Volumes that nobody has.
    pub(super) fn free_volumes(&self) -> Vec<Text> {
        let free = self.volumes.values().filter(|(volume, _)| volume.claim.is_none());
        free.map(|(volume, _)| volume.name.clone()).collect()
    }
}

impl Server {
    pub(super) fn add_claim(&mut self, name: &str, class: &str) {
        let key = super::server::key(name);
        if !self.storage.claims.contains_key(&key) {
            let claim = VolumeClaim { class: class.into(), size: 1, ..VolumeClaim::new(key, name) };
            self.tell_claim(claim);
        }
    }

    pub(super) fn add_volume(&mut self, name: &str, class: &str, zone: &str, kept_for: Option<ClaimRef>) {
        let required = zone_labels(zone)
            .iter()
            .filter_map(|(key, value)| Requirement::new(key, Operator::In, vec![value.into()]).ok())
            .collect();
        let volume = Volume {
            name: name.into(),
            class: class.into(),
            size: 1,
            modes: vec![AccessMode::ReadWriteOnce],
            affinity: Some(vec![NodeSelectorTerm { labels: required, fields: Vec::new() }]),
            available: kept_for.is_none(),
            claim: kept_for,
            ..Volume::default()
        };
        self.tell_volume(volume);
    }

    fn tell_claim(&mut self, claim: VolumeClaim) {
        let claim = (claim, self.next_version());
        let input = claim_set(&claim);
        self.storage.claims.insert(claim.0.key.clone(), claim);
        self.tell(ObjectKind::Claim, input);
    }

    fn tell_volume(&mut self, volume: Volume) {
        let volume = (volume, self.next_version());
        let input = volume_set(&volume);
        self.storage.volumes.insert(volume.0.name.clone(), volume);
        self.tell(ObjectKind::Volume, input);
    }

    fn claim(&self, claim: &ObjectKey, uid: &Text) -> Option<VolumeClaim> {
        let (found, _) = self.storage.claims.get(claim)?;
        (found.uid == *uid).then(|| found.clone())
    }

    pub(super) fn select_node(&mut self, claim: &ObjectKey, uid: &Text, node: Option<Text>) -> bool {
        let Some(found) = self.claim(claim, uid) else {
            return false;
        };
        self.tell_claim(VolumeClaim { selected_node: node, ..found });
        true
    }

    pub(super) fn keep_volume(&mut self, name: &Text, version: &Text, kept_for: ClaimRef) -> WriteOutcome {
        let Some((volume, at)) = self.storage.volumes.get(name).cloned() else {
            return WriteOutcome::Rejected("not found".into());
        };
        if at.to_string() != **version {
            return WriteOutcome::Conflict("it has changed".into());
        }
        self.tell_volume(Volume { claim: Some(kept_for), available: false, ..volume });
        WriteOutcome::Done
    }

    /// A claim and a volume agree on each other.
    fn bind_claim(&mut self, claim: VolumeClaim, volume: &Text) {
        self.tell_claim(VolumeClaim { volume: Some(volume.clone()), bound: true, ..claim });
    }
}

impl Sim {
    /// The provisioner looks at a claim for which one was asked: it may take its time, and it may give up.
    pub(super) fn provision(&mut self, claim: &ObjectKey, uid: &Text) {
        let Some(found) = self.server.claim(claim, uid).filter(|found| !found.bound) else {
            return;
        };
        let Some(node) = found.selected_node.clone() else {
            // A claim that asks again is looked at again.
            return;
        };
        let zone = self.server.nodes.get(&node).and_then(|node| node.labels.get("zone")).map(str::to_owned);
        let luck = if self.trouble.on { self.dice.below(4) } else { 3 };
        match zone {
            Some(_) if luck == 0 => {
                let delay = self.dice.below(40_000);
                self.schedule(delay, Happening::Provision(claim.clone(), uid.clone()));
            }
            Some(zone) if luck > 1 => {
                self.tally.count(Deed::Provision);
                // Nobody else has this number, and so this name.
                self.serial += 1;
                let volume = format!("pv{}", self.serial);
                let kept_for = ClaimRef { key: claim.clone(), uid: Some(uid.clone()) };
                self.server.add_volume(&volume, MADE, &zone, Some(kept_for));
                self.server.bind_claim(found, &volume.into());
            }
            Some(_) | None => {
                self.tally.count(Deed::ProvisionFailure);
                self.server.select_node(claim, uid, None);
            }
        }
        self.spread_news();
    }

    /// The controller of volumes looks at a volume that is kept for a claim.
    pub(super) fn bind_volume(&mut self, name: &Text) {
        let Some((volume, _)) = self.server.storage.volumes.get(name).cloned() else {
            return;
        };
        let wants = |kept: &ClaimRef| self.server.claim(&kept.key, kept.uid.as_ref()?);
        match volume.claim.as_ref().and_then(wants) {
            Some(claim) if !claim.bound => {
                self.tally.count(Deed::KeptVolume);
                self.server.bind_claim(claim, name);
            }
            Some(claim) if claim.bound_volume() == Some(name) => {}
            // The claim has another one by now, or is gone.
            Some(_) | None => {
                self.server.tell_volume(Volume { claim: None, available: true, ..volume });
            }
        }
        self.spread_news();
    }

    /// A claim of another namespace gets a volume that nobody has.
    pub(super) fn steal_volume(&mut self) {
        let free = self.server.storage.free_volumes();
        if let Some(name) = self.dice.pick(&free)
            && let Some((volume, _)) = self.server.storage.volumes.get(&name).cloned()
        {
            self.tally.count(Deed::StolenVolume);
            let thief = ClaimRef { key: ObjectKey::new("other", name), uid: Some("other".into()) };
            self.server.tell_volume(Volume { claim: Some(thief), available: false, ..volume });
        }
    }
}

fn claim_set((claim, version): &(VolumeClaim, u64)) -> Input {
    let (claim, version) = (claim.clone(), version.to_string().into());
    Input::ClaimSet(Box::new(ClaimReading { claim, version, errors: Vec::new() }))
}

fn volume_set((volume, version): &(Volume, u64)) -> Input {
    let (uid, version) = (volume.name.clone(), version.to_string().into());
    let volume = volume.clone();
    Input::VolumeSet(Box::new(VolumeReading { volume, uid, version, errors: Vec::new() }))
}

fn class_set((name, is_made): (&str, bool)) -> Input {
    let class = StorageClass {
        name: name.into(),
        provisioner: is_made.then(|| "maker".into()),
        waits: true,
        topologies: Vec::new(),
    };
    Input::ClassSet(Box::new(ClassReading { class, uid: name.into(), errors: Vec::new() }))
}
