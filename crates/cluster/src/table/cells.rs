//! Columns and cells of the kinds that clusters are made of, and what all cells share.

use super::age;
use super::columns::{AGE, Column, NAME, flag, number, text, wide};
use crate::kinds::field::Field;
use crate::kinds::scale::selector_text;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What stands for nothing.
pub(super) const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

/// The name of the object.
pub(super) fn name<'v>(root: &Field<'_, 'v>) -> &'v str {
    root.get("metadata").get("name").text()
}

/// The age of the object.
pub(super) fn age(root: &Field<'_, '_>, now: Timestamp) -> String {
    age::or_unknown(&root.get("metadata").get("creationTimestamp"), now)
}

/// The text, or a word for its absence.
pub(super) fn text_or<'v>(field: &Field<'_, 'v>, word: &'v str) -> &'v str {
    field.str().filter(|text| !text.is_empty()).unwrap_or(word)
}

/// The number, 0 if there is none.
pub(super) fn number_at(field: &Field<'_, '_>) -> i64 {
    field.int().unwrap_or(0)
}

/// Labels as kubectl prints them.
pub(super) fn labels_text(labels: &Field<'_, '_>) -> Value {
    let pairs: Vec<String> = labels.entries().map(|(key, value)| format!("{key}={}", value.text())).collect();
    json!(if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") })
}

/// A selector as kubectl prints it.
pub(super) fn selector_or_none(selector: &Field<'_, '_>) -> Value {
    let text = selector.value().map(selector_text).unwrap_or_default();
    json!(if text.is_empty() { NONE.to_owned() } else { text })
}

/// The condition of this type, if there is one.
pub(super) fn condition<'v>(root: &Field<'_, 'v>, kind: &str) -> Option<&'v Value> {
    let list = root.value()?.get("status")?.get("conditions")?.as_array()?;
    list.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// True if the condition says `True`.
pub(super) fn holds(condition: Option<&Value>) -> bool {
    condition.and_then(|c| c.get("status")).and_then(Value::as_str) == Some("True")
}

/// Cells of a kind that prints nothing of its own.
pub(super) fn plain(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![json!(name(root)), json!(age(root, now))]
}

pub(super) static NAMESPACE: [Column; 3] = [NAME, text("Status", "Phase of the namespace"), AGE];

pub(super) fn namespace(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![json!(name(root)), json!(root.get("status").get("phase").text()), json!(age(root, now))]
}

pub(super) static NODE: [Column; 10] = [
    NAME,
    text("Status", "Whether the node is ready, and whether new pods are kept away"),
    text("Roles", "Roles that the node's labels name"),
    AGE,
    text("Version", "Version of the kubelet"),
    wide("Internal-IP", "Address inside of the cluster"),
    wide("External-IP", "Address outside of the cluster"),
    wide("OS-Image", "Operating system of the node"),
    wide("Kernel-Version", "Kernel of the node"),
    wide("Container-Runtime", "Container runtime and its version"),
];

pub(super) fn node(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let status = root.get("status");
    let ready = condition(root, "Ready");
    let mut words = vec![match ready {
        None => "Unknown",
        Some(_) if holds(ready) => "Ready",
        Some(_) => "NotReady",
    }];
    if root.get("spec").get("unschedulable").is_true() {
        words.push("SchedulingDisabled");
    }
    let info = status.get("nodeInfo");
    let addresses = status.get("addresses");
    let address = |kind: &str| {
        let found = addresses.items().find(|a| a.get("type").text() == kind);
        found.map_or_else(|| NONE.to_owned(), |a| a.get("address").text().to_owned())
    };
    vec![
        json!(name(root)),
        json!(words.join(",")),
        json!(roles(root)),
        json!(age(root, now)),
        json!(info.get("kubeletVersion").text()),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(text_or(&info.get("osImage"), UNKNOWN)),
        json!(text_or(&info.get("kernelVersion"), UNKNOWN)),
        json!(text_or(&info.get("containerRuntimeVersion"), UNKNOWN)),
    ]
}

fn roles(root: &Field<'_, '_>) -> String {
    let metadata = root.get("metadata");
    let labels = metadata.get("labels");
    let roles: BTreeSet<&str> = labels
        .entries()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => Some(value.text()),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

pub(super) static EVENT: [Column; 10] = [
    text("Last Seen", "Time since it happened last"),
    text("Type", "Normal or Warning"),
    text("Reason", "Why it happened, as one word"),
    text("Object", "What it is about"),
    wide("Subobject", "Part of the object that it is about"),
    wide("Source", "Who says so"),
    text("Message", "What happened"),
    wide("First Seen", "Time since it happened first"),
    wide("Count", "How often it happened"),
    wide("Name", "Name of the event"),
];

pub(super) fn event(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let either = |core, newer| Some(root.get(core)).filter(Field::is_set).unwrap_or_else(|| root.get(newer));
    let series = root.get("series");
    // Newer writers fill `eventTime` and `series`, older ones the two timestamps and a count.
    let first = age::since(&either("firstTimestamp", "deprecatedFirstTimestamp"), now)
        .or_else(|| age::since(&root.get("eventTime"), now))
        .unwrap_or_else(|| UNKNOWN.to_owned());
    let last = age::since(&series.get("lastObservedTime"), now)
        .or_else(|| age::since(&either("lastTimestamp", "deprecatedLastTimestamp"), now))
        .unwrap_or_else(|| first.clone());
    let count =
        series.get("count").int().or_else(|| either("count", "deprecatedCount").int()).unwrap_or(1).max(1);
    let involved = either("involvedObject", "regarding");
    let mut object = involved.get("kind").text().to_lowercase();
    if !involved.get("name").text().is_empty() {
        object.push_str(&format!("/{}", involved.get("name").text()));
    }
    vec![
        json!(last),
        json!(root.get("type").text()),
        json!(root.get("reason").text()),
        json!(object),
        json!(involved.get("fieldPath").text()),
        json!(event_source(&either("source", "deprecatedSource"), root)),
        json!(either("message", "note").text().trim()),
        json!(first),
        json!(count),
        json!(name(root)),
    ]
}

fn event_source(source: &Field<'_, '_>, root: &Field<'_, '_>) -> String {
    let first = |fields: &[Field<'_, '_>]| {
        fields.iter().map(Field::text).find(|text| !text.is_empty()).unwrap_or_default().to_owned()
    };
    let component =
        first(&[source.get("component"), root.get("reportingComponent"), root.get("reportingController")]);
    let host = first(&[source.get("host"), root.get("reportingInstance")]);
    if host.is_empty() { component } else { format!("{component}, {host}") }
}

pub(super) static DEFINITION: [Column; 2] = [NAME, text("Created At", "When the definition was made")];

pub(super) fn definition(root: &Field<'_, '_>, _: Timestamp) -> Vec<Value> {
    vec![json!(name(root)), json!(root.get("metadata").get("creationTimestamp").text())]
}

pub(super) static LEASE: [Column; 3] = [NAME, text("Holder", "Who holds the lease"), AGE];

pub(super) fn lease(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let holder = root.get("spec").get("holderIdentity").text();
    vec![json!(name(root)), json!(holder), json!(age(root, now))]
}

pub(super) static PRIORITY_CLASS: [Column; 5] = [
    NAME,
    number("Value", "Priority of pods of this class"),
    flag("Global-Default", "Whether pods without a class get this one"),
    AGE,
    text("PreemptionPolicy", "Whether pods of this class may take the place of lower ones"),
];

pub(super) fn priority_class(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(root)),
        json!(root.get("value").int().unwrap_or(0)),
        json!(root.get("globalDefault").is_true()),
        json!(age(root, now)),
        json!(root.get("preemptionPolicy").text()),
    ]
}

pub(super) static POD_GROUP: [Column; 5] = [
    NAME,
    text("Policy", "Gang or Basic"),
    text("Workload", "Workload that the group was made from"),
    text("Status", "What became of the group"),
    AGE,
];

/// Reads both versions, since rows are made from objects as the client asked for them.
pub(super) fn pod_group(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let scheduled =
        condition(root, "PodGroupInitiallyScheduled").or_else(|| condition(root, "PodGroupScheduled"));
    let disrupted = condition(root, "DisruptionTarget").and_then(|c| c.get("reason")).and_then(Value::as_str);
    let status = match (disrupted, scheduled) {
        (Some(reason), _) => reason,
        (None, None) => "Pending",
        (None, Some(_)) if holds(scheduled) => "Scheduled",
        (None, Some(_)) => "Unschedulable",
    };
    vec![
        json!(name(root)),
        json!(group_policy(root)),
        json!(group_workload(root)),
        json!(status),
        json!(age(root, now)),
    ]
}

pub(super) static COMPOSITE_POD_GROUP: [Column; 4] =
    [NAME, text("Policy", "Gang or Basic"), text("Workload", "Workload that the group was made from"), AGE];

pub(super) fn composite_pod_group(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![json!(name(root)), json!(group_policy(root)), json!(group_workload(root)), json!(age(root, now))]
}

fn group_policy(root: &Field<'_, '_>) -> &'static str {
    let gang = root.get("spec").get("schedulingPolicy").get("gang").is_set();
    if gang { "Gang" } else { "Basic" }
}

fn group_workload<'v>(root: &Field<'_, 'v>) -> &'v str {
    let spec = root.get("spec");
    let new_name = spec.get("workloadRef").get("workloadName").str();
    let old_name = spec.get("podGroupTemplateRef").get("workload").get("workloadName").str();
    new_name.or(old_name).unwrap_or(NONE)
}
