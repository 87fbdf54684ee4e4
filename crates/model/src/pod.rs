//! A pod, as far as scheduling reads it.

use crate::amount::ResourceList;
use crate::group::Preemption;
use crate::inter_pod::InterPod;
use crate::key::{ObjectKey, Text};
use crate::labels::Labels;
use crate::node_selector::NodeAffinity;
use crate::port::HostPort;
use crate::preference::Preferences;
use crate::requests::Padding;
use crate::taint::Toleration;
use crate::time::Time;
use crate::volume::VolumeUse;

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Phase {
    /// Not started.
    #[default]
    Pending,
    /// Started, or not known to have ended.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

impl Phase {
    /// True if the pod has ended and occupies nothing.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pod {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Text,
    /// When it was made; older pods come first.
    pub created: Time,
    /// Who is to place it.
    pub scheduler_name: Text,
    /// Priority.
    pub priority: i32,
    /// The group that it is a member of; always of its own namespace.
    pub group: Option<ObjectKey>,
    /// Its number among the members of its group; neighbours in number are seated near each other.
    pub rank: Option<u32>,
    /// True if it leads the other members: it comes before them in rank, and is where their first slice is.
    pub leader: bool,
    /// Labels; other pods' wishes speak of them.
    pub labels: Labels,
    /// What it takes from a node, see [`crate::requests::PodResources::total`].
    pub requests: ResourceList,
    /// What it counts for beyond that when nodes are compared, see [`crate::requests::PodResources::padding`].
    pub padding: Padding,
    /// Which nodes it may use.
    pub affinity: NodeAffinity,
    /// Which taints it ignores.
    pub tolerations: Vec<Toleration>,
    /// Names of features that its node must declare, sorted, each once.
    pub features: Vec<Text>,
    /// Ports of the node that it needs for itself.
    pub ports: Vec<HostPort>,
    /// What it requires of other pods.
    pub inter_pod: InterPod,
    /// What it would like, of nodes and of other pods.
    pub preferences: Preferences,
    /// Images that it is made of, by full name (see [`crate::image::full_name`]), once for every use.
    pub images: Vec<Text>,
    /// Names of gates that keep it from being placed.
    pub gates: Vec<Text>,
    /// Whether it may take room away from others.
    pub preemption: Preemption,
    /// Names of the device claims that it needs.
    pub device_claims: Vec<Text>,
    /// The volume claims that it needs.
    pub volume_claims: Vec<VolumeUse>,
    /// Where room is promised to it while it is pending.
    pub nominated: Option<Text>,
    /// Where it is, once bound.
    pub node: Option<Text>,
    /// How far it has come.
    pub phase: Phase,
    /// True from the moment of its deletion until it is gone.
    pub terminating: bool,
}

impl Pod {
    /// A pending pod that asks for nothing but a seat; fields that matter are set on it.
    pub fn new(key: ObjectKey, uid: impl Into<Text>) -> Self {
        Self {
            key,
            uid: uid.into(),
            created: Time::default(),
            scheduler_name: Text::from("default-scheduler"),
            priority: 0,
            group: None,
            rank: None,
            leader: false,
            labels: Labels::default(),
            requests: crate::requests::PodResources::default().total(),
            padding: Padding::default(),
            affinity: NodeAffinity::default(),
            tolerations: Vec::new(),
            features: Vec::new(),
            ports: Vec::new(),
            inter_pod: InterPod::default(),
            preferences: Preferences::default(),
            images: Vec::new(),
            gates: Vec::new(),
            preemption: Preemption::default(),
            device_claims: Vec::new(),
            volume_claims: Vec::new(),
            nominated: None,
            node: None,
            phase: Phase::Pending,
            terminating: false,
        }
    }
}
