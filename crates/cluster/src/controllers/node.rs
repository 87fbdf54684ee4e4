//! The life of nodes: one that gives no sign of life is Unknown, and what a node's state means for pods is said
//! by taints.

use super::conditions::{self, Says};
use super::owners;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::core::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;
use tutti_controllers::{Action, Edit, Loose, Note, Plan, Severity, View, stamp};

/// Namespace of the leases that are signs of life of nodes.
pub(super) const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Conditions that nobody knows any more when a node is silent.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that keep new pods away while they hold.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// A node.
pub(crate) type NodeView = View<NodeSpec, NodeStatus>;

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    /// Taints, unread, so that those of others are kept as they are.
    pub(super) taints: Loose<Vec<Value>>,
    pub(super) unschedulable: Loose<bool>,
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NodeStatus {
    /// Conditions, unread.
    pub(super) conditions: Loose<Vec<Value>>,
}

/// A lease.
pub(crate) type LeaseView = View<LeaseSpec>;

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LeaseSpec {
    renew_time: Loose<Option<MicroTime>>,
    lease_duration_seconds: Loose<Option<i64>>,
}

/// The resource of nodes.
pub(super) fn nodes() -> Arc<ApiResource> {
    Arc::new(ApiResource::erase::<Node>(&()))
}

/// The resource of leases.
pub(super) fn leases() -> Arc<ApiResource> {
    Arc::new(ApiResource::erase::<Lease>(&()))
}

/// `True`, `False` or `Unknown`; empty for a node that never said.
pub(super) fn readiness(node: &NodeView) -> &str {
    conditions::text(&node.status.conditions.0, "Ready", "status")
}

/// What is to be done about a node, given its lease. A node may be silent for `grace`, or for as long as its lease
/// says, whichever is longer.
pub(super) fn plan(
    node: &NodeView,
    lease: Option<&LeaseView>,
    grace: SignedDuration,
    resource: &Arc<ApiResource>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::nothing();
    if node.is_terminating() {
        return plan;
    }
    let lost_at = silent_at(node, lease, grace);
    let mut ready = readiness(node);
    if now < lost_at {
        plan.again_at(lost_at);
    } else if ready != "Unknown" {
        let conditions = unknown_conditions(node, now);
        let body = json!({
            "metadata": {"uid": node.uid(), "resourceVersion": node.version()},
            "status": {"conditions": conditions},
        });
        plan.actions.push(Action::patch(resource, node.key(), Edit::status(body)));
        plan.actions.push(Action::Tell(Note {
            about: owners::reference(node, resource),
            severity: Severity::Normal,
            reason: "NodeNotReady",
            message: format!("Node {} status is now: NodeNotReady", node.name()),
        }));
        // The taints follow from the status once that is seen.
        return plan;
    }
    if ready.is_empty() {
        ready = "False";
    }
    let taints = taints(node, ready, now);
    if taints != node.spec.taints.0 {
        let body = json!({
            "metadata": {"uid": node.uid(), "resourceVersion": node.version()},
            "spec": {"taints": taints},
        });
        plan.actions.push(Action::patch(resource, node.key(), Edit::merge(body)));
    }
    plan
}

/// When a node that says nothing more is given up.
fn silent_at(node: &NodeView, lease: Option<&LeaseView>, grace: SignedDuration) -> Timestamp {
    let renewed = lease.and_then(|lease| lease.spec.renew_time.0.as_ref()).map(|time| time.0);
    let heartbeat = conditions::text(&node.status.conditions.0, "Ready", "lastHeartbeatTime").parse().ok();
    let last = [renewed, heartbeat, Some(node.created())].into_iter().flatten().max();
    let promised = lease.and_then(|lease| lease.spec.lease_duration_seconds.0).unwrap_or(0);
    let grace = grace.max(SignedDuration::from_secs(promised));
    last.unwrap_or(Timestamp::MIN).checked_add(grace).unwrap_or(Timestamp::MAX)
}

fn unknown_conditions(node: &NodeView, now: Timestamp) -> Vec<Value> {
    let mut all = node.status.conditions.0.clone();
    for kind in REPORTED {
        let heartbeat = conditions::find(&all, kind).and_then(|c| c.get("lastHeartbeatTime")).cloned();
        let (reason, message) = match heartbeat {
            Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
        };
        conditions::set(&mut all, Says { kind, status: "Unknown", reason, message }, &[], now);
        let set = all.iter_mut().find(|c| c.get("type").and_then(Value::as_str) == Some(kind));
        if let Some(condition) = set.and_then(Value::as_object_mut) {
            condition.insert(
                "lastHeartbeatTime".to_owned(),
                heartbeat.unwrap_or_else(|| json!(stamp(node.created()))),
            );
        }
    }
    all
}

/// The taints that a node should have. Those of others stay as they are.
fn taints(node: &NodeView, ready: &str, now: Timestamp) -> Vec<Value> {
    let conditions = &node.status.conditions.0;
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for (status, key) in [("False", NOT_READY), ("Unknown", UNREACHABLE)] {
        if ready == status {
            wanted.extend([(key, "NoSchedule"), (key, "NoExecute")]);
        }
    }
    if node.spec.unschedulable.0 {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (kind, key) in PRESSURES {
        if conditions::holds(conditions, kind) {
            wanted.push((key, "NoSchedule"));
        }
    }
    let id = |taint: &Value| {
        let text = |field| taint.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("key"), text("effect"))
    };
    let is_ours = |key: &str| {
        [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key)
            || PRESSURES.iter().any(|(_, taint)| *taint == key)
    };
    let mut taints: Vec<Value> = node.spec.taints.0.clone();
    taints.retain(|taint| {
        let (key, effect) = id(taint);
        !is_ours(&key) || wanted.contains(&(key.as_str(), effect.as_str()))
    });
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| id(taint) == (key.to_owned(), effect.to_owned())) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": stamp(now)}));
        }
    }
    taints
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: SignedDuration = SignedDuration::from_secs(50);

    fn node(change: impl FnOnce(&mut Value)) -> NodeView {
        let mut node = json!({
            "metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-11-15T11:00:00Z"},
            "spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-15T11:55:00Z",
                "lastTransitionTime": "2026-11-15T11:00:00Z"}]},
        });
        change(&mut node);
        serde_json::from_value(node).unwrap()
    }

    fn lease(renewed: &str, seconds: i64) -> LeaseView {
        let spec = json!({"renewTime": renewed, "leaseDurationSeconds": seconds});
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": spec})).unwrap()
    }

    fn look(node: &NodeView, lease: Option<&LeaseView>) -> Plan {
        plan(node, lease, GRACE, &nodes(), "2026-11-15T12:00:00Z".parse().unwrap())
    }

    fn body(plan: &Plan) -> &Value {
        match plan.actions.first() {
            Some(Action::Patch { edit, .. }) => &edit.body,
            _ => panic!("no patch in {plan:?}"),
        }
    }

    fn taints_of(plan: &Plan) -> Vec<String> {
        let taints = body(plan)["spec"]["taints"].as_array().unwrap();
        let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
        taints.iter().map(|taint| format!("{}:{}", text(taint, "key"), text(taint, "effect"))).collect()
    }

    #[test]
    fn a_node_whose_lease_is_renewed_is_left_alone_until_the_grace_is_over() {
        let plan = look(&node(|_| {}), Some(&lease("2026-11-15T11:59:50.000000Z", 40)));
        assert_eq!((plan.actions, plan.look_again), (vec![], Some("2026-11-15T12:00:40Z".parse().unwrap())));
        let plan = look(&node(|_| {}), Some(&lease("2026-11-15T11:59:00.000000Z", 200)));
        assert_eq!(plan.actions, [], "a node that promised less signs of life is waited for");
    }

    #[test]
    fn a_silent_node_is_unknown_and_then_unreachable() {
        let plan = look(&node(|_| {}), Some(&lease("2026-11-15T11:59:00.000000Z", 40)));
        let conditions = body(&plan)["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 4);
        assert!(conditions.iter().all(|c| c["status"] == "Unknown"));
        assert_eq!(conditions[0]["reason"], "NodeStatusUnknown");
        assert_eq!(conditions[0]["lastHeartbeatTime"], "2026-11-15T11:55:00Z");
        let unknown = node(|n| n["status"]["conditions"][0]["status"] = json!("Unknown"));
        let plan = look(&unknown, None);
        let expected = [
            "mine:NoSchedule",
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute",
        ];
        assert_eq!(taints_of(&plan), expected);
    }

    #[test]
    fn taints_follow_from_the_state_of_a_node() {
        let alive = lease("2026-11-15T12:00:00.000000Z", 40);
        let unready = node(|n| n["status"]["conditions"][0]["status"] = json!("False"));
        let expected = [
            "mine:NoSchedule",
            "node.kubernetes.io/not-ready:NoSchedule",
            "node.kubernetes.io/not-ready:NoExecute",
        ];
        assert_eq!(taints_of(&look(&unready, Some(&alive))), expected);
        let cordoned = node(|n| n["spec"]["unschedulable"] = json!(true));
        assert_eq!(
            taints_of(&look(&cordoned, Some(&alive))),
            ["mine:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]
        );
        let full = node(|n| {
            let pressure = json!({"type": "DiskPressure", "status": "True"});
            n["status"]["conditions"].as_array_mut().unwrap().push(pressure);
        });
        assert_eq!(
            taints_of(&look(&full, Some(&alive))),
            ["mine:NoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule"]
        );
        let restored = node(|n| n["spec"]["taints"] = json!([{"key": UNREACHABLE, "effect": "NoExecute"}]));
        assert_eq!(taints_of(&look(&restored, Some(&alive))), [""; 0]);
        assert_eq!(look(&node(|_| {}), Some(&alive)).actions, []);
    }
}
