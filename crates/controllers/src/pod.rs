//! What controllers read of pods.

use crate::view::{Condition, Loose, View};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ApiResource;
use std::sync::Arc;

/// A pod.
pub type PodView = View<PodSpec, PodStatus>;

/// The resource of pods.
pub fn pods() -> Arc<ApiResource> {
    Arc::new(ApiResource::erase::<Pod>(&()))
}

/// What is read of a pod's spec.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node that it is bound to.
    pub node_name: Loose<Option<String>>,
    /// Taints that it can live with.
    pub tolerations: Loose<Vec<Toleration>>,
    /// Its group.
    pub scheduling_group: Loose<Option<SchedulingGroup>>,
}

/// Membership in a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SchedulingGroup {
    /// Name of the PodGroup, in the namespace of the pod.
    pub pod_group_name: Option<String>,
}

/// What is read of a pod's status.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, …
    pub phase: Loose<String>,
    /// Its conditions.
    pub conditions: Loose<Vec<Condition>>,
    /// Its containers.
    pub container_statuses: Loose<Vec<ContainerStatus>>,
    /// Its init containers.
    pub init_container_statuses: Loose<Vec<ContainerStatus>>,
}

/// What is read of a container's status.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// How often it was started again.
    pub restart_count: i32,
    /// What it does now.
    pub state: ContainerState,
}

/// What is read of a container's state.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It has ended.
    pub terminated: Option<Terminated>,
}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// Its exit code.
    pub exit_code: i32,
    /// When it ended.
    pub finished_at: Option<Time>,
}

impl PodView {
    /// The node that it is bound to.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.0.as_deref().filter(|name| !name.is_empty())
    }

    /// The name of its group.
    pub fn group(&self) -> Option<&str> {
        self.spec.scheduling_group.0.as_ref()?.pod_group_name.as_deref().filter(|name| !name.is_empty())
    }

    /// True if it has ended, well or not.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase.0.as_str(), "Succeeded" | "Failed")
    }

    /// All starts of containers but the first ones.
    pub fn restarts(&self) -> i64 {
        let statuses = self.status.container_statuses.0.iter().chain(&self.status.init_container_statuses.0);
        statuses.map(|status| i64::from(status.restart_count)).sum()
    }

    /// When the last of its containers ended.
    pub fn finished_at(&self) -> Option<Timestamp> {
        let ended = self.status.container_statuses.0.iter().filter_map(|c| c.state.terminated.as_ref());
        ended.filter_map(|terminated| terminated.finished_at.as_ref()).map(|time| time.0).max()
    }
}

/// One of its conditions.
pub fn condition_of<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// True if a pod has neither ended nor is being deleted.
pub fn is_active(pod: &PodView) -> bool {
    !pod.has_ended() && !pod.is_terminating()
}

/// True if a pod is Ready.
pub fn is_ready(pod: &PodView) -> bool {
    condition_of(&pod.status.conditions.0, "Ready").is_some_and(Condition::is_true)
}
