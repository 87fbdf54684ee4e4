//! Exact search: tries every placement that is not like another one, within a budget of branches.
//!
//! Rules about the final state are checked when everybody is placed; on the way a bound tells when they cannot come
//! right any more.
//!
//! Members of a kind are interchangeable, so they take bins in ascending order; bins that are alike at the
//! moment of choice are interchangeable, so only the first of them is tried. Neither rule loses a solution.

use super::budget::Budget;
use super::construct::Packing;
use super::problem::Problem;
use crate::rules::resources::fits;
use crate::rules::{Cost, Loads, resources};

/// Members of one request that are searched for. Every member is a level of recursion; larger groups are left
/// to bounds and constructions.
const MEMBERS_MAX: u32 = 1_000;

/// The result of a search.
#[derive(Debug)]
pub(super) enum Found {
    /// A placement.
    Placement(Packing),
    /// There is none.
    Nothing,
    /// The budget ended first.
    OutOfBudget,
}

/// How many members may be left out, by team.
#[derive(Debug, Clone)]
pub(super) struct Skips {
    /// The team of each kind.
    pub(super) team_of: Vec<usize>,
    /// By team.
    pub(super) most: Vec<u32>,
}

impl Skips {
    /// Everybody is one team.
    pub(super) fn of_one_team(problem: &Problem, most: u32) -> Self {
        Self { team_of: vec![0; problem.kinds.len()], most: vec![most] }
    }
}

/// Looks for a placement that leaves out at most so many members.
pub(super) fn search(problem: &Problem, skips: Skips, budget: &mut Budget) -> Found {
    let wanted: u32 = problem.kinds.iter().map(|kind| kind.count).sum();
    if wanted > MEMBERS_MAX {
        return Found::OutOfBudget;
    }
    if !budget.spend(problem.free.len() + problem.bins.len() + problem.constraints_cost()) {
        return Found::OutOfBudget;
    }
    let mut search = Search {
        problem,
        order: problem.by_difficulty(),
        free: problem.free.clone(),
        total: problem.total.clone(),
        touched: vec![0; problem.bins.len()],
        loads: (!problem.constraints.is_empty()).then(|| Loads::new(&problem.constraints)),
        remaining: problem.kinds.iter().map(|kind| kind.count).collect(),
        path: Vec::with_capacity(wanted as usize),
        costs: Costs::new(problem),
        skips,
        budget,
    };
    match search.kind(0) {
        Step::Solved => {
            let mut packing = Packing::empty(problem);
            for &(kind, bin) in &search.path {
                packing.put(problem, kind, bin, 1);
            }
            Found::Placement(packing)
        }
        Step::Exhausted => Found::Nothing,
        Step::OutOfBudget => Found::OutOfBudget,
    }
}

enum Step {
    Solved,
    Exhausted,
    OutOfBudget,
}

struct Search<'a> {
    problem: &'a Problem,
    order: Vec<usize>,
    free: Vec<i64>,
    total: Vec<i64>,
    /// How many members of the path are in a bin; an untouched bin is alike with all of its class.
    touched: Vec<u32>,
    /// What rules see; none if there are no rules.
    loads: Option<Loads<'a>>,
    /// Members of each kind that may still be placed.
    remaining: Vec<u32>,
    path: Vec<(usize, usize)>,
    costs: Costs,
    /// Who may still be left out.
    skips: Skips,
    budget: &'a mut Budget,
}

/// Steps of the budget that parts of the search take, see [`Budget`].
struct Costs {
    /// To see whether a bin would do.
    look: usize,
    /// To see whether rules can still be kept: once, and for each member that has a seat.
    rules: usize,
    rules_per_member: usize,
    /// To bound what is left to do.
    bound: usize,
}

impl Costs {
    fn new(problem: &Problem) -> Self {
        let (resources, kinds) = (problem.resources.len(), problem.kinds.len());
        let rules: Cost = [resources::cost(resources), problem.constraints.cost()].into_iter().sum();
        Self {
            look: 4 + rules.look,
            rules: 64 + rules.hold,
            rules_per_member: 2 + rules.hold_per_member,
            bound: kinds * problem.bins.len() * (2 + 8 * resources),
        }
    }
}

impl Search<'_> {
    /// Places all kinds from this position of the order on.
    fn kind(&mut self, position: usize) -> Step {
        let Some(&kind) = self.order.get(position) else {
            let holds = self.loads.as_ref().is_none_or(Loads::holds);
            return if holds { Step::Solved } else { Step::Exhausted };
        };
        if !self.budget.spend(self.costs.bound) {
            return Step::OutOfBudget;
        }
        if !self.can_still_succeed(position) {
            return Step::Exhausted;
        }
        self.member(position, kind, self.problem.kinds[kind].count, 0)
    }

    /// Places the remaining members of a kind in bins from `first_bin` on.
    fn member(&mut self, position: usize, kind: usize, remaining: u32, first_bin: usize) -> Step {
        if remaining == 0 {
            return self.kind(position + 1);
        }
        let mut tried: Vec<usize> = Vec::new();
        for bin in first_bin..self.problem.bins.len() {
            if !self.budget.spend(self.costs.look + 2 * tried.len()) {
                return Step::OutOfBudget;
            }
            let fits = self.problem.is_allowed(kind, bin)
                && fits(&self.problem.kinds[kind].demand, self.free_in(bin))
                && self.loads.as_ref().is_none_or(|loads| loads.admits(kind, bin));
            if !fits || tried.iter().any(|&other| self.alike(other, bin)) {
                continue;
            }
            if !self.budget.spend(self.costs.rules + self.costs.rules_per_member * self.path.len()) {
                return Step::OutOfBudget;
            }
            self.put(kind, bin);
            let can_hold = self.loads.as_ref().is_none_or(|loads| loads.can_hold(&self.remaining));
            let step =
                if can_hold { self.member(position, kind, remaining - 1, bin) } else { Step::Exhausted };
            match step {
                Step::Exhausted => {
                    self.take(kind, bin);
                    tried.push(bin);
                }
                decided => return decided,
            }
        }
        // Leaving out the rest of this kind comes last, because more members are better.
        let team = self.skips.team_of[kind];
        let Some(skips) = self.skips.most[team].checked_sub(remaining) else {
            return Step::Exhausted;
        };
        let skips_before = std::mem::replace(&mut self.skips.most[team], skips);
        let left_out = std::mem::take(&mut self.remaining[kind]);
        let step = self.kind(position + 1);
        self.remaining[kind] = left_out;
        self.skips.most[team] = skips_before;
        step
    }

    /// Cheap bounds on what is left: every kind has room by itself, and no resource is short in total.
    fn can_still_succeed(&self, position: usize) -> bool {
        let mut missing = vec![0_u64; self.skips.most.len()];
        for &kind in &self.order[position..] {
            let needed = u64::from(self.problem.kinds[kind].count);
            let mut room = 0_u64;
            for bin in 0..self.problem.bins.len() {
                if room >= needed {
                    break;
                }
                if self.problem.is_allowed(kind, bin) {
                    room += self.problem.copies(kind, self.free_in(bin));
                }
            }
            missing[self.skips.team_of[kind]] += needed.saturating_sub(room);
        }
        if missing.iter().zip(&self.skips.most).any(|(missing, skips)| *missing > u64::from(*skips)) {
            return false;
        }
        // With members to leave out, the least that can be asked for is harder to tell; the search tells.
        self.skips.most.iter().any(|skips| *skips > 0)
            || (0..self.total.len()).all(|resource| {
                let demand = self.order[position..].iter().map(|&kind| {
                    let kind = &self.problem.kinds[kind];
                    i128::from(kind.demand[resource]) * i128::from(kind.count)
                });
                demand.sum::<i128>() <= i128::from(self.total[resource])
            })
    }

    fn free_in(&self, bin: usize) -> &[i64] {
        let width = self.problem.resources.len();
        &self.free[bin * width..(bin + 1) * width]
    }

    fn alike(&self, a: usize, b: usize) -> bool {
        if self.touched[a] == 0 && self.touched[b] == 0 {
            return self.problem.class_of[a] == self.problem.class_of[b];
        }
        // With rules, a bin that was used differs from others in more than what is free in it.
        let kinds = self.problem.kinds.len();
        self.loads.is_none()
            && self.free_in(a) == self.free_in(b)
            && self.problem.allowed[a * kinds..(a + 1) * kinds]
                == self.problem.allowed[b * kinds..(b + 1) * kinds]
    }

    fn put(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, -1);
        self.touched[bin] += 1;
        self.remaining[kind] -= 1;
        self.path.push((kind, bin));
        if let Some(loads) = &mut self.loads {
            loads.put(kind, bin);
        }
    }

    fn take(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, 1);
        self.touched[bin] -= 1;
        self.remaining[kind] += 1;
        self.path.pop();
        if let Some(loads) = &mut self.loads {
            loads.take(kind, bin);
        }
    }

    fn shift(&mut self, kind: usize, bin: usize, sign: i64) {
        let width = self.problem.resources.len();
        for (resource, demand) in self.problem.kinds[kind].demand.iter().enumerate() {
            self.free[bin * width + resource] += sign * demand;
            self.total[resource] += sign * demand;
        }
    }
}
