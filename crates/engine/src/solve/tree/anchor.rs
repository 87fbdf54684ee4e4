//! Where members that run already bind those that are to come.

use crate::state::hierarchy::{Hierarchy, NO_DOMAIN};
use crate::state::nodes::NodeId;
use rustc_hash::FxHashMap;

/// The domains of one level in which members run.
#[derive(Debug, Clone, Default)]
pub(super) struct Anchor {
    members: FxHashMap<u32, u32>,
    /// Members on nodes that are in no domain.
    outside: u32,
}

impl Anchor {
    pub(super) fn new(tree: &Hierarchy, level: usize, nodes: impl Iterator<Item = NodeId>) -> Self {
        let mut anchor = Self::default();
        for node in nodes {
            match tree.domain(level, node) {
                NO_DOMAIN => anchor.outside += 1,
                domain => *anchor.members.entry(domain).or_default() += 1,
            }
        }
        anchor
    }

    /// True if new members may go to a domain, where the level is required: to any if nobody is in one, else to those
    /// where somebody is. That is one, unless something has gone wrong before.
    pub(super) fn allows(&self, domain: u32) -> bool {
        domain != NO_DOMAIN && (self.members.is_empty() || self.members.contains_key(&domain))
    }

    /// How welcome a domain is because of who is there; the same for all unless members are scattered.
    pub(super) fn pull(&self, domain: u32) -> u32 {
        if self.members.len() < 2 { 0 } else { self.members_in(domain) }
    }

    /// The most that any domain is welcome for.
    pub(super) fn most_pull(&self) -> u32 {
        self.members.keys().map(|&domain| self.pull(domain)).max().unwrap_or(0)
    }

    /// True if members run and there is only one domain to choose.
    pub(super) fn is_pinned(&self) -> bool {
        self.members.len() == 1
    }

    /// True if everybody who runs is in this domain.
    pub(super) fn is_all_in(&self, domain: u32) -> bool {
        self.outside == 0 && self.members.keys().all(|&other| other == domain)
    }

    /// Members in a domain.
    pub(super) fn members_in(&self, domain: u32) -> u32 {
        self.members.get(&domain).copied().unwrap_or(0)
    }

    /// Domains with members, and how many, in no meaningful order.
    pub(super) fn domains(&self) -> impl Iterator<Item = (u32, u32)> {
        self.members.iter().map(|(&domain, &members)| (domain, members))
    }
}
