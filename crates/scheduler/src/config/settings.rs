//! Settings of the process around the scheduler.

use super::{Config, ConfigError, check_duration};
use std::net::SocketAddr;
use tutti_lease::Timing;

/// Everything that a configuration file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The scheduler itself.
    pub config: Config,
    /// Whether replicas elect a leader; without, there is only ever one.
    pub elects: bool,
    /// By which Lease they do. It is kept where there is no election, so that an option can ask for one after all.
    pub lease: LeaseSettings,
    /// What is served over HTTP.
    pub http: HttpSettings,
}

/// The Lease by which replicas agree on a leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Its name.
    pub name: String,
    /// Its namespace; `None` is that of the pod, or `kube-system` outside of a cluster.
    pub namespace: Option<String>,
    /// How often it is renewed, and when it is lost.
    pub timing: Timing,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self { name: "tutti-scheduler".to_owned(), namespace: None, timing: Timing::default() }
    }
}

/// What is served over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpSettings {
    /// Where; `None` serves nothing.
    pub address: Option<SocketAddr>,
    /// Whether `/debug` is served to others than this machine. It shows every pod that scheduling knows.
    pub debug_from_anywhere: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { address: Some(SocketAddr::from(([127, 0, 0, 1], 10270))), debug_from_anywhere: false }
    }
}

impl Settings {
    /// What a configuration file without a word says: replicas elect a leader.
    pub fn of_a_cluster() -> Self {
        Self { elects: true, ..Self::default() }
    }

    /// By which Lease a leader is elected, if one is.
    pub fn election(&self) -> Option<&LeaseSettings> {
        self.elects.then_some(&self.lease)
    }

    /// Refuses settings that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.config.validate()?;
        let lease = &self.lease;
        if !is_object_name(&lease.name) {
            let message = format!(
                "{:?} is no name of an object: want up to 253 of a-z, 0-9, '-' and '.', with a letter or digit first, last \
                 and beside every dot",
                lease.name
            );
            return Err(ConfigError::new("leaderElection.leaseName", message));
        }
        if let Some(namespace) = lease.namespace.as_ref().filter(|namespace| !is_label(namespace)) {
            let message = format!(
                "{namespace:?} is no namespace: want up to 63 of a-z, 0-9 and '-', with a letter or digit first and last"
            );
            return Err(ConfigError::new("leaderElection.leaseNamespace", message));
        }
        let Timing { lease_duration, renew_deadline, retry_period } = lease.timing;
        for (field, value) in [
            ("leaderElection.leaseDuration", lease_duration),
            ("leaderElection.renewDeadline", renew_deadline),
            ("leaderElection.retryPeriod", retry_period),
        ] {
            check_duration(field, value)?;
        }
        lease
            .timing
            .validate()
            .map_err(|error| ConfigError::new(format!("leaderElection.{}", error.field), error.message))
    }

    /// Fields that differ from `other` and that a running process cannot change.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let mut fields = Vec::new();
        if self.election() != other.election() {
            fields.push("leaderElection");
        }
        if self.http != other.http {
            fields.push("http");
        }
        fields
    }
}

/// True for a name that an API server takes for most kinds.
fn is_object_name(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label_of_any_length)
}

/// True for a name that an API server takes for a namespace.
fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_label_of_any_length(name)
}

fn is_label_of_any_length(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && !name.starts_with('-') && !name.ends_with('-') && name.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The field that is refused, with or without an election.
    fn refused(change: impl Fn(&mut LeaseSettings)) -> Option<String> {
        let refused = |elects| {
            let mut settings = Settings { elects, ..Settings::default() };
            change(&mut settings.lease);
            settings.validate().err().map(|error| error.field)
        };
        assert_eq!(refused(true), refused(false));
        refused(true)
    }

    #[test]
    fn a_lease_has_a_name_that_an_api_server_takes() {
        for good in ["a", "tutti-scheduler", "a.b", "0"] {
            assert_eq!(refused(|lease| lease.name = good.to_owned()), None, "{good}");
        }
        let long = "a".repeat(254);
        for wrong in ["", "-", "a-", "..", ".x", "a..b", "A", "a_b", "a.-b", &long] {
            let field = refused(|lease| lease.name = wrong.to_owned());
            assert_eq!(field.as_deref(), Some("leaderElection.leaseName"), "{wrong}");
        }
        let long = "a".repeat(64);
        for wrong in ["", "a.b", "a-", &long] {
            let field = refused(|lease| lease.namespace = Some(wrong.to_owned()));
            assert_eq!(field.as_deref(), Some("leaderElection.leaseNamespace"), "{wrong}");
        }
        assert_eq!(refused(|lease| lease.namespace = Some("kube-system".to_owned())), None);
    }

    #[test]
    fn a_lease_is_not_asked_for_without_a_pause() {
        let field = refused(|lease| lease.timing.retry_period = Duration::from_millis(1));
        assert_eq!(field.as_deref(), Some("leaderElection.retryPeriod"));
    }
}
