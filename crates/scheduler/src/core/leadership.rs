//! Whether we may act.
//!
//! Bindings have no fencing: the server carries out what an earlier leader sent, no matter who leads by then. So nothing is
//! sent without a lease that lasts. A core lives for one term at most: the process that runs it waits until nothing of an earlier
//! leader can be under way before it makes one, and drops it, with the answers to all it has asked, when the term ends.

use super::Core;
use tutti_model::Time;

/// Whether we lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leadership {
    /// No other process could lead.
    Alone,
    /// Not elected yet.
    Standby,
    /// We lead until then, unless the lease is renewed.
    Elected(Time),
}

impl Leadership {
    /// True if something may be sent now.
    pub(crate) fn may_act(self, now: Time) -> bool {
        match self {
            Self::Alone => true,
            Self::Standby => false,
            Self::Elected(until) => now < until,
        }
    }

    /// True if it is for us to say something.
    pub(crate) fn speaks(self) -> bool {
        self != Self::Standby
    }
}

impl Core {
    pub(super) fn elected(&mut self, until: Time) {
        self.leadership = Leadership::Elected(until);
    }

    pub(super) fn renewed(&mut self, until: Time) {
        if let Leadership::Elected(end) = &mut self.leadership {
            *end = until;
        }
    }
}
