//! Constructions: place member after member, each where it leaves the least over. Fast, and not complete.

use super::budget::Budget;
use super::problem::Problem;
use crate::rules::Loads;
use crate::rules::resources::fits;
use crate::state::nodes::NodeId;

/// Domains of an affinity term that are tried one by one.
const DOMAINS_TRIED_MAX: usize = 64;

/// Steps that it takes to see whether rules allow a member in a bin.
const STEPS_OF_RULES: usize = 32;

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
        Self { used: Vec::new(), seats: vec![Vec::new(); problem.kinds.len()], placed: 0 }
    }

    /// The only kind of a problem in these bins.
    pub(super) fn of_fill(problem: &Problem, fill: &[(usize, u32)]) -> Self {
        let mut packing = Self::empty(problem);
        // Every bin is there once, so that none has to be looked for.
        for &(bin, count) in fill {
            let mut free = problem.free_in(bin).to_vec();
            for (free, demand) in free.iter_mut().zip(&problem.kinds[0].demand) {
                *free -= demand * i64::from(count);
            }
            packing.used.push((bin, free));
            packing.seats[0].push((bin, count));
            packing.placed += count;
        }
        packing
    }

    /// Bins with how many members of each kind go there, in the given order of kinds.
    pub(super) fn of_seats<'a>(
        problem: &Problem,
        kinds: &[usize],
        seats: impl Iterator<Item = (usize, &'a [u32])>,
    ) -> Self {
        let mut packing = Self::empty(problem);
        for (bin, counts) in seats {
            for (&kind, &count) in kinds.iter().zip(counts).filter(|(_, count)| **count > 0) {
                packing.put(problem, kind, bin, count);
            }
        }
        packing
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

    /// Every member: its kind and bin.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, usize)> {
        let seats = self.seats.iter().enumerate();
        seats.flat_map(|(kind, bins)| {
            bins.iter().flat_map(move |&(bin, count)| (0..count).map(move |_| (kind, bin)))
        })
    }

    /// Bins that hold a member, and what is free beside it.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, &[i64])> {
        self.used.iter().map(|(bin, free)| (*bin, free.as_slice()))
    }

    /// Adds members of one kind.
    pub(super) fn put(&mut self, problem: &Problem, kind: usize, bin: usize, count: u32) {
        let at = self.used.iter().position(|(used, _)| *used == bin).unwrap_or_else(|| {
            self.used.push((bin, problem.free_in(bin).to_vec()));
            self.used.len() - 1
        });
        for (free, demand) in self.used[at].1.iter_mut().zip(&problem.kinds[kind].demand) {
            *free -= demand * i64::from(count);
        }
        match self.seats[kind].iter_mut().find(|(used, _)| *used == bin) {
            Some((_, seats)) => *seats += count,
            None => self.seats[kind].push((bin, count)),
        }
        self.placed += count;
    }
}

/// Steps that it takes to tell what a member would leave over of one resource.
const LEFT_OVER: usize = 24;

/// The best of several constructions: the first that places everybody, else the one that places most. When the budget
/// ends, the best so far.
pub(super) fn best(problem: &Problem, budget: &mut Budget) -> Packing {
    let hard_first = problem.by_difficulty();
    let mut few_options_first = hard_first.clone();
    few_options_first.sort_by_key(|&kind| problem.kinds[kind].room);
    let easy_first: Vec<usize> = hard_first.iter().rev().copied().collect();
    let wanted: u32 = problem.kinds.iter().map(|kind| kind.count).sum();
    let mut best = Packing::empty(problem);
    for mut order in [hard_first, few_options_first, easy_first] {
        // Whoever others want to be near comes before those who want it.
        order.sort_by_key(|&kind| problem.constraints.affinity.of(kind).is_some());
        for within in domains_to_try(problem, budget) {
            if !budget.spend(4 * problem.bins.len() + problem.constraints_cost()) {
                return best;
            }
            let packing = in_order(problem, &order, within, budget);
            if packing.placed > best.placed {
                best = packing;
            }
            if best.placed == wanted {
                return best;
            }
        }
    }
    best
}

/// Where members that want to be near each other are looked for: in each domain by itself, roomiest first, then
/// anywhere. A single "anywhere" if nobody has such a term.
fn domains_to_try(problem: &Problem, budget: &mut Budget) -> Vec<Option<(usize, u32)>> {
    let Some((kind, affinity)) = problem.constraints.affinity.first_served() else {
        return vec![None];
    };
    let Some(key) = affinity.keys.first() else {
        return vec![None];
    };
    if !budget.spend(16 * problem.bins.len() + 32 * key.existing.len()) {
        return vec![None];
    }
    let mut rooms: Vec<(u64, u32)> = (0..key.existing.len() as u32).map(|domain| (0, domain)).collect();
    for (bin, &domain) in key.domain.iter().enumerate() {
        if let Some((room, _)) = rooms.get_mut(domain as usize) {
            *room += problem.room_in(kind, bin);
        }
    }
    // Domains by the first bin in them, because their numbers depend on history.
    let mut first_bin = vec![usize::MAX; rooms.len()];
    for (bin, &domain) in key.domain.iter().enumerate().rev() {
        if let Some(first) = first_bin.get_mut(domain as usize) {
            *first = bin;
        }
    }
    rooms.retain(|&(room, _)| room > 0);
    rooms.sort_by_key(|&(room, domain)| (std::cmp::Reverse(room), first_bin[domain as usize]));
    rooms.truncate(DOMAINS_TRIED_MAX);
    rooms.into_iter().map(|(_, domain)| Some((kind, domain))).chain([None]).collect()
}

/// Places kinds in this order; those with an affinity term only within the given domain of that term.
fn in_order(
    problem: &Problem,
    order: &[usize],
    within: Option<(usize, u32)>,
    budget: &mut Budget,
) -> Packing {
    let mut packing = Packing::empty(problem);
    let mut loads = Loads::new(&problem.constraints);
    // Bins of a class are alike until one is used; so only the first unused one of each is looked at.
    let mut unused: Vec<Vec<usize>> = vec![Vec::new(); problem.classes_count];
    for bin in (0..problem.bins.len()).rev() {
        unused[problem.class_of[bin] as usize].push(bin);
    }
    let domains = within.and_then(|(kind, domain)| {
        let affinity = problem.constraints.affinity.of(kind)?;
        Some((&affinity.keys.first()?.domain, domain))
    });
    let rules_bind = !problem.constraints.is_empty();
    let cost = 4 + LEFT_OVER * problem.resources.len() + if rules_bind { STEPS_OF_RULES } else { 0 };
    let cost_of_a_put = problem.cost_of_a_put();
    for &kind in order {
        let domains = domains.filter(|_| problem.constraints.affinity.of(kind).is_some());
        let is_within = |bin: usize| domains.is_none_or(|(of_bin, domain)| of_bin[bin] == domain);
        let mut left = problem.kinds[kind].count;
        while left > 0 && budget.spend(cost_of_a_put + cost * (packing.used.len() + unused.len())) {
            let used = packing.used().map(|(bin, free)| (bin, free, false));
            let fresh = unused.iter().filter_map(|bins| bins.last());
            let fresh = fresh.map(|&bin| (bin, problem.free_in(bin), true));
            let chosen = used
                .chain(fresh)
                .filter(|&(bin, free, _)| {
                    problem.is_allowed(kind, bin)
                        && fits(&problem.kinds[kind].demand, free)
                        && is_within(bin)
                        && loads.admits(kind, bin)
                        && loads.pleases(kind, bin)
                })
                .map(|(bin, free, is_fresh)| (left_over(problem, kind, free), bin, is_fresh, free))
                .min_by_key(|&(left_over, bin, ..)| (left_over, bin));
            let Some((_, bin, is_fresh, free)) = chosen else { break };
            // A bin that leaves the least over for one member does so for the next, too, unless rules forbid it.
            let count = if rules_bind { 1 } else { problem.copies(kind, free).min(u64::from(left)) as u32 };
            if is_fresh {
                unused[problem.class_of[bin] as usize].pop();
            }
            packing.put(problem, kind, bin, count);
            if rules_bind {
                loads.put(kind, bin);
            }
            left -= count;
        }
    }
    if loads.holds() { packing } else { Packing::empty(problem) }
}

/// What stays unused, in billionths of all that is free, summed over resources.
fn left_over(problem: &Problem, kind: usize, free: &[i64]) -> i128 {
    let demand = &problem.kinds[kind].demand;
    let amounts = demand.iter().zip(free).zip(&problem.total);
    amounts
        .map(|((demand, free), all)| i128::from(free - demand) * 1_000_000_000 / i128::from((*all).max(1)))
        .sum()
}
