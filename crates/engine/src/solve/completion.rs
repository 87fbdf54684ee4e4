//! Exact search bin by bin, for members that have no wishes about each other.
//!
//! A bin is filled completely before the next one is looked at. If any placement exists then one exists in which no
//! remaining member would still fit into the bin, so only such fillings are tried, those that waste least first.
//! What is left to do after some bins depends only on how many members of each kind are left; a number that led
//! nowhere is remembered and not tried again.

use super::construct::Packing;
use super::problem::Problem;
use super::search::Found;
use rustc_hash::FxHashSet;

/// Bins that are searched. Every bin is a level of recursion.
const BINS_MAX: usize = 1_000;
/// Fillings of one bin that are looked at; a bin with more is not searched completely.
const FILLINGS_MAX: usize = 4_096;
/// Dead ends that are remembered.
const DEAD_ENDS_MAX: usize = 200_000;

/// True if a problem is for this search.
pub(super) fn suits(problem: &Problem) -> bool {
    problem.constraints.is_empty() && problem.bins.len() <= BINS_MAX
}

/// Looks for a placement that leaves out at most `skips_max` members.
pub(super) fn search(problem: &Problem, skips_max: u32, branches_max: u32) -> Found {
    let bins: Vec<usize> = (0..problem.bins.len()).collect();
    let mut completion = Completion::new(problem, bins, skips_max, branches_max);
    let left: Vec<u32> = completion.kinds.iter().map(|&kind| problem.kinds[kind].count).collect();
    if completion.bin(0, &left) {
        return Found::Placement(Packing::of_seats(problem, &completion.kinds, completion.seats()));
    }
    if completion.is_complete { Found::Nothing } else { Found::OutOfBudget }
}

/// Bins and how many members of each kind they hold.
pub(super) type Refilled = Vec<(usize, Vec<u32>)>;

/// Places members into these bins only, leaving out at most `skips_max`; tells what goes where and how many branches
/// that took. Counts are in the order of [`Problem::by_difficulty`].
pub(super) fn refill(
    problem: &Problem,
    bins: Vec<usize>,
    members: &[u32],
    skips_max: u32,
    branches_max: u32,
) -> (Option<Refilled>, u32) {
    let mut completion = Completion::new(problem, bins, skips_max, branches_max);
    let found = completion.bin(0, members);
    let seats = found.then(|| completion.seats().map(|(bin, seats)| (bin, seats.to_vec())).collect());
    (seats, branches_max - completion.branches_left)
}

struct Completion<'a> {
    problem: &'a Problem,
    skips_max: u32,
    /// Kinds from hard to easy; counts below are in this order.
    kinds: Vec<usize>,
    /// Bins, small ones first: they have the fewest fillings.
    order: Vec<usize>,
    /// `free_from[position][resource]`: what is free in the bins from a position of the order on.
    free_from: Vec<Vec<i128>>,
    /// `room_from[position][kind]`: copies of a kind that fit there by themselves.
    room_from: Vec<Vec<u64>>,
    path: Vec<Vec<u32>>,
    dead_ends: FxHashSet<(u32, Vec<u32>)>,
    branches_left: u32,
    is_complete: bool,
}

impl<'a> Completion<'a> {
    fn new(problem: &'a Problem, mut order: Vec<usize>, skips_max: u32, branches_max: u32) -> Self {
        let kinds = problem.by_difficulty();
        let size = |bin: usize| {
            let shares = problem.free_in(bin).iter().zip(&problem.total);
            shares
                .map(|(free, all)| i128::from(*free) * 1_000_000_000 / i128::from((*all).max(1)))
                .sum::<i128>()
        };
        order.sort_by_cached_key(|&bin| (size(bin), problem.class_of[bin], bin));
        let mut free_from = vec![vec![0; problem.resources.len()]];
        let mut room_from = vec![vec![0; kinds.len()]];
        for (position, &bin) in order.iter().rev().enumerate() {
            let free = free_from[position].iter().zip(problem.free_in(bin));
            let free = free.map(|(sum, free)| sum + i128::from(*free)).collect();
            let room = room_from[position].iter().zip(&kinds);
            let room = room.map(|(sum, &kind)| sum + problem.room_in(kind, bin)).collect();
            free_from.push(free);
            room_from.push(room);
        }
        free_from.reverse();
        room_from.reverse();
        Self {
            problem,
            skips_max,
            kinds,
            order,
            free_from,
            room_from,
            path: Vec::new(),
            dead_ends: FxHashSet::default(),
            branches_left: branches_max,
            is_complete: true,
        }
    }

    /// What the path put where.
    fn seats(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.order.iter().copied().zip(self.path.iter().map(Vec::as_slice))
    }

    /// Fills the bins from this position on; true if that places enough.
    fn bin(&mut self, position: usize, left: &[u32]) -> bool {
        if left.iter().sum::<u32>() <= self.skips_max {
            return true;
        }
        if position == self.order.len() || !self.can_still_succeed(position, left) {
            return false;
        }
        let state = (position as u32, left.to_vec());
        if self.dead_ends.contains(&state) {
            return false;
        }
        let (fillings, is_all) = fillings_of(self.problem, &self.kinds, self.order[position], left);
        self.is_complete &= is_all;
        for filling in fillings {
            let Some(branches_left) = self.branches_left.checked_sub(1) else {
                self.is_complete = false;
                return false;
            };
            self.branches_left = branches_left;
            let after: Vec<u32> = left.iter().zip(&filling).map(|(left, taken)| left - taken).collect();
            self.path.push(filling);
            if self.bin(position + 1, &after) {
                return true;
            }
            self.path.pop();
        }
        if self.dead_ends.len() < DEAD_ENDS_MAX {
            self.dead_ends.insert(state);
        }
        false
    }

    /// Each kind by itself and each resource by itself must still fit into the bins to come.
    fn can_still_succeed(&self, position: usize, left: &[u32]) -> bool {
        let room = left.iter().zip(&self.room_from[position]);
        let missing: u64 = room.map(|(left, room)| u64::from(*left).saturating_sub(*room)).sum();
        if missing > u64::from(self.skips_max) {
            return false;
        }
        let needed = left.iter().sum::<u32>() - self.skips_max;
        (0..self.problem.resources.len()).all(|resource| {
            let demand = |&kind: &usize| self.problem.kinds[kind].demand[resource];
            let mut demands: Vec<(i64, u32)> =
                self.kinds.iter().map(demand).zip(left.iter().copied()).collect();
            if self.skips_max > 0 {
                demands.sort_unstable();
            }
            // Whoever asks for least is the last to be left out.
            let mut to_place = needed;
            let mut sum = 0_i128;
            for (amount, count) in demands {
                let taken = count.min(to_place);
                sum += i128::from(amount) * i128::from(taken);
                to_place -= taken;
            }
            sum <= self.free_from[position][resource]
        })
    }
}

/// Fillings of a bin to which no member that is left could be added, least waste first, and whether these are all.
/// Counts are in the order of `kinds`.
pub(super) fn fillings_of(
    problem: &Problem,
    kinds: &[usize],
    bin: usize,
    left: &[u32],
) -> (Vec<Vec<u32>>, bool) {
    let mut fillings = Fillings {
        problem,
        kinds,
        bin,
        left,
        filling: vec![0; left.len()],
        free: problem.free_in(bin).to_vec(),
        found: Vec::new(),
    };
    fillings.kind(0);
    let mut found = fillings.found;
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    let is_all = found.len() < FILLINGS_MAX;
    (found.into_iter().map(|(_, filling)| filling).collect(), is_all)
}

/// All complete fillings of one bin.
struct Fillings<'a> {
    problem: &'a Problem,
    kinds: &'a [usize],
    bin: usize,
    left: &'a [u32],
    filling: Vec<u32>,
    free: Vec<i64>,
    found: Vec<(i128, Vec<u32>)>,
}

impl Fillings<'_> {
    fn kind(&mut self, at: usize) {
        if self.found.len() >= FILLINGS_MAX {
            return;
        }
        let Some(&kind) = self.kinds.get(at) else {
            if self.is_full() {
                self.found.push((self.waste(), self.filling.clone()));
            }
            return;
        };
        let copies = if self.problem.is_allowed(kind, self.bin) {
            self.problem.copies(kind, &self.free).min(u64::from(self.left[at])) as u32
        } else {
            0
        };
        for count in (0..=copies).rev() {
            self.shift(kind, -i64::from(count));
            self.filling[at] = count;
            self.kind(at + 1);
            self.filling[at] = 0;
            self.shift(kind, i64::from(count));
        }
    }

    /// True if no member that is left could be added.
    fn is_full(&self) -> bool {
        !self.kinds.iter().enumerate().any(|(at, &kind)| {
            self.filling[at] < self.left[at]
                && self.problem.is_allowed(kind, self.bin)
                && self.problem.copies(kind, &self.free) > 0
        })
    }

    /// What stays unused, in billionths of all that is free, summed over resources.
    fn waste(&self) -> i128 {
        let shares = self.free.iter().zip(&self.problem.total);
        shares.map(|(free, all)| i128::from(*free) * 1_000_000_000 / i128::from((*all).max(1))).sum()
    }

    fn shift(&mut self, kind: usize, count: i64) {
        for (free, demand) in self.free.iter_mut().zip(&self.problem.kinds[kind].demand) {
            *free += demand * count;
        }
    }
}
