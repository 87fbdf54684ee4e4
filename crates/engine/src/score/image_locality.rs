//! ImageLocality: whether a node has the images of a pod already.
//!
//! An image counts with its size times the share of nodes that have it, so that a single node with an image does not
//! draw every pod that needs it.

use super::SCORE_MAX;
use super::double::Double;

/// What is present beyond this begins to count.
const BYTES_MIN: i64 = 23 << 20;
/// For every image of the pod, more than this counts no more.
const BYTES_MAX_EACH: i64 = 1000 << 20;

/// What an image counts for on a node that has it.
pub(crate) fn worth(size: i64, nodes_with: usize, nodes_all: usize) -> i64 {
    let spread = Double::from_integer(nodes_with as i64).divide(Double::from_integer(nodes_all as i64));
    Double::from_integer(size).times(spread).whole()
}

/// The score of a node on which images of this worth in all are present, for a pod of so many images.
pub(crate) fn score(present: i64, images_count: usize) -> i64 {
    let most = BYTES_MAX_EACH.saturating_mul(images_count as i64);
    if most == 0 {
        return 0;
    }
    let present = present.clamp(BYTES_MIN, most);
    let score = i128::from(SCORE_MAX) * i128::from(present - BYTES_MIN) / i128::from(most - BYTES_MIN);
    score as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    #[test]
    fn an_image_is_worth_its_size_times_its_spread() {
        for (size, with, all, expected) in [
            (40 * MIB, 1, 2, 20 * MIB),
            (300 * MIB, 1, 3, 100 * MIB),
            (1000, 2, 3, 666),
            (0, 1, 2, 0),
            // 0.29 lies below 29/100.
            (100, 29, 100, 28),
            (100, 3, 3, 100),
        ] {
            assert_eq!(worth(size, with, all), expected, "{size} on {with} of {all}");
        }
    }

    #[test]
    fn the_score_grows_between_the_thresholds() {
        for (present, images, expected) in [
            (0, 1, 0),
            (23 * MIB, 1, 0),
            (22 * MIB, 2, 0),
            // 100 * (125 - 23) / (1000 - 23)
            (125 * MIB, 1, 10),
            (500 * MIB, 1, 48),
            (1000 * MIB, 1, 100),
            (2000 * MIB, 1, 100),
            // Two images: 100 * (500 - 23) / (2000 - 23)
            (500 * MIB, 2, 24),
            (2000 * MIB, 2, 100),
            (500 * MIB, 0, 0),
        ] {
            assert_eq!(score(present, images), expected, "{present} of {images} images");
        }
    }
}
