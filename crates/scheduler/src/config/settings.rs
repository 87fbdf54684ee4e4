//! Settings of the process around the scheduler.

use super::{Config, ConfigError, check_duration};
use std::net::SocketAddr;
use tutti_lease::Timing;

/// Everything that a configuration file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The scheduler itself.
    pub config: Config,
    /// Who of several replicas schedules; `None` if there is only ever one.
    pub lease: Option<LeaseSettings>,
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
        Self { lease: Some(LeaseSettings::default()), ..Self::default() }
    }

    /// Refuses settings that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.config.validate()?;
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        for (field, name) in [("leaseName", Some(&lease.name)), ("leaseNamespace", lease.namespace.as_ref())]
        {
            if name.is_some_and(|name| !super::is_scheduler_name(name)) {
                let message = "want up to 253 of a-z, 0-9, '-' and '.'";
                return Err(ConfigError::new(format!("leaderElection.{field}"), message));
            }
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
        if self.lease != other.lease {
            fields.push("leaderElection");
        }
        if self.http != other.http {
            fields.push("http");
        }
        fields
    }
}
