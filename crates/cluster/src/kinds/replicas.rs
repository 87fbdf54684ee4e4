//! Kinds that keep a number of equal pods: Deployment, ReplicaSet, StatefulSet, DaemonSet and their ancestor.

use super::amounts;
use super::defaults::{child, existing, first_status, set};
use super::field::Field;
use super::label_selector;
use super::metadata::{check_annotations, check_labels};
use super::names::dns_label;
use super::placement::check_label_selector;
use super::{pod, pod_defaults};
use crate::error::Cause;
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

const COUNT_MAX: i64 = i32::MAX as i64;

/// What is wrong with the status of a Deployment.
pub(super) fn validate_deployment_status(_: &Field<'_, '_>, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check_status(root, &["updatedReplicas", "readyReplicas", "availableReplicas"], out);
}

/// What is wrong with the status of a ReplicaSet.
pub(super) fn validate_replica_set_status(_: &Field<'_, '_>, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check_status(root, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], out);
}

/// Counts are not negative, no part is more than the whole, and who is available is ready.
fn check_status(root: &Field<'_, '_>, parts: &[&'static str], out: &mut Vec<Cause>) {
    let status = root.get("status");
    let whole = status.get("replicas");
    check_counts(&status, &[&["replicas"], parts, &["observedGeneration"]].concat(), out);
    let count = |field: &Field<'_, '_>| field.int().unwrap_or(0);
    for part in parts.iter().map(|part| status.get(part)).filter(|part| count(part) > count(&whole)) {
        out.push(part.invalid("cannot be greater than status.replicas"));
    }
    let available = status.get("availableReplicas");
    if count(&available) > count(&status.get("readyReplicas")) {
        out.push(available.invalid("cannot be greater than readyReplicas"));
    }
}

/// What is wrong with a Deployment.
pub(super) fn validate_deployment(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_counts(
        &spec,
        &["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
        out,
    );
    check_selector(&spec, "deployment", out);
    check_always_template(&spec, "ReplicaSet", out);
    let strategy = spec.get("strategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" if rolling.is_set() => {
            out.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "Recreate" => {}
        "RollingUpdate" => check_rolling(&rolling, out),
        _ => out.push(strategy.not_supported(&["Recreate", "RollingUpdate"])),
    }
    let (deadline, ready) = (spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds"));
    if deadline.int().is_some_and(|seconds| seconds <= ready.int().unwrap_or(0)) {
        out.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

/// What is wrong with replacing a Deployment, ReplicaSet or DaemonSet: their pods are found by the selector.
pub(super) fn validate_selector_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    new.get("selector").check_unchanged(&old.get("selector"), out);
}

/// What is wrong with a ReplicaSet.
pub(super) fn validate_replica_set(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_counts(&spec, &["replicas", "minReadySeconds"], out);
    check_selector(&spec, "deployment", out);
    check_always_template(&spec, "ReplicaSet", out);
}

/// What is wrong with a ReplicationController.
pub(super) fn validate_controller(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_counts(&spec, &["replicas", "minReadySeconds"], out);
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    check_labels(&selector, out);
    if selector.object().is_none_or(Map::is_empty) {
        out.push(selector.required(""));
    }
    let metadata = template.get("metadata");
    let labels = metadata.get("labels");
    let chosen = selector.entries().all(|(key, value)| {
        labels.value().and_then(|labels| labels.get(key)).and_then(Value::as_str) == Some(value.text())
    });
    if !chosen {
        out.push(labels.invalid("`selector` does not match template `labels`"));
    }
    check_template(&template, out);
    check_always(&template, "ReplicationController", out);
}

/// What is wrong with a StatefulSet.
pub(super) fn validate_stateful_set(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_counts(&spec, &["replicas", "minReadySeconds", "revisionHistoryLimit"], out);
    check_selector(&spec, "statefulset", out);
    check_always_template(&spec, "StatefulSet", out);
    spec.get("podManagementPolicy").check_enum(&["OrderedReady", "Parallel"], out);
    let service = spec.get("serviceName");
    if !service.text().is_empty() {
        service.check_text(dns_label, out);
    }
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "RollingUpdate" => rolling.get("partition").check_range(0, COUNT_MAX, out),
        "OnDelete" if rolling.is_set() => {
            out.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        _ => out.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
    let policy = spec.get("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        policy.get(field).check_enum(&["Delete", "Retain"], out);
    }
}

/// What is wrong with replacing a StatefulSet: most of it would change what its pods are called or what they own.
pub(super) fn validate_stateful_set_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    let frozen = ["selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"];
    if frozen.iter().any(|field| !super::field::same(new.get(field).value(), old.get(field).value())) {
        out.push(new.forbidden(
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        ));
    }
}

/// What is wrong with a DaemonSet.
pub(super) fn validate_daemon_set(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    check_counts(&spec, &["minReadySeconds", "revisionHistoryLimit"], out);
    check_selector(&spec, "daemonset", out);
    check_always_template(&spec, "DaemonSet", out);
    let strategy = spec.get("updateStrategy");
    match strategy.get("type").text() {
        "RollingUpdate" => check_rolling(&strategy.get("rollingUpdate"), out),
        "OnDelete" => {}
        _ => out.push(strategy.get("type").not_supported(&["RollingUpdate", "OnDelete"])),
    }
}

fn check_rolling(rolling: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    amounts::check_share(&unavailable, out);
    amounts::check(&surge, out);
    // Nothing could ever be replaced.
    if amounts::is_zero(&unavailable) && amounts::is_zero(&surge) {
        out.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
}

fn check_counts(spec: &Field<'_, '_>, fields: &[&'static str], out: &mut Vec<Cause>) {
    for field in fields {
        spec.get(field).check_range(0, COUNT_MAX, out);
    }
}

fn check_selector(spec: &Field<'_, '_>, kind: &str, out: &mut Vec<Cause>) {
    let selector = spec.get("selector");
    if selector.is_set() {
        check_label_selector(&selector, out);
        let labels = selector.get("matchLabels");
        if labels.object().is_none_or(Map::is_empty) && selector.get("matchExpressions").len() == 0 {
            out.push(selector.invalid(&format!("empty selector is invalid for {kind}")));
            return;
        }
    } else {
        out.push(selector.required(""));
    }
    let template = spec.get("template");
    let metadata = template.get("metadata");
    let labels = metadata.get("labels");
    // What is not there selects nobody.
    if !selector.is_set() || !label_selector::matches(selector.value(), labels.object()) {
        out.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

fn check_always_template(spec: &Field<'_, '_>, kind: &str, out: &mut Vec<Cause>) {
    let template = spec.get("template");
    check_template(&template, out);
    check_always(&template, kind, out);
}

/// Pods that are kept running may not end by themselves.
fn check_always(template: &Field<'_, '_>, kind: &str, out: &mut Vec<Cause>) {
    let spec = template.get("spec");
    spec.get("restartPolicy").check_enum(&["Always"], out);
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.is_set() {
        out.push(deadline.forbidden(&format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// What is wrong with the template of a pod.
pub(super) fn check_template(template: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let metadata = template.get("metadata");
    check_labels(&metadata.get("labels"), out);
    check_annotations(&metadata.get("annotations"), out);
    pod::validate_spec(template, out);
}
