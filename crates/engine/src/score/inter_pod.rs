//! InterPodAffinity: pods that a pod would like near or not near, and existing pods that would like it near or not.
//!
//! Every existing pod that a preferred term of the new pod speaks of adds the term's weight to its domain, or takes
//! it away (anti-affinity); every preferred term of an existing pod that speaks of the new one does the same, and
//! every required affinity term of an existing pod that speaks of it adds a fixed weight. A node has the sum over its
//! domains.

use super::SCORE_MAX;
use super::double::Double;

/// The score of a node with this sum, between the lowest and the highest sum of the nodes that will do.
pub(crate) fn score(sum: i64, lowest: i64, highest: i64) -> i64 {
    let span = highest.saturating_sub(lowest);
    if span <= 0 {
        return 0;
    }
    let share = Double::from_integer(sum.saturating_sub(lowest)).divide(Double::from_integer(span));
    Double::from_integer(SCORE_MAX).times(share).whole()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_place_between_lowest_and_highest() {
        for (sum, lowest, highest, expected) in [
            (0, 0, 0, 0),
            (7, 7, 7, 0),
            (10, 0, 10, 100),
            (0, 0, 10, 0),
            (5, 0, 10, 50),
            (1, 0, 3, 33),
            (-5, -5, 5, 0),
            (0, -5, 5, 50),
            (-2, -4, -1, 66),
            // Upstream's division comes out just below 0.29 and 0.58.
            (29, 0, 100, 28),
            (58, 0, 100, 57),
            (30, 0, 100, 30),
            (i64::MAX, i64::MIN, i64::MAX, 100),
        ] {
            assert_eq!(score(sum, lowest, highest), expected, "{sum} in {lowest}..{highest}");
        }
    }
}
