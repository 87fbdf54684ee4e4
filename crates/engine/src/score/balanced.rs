//! NodeResourcesBalancedAllocation: whether a pod makes the use of a node's resources more even or less.
//!
//! As of Kubernetes 1.36 what counts is the change: the balance with the pod against the balance without it.
//! Upstream calculates in floating point, and so does this, step by step (see [`super::double`]). Where more than two
//! resources count, upstream's own result depends on whether the processor fuses multiplication and addition; this
//! is the result of those that do not (x86-64).

use super::double::Double;
use super::{SCORE_MAX, Usage};

/// The score of a node: 75 if the pod changes nothing, 100 if it turns utter imbalance into balance, 50 for the
/// reverse. Resources that the node does not have are left out.
pub(crate) fn score(resources: &[Usage]) -> i64 {
    let half = SCORE_MAX / 2;
    let change = balance(resources, |usage| usage.after) - balance(resources, |usage| usage.before);
    half + (half + change) / 2
}

/// `(1 - standard deviation of the shares in use) * 100`, cut to a whole number.
fn balance(resources: &[Usage], used: impl Fn(&Usage) -> i64) -> i64 {
    if let [one, other] = resources
        && let Some(balance) = estimate((used(one), one.capacity), (used(other), other.capacity))
    {
        return balance;
    }
    let there = || resources.iter().filter(|usage| usage.capacity > 0);
    let share = |usage: &Usage| {
        let share = Double::from_integer(used(usage)).divide(Double::from_integer(usage.capacity));
        share.min(Double::ONE)
    };
    let deviation = match there().count() {
        0 | 1 => Double::ZERO,
        2 => {
            let mut shares = there().map(share);
            let (one, other) = (shares.next(), shares.next());
            one.unwrap_or(Double::ZERO).distance(other.unwrap_or(Double::ZERO)).halved()
        }
        count => {
            let count = Double::from_integer(count as i64);
            let mean = there().map(share).fold(Double::ZERO, Double::plus).divide(count);
            let squares = there().map(|usage| share(usage).distance(mean)).map(|far| far.times(far));
            squares.fold(Double::ZERO, Double::plus).divide(count).square_root()
        }
    };
    Double::ONE.distance(deviation.min(Double::ONE)).times(Double::from_integer(SCORE_MAX)).whole()
}

/// Binary digits of a share in an estimate.
const DIGITS: u32 = 20;

/// The balance of two resources, used and capacity, by a cheap calculation; nothing where that is not exact enough to
/// know on which side of a whole number the result lies. This runs for every node that changed.
fn estimate(one: (i64, i64), other: (i64, i64)) -> Option<i64> {
    let share = |(used, capacity): (i64, i64)| {
        let fits = capacity > 0 && capacity < 1 << (62 - DIGITS);
        fits.then(|| (used.clamp(0, capacity) << DIGITS) / capacity)
    };
    if one.0 <= 0 && other.0 <= 0 {
        return Some(SCORE_MAX);
    }
    let far = share(one)?.abs_diff(share(other)?) as i64;
    // 100 times 1 - far/2. Each share is cut by less than one unit, so this is off by less than 50 units.
    let scaled = (SCORE_MAX << DIGITS) - far * (SCORE_MAX / 2);
    let unit = 1_i64 << DIGITS;
    let rest = scaled & (unit - 1);
    (rest > SCORE_MAX && rest < unit - SCORE_MAX).then_some(scaled >> DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage((before, after, capacity): (i64, i64, i64)) -> Usage {
        Usage { before, after, capacity }
    }

    #[test]
    fn balance_is_what_deviation_leaves() {
        for (resources, expected) in [
            (&[(3000, 4000), (5000, 10_000)][..], 87),
            (&[(3000, 6000), (5000, 10_000)], 100),
            (&[(6000, 10_000), (0, 20_000)], 70),
            (&[(6000, 10_000), (5000, 20_000)], 82),
            (&[(6000, 4000), (0, 10_000)], 50),
            (&[(6000, 4000), (5000, 10_000)], 75),
            // With exact shares these were 66 and 91; 1 - 0.34 and 1 - 0.09 come out just below.
            (&[(0, 100), (68, 100)], 65),
            (&[(1, 4), (93, 100)], 65),
            (&[(1, 2), (68, 100)], 90),
            (&[(7, 10), (6, 10)], 95),
            // One resource, or none, is always balanced.
            (&[(3, 4), (5, 0)], 100),
            (&[(5, 0)], 100),
            // Three: shares 0.75, 0.5, 0.25 deviate by 0.2041.
            (&[(3, 4), (2, 4), (1, 4)], 79),
            (&[(1, 1), (0, 1), (0, 1)], 52),
            (&[(1, 1), (1, 1), (0, 1), (0, 1)], 50),
        ] {
            let usages: Vec<Usage> =
                resources.iter().map(|&(after, capacity)| usage((0, after, capacity))).collect();
            assert_eq!(balance(&usages, |usage| usage.after), expected, "{resources:?}");
        }
    }

    #[test]
    fn an_estimate_is_never_wrong() {
        let mut estimated = 0;
        for capacity in [1, 3, 7, 64, 100, 999] {
            for used in 0..=capacity + 1 {
                for other in (0..=64).chain([1 << 30, 1 << 36]) {
                    let other = (other, 64);
                    let Some(quick) = estimate((used, capacity), other) else { continue };
                    estimated += 1;
                    // A third resource that is not there keeps the estimate out of the way.
                    let usages = [(used, capacity), other, (0, 0)]
                        .map(|(after, capacity)| usage((0, after, capacity)));
                    let exact = balance(&usages, |usage| usage.after);
                    assert_eq!(quick, exact, "{used} of {capacity}, {other:?}");
                }
            }
        }
        assert!(estimated > 50_000, "only {estimated} were estimated");
    }

    #[test]
    fn the_score_is_about_the_change() {
        for (resources, expected) in [
            // Nothing changes.
            ([(0, 0, 10), (0, 0, 10)], 75),
            ([(5, 5, 10), (1, 1, 10)], 75),
            // From balance to 87.
            ([(0, 3000, 4000), (0, 5000, 10_000)], 68),
            // From 82 to 95.
            ([(3000, 6000, 10_000), (0, 10_000, 20_000)], 80),
            // From one end to the other.
            ([(0, 10, 10), (0, 0, 10)], 50),
            ([(10, 10, 10), (0, 10, 10)], 100),
        ] {
            assert_eq!(score(&resources.map(usage)), expected, "{resources:?}");
        }
    }
}
