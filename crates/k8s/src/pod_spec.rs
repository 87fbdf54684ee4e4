//! The fields of a pod that are read.

use crate::condition::ConditionView;
use crate::inter_pod::SpreadView;
use crate::lenient::{Lenient, Shape, Shaped};
use crate::resources::{Amounts, Requirements};
use crate::selector::{AffinityView, TolerationView};
use crate::workload::WorkloadRefView;
use std::collections::BTreeMap;

/// `spec`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpecView {
    pub(crate) containers: Lenient<Vec<Lenient<ContainerView>>>,
    pub(crate) init_containers: Lenient<Vec<Lenient<ContainerView>>>,
    pub(crate) volumes: Lenient<Vec<Lenient<VolumeView>>>,
    pub(crate) resource_claims: Lenient<Vec<Lenient<NamedView>>>,
    pub(crate) resources: Lenient<Requirements>,
    pub(crate) overhead: Amounts,
    pub(crate) node_selector: Lenient<BTreeMap<String, Lenient<String>>>,
    pub(crate) affinity: Lenient<AffinityView>,
    pub(crate) tolerations: Lenient<Vec<Lenient<TolerationView>>>,
    pub(crate) topology_spread_constraints: Lenient<Vec<Lenient<SpreadView>>>,
    pub(crate) scheduling_gates: Lenient<Vec<Lenient<GateView>>>,
    pub(crate) priority: Lenient<i32>,
    pub(crate) preemption_policy: Lenient<String>,
    pub(crate) scheduler_name: Lenient<String>,
    pub(crate) scheduling_group: Lenient<SchedulingGroupView>,
    pub(crate) workload_ref: Lenient<WorkloadRefView>,
    pub(crate) node_name: Lenient<String>,
    pub(crate) host_network: Lenient<bool>,
    pub(crate) host_users: Lenient<bool>,
}

/// A container or init container.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerView {
    pub(crate) name: Lenient<String>,
    pub(crate) image: Lenient<String>,
    pub(crate) restart_policy: Lenient<String>,
    pub(crate) restart_policy_rules: Lenient<Vec<Lenient<RestartRuleView>>>,
    pub(crate) volume_mounts: Lenient<Vec<Lenient<MountView>>>,
    pub(crate) ports: Lenient<Vec<Lenient<PortView>>>,
    pub(crate) resources: Lenient<Requirements>,
}

/// One of a container's `restartPolicyRules`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct RestartRuleView {
    pub(crate) action: Lenient<String>,
}

/// One of a container's `volumeMounts`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MountView {
    pub(crate) bind_mount_options: Lenient<Vec<Lenient<String>>>,
}

/// One of a container's `ports`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PortView {
    pub(crate) protocol: Lenient<String>,
    pub(crate) host_port: Lenient<i64>,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: Lenient<String>,
}

/// One of `spec.volumes`. Volumes that come with the pod, such as an `emptyDir`, ask nothing of a node.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumeView {
    pub(crate) name: Lenient<String>,
    pub(crate) image: Lenient<ImageVolumeView>,
    pub(crate) persistent_volume_claim: Lenient<VolumeClaimView>,
    pub(crate) ephemeral: Lenient<EphemeralView>,
}

/// `image` of a volume.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct ImageVolumeView {
    pub(crate) reference: Lenient<String>,
}

/// `persistentVolumeClaim` of a volume.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumeClaimView {
    pub(crate) claim_name: Lenient<String>,
}

/// `ephemeral` of a volume: a claim is made for the pod.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub(crate) struct EphemeralView {}

/// Anything of which only the name matters.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NamedView {
    pub(crate) name: Lenient<String>,
}

/// One of `spec.schedulingGates`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct GateView {
    pub(crate) name: Lenient<String>,
}

/// `spec.schedulingGroup`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SchedulingGroupView {
    pub(crate) pod_group_name: Lenient<String>,
}

/// `status`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatusView {
    pub(crate) phase: Lenient<String>,
    pub(crate) nominated_node_name: Lenient<String>,
    pub(crate) conditions: Lenient<Vec<Lenient<ConditionView>>>,
    pub(crate) container_statuses: Lenient<Vec<Lenient<ContainerStatusView>>>,
    pub(crate) init_container_statuses: Lenient<Vec<Lenient<ContainerStatusView>>>,
    pub(crate) allocated_resources: Amounts,
}

/// What the kubelet says of a container.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatusView {
    pub(crate) name: Lenient<String>,
    pub(crate) allocated_resources: Amounts,
    pub(crate) resources: Lenient<Requirements>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(
    PodSpecView,
    ContainerView,
    RestartRuleView,
    MountView,
    PortView,
    VolumeView,
    ImageVolumeView,
    VolumeClaimView,
    EphemeralView,
    NamedView,
    GateView,
    SchedulingGroupView,
    PodStatusView,
    ContainerStatusView
);
