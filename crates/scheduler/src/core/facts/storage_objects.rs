//! What watches tell about storage. What was not understood counts as not being there: pods that need it wait, and it
//! is said on the object itself.

use super::super::Core;
use super::cluster_key;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::Event;
use tutti_k8s::{ClaimReading, ClassReading, LimitsReading, ObjectKind, VolumeReading};
use tutti_model::{AttachLimits, ObjectKey, Text, Time, Volume, VolumeClaim};

/// Storage as far as the core itself looks at it.
#[derive(Debug, Default)]
pub(in super::super) struct KnownStorage {
    pub(in super::super) claims: BTreeMap<ObjectKey, VolumeClaim>,
    /// With the version that was seen.
    pub(in super::super) volumes: BTreeMap<Text, (Volume, Text)>,
    classes: BTreeSet<Text>,
    csi_nodes: BTreeSet<Text>,
}

/// Kinds that are about storage.
pub(in super::super) const STORAGE_KINDS: [ObjectKind; 4] =
    [ObjectKind::Claim, ObjectKind::Volume, ObjectKind::StorageClass, ObjectKind::CsiNode];

impl KnownStorage {
    /// Names of all objects of a kind.
    pub(in super::super) fn names(&self, kind: ObjectKind) -> Vec<ObjectKey> {
        match kind {
            ObjectKind::Claim => self.claims.keys().cloned().collect(),
            ObjectKind::Volume => self.volumes.keys().map(cluster_key).collect(),
            ObjectKind::StorageClass => self.classes.iter().map(cluster_key).collect(),
            ObjectKind::CsiNode => self.csi_nodes.iter().map(cluster_key).collect(),
            _ => Vec::new(),
        }
    }
}

impl Core {
    pub(in super::super) fn claim_set(&mut self, reading: ClaimReading, now: Time) {
        let ClaimReading { claim, errors, .. } = reading;
        let key = claim.key.clone();
        if !self.understood(ObjectKind::Claim, &key, &claim.uid, errors, now) {
            self.claim_gone(&key, now);
            return;
        }
        self.storage.claims.insert(key.clone(), claim.clone());
        self.tell(Event::ClaimSet(Box::new(claim)), now);
        self.starts.preparations.look_at_claim(&key);
    }

    pub(in super::super) fn claim_gone(&mut self, key: &ObjectKey, now: Time) {
        if self.storage.claims.remove(key).is_some() {
            self.tell(Event::ClaimGone(key.clone()), now);
            self.starts.preparations.look_at_claim(key);
        }
    }

    pub(in super::super) fn volume_set(&mut self, reading: VolumeReading, now: Time) {
        let VolumeReading { volume, uid, version, errors } = reading;
        let name = volume.name.clone();
        if !self.understood(ObjectKind::Volume, &cluster_key(&name), &uid, errors, now) {
            self.volume_gone(&name, now);
            return;
        }
        let before = self.storage.volumes.insert(name, (volume.clone(), version));
        self.look_at_claims_of(before.as_ref().map(|(before, _)| before).into_iter().chain([&volume]));
        self.tell(Event::VolumeSet(Box::new(volume)), now);
    }

    pub(in super::super) fn volume_gone(&mut self, name: &Text, now: Time) {
        if let Some((before, _)) = self.storage.volumes.remove(name) {
            self.look_at_claims_of([&before]);
            self.tell(Event::VolumeGone(name.clone()), now);
        }
    }

    /// Who waits for claims that have to do with these volumes is looked at.
    fn look_at_claims_of<'a>(&mut self, volumes: impl IntoIterator<Item = &'a Volume>) {
        for volume in volumes {
            if let Some(kept) = &volume.claim {
                self.starts.preparations.look_at_claim(&kept.key);
            }
            self.starts.preparations.look_at_volume(&volume.name);
        }
    }

    pub(in super::super) fn class_set(&mut self, reading: ClassReading, now: Time) {
        let ClassReading { class, uid, errors } = reading;
        let name = class.name.clone();
        if !self.understood(ObjectKind::StorageClass, &cluster_key(&name), &uid, errors, now) {
            self.class_gone(&name, now);
            return;
        }
        self.storage.classes.insert(name);
        self.tell(Event::ClassSet(Box::new(class)), now);
    }

    pub(in super::super) fn class_gone(&mut self, name: &Text, now: Time) {
        if self.storage.classes.remove(name) {
            self.tell(Event::ClassGone(name.clone()), now);
        }
    }

    /// Limits that were not understood count as none at all being attachable, which is how they were read.
    pub(in super::super) fn limits_set(&mut self, reading: LimitsReading, now: Time) {
        let LimitsReading { limits, uid, errors } = reading;
        let key = cluster_key(&limits.node);
        let named = !key.name.is_empty();
        self.understood(ObjectKind::CsiNode, &key, &uid, errors, now);
        if named {
            self.storage.csi_nodes.insert(limits.node.clone());
            self.tell(Event::AttachLimitsSet(Box::new(limits)), now);
        }
    }

    pub(in super::super) fn limits_gone(&mut self, node: &Text, now: Time) {
        if self.storage.csi_nodes.remove(node) {
            let limits = AttachLimits { node: node.clone(), ..AttachLimits::default() };
            self.tell(Event::AttachLimitsSet(Box::new(limits)), now);
        }
    }

    /// Takes away what a list of a kind does not have any more.
    pub(in super::super) fn storage_vanished(&mut self, kind: ObjectKind, key: &ObjectKey, now: Time) {
        match kind {
            ObjectKind::Claim => self.claim_gone(key, now),
            ObjectKind::Volume => self.volume_gone(&key.name, now),
            ObjectKind::StorageClass => self.class_gone(&key.name, now),
            ObjectKind::CsiNode => self.limits_gone(&key.name, now),
            _ => {}
        }
    }
}
