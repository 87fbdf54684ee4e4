//! Defaults of Job and CronJob, and what a new job gets.

use super::defaults::{child, each, existing, first_status, set};
use super::pod_defaults;
use serde_json::{Map, Value, json};

/// Failed pods after which a job gives up.
const BACKOFF_LIMIT: i32 = 6;

/// Defaults of a Job.
pub(super) fn job_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({}));
    let Some(spec) = child(object, "spec") else { return };
    pod_defaults::template(spec);
    let is_set = |spec: &Map<String, Value>, field: &str| spec.get(field).is_some_and(|v| !v.is_null());
    // A job that asks for neither runs one pod once; one that only says how many at a time is a work queue.
    if !is_set(spec, "completions") && !is_set(spec, "parallelism") {
        set(spec, "completions", json!(1));
    }
    set(spec, "parallelism", json!(1));
    let limit = if is_set(spec, "backoffLimitPerIndex") { i32::MAX } else { BACKOFF_LIMIT };
    set(spec, "backoffLimit", json!(limit));
    set(spec, "completionMode", json!("NonIndexed"));
    set(spec, "suspend", json!(false));
    set(spec, "manualSelector", json!(false));
    let replaces = if is_set(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", json!(replaces));
    if let Some(policy) = existing(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for pattern in each(rule, "onPodConditions") {
                set(pattern, "status", json!("True"));
            }
        }
    }
    let labels = spec.get("template").and_then(|t| t.pointer("/metadata/labels")).cloned();
    if let (Some(labels @ Value::Object(_)), Some(metadata)) = (labels, child(object, "metadata")) {
        set(metadata, "labels", labels);
    }
}

/// Defaults of a CronJob.
pub(super) fn cron_job_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({}));
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    if let Some(job) = existing(spec, "jobTemplate").and_then(|template| existing(template, "spec")) {
        pod_defaults::template(job);
    }
}

/// Labels that tie pods to their job: the first two are how newer, the others how older clients find them.
pub(super) const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// Gives a new job the selector and labels that are its own: two jobs must never count each other's pods.
pub(super) fn prepare_new(object: &mut Map<String, Value>) {
    let metadata = object.get("metadata");
    let text = |field: &str| {
        metadata.and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (uid, name) = (text("uid"), text("name"));
    let Some(spec) = existing(object, "spec") else { return };
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let labels = child(spec, "template").and_then(|t| child(t, "metadata")).and_then(|m| child(m, "labels"));
    if let Some(labels) = labels {
        for (keys, value) in [(UID_LABELS, &uid), (NAME_LABELS, &name)] {
            for key in keys {
                set(labels, key, json!(value));
            }
        }
    }
    let [uid_label, _] = UID_LABELS;
    if let Some(selector) = child(spec, "selector")
        && let Some(wanted) = child(selector, "matchLabels")
    {
        set(wanted, uid_label, json!(uid));
    }
}
