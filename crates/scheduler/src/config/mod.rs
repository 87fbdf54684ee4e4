//! What can be chosen: settings of the scheduler itself ([`Config`]) and of the process around it ([`Settings`]).
//!
//! * `file`: the configuration file, read, checked and written;
//! * `scoring`: how nodes are compared, as the file says it;
//! * `duration`: times as people write them.

mod duration;
mod file;
mod scoring;
mod settings;

pub use file::{API_VERSION, FileError, KIND, parse, read, render};
pub use settings::{HttpSettings, LeaseSettings, Settings};

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;
use tutti_engine::NamedProfile;
use tutti_k8s::gangs::{Api, Integration};
use tutti_k8s::{Capabilities, WhenBroken};
use tutti_model::Text;

/// Settings of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Who is served, and how nodes are compared for pods on their own. Every name is there once.
    pub profiles: Vec<NamedProfile>,
    /// How many branches one exact search may look at.
    pub search_branches_max: u32,
    /// Bindings under way at once.
    pub bind_concurrency: usize,
    /// How long one request may take. A binding that takes longer has an unknown outcome.
    pub request_timeout: Duration,
    /// After this time a binding without an answer counts as not written if the pod is seen unbound. It must be at least
    /// as long as a request may take, and should be longer than the API server works on one: see
    /// [`Config::warnings`].
    pub outcome_settles_after: Duration,
    /// How long volume claims of a placed unit may take to be bound. Then its seats are freed and it is tried again.
    pub volume_bind_timeout: Duration,
    /// Events written per second.
    pub events_per_second: u32,
    /// Conditions of pods written per second.
    pub pod_conditions_per_second: u32,
    /// How long bindings under way may take to finish at the end.
    pub shutdown_grace: Duration,
    /// How long a gang that started in part may take to become complete. Then it is unwound or kept.
    pub gang_grace: Duration,
    /// What becomes of a gang that was complete, lost members, and stays incomplete for so long; a group may ask
    /// for something else by annotation.
    pub when_broken: WhenBroken,
    /// After this time without room, what becomes free is kept for a gang; zero never does.
    pub gang_patience: Duration,
    /// Whether groups are made for Jobs, and pods of Jobs that are to have one wait for it. The controller that makes them must be
    /// told the same.
    pub job_integration: Integration,
}

impl Default for Config {
    fn default() -> Self {
        let engine = tutti_engine::Config::default();
        Self {
            profiles: engine.profiles,
            search_branches_max: engine.branches_max,
            bind_concurrency: 100,
            request_timeout: Duration::from_secs(10),
            outcome_settles_after: Duration::from_secs(90),
            volume_bind_timeout: Duration::from_secs(600),
            events_per_second: 100,
            pod_conditions_per_second: 100,
            shutdown_grace: Duration::from_secs(10),
            gang_grace: Duration::from_secs(300),
            when_broken: WhenBroken::Keep,
            gang_patience: Duration::from_secs(
                engine.patience_seconds.map_or(0, |seconds| u64::from(seconds.get())),
            ),
            job_integration: Integration::default(),
        }
    }
}

/// Why a setting cannot be used. The field is named as in the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ConfigError {
    /// The setting.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl ConfigError {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// Bounds of the settings that are numbers.
const CONCURRENCY_MAX: usize = 10_000;
const PER_SECOND_MAX: u32 = 100_000;
const BRANCHES_MAX: u32 = 100_000_000;
const DURATION_MAX: Duration = Duration::from_secs(3600);
/// How long an API server works on a request before it gives up: its `--request-timeout` if nobody sets it.
const SERVER_WORKS_MAX: Duration = Duration::from_secs(60);
const PATIENCE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
const PROFILES_MAX: usize = 64;
const NAMES_MAX: usize = 64;

impl Config {
    /// Refuses settings that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |field: &str, message: String| Err(ConfigError::new(field, message));
        check_profiles(&self.profiles)?;
        if !(1..=CONCURRENCY_MAX).contains(&self.bind_concurrency) {
            return wrong("limits.bindConcurrency", format!("want 1 to {CONCURRENCY_MAX}"));
        }
        if !(1..=BRANCHES_MAX).contains(&self.search_branches_max) {
            return wrong("limits.searchBranches", format!("want 1 to {BRANCHES_MAX}"));
        }
        for (field, value) in [
            ("limits.eventsPerSecond", self.events_per_second),
            ("limits.podConditionsPerSecond", self.pod_conditions_per_second),
        ] {
            if !(1..=PER_SECOND_MAX).contains(&value) {
                return wrong(field, format!("want 1 to {PER_SECOND_MAX}"));
            }
        }
        for (field, value) in [
            ("timeouts.request", self.request_timeout),
            ("timeouts.outcomeSettles", self.outcome_settles_after),
            ("timeouts.shutdownGrace", self.shutdown_grace),
            ("timeouts.volumeBind", self.volume_bind_timeout),
            ("gangs.grace", self.gang_grace),
        ] {
            check_duration(field, value)?;
        }
        if self.outcome_settles_after < self.request_timeout {
            let message = format!(
                "want at least timeouts.request ({}): a binding that is still waited for may yet be written",
                duration::render(self.request_timeout)
            );
            return wrong("timeouts.outcomeSettles", message);
        }
        if self.gang_patience > PATIENCE_MAX {
            let message = format!("want at most {}, or 0s for never", duration::render(PATIENCE_MAX));
            return wrong("gangs.patience", message);
        }
        Ok(())
    }

    /// Settings that work but are not safe everywhere, each named as in the configuration file, and why.
    pub fn warnings(&self) -> Vec<(&'static str, String)> {
        let mut warnings = Vec::new();
        if self.outcome_settles_after < SERVER_WORKS_MAX {
            let message = format!(
                "is below {}, for which an API server may work on a request unless it was told otherwise: the seat of a \
                 binding may be given away that is written later",
                duration::render(SERVER_WORKS_MAX)
            );
            warnings.push(("timeouts.outcomeSettles", message));
        }
        warnings
    }

    /// Names under which pods ask for this scheduler, those of the first profile first.
    pub fn scheduler_names(&self) -> impl Iterator<Item = &Text> {
        self.profiles.iter().flat_map(|named| &named.scheduler_names)
    }

    /// Gives other names to the only profile, as the option `--scheduler-name` does. None leaves it as it is.
    pub fn rename(&mut self, scheduler_names: &[String]) -> Result<(), ConfigError> {
        if scheduler_names.is_empty() {
            return Ok(());
        }
        let [named] = &mut self.profiles[..] else {
            let message = "the configuration has several profiles; name their schedulers there";
            return Err(ConfigError::new("--scheduler-name", message));
        };
        let names: Vec<Text> = scheduler_names.iter().map(|name| Text::from(name.as_str())).collect();
        // Here, where it is known who has said them.
        check_names(&names, "--scheduler-name", &mut BTreeSet::new())?;
        named.scheduler_names = names;
        Ok(())
    }

    /// All names as a text for people.
    pub fn names_in_words(&self) -> String {
        self.scheduler_names().map(|name| &**name).collect::<Vec<&str>>().join(", ")
    }

    /// How groups are made for Jobs; `None` if none are.
    pub(crate) fn job_groups(&self, capabilities: &Capabilities) -> Option<Api> {
        let groups = capabilities.pod_group.as_ref().filter(|_| self.job_integration != Integration::Off);
        groups.and_then(Api::of)
    }

    pub(crate) fn serves(&self, scheduler_name: &str) -> bool {
        self.scheduler_names().any(|name| **name == *scheduler_name)
    }

    pub(crate) fn engine(&self) -> tutti_engine::Config {
        tutti_engine::Config {
            profiles: self.profiles.clone(),
            branches_max: self.search_branches_max,
            // Less than a second is a second.
            patience_seconds: NonZeroU32::new(self.gang_patience.as_secs_f64().ceil() as u32),
            ..tutti_engine::Config::default()
        }
    }
}

fn check_profiles(profiles: &[NamedProfile]) -> Result<(), ConfigError> {
    if profiles.is_empty() || profiles.len() > PROFILES_MAX {
        return Err(ConfigError::new(
            "profiles",
            format!("want 1 to {PROFILES_MAX}, or leave the field out"),
        ));
    }
    let mut seen = BTreeSet::new();
    for (index, named) in profiles.iter().enumerate() {
        check_names(&named.scheduler_names, &format!("profiles[{index}].schedulerNames"), &mut seen)?;
        scoring::check(&named.profile, index)?;
    }
    Ok(())
}

/// `seen` are the names of profiles before this one.
fn check_names<'a>(names: &'a [Text], field: &str, seen: &mut BTreeSet<&'a Text>) -> Result<(), ConfigError> {
    if names.is_empty() || names.len() > NAMES_MAX {
        return Err(ConfigError::new(field, format!("want 1 to {NAMES_MAX} names")));
    }
    for (index, name) in names.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if !is_scheduler_name(name) {
            let message = format!("{name:?} is no name: want up to 253 of a-z, 0-9, '-' and '.'");
            return Err(ConfigError::new(field, message));
        }
        if !seen.insert(name) {
            return Err(ConfigError::new(field, format!("{name:?} is there twice")));
        }
    }
    Ok(())
}

fn check_duration(field: &str, value: Duration) -> Result<(), ConfigError> {
    if value.is_zero() || value > DURATION_MAX {
        let message = format!("want more than 0s and at most {}", duration::render(DURATION_MAX));
        return Err(ConfigError::new(field, message));
    }
    Ok(())
}

fn is_scheduler_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_engine::Profile;

    #[test]
    fn a_wrong_setting_is_refused_by_name() {
        assert_eq!(Config::default().validate(), Ok(()));
        let named = |names: &[&str]| NamedProfile::new(names, Profile::default());
        let names = |names: &[&str]| Config { profiles: vec![named(names)], ..Config::default() };
        let two = Config { profiles: vec![named(&["a"]), named(&["b", "a"])], ..Config::default() };
        for (config, error) in [
            (names(&[]), "profiles[0].schedulerNames: want 1 to 64 names"),
            (names(&["a", "a"]), "profiles[0].schedulerNames[1]: \"a\" is there twice"),
            (
                names(&["A b"]),
                "profiles[0].schedulerNames[0]: \"A b\" is no name: want up to 253 of a-z, 0-9, '-' and '.'",
            ),
            (two, "profiles[1].schedulerNames[1]: \"a\" is there twice"),
            (
                Config { profiles: vec![], ..Config::default() },
                "profiles: want 1 to 64, or leave the field out",
            ),
            (Config { bind_concurrency: 0, ..Config::default() }, "limits.bindConcurrency: want 1 to 10000"),
            (
                Config { events_per_second: 0, ..Config::default() },
                "limits.eventsPerSecond: want 1 to 100000",
            ),
            (
                Config { request_timeout: Duration::ZERO, ..Config::default() },
                "timeouts.request: want more than 0s and at most 1h",
            ),
            (
                Config { outcome_settles_after: Duration::from_secs(9), ..Config::default() },
                "timeouts.outcomeSettles: want at least timeouts.request (10s): a binding that is still waited for may \
                 yet be written",
            ),
        ] {
            assert_eq!(config.validate().expect_err("must be refused").to_string(), error);
        }
    }

    #[test]
    fn an_outcome_that_settles_before_the_server_gives_up_is_warned_of() {
        let settles =
            |seconds| Config { outcome_settles_after: Duration::from_secs(seconds), ..Config::default() };
        assert_eq!(settles(60).warnings(), []);
        assert_eq!(settles(59).validate(), Ok(()), "a server may have been told to give up sooner");
        let fields: Vec<&str> = settles(59).warnings().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["timeouts.outcomeSettles"]);
    }
}
