//! What can be chosen.

use std::time::Duration;
use tutti_model::Text;

/// Settings of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Names under which pods ask for this scheduler.
    pub scheduler_names: Vec<String>,
    /// Bindings under way at once.
    pub bind_concurrency: usize,
    /// How long one request may take. A binding that takes longer has an unknown outcome.
    pub request_timeout: Duration,
    /// After this time a binding without an answer counts as not written if the pod is seen unbound. It must be
    /// longer than the API server works on a request (60 s unless told otherwise).
    pub outcome_settles_after: Duration,
    /// Events written per second.
    pub events_per_second: u32,
    /// Conditions of pods written per second.
    pub pod_conditions_per_second: u32,
    /// How long bindings under way may take to finish at the end.
    pub shutdown_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["tutti".to_owned()],
            bind_concurrency: 100,
            request_timeout: Duration::from_secs(10),
            outcome_settles_after: Duration::from_secs(90),
            events_per_second: 100,
            pod_conditions_per_second: 100,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// Why a setting cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ConfigError {
    /// The setting.
    pub field: &'static str,
    /// What is wrong with it.
    pub message: String,
}

/// Bounds of the settings that are numbers.
const CONCURRENCY_MAX: usize = 10_000;
const PER_SECOND_MAX: u32 = 100_000;
const DURATION_MAX: Duration = Duration::from_secs(3600);

impl Config {
    /// Refuses settings that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |field, message: String| Err(ConfigError { field, message });
        if self.scheduler_names.is_empty() {
            return wrong("scheduler_names", "name at least one".to_owned());
        }
        for (index, name) in self.scheduler_names.iter().enumerate() {
            if !is_scheduler_name(name) {
                return wrong(
                    "scheduler_names",
                    format!("{name:?} is no name: want up to 253 of a-z, 0-9, '-' and '.'"),
                );
            }
            if self.scheduler_names.iter().take(index).any(|earlier| earlier == name) {
                return wrong("scheduler_names", format!("{name:?} is there twice"));
            }
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.bind_concurrency) {
            return wrong("bind_concurrency", format!("want 1 to {CONCURRENCY_MAX}"));
        }
        for (field, value) in [
            ("events_per_second", self.events_per_second),
            ("pod_conditions_per_second", self.pod_conditions_per_second),
        ] {
            if !(1..=PER_SECOND_MAX).contains(&value) {
                return wrong(field, format!("want 1 to {PER_SECOND_MAX}"));
            }
        }
        for (field, value) in [
            ("request_timeout", self.request_timeout),
            ("outcome_settles_after", self.outcome_settles_after),
            ("shutdown_grace", self.shutdown_grace),
        ] {
            if value.is_zero() || value > DURATION_MAX {
                return wrong(field, format!("want more than 0 s and at most {} s", DURATION_MAX.as_secs()));
            }
        }
        Ok(())
    }

    pub(crate) fn serves(&self, scheduler_name: &str) -> bool {
        self.scheduler_names.iter().any(|name| name == scheduler_name)
    }

    pub(crate) fn engine(&self) -> tutti_engine::Config {
        tutti_engine::Config {
            scheduler_names: self.scheduler_names.iter().map(|name| Text::from(name.as_str())).collect(),
            ..tutti_engine::Config::default()
        }
    }
}

fn is_scheduler_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_refused_by_name() {
        assert_eq!(Config::default().validate(), Ok(()));
        let names = |names: &[&str]| Config {
            scheduler_names: names.iter().map(ToString::to_string).collect(),
            ..Config::default()
        };
        for (config, error) in [
            (names(&[]), "scheduler_names: name at least one"),
            (names(&["a", "a"]), "scheduler_names: \"a\" is there twice"),
            (names(&["A b"]), "scheduler_names: \"A b\" is no name: want up to 253 of a-z, 0-9, '-' and '.'"),
            (Config { bind_concurrency: 0, ..Config::default() }, "bind_concurrency: want 1 to 10000"),
            (Config { events_per_second: 0, ..Config::default() }, "events_per_second: want 1 to 100000"),
            (
                Config { request_timeout: Duration::ZERO, ..Config::default() },
                "request_timeout: want more than 0 s and at most 3600 s",
            ),
        ] {
            assert_eq!(config.validate().expect_err("must be refused").to_string(), error);
        }
    }
}
