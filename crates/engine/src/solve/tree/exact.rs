//! Small trees: every choice of domains is looked at, the most promising first, and every part is solved for together.
//!
//! First comes how many members of every team are to be placed, more before fewer. For each such choice the tree is
//! gone through from the top: a domain for every composite, some cells for every group, a domain for every slice. What
//! is then allowed is a flat problem for the search. A choice that could not beat the best one is not followed.
//!
//! Before that, the same is done with as much left open as possible: every part may use all of the domain that it
//! requires. If there is no such placement then there is none; else there is one to fall back on.

use super::bounds;
use super::ground::{Ground, Region};
use super::objective::Merit;
use super::options::{Place, Steps};
use super::targets;
use crate::rules::quota::Quota;
use crate::solve::Seats;
use crate::solve::budget::Budget;
use crate::solve::construct;
use crate::solve::limits::Limits;
use crate::solve::problem::Problem;
use crate::solve::request::{Part, Tree};
use crate::solve::search::{Found, Skips, search};

/// Steps of the budget that one choice of domains takes, beside what its search takes.
const STEPS_PER_CHOICE: usize = 400;
/// Steps that one inner node of the search takes, beside the list of its choices.
const STEPS_PER_NODE: usize = 64;

/// Bins up to which groups are compared with each other before a search is begun.
const BINS_COMPARED_MAX: usize = 64;

/// Members of one group that are interchangeable as far as numbers go: leaders, or everybody else.
#[derive(Debug, Clone)]
pub(super) struct Team {
    pub(super) part: usize,
    pub(super) leads: bool,
    pub(super) count: u32,
    /// How many of them could be placed at best.
    pub(super) most: u32,
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

/// True if there are so few domains to choose from that all choices can be looked at.
pub(super) fn is_small(ground: &Ground<'_>, limits: Limits) -> bool {
    let everywhere = ground.everywhere();
    has_few_cells(ground, limits)
        && ground.tree.groups().all(|part| match ground.part(part).slices {
            Some(rule) => ground.has_few_domains(part, rule.level, &everywhere, limits.exact_cells),
            None => true,
        })
}

/// True if there are few cells for every group; what there is to choose may still be much.
pub(super) fn has_few_cells(ground: &Ground<'_>, limits: Limits) -> bool {
    let everywhere = ground.everywhere();
    ground.problem.kinds.iter().map(|kind| kind.count).sum::<u32>() <= limits.exact_members
        && ground.tree.groups().count() <= limits.exact_groups
        && ground.tree.groups().all(|part| ground.has_few_cells(part, &everywhere, limits.exact_cells))
}

/// Looks for any placement of a tree that is too large to look at every choice: every part may use all of the domain that
/// it requires, and either all members are placed, or as many as are needed. What is not found may exist.
pub(super) fn any(ground: &Ground<'_>, limits: Limits, budget: &mut Budget) -> Option<Seats> {
    let most = bounds::most_by_part(ground, budget)?;
    let teams = teams(ground, &most);
    let all: Vec<u32> = teams.iter().map(|team| team.most).collect();
    let mut missing: Vec<u32> = ground.tree.parts.iter().map(Part::need).collect();
    let mut needed = |team: &Team| {
        let count = team.most.min(missing[team.part].max(u32::from(team.leads)));
        missing[team.part] = missing[team.part].saturating_sub(count);
        count
    };
    let needed: Vec<u32> = teams.iter().map(&mut needed).collect();
    let mut exact = Exact::new(ground, limits, &teams, budget);
    for mut target in [all, needed] {
        leave_out_unmet(&ground.tree, &teams, &mut target);
        if target.iter().any(|&count| count > 0) && exact.can_be_placed(&target) {
            return exact.fallback;
        }
    }
    None
}

/// Members of groups that would not have what they need, or that are below a composite that would not, are not placed.
fn leave_out_unmet(tree: &Tree, teams: &[Team], target: &mut [u32]) {
    loop {
        let mut placed = vec![0; tree.parts.len()];
        teams.iter().zip(&*target).for_each(|(team, count)| placed[team.part] += count);
        let met = tree.met(&placed);
        let is_met = |team: &Team| {
            let mut at = Some(team.part);
            while let Some(part) = at {
                if !met[part] {
                    return false;
                }
                at = tree.parts[part].parent;
            }
            true
        };
        let unmet: Vec<usize> =
            (0..teams.len()).filter(|&team| target[team] > 0 && !is_met(&teams[team])).collect();
        if unmet.is_empty() {
            return;
        }
        unmet.into_iter().for_each(|team| target[team] = 0);
    }
}

/// Looks for the best placement of a small tree.
pub(super) fn solve(ground: &Ground<'_>, limits: Limits, budget: &mut Budget) -> Answer {
    let Some(most) = bounds::most_by_part(ground, budget) else { return Answer::Unknown };
    let teams = teams(ground, &most);
    let Some(targets) = targets::list(&ground.tree, &teams, limits.exact_targets, budget) else {
        return Answer::Unknown;
    };
    let mut exact = Exact::new(ground, limits, &teams, budget);
    let mut total = None;
    for target in targets {
        let sum: u32 = target.iter().sum();
        // More members come before everything else.
        if (exact.best.is_some() || exact.fallback.is_some()) && total != Some(sum) {
            break;
        }
        total = Some(sum);
        if exact.can_be_placed(&target) {
            exact.try_target(target);
        }
        if exact.is_over {
            break;
        }
    }
    match exact.best.map(|(_, seats)| seats).or(exact.fallback) {
        Some(seats) => Answer::Placed(seats),
        None if exact.is_over => Answer::Unknown,
        None => Answer::Nothing,
    }
}

fn teams(ground: &Ground<'_>, most: &[u64]) -> Vec<Team> {
    let mut teams: Vec<Team> = Vec::new();
    for (kind, belonging) in ground.tree.kinds.iter().enumerate() {
        let count = ground.problem.kinds[kind].count;
        match teams.iter_mut().find(|team| team.part == belonging.part && team.leads == belonging.leads) {
            Some(team) => team.count += count,
            None => teams.push(Team { part: belonging.part, leads: belonging.leads, count, most: 0 }),
        }
    }
    for team in &mut teams {
        team.most = most[team.part].min(u64::from(team.count)) as u32;
    }
    teams
}

struct Exact<'e, 'g> {
    ground: &'e Ground<'g>,
    limits: Limits,
    teams: &'e [Team],
    /// By kind.
    team_of: Vec<usize>,
    /// By team: how many are to be placed.
    targets: Vec<u32>,
    /// By part and resource: what members that are to be placed ask for at least.
    demand: Vec<Vec<i128>>,
    best: Option<(Merit, Seats)>,
    /// A placement of as many members, good or not.
    fallback: Option<Seats>,
    /// Only whether there is a placement is asked.
    is_loose: bool,
    /// There is one.
    is_done: bool,
    is_over: bool,
    budget: &'e mut Budget,
}

/// Of what is left, one part in this many is to find out whether there is any placement; the rest is for others who may
/// find one.
const LOOSE_SHARE: u64 = 2;

impl<'e, 'g> Exact<'e, 'g> {
    fn new(ground: &'e Ground<'g>, limits: Limits, teams: &'e [Team], budget: &'e mut Budget) -> Self {
        let team_of = ground.tree.kinds.iter().map(|kind| {
            teams.iter().position(|team| team.part == kind.part && team.leads == kind.leads).unwrap_or(0)
        });
        Self {
            ground,
            limits,
            team_of: team_of.collect(),
            targets: Vec::new(),
            demand: Vec::new(),
            teams,
            best: None,
            fallback: None,
            is_loose: false,
            is_done: false,
            is_over: false,
            budget,
        }
    }

    /// Whether so many members can be placed at all.
    fn can_be_placed(&mut self, targets: &[u32]) -> bool {
        let kept = self.budget.keep(LOOSE_SHARE);
        (self.is_loose, self.is_done) = (true, false);
        self.try_target(targets.to_vec());
        self.is_loose = false;
        self.budget.restore(kept);
        self.is_done
    }

    fn try_target(&mut self, targets: Vec<u32>) {
        let per_kind = 16 * self.ground.problem.kinds.len() * self.ground.problem.resources.len();
        if !self.budget.spend(STEPS_PER_CHOICE + self.ground.looks(1) + per_kind) {
            self.is_over = true;
            return;
        }
        self.targets = targets;
        let mut placed = vec![0; self.ground.tree.parts.len()];
        let mut workers = vec![0; self.ground.tree.parts.len()];
        for (team, target) in self.teams.iter().zip(&self.targets) {
            placed[team.part] += target;
            workers[team.part] += if team.leads { 0 } else { *target };
        }
        self.demand = self.least_demand(&placed);
        let Some(steps) = Steps::new(self.ground, &placed, &workers, self.is_loose, self.budget) else {
            self.is_over = true;
            return;
        };
        let mut place = Place::new(self.ground);
        self.descend(&steps, 0, &mut place, &Merit::default());
    }

    /// Decides about all steps from this one on.
    fn descend(&mut self, steps: &Steps<'_, '_>, at: usize, place: &mut Place, merit: &Merit) {
        let is_beaten = |(best, _): &(Merit, Seats)| merit.and(steps.hope(at)) <= *best;
        if self.is_over || !self.is_loose && self.best.as_ref().is_some_and(is_beaten) {
            return;
        }
        if at == steps.len() {
            self.try_place(place, merit);
            return;
        }
        if !self.budget.spend(STEPS_PER_NODE) {
            self.is_over = true;
            return;
        }
        if steps.begins_slices(at) && !self.could_be_cut(place) {
            return;
        }
        let Some(options) = steps.options(at, place, self.budget) else {
            self.is_over = true;
            return;
        };
        let cost = STEPS_PER_NODE + self.ground.looks(1) + options.cost();
        for option in options {
            if self.is_over || !self.budget.spend(cost) {
                self.is_over = true;
                return;
            }
            let merit = merit.and(&option.merit);
            place.enter(&option);
            if self.may_fit(place) {
                self.descend(steps, at + 1, place, &merit);
            }
            place.leave(&option);
            if self.is_loose && self.is_done {
                return;
            }
        }
    }

    /// False if groups that were sent to the same bins ask for more than there is in them.
    fn may_fit(&mut self, place: &Place) -> bool {
        let ground = self.ground;
        let groups: Vec<(usize, &Region)> =
            ground.tree.groups().filter_map(|group| Some((group, place.chosen(group)?))).collect();
        let bins = ground.problem.bins.len();
        if groups.len() < 2 || bins > BINS_COMPARED_MAX {
            return true;
        }
        self.budget.charge(groups.len() * (groups.len() + ground.problem.resources.len()) * bins);
        groups.iter().all(|&(_, region)| {
            let is_inside = |other: &Region| other.iter().zip(region).all(|(other, here)| !other || *here);
            let inside = groups.iter().filter(|(_, other)| is_inside(other)).map(|&(group, _)| group);
            let inside: Vec<usize> = inside.collect();
            (0..ground.problem.resources.len()).all(|resource| {
                let asked: i128 = inside.iter().map(|&group| self.demand[group][resource]).sum();
                let bins = (0..bins).filter(|&bin| region[bin]);
                let free: i128 = bins.map(|bin| i128::from(ground.problem.free_in(bin)[resource])).sum();
                asked <= free
            })
        })
    }

    /// By part and resource: what the least demanding of its members ask for, as many as are to be placed.
    fn least_demand(&self, placed: &[u32]) -> Vec<Vec<i128>> {
        let problem = &self.ground.problem;
        let least = |(part, &count): (usize, &u32)| {
            let of_resource = |resource: usize| {
                let kinds = self.ground.kinds_of(part).iter().map(|&kind| &problem.kinds[kind]);
                let mut demands: Vec<(i64, u32)> =
                    kinds.map(|kind| (kind.demand[resource], kind.count)).collect();
                demands.sort_unstable();
                let mut left = count;
                let taken = demands.into_iter().map(|(amount, count)| {
                    let taken = count.min(left);
                    left -= taken;
                    i128::from(amount) * i128::from(taken)
                });
                taken.sum()
            };
            (0..problem.resources.len()).map(of_resource).collect()
        };
        placed.iter().enumerate().map(least).collect()
    }

    /// False if members do not fit into the domains that were chosen, however they are cut into slices.
    fn could_be_cut(&mut self, place: &Place) -> bool {
        if !self.budget.spend(place.cost(self.ground) + self.ground.problem.cost_of_a_copy()) {
            self.is_over = true;
            return false;
        }
        let problem = self.narrowed(place);
        match self.joint(&problem) {
            Found::Placement(_) => true,
            Found::Nothing => false,
            Found::OutOfBudget => {
                self.is_over = true;
                false
            }
        }
    }

    /// Everything about domains is decided; the rest is a search.
    fn try_place(&mut self, place: &Place, merit: &Merit) {
        if !self
            .budget
            .spend(STEPS_PER_CHOICE + place.cost(self.ground) + self.ground.problem.cost_of_a_copy())
        {
            self.is_over = true;
            return;
        }
        let problem = self.narrowed(place);
        match self.joint(&problem) {
            Found::Placement(packing) if self.is_loose => {
                self.is_done = true;
                self.fallback = Some(packing.seats(&problem));
            }
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
        if self.limits.constructions {
            let packing = construct::best(problem, self.budget);
            if teams.clone().all(|team| count(&packing, team) >= self.targets[team]) {
                return Found::Placement(packing);
            }
        }
        if !self.limits.search {
            return Found::OutOfBudget;
        }
        let skips = teams.map(|team| match self.targets[team] {
            0 => 0,
            target => self.teams[team].count - target,
        });
        let skips = Skips { team_of: self.team_of.clone(), most: skips.collect() };
        search(problem, skips, self.budget)
    }
}
