//! What makes one placement better than another, as a tuple that is compared in order.

use std::cmp::{Ordering, Reverse};

/// How good a choice of domains is. The number of members that are placed comes before all this, the choice of nodes
/// within the domains after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Merit {
    /// Members that run where new ones go, where those that run are scattered.
    pub(super) pull: u32,
    /// By level, widest first: how many groups and composites have a preferred level met.
    pub(super) met: Vec<u32>,
    /// Domains of their narrowest level that groups are in.
    pub(super) domains: u32,
    /// Room in the domains of their narrowest level that groups go to, in copies of their members.
    pub(super) room: u64,
    /// How full these domains are, in thousandths.
    pub(super) full: u64,
}

impl Merit {
    /// The merit of two choices that are made beside each other.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut met = self.met.clone();
        met.resize(met.len().max(other.met.len()), 0);
        for (sum, more) in met.iter_mut().zip(&other.met) {
            *sum += more;
        }
        Self {
            pull: self.pull + other.pull,
            met,
            domains: self.domains + other.domains,
            room: self.room.saturating_add(other.room),
            full: self.full + other.full,
        }
    }

    /// Counts a preferred level as met.
    pub(super) fn meet(&mut self, level: usize) {
        self.met.resize(self.met.len().max(level + 1), 0);
        self.met[level] += 1;
    }
}

impl Ord for Merit {
    /// The better one is greater.
    fn cmp(&self, other: &Self) -> Ordering {
        let levels = self.met.len().max(other.met.len());
        let met = |merit: &Self, level: usize| merit.met.get(level).copied().unwrap_or(0);
        let by_level = (0..levels).map(|level| met(self, level).cmp(&met(other, level)));
        self.pull
            .cmp(&other.pull)
            .then_with(|| by_level.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
            .then_with(|| Reverse(self.domains).cmp(&Reverse(other.domains)))
            .then_with(|| Reverse(self.room).cmp(&Reverse(other.room)))
            .then_with(|| self.full.cmp(&other.full))
    }
}

impl PartialOrd for Merit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_levels_come_before_narrow_ones_before_fewer_domains_before_less_room_before_fuller_ones() {
        let merit = |met: &[u32], domains, room| Merit { pull: 0, met: met.to_vec(), domains, room, full: 0 };
        let order = [
            merit(&[0, 3], 1, 1),
            merit(&[1], 3, 1),
            merit(&[1, 0], 2, 9),
            merit(&[1, 0], 2, 8),
            Merit { full: 1, ..merit(&[1, 0], 2, 8) },
            merit(&[1, 1], 9, 9),
            Merit { pull: 1, ..merit(&[], 9, 9) },
        ];
        for pair in order.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
        assert_eq!(merit(&[1], 1, 2).and(&merit(&[1, 1], 2, 3)), merit(&[2, 1], 3, 5));
    }
}
