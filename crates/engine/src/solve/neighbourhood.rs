//! Tight packings: empty a few bins and fill them again, exactly, so that one member more gets a seat; then others.
//!
//! A construction: it places or gives up, and never refuses. Which bins are emptied follows from a fixed sequence of
//! numbers, so that the same problem always has the same answer.

use super::completion::refill;
use super::construct::Packing;
use super::cover;
use super::problem::Problem;

/// Bins that are emptied at once.
const BINS_AT_ONCE: usize = 8;
/// Branches that one refill may look at.
const BRANCHES_AT_ONCE: u32 = 500;
/// Refills that are tried.
const REFILLS_MAX: u32 = 2_000;

/// Members by bin and kind, in the order of [`Problem::by_difficulty`], and members without a seat.
#[derive(Debug, Clone)]
pub(super) struct Seating {
    pub(super) by_bin: Vec<Vec<u32>>,
    pub(super) left: Vec<u32>,
}

impl Seating {
    /// How many members have no seat.
    pub(super) fn left_out(&self) -> u32 {
        self.left.iter().sum()
    }
}

/// A packing that leaves out at most `skips_max` members, if one is found.
pub(super) fn search(problem: &Problem, skips_max: u32, branches_max: u32) -> Option<Packing> {
    if branches_max == 0 {
        return None;
    }
    let mut seating = cover::repair(problem, skips_max);
    let mut numbers = Numbers(1);
    let mut branches_left = branches_max;
    for _ in 0..REFILLS_MAX {
        if seating.left_out() <= skips_max {
            let kinds = problem.by_difficulty();
            let seats = seating.by_bin.iter().enumerate().map(|(bin, seats)| (bin, seats.as_slice()));
            return Some(Packing::of_seats(problem, &kinds, seats));
        }
        if branches_left == 0 {
            break;
        }
        let bins = numbers.draw(problem.bins.len());
        let mut members = seating.left.clone();
        for &bin in &bins {
            for (members, seats) in members.iter_mut().zip(&seating.by_bin[bin]) {
                *members += seats;
            }
        }
        let skips = seating.left_out() - 1;
        let branches = BRANCHES_AT_ONCE.min(branches_left);
        let (found, spent) = refill(problem, bins.clone(), &members, skips, branches);
        branches_left -= spent.max(1);
        let Some(seats) = found else { continue };
        for &bin in &bins {
            seating.by_bin[bin].fill(0);
        }
        for (bin, seats) in seats {
            for (members, seats) in members.iter_mut().zip(&seats) {
                *members -= seats;
            }
            seating.by_bin[bin] = seats;
        }
        seating.left = members;
    }
    None
}

/// A fixed sequence of numbers that look arbitrary.
struct Numbers(u64);

impl Numbers {
    /// Some bins, each once.
    fn draw(&mut self, bins: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bins).collect();
        let count = BINS_AT_ONCE.min(bins);
        for at in 0..count {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let other = at + ((self.0 >> 33) as usize) % (bins - at);
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }
}
