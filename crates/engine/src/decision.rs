//! What the engine answers.

use crate::refusal::{Refusal, Scattered};
use crate::state::volumes::ClaimPlan;
use std::fmt;
use tutti_model::{ObjectKey, Text, Time};

/// What is decided as one: a pod for itself, a group with all its members, or a composite with all its groups.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitKey {
    /// A group.
    Group(ObjectKey),
    /// A group of groups.
    Composite(ObjectKey),
    /// A pod without a group.
    Pod(ObjectKey),
}

impl UnitKey {
    /// Namespace and name of the pod, group or composite.
    pub fn object(&self) -> &ObjectKey {
        match self {
            Self::Group(key) | Self::Composite(key) | Self::Pod(key) => key,
        }
    }
}

impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(key) => write!(f, "group {key}"),
            Self::Composite(key) => write!(f, "composite {key}"),
            Self::Pod(key) => write!(f, "pod {key}"),
        }
    }
}

/// One answer of [`crate::Engine::decide`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Bind these pods, all of them. The engine counts their seats as taken from now on.
    Place(Placement),
    /// This unit cannot start now. Told again only when the reason changes.
    Wait(Waiting),
    /// There is more to decide, but this call has done enough work: ask again once other things were seen to.
    More,
    /// There is nothing to decide until something happens or until this time.
    Idle {
        /// When to ask again even if nothing happens.
        wake_at: Option<Time>,
    },
}

/// A unit that starts, or members that join one that has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Which unit.
    pub unit: UnitKey,
    /// Who goes where, by pod name.
    pub seats: Vec<Seat>,
    /// Volume claims of these pods that are not bound yet, by name, and what is to become of them before any of the
    /// pods is bound.
    pub claims: Vec<(ObjectKey, ClaimPlan)>,
    /// Members that wanted a seat and got none, by name. They are tried again when there is room; their number
    /// is not proven to be the smallest possible.
    pub left_out: Vec<ObjectKey>,
    /// How the group stands now; of a composite, every group and composite of its tree, from the top.
    pub groups: Vec<Standing>,
}

/// How a group or composite stands once a decision is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Which one.
    pub group: UnitKey,
    /// How many members must have a place; of a composite, how many of its children must have what they need.
    pub minimum: u32,
    /// How many have.
    pub placed: u32,
    /// What it waits for by itself, whatever becomes of the rest of its tree.
    pub waits: Option<Refusal>,
    /// Members that run where the topology that it requires does not allow them. New ones go where most of them are.
    pub scattered: Option<Scattered>,
}

impl Standing {
    /// True if enough of it has a place.
    pub fn is_met(&self) -> bool {
        self.placed >= self.minimum
    }
}

/// A pod and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// The pod.
    pub pod: ObjectKey,
    /// Identity of the pod.
    pub uid: Text,
    /// The node.
    pub node: Text,
}

/// A unit that cannot start, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which unit.
    pub unit: UnitKey,
    /// The members that wait, by name.
    pub members: Vec<ObjectKey>,
    /// Why.
    pub refusal: Refusal,
    /// How the groups and composites of its tree stand, from the top. Empty unless it is a composite.
    pub groups: Vec<Standing>,
    /// It has waited for so long that what becomes free is kept for it.
    pub is_planned: bool,
}
