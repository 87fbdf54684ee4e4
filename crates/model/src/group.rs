//! Groups of pods that are decided together.

use crate::key::{ObjectKey, Text};
use crate::time::Time;
use std::num::NonZeroU32;

/// How many members have to be placed together.
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

/// A group, as far as scheduling reads it. Members name it; it does not name them.
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
    /// Policy.
    pub policy: Policy,
    /// Priority of all members together; without one, that of the members decides if they agree.
    pub priority: Option<i32>,
}
