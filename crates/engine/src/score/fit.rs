//! NodeResourcesFit: how much of a node would be in use.
//!
//! Processor time and memory count with padding for containers that state no request; see
//! [`tutti_model::requests::Padding`].

use super::{SCORE_MAX, Usage};

/// How use becomes a score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// The emptier the better.
    LeastAllocated,
    /// The fuller the better.
    MostAllocated,
    /// As a curve says.
    RequestedToCapacityRatio(Curve),
}

/// A line through points: use in percent, from 0 to 100 and rising, and a score from 0 to 10. Flat beyond its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    points: Vec<(i64, i64)>,
}

/// Why points are no curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurveError {
    /// There is none.
    Empty,
    /// A use that is not between 0 and 100, or not above the one before it.
    Use(u32),
    /// A score above 10.
    Score(u32),
}

impl std::fmt::Display for CurveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => write!(f, "a curve needs at least one point"),
            Self::Use(value) => write!(f, "a use of {value} is above 100 or not above the one before it"),
            Self::Score(value) => write!(f, "a score of {value} is above 10"),
        }
    }
}

impl std::error::Error for CurveError {}

impl Curve {
    /// A curve through these points of use and score.
    pub fn new(points: &[(u32, u32)]) -> Result<Self, CurveError> {
        if points.is_empty() {
            return Err(CurveError::Empty);
        }
        let mut before = None;
        for &(used, score) in points {
            if used > 100 || before.is_some_and(|before| used <= before) {
                return Err(CurveError::Use(used));
            }
            if score > 10 {
                return Err(CurveError::Score(score));
            }
            before = Some(used);
        }
        let scaled = |&(used, score): &(u32, u32)| (i64::from(used), i64::from(score) * SCORE_MAX / 10);
        Ok(Self { points: points.iter().map(scaled).collect() })
    }

    /// The points that it was made of.
    pub fn points(&self) -> impl Iterator<Item = (u32, u32)> {
        let plain = |&(used, score): &(i64, i64)| {
            // Both came from numbers of this size.
            (u32::try_from(used).unwrap_or(0), u32::try_from(score * 10 / SCORE_MAX).unwrap_or(0))
        };
        self.points.iter().map(plain)
    }

    fn at(&self, used: i64) -> i64 {
        let next = self.points.iter().position(|&(point, _)| used <= point);
        match next {
            None => self.points.last().map_or(0, |&(_, score)| score),
            Some(0) => self.points[0].1,
            Some(next) => {
                let ((from, low), (to, high)) = (self.points[next - 1], self.points[next]);
                low + (high - low) * (used - from) / (to - from)
            }
        }
    }
}

impl Strategy {
    /// The score of a node, out of its resources and their weights. Resources that the node does not have are left
    /// out.
    pub(crate) fn score(&self, resources: impl Iterator<Item = (Usage, i64)>) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for (usage, weight) in resources.filter(|(usage, _)| usage.capacity > 0) {
            let score = self.of_one(usage);
            // Upstream leaves out resources that a curve gives nothing for.
            if score > 0 || !matches!(self, Self::RequestedToCapacityRatio(_)) {
                sum += score * weight;
                weights += weight;
            }
        }
        match self {
            _ if weights == 0 => 0,
            Self::RequestedToCapacityRatio(_) => (2 * sum + weights) / (2 * weights),
            Self::LeastAllocated | Self::MostAllocated => sum / weights,
        }
    }

    fn of_one(&self, Usage { after, capacity, .. }: Usage) -> i64 {
        // More than all counts as all: pods that state no request may add up to that.
        let after = after.clamp(0, capacity);
        match self {
            Self::LeastAllocated => (capacity - after) * SCORE_MAX / capacity,
            Self::MostAllocated => after * SCORE_MAX / capacity,
            Self::RequestedToCapacityRatio(curve) => curve.at(after * 100 / capacity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Use with the pod, capacity, weight.
    type Row = (i64, i64, i64);

    fn scores(strategy: &Strategy, table: &[(&[Row], i64)]) {
        for &(resources, expected) in table {
            let usages = resources
                .iter()
                .map(|&(after, capacity, weight)| (Usage { before: 0, after, capacity }, weight));
            assert_eq!(strategy.score(usages), expected, "{strategy:?} {resources:?}");
        }
    }

    #[test]
    fn least_allocated_is_the_mean_of_what_is_left() {
        scores(
            &Strategy::LeastAllocated,
            &[
                // By hand: (4000-3000)*100/4000 = 25, (10000-5000)*100/10000 = 50.
                (&[(3000, 4000, 1), (5000, 10_000, 1)], 37),
                (&[(3000, 6000, 1), (5000, 10_000, 1)], 50),
                (&[(0, 4000, 1), (0, 10_000, 1)], 100),
                (&[(6000, 10_000, 1), (0, 20_000, 1)], 70),
                (&[(6000, 10_000, 1), (5000, 20_000, 1)], 57),
                (&[(3000, 4000, 2), (5000, 10_000, 1)], 33),
                // More than there is counts as full, a resource that is not there not at all.
                (&[(6000, 4000, 1), (0, 10_000, 1)], 50),
                (&[(3000, 4000, 1), (5, 0, 1)], 25),
                (&[(5, 0, 1)], 0),
                (&[], 0),
            ],
        );
    }

    #[test]
    fn most_allocated_is_the_mean_of_what_is_used() {
        scores(
            &Strategy::MostAllocated,
            &[
                (&[(3000, 4000, 1), (5000, 10_000, 1)], 62),
                (&[(3000, 6000, 1), (5000, 10_000, 1)], 50),
                (&[(6000, 10_000, 1), (5000, 20_000, 1)], 42),
                (&[(3000, 4000, 1), (5000, 10_000, 2)], 58),
                (&[(6000, 4000, 1), (0, 10_000, 1)], 50),
                (&[(1, 3, 1)], 33),
                (&[(7, 0, 5)], 0),
            ],
        );
    }

    #[test]
    fn a_curve_is_linear_between_its_points_and_flat_beyond() {
        let curve = Curve::new(&[(10, 1), (50, 9), (70, 9), (90, 2)]).unwrap();
        // Scores are on a scale of 100 by then; divisions cut towards zero.
        for (used, expected) in [
            (0, 10),
            (10, 10),
            (11, 12),
            (30, 50),
            (50, 90),
            (60, 90),
            (71, 87),
            (80, 55),
            (90, 20),
            (100, 20),
        ] {
            assert_eq!(curve.at(used), expected, "at {used}");
        }
    }

    #[test]
    fn a_ratio_is_the_rounded_mean_over_resources_that_score() {
        let bin_packing = Strategy::RequestedToCapacityRatio(Curve::new(&[(0, 0), (100, 10)]).unwrap());
        scores(
            &bin_packing,
            &[
                // 75 and 50: 62.5 rounds up.
                (&[(3000, 4000, 1), (5000, 10_000, 1)], 63),
                (&[(3000, 6000, 1), (5000, 10_000, 1)], 50),
                // Nothing used of the second: only the first counts.
                (&[(60, 100, 1), (0, 100, 1)], 60),
                (&[(0, 100, 1), (0, 100, 1)], 0),
                // More than all is all.
                (&[(200, 100, 1), (50, 100, 3)], 63),
                (&[(3, 4, 1), (1, 0, 1)], 75),
            ],
        );
        let spreading = Strategy::RequestedToCapacityRatio(Curve::new(&[(0, 10), (100, 0)]).unwrap());
        scores(&spreading, &[(&[(3000, 4000, 1), (5000, 10_000, 1)], 38), (&[(1, 1, 1), (1, 4, 1)], 75)]);
    }

    #[test]
    fn points_that_are_no_curve_are_refused() {
        for (points, error) in [
            (&[][..], CurveError::Empty),
            (&[(0, 0), (101, 10)], CurveError::Use(101)),
            (&[(50, 0), (50, 10)], CurveError::Use(50)),
            (&[(50, 11)], CurveError::Score(11)),
        ] {
            assert_eq!(Curve::new(points), Err(error), "{error}");
        }
    }
}
