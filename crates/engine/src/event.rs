//! What the engine is told.

use crate::decision::UnitKey;
use tutti_model::{Group, Labels, Node, ObjectKey, Pod, ResourceList, Text, Time};

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
    /// A namespace was seen; wishes about pods may select namespaces by label. An unseen one has no labels.
    NamespaceSet {
        /// Its name.
        name: Text,
        /// Its labels; none once it is gone.
        labels: Labels,
    },
    /// Seats are promised to a unit until a time: nobody of its priority or below takes them meanwhile. Replaces what
    /// was promised to it before; no seats end the promise.
    Hold(Box<Hold>),
    /// A binding that was decided did certainly not happen: the seat is free and the pod pending again. The
    /// group is tried again after a pause that grows with every failure in a row.
    BindFailed {
        /// The pod that was to be bound.
        pod: ObjectKey,
        /// Its identity; a failure that is told of an earlier pod of that name is ignored.
        uid: Text,
    },
}

/// A promise of seats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// To whom.
    pub unit: UnitKey,
    /// Who has a higher priority than this may take the seats all the same.
    pub priority: i32,
    /// Until when.
    pub expires: Time,
    /// Where, and how much.
    pub seats: Vec<HeldSeat>,
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
