//! How often a lease is renewed, and when it is lost.

use std::time::Duration;

/// Shortest pause between two tries.
const RETRY_PERIOD_MIN: Duration = Duration::from_millis(100);

/// How often a lease is renewed, and when it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Others may take the lease over when it was not renewed for this time. Whole seconds.
    pub lease_duration: Duration,
    /// A leader that could not renew for this time gives up.
    pub renew_deadline: Duration,
    /// Time between two tries to renew or to become leader.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// As components of Kubernetes have it.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Why times do not work together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimingError {
    /// The time, as configuration files call it.
    pub field: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl Timing {
    /// Refuses times under which two could lead, or nobody for long.
    pub fn validate(&self) -> Result<(), TimingError> {
        let wrong = |field, message: &str| Err(TimingError { field, message: message.to_owned() });
        if self.lease_duration.subsec_nanos() != 0 || self.lease_duration.is_zero() {
            return wrong("leaseDuration", "want whole seconds, at least 1s: a Lease says nothing finer");
        }
        if self.renew_deadline >= self.lease_duration {
            return wrong("renewDeadline", "want less than leaseDuration, or two could lead");
        }
        if self.retry_period < RETRY_PERIOD_MIN {
            let message = "want at least 100ms, or the API server has little else to do";
            return wrong("retryPeriod", message);
        }
        if self.retry_period * 2 > self.renew_deadline {
            let message = "want at most half of renewDeadline, so that one lost answer loses no lease";
            return wrong("retryPeriod", message);
        }
        Ok(())
    }

    /// When requests of a leader must have ended, counted from its last renewal. The time from then until the lease
    /// can pass on is left to clocks that do not run alike.
    pub fn requests_end(&self) -> Duration {
        (self.renew_deadline + self.lease_duration) / 2
    }

    /// How long a new leader waits if the one before did not hand over: a server may still be at work on its last
    /// requests.
    pub fn gap(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    /// How long one request for the lease itself may take: several fit before the lease is lost.
    pub fn request_timeout(&self) -> Duration {
        self.renew_deadline / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_let_two_lead_are_refused() {
        assert_eq!(Timing::default().validate(), Ok(()));
        let s = Duration::from_secs;
        for (lease_duration, renew_deadline, retry_period, field) in [
            (s(10), s(10), s(2), "renewDeadline"),
            (s(15), s(10), s(6), "retryPeriod"),
            (s(15), s(10), s(0), "retryPeriod"),
            (s(15), s(10), Duration::from_millis(99), "retryPeriod"),
            (Duration::from_millis(1500), s(1), s(0), "leaseDuration"),
            (s(0), s(0), s(0), "leaseDuration"),
        ] {
            let timing = Timing { lease_duration, renew_deadline, retry_period };
            assert_eq!(timing.validate().map_err(|error| error.field), Err(field));
        }
    }
}
