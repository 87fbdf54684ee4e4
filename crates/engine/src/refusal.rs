//! Why a unit cannot start: data first, one sentence second.

use crate::volumes::attach_driver;
use std::fmt;
use tutti_model::{ObjectKey, Resource, Text};

/// Why a unit waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Pods name a group that was not seen yet.
    GroupMissing {
        /// The name.
        group: ObjectKey,
    },
    /// Fewer members than the minimum were seen. Not an error: the rest may still come.
    TooFewMembers {
        /// How many must start together.
        minimum: u32,
        /// Members that were seen and can start or have started.
        observed: u32,
        /// Members that were seen but are held back by scheduling gates.
        gated: u32,
    },
    /// Members contradict each other or their group. Waiting does not help; somebody must change them.
    Contradiction(Contradiction),
    /// Members need something that Tutti does not place yet; starting them anyway would be wrong.
    Unsupported(Unsupported),
    /// So many members cannot be tried because of their volume claims that the rest is too few.
    Claim {
        /// The first of these members, by name.
        pod: ObjectKey,
        /// The claim.
        claim: Text,
        /// What is wrong with it.
        problem: ClaimProblem,
    },
    /// No placement exists; this is proven.
    NoRoom(NoRoom),
    /// No placement was found within the search budget, and none was excluded.
    Undecided(NoRoom),
}

/// What is not placed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsupported {
    /// Devices by claim.
    DeviceClaim(Text),
    /// All members in one domain of this label key.
    GroupTopology(Text),
    /// Groups of groups.
    Composite(ObjectKey),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeviceClaim(name) => write!(f, "resource claim {name}")?,
            Self::GroupTopology(key) => write!(f, "topology constraint {key} of the group")?,
            Self::Composite(key) => write!(f, "composite pod group {key}")?,
        }
        f.write_str(" is not supported yet; it waits rather than being placed without")
    }
}

/// Why a pod cannot be placed although there may be room: its volume claim is not ready for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimProblem {
    /// There is no such claim.
    Missing,
    /// It was to be made for the pod, but there is one of that name that was not.
    OfAnotherPod,
    /// It is being deleted.
    Terminating,
    /// Its volume has vanished.
    Lost,
    /// It names a volume that was not seen.
    VolumeMissing {
        /// The volume.
        volume: Text,
    },
    /// It must be bound before a pod can use it, and is not.
    Unbound,
    /// There is no such class.
    ClassMissing {
        /// The class.
        class: Text,
    },
    /// Only one pod may use it, and another does.
    InUse {
        /// The other pod, of the same namespace.
        pod: Text,
    },
}

impl fmt::Display for ClaimProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("does not exist"),
            Self::OfAnotherPod => f.write_str("was not made for this pod"),
            Self::Terminating => f.write_str("is being deleted"),
            Self::Lost => f.write_str("has lost its volume"),
            Self::VolumeMissing { volume } => write!(f, "is bound to volume {volume}, which does not exist"),
            Self::Unbound => f.write_str("is not bound yet, and its class does not wait for a pod"),
            Self::ClassMissing { class } => write!(f, "is of storage class {class}, which does not exist"),
            Self::InUse { pod } => write!(f, "is for one pod only, and pod {pod} uses it"),
        }
    }
}

/// Members that cannot be decided together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contradiction {
    /// Members are for different schedulers.
    SchedulerNames(Vec<Text>),
    /// Members have another priority than their group, or different ones.
    Priorities {
        /// The group's own priority, if it has one.
        group: Option<i32>,
        /// Priorities of the members, each once, ascending.
        members: Vec<i32>,
    },
}

/// How far the cluster is from having room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRoom {
    /// Members that have to be placed together now.
    pub needed: u32,
    /// The most members that were found to fit together. With one kind of member it is proven to be the most.
    pub fit: u32,
    /// The node that takes most of those that fit, and how many; ties go by name.
    pub roomiest: Option<(Text, u32)>,
    /// Nodes in the cluster.
    pub nodes: u32,
    /// What is short, the scarcest first.
    pub short: Vec<Shortage>,
    /// Why nodes have no room for one more member, the most frequent reason first.
    pub ruled_out: Vec<(NodeReason, u32)>,
}

/// A resource of which there is too little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The resource.
    pub resource: Resource,
    /// How much of it the missing members ask for.
    pub missing: i64,
}

/// Why a node cannot take one more member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeReason {
    /// It was cordoned.
    Unschedulable,
    /// It has a taint that a member does not tolerate.
    Taint {
        /// The taint's key.
        key: Text,
    },
    /// Node selector or required node affinity does not match.
    Affinity,
    /// There is too little of a resource left.
    Insufficient(Resource),
    /// A volume of a member cannot be reached from there.
    VolumeOutOfReach,
    /// No volume is free that a claim of a member could be given there.
    NoVolume,
    /// Volumes that members share with other pods are too many to be attached there.
    AttachLimit,
    /// Only one pod may use a claim, and several members need it.
    ExclusiveClaim,
    /// Another pod has the port.
    Ports,
    /// A pod that must be near is not.
    PodAffinity,
    /// A pod is near that must not be, by the wish of either.
    PodAntiAffinity,
    /// Pods would be spread too unevenly, or the node lacks the label to spread by.
    Spread,
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("cordoned"),
            Self::Taint { key } => write!(f, "untolerated taint {key}"),
            Self::Affinity => f.write_str("not selected by node selector or affinity"),
            Self::Insufficient(resource) => match attach_driver(resource) {
                Some(driver) => write!(f, "no more volumes of {driver} can be attached"),
                None => write!(f, "too little {resource}"),
            },
            Self::VolumeOutOfReach => f.write_str("out of reach of a volume"),
            Self::NoVolume => f.write_str("no free volume for a claim"),
            Self::AttachLimit => f.write_str("no more volumes can be attached"),
            Self::ExclusiveClaim => f.write_str("volume claim for one pod only"),
            Self::Ports => f.write_str("host port in use"),
            Self::PodAffinity => f.write_str("pod affinity not satisfied"),
            Self::PodAntiAffinity => f.write_str("pod anti-affinity not satisfied"),
            Self::Spread => f.write_str("topology spread not satisfied"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GroupMissing { group } => write!(f, "waiting for pod group {group} to be created"),
            Self::TooFewMembers { minimum, observed, gated } => {
                write!(f, "waiting for members: {minimum} must start together and {observed} are ready")?;
                if *gated > 0 {
                    write!(f, ", {gated} held back by scheduling gates")?;
                }
                Ok(())
            }
            Self::Contradiction(contradiction) => write!(f, "{contradiction}"),
            Self::Unsupported(what) => write!(f, "{what}"),
            Self::Claim { pod, claim, problem } => {
                write!(f, "persistent volume claim {claim} of pod {} {problem}", pod.name)
            }
            Self::NoRoom(room) => write!(f, "{room}"),
            Self::Undecided(room) => {
                write!(
                    f,
                    "no placement found within the search budget, though one may exist; best found: {room}"
                )
            }
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchedulerNames(names) => {
                write!(f, "members name different schedulers ({}); they must all name one", names.join(", "))
            }
            Self::Priorities { group, members } => {
                let members: Vec<String> = members.iter().map(ToString::to_string).collect();
                let members = members.join(", ");
                match group {
                    Some(group) => write!(
                        f,
                        "members have priority {members} but their group has {group}; they must be equal"
                    ),
                    None => write!(f, "members have different priorities ({members}); they must be equal"),
                }
            }
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.needed > 1 {
            write!(f, "{} of {} members fit", self.fit, self.needed)?;
            if let Some((node, members)) = &self.roomiest {
                write!(f, " (most on {node}: {members})")?;
            }
            for (index, shortage) in self.short.iter().enumerate() {
                let lead = if index == 0 { ", short of " } else { " and " };
                let amount = shortage.resource.show(shortage.missing);
                write!(f, "{lead}{amount} {}", shortage.resource)?;
            }
            f.write_str("; ")?;
        }
        if self.nodes == 0 {
            return f.write_str("there are no nodes");
        }
        let more = if self.fit > 0 { " for one more" } else { "" };
        write!(f, "0/{} nodes have room{more}", self.nodes)?;
        for (index, (reason, nodes)) in self.ruled_out.iter().enumerate() {
            write!(f, "{} {nodes} {reason}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}
