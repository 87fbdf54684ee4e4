//! Storage as far as scheduling reads it: claims, volumes, classes, and how many volumes a node can attach.

use crate::key::{ObjectKey, Text};
use crate::label_selector::LabelSelector;
use crate::labels::Labels;
use crate::node_selector::NodeSelectorTerm;
use std::collections::BTreeMap;

/// Who may use a volume at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessMode {
    /// Pods of one node, writing.
    ReadWriteOnce,
    /// Pods of any node, reading.
    ReadOnlyMany,
    /// Pods of any node, writing.
    ReadWriteMany,
    /// One pod.
    ReadWriteOncePod,
}

/// A claim that a pod names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeUse {
    /// Name of the claim; it is in the namespace of the pod.
    pub claim: Text,
    /// True if the claim is made for this pod and must belong to it.
    pub own: bool,
}

/// A claim to a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Text,
    /// Name of its class; empty if it has none.
    pub class: Text,
    /// How many bytes it asks for.
    pub size: i64,
    /// Modes that the volume must offer, sorted.
    pub modes: Vec<AccessMode>,
    /// True for a raw device instead of a file system.
    pub block: bool,
    /// Name of its attributes class; empty if it has none.
    pub attributes_class: Text,
    /// Labels that the volume must have.
    pub selector: Option<LabelSelector>,
    /// The volume that it names.
    pub volume: Option<Text>,
    /// True once both sides have agreed on that volume.
    pub bound: bool,
    /// The node for which a volume is being made.
    pub selected_node: Option<Text>,
    /// True if its volume has vanished.
    pub lost: bool,
    /// True from the moment of its deletion until it is gone.
    pub terminating: bool,
    /// Identity of the pod that it was made for, if it was made for one.
    pub owner: Option<Text>,
}

impl VolumeClaim {
    /// A claim for any volume of no class; fields that matter are set on it.
    pub fn new(key: ObjectKey, uid: impl Into<Text>) -> Self {
        Self {
            key,
            uid: uid.into(),
            class: Text::default(),
            size: 0,
            modes: vec![AccessMode::ReadWriteOnce],
            block: false,
            attributes_class: Text::default(),
            selector: None,
            volume: None,
            bound: false,
            selected_node: None,
            lost: false,
            terminating: false,
            owner: None,
        }
    }

    /// The volume, once both sides have agreed on it.
    pub fn bound_volume(&self) -> Option<&Text> {
        self.volume.as_ref().filter(|_| self.bound)
    }

    /// True if only one pod may use it.
    pub fn is_exclusive(&self) -> bool {
        self.modes.contains(&AccessMode::ReadWriteOncePod)
    }
}

/// What a node attaches: volumes of one driver with the same handle are one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disk {
    /// Name of the CSI driver.
    pub driver: Text,
    /// The driver's own name for it.
    pub handle: Text,
}

/// The claim that a volume is kept for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimRef {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity; nothing if whoever comes by that name may have it.
    pub uid: Option<Text>,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Volume {
    /// Name.
    pub name: Text,
    /// Name of its class; empty if it has none.
    pub class: Text,
    /// How many bytes it has.
    pub size: i64,
    /// Modes that it offers, sorted.
    pub modes: Vec<AccessMode>,
    /// True for a raw device instead of a file system.
    pub block: bool,
    /// Name of its attributes class; empty if it has none.
    pub attributes_class: Text,
    /// Nodes that reach it: one of the terms must match. `None` means all.
    pub affinity: Option<Vec<NodeSelectorTerm>>,
    /// Labels; those of zones and regions restrict it to nodes with the same.
    pub labels: Labels,
    /// Who it is kept for.
    pub claim: Option<ClaimRef>,
    /// What is attached for it; nothing if it is no CSI volume.
    pub disk: Option<Disk>,
    /// True if it may be given to a claim.
    pub available: bool,
    /// True from the moment of its deletion until it is gone.
    pub terminating: bool,
}

impl Volume {
    /// True if it is kept for this claim.
    pub fn is_kept_for(&self, claim: &VolumeClaim) -> bool {
        let same =
            |kept: &ClaimRef| kept.key == claim.key && kept.uid.as_ref().is_none_or(|uid| *uid == claim.uid);
        self.claim.as_ref().is_some_and(same)
    }

    /// True if it can be given to a claim, wherever it can be reached from.
    pub fn suits(&self, claim: &VolumeClaim) -> bool {
        if self.size < claim.size
            || self.block != claim.block
            || self.attributes_class != claim.attributes_class
            || self.terminating
        {
            return false;
        }
        if self.claim.is_some() {
            return self.is_kept_for(claim);
        }
        self.available
            && self.class == claim.class
            && claim.modes.iter().all(|mode| self.modes.contains(mode))
            && claim.selector.as_ref().is_none_or(|selector| selector.matches(&self.labels))
    }

    /// True if its affinity accepts a node with these labels. Its own labels are another matter.
    pub fn is_reached_from(&self, labels: &Labels) -> bool {
        self.affinity.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches("", labels)))
    }
}

/// A class of volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StorageClass {
    /// Name.
    pub name: Text,
    /// Who makes volumes of it; nothing if nobody does.
    pub provisioner: Option<Text>,
    /// True if a claim waits until a pod that uses it has a node (`WaitForFirstConsumer`).
    pub waits: bool,
    /// Where volumes can be made: one of the terms must match the node. None means everywhere.
    pub topologies: Vec<NodeSelectorTerm>,
}

impl StorageClass {
    /// True if a volume can be made for a node with these labels.
    pub fn provisions_for(&self, labels: &Labels) -> bool {
        self.provisioner.is_some()
            && (self.topologies.is_empty() || self.topologies.iter().any(|term| term.matches("", labels)))
    }
}

/// How many volumes a node can attach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AttachLimits {
    /// Name of the node.
    pub node: Text,
    /// The most, by CSI driver. A driver that is not named has no limit.
    pub limits: BTreeMap<Text, u32>,
}

/// Everything about storage that there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// Classes.
    pub classes: Vec<StorageClass>,
    /// Volumes.
    pub volumes: Vec<Volume>,
    /// Claims.
    pub claims: Vec<VolumeClaim>,
    /// Limits of nodes.
    pub limits: Vec<AttachLimits>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> VolumeClaim {
        let key = ObjectKey::new("default", "c");
        VolumeClaim { class: "local".into(), size: 5, ..VolumeClaim::new(key, "uid-c") }
    }

    fn volume() -> Volume {
        Volume {
            name: "v".into(),
            class: "local".into(),
            size: 5,
            modes: vec![AccessMode::ReadWriteOnce, AccessMode::ReadOnlyMany],
            available: true,
            ..Volume::default()
        }
    }

    #[test]
    fn a_volume_suits_a_claim_as_upstream_matches_them() {
        assert!(volume().suits(&claim()));
        let kept = |uid: Option<&str>| Some(ClaimRef { key: claim().key, uid: uid.map(Text::from) });
        for (what, volume, suits) in [
            ("too small", Volume { size: 4, ..volume() }, false),
            ("of another class", Volume { class: "x".into(), ..volume() }, false),
            ("a device", Volume { block: true, ..volume() }, false),
            ("of other attributes", Volume { attributes_class: "gold".into(), ..volume() }, false),
            ("for reading only", Volume { modes: vec![AccessMode::ReadOnlyMany], ..volume() }, false),
            ("released", Volume { available: false, ..volume() }, false),
            ("being deleted", Volume { terminating: true, ..volume() }, false),
            ("kept for it", Volume { claim: kept(None), available: false, ..volume() }, true),
            ("kept for it by identity", Volume { claim: kept(Some("uid-c")), ..volume() }, true),
            ("kept for an earlier one", Volume { claim: kept(Some("uid-b")), ..volume() }, false),
        ] {
            assert_eq!(volume.suits(&claim()), suits, "{what}");
        }
        let selector = Some(LabelSelector::of_labels([("disk", "ssd")]));
        let picky = VolumeClaim { selector, ..claim() };
        assert!(!volume().suits(&picky));
        let labels = [("disk", "ssd")].into_iter().collect();
        assert!(Volume { labels, ..volume() }.suits(&picky));
    }
}
