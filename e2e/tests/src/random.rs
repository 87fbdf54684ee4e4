//! Random numbers that are the same on every machine.

/// SplitMix64: small, well mixed, and every seed is a good one.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The numbers of one case of one run.
    pub(crate) fn of_case(seed: u64, case: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next() ^ case;
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    /// True in so many cases of a hundred.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.between(1, 100) <= chance
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.between(0, list.len() - 1)]
    }

    /// A few different ones of these, in their order; at least one.
    pub(crate) fn some<T: Copy>(&mut self, list: &[T]) -> Vec<T> {
        let sure = self.between(0, list.len() - 1);
        let mut chosen = Vec::new();
        for (index, &item) in list.iter().enumerate() {
            if index == sure || self.percent(30) {
                chosen.push(item);
            }
        }
        chosen
    }
}
