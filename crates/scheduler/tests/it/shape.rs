//! The ways in which clusters serve groups, as users meet them: what a group looks like, how a pod names it, and where
//! to read how it is.

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tutti_cluster::cluster::ClusterOptions;
use tutti_cluster::registry::Release;

/// The part of a workload that stands for a group.
pub(crate) const PART: &str = "members";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Kubernetes 1.35: a group is a part of a Workload, and has no status.
    Part,
    /// Kubernetes 1.36.
    Alpha,
    /// Kubernetes 1.37.
    Beta,
    /// Kubernetes that serves no groups, with a kind of our own.
    Custom,
}

/// How the minimum of a gang can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    InPlace,
    /// Only by deleting the group and making another of its name.
    Anew,
    /// Not at all: it cannot be changed, and a group with members cannot go.
    Never,
}

impl Shape {
    pub(crate) const ALL: [Self; 4] = [Self::Part, Self::Alpha, Self::Beta, Self::Custom];

    /// A cluster that serves groups in this way and in no other.
    pub(crate) fn cluster(self) -> ClusterOptions {
        let release = match self {
            Self::Part => Release::V1_35,
            Self::Alpha => Release::V1_36,
            Self::Beta | Self::Custom => Release::V1_37,
        };
        ClusterOptions { release, workload_apis: self != Self::Custom, ..ClusterOptions::default() }
    }

    /// The kind that says what a group wants.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Part => ("scheduling.k8s.io", "v1alpha1", "Workload"),
            Self::Alpha => ("scheduling.k8s.io", "v1alpha2", "PodGroup"),
            Self::Beta => ("scheduling.k8s.io", "v1beta1", "PodGroup"),
            Self::Custom => ("tutti.dev", "v1alpha1", "PodGroup"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }

    /// A group with this policy.
    pub(crate) fn group(self, name: &str, annotations: &Value, policy: &Value) -> Value {
        let ApiResource { api_version, kind, .. } = self.resource();
        let spec = match self {
            Self::Part => json!({"podGroups": [{"name": PART, "policy": policy}]}),
            _ => json!({"schedulingPolicy": policy}),
        };
        json!({"apiVersion": api_version, "kind": kind,
               "metadata": {"name": name, "annotations": annotations}, "spec": spec})
    }

    /// Labels and fields of the spec by which a pod is a member of a group.
    pub(crate) fn membership(self, group: &str) -> (Value, Value) {
        match self {
            Self::Part => (json!({}), json!({"workloadRef": {"name": group, "podGroup": PART}})),
            Self::Alpha | Self::Beta => (json!({}), json!({"schedulingGroup": {"podGroupName": group}})),
            Self::Custom => (json!({"tutti.dev/pod-group": group}), json!({})),
        }
    }

    /// The condition that the scheduler writes on a group, where groups have conditions.
    pub(crate) fn condition(self) -> Option<&'static str> {
        match self {
            Self::Part => None,
            Self::Alpha => Some("PodGroupScheduled"),
            Self::Beta | Self::Custom => Some("PodGroupInitiallyScheduled"),
        }
    }

    pub(crate) fn change(self) -> Change {
        match self {
            Self::Part => Change::Anew,
            Self::Alpha => Change::Never,
            Self::Beta | Self::Custom => Change::InPlace,
        }
    }
}
