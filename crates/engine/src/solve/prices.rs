//! What a seat for each kind of member is worth, so that scarce seats are dear.
//!
//! Whatever the prices: if every bin takes the filling that is worth most to it, and all of them together are still
//! worth less than the members that need a seat, then no placement exists. The *slack* is how far above that they
//! are. Any placement gives up exactly the slack, so a bin can only hold fillings that are worth its best one less
//! the slack; that is what makes search short. Good prices have little slack. They are found by raising the price of
//! kinds that the best fillings leave out, and lowering that of kinds they hold too many of.
//!
//! Integers throughout. Prices are scaled so that the members cost [`TOTAL`] together.

use super::budget::Budget;
use super::fillings::Fillings;

/// What the members that need a seat cost together, but for rounding.
const TOTAL: u64 = 1 << 30;
/// No kind that needs seats is cheaper than this, or it could never become dearer.
const PRICE_MIN: u64 = 1 << 10;
/// One, in the fixed-point numbers of a change of price.
const ONE: i64 = 1024;
/// By how many of its members' halves a kind may count as left out or held too often, at most.
const RATIO_MAX: i64 = 8 * ONE;
/// The first changes are one part in this many of the ratio; later ones are smaller.
const FIRST_CHANGE: i64 = 10;

/// A price for each kind, in the order of [`super::problem::Problem::by_difficulty`].
#[derive(Debug, Clone)]
pub(super) struct Prices(Vec<u32>);

/// Who needs seats and which bins there are for them.
#[derive(Debug)]
pub(super) struct Market<'a> {
    pub(super) fillings: &'a Fillings,
    /// How many bins of each class there are.
    pub(super) bins_of_class: Vec<u32>,
    /// Members of each kind without a seat.
    pub(super) left: &'a [u32],
    /// How many of them need not get one.
    pub(super) skips: u32,
}

impl Prices {
    /// Prices in these proportions.
    pub(super) fn new(proportions: &[u64], left: &[u32]) -> Self {
        let mut prices = Self(proportions.iter().map(|&price| price.clamp(1, TOTAL) as u32).collect());
        prices.scale(left);
        prices
    }

    /// The price of each kind.
    pub(super) fn by_kind(&self) -> &[u32] {
        &self.0
    }

    /// What all but `skips` of these members are worth at least.
    pub(super) fn worth(&self, left: &[u32], skips: u32) -> u64 {
        let all: u64 =
            self.0.iter().zip(left).map(|(&price, &left)| u64::from(price) * u64::from(left)).sum();
        if skips == 0 {
            return all;
        }
        self.dearest(left, skips)
            .map(|(kind, count)| u64::from(self.0[kind]) * u64::from(count))
            .fold(all, u64::saturating_sub)
    }

    /// The dearest members, `count` of them: kind and number.
    fn dearest<'a>(&self, left: &'a [u32], count: u32) -> impl Iterator<Item = (usize, u32)> + use<'a> {
        let mut kinds: Vec<usize> = (0..left.len()).collect();
        kinds.sort_by_key(|&kind| std::cmp::Reverse(self.0[kind]));
        let mut more = count;
        kinds.into_iter().map(move |kind| {
            let taken = left[kind].min(more);
            more -= taken;
            (kind, taken)
        })
    }

    /// The same prices, each a little off; `number` says how: from 0 to 999 for each kind.
    pub(super) fn shaken(&self, left: &[u32], mut number: impl FnMut() -> u64) -> Self {
        let shake = |&price: &u32| u64::from(price) * (800 + number() % 400) / 1000;
        let proportions: Vec<u64> = self.0.iter().map(shake).collect();
        Self::new(&proportions, left)
    }

    /// Makes all members cost [`TOTAL`]; a kind of which nobody is left costs nothing.
    fn scale(&mut self, left: &[u32]) {
        let all = self.worth(left, 0).max(1);
        for (price, &left) in self.0.iter_mut().zip(left) {
            let scaled = (u64::from(*price) * TOTAL / all).clamp(PRICE_MIN, TOTAL);
            *price = if left == 0 { 0 } else { scaled as u32 };
        }
    }
}

impl Market<'_> {
    /// Better prices after some rounds, starting from these, and their slack; below zero if no placement exists.
    pub(super) fn improve(&self, start: &Prices, rounds: i64, budget: &mut Budget) -> (Prices, i64) {
        let mut prices = start.clone();
        prices.scale(self.left);
        let mut values = Vec::new();
        let mut best = (prices.clone(), i64::MAX);
        for round in 0..rounds {
            let (slack, bought) = self.best_fillings(&prices, &mut values);
            if slack < best.1 {
                best = (prices.clone(), slack);
            }
            let lists = self.fillings.classes().iter().zip(&self.bins_of_class);
            let numbers: usize = lists.filter(|(_, bins)| **bins > 0).map(|(class, _)| class.size()).sum();
            if slack < 0 || !budget.spend(numbers + 32 * self.left.len()) {
                break;
            }
            self.change(&mut prices, &bought, ONE / (FIRST_CHANGE + round));
        }
        best
    }

    /// Slack at these prices, and how many members of each kind the best fillings hold.
    fn best_fillings(&self, prices: &Prices, values: &mut Vec<u64>) -> (i64, Vec<i64>) {
        let mut sum = 0_u64;
        let mut bought = vec![0_i64; self.left.len()];
        for (class, &bins) in self.fillings.classes().iter().zip(&self.bins_of_class) {
            if bins == 0 {
                continue;
            }
            class.values(prices.by_kind(), values);
            let Some(value) = values.iter().max() else { continue };
            sum += value * u64::from(bins);
            let at = values.iter().position(|other| other == value).unwrap_or(0);
            for (bought, &members) in bought.iter_mut().zip(class.row(at)) {
                *bought += i64::from(members) * i64::from(bins);
            }
        }
        (sum as i64 - prices.worth(self.left, self.skips) as i64, bought)
    }

    /// Makes kinds dearer that were bought too little of, and those cheaper that were bought too much of.
    fn change(&self, prices: &mut Prices, bought: &[i64], step: i64) {
        let mut needed: Vec<i64> = self.left.iter().map(|&left| i64::from(left)).collect();
        if self.skips > 0 {
            for (kind, count) in prices.dearest(self.left, self.skips) {
                needed[kind] -= i64::from(count);
            }
        }
        for (kind, price) in prices.0.iter_mut().enumerate() {
            let missing = needed[kind] - bought[kind];
            let ratio = missing * ONE / (1 + i64::from(self.left[kind]) / 2);
            let change = i64::from(*price) * ratio.clamp(-RATIO_MAX, RATIO_MAX) / ONE * step / ONE;
            *price = (i64::from(*price) + change).clamp(PRICE_MIN as i64, TOTAL as i64) as u32;
        }
        prices.scale(self.left);
    }
}
