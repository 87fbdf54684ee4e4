//! Kubernetes quantities (`1500m`, `16Gi`, `1e3`) as exact integers.
//!
//! Floats would make two machines disagree about whether a pod fits; so a quantity is a count of
//! billionths, which is Kubernetes' own finest step. What is finer is rounded away from zero ("you asked for
//! some, you get some"), what is larger than 2^63-1 is capped there, both as Kubernetes does.

use crate::error::ModelError;
use std::fmt;
use std::str::FromStr;

/// Billionths in one.
const NANO: i128 = 1_000_000_000;
/// Decimal digits after the point that a billionth has.
const NANO_DIGITS: i64 = 9;
/// The largest quantity, in billionths.
const NANO_MAX: i128 = i64::MAX as i128 * NANO;
/// Longest text that is read; anything longer is no quantity that a person or a program would write.
const TEXT_LENGTH_MAX: usize = 256;
/// Fraction digits that count exactly in front of a binary suffix; more only round up.
const BINARY_FRACTION_DIGITS: usize = 20;

/// An exact amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity {
    nano: i128,
}

impl Quantity {
    /// A whole number.
    pub fn from_value(value: i64) -> Self {
        Self { nano: i128::from(value) * NANO }
    }

    /// A number of thousandths.
    pub fn from_milli(milli: i64) -> Self {
        Self { nano: i128::from(milli) * (NANO / 1000) }
    }

    /// The whole number that is not below this quantity.
    pub fn value_ceil(self) -> i64 {
        saturate(div_ceil(self.nano, NANO))
    }

    /// The number of thousandths that is not below this quantity.
    pub fn milli_ceil(self) -> i64 {
        saturate(div_ceil(self.nano, NANO / 1000))
    }

    /// True if this is a whole number, as extended resources must be.
    pub fn is_whole(self) -> bool {
        self.nano % NANO == 0
    }

    /// True below zero.
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Division that rounds towards positive infinity, which is what Kubernetes does to read a whole number.
fn div_ceil(value: i128, by: i128) -> i128 {
    let floor = value.div_euclid(by);
    if value.rem_euclid(by) == 0 { floor } else { floor + 1 }
}

impl FromStr for Quantity {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            ModelError::new(
                "",
                format!("{shown:?} is not a quantity: want a number with an optional suffix, such as 500m, 2 or 16Gi"),
            )
        })
    }
}

/// The multiplier behind the digits.
enum Scale {
    /// A power of two.
    Binary(u32),
    /// A power of ten.
    Decimal(i64),
}

fn parse(text: &str) -> Option<Quantity> {
    if text.len() > TEXT_LENGTH_MAX {
        return None;
    }
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let nano = match scale(suffix)? {
        Scale::Decimal(exponent) => decimal_nano(whole, fraction, exponent),
        Scale::Binary(shift) => binary_nano(whole, fraction, shift),
    };
    let nano = nano.min(NANO_MAX);
    Some(Quantity { nano: if negative { -nano } else { nano } })
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "" => Scale::Decimal(0),
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // An exponent too long for i64 is as good as a very large one: the value is zero, capped or
            // rounded up all the same.
            let magnitude = unsigned.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000);
            Scale::Decimal(if digits.starts_with('-') { -magnitude } else { magnitude })
        }
    })
}

/// Moves the decimal point and reads as many digits as a count of billionths has.
fn decimal_nano(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let digits = || whole.bytes().chain(fraction.bytes()).map(|b| i128::from(b - b'0'));
    // How many leading digits are billionths or more; negative if even the first one is finer.
    let kept = whole.len() as i64 + exponent + NANO_DIGITS;
    let mut nano: i128 = 0;
    let mut position: i64 = 0;
    let mut rest_is_zero = true;
    for digit in digits() {
        if position < kept {
            nano = (nano * 10 + digit).min(NANO_MAX + 1);
        } else if digit != 0 {
            rest_is_zero = false;
        }
        position += 1;
    }
    while position < kept && nano != 0 && nano <= NANO_MAX {
        nano *= 10;
        position += 1;
    }
    if rest_is_zero { nano } else { nano + 1 }
}

fn binary_nano(whole: &str, fraction: &str, shift: u32) -> i128 {
    let mut count: i128 = 0;
    for byte in whole.bytes() {
        count = (count * 10 + i128::from(byte - b'0')).min(i128::from(i64::MAX));
    }
    // 2^63 * 2^60 fits in i128, but not times a billion: cap before the last step.
    let whole_value = (count << shift).min(i128::from(i64::MAX));
    let mut part: i128 = 0;
    let mut part_unit: i128 = 1;
    let mut rest_is_zero = true;
    for (index, byte) in fraction.bytes().enumerate() {
        if index < BINARY_FRACTION_DIGITS {
            part = part * 10 + i128::from(byte - b'0');
            part_unit *= 10;
        } else if byte != b'0' {
            rest_is_zero = false;
        }
    }
    // part < 10^20 and 2^60 < 1.2 * 10^18, so the product stays below 2^127.
    let scaled = part << shift;
    let part_nano = (scaled / part_unit) * NANO + div_ceil((scaled % part_unit) * NANO, part_unit);
    whole_value * NANO + part_nano + i128::from(!rest_is_zero)
}

impl fmt::Display for Quantity {
    /// Plain decimal with the largest of the suffixes `n`, `u`, `m` or none that loses nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, suffix) in [(NANO, ""), (NANO / 1000, "m"), (1000, "u")] {
            if self.nano % unit == 0 {
                return write!(f, "{}{suffix}", self.nano / unit);
            }
        }
        write!(f, "{}n", self.nano)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|e| panic!("{text:?} must be read: {e}"))
    }

    #[test]
    fn suffixes_mean_what_kubernetes_says() {
        for (text, milli) in [
            ("0", 0),
            ("1", 1000),
            ("500m", 500),
            ("0.5", 500),
            (".5", 500),
            ("5.", 5000),
            ("+2", 2000),
            ("-2", -2000),
            ("1k", 1_000_000),
            ("1Ki", 1_024_000),
            ("1.5Gi", 1_610_612_736_000),
            ("1e3", 1_000_000),
            ("1E3", 1_000_000),
            ("1e-3", 1),
            ("12E", i64::MAX),
            ("1500u", 2),
            ("1n", 1),
        ] {
            assert_eq!(read(text).milli_ceil(), milli, "{text}");
        }
    }

    #[test]
    fn whole_numbers_round_up() {
        assert_eq!(read("1.1").value_ceil(), 2);
        assert_eq!(read("-1.1").value_ceil(), -1);
        assert_eq!(read("1000m").value_ceil(), 1);
        assert_eq!(read("0.0000000001"), read("1n"), "finer than a billionth rounds away from zero");
        assert_eq!(read("-0.0000000001"), read("-1n"));
        assert_eq!(read("0.1Ki").value_ceil(), 103);
    }

    #[test]
    fn large_numbers_are_exact_up_to_the_cap() {
        assert_eq!(read("9223372036854775807").value_ceil(), i64::MAX);
        assert_eq!(read("9223372036854775806").value_ceil(), i64::MAX - 1);
        for text in
            ["9223372036854775808", "1e400", "99999999999999999999999999999999999999999999", "8Ei", "10E"]
        {
            assert_eq!(read(text).value_ceil(), i64::MAX, "{text} is capped");
        }
        assert_eq!(read("7Ei").value_ceil(), 7 << 60);
        assert_eq!(read("1e-400"), read("1n"));
        assert_eq!(read("0e400"), read("0"));
    }

    #[test]
    fn what_is_no_quantity_is_refused_and_named() {
        for text in [
            "", " 1", "1 ", "1.2.3", ".", "-", "one", "1Kii", "1ki", "1e", "1e+", "1e1.5", "0x10", "1,5", "∞",
        ] {
            let error = text.parse::<Quantity>().expect_err(text);
            assert!(error.message.contains("is not a quantity"), "{error}");
        }
        assert!("9".repeat(300).parse::<Quantity>().is_err());
    }

    #[test]
    fn printing_loses_nothing() {
        for text in ["0", "3", "1500m", "15u", "7n", "-2", "9223372036854775807"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("2000m").to_string(), "2");
    }
}
