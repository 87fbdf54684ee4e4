//! What the engine is told.

use crate::decision::UnitKey;
use tutti_model::scenario::Scenario;
use tutti_model::{
    AttachLimits, Group, Labels, Node, ObjectKey, Pod, ResourceList, Storage, StorageClass, Text, Time,
    Volume, VolumeClaim,
};

/// A fact about the cluster. Facts may come in any order: a pod may be seen before its node or its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A node was seen, for the first time or changed.
    NodeSet(Box<Node>),
    /// A node is gone.
    NodeGone(Text),
    /// A pod was seen, for the first time or changed.
    PodSet(Box<Pod>),
    /// A pod is gone.
    PodGone(ObjectKey),
    /// A group was seen, for the first time or changed.
    GroupSet(Box<Group>),
    /// A group is gone; members that stay wait for one of that name.
    GroupGone(ObjectKey),
    /// A group of groups was seen, for the first time or changed.
    CompositeSet(Box<Group>),
    /// A group of groups is gone; children that stay wait for one of that name.
    CompositeGone(ObjectKey),
    /// A namespace was seen; terms about pods may select namespaces by label. An unseen one has no labels.
    NamespaceSet {
        /// Its name.
        name: Text,
        /// Its labels; none once it is gone.
        labels: Labels,
    },
    /// A volume claim was seen, for the first time or changed.
    ClaimSet(Box<VolumeClaim>),
    /// A volume claim is gone.
    ClaimGone(ObjectKey),
    /// A volume was seen, for the first time or changed.
    VolumeSet(Box<Volume>),
    /// A volume is gone.
    VolumeGone(Text),
    /// A class of volumes was seen, for the first time or changed.
    ClassSet(Box<StorageClass>),
    /// A class of volumes is gone.
    ClassGone(Text),
    /// How many volumes a node can attach; no limits once that is not known any more.
    AttachLimitsSet(Box<AttachLimits>),
    /// Seats are promised to a unit until a time: nobody of its priority or below takes them meanwhile. Replaces what
    /// was promised to it before; no seats end the promise.
    Hold(Box<Hold>),
    /// A pod is on a node, as whoever bound it knows before the pod is seen there. Nothing else about it has changed.
    PodBound {
        /// The pod.
        pod: ObjectKey,
        /// Its identity; what is told of an earlier pod of that name is ignored.
        uid: Text,
        /// Where it is.
        node: Text,
    },
    /// A binding that was decided did certainly not happen: the seat is free and the pod pending again. The
    /// group is tried again after a pause that grows with every failure in a row.
    BindFailed {
        /// The pod that was to be bound.
        pod: ObjectKey,
        /// Its identity; a failure that is told of an earlier pod of that name is ignored.
        uid: Text,
    },
    /// A decision is taken back before its binding was sent: the seat is free and the pod pending again.
    Withdrawn {
        /// The pod that was to be bound.
        pod: ObjectKey,
        /// Its identity, as above.
        uid: Text,
    },
    /// A unit, or the whole tree of a group, is not to be tried until that is resumed, and keeps no seats meanwhile.
    Suspend(UnitKey),
    /// A unit may be tried again.
    Resume(UnitKey),
    /// Somebody else has decided until now: every gang that has some of its members but not enough is looked at once
    /// before all other work.
    TakeOver,
}

impl Event {
    /// All that a scenario tells.
    pub fn of_scenario(scenario: &Scenario) -> Vec<Self> {
        let namespaces = scenario.namespaces.iter().map(|namespace| Self::NamespaceSet {
            name: namespace.name.clone(),
            labels: namespace.labels.clone(),
        });
        let nodes = scenario.nodes.iter().map(|node| Self::NodeSet(Box::new(node.clone())));
        let composites = scenario.composites.iter().map(|group| Self::CompositeSet(Box::new(group.clone())));
        let groups = scenario.groups.iter().map(|group| Self::GroupSet(Box::new(group.clone())));
        let pods = scenario.pods.iter().map(|pod| Self::PodSet(Box::new(pod.clone())));
        let storage = Self::of_storage(&scenario.storage);
        namespaces.chain(nodes).chain(composites).chain(groups).chain(storage).chain(pods).collect()
    }

    /// All that there is to tell about storage.
    pub fn of_storage(storage: &Storage) -> Vec<Self> {
        let classes = storage.classes.iter().map(|class| Self::ClassSet(Box::new(class.clone())));
        let volumes = storage.volumes.iter().map(|volume| Self::VolumeSet(Box::new(volume.clone())));
        let claims = storage.claims.iter().map(|claim| Self::ClaimSet(Box::new(claim.clone())));
        let limits = storage.limits.iter().map(|limits| Self::AttachLimitsSet(Box::new(limits.clone())));
        classes.chain(volumes).chain(claims).chain(limits).collect()
    }
}

/// A promise of seats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// To whom.
    pub unit: UnitKey,
    /// Who has a higher priority than this may take the seats all the same.
    pub priority: i32,
    /// Until when; `None` until the unit has seats or needs none.
    pub expires: Option<Time>,
    /// Where, and how much.
    pub seats: Vec<HeldSeat>,
    /// Why.
    pub reason: HoldReason,
}

/// Why seats are promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum HoldReason {
    /// A caller of the engine asked for it.
    #[default]
    Told,
    /// A pod was nominated. The engine makes and ends these itself.
    Nominated,
    /// Members of an incomplete gang have left these seats, and others will come in their place. The engine makes these
    /// itself.
    Vacated,
    /// An incomplete gang could use these seats, but they are not enough. The engine makes these itself.
    Usable,
    /// A gang has waited for so long that what becomes free here is kept for it. The engine makes these itself.
    Planned,
}

/// Seats on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSeat {
    /// The node.
    pub node: Text,
    /// What one pod takes.
    pub requests: ResourceList,
    /// How many pods.
    pub count: u32,
}
