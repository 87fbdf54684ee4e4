//! One round of the search in [`super::cover`]: bin after bin in a fixed order, back when it cannot come right.

use super::budget::{Budget, DIVISION};
use super::prices::{Market, Prices};
use super::problem::Problem;
use rustc_hash::FxHashSet;

/// Bins after which prices are improved for the bins to come, and rounds of improvement.
const REPRICE_EVERY: usize = 8;
const REPRICE_ROUNDS: i64 = 20;
/// With fewer bins to come than this, trying is cheaper than pricing.
const REPRICE_BINS_MIN: usize = 5;
/// Dead ends that are remembered in one round.
const DEAD_ENDS_MAX: usize = 100_000;
/// Fillings that are tried in one place when the list is not complete and nothing tells which are hopeless.
const GUESSES_MAX: usize = 64;
/// Steps of the budget that it takes to put one filling into its rank.
const RANKING: usize = 16;

/// How a branch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Enough members are placed.
    Solved,
    /// There is nothing here.
    DeadEnd,
    /// There was no time to see.
    GaveUp,
}

/// Prices and what follows from them.
struct Level {
    prices: Prices,
    /// By class, once it was asked for: value and number of each filling, best first.
    ranked: Vec<Option<Vec<(u64, u32)>>>,
    /// What the best fillings of the bins from a position on are worth.
    worth_from: Vec<u64>,
}

pub(super) struct Descent<'a> {
    problem: &'a Problem,
    kinds: &'a [usize],
    market: &'a Market<'a>,
    order: Vec<usize>,
    levels: Vec<Level>,
    /// Members that are left and the position, for every place on the path and the places beside it.
    states: Vec<u32>,
    /// Places to go next: what is left there is worth this much; start in `states`.
    children: Vec<(u64, usize)>,
    dead_ends: FxHashSet<Vec<u32>>,
    seats: Vec<(usize, Vec<u32>)>,
    visits_left: u32,
    budget: &'a mut Budget,
}

impl<'a> Descent<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        kinds: &'a [usize],
        market: &'a Market<'a>,
        order: Vec<usize>,
        visits_max: u32,
        budget: &'a mut Budget,
    ) -> Self {
        Self {
            problem,
            kinds,
            market,
            order,
            levels: Vec::new(),
            states: Vec::new(),
            children: Vec::new(),
            dead_ends: FxHashSet::default(),
            seats: Vec::new(),
            visits_left: visits_max,
            budget,
        }
    }

    /// Searches from the first bin on.
    pub(super) fn run(&mut self, prices: &Prices) -> Step {
        self.states.extend_from_slice(self.market.left);
        self.states.push(0);
        if !self.push_level(prices.clone(), 0) {
            return Step::GaveUp;
        }
        self.bin(0, 0)
    }

    /// After success: bins and how many members of each kind they hold.
    pub(super) fn seats(&self) -> &[(usize, Vec<u32>)] {
        &self.seats
    }

    /// Fills the bins from this position on with the members of this state.
    fn bin(&mut self, position: usize, state: usize) -> Step {
        let left = &self.states[state..state + self.kinds.len()];
        if left.iter().sum::<u32>() <= self.market.skips {
            return Step::Solved;
        }
        if position == self.order.len() || self.dead_ends.contains(self.key(state)) {
            return Step::DeadEnd;
        }
        let Some(visits_left) = self.visits_left.checked_sub(1) else {
            return Step::GaveUp;
        };
        self.visits_left = visits_left;
        let levels = self.levels.len();
        let (states, children) = (self.states.len(), self.children.len());
        let mut step = self.reprice(position, state);
        if step == Step::Solved {
            step = self.expand(position, state);
        }
        if step == Step::Solved {
            step = self.try_children(position, state, children);
        }
        self.levels.truncate(levels);
        self.states.truncate(states);
        self.children.truncate(children);
        if step == Step::DeadEnd && self.dead_ends.len() < DEAD_ENDS_MAX {
            self.dead_ends.insert(self.key(state).to_vec());
        }
        step
    }

    /// Goes on from every place that was listed last.
    fn try_children(&mut self, position: usize, state: usize, first: usize) -> Step {
        for child in first..self.children.len() {
            let (_, after) = self.children[child];
            match self.bin(position + 1, after) {
                Step::DeadEnd => {}
                Step::GaveUp => return Step::GaveUp,
                Step::Solved => {
                    let kinds = 0..self.kinds.len();
                    let seats = kinds.map(|kind| self.states[state + kind] - self.states[after + kind]);
                    self.seats.push((self.order[position], seats.collect()));
                    return Step::Solved;
                }
            }
        }
        Step::DeadEnd
    }

    /// What is left and where: all that matters for what can still be done.
    fn key(&self, state: usize) -> &[u32] {
        &self.states[state..=state + self.kinds.len()]
    }

    /// Now and then, better prices for the bins to come; a dead end if they prove one.
    fn reprice(&mut self, position: usize, state: usize) -> Step {
        let bins_left = self.order.len() - position;
        if position == 0 || !position.is_multiple_of(REPRICE_EVERY) || bins_left < REPRICE_BINS_MIN {
            return Step::Solved;
        }
        let mut bins_of_class = vec![0; self.problem.classes_count];
        for &bin in &self.order[position..] {
            bins_of_class[self.problem.class_of[bin] as usize] += 1;
        }
        let left = &self.states[state..state + self.kinds.len()];
        let market = Market { fillings: self.market.fillings, bins_of_class, left, skips: self.market.skips };
        let Some(level) = self.levels.last() else { return Step::DeadEnd };
        let (prices, slack) = market.improve(&level.prices, REPRICE_ROUNDS, self.budget);
        if slack < 0 && self.market.fillings.is_all() {
            return Step::DeadEnd;
        }
        if self.push_level(prices, position) { Step::Solved } else { Step::GaveUp }
    }

    /// Adds prices for the bins from a position on; false if the budget is used up.
    fn push_level(&mut self, prices: Prices, position: usize) -> bool {
        if !self.budget.spend(4 * self.order.len() + 2 * self.problem.classes_count) {
            return false;
        }
        let mut best: Vec<Option<u64>> = vec![None; self.problem.classes_count];
        let mut values = Vec::new();
        let mut worth_from = vec![0; self.order.len() + 1];
        for at in (position..self.order.len()).rev() {
            let class = self.problem.class_of[self.order[at]] as usize;
            if best[class].is_none() {
                let fillings = self.market.fillings.of_class(class);
                if !self.budget.spend(fillings.size()) {
                    return false;
                }
                fillings.values(prices.by_kind(), &mut values);
            }
            let value = *best[class].get_or_insert_with(|| values.iter().copied().max().unwrap_or(0));
            worth_from[at] = worth_from[at + 1] + value;
        }
        let ranked = vec![None; self.problem.classes_count];
        self.levels.push(Level { prices, ranked, worth_from });
        true
    }

    /// Steps of the budget that it takes to see where one filling leads.
    fn cost_of_a_look(&self) -> usize {
        let kinds = self.kinds.len();
        let dearest = if self.market.skips > 0 { 40 + 10 * kinds } else { 0 };
        let divisions = if self.market.fillings.is_all() { 0 } else { kinds * self.problem.resources.len() };
        6 * kinds + dearest + DIVISION * divisions
    }

    /// Lists the places that a filling of this bin can lead to, those with the least left to do first.
    fn expand(&mut self, position: usize, state: usize) -> Step {
        let (bin, skips) = (self.order[position], self.market.skips);
        let class = self.problem.class_of[bin] as usize;
        let fillings = self.market.fillings.of_class(class);
        let is_all = self.market.fillings.is_all();
        let cost = self.cost_of_a_look();
        let Some(level) = self.levels.last_mut() else { return Step::DeadEnd };
        if level.ranked[class].is_none() && !self.budget.spend(fillings.size() + RANKING * fillings.count()) {
            return Step::GaveUp;
        }
        let ranked = level.ranked[class].get_or_insert_with(|| {
            let mut values = Vec::new();
            fillings.values(level.prices.by_kind(), &mut values);
            let mut ranked: Vec<(u64, u32)> = values.into_iter().zip(0..).collect();
            ranked.sort_unstable_by_key(|&(value, filling)| (std::cmp::Reverse(value), filling));
            ranked
        });
        let kinds = self.kinds.len();
        let needed = level.prices.worth(&self.states[state..state + kinds], skips);
        let later = level.worth_from[position + 1];
        let first = self.children.len();
        for &(value, filling) in ranked.iter() {
            // Even if nothing of it were in vain, this filling would leave too much to the bins to come.
            if is_all && value + later < needed {
                break;
            }
            if !is_all && self.children.len() - first >= GUESSES_MAX {
                break;
            }
            if !self.budget.spend(cost) {
                return Step::GaveUp;
            }
            let after = self.states.len();
            for (kind, &members) in fillings.row(filling as usize).iter().enumerate() {
                self.states.push(self.states[state + kind].saturating_sub(members));
            }
            self.states.push(position as u32 + 1);
            if !is_all {
                top_up(self.problem, self.kinds, bin, state, after, &mut self.states);
            }
            let worth = level.prices.worth(&self.states[after..after + kinds], skips);
            if is_all && worth > later {
                self.states.truncate(after);
            } else {
                self.children.push((worth, after));
            }
        }
        self.children[first..].sort_unstable();
        Step::Solved
    }
}

/// Adds members to a bin until none fits, hard ones first: a filling of an incomplete list may hold members that have
/// a seat elsewhere, and no other filling of the list may make use of their room.
fn top_up(problem: &Problem, kinds: &[usize], bin: usize, before: usize, after: usize, states: &mut [u32]) {
    let mut free = problem.free_in(bin).to_vec();
    let shift = |free: &mut [i64], kind: usize, count: u32| {
        for (free, demand) in free.iter_mut().zip(&problem.kinds[kind].demand) {
            *free -= demand * i64::from(count);
        }
    };
    for (at, &kind) in kinds.iter().enumerate() {
        shift(&mut free, kind, states[before + at] - states[after + at]);
    }
    for (at, &kind) in kinds.iter().enumerate() {
        if states[after + at] > 0 && problem.is_allowed(kind, bin) {
            let more = problem.copies(kind, &free).min(u64::from(states[after + at])) as u32;
            shift(&mut free, kind, more);
            states[after + at] -= more;
        }
    }
}
