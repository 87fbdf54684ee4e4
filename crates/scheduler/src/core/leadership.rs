//! Whether we may act.
//!
//! Bindings have no fencing: the server carries out what an earlier leader sent, whoever leads by then. So nothing is
//! sent without a lease that lasts, and a new leader first waits until nothing of an earlier one can be under way, then
//! lists everything, and then acts.

use super::Core;
use super::message::{Effect, Fact};
use std::time::Duration;
use tutti_model::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Somebody else leads, or nobody does.
    Standby,
    /// We lead; requests of an earlier leader may still be under way until then.
    Gap(Time),
    /// We lead.
    Acting,
}

/// Whether we lead.
#[derive(Debug)]
pub(crate) struct Leadership {
    role: Role,
    /// When the lease ends; `None` if there is none because nobody else could lead.
    until: Option<Time>,
    /// What is known is from before somebody else led.
    outdated: bool,
}

impl Leadership {
    /// Nobody else could lead.
    pub(crate) fn alone() -> Self {
        Self { role: Role::Acting, until: None, outdated: false }
    }

    /// Somebody else may lead.
    pub(crate) fn standby() -> Self {
        Self { role: Role::Standby, until: None, outdated: false }
    }

    /// True if something may be sent now.
    pub(crate) fn may_act(&self, now: Time) -> bool {
        self.role == Role::Acting && self.until.is_none_or(|until| now < until)
    }

    /// True if it is for us to say something.
    pub(crate) fn speaks(&self) -> bool {
        self.role == Role::Acting
    }

    /// When the gap ends.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        match self.role {
            Role::Gap(until) => Some(until),
            Role::Standby | Role::Acting => None,
        }
    }
}

impl Core {
    pub(super) fn elected(&mut self, gap: Duration, until: Time, now: Time) {
        let waits = now + gap > now || self.leadership.outdated;
        let role = if waits { Role::Gap(now + gap) } else { Role::Acting };
        self.leadership.role = role;
        self.leadership.until = Some(until);
        self.report(Fact::Leading { gap });
    }

    pub(super) fn renewed(&mut self, until: Time) {
        if self.leadership.role != Role::Standby {
            self.leadership.until = Some(until);
        }
    }

    pub(super) fn deposed(&mut self) {
        if self.leadership.role == Role::Standby {
            return;
        }
        self.leadership = Leadership { role: Role::Standby, until: None, outdated: true };
        self.forget_everything();
        self.report(Fact::Deposed);
    }

    /// Begins to act once nothing of an earlier leader can be under way.
    pub(super) fn end_gap(&mut self, now: Time) {
        if let Role::Gap(until) = self.leadership.role
            && until <= now
        {
            self.leadership.role = Role::Acting;
            self.leadership.outdated = false;
            self.forget_everything();
            self.effects.push(Effect::Relist);
        }
    }
}
