//! Columns and cells of the kinds that run pods.

use super::cells::{NONE, age, condition, holds, labels_text, name, number_at, selector_or_none, text_or};
use super::columns::{AGE, Column, NAME, flag, number, text, wide};
use crate::kinds::field::Field;
use crate::kinds::scale::selector_text;
use jiff::Timestamp;
use serde_json::{Value, json};

const CONTAINERS: Column = wide("Containers", "Names of the containers in the template");
const IMAGES: Column = wide("Images", "Images of the containers in the template");
const SELECTOR: Column = wide("Selector", "What selects the pods");
const DESIRED: Column = number("Desired", "Pods that there should be");
const CURRENT: Column = number("Current", "Pods that there are");
const READY: Column = number("Ready", "Pods that are ready");

pub(super) static DEPLOYMENT: [Column; 8] = [
    NAME,
    text("Ready", "Ready pods, of those that there should be"),
    text("Up-to-date", "Pods of the newest template"),
    text("Available", "Pods that have been ready for long enough"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn deployment(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let template = spec.get("template");
    vec![
        json!(name(root)),
        ready_of(root),
        json!(number_at(&status.get("updatedReplicas"))),
        json!(number_at(&status.get("availableReplicas"))),
        json!(age(root, now)),
        containers(&template, "name"),
        containers(&template, "image"),
        json!(spec.get("selector").value().map(selector_text).unwrap_or_default()),
    ]
}

pub(super) static REPLICA_SET: [Column; 8] =
    [NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR];

/// ReplicaSet, and ReplicationController before it.
pub(super) fn replica_set(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let template = spec.get("template");
    vec![
        json!(name(root)),
        json!(number_at(&spec.get("replicas"))),
        json!(number_at(&status.get("replicas"))),
        json!(number_at(&status.get("readyReplicas"))),
        json!(age(root, now)),
        containers(&template, "name"),
        containers(&template, "image"),
        selector_or_none(&spec.get("selector")),
    ]
}

pub(super) static STATEFUL_SET: [Column; 5] =
    [NAME, text("Ready", "Ready pods, of those that there should be"), AGE, CONTAINERS, IMAGES];

pub(super) fn stateful_set(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    let template = spec.get("template");
    vec![
        json!(name(root)),
        ready_of(root),
        json!(age(root, now)),
        containers(&template, "name"),
        containers(&template, "image"),
    ]
}

pub(super) static DAEMON_SET: [Column; 11] = [
    NAME,
    DESIRED,
    CURRENT,
    READY,
    number("Up-to-date", "Pods of the newest template"),
    number("Available", "Pods that have been ready for long enough"),
    text("Node Selector", "Labels of the nodes that get a pod"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn daemon_set(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let template = spec.get("template");
    let pod = template.get("spec");
    vec![
        json!(name(root)),
        json!(number_at(&status.get("desiredNumberScheduled"))),
        json!(number_at(&status.get("currentNumberScheduled"))),
        json!(number_at(&status.get("numberReady"))),
        json!(number_at(&status.get("updatedNumberScheduled"))),
        json!(number_at(&status.get("numberAvailable"))),
        labels_text(&pod.get("nodeSelector")),
        json!(age(root, now)),
        containers(&template, "name"),
        containers(&template, "image"),
        selector_or_none(&spec.get("selector")),
    ]
}

pub(super) static JOB: [Column; 8] = [
    NAME,
    text("Status", "What has become of the job"),
    text("Completions", "Pods that succeeded, of those that have to"),
    text("Duration", "Time from the start to the end, or until now"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn job(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    let template = spec.get("template");
    vec![
        json!(name(root)),
        json!(job_status(root)),
        json!(job_completions(root)),
        json!(job_duration(root, now)),
        json!(age(root, now)),
        containers(&template, "name"),
        containers(&template, "image"),
        selector_or_none(&spec.get("selector")),
    ]
}

fn job_status(root: &Field<'_, '_>) -> &'static str {
    let is = |kind: &str| holds(condition(root, kind));
    let ends = [("Complete", "Complete"), ("Failed", "Failed")];
    let states = [
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    if let Some((_, word)) = ends.into_iter().find(|(kind, _)| is(kind)) {
        return word;
    }
    if root.get("metadata").get("deletionTimestamp").is_set() {
        return "Terminating";
    }
    states.into_iter().find(|(kind, _)| is(kind)).map_or("Running", |(_, word)| word)
}

fn job_completions(root: &Field<'_, '_>) -> String {
    let spec = root.get("spec");
    let succeeded = number_at(&root.get("status").get("succeeded"));
    match (spec.get("completions").int(), spec.get("parallelism").int()) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        // A work queue is done when one pod says so.
        (None, Some(pods)) if pods > 1 => format!("{succeeded}/1 of {pods}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(root: &Field<'_, '_>, now: Timestamp) -> String {
    let status = root.get("status");
    let end = status.get("completionTime").str().and_then(|time| time.parse().ok()).unwrap_or(now);
    super::age::since(&status.get("startTime"), end).unwrap_or_default()
}

pub(super) static CRON_JOB: [Column; 10] = [
    NAME,
    text("Schedule", "When jobs are made, as cron says it"),
    text("Timezone", "Time zone of the schedule"),
    flag("Suspend", "Whether no more jobs are made"),
    number("Active", "Jobs that run now"),
    text("Last Schedule", "Time since a job was last made"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn cron_job(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (root.get("spec"), root.get("status"));
    let job = spec.get("jobTemplate");
    let job = job.get("spec");
    let template = job.get("template");
    let suspended = if spec.get("suspend").is_true() { "True" } else { "False" };
    vec![
        json!(name(root)),
        json!(spec.get("schedule").text()),
        json!(text_or(&spec.get("timeZone"), NONE)),
        json!(suspended),
        json!(status.get("active").len()),
        json!(super::age::since(&status.get("lastScheduleTime"), now).unwrap_or_else(|| NONE.to_owned())),
        json!(age(root, now)),
        containers(&template, "name"),
        containers(&template, "image"),
        selector_or_none(&job.get("selector")),
    ]
}

pub(super) static DISRUPTION_BUDGET: [Column; 5] = [
    NAME,
    text("Min Available", "Pods that must stay"),
    text("Max Unavailable", "Pods that may be missing"),
    number("Allowed Disruptions", "Pods that may be evicted now"),
    AGE,
];

pub(super) fn disruption_budget(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    let amount = |field: &Field<'_, '_>| match field.value() {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "N/A".to_owned(),
    };
    vec![
        json!(name(root)),
        json!(amount(&spec.get("minAvailable"))),
        json!(amount(&spec.get("maxUnavailable"))),
        json!(number_at(&root.get("status").get("disruptionsAllowed"))),
        json!(age(root, now)),
    ]
}

fn ready_of(root: &Field<'_, '_>) -> Value {
    let ready = number_at(&root.get("status").get("readyReplicas"));
    json!(format!("{ready}/{}", number_at(&root.get("spec").get("replicas"))))
}

/// Names or images of the containers in a template.
fn containers(template: &Field<'_, '_>, field: &'static str) -> Value {
    let spec = template.get("spec");
    let list = spec.get("containers");
    let texts: Vec<&str> = list.items().filter_map(|c| c.value()?.get(field)?.as_str()).collect();
    json!(texts.join(","))
}
