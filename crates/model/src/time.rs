//! Time as data: the engine never reads a clock, it is told.

use core::ops::Add;
use core::time::Duration;

/// Milliseconds since 1970, as the caller says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

impl Time {
    /// This time and so many seconds.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }
}

/// So much later, in whole milliseconds; what is longer than there is time ends with it.
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_is_too_long_to_be_added() {
        assert_eq!(Time(1) + Duration::from_micros(2_999), Time(3));
        assert_eq!(Time(1) + Duration::MAX, Time(i64::MAX));
        assert_eq!(Time(-1) + Duration::MAX, Time(i64::MAX - 1));
    }
}
