//! Why a unit cannot start: data first, one sentence second.

use crate::rules::{
    affinity, anti_affinity, attach_limit, cordon, declared_features, exclusive_claim, node_affinity, ports,
    resources, spread, taints, volume_matching, volume_reach,
};
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
    /// Groups name a composite that was not seen yet.
    CompositeMissing {
        /// The name.
        composite: ObjectKey,
    },
    /// Fewer groups of a composite than the minimum have their members. Not an error: the rest may still come.
    TooFewGroups {
        /// How many must start together.
        minimum: u32,
        /// Groups that can start or have started.
        ready: u32,
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
    /// Scheduling gates hold back members, and the rest of the unit waits for them.
    Gated {
        /// The first of them, by name.
        pod: ObjectKey,
        /// How many there are.
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
    /// The scheduler's own answer contradicted what it knows. A bug; the unit is set aside, and everything else goes on.
    Inconsistent {
        /// What did not fit together.
        what: Text,
    },
}

/// What kind of reason it is. Each calls for another action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonCode {
    /// A group was not seen.
    GroupMissing,
    /// A composite was not seen.
    CompositeMissing,
    /// Groups of a composite lack members.
    TooFewGroups,
    /// Members are missing.
    TooFewMembers,
    /// Gates hold back members.
    Gated,
    /// Members contradict each other or their group.
    Contradiction,
    /// Something is needed that is not placed yet.
    Unsupported,
    /// A volume claim is not ready.
    ClaimNotReady,
    /// There are no nodes.
    NoNodes,
    /// No node is in a domain of a required level.
    NoDomain,
    /// No domain of a required level has enough room.
    NoRoomInDomain,
    /// There is too little room.
    NoRoom,
    /// The search ended without an answer.
    Undecided,
    /// A bug.
    Inconsistent,
}

impl ReasonCode {
    /// As one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GroupMissing => "GroupMissing",
            Self::CompositeMissing => "CompositeMissing",
            Self::TooFewGroups => "TooFewGroups",
            Self::TooFewMembers => "TooFewMembers",
            Self::Gated => "Gated",
            Self::Contradiction => "Contradiction",
            Self::Unsupported => "Unsupported",
            Self::ClaimNotReady => "ClaimNotReady",
            Self::NoNodes => "NoNodes",
            Self::NoDomain => "NoDomain",
            Self::NoRoomInDomain => "NoRoomInDomain",
            Self::NoRoom => "NoRoom",
            Self::Undecided => "Undecided",
            Self::Inconsistent => "Inconsistent",
        }
    }
}

/// The part of a refusal that stays the same while numbers change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    /// What kind of reason it is.
    pub code: ReasonCode,
    /// What is in the way: a resource, a claim, a label key, a rule.
    pub constraint: Option<Text>,
    /// The domain that is spoken of.
    pub domain: Option<Text>,
}

impl Refusal {
    /// What stays the same while numbers change. A reason that differs calls for another action.
    pub fn reason(&self) -> Reason {
        let of = |code, constraint: Option<String>| Reason {
            code,
            constraint: constraint.map(Text::from),
            domain: None,
        };
        match self {
            Self::GroupMissing { group } => of(ReasonCode::GroupMissing, Some(group.to_string())),
            Self::CompositeMissing { composite } => {
                of(ReasonCode::CompositeMissing, Some(composite.to_string()))
            }
            Self::TooFewGroups { .. } => of(ReasonCode::TooFewGroups, None),
            Self::TooFewMembers { gated, .. } => {
                of(ReasonCode::TooFewMembers, (*gated > 0).then(|| "gates".to_owned()))
            }
            Self::Gated { pod, .. } => of(ReasonCode::Gated, Some(pod.to_string())),
            Self::Contradiction(what) => of(ReasonCode::Contradiction, Some(what.to_string())),
            Self::Unsupported(what) => of(ReasonCode::Unsupported, Some(what.to_string())),
            Self::Claim { claim, problem, .. } => {
                of(ReasonCode::ClaimNotReady, Some(format!("{claim} {problem}")))
            }
            Self::NoRoom(room) => room.reason(),
            Self::Undecided(room) => Reason { code: ReasonCode::Undecided, ..room.reason() },
            Self::Inconsistent { what } => of(ReasonCode::Inconsistent, Some(what.to_string())),
        }
    }
}

impl Refusal {
    /// How many members were to be placed or to be there, if that is what it is about.
    pub(crate) fn needed(&self) -> Option<u32> {
        match self {
            Self::NoRoom(room) | Self::Undecided(room) => Some(room.needed),
            Self::TooFewMembers { minimum, .. } | Self::TooFewGroups { minimum, .. } => Some(*minimum),
            _ => None,
        }
    }
}

impl NoRoom {
    fn reason(&self) -> Reason {
        if self.nodes == 0 && self.levels.is_empty() {
            return Reason { code: ReasonCode::NoNodes, constraint: None, domain: None };
        }
        if let Some(level) = self.levels.iter().find(|level| level.best.is_none()) {
            let constraint = Some(level.key.clone());
            return Reason { code: ReasonCode::NoDomain, constraint, domain: None };
        }
        let scarcest = self.short.first().map(|short| Text::from(short.resource.name()));
        let constraint = scarcest.or_else(|| {
            let (reason, _) = self.ruled_out.first()?;
            Some(Text::from(reason.to_string()))
        });
        match self.levels.last().and_then(|level| level.best.as_ref()) {
            Some((domain, _)) => {
                Reason { code: ReasonCode::NoRoomInDomain, constraint, domain: Some(domain.clone()) }
            }
            None => Reason { code: ReasonCode::NoRoom, constraint, domain: None },
        }
    }
}

/// What is not placed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsupported {
    /// Devices by claim.
    DeviceClaim(Text),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeviceClaim(name) => write!(f, "resource claim {name}")?,
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
    /// Groups and composites do not make a tree.
    Tree(Text),
    /// Groups of a composite run in several domains of a level of which it requires one. Where a group would go that does
    /// not run yet cannot be told.
    Scattered {
        /// The composite.
        composite: Text,
        /// The label key of the level.
        key: Text,
        /// The domains, by name.
        domains: Vec<Text>,
    },
}

/// Members that run in several domains of a level that is required, or on nodes that are in none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scattered {
    /// The label key of the level.
    pub key: Text,
    /// Domains and how many members run there, by name.
    pub domains: Vec<(Text, u32)>,
    /// Members that run on nodes without the label.
    pub outside: u32,
}

impl fmt::Display for Scattered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "running members are not in one domain of {}:", self.key)?;
        for (index, (domain, members)) in self.domains.iter().enumerate() {
            write!(f, "{} {members} in {domain}", if index == 0 { "" } else { "," })?;
        }
        if self.outside > 0 {
            let lead = if self.domains.is_empty() { "" } else { "," };
            write!(f, "{lead} {} on nodes without that label", self.outside)?;
        }
        Ok(())
    }
}

/// One level that is required, and how far its domains are from having room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelShortage {
    /// The group or composite that requires it, if the unit has several.
    pub group: Option<Text>,
    /// The label key.
    pub key: Text,
    /// Domains that members could go to. Where members run already there is only one.
    pub domains: u32,
    /// How many of them have too little room, each kind of member looked at by itself.
    pub short: u32,
    /// The domain with most room, and for how many members; ties go by name. Nothing if there are no domains.
    pub best: Option<(Text, u32)>,
    /// How many members are to be placed.
    pub needed: u32,
    /// True if members that run already leave no choice.
    pub is_pinned: bool,
    /// If there are no domains at all: labels that no node has together, the level's own last. It alone if no node has
    /// that one.
    pub missing_labels: Vec<Text>,
}

impl fmt::Display for LevelShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, key, domains, short, best, needed, is_pinned, missing_labels } = self;
        if let Some(group) = group {
            write!(f, "{group}: ")?;
        }
        let Some((name, fit)) = best else {
            return match &missing_labels[..] {
                [] => write!(f, "no node has the label {key}"),
                [label] => write!(f, "no node has the label {label}"),
                [wide @ .., last] => write!(f, "no node has the labels {} and {last}", wide.join(", ")),
            };
        };
        write!(f, "{name}, ")?;
        match (is_pinned, domains) {
            (true, _) => write!(f, "the {key} where members run,")?,
            (false, 1) => write!(f, "the only {key},")?,
            (false, _) => write!(f, "the roomiest of {domains} values of {key} ({short} too small),")?,
        }
        write!(f, " has room for {fit} of {needed} members")?;
        if fit < needed {
            write!(f, ", {} short", needed - fit)?;
        }
        Ok(())
    }
}

/// How far the cluster is from having room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// What is required of the topology, from the top of the tree and from wide to narrow. What is said above is then
    /// about the best domain.
    pub levels: Vec<LevelShortage>,
    /// Members that run where they should not.
    pub scattered: Option<Scattered>,
    /// Members among the needed that scheduling gates hold back: the others start only where these have room, too.
    pub gated: u32,
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
    /// It does not declare a feature that a member needs.
    Feature {
        /// The feature.
        name: Text,
    },
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
    /// A pod that must be in the same domain is not.
    PodAffinity,
    /// A pod is in the same domain that must not be, by a term of either.
    PodAntiAffinity,
    /// Pods would be spread too unevenly, or the node lacks the label to spread by.
    Spread,
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str(cordon::WORDS),
            Self::Taint { key } => taints::words(key, f),
            Self::Affinity => f.write_str(node_affinity::WORDS),
            Self::Feature { name } => declared_features::words(name, f),
            Self::Insufficient(resource) => resources::words(resource, f),
            Self::VolumeOutOfReach => f.write_str(volume_reach::WORDS),
            Self::NoVolume => f.write_str(volume_matching::WORDS),
            Self::AttachLimit => f.write_str(attach_limit::WORDS),
            Self::ExclusiveClaim => f.write_str(exclusive_claim::WORDS),
            Self::Ports => f.write_str(ports::WORDS),
            Self::PodAffinity => f.write_str(affinity::WORDS),
            Self::PodAntiAffinity => f.write_str(anti_affinity::WORDS),
            Self::Spread => f.write_str(spread::WORDS),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GroupMissing { group } => write!(f, "waiting for pod group {group} to be created"),
            Self::CompositeMissing { composite } => {
                write!(f, "waiting for composite pod group {composite} to be created")
            }
            Self::TooFewGroups { minimum, ready } => {
                write!(f, "waiting for groups: {minimum} must start together and {ready} have their members")
            }
            Self::TooFewMembers { minimum, observed, gated } => {
                write!(f, "waiting for members: {minimum} must start together and {observed} are ready")?;
                if *gated > 0 {
                    write!(f, ", {gated} held back by scheduling gates")?;
                }
                Ok(())
            }
            Self::Gated { pod, gated } => {
                write!(f, "waiting for pod {}", pod.name)?;
                match gated {
                    0 | 1 => f.write_str(", which scheduling gates hold back"),
                    _ => write!(f, " and {} more, which scheduling gates hold back", gated - 1),
                }
            }
            Self::Contradiction(contradiction) => write!(f, "{contradiction}"),
            Self::Unsupported(what) => write!(f, "{what}"),
            Self::Claim { pod, claim, problem } => {
                write!(f, "persistent volume claim {claim} of pod {} {problem}", pod.name)
            }
            Self::NoRoom(room) => write!(f, "{room}"),
            Self::Inconsistent { what } => write!(
                f,
                "set aside because of a bug in the scheduler ({what}); it is tried again when it changes, and now and then"
            ),
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
            Self::Tree(what) => f.write_str(what),
            Self::Scattered { composite, key, domains } => write!(
                f,
                "groups of composite pod group {composite} run in several domains of {key} ({}), and it requires one; no \
                 further group of it is placed",
                domains.join(", ")
            ),
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
        for level in &self.levels {
            write!(f, "{level}; ")?;
        }
        if let Some(scattered) = &self.scattered {
            write!(f, "{scattered}; ")?;
        }
        if self.gated > 0 {
            let members = if self.gated == 1 { "member" } else { "members" };
            write!(f, "{} gated {members} must have room in the same domain; ", self.gated)?;
        }
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
        // The beginning is kube-scheduler's: people and their tools look for it.
        write!(f, "0/{} nodes are available{more}", self.nodes)?;
        for (index, (reason, nodes)) in self.ruled_out.iter().enumerate() {
            write!(f, "{} {nodes} {reason}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}
