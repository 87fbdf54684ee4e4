//! PodTopologySpread: constraints that should hold but need not (`ScheduleAnyway`).
//!
//! The matching pods in a node's domains are added up, those of a key with many domains counting more (by the
//! logarithm of their number), and the node with the lowest sum is the best.
//!
//! Upstream takes the logarithm in floating point. Here it is a fixed-point number with 60 binary digits, nearer to
//! the truth than upstream's. The sums are rounded to whole numbers; the two could differ only for a sum whose
//! distance from a half is below upstream's own error, about one part in 10^15. No such sum is known: logarithms of
//! whole numbers are irrational.

use super::SCORE_MAX;

/// Binary digits behind the point.
const DIGITS: u32 = 60;
/// The natural logarithm of 2.
const LN_2: i128 = 799_144_290_325_165_979;

/// How much one pod counts under a key, with [`DIGITS`] binary digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PodWeight(i128);

impl PodWeight {
    /// The weight for a key that divides the nodes that will do into so many domains: `ln(domains + 2)`.
    pub(crate) fn of_domains(domains_count: usize) -> Self {
        let value = domains_count as i128 + 2;
        // value = 2^power * rest with rest in [1, 2), and ln(rest) = 2 * artanh((rest - 1) / (rest + 1)).
        let power = value.ilog2();
        let one = 1_i128 << power;
        let ratio = ((value - one) << DIGITS) / (value + one);
        let square = (ratio * ratio) >> DIGITS;
        let (mut term, mut sum, mut divisor) = (ratio, 0, 1);
        while term > 0 {
            sum += term / divisor;
            term = (term * square) >> DIGITS;
            divisor += 2;
        }
        Self(i128::from(power) * LN_2 + 2 * sum)
    }
}

/// The unevenness that a node stands for: for every constraint the matching pods in its domain, the allowed skew and
/// the weight of a pod.
pub(crate) fn unevenness(constraints: impl Iterator<Item = (u64, u32, PodWeight)>) -> i64 {
    let mut sum = 0_i128;
    for (count, max_skew, PodWeight(weight)) in constraints {
        // The skew is added so that small differences matter less where much skew is allowed.
        sum += i128::from(count) * weight + (i128::from(max_skew.saturating_sub(1)) << DIGITS);
    }
    ((sum + (1 << (DIGITS - 1))) >> DIGITS) as i64
}

/// The score of a node of this unevenness, between the least and the most of the nodes that will do.
pub(crate) fn score(unevenness: i64, least: i64, most: i64) -> i64 {
    if most == 0 { SCORE_MAX } else { SCORE_MAX * (most + least - unevenness) / most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_weighs_the_logarithm_of_the_number_of_domains() {
        // ln(2), ln(3), ln(4), ln(5), ln(10), ln(5002), to 15 decimals.
        for (domains, expected) in [
            (0, 693_147_180_559_945_i128),
            (1, 1_098_612_288_668_110),
            (2, 1_386_294_361_119_891),
            (3, 1_609_437_912_434_100),
            (8, 2_302_585_092_994_046),
            (5000, 8_517_593_111_437_564),
        ] {
            let PodWeight(weight) = PodWeight::of_domains(domains);
            let decimals = (weight * 1_000_000_000_000_000 + (1 << (DIGITS - 1))) >> DIGITS;
            assert_eq!(decimals, expected, "of {domains}");
        }
    }

    #[test]
    fn unevenness_is_the_rounded_weighted_count() {
        // (count, skew, domains) of each constraint.
        for (constraints, expected) in [
            (&[(0, 1, 3)][..], 0),
            // 3 * 1.609 = 4.83
            (&[(3, 1, 3)], 5),
            (&[(3, 4, 3)], 8),
            // 3 * 1.386 + 5 * 1.792 = 4.16 + 8.96 = 13.12
            (&[(3, 1, 2), (5, 1, 4)], 13),
            // 1 * 1.0986 = 1.10; 2 * 1.0986 = 2.197; 5 * 1.0986 = 5.49
            (&[(1, 1, 1)], 1),
            (&[(5, 1, 1)], 5),
            (&[(1000, 1, 5000)], 8518),
        ] {
            let constraints = constraints
                .iter()
                .map(|&(count, skew, domains)| (count, skew, PodWeight::of_domains(domains)));
            assert_eq!(unevenness(constraints.clone()), expected);
        }
    }

    #[test]
    fn the_lowest_unevenness_wins() {
        for (value, least, most, expected) in [
            (0, 0, 0, 100),
            (2, 2, 6, 100),
            (6, 2, 6, 33),
            (4, 2, 6, 66),
            (0, 0, 5, 100),
            (3, 0, 5, 40),
            (5, 0, 5, 0),
            (5, 5, 5, 100),
        ] {
            assert_eq!(score(value, least, most), expected, "{value} in {least}..{most}");
        }
    }
}
