//! Numbers as kube-scheduler computes them: IEEE 754 double precision, rounded to nearest and ties to even, done with
//! integers.
//!
//! Some of its scores are cut to a whole number after a calculation with such numbers, and whether 29 comes out as
//! 29 or as 28.999999999999996 decides about the cut. Doing the same steps with the same rounding gives the same
//! scores, on every machine. Only what scores need is here: no signs, no infinities, nothing near the ends of the
//! range.

use std::cmp::Ordering;

/// Bits of a significand.
const DIGITS: u32 = 53;
/// From this distance on the smaller of two numbers cannot change the larger one.
const FAR: u32 = 70;

/// A number that is not below zero: `significand * 2^exponent`. The significand is zero or has exactly 53 bits, so
/// that equal numbers are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Double {
    significand: u64,
    exponent: i32,
}

impl Double {
    pub(crate) const ZERO: Self = Self { significand: 0, exponent: 0 };
    pub(crate) const ONE: Self = Self { significand: 1 << (DIGITS - 1), exponent: 1 - DIGITS as i32 };

    /// The nearest to an integer; below zero counts as zero.
    pub(crate) fn from_integer(value: i64) -> Self {
        Self::nearest(u128::from(value.max(0).unsigned_abs()), 0, false)
    }

    /// The nearest to `value * 2^exponent`, or to a little more than that if `more` is set. Then the value must have
    /// more than 53 bits.
    fn nearest(value: u128, exponent: i32, more: bool) -> Self {
        let bits = u128::BITS - value.leading_zeros();
        if bits == 0 {
            return Self::ZERO;
        }
        if bits <= DIGITS {
            let shift = DIGITS - bits;
            return Self { significand: (value as u64) << shift, exponent: exponent - shift as i32 };
        }
        let shift = bits - DIGITS;
        let (kept, half) = ((value >> shift) as u64, 1_u128 << (shift - 1));
        let rest = value & ((1 << shift) - 1);
        let up = match rest.cmp(&half) {
            Ordering::Less => false,
            Ordering::Equal => more || kept % 2 == 1,
            Ordering::Greater => true,
        };
        let (kept, exponent) = (kept + u64::from(up), exponent + shift as i32);
        if kept >> DIGITS == 0 {
            Self { significand: kept, exponent }
        } else {
            Self { significand: kept >> 1, exponent: exponent + 1 }
        }
    }

    /// The quotient; dividing by zero gives zero, which callers exclude.
    pub(crate) fn divide(self, other: Self) -> Self {
        if other == Self::ZERO {
            return Self::ZERO;
        }
        // Enough that the quotient has more than 53 bits.
        const SHIFT: u32 = 66;
        let (value, divisor) = (u128::from(self.significand) << SHIFT, u128::from(other.significand));
        let exponent = self.exponent - other.exponent - SHIFT as i32;
        Self::nearest(value / divisor, exponent, value % divisor != 0)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let product = u128::from(self.significand) * u128::from(other.significand);
        Self::nearest(product, self.exponent + other.exponent, false)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let (large, small) = if self >= other { (self, other) } else { (other, self) };
        match large.aligned(small) {
            Some((a, b)) => Self::nearest(a + b, small.exponent, false),
            None => large,
        }
    }

    /// The distance between the two.
    pub(crate) fn distance(self, other: Self) -> Self {
        let (large, small) = if self >= other { (self, other) } else { (other, self) };
        match large.aligned(small) {
            Some((a, b)) => Self::nearest(a - b, small.exponent, false),
            None => large,
        }
    }

    pub(crate) fn halved(self) -> Self {
        if self == Self::ZERO { self } else { Self { exponent: self.exponent - 1, ..self } }
    }

    pub(crate) fn square_root(self) -> Self {
        // An even exponent, and enough bits that the root has more than 53.
        let shift = 72 + (self.exponent & 1).unsigned_abs();
        let value = u128::from(self.significand) << shift;
        let root = value.isqrt();
        Self::nearest(root, (self.exponent - shift as i32) / 2, root * root != value)
    }

    /// The integer part.
    pub(crate) fn whole(self) -> i64 {
        let shift = self.exponent.unsigned_abs();
        let value = if self.exponent >= 0 {
            u128::from(self.significand).checked_shl(shift).unwrap_or(0)
        } else {
            u128::from(self.significand).checked_shr(shift).unwrap_or(0)
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }

    /// Both significands in units of the smaller number; nothing if they are too far apart to matter.
    fn aligned(self, small: Self) -> Option<(u128, u128)> {
        if small == Self::ZERO {
            return None;
        }
        let shift = self.exponent.abs_diff(small.exponent);
        let value = u128::from(self.significand);
        (shift < FAR).then(|| (value << shift, u128::from(small.significand)))
    }
}

impl PartialOrd for Double {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Double {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.significand, other.significand) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            _ => (self.exponent, self.significand).cmp(&(other.exponent, other.significand)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i64) -> Double {
        Double::from_integer(value)
    }

    #[test]
    fn a_hundred_times_a_share_is_cut_where_kube_scheduler_cuts_it() {
        // 29/100 lies a little below 0.29, and the product stays below 29.
        for (part, whole, expected) in
            [(29, 100, 28), (57, 100, 56), (58, 100, 57), (30, 100, 30), (1, 3, 33)]
        {
            let share = number(part).divide(number(whole));
            assert_eq!(number(100).times(share).whole(), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn differences_keep_the_rounding_of_their_parts() {
        // 0.3 - 0.1 is 0.19999999999999998.
        let tenth = |n| number(n).divide(number(10));
        assert!(tenth(3).distance(tenth(1)) < tenth(2));
        assert_eq!(tenth(3).distance(tenth(1)), tenth(1).distance(tenth(3)));
        assert!(tenth(1).plus(tenth(2)) > tenth(3), "0.1 + 0.2 is 0.30000000000000004");
    }

    #[test]
    fn integers_beyond_53_bits_round_to_even() {
        let large = 1_i64 << 53;
        assert_eq!(number(large + 1).whole(), large);
        assert_eq!(number(large + 3).whole(), large + 4);
        assert_eq!(number(i64::MAX).whole(), i64::MAX);
        assert_eq!(number(-5), Double::ZERO);
    }

    #[test]
    fn roots_of_squares_are_exact() {
        for n in [0, 1, 2, 3, 10, 12_345, 94_906_265] {
            assert_eq!(number(n * n).square_root(), number(n));
        }
        assert_eq!(Double::ONE, number(1));
        assert_eq!(number(2).square_root().times(number(2).square_root()).whole(), 2);
    }

    #[test]
    fn numbers_that_are_far_apart_do_not_touch_each_other() {
        let tiny = number(1).divide(number(1 << 62)).divide(number(1 << 62));
        assert_eq!(number(1).plus(tiny), number(1));
        assert_eq!(number(1).distance(tiny), number(1));
        assert_eq!(number(7).divide(Double::ZERO), Double::ZERO);
    }
}
