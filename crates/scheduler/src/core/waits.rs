//! How long units wait, by what they wait for.

use super::Core;
use std::collections::BTreeMap;
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
    /// Somebody who mends what contradicts itself.
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

/// Since when units wait, and for what.
pub(crate) type Waits = BTreeMap<UnitKey, (Constraint, Time)>;

impl Core {
    /// A unit waits, for the same as before or for something else.
    pub(super) fn waits(&mut self, unit: &UnitKey, refusal: &Refusal, now: Time) {
        let constraint = Constraint::of(refusal);
        if self.waits.get(unit).is_some_and(|(before, _)| *before == constraint) {
            return;
        }
        self.waits_no_longer(unit, now);
        self.waits.insert(unit.clone(), (constraint, now));
    }

    /// A unit has a place, or is gone.
    pub(super) fn waits_no_longer(&mut self, unit: &UnitKey, now: Time) {
        if let Some((constraint, since)) = self.waits.remove(unit) {
            let times = self.counters.waited.entry(constraint).or_default();
            times.observe(now.0.saturating_sub(since.0));
        }
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
            })
        };
        assert_eq!(Constraint::of(&room(2)), Constraint::Topology);
        assert_eq!(Constraint::of(&room(1)), Constraint::Room);
    }
}
