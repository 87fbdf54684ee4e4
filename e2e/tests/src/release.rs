//! The Kubernetes releases that are tested against, and how each is told to serve workload-aware scheduling.

use anyhow::bail;
use std::fmt;
use std::str::FromStr;
use tutti_cluster::registry;

/// A minor release. Which patch release it is, the module file in `e2e/controlplane` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// Workloads and pod groups are `v1alpha2`.
    V1_36,
    /// Workloads and pod groups are `v1beta1`, composite pod groups `v1alpha3`.
    V1_37,
}

impl Release {
    /// Feature gates of all components. One that a release does not know stops the component.
    pub(crate) fn feature_gates(self, further: &[&str]) -> String {
        let gates: &[&str] = match self {
            Self::V1_36 => &[
                "GenericWorkload",
                "GangScheduling",
                "WorkloadAwarePreemption",
                "TopologyAwareWorkloadScheduling",
                "DRAWorkloadResourceClaims",
            ],
            // GangScheduling and WorkloadAwarePreemption became part of GenericWorkload.
            Self::V1_37 => &[
                "GenericWorkload",
                "TopologyAwareWorkloadScheduling",
                "CompositePodGroup",
                "PodGroupPreemptionPolicy",
                "DRAWorkloadResourceClaims",
            ],
        };
        let on: Vec<String> = gates.iter().chain(further).map(|gate| format!("{gate}=true")).collect();
        on.join(",")
    }

    /// The embedded cluster that must behave alike: what people get who do not choose is the newest release with the
    /// versions of all others beside it.
    pub(crate) fn embedded(self) -> registry::Release {
        match self {
            Self::V1_36 => registry::Release::V1_36,
            Self::V1_37 => registry::Release::All,
        }
    }

    /// API versions that are not served unless asked for.
    pub(crate) fn runtime_config(self) -> &'static str {
        match self {
            Self::V1_36 => "scheduling.k8s.io/v1alpha2=true",
            Self::V1_37 => "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        })
    }
}

impl FromStr for Release {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        Ok(match text {
            "1.36" => Self::V1_36,
            "1.37" => Self::V1_37,
            _ => bail!("{text:?} is not a release that is tested; want 1.36 or 1.37"),
        })
    }
}
