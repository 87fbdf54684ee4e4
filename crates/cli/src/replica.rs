//! What commands that run as several replicas beside a cluster have in common: a lease, an address for questions,
//! and what both have to agree on.

use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use tutti_k8s::gangs::Integration;
use tutti_lease::Place;

/// Where replicas keep what they share if neither the configuration nor the cluster says so.
pub(crate) const DEFAULT_NAMESPACE: &str = "kube-system";

/// Which cluster, for whom, and with how many others.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplicaArgs {
    /// Kubeconfig of the cluster.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Name under which pods ask for Tutti; may be repeated. Default: `tutti`. A configuration with several profiles
    /// names them itself.
    #[arg(long = "scheduler-name", value_name = "NAME")]
    pub(crate) scheduler_names: Vec<String>,
    /// Whether groups are made for Jobs: unless the cluster's own Job controller makes them, always, or never; pods of
    /// Jobs that are to have one wait for it. `tutti scheduler` and `tutti controller` must be told the same.
    /// Default: auto.
    #[arg(long, value_name = "WHEN")]
    pub(crate) job_integration: Option<JobIntegration>,
    /// Whether replicas elect a leader. Without, there must never be two of them. Default: true.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) leader_elect: Option<bool>,
}

/// `off` or an address. (An `Option` in an `Option` would say the same to nobody.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HttpAddress(pub(crate) Option<SocketAddr>);

/// Reads the address of an option.
pub(crate) fn http_address(text: &str) -> Result<HttpAddress, String> {
    if text == "off" {
        return Ok(HttpAddress(None));
    }
    let wrong = |_| format!("{text:?} is neither IP:PORT nor off");
    text.parse().map(|address| HttpAddress(Some(address))).map_err(wrong)
}

/// Whether groups are made for Jobs.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum JobIntegration {
    Auto,
    On,
    Off,
}

impl From<JobIntegration> for Integration {
    fn from(value: JobIntegration) -> Self {
        match value {
            JobIntegration::Auto => Self::Auto,
            JobIntegration::On => Self::On,
            JobIntegration::Off => Self::Off,
        }
    }
}

/// Where the lease is, and who we are in it.
pub(crate) fn place(name: &str, namespace: Option<&str>, own_namespace: Option<&str>) -> Place {
    let namespace = namespace.or(own_namespace).unwrap_or(DEFAULT_NAMESPACE);
    // Pods are told their name as that of the machine. It stays when a container starts again, so it is not enough.
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "tutti".to_owned());
    let identity = format!("{host}_{}", uuid::Uuid::new_v4());
    Place { namespace: namespace.to_owned(), name: name.to_owned(), identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_address_or_off() {
        assert_eq!(http_address("off"), Ok(HttpAddress(None)));
        assert!(http_address("127.0.0.1:0").is_ok());
        assert!(http_address("localhost").unwrap_err().contains("neither IP:PORT nor off"));
    }

    #[test]
    fn a_lease_is_where_it_is_said_to_be_or_where_we_are() {
        let namespace = |said, own| place("x", said, own).namespace;
        assert_eq!(namespace(Some("said"), Some("own")), "said");
        assert_eq!(namespace(None, Some("own")), "own");
        assert_eq!(namespace(None, None), DEFAULT_NAMESPACE);
        assert_ne!(place("x", None, None).identity, place("x", None, None).identity);
    }
}
