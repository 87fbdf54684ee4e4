//! The status that a simulated kubelet reports of its node.

use super::KUBELET_VERSION;
use super::pod_status::{merge_conditions, stamp};
use super::view::{NodeView, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Pods on a node whose capacity says nothing about them, as with a real kubelet.
const PODS_DEFAULT: &str = "110";

/// True if this is a node for simulated kubelets: nobody has ever reported its readiness, or one of them has.
pub(super) fn is_simulated(node: &NodeView) -> bool {
    node.kubelet_version.as_deref() == Some(KUBELET_VERSION)
        || !node.conditions.iter().any(|condition| text(condition, "type") == Some("Ready"))
}

/// True if the status lacks something that every node with a kubelet has.
pub(super) fn is_incomplete(node: &NodeView) -> bool {
    let ready = node.conditions.iter().any(|condition| {
        text(condition, "type") == Some("Ready") && text(condition, "status") == Some("True")
    });
    !ready
        || node.kubelet_version.as_deref() != Some(KUBELET_VERSION)
        || !node.capacity.contains_key("pods")
        || !node.allocatable.contains_key("pods")
        || node.address("InternalIP").is_none()
}

/// When the node last reported that it is alive.
pub(super) fn last_heartbeat(node: &NodeView) -> Option<Timestamp> {
    let ready = node.conditions.iter().find(|condition| text(condition, "type") == Some("Ready"))?;
    text(ready, "lastHeartbeatTime")?.parse().ok()
}

/// Capacity and allocatable as they should be: each completed by the other, both by a default.
pub(super) fn complete_resources(node: &NodeView) -> (Map<String, Value>, Map<String, Value>) {
    let (mut capacity, mut allocatable) = match (node.capacity.is_empty(), node.allocatable.is_empty()) {
        (true, true) => (default_capacity(), default_capacity()),
        (true, false) => (node.allocatable.clone(), node.allocatable.clone()),
        (false, true) => (node.capacity.clone(), node.capacity.clone()),
        (false, false) => (node.capacity.clone(), node.allocatable.clone()),
    };
    // How many pods a node takes is the kubelet's setting, so a node without one gets it here. Otherwise
    // nothing could ever run on it.
    let pods = capacity.entry("pods").or_insert_with(|| json!(PODS_DEFAULT)).clone();
    allocatable.entry("pods").or_insert(pods);
    (capacity, allocatable)
}

/// What a node has that says nothing about itself.
fn default_capacity() -> Map<String, Value> {
    [("cpu", "8"), ("memory", "32Gi"), ("pods", PODS_DEFAULT)]
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), json!(amount)))
        .collect()
}

/// The conditions of a healthy node.
pub(super) fn ready_conditions(now: Timestamp) -> Vec<Value> {
    [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "simulated node has sufficient memory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "simulated node has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "simulated node has sufficient process ids"),
        ("Ready", "True", "SimulatedKubeletReady", "simulated kubelet is ready"),
    ]
    .into_iter()
    .map(|(kind, status, reason, message)| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now),
        })
    })
    .collect()
}

/// `status.nodeInfo`. Every field is required by the API; what does not exist says so.
pub(super) fn node_info(node: &str) -> Value {
    json!({
        "architecture": "amd64",
        "operatingSystem": "linux",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "tutti://simulated",
        "osImage": "simulated",
        "kernelVersion": "simulated",
        "machineID": node,
        "systemUUID": node,
        "bootID": node,
    })
}

/// The labels that every kubelet gives its node.
pub(super) fn standard_labels(name: &str) -> [(&'static str, &str); 3] {
    [("kubernetes.io/hostname", name), ("kubernetes.io/arch", "amd64"), ("kubernetes.io/os", "linux")]
}

/// The merge patch that adds the labels that a node lacks, if it lacks any. What somebody has set stays.
pub(super) fn label_patch(node: &NodeView) -> Option<Value> {
    let missing: Map<String, Value> = standard_labels(&node.name)
        .into_iter()
        .filter(|(key, _)| !node.labels.contains_key(*key))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    if missing.is_empty() {
        return None;
    }
    Some(json!({"metadata": {"resourceVersion": node.version, "labels": missing}}))
}

/// The merge patch that makes the node Ready, or keeps it so.
pub(super) fn patch(node: &NodeView, address: Option<&str>, now: Timestamp) -> Value {
    let (capacity, allocatable) = complete_resources(node);
    let mut addresses = node.addresses.clone();
    let mut add = |kind: &str, value: &str| {
        if node.address(kind).is_none() {
            addresses.push(json!({"type": kind, "address": value}));
        }
    };
    if let Some(address) = address {
        add("InternalIP", address);
    }
    add("Hostname", &node.name);
    json!({
        "metadata": {"resourceVersion": node.version},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": merge_conditions(&node.conditions, ready_conditions(now)),
            "addresses": addresses,
            "nodeInfo": node_info(&node.name),
        }
    })
}
