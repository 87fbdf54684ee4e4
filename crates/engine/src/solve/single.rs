//! One pod by itself: whether a bin will do depends on existing pods alone.

use super::problem::Problem;

/// Tells whether a bin takes one member of a problem's only kind with all that it requires.
pub(super) fn acceptable(problem: &Problem) -> impl Fn(usize) -> bool {
    let rules = &problem.constraints;
    let affinity = rules.affinity.first().and_then(Option::as_ref);
    let spread = rules.spread.first().map_or(&[][..], Vec::as_slice);
    // Being the first of its kind is allowed to whoever would be near itself.
    let may_be_first = affinity.is_some_and(|affinity| affinity.matched[0] && !affinity.exists);
    let floors: Vec<u32> = spread.iter().map(|rule| rule.floor(&vec![0; rule.existing.len()])).collect();
    move |bin| {
        // What is allowed includes ports, anti-affinity and the labels that wishes need.
        let has_affinity = |affinity: &super::constraints::AffinityRule| {
            may_be_first || affinity.keys.iter().all(|key| key.existing[key.domain[bin] as usize] > 0)
        };
        problem.room_in(0, bin) > 0
            && affinity.is_none_or(has_affinity)
            // If the pod's own domain is the only emptiest one the floor rises with it; but a skew of 1 is always
            // allowed, so that the floor without the pod gives the same answer.
            && spread.iter().zip(&floors).all(|(rule, floor)| {
                let own = u32::from(rule.counted[0]);
                rule.existing[rule.domain[bin] as usize] + own <= floor + rule.max_skew
            })
    }
}
