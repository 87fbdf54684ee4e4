//! Kinds that keep a number of equal pods: Deployment, ReplicaSet, StatefulSet, DaemonSet and their ancestor.

use super::defaults::{child, existing, first_status, set};
use super::pod_defaults;
use serde_json::{Map, Value, json};

/// Old revisions that are kept for a rollback.
const REVISION_HISTORY_LIMIT: i64 = 10;
/// How long a rollout may stand still before it counts as failed.
const PROGRESS_DEADLINE_SECONDS: i64 = 600;

/// Defaults of a Deployment.
pub(super) fn deployment_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({}));
    let Some(spec) = child(object, "spec") else { return };
    pod_defaults::template(spec);
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(REVISION_HISTORY_LIMIT));
    set(spec, "progressDeadlineSeconds", json!(PROGRESS_DEADLINE_SECONDS));
    rolling_update(spec, "strategy", &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
}

/// Defaults of a ReplicaSet.
pub(super) fn replica_set_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"replicas": 0}));
    let Some(spec) = child(object, "spec") else { return };
    pod_defaults::template(spec);
    set(spec, "replicas", json!(1));
}

/// Defaults of a StatefulSet.
pub(super) fn stateful_set_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"replicas": 0, "availableReplicas": 0}));
    let Some(spec) = child(object, "spec") else { return };
    pod_defaults::template(spec);
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    rolling_update(spec, "updateStrategy", &[("partition", json!(0))]);
    if let Some(policy) = child(spec, "persistentVolumeClaimRetentionPolicy") {
        set(policy, "whenDeleted", json!("Retain"));
        set(policy, "whenScaled", json!("Retain"));
    }
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(REVISION_HISTORY_LIMIT));
}

/// Defaults of a DaemonSet.
pub(super) fn daemon_set_defaults(object: &mut Map<String, Value>) {
    first_status(
        object,
        || json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0}),
    );
    let Some(spec) = child(object, "spec") else { return };
    pod_defaults::template(spec);
    rolling_update(spec, "updateStrategy", &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    set(spec, "revisionHistoryLimit", json!(REVISION_HISTORY_LIMIT));
}

/// Defaults of a ReplicationController, whose selector and labels are those of its template.
pub(super) fn controller_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"replicas": 0}));
    let Some(spec) = child(object, "spec") else { return };
    pod_defaults::template(spec);
    set(spec, "replicas", json!(1));
    let labels = spec.get("template").and_then(|t| t.pointer("/metadata/labels")).cloned();
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|l| !l.is_empty())) {
        set(spec, "selector", labels.clone());
        if let Some(metadata) = child(object, "metadata") {
            set(metadata, "labels", labels);
        }
    }
}

/// A strategy that says nothing rolls, and one that rolls has all its numbers.
fn rolling_update(spec: &mut Map<String, Value>, field: &str, numbers: &[(&str, Value)]) {
    let Some(strategy) = child(spec, field) else { return };
    set(strategy, "type", json!("RollingUpdate"));
    if strategy.get("type").and_then(Value::as_str) != Some("RollingUpdate") {
        return;
    }
    set(strategy, "rollingUpdate", json!({}));
    if let Some(rolling) = existing(strategy, "rollingUpdate") {
        for (name, number) in numbers {
            set(rolling, name, number.clone());
        }
    }
}
