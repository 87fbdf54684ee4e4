//! Cells of a row, in the order of the columns.

use super::{age, pod};
use crate::kinds::field::Field;
use crate::registry::Resource;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

/// The cells of one object.
pub(super) fn of(resource: &Resource, root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    match resource.kind {
        "Namespace" => namespace(root, now),
        "Node" => node(root, now),
        "Pod" => pod::cells(root, now),
        "Event" => event(root, now),
        "Lease" => lease(root, now),
        "PriorityClass" => priority_class(root, now),
        "PodGroup" => pod_group(root, now),
        _ => vec![json!(name(root)), json!(age(root, now))],
    }
}

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

/// The condition of this type, if there is one.
pub(super) fn condition<'v>(root: &Field<'_, 'v>, kind: &str) -> Option<&'v Value> {
    let list = root.value()?.get("status")?.get("conditions")?.as_array()?;
    list.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// True if the condition says `True`.
pub(super) fn holds(condition: Option<&Value>) -> bool {
    condition.and_then(|c| c.get("status")).and_then(Value::as_str) == Some("True")
}

fn namespace(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![json!(name(root)), json!(root.get("status").get("phase").text()), json!(age(root, now))]
}

fn node(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
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

fn event(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let series = root.get("series");
    // Newer writers fill `eventTime` and `series`, older ones the two timestamps and a count.
    let first = age::since(&root.get("firstTimestamp"), now)
        .or_else(|| age::since(&root.get("eventTime"), now))
        .unwrap_or_else(|| UNKNOWN.to_owned());
    let last = age::since(&series.get("lastObservedTime"), now)
        .or_else(|| age::since(&root.get("lastTimestamp"), now))
        .unwrap_or_else(|| first.clone());
    let count = series.get("count").int().or_else(|| root.get("count").int()).unwrap_or(1).max(1);
    let involved = root.get("involvedObject");
    let object = format!("{}/{}", involved.get("kind").text().to_lowercase(), involved.get("name").text());
    vec![
        json!(last),
        json!(root.get("type").text()),
        json!(root.get("reason").text()),
        json!(object),
        json!(involved.get("fieldPath").text()),
        json!(event_source(root)),
        json!(root.get("message").text().trim()),
        json!(first),
        json!(count),
        json!(name(root)),
    ]
}

fn event_source(root: &Field<'_, '_>) -> String {
    let source = root.get("source");
    let (component, host) = if source.get("component").text().is_empty() {
        (root.get("reportingComponent").text(), root.get("reportingInstance").text())
    } else {
        (source.get("component").text(), source.get("host").text())
    };
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}

fn lease(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let holder = root.get("spec").get("holderIdentity").text();
    vec![json!(name(root)), json!(holder), json!(age(root, now))]
}

fn priority_class(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(root)),
        json!(root.get("value").int().unwrap_or(0)),
        json!(root.get("globalDefault").is_true()),
        json!(age(root, now)),
        json!(root.get("preemptionPolicy").text()),
    ]
}

/// Reads both versions, since rows are made from objects as the client asked for them.
fn pod_group(root: &Field<'_, '_>, now: Timestamp) -> Vec<Value> {
    let spec = root.get("spec");
    let policy = if spec.get("schedulingPolicy").get("gang").is_set() { "Gang" } else { "Basic" };
    let new_name = spec.get("workloadRef").get("workloadName").str();
    let old_name = spec.get("podGroupTemplateRef").get("workload").get("workloadName").str();
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
        json!(policy),
        json!(new_name.or(old_name).unwrap_or(NONE)),
        json!(status),
        json!(age(root, now)),
    ]
}
