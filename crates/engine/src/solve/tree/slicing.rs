//! How many members have room in slices, told by sums alone. For members that are all alike.
//!
//! A group may begin no more slices than its members fill: new ones and those that run, counted together. Members that
//! run have begun some; what is missing in those is filled up without beginning another.

use super::anchor::Anchor;
use crate::solve::request::{Part, SliceRule};
use crate::state::hierarchy::Hierarchy;

/// The slices that members who run have begun.
#[derive(Debug, Clone)]
pub(super) struct Slicing {
    size: u64,
    homes: Anchor,
    begun: u64,
    /// Members that run in some domain.
    running: u64,
}

impl Slicing {
    pub(super) fn new(tree: &Hierarchy, part: &Part, rule: SliceRule) -> Self {
        let running = part.running.iter().filter(|running| !running.leads);
        let homes = Anchor::new(tree, rule.level, running.map(|running| running.node));
        let size = u64::from(rule.size.max(1));
        let begun = homes.domains().map(|(_, members)| u64::from(members).div_ceil(size)).sum();
        let running = homes.domains().map(|(_, members)| u64::from(members)).sum();
        Self { size, homes, begun, running }
    }

    /// How many slices so many new members may begin.
    pub(super) fn extra(&self, members: u64) -> u64 {
        (self.running + members).div_ceil(self.size).saturating_sub(self.begun)
    }

    /// Seats that slices lack which members have begun in a domain.
    pub(super) fn missing(&self, domain: u32) -> u64 {
        let members = u64::from(self.homes.members_in(domain));
        members.div_ceil(self.size) * self.size - members
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// What domains with so much room take.
    pub(super) fn capacity(&self, rooms: impl Iterator<Item = (u32, u64)>) -> Capacity {
        let mut capacity = Capacity { size: self.size, begun: 0, whole: 0, parts: Vec::new() };
        for (domain, room) in rooms {
            let share = self.share(domain, room);
            capacity.begun += share.begun;
            capacity.whole = capacity.whole.saturating_add(share.whole);
            if share.part > 0 {
                capacity.parts.push(share.part);
            }
        }
        capacity.parts.sort_unstable_by_key(|&part| std::cmp::Reverse(part));
        let mut sum = 0_u64;
        for part in &mut capacity.parts {
            sum = sum.saturating_add(*part);
            *part = sum;
        }
        capacity
    }

    /// What one domain takes.
    pub(super) fn share(&self, domain: u32, room: u64) -> Share {
        let begun = room.min(self.missing(domain));
        let rest = room - begun;
        Share { begun, whole: rest / self.size, part: rest % self.size }
    }

    /// The most members, from `need` to `wanted`, that have room in some domains. More may fit where fewer do not:
    /// whoever fills a slice may begin another.
    pub(super) fn most(&self, capacity: &Capacity, need: u32, wanted: u32) -> Option<u32> {
        let most = u64::from(wanted).min(capacity.most(u64::MAX)) as u32;
        (need..=most).rev().find(|&members| self.takes(capacity, members))
    }

    /// True if so many members have room.
    pub(super) fn takes(&self, capacity: &Capacity, members: u32) -> bool {
        capacity.most(self.extra(u64::from(members))) >= u64::from(members)
    }
}

/// What one domain takes: in slices that have begun, in whole new slices, and in a part of one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) begun: u64,
    pub(super) whole: u64,
    pub(super) part: u64,
}

/// What some domains take together.
#[derive(Debug, Clone)]
pub(super) struct Capacity {
    size: u64,
    begun: u64,
    whole: u64,
    /// Sums of the largest parts of slices: of one, of two, and so on.
    parts: Vec<u64>,
}

impl Capacity {
    /// The most members that have room if so many slices are begun.
    pub(super) fn most(&self, extra: u64) -> u64 {
        let whole = extra.min(self.whole);
        let parts = (extra - whole).min(self.parts.len() as u64) as usize;
        let parts = parts.checked_sub(1).map_or(0, |at| self.parts[at]);
        self.begun.saturating_add(whole.saturating_mul(self.size)).saturating_add(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slicing(size: u64) -> Slicing {
        Slicing { size, homes: Anchor::default(), begun: 0, running: 0 }
    }

    #[test]
    fn more_members_may_fit_where_fewer_do_not() {
        let slicing = slicing(3);
        let capacity = slicing.capacity([(0, 2), (1, 2)].into_iter());
        let takes: Vec<bool> = (1..=5).map(|members| slicing.takes(&capacity, members)).collect();
        assert_eq!(takes, [true, true, false, true, false]);
        assert_eq!(slicing.most(&capacity, 3, 9), Some(4));
        assert_eq!(slicing.most(&capacity, 3, 3), None);
    }

    #[test]
    fn whole_slices_come_before_parts_of_slices() {
        let slicing = slicing(8);
        let capacity = slicing.capacity([(0, 17), (1, 7), (2, 8)].into_iter());
        let most: Vec<u64> = (0..6).map(|extra| capacity.most(extra)).collect();
        assert_eq!(most, [0, 8, 16, 24, 31, 32]);
    }
}
