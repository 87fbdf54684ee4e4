//! Groups of pods that are decided together, and groups of groups.

use crate::key::{ObjectKey, Text};
use crate::time::Time;
use crate::topology::Topology;
use std::num::NonZeroU32;

/// How many members have to be placed together. Of a group the members are pods, of a composite they are groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Each member for itself, in one decision.
    Basic,
    /// At least this many together, or none.
    Gang {
        /// The minimum.
        min_count: NonZeroU32,
    },
}

impl Policy {
    /// How many members must have a place for the group to start.
    pub fn minimum(self) -> u32 {
        match self {
            Self::Basic => 1,
            Self::Gang { min_count } => min_count.get(),
        }
    }
}

/// What goes together when room is taken away from a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Disruption {
    /// Pods, one by one.
    #[default]
    Single,
    /// All of it.
    All,
}

/// Whether somebody may take room away from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Preemption {
    /// From whoever has a lower priority.
    #[default]
    LowerPriority,
    /// From nobody.
    Never,
}

/// What becomes of a group while scheduling gates hold back a member that has no place yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WhenGated {
    /// Nobody of it is placed, as Kubernetes does it.
    #[default]
    Hold,
    /// The others are placed, where the gated ones have room, too.
    Start,
}

/// A resource claim that all members of a group share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupClaim {
    /// Name by which members refer to it.
    pub name: Text,
    /// Where it comes from.
    pub source: ClaimSource,
}

/// Where a claim comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimSource {
    /// A claim that exists.
    Claim(Text),
    /// A claim that is made from a template.
    Template(Text),
}

/// What groups and composites have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity over time: a group that was deleted and made again has another one.
    pub uid: Text,
    /// Of the object that was read; conditions refer to it.
    pub generation: i64,
    /// When it was made; older groups come first.
    pub created: Time,
    /// The composite that it is part of; always of its own namespace.
    pub parent: Option<ObjectKey>,
    /// Policy.
    pub policy: Policy,
    /// Where its members are to be, relative to each other.
    pub topology: Topology,
    /// Priority of all members together; without one, that of the members decides if they agree.
    pub priority: Option<i32>,
    /// What goes together when it is disrupted.
    pub disruption: Disruption,
    /// Whether it may preempt others.
    pub preemption: Preemption,
    /// Claims that its members share; composites have none.
    pub claims: Vec<GroupClaim>,
    /// What gated members mean for the others; composites have no members of their own.
    pub when_gated: WhenGated,
}

impl Group {
    /// A group of its own with the basic policy; fields that matter are set on it. Groups do not name their members,
    /// members name their group.
    pub fn new(key: ObjectKey, uid: impl Into<Text>) -> Self {
        Self {
            key,
            uid: uid.into(),
            generation: 1,
            created: Time::default(),
            parent: None,
            policy: Policy::Basic,
            topology: Topology::default(),
            priority: None,
            disruption: Disruption::default(),
            preemption: Preemption::default(),
            claims: Vec::new(),
            when_gated: WhenGated::default(),
        }
    }
}
