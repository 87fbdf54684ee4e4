//! Bodies of the requests that a scheduler sends. They name single fields, never whole objects: an object that
//! was read through a view would lose what the view left out.

use crate::condition::Condition;
use crate::storage::{BOUND_BY_CONTROLLER, SELECTED_NODE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time as ApiTime};
use kube::api::ApiResource;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use tutti_model::{ObjectKey, Text, Time};

/// Longest message of an event that Kubernetes takes, in bytes.
const EVENT_MESSAGE_MAX: usize = 1024;
/// Longest name of whoever reports an event, in bytes.
const EVENT_INSTANCE_MAX: usize = 128;
/// Longest message of a condition that Kubernetes takes, in bytes.
const CONDITION_MESSAGE_MAX: usize = 32_768;
/// Reason of an event that says that something got its place. The bindings are what was done then.
pub const SCHEDULED: &str = "Scheduled";
/// Longest part of an object's name that goes into the name of an event; the whole may have 253.
const EVENT_NAME_STEM_MAX: usize = 200;

/// Puts a pod on a node. The uid makes sure that it is this pod and not a later one of its name.
pub fn binding<'a>(pod: &'a ObjectKey, uid: &'a str, node: &'a str) -> impl Serialize + use<'a> {
    let metadata = BindingMetadata { name: &pod.name, namespace: &pod.namespace, uid };
    let target = BindingTarget { api_version: "v1", kind: "Node", name: node };
    Binding { api_version: "v1", kind: "Binding", metadata, target }
}

// These are sent by the thousand: nothing of them is copied before it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: BindingMetadata<'a>,
    target: BindingTarget<'a>,
}

#[derive(Serialize)]
struct BindingMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BindingTarget<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
}

/// Strategic merge patch of `status` that sets one condition and keeps the others, if a version is given only if the group
/// is still at it: a group that was scheduled meanwhile must not be called anything else.
pub fn group_condition_patch(uid: &str, version: Option<&str>, condition: &Condition) -> Value {
    json!({
        "metadata": precondition(uid, version),
        "status": {"conditions": [{
            "type": &*condition.kind,
            "status": condition.status.as_str(),
            "reason": &*condition.reason,
            "message": truncated(&condition.message, CONDITION_MESSAGE_MAX),
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": timestamp(condition.changed.unwrap_or_default()).to_string(),
        }]},
    })
}

/// As [`group_condition_patch`], for server-side apply: custom resources know no strategic merge.
pub fn group_condition_apply(
    resource: &ApiResource,
    name: &str,
    uid: &str,
    version: Option<&str>,
    condition: &Condition,
) -> Value {
    let mut body = group_condition_patch(uid, version, condition);
    body["apiVersion"] = json!(resource.api_version);
    body["kind"] = json!(resource.kind);
    body["metadata"]["name"] = json!(name);
    body
}

/// Strategic merge patch of `status` that sets one condition of a pod, if a version is given only if the pod is
/// still at it: a pod that was bound meanwhile must not be called unschedulable.
pub fn pod_condition_patch(uid: &str, version: Option<&str>, condition: &Condition) -> Value {
    json!({
        "metadata": precondition(uid, version),
        "status": {"conditions": [{
            "type": &*condition.kind,
            "status": condition.status.as_str(),
            "reason": &*condition.reason,
            "message": truncated(&condition.message, CONDITION_MESSAGE_MAX),
            "lastTransitionTime": timestamp(condition.changed.unwrap_or_default()).to_string(),
        }]},
    })
}

/// Merge patch that sets annotations, or removes those without a value, if the object is still the same, and if a
/// version is given only if it is still at it.
pub fn annotations_patch(uid: &str, version: Option<&str>, annotations: &[(Text, Option<Text>)]) -> Value {
    let annotations: serde_json::Map<String, Value> =
        annotations.iter().map(|(key, value)| (key.to_string(), json!(value.as_deref()))).collect();
    let mut metadata = precondition(uid, version);
    metadata["annotations"] = Value::Object(annotations);
    json!({"metadata": metadata})
}

/// What must still be true of an object that is patched.
fn precondition(uid: &str, version: Option<&str>) -> Value {
    match version {
        Some(version) => json!({"uid": uid, "resourceVersion": version}),
        None => json!({"uid": uid}),
    }
}

/// Merge patch that asks for a volume where this node reaches it, or asks no longer.
pub fn selected_node_patch(uid: &str, node: Option<&str>) -> Value {
    annotations_patch(uid, None, &[(SELECTED_NODE.into(), node.map(Text::from))])
}

/// Merge patch that keeps a volume for a claim, only if the volume is still at this version: nobody else may have taken
/// it meanwhile.
pub fn kept_volume_patch(version: &str, claim: &ObjectKey, uid: &str) -> Value {
    json!({
        "metadata": {"resourceVersion": version, "annotations": {BOUND_BY_CONTROLLER: "yes"}},
        "spec": {"claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": &*claim.namespace,
            "name": &*claim.name,
            "uid": uid,
        }},
    })
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regarding {
    /// API version, as in `v1`.
    pub api_version: Cow<'static, str>,
    /// Kind.
    pub kind: Cow<'static, str>,
    /// Name; the namespace is empty for nodes.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Text,
}

/// Whether an event is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Somebody may want to look.
    Warning,
}

/// An event to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// What it is about.
    pub regarding: Regarding,
    /// Who reports it, if not the writer itself.
    pub reporter: Option<Text>,
    /// Good or bad.
    pub severity: Severity,
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: Text,
    /// When it happened first.
    pub first: Time,
    /// When it happened last.
    pub last: Time,
    /// How often.
    pub count: i32,
    /// A number that no other event of this process has.
    pub serial: u64,
}

/// The event as an object. Without a reporter of its own it is reported by the one given.
pub fn event(note: &EventNote, reporter: &str, instance: &str) -> Event {
    let reporter = note.reporter.as_deref().unwrap_or(reporter);
    let Regarding { api_version, kind, key, uid } = &note.regarding;
    // Events of objects without a namespace live in `default`, where people look for them.
    let namespace = if key.namespace.is_empty() { "default" } else { &key.namespace };
    let stem = truncated(&key.name, EVENT_NAME_STEM_MAX).trim_end_matches(['.', '-']);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{stem}.{:x}{:04x}", note.last.0.max(0), note.serial)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(api_version.to_string()),
            kind: Some(kind.to_string()),
            name: Some(key.name.to_string()),
            namespace: (!key.namespace.is_empty()).then(|| key.namespace.to_string()),
            uid: Some(uid.to_string()),
            ..ObjectReference::default()
        },
        type_: Some(
            match note.severity {
                Severity::Normal => "Normal",
                Severity::Warning => "Warning",
            }
            .to_owned(),
        ),
        reason: Some(note.reason.to_string()),
        message: Some(truncated(&note.message, EVENT_MESSAGE_MAX).to_owned()),
        first_timestamp: Some(ApiTime(timestamp(note.first))),
        last_timestamp: Some(ApiTime(timestamp(note.last))),
        event_time: Some(MicroTime(timestamp(note.first))),
        count: Some(note.count),
        action: Some(if note.reason == SCHEDULED { "Binding" } else { "Scheduling" }.to_owned()),
        source: Some(EventSource { component: Some(reporter.to_owned()), host: None }),
        reporting_component: Some(reporter.to_owned()),
        reporting_instance: Some(truncated(instance, EVENT_INSTANCE_MAX).to_owned()),
        ..Event::default()
    }
}

pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_second(time.0.div_euclid(1000)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The text, cut between characters if it is too long.
fn truncated(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::ConditionStatus;

    fn condition() -> Condition {
        Condition {
            kind: "PodGroupScheduled".into(),
            status: ConditionStatus::False,
            reason: "Unschedulable".into(),
            message: "6 of 8 members fit".into(),
            observed_generation: 2,
            changed: Some(Time(1_767_225_600_123)),
        }
    }

    #[test]
    fn a_binding_names_pod_identity_and_node() {
        let binding = serde_json::to_value(binding(&ObjectKey::new("a", "p"), "u", "n")).unwrap();
        assert_eq!((&binding["apiVersion"], &binding["kind"]), (&json!("v1"), &json!("Binding")));
        assert_eq!(binding["metadata"], json!({"name": "p", "namespace": "a", "uid": "u"}));
        assert_eq!(binding["target"], json!({"apiVersion": "v1", "kind": "Node", "name": "n"}));
    }

    #[test]
    fn a_patch_names_one_condition_and_guards_identity() {
        let group = group_condition_patch("u", None, &condition());
        assert_eq!(group["metadata"], json!({"uid": "u"}));
        let group_at = group_condition_patch("u", Some("9"), &condition());
        assert_eq!(group_at["metadata"], json!({"uid": "u", "resourceVersion": "9"}));
        assert_eq!(
            group["status"]["conditions"],
            json!([{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "6 of 8 members fit", "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        );
        let pod = pod_condition_patch("u", Some("9"), &condition());
        assert_eq!(pod["metadata"], json!({"uid": "u", "resourceVersion": "9"}));
        assert_eq!(pod_condition_patch("u", None, &condition())["metadata"], json!({"uid": "u"}));
        let selected = selected_node_patch("u", None);
        let name = "volume.kubernetes.io/selected-node";
        assert_eq!(selected, json!({"metadata": {"uid": "u", "annotations": {name: null}}}));
        let kept = kept_volume_patch("9", &ObjectKey::new("a", "c"), "u");
        assert_eq!(kept["metadata"]["resourceVersion"], json!("9"));
        assert_eq!(kept["spec"]["claimRef"]["uid"], json!("u"));
        let marks = [("a/b".into(), Some("c".into())), ("a/d".into(), None)];
        let annotations = json!({"a/b": "c", "a/d": null});
        assert_eq!(
            annotations_patch("u", None, &marks),
            json!({"metadata": {"uid": "u", "annotations": annotations}})
        );
        assert_eq!(
            annotations_patch("u", Some("9"), &marks),
            json!({"metadata": {"uid": "u", "resourceVersion": "9", "annotations": annotations}})
        );
    }

    fn note(kind: &'static str, key: ObjectKey, reason: &'static str, message: &str) -> EventNote {
        EventNote {
            reporter: None,
            regarding: Regarding { api_version: "v1".into(), kind: kind.into(), key, uid: "u".into() },
            severity: Severity::Warning,
            reason,
            message: message.into(),
            first: Time(1000),
            last: Time(2000),
            count: 3,
            serial: 1,
        }
    }

    #[test]
    fn an_event_fits_the_limits_of_the_api() {
        let note = note("Node", ObjectKey::new("", "n".repeat(253)), "Invalid", &"é".repeat(2000));
        let event = event(&note, "tutti", &"i".repeat(200));
        assert_eq!(event.reporting_instance.map(|instance| instance.len()), Some(128));
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert!(event.metadata.name.unwrap().len() <= 253);
        assert_eq!(event.message.unwrap().len(), 1024);
        assert_eq!((event.count, event.type_.as_deref()), (Some(3), Some("Warning")));
    }

    #[test]
    fn an_event_names_what_was_being_done_as_users_know_it() {
        for (reason, action) in [("Scheduled", "Binding"), ("FailedScheduling", "Scheduling")] {
            let note = note("Pod", ObjectKey::new("a", "p"), reason, "m");
            assert_eq!(event(&note, "tutti", "tutti-0").action.as_deref(), Some(action));
        }
    }
}
