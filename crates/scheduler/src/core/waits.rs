//! How long units wait, by what they wait for.

use super::Core;
use tutti_engine::{Refusal, UnitKey};
use tutti_model::Time;

/// What a unit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constraint {
    /// Members, groups or composites that are not there yet.
    Members,
    /// Room in one domain of a required topology.
    Topology,
    /// Room anywhere.
    Room,
    /// Volumes, or anything else that claims are for.
    Claims,
    /// A change by hand, because objects contradict each other.
    Contradiction,
}

impl Constraint {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Members, Self::Topology, Self::Room, Self::Claims, Self::Contradiction];

    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Topology => "topology",
            Self::Room => "room",
            Self::Claims => "claims",
            Self::Contradiction => "contradiction",
        }
    }

    fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::GroupMissing { .. }
            | Refusal::CompositeMissing { .. }
            | Refusal::TooFewMembers { .. }
            | Refusal::Gated { .. }
            | Refusal::TooFewGroups { .. } => Self::Members,
            Refusal::Contradiction(_) | Refusal::Inconsistent { .. } => Self::Contradiction,
            Refusal::Claim { .. } | Refusal::Unsupported(_) => Self::Claims,
            Refusal::NoRoom(room) | Refusal::Undecided(room) => {
                // Domains that are all too small are the reason, whatever else is short in the best of them.
                let too_small = room.levels.iter().any(|level| level.short >= level.domains);
                if too_small { Self::Topology } else { Self::Room }
            }
        }
    }
}

impl Core {
    /// A unit waits, for the same as before or for something else.
    pub(super) fn waits(&mut self, unit: &UnitKey, refusal: &Refusal, now: Time) {
        let constraint = Constraint::of(refusal);
        let before = match unit {
            UnitKey::Pod(pod) => self.pods.get(pod).and_then(|known| known.waits_for),
            UnitKey::Group(_) | UnitKey::Composite(_) => self.groups.waits_for(unit),
        };
        if before.is_none_or(|(before, _)| before != constraint) {
            self.set_waits_for(unit, Some((constraint, now)), now);
        }
    }

    /// A unit has a place, or is gone.
    pub(super) fn waits_no_longer(&mut self, unit: &UnitKey, now: Time) {
        self.set_waits_for(unit, None, now);
    }

    fn set_waits_for(&mut self, unit: &UnitKey, waits_for: Option<(Constraint, Time)>, now: Time) {
        let before = match unit {
            UnitKey::Pod(pod) => {
                let known = self.pods.get_mut(pod);
                known.and_then(|known| std::mem::replace(&mut known.waits_for, waits_for))
            }
            UnitKey::Group(_) | UnitKey::Composite(_) => self.groups.set_waits_for(unit, waits_for),
        };
        if let Some(waited) = before {
            self.count_wait(waited, now);
        }
    }

    /// Counts how long something was waited for.
    pub(super) fn count_wait(&mut self, (constraint, since): (Constraint, Time), now: Time) {
        let times = self.counters.waited.entry(constraint).or_default();
        times.observe(now.0.saturating_sub(since.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_engine::refusal::{LevelShortage, NoRoom};

    #[test]
    fn topology_is_the_reason_only_if_every_domain_of_a_level_is_too_small() {
        let room = |short| {
            let level = LevelShortage {
                group: None,
                key: "rack".into(),
                domains: 2,
                short,
                best: None,
                needed: 3,
                is_pinned: false,
                missing_labels: vec![],
            };
            Refusal::NoRoom(NoRoom {
                needed: 3,
                fit: 2,
                roomiest: None,
                nodes: 2,
                short: vec![],
                ruled_out: vec![],
                levels: vec![level],
                scattered: None,
                gated: 0,
            })
        };
        assert_eq!(Constraint::of(&room(2)), Constraint::Topology);
        assert_eq!(Constraint::of(&room(1)), Constraint::Room);
    }
}
