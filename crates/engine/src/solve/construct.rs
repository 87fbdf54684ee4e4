//! Constructions: place member after member, each where it leaves the least over. Fast, and not complete.

use super::problem::Problem;
use crate::nodes::NodeId;

/// Members in bins.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    /// Bins that hold a member, in the order of first use, and what is still free in them.
    used: Vec<(usize, Vec<i64>)>,
    /// `counts[kind]`: bin and number of members.
    seats: Vec<Vec<(usize, u32)>>,
    placed: u32,
}

impl Packing {
    pub(super) fn empty(problem: &Problem) -> Self {
        Self {
            used: Vec::new(),
            seats: vec![Vec::new(); problem.kinds.len()],
            placed: 0,
        }
    }

    /// Members that have a seat.
    pub(super) fn placed_count(&self) -> u32 {
        self.placed
    }

    /// Members of a kind that have a seat.
    pub(super) fn placed_of(&self, kind: usize) -> u32 {
        self.seats[kind].iter().map(|&(_, count)| count).sum()
    }

    /// Seats by kind and node.
    pub(super) fn seats(&self, problem: &Problem) -> Vec<(usize, NodeId, u32)> {
        let seats = self.seats.iter().enumerate();
        seats
            .flat_map(|(kind, bins)| bins.iter().map(move |&(bin, n)| (kind, problem.bins[bin], n)))
            .collect()
    }

    /// Bins that hold a member, and what is free beside it.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, &[i64])> {
        self.used.iter().map(|(bin, free)| (*bin, free.as_slice()))
    }

    /// Adds one member.
    pub(super) fn put(&mut self, problem: &Problem, kind: usize, bin: usize) {
        let at = self
            .used
            .iter()
            .position(|(used, _)| *used == bin)
            .unwrap_or_else(|| {
                self.used.push((bin, problem.free_in(bin).to_vec()));
                self.used.len() - 1
            });
        for (free, demand) in self.used[at].1.iter_mut().zip(&problem.kinds[kind].demand) {
            *free -= demand;
        }
        match self.seats[kind].iter_mut().find(|(used, _)| *used == bin) {
            Some((_, count)) => *count += 1,
            None => self.seats[kind].push((bin, 1)),
        }
        self.placed += 1;
    }
}

/// The best of several constructions: the first that places everybody, else the one that places most.
pub(super) fn best(problem: &Problem, need: u32) -> Packing {
    let hard_first = problem.by_difficulty();
    let mut few_options_first = hard_first.clone();
    few_options_first.sort_by_key(|&kind| problem.kinds[kind].room);
    let easy_first: Vec<usize> = hard_first.iter().rev().copied().collect();
    let wanted: u32 = problem.kinds.iter().map(|kind| kind.count).sum();
    let mut best = Packing::empty(problem);
    for order in [hard_first, few_options_first, easy_first] {
        let packing = in_order(problem, &order);
        if packing.placed > best.placed {
            best = packing;
        }
        if best.placed == wanted {
            break;
        }
    }
    debug_assert!(need <= wanted);
    best
}

fn in_order(problem: &Problem, order: &[usize]) -> Packing {
    let mut packing = Packing::empty(problem);
    // Bins of a class are alike until one is used; so only the first unused one of each is looked at.
    let mut unused: Vec<Vec<usize>> = vec![Vec::new(); problem.classes_count];
    for bin in (0..problem.bins.len()).rev() {
        unused[problem.class_of[bin] as usize].push(bin);
    }
    for &kind in order {
        for _ in 0..problem.kinds[kind].count {
            let Some((bin, fresh)) = tightest(problem, &packing, &unused, kind) else {
                break;
            };
            if fresh {
                unused[problem.class_of[bin] as usize].pop();
            }
            packing.put(problem, kind, bin);
        }
    }
    packing
}

/// The bin that has least left over after taking a member, and whether it was unused.
fn tightest(
    problem: &Problem,
    packing: &Packing,
    unused: &[Vec<usize>],
    kind: usize,
) -> Option<(usize, bool)> {
    let used = packing.used().map(|(bin, free)| (bin, free, false));
    let fresh = unused
        .iter()
        .filter_map(|bins| bins.last())
        .map(|&bin| (bin, problem.free_in(bin), true));
    used.chain(fresh)
        .filter(|&(bin, free, _)| problem.is_allowed(kind, bin) && fits(&problem.kinds[kind].demand, free))
        .map(|(bin, free, is_fresh)| (left_over(problem, kind, free), bin, is_fresh))
        .min()
        .map(|(_, bin, is_fresh)| (bin, is_fresh))
}

/// True if a demand fits into what is free.
pub(super) fn fits(demand: &[i64], free: &[i64]) -> bool {
    demand.iter().zip(free).all(|(demand, free)| demand <= free)
}

/// What stays unused, in billionths of all that is free, summed over resources.
fn left_over(problem: &Problem, kind: usize, free: &[i64]) -> i128 {
    let demand = &problem.kinds[kind].demand;
    let amounts = demand.iter().zip(free).zip(&problem.total);
    amounts
        .map(|((demand, free), all)| i128::from(free - demand) * 1_000_000_000 / i128::from((*all).max(1)))
        .sum()
}
