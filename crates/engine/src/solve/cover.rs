//! Repair: choose a filling for every bin so that together they cover all members.
//!
//! A construction for tight packings, where placing member after member paints itself into a corner. Every bin starts
//! with the filling that wastes least; then, one bin at a time, fillings are exchanged for those that leave fewer
//! members out. Kinds that stay out for long gain weight until somebody makes room for them. No randomness: ties go
//! by position.

use super::completion::fillings_of;
use super::neighbourhood::Seating;
use super::problem::Problem;

/// Exchanges that are tried before giving up.
const EXCHANGES_MAX: u32 = 300;
/// Comparisons of fillings that are made before giving up; bounds the time.
const COMPARISONS_MAX: u64 = 1_000_000;
/// How many exchanges a bin keeps its new filling at least.
const REST: u32 = 4;
/// Heaviest that a kind becomes; far from what a sum over members could overflow with.
const WEIGHT_MAX: i64 = 1 << 32;
/// Fillings that are kept for a bin, least waste first.
const FILLINGS_KEPT: usize = 400;

/// Fillings for all bins that leave out few members, in the order of [`Problem::by_difficulty`]. The fewest that
/// were reached, none if repair was lucky.
pub(super) fn repair(problem: &Problem, skips_max: u32) -> Seating {
    let mut cover = Cover::new(problem);
    let mut best = cover.seating();
    let mut comparisons = 0;
    for round in 0..EXCHANGES_MAX {
        if cover.left_out() < best.left_out() {
            best = cover.seating();
        }
        comparisons += cover.comparisons_per_round;
        if best.left_out() <= skips_max || comparisons > COMPARISONS_MAX {
            break;
        }
        cover.exchange(round);
    }
    best
}

struct Cover<'a> {
    problem: &'a Problem,
    wanted: Vec<i64>,
    /// Fillings by class of bin, least waste first.
    fillings: Vec<Vec<Vec<u32>>>,
    /// Which filling a bin has.
    chosen: Vec<usize>,
    rests_until: Vec<u32>,
    /// Members that are still without a seat; below zero if more seats are kept than there are members.
    missing: Vec<i64>,
    weights: Vec<i64>,
    comparisons_per_round: u64,
}

impl<'a> Cover<'a> {
    fn new(problem: &'a Problem) -> Self {
        let kinds = problem.by_difficulty();
        let counts: Vec<u32> = kinds.iter().map(|&kind| problem.kinds[kind].count).collect();
        let mut fillings: Vec<Vec<Vec<u32>>> = vec![Vec::new(); problem.classes_count];
        for bin in 0..problem.bins.len() {
            let class = &mut fillings[problem.class_of[bin] as usize];
            if class.is_empty() {
                *class = fillings_of(problem, &kinds, bin, &counts).0;
                class.truncate(FILLINGS_KEPT);
            }
        }
        let wanted: Vec<i64> = counts.iter().map(|&count| i64::from(count)).collect();
        let mut missing = wanted.clone();
        for &class in &problem.class_of {
            if let Some(filling) = fillings[class as usize].first() {
                for (missing, count) in missing.iter_mut().zip(filling) {
                    *missing -= i64::from(*count);
                }
            }
        }
        let comparisons = problem.class_of.iter().map(|&class| fillings[class as usize].len() as u64).sum();
        // Members that are hard to place are dear to leave out.
        let weights = kinds.iter().map(|&kind| 1 + problem.kinds[kind].share / 1_000_000).collect();
        Self {
            problem,
            wanted,
            fillings,
            chosen: vec![0; problem.bins.len()],
            rests_until: vec![0; problem.bins.len()],
            missing,
            weights,
            comparisons_per_round: comparisons,
        }
    }

    fn left_out(&self) -> u32 {
        self.missing.iter().map(|&missing| missing.max(0) as u32).sum()
    }

    /// Makes the best exchange there is, if it helps; else makes whoever is left out heavier.
    fn exchange(&mut self, round: u32) {
        let mut best: Option<(i64, usize, usize)> = None;
        for bin in 0..self.chosen.len() {
            if self.rests_until[bin] > round {
                continue;
            }
            let fillings = &self.fillings[self.problem.class_of[bin] as usize];
            let Some(current) = fillings.get(self.chosen[bin]) else { continue };
            for (index, filling) in fillings.iter().enumerate() {
                let change = self.change(current, filling);
                if best.is_none_or(|(least, ..)| change < least) && index != self.chosen[bin] {
                    best = Some((change, bin, index));
                }
            }
        }
        if best.is_none_or(|(change, ..)| change >= 0) {
            for (weight, &missing) in self.weights.iter_mut().zip(&self.missing) {
                if missing > 0 {
                    *weight = (*weight + 1 + *weight / 8).min(WEIGHT_MAX);
                }
            }
        }
        let Some((_, bin, index)) = best else { return };
        let fillings = &self.fillings[self.problem.class_of[bin] as usize];
        for (at, missing) in self.missing.iter_mut().enumerate() {
            *missing += i64::from(fillings[self.chosen[bin]][at]) - i64::from(fillings[index][at]);
        }
        self.chosen[bin] = index;
        self.rests_until[bin] = round + REST;
    }

    /// How much heavier the members that are left out become if one filling is exchanged for another.
    fn change(&self, from: &[u32], to: &[u32]) -> i64 {
        let mut sum = 0;
        for (at, (&from, &to)) in from.iter().zip(to).enumerate() {
            if from != to {
                let before = self.missing[at];
                let after = before + i64::from(from) - i64::from(to);
                sum += self.weights[at] * (after.max(0) - before.max(0));
            }
        }
        sum
    }

    fn seating(&self) -> Seating {
        let mut left: Vec<u32> = self.wanted.iter().map(|&wanted| wanted as u32).collect();
        let mut by_bin = Vec::with_capacity(self.chosen.len());
        for (bin, &chosen) in self.chosen.iter().enumerate() {
            let fillings = &self.fillings[self.problem.class_of[bin] as usize];
            let mut seats = vec![0; left.len()];
            for (at, &count) in fillings.get(chosen).into_iter().flatten().enumerate() {
                seats[at] = count.min(left[at]);
                left[at] -= seats[at];
            }
            by_bin.push(seats);
        }
        Seating { by_bin, left }
    }
}
