//! Members of one shape with terms about each other, where the structure is simple enough for an exact answer
//! without search: at most one per domain; evenly over domains; all in one domain.

use super::problem::Problem;
use super::single;
use crate::rules::NO_DOMAIN;
use crate::rules::affinity::AffinityKey;
use crate::rules::anti_affinity::AntiAffinityRule;
use crate::rules::spread::SpreadRule;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bins and how many members go there.
pub(super) type Fill = Vec<(usize, u32)>;

/// The most members of a problem's only kind that can be placed, up to `wanted`, or nothing if the structure is not
/// one of those known here. `order` lists all bins that will do, most welcome first.
pub(super) fn fill(problem: &Problem, wanted: u32, order: &[usize]) -> Option<Fill> {
    // Of members that need the same exclusive claim, one can be placed.
    if wanted == 1 || problem.constraints.exclusive_claims.binds(0) {
        let acceptable = single::acceptable(problem);
        return Some(order.iter().find(|&&bin| acceptable(bin)).map(|&bin| (bin, 1)).into_iter().collect());
    }
    let rules = &problem.constraints;
    if !rules.volume_matching.are_local() {
        return None;
    }
    // Rules that do not bind members to each other have become part of what is allowed.
    let anti_affinity: Vec<&AntiAffinityRule> = rules.anti_affinity.within(0).collect();
    let affinity = rules.affinity.of(0).filter(|affinity| affinity.matched[0]);
    match (&anti_affinity[..], affinity, rules.spread.of(0)) {
        ([], None, []) => Some(in_order(problem, wanted, order, |_| true)),
        ([rule], None, []) => Some(one_per_domain(problem, wanted, order, rule)),
        ([], None, [rule]) if rule.counted[0] => Some(evenly(problem, wanted, order, rule)),
        ([], Some(affinity), []) => match &affinity.keys[..] {
            [key] => together(problem, wanted, order, key, affinity.exists),
            _ => None,
        },
        _ => None,
    }
}

/// Goes through bins in order; `count` tells how many of those who fit a bin takes, given how many fit.
fn go_through(
    problem: &Problem,
    wanted: u32,
    order: &[usize],
    mut count: impl FnMut(usize, u32) -> u32,
) -> Fill {
    let mut fill = Fill::new();
    let mut left = wanted;
    for &bin in order {
        let room = problem.room_in(0, bin).min(u64::from(left)) as u32;
        let taken = count(bin, room);
        if taken > 0 {
            fill.push((bin, taken));
            left -= taken;
        }
        if left == 0 {
            break;
        }
    }
    fill
}

fn in_order(problem: &Problem, wanted: u32, order: &[usize], usable: impl Fn(usize) -> bool) -> Fill {
    go_through(problem, wanted, order, |bin, room| if usable(bin) { room } else { 0 })
}

fn one_per_domain(problem: &Problem, wanted: u32, order: &[usize], rule: &AntiAffinityRule) -> Fill {
    let mut used = vec![false; rule.domains_count];
    go_through(problem, wanted, order, |bin, room| match used.get_mut(rule.domain[bin] as usize) {
        // A node without the label is in nobody's domain.
        None => room,
        Some(true) => 0,
        Some(used) => {
            *used = room > 0;
            room.min(1)
        }
    })
}

/// Always adds to the emptiest domain that has room: that keeps the floor as high and the rest as low as can be.
fn evenly(problem: &Problem, wanted: u32, order: &[usize], rule: &SpreadRule) -> Fill {
    let domains = rule.existing.len();
    let mut bins: Vec<Vec<(usize, u32)>> = vec![Vec::new(); domains];
    let mut rank = vec![usize::MAX; domains];
    for (position, &bin) in order.iter().enumerate().rev() {
        let room = problem.room_in(0, bin).min(u64::from(wanted)) as u32;
        if room > 0 && rule.domain[bin] != NO_DOMAIN {
            bins[rule.domain[bin] as usize].push((bin, room));
            rank[rule.domain[bin] as usize] = position;
        }
    }
    let taking_part = (0..domains).filter(|&domain| rule.takes_part[domain]);
    let full = taking_part.clone().filter(|&domain| bins[domain].is_empty());
    // The emptiest of those that cannot grow; nobody may be much above it.
    let mut stuck = full.map(|domain| rule.existing[domain]).min().unwrap_or(u32::MAX);
    let mut open: BinaryHeap<Reverse<(u32, usize, usize)>> = taking_part
        .filter(|&domain| !bins[domain].is_empty())
        .map(|domain| Reverse((rule.existing[domain], rank[domain], domain)))
        .collect();
    let mut fill = Fill::new();
    let mut seat_of: FxHashMap<usize, usize> = FxHashMap::default();
    for _ in 0..wanted {
        let Some(Reverse((count, rank, domain))) = open.pop() else {
            break;
        };
        let next = open.peek().map_or(u32::MAX, |Reverse((count, ..))| *count);
        let floor = if rule.floor_is_zero { 0 } else { stuck.min(next).min(count + 1) };
        if count + 1 > floor.saturating_add(rule.max_skew) {
            break;
        }
        let Some((bin, room)) = bins[domain].last_mut() else {
            break;
        };
        let at = *seat_of.entry(*bin).or_insert_with(|| {
            fill.push((*bin, 0));
            fill.len() - 1
        });
        fill[at].1 += 1;
        *room -= 1;
        if *room == 0 {
            bins[domain].pop();
        }
        if bins[domain].is_empty() {
            stuck = stuck.min(count + 1);
        } else {
            open.push(Reverse((count + 1, rank, domain)));
        }
    }
    fill
}

/// Everybody in one domain: the tightest that takes all. What needs several domains is left to the search.
fn together(
    problem: &Problem,
    wanted: u32,
    order: &[usize],
    key: &AffinityKey,
    exists: bool,
) -> Option<Fill> {
    let mut rooms = vec![0_u64; key.existing.len()];
    let mut rank = vec![usize::MAX; key.existing.len()];
    for (position, &bin) in order.iter().enumerate().rev() {
        if let Some(room) = rooms.get_mut(key.domain[bin] as usize) {
            *room += problem.room_in(0, bin);
            rank[key.domain[bin] as usize] = position;
        }
    }
    let takes_all = |&domain: &usize| {
        // Where a matching pod exists somewhere, one that is alone in its domain has nobody near.
        rooms[domain] >= u64::from(wanted) && (key.existing[domain] > 0 || !exists || wanted > 1)
    };
    let domain = (0..rooms.len())
        .filter(takes_all)
        .min_by_key(|&domain| (Reverse(key.existing[domain] > 0), rooms[domain], rank[domain]))?;
    Some(in_order(problem, wanted, order, |bin| key.domain[bin] as usize == domain))
}
