//! What the engine answers.

use crate::refusal::Refusal;
use crate::volumes::ClaimPlan;
use std::fmt;
use tutti_model::{ObjectKey, Text, Time};

/// What is decided as one: a pod for itself, or a group with all its members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitKey {
    /// A group.
    Group(ObjectKey),
    /// A pod without a group.
    Pod(ObjectKey),
}

impl UnitKey {
    /// Namespace and name of the pod or group.
    pub fn object(&self) -> &ObjectKey {
        match self {
            Self::Group(key) | Self::Pod(key) => key,
        }
    }
}

impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(key) => write!(f, "group {key}"),
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
}
