//! Exact search for members that have no terms about each other: one filling for each bin, so that together they
//! cover all members.
//!
//! Bin by bin, fillings that leave the cheapest members over first; see [`super::prices`] for what is cheap and for
//! the bound that ends most branches early. What is left to do after some bins depends only on how many members of
//! each kind are left; a number that led nowhere is remembered. Prices that were good for all bins are less so for
//! the last ones, so they are improved on the way.
//!
//! A first choice that was wrong is found out late or never. So the search starts again and again, with the bins in
//! another order and prices a little off, and gives up soon; only the last round has time. A round that looked at
//! everything has proven that there is no placement.

use super::budget::Budget;
use super::construct::Packing;
use super::descent::{Descent, Step};
use super::fillings::Fillings;
use super::prices::{Market, Prices};
use super::problem::Problem;
use super::search::Found;

/// Bins that are searched. Every bin is a level of recursion.
const BINS_MAX: usize = 1_000;
/// Members that are searched for; sums of their prices stay far from overflow.
const MEMBERS_MAX: u64 = 1 << 16;
/// Kinds that are searched for. Every kind is a level of recursion when fillings are listed.
const KINDS_MAX: usize = 256;
/// Places in the tree that the first look visits, beside one for each bin. Small problems end here.
const FIRST_LOOK: u32 = 200;
/// Places in the tree that a round visits, beside one for each bin.
const ROUND: u32 = 100;
/// Rounds of improving prices: at first, and before each round of search.
const IMPROVEMENTS: i64 = 100;
const IMPROVEMENTS_PER_ROUND: i64 = 10;
/// The last round gets one part in this many of the budget.
const LAST_SHARE: u64 = 5;

/// True if a problem is for this search.
pub(super) fn suits(problem: &Problem) -> bool {
    let wanted: u64 = problem.kinds.iter().map(|kind| u64::from(kind.count)).sum();
    problem.constraints.is_empty()
        && problem.bins.len() <= BINS_MAX
        && problem.kinds.len() <= KINDS_MAX
        && wanted <= MEMBERS_MAX
}

/// Looks for a placement that leaves out at most `skips_max` members.
pub(super) fn search(problem: &Problem, skips_max: u32, budget: &mut Budget) -> Found {
    let kinds = problem.by_difficulty();
    let fillings = Fillings::new(problem, &kinds, budget);
    let counts: Vec<u32> = kinds.iter().map(|&kind| problem.kinds[kind].count).collect();
    let mut bins_of_class = vec![0; problem.classes_count];
    for &class in &problem.class_of {
        bins_of_class[class as usize] += 1;
    }
    let market = Market { fillings: &fillings, bins_of_class, left: &counts, skips: skips_max };
    Cover { problem, kinds: &kinds, market, numbers: Numbers(1) }.search(budget)
}

struct Cover<'a> {
    problem: &'a Problem,
    kinds: &'a [usize],
    market: Market<'a>,
    numbers: Numbers,
}

impl Cover<'_> {
    fn search(&mut self, budget: &mut Budget) -> Found {
        let start = Prices::new(&self.proportions(|_| true), self.market.left);
        let order = self.order(&start, i64::MAX, false);
        let first = self.round(&start, order, FIRST_LOOK, budget);
        if let Some(found) = first {
            return found;
        }
        if self.is_excluded_by_a_resource(budget) {
            return Found::Nothing;
        }
        let (prices, slack) = self.market.improve(&start, IMPROVEMENTS, budget);
        if slack < 0 && self.market.fillings.is_all() {
            return Found::Nothing;
        }
        let reserve = budget.steps_left() / LAST_SHARE;
        let mut shaken = prices.clone();
        for round in 0_u32.. {
            budget.charge(self.market.fillings.numbers() + 16 * self.problem.bins.len());
            let is_last = budget.steps_left() <= reserve;
            let order = self.order(&prices, slack, round > 0);
            let visits_max = if is_last { u32::MAX } else { ROUND };
            if let Some(found) = self.round(&shaken, order, visits_max, budget) {
                return found;
            }
            if is_last {
                break;
            }
            shaken = prices.shaken(self.market.left, || self.numbers.next());
            (shaken, _) = self.market.improve(&shaken, IMPROVEMENTS_PER_ROUND, budget);
        }
        Found::OutOfBudget
    }

    /// One descent; nothing if it gave up.
    fn round(
        &self,
        prices: &Prices,
        order: Vec<usize>,
        visits_max: u32,
        budget: &mut Budget,
    ) -> Option<Found> {
        let visits_max = visits_max.saturating_add(order.len() as u32);
        let mut descent = Descent::new(self.problem, self.kinds, &self.market, order, visits_max, budget);
        match descent.run(prices) {
            Step::Solved => {
                let seats = descent.seats().iter().map(|(bin, seats)| (*bin, seats.as_slice()));
                Some(Found::Placement(Packing::of_seats(self.problem, self.kinds, seats)))
            }
            Step::DeadEnd if self.market.fillings.is_all() => Some(Found::Nothing),
            Step::DeadEnd | Step::GaveUp => None,
        }
    }

    /// True if one resource alone tells that there is no placement: bins cannot be filled as well as they had to be.
    fn is_excluded_by_a_resource(&self, budget: &mut Budget) -> bool {
        self.market.fillings.is_all()
            && (0..self.problem.resources.len()).any(|resource| {
                let prices = Prices::new(&self.proportions(|other| other == resource), self.market.left);
                self.market.improve(&prices, 1, budget).1 < 0
            })
    }

    /// What members take of some resources, as shares of all that is free.
    fn proportions(&self, counts: impl Fn(usize) -> bool) -> Vec<u64> {
        let share = |kind: usize, resource: usize| {
            let amount = i128::from(self.problem.kinds[kind].demand[resource]);
            (amount << 30) / i128::from(self.problem.total[resource].max(1))
        };
        let resources = || (0..self.problem.resources.len()).filter(|&resource| counts(resource));
        let sum = |&kind: &usize| {
            let sum: i128 = resources().map(|resource| share(kind, resource)).sum();
            // More than a u64 is a member that fits nowhere; any price will do for it.
            u64::try_from(sum).unwrap_or(u64::MAX)
        };
        self.kinds.iter().map(sum).collect()
    }

    /// Bins with the fewest fillings that could be right first; with some disorder for another try.
    fn order(&mut self, prices: &Prices, slack: i64, disorder: bool) -> Vec<usize> {
        let mut values = Vec::new();
        let candidates = |class: &super::fillings::Class| {
            class.values(prices.by_kind(), &mut values);
            let least = values.iter().max().map_or(0, |max| max.saturating_sub(slack.max(0) as u64));
            values.iter().filter(|value| **value >= least).count() as u64
        };
        let candidates: Vec<u64> = self.market.fillings.classes().iter().map(candidates).collect();
        let mut order: Vec<usize> = (0..self.problem.bins.len()).collect();
        order.sort_by_cached_key(|&bin| {
            let class = self.problem.class_of[bin];
            let factor = if disorder { 20 + self.numbers.next() % 100 } else { 1 };
            (candidates[class as usize] * factor, class, bin)
        });
        order
    }
}

/// A fixed sequence of numbers that look arbitrary: the same problem always has the same answer.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}
