//! What the store takes from the outside world. A simulator brings its own clock and its own randomness, so
//! that a seed replays the whole cluster.

use jiff::Timestamp;

/// Clock, identities and chance.
pub trait Environment: Send + Sync {
    /// The time that goes into objects.
    fn now(&self) -> Timestamp;

    /// A new object identity; never the same twice.
    fn uid(&self) -> String;

    /// Any number; used for generated names.
    fn random(&self) -> u64;
}

/// The real world.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn uid(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    fn random(&self) -> u64 {
        // The low half of a version 4 UUID has two fixed bits at its top; the rest is random.
        uuid::Uuid::new_v4().as_u64_pair().1
    }
}

/// A time as Kubernetes writes it in metadata: UTC, whole seconds.
pub fn rfc3339_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_whole_seconds_of_utc() {
        let time: Timestamp = "2026-02-03T04:05:06.789Z".parse().unwrap();
        assert_eq!(rfc3339_seconds(time), "2026-02-03T04:05:06Z");
    }
}
