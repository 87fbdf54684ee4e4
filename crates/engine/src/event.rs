//! What the engine is told.

use tutti_model::{Group, Labels, Node, ObjectKey, Pod, Text};

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
    /// A binding that was decided did certainly not happen: the seat is free and the pod pending again. The
    /// group is tried again after a pause that grows with every failure in a row.
    BindFailed {
        /// The pod that was to be bound.
        pod: ObjectKey,
        /// Its identity; a failure that is told of an earlier pod of that name is ignored.
        uid: Text,
    },
}
