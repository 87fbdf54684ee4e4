//! Why the scheduler stops.

use crate::config::ConfigError;

/// Why [`crate::run`] ended before it was asked to. All of them are cured by a restart or by a person; what is
/// bound stays bound, and a new process finds everything else in the cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting cannot be used.
    #[error("configuration: {0}")]
    Config(#[from] ConfigError),
    /// The cluster could not be asked what it serves.
    #[error("the cluster does not say which APIs it serves: {0}")]
    Discovery(#[source] Box<kube::Error>),
    /// Health and metrics cannot be served.
    #[error(transparent)]
    Http(#[from] tutti_http::ListenError),
    /// The system does not give what the thread that watches nodes needs.
    #[error("no thread to watch nodes: {0}")]
    Thread(#[source] std::io::Error),
    /// A task of the scheduler ended that must not.
    #[error("{what} ended unexpectedly")]
    TaskEnded {
        /// Which task.
        what: &'static str,
    },
}
