//! How many requests may be under way at once, as far as the server can bear it: halved when it says that it has too
//! much to do, and one more after every full window of good answers.

use std::time::Duration;
use tutti_model::Time;

/// How long to leave a server alone that does not say how long.
const PAUSE_DEFAULT: Duration = Duration::from_secs(1);
/// Longest pause that is granted.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The window.
#[derive(Debug)]
pub(in super::super) struct Window {
    max: usize,
    limit: usize,
    /// Good answers since the window grew.
    good: usize,
    closed_until: Time,
}

impl Window {
    pub(in super::super) fn new(max: usize) -> Self {
        Self { max, limit: max, good: 0, closed_until: Time(i64::MIN) }
    }

    /// How many may be under way now.
    pub(in super::super) fn limit(&self, now: Time) -> usize {
        if now < self.closed_until { 0 } else { self.limit }
    }

    /// When it opens again, if it is closed.
    pub(in super::super) fn opens_at(&self, now: Time) -> Option<Time> {
        (now < self.closed_until).then_some(self.closed_until)
    }

    /// The server has done what it was asked to.
    pub(in super::super) fn good(&mut self) {
        if self.limit == self.max {
            return;
        }
        self.good += 1;
        if self.good >= self.limit {
            self.good = 0;
            self.limit += 1;
        }
    }

    /// The server has too much to do. Answers to what was sent before the pause began are one complaint. Gives when
    /// to try again.
    pub(in super::super) fn throttled(&mut self, pause: Option<Duration>, now: Time) -> Time {
        if now >= self.closed_until {
            self.limit = (self.limit / 2).max(1);
            self.good = 0;
        }
        let until = now + pause.unwrap_or(PAUSE_DEFAULT).clamp(Duration::from_millis(1), PAUSE_MAX);
        self.closed_until = self.closed_until.max(until);
        self.closed_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    #[test]
    fn it_halves_on_complaint_and_grows_by_one_for_every_full_window() {
        let mut window = Window::new(16);
        assert_eq!(window.limit(NOW), 16);
        let opens = window.throttled(Some(Duration::from_secs(2)), NOW);
        assert_eq!((opens, window.limit(NOW)), (NOW.plus_seconds(2), 0));
        // The rest of the same burst.
        for _ in 0..15 {
            window.throttled(None, NOW);
        }
        assert_eq!(window.limit(opens), 8);
        for _ in 0..8 {
            window.good();
        }
        assert_eq!(window.limit(opens), 9);
        for _ in 0..1000 {
            window.good();
        }
        assert_eq!(window.limit(opens), 16, "never beyond what was chosen");
    }

    #[test]
    fn it_never_closes_for_good() {
        let mut window = Window::new(4);
        let mut now = NOW;
        for _ in 0..10 {
            now = window.throttled(Some(Duration::from_secs(86_400)), now);
        }
        assert_eq!(window.limit(now), 1);
        assert!(now <= NOW + 10 * PAUSE_MAX);
    }
}
