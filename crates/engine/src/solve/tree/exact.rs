//! Small trees: every choice of domains is looked at, the most promising first, and every part is solved for together.
//!
//! First comes how many members of every team are to be placed, more before fewer. For each such choice the tree is
//! gone through from the top: a domain for every composite, some cells for every group, a domain for every slice. What
//! is then allowed is a flat problem for the search. A choice that could not beat the best one is not followed.

use super::ground::{Ground, Region};
use super::objective::Merit;
use super::options::{Place, Steps};
use super::targets;
use crate::rules::quota::Quota;
use crate::solve::Seats;
use crate::solve::budget::Budget;
use crate::solve::construct;
use crate::solve::problem::Problem;
use crate::solve::search::{Found, Skips, search};

/// Groups that are solved for together like this.
const GROUPS_MAX: usize = 6;
/// Members in all. Larger trees are left to what does not go through numbers one by one.
const MEMBERS_MAX: u32 = 64;
/// Cells of a group; every subset of them is looked at.
const CELLS_MAX: usize = 6;
/// Ways to divide the members into those who are placed and those who are not.
const TARGETS_MAX: usize = 4_096;
/// Steps of the budget that one choice of domains takes, beside what its search takes.
const STEPS_PER_CHOICE: usize = 400;

/// Members of one group that are interchangeable as far as numbers go: leaders, or everybody else.
#[derive(Debug, Clone)]
pub(super) struct Team {
    pub(super) part: usize,
    pub(super) leads: bool,
    pub(super) count: u32,
}

/// The result.
#[derive(Debug)]
pub(super) enum Answer {
    /// The best placement, or the best that was found within the budget.
    Placed(Seats),
    /// There is none.
    Nothing,
    /// The budget ended before any was found, or the tree is too large.
    Unknown,
}

/// Looks for the best placement of a small tree.
pub(super) fn solve(ground: &Ground<'_>, budget: &mut Budget) -> Answer {
    let teams = teams(ground);
    let everywhere: Region = vec![true; ground.problem.bins.len()];
    let is_small = teams.iter().map(|team| team.count).sum::<u32>() <= MEMBERS_MAX
        && ground.tree.groups().count() <= GROUPS_MAX
        && ground.tree.groups().all(|part| ground.has_few_cells(part, &everywhere, CELLS_MAX));
    let Some(targets) = is_small.then(|| targets::list(&ground.tree, &teams, TARGETS_MAX)).flatten() else {
        return Answer::Unknown;
    };
    let team_of = ground.tree.kinds.iter().map(|kind| {
        teams.iter().position(|team| team.part == kind.part && team.leads == kind.leads).unwrap_or(0)
    });
    let mut exact = Exact {
        ground,
        team_of: team_of.collect(),
        targets: Vec::new(),
        teams: &teams,
        best: None,
        is_over: false,
        budget,
    };
    let mut total = None;
    for target in targets {
        let sum: u32 = target.iter().sum();
        // More members come before everything else.
        if exact.best.is_some() && total != Some(sum) {
            break;
        }
        total = Some(sum);
        exact.try_target(target);
        if exact.is_over {
            break;
        }
    }
    match exact.best {
        Some((_, seats)) => Answer::Placed(seats),
        None if exact.is_over => Answer::Unknown,
        None => Answer::Nothing,
    }
}

fn teams(ground: &Ground<'_>) -> Vec<Team> {
    let mut teams: Vec<Team> = Vec::new();
    for (kind, belonging) in ground.tree.kinds.iter().enumerate() {
        let count = ground.problem.kinds[kind].count;
        match teams.iter_mut().find(|team| team.part == belonging.part && team.leads == belonging.leads) {
            Some(team) => team.count += count,
            None => teams.push(Team { part: belonging.part, leads: belonging.leads, count }),
        }
    }
    teams
}

struct Exact<'e, 'g> {
    ground: &'e Ground<'g>,
    teams: &'e [Team],
    /// By kind.
    team_of: Vec<usize>,
    /// By team: how many are to be placed.
    targets: Vec<u32>,
    best: Option<(Merit, Seats)>,
    is_over: bool,
    budget: &'e mut Budget,
}

impl Exact<'_, '_> {
    fn try_target(&mut self, targets: Vec<u32>) {
        self.targets = targets;
        let mut placed = vec![0; self.ground.tree.parts.len()];
        let mut workers = vec![0; self.ground.tree.parts.len()];
        for (team, target) in self.teams.iter().zip(&self.targets) {
            placed[team.part] += target;
            workers[team.part] += if team.leads { 0 } else { *target };
        }
        let steps = Steps::new(self.ground, &placed, &workers);
        let mut place = Place::new(self.ground);
        self.descend(&steps, 0, &mut place, &Merit::default());
    }

    /// Decides about all steps from this one on.
    fn descend(&mut self, steps: &Steps<'_, '_>, at: usize, place: &mut Place, merit: &Merit) {
        if self.is_over || self.best.as_ref().is_some_and(|(best, _)| merit.and(steps.hope(at)) <= *best) {
            return;
        }
        if at == steps.len() {
            self.try_place(place, merit);
            return;
        }
        for option in steps.options(at, place) {
            let merit = merit.and(&option.merit);
            place.enter(&option);
            self.descend(steps, at + 1, place, &merit);
            place.leave(&option);
        }
    }

    /// Everything about domains is decided; the rest is a search.
    fn try_place(&mut self, place: &Place, merit: &Merit) {
        if !self.budget.spend(STEPS_PER_CHOICE + place.cost(self.ground)) {
            self.is_over = true;
            return;
        }
        let problem = self.narrowed(place);
        match self.joint(&problem) {
            Found::Placement(packing) => self.best = Some((merit.clone(), packing.seats(&problem))),
            Found::Nothing => {}
            Found::OutOfBudget => self.is_over = true,
        }
    }

    fn narrowed(&self, place: &Place) -> Problem {
        let problem = &self.ground.problem;
        let kinds = &self.ground.tree.kinds;
        let allowed = |kind: usize, bin: usize| {
            let region = place.region(self.ground, kinds[kind].part);
            region[bin] && place.masks[kind].as_ref().is_none_or(|mask| mask[bin])
        };
        let is_open = |&bin: &usize| (0..kinds.len()).any(|kind| allowed(kind, bin));
        let bins: Vec<usize> = (0..problem.bins.len()).filter(is_open).collect();
        let count =
            |kind: usize| if self.targets[self.team_of[kind]] > 0 { problem.kinds[kind].count } else { 0 };
        let counts: Vec<u32> = (0..kinds.len()).map(count).collect();
        let quotas: Vec<Quota> = place.quotas.iter().flatten().cloned().collect();
        problem.narrowed(&bins, allowed, &counts, &quotas)
    }

    fn joint(&mut self, problem: &Problem) -> Found {
        let count = |packing: &construct::Packing, team: usize| -> u32 {
            (0..self.team_of.len())
                .filter(|&kind| self.team_of[kind] == team)
                .map(|kind| packing.placed_of(kind))
                .sum()
        };
        let most = |team: usize| -> u64 {
            let kinds = (0..self.team_of.len()).filter(|&kind| self.team_of[kind] == team);
            kinds.map(|kind| problem.kinds[kind].room.min(u64::from(problem.kinds[kind].count))).sum()
        };
        let teams = 0..self.targets.len();
        if teams.clone().any(|team| most(team) < u64::from(self.targets[team])) {
            return Found::Nothing;
        }
        let packing = construct::best(problem);
        if teams.clone().all(|team| count(&packing, team) >= self.targets[team]) {
            return Found::Placement(packing);
        }
        let skips = teams.map(|team| match self.targets[team] {
            0 => 0,
            target => self.teams[team].count - target,
        });
        let skips = Skips { team_of: self.team_of.clone(), most: skips.collect() };
        search(problem, skips, self.budget)
    }
}
