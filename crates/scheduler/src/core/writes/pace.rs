//! How many of something pass per second.

use tutti_model::Time;

/// What waits is to pass within this time, however much it is.
const BACKLOG_SECONDS: i64 = 30;

/// Lets so many pass per second, and as many at once after a quiet time, or more. More pass if so much waits that it
/// would take too long otherwise.
#[derive(Debug)]
pub(in super::super) struct Pace {
    usual: i64,
    per_second: i64,
    at_once: i64,
    thousandths: i64,
    filled: Time,
}

impl Pace {
    pub(in super::super) fn new(per_second: u32) -> Self {
        Self::with_burst(per_second, per_second)
    }

    /// Lets more pass at once than per second.
    pub(in super::super) fn with_burst(per_second: u32, at_once: u32) -> Self {
        let (usual, at_once) = (i64::from(per_second), i64::from(at_once));
        Self { usual, per_second: usual, at_once, thousandths: at_once * 1000, filled: Time(i64::MIN) }
    }

    /// So many wait. What was reached once is kept up until the rest passes within a second as usual, or the end would
    /// take forever.
    pub(in super::super) fn hurry(&mut self, backlog: usize) {
        let backlog = i64::try_from(backlog).unwrap_or(i64::MAX);
        let kept = if backlog <= self.usual { self.usual } else { self.per_second };
        self.per_second = kept.max(backlog / BACKLOG_SECONDS);
    }

    /// Takes one token if there is one.
    pub(in super::super) fn take(&mut self, now: Time) -> bool {
        self.fill(now);
        let passes = self.thousandths >= 1000;
        if passes {
            self.thousandths -= 1000;
        }
        passes
    }

    /// When there will be a token.
    pub(in super::super) fn ready_at(&self, now: Time) -> Time {
        let missing = (1000 - self.thousandths).max(0);
        Time(now.0.saturating_add((missing + self.per_second - 1) / self.per_second))
    }

    fn fill(&mut self, now: Time) {
        // Longer than it takes to have all that may pass at once, and short enough to be multiplied.
        let longest = 1000 * (1 + self.at_once / self.per_second);
        let elapsed = now.0.saturating_sub(self.filled.0).clamp(0, longest);
        let filled = self.thousandths.saturating_add(elapsed.saturating_mul(self.per_second));
        self.thousandths = filled.min(self.per_second.max(self.at_once).saturating_mul(1000));
        self.filled = self.filled.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    #[test]
    fn a_backlog_passes_within_half_a_minute_or_so() {
        let mut pace = Pace::new(10);
        let mut waiting = 100_000_usize;
        let mut now = NOW;
        pace.hurry(waiting);
        for _ in 0..40 {
            pace.hurry(waiting);
            now = now.plus_seconds(1);
            waiting -= (0..waiting).take_while(|_| pace.take(now)).count();
        }
        assert_eq!(waiting, 0);
    }

    #[test]
    fn a_pace_that_was_hurried_is_the_usual_one_again_although_something_always_waits() {
        let mut pace = Pace::new(10);
        pace.hurry(100_000);
        assert!((0..2_000).all(|_| pace.take(NOW.plus_seconds(1))));
        pace.hurry(3);
        let later = NOW.plus_seconds(60);
        assert_eq!((0..2_000).filter(|_| pace.take(later)).count(), 10);
    }

    #[test]
    fn pace_lets_a_burst_and_then_a_rate_pass() {
        let mut pace = Pace::new(10);
        assert_eq!((0..20).filter(|_| pace.take(NOW)).count(), 10);
        assert_eq!(pace.ready_at(NOW), Time(NOW.0 + 100));
        assert!(!pace.take(Time(NOW.0 + 99)));
        assert!(pace.take(Time(NOW.0 + 101)));
        assert!(!pace.take(Time(NOW.0 - 5000)), "a clock that goes back gives nothing");
    }

    #[test]
    fn after_a_quiet_time_more_pass_at_once_than_per_second() {
        let mut pace = Pace::with_burst(10, 100);
        assert_eq!((0..200).filter(|_| pace.take(NOW)).count(), 100);
        let passed = |pace: &mut Pace, second: i64| {
            let now = NOW.plus_seconds(second);
            (0..200).filter(|_| pace.take(now)).count()
        };
        assert_eq!((passed(&mut pace, 1), passed(&mut pace, 3), passed(&mut pace, 30)), (10, 20, 100));
    }
}
