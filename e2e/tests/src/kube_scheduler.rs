//! The real kube-scheduler, for stories in which it is one of the actors.

use crate::process::Component;
use std::path::{Path, PathBuf};

/// The environment variable that names a kube-scheduler to take in place of the one that is built here.
pub(crate) const VARIABLE: &str = "TUTTI_E2E_KUBE_SCHEDULER";

/// Where kube-scheduler comes from.
#[derive(Debug, Clone)]
pub(crate) enum KubeScheduler {
    /// A binary that is nothing else.
    Own(PathBuf),
    /// The control plane binary, which its first argument makes kube-scheduler.
    ControlPlane(PathBuf),
}

impl KubeScheduler {
    /// The one that the environment names.
    pub(crate) fn given() -> Option<Self> {
        std::env::var_os(VARIABLE).map(|file| Self::Own(file.into()))
    }

    /// It as a process for one cluster, not started yet. Nobody else leads, and nobody asks it for metrics.
    pub(crate) fn component(&self, kubeconfig: &Path, arguments: &[&str], log: PathBuf) -> Component {
        let (binary, subcommand) = match self {
            Self::Own(binary) => (binary, None),
            Self::ControlPlane(binary) => (binary, Some("kube-scheduler".to_owned())),
        };
        let own = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let given = arguments.iter().map(|argument| (*argument).to_owned());
        let arguments = subcommand.into_iter().chain(own).chain(given).collect();
        Component::new("kube-scheduler", binary.clone(), arguments, log)
    }
}
