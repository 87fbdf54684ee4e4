//! Who writes, and what becomes of the managed fields of an object.

use super::WriteOptions;
use super::path::{Sub, Target};
use super::query::Query;
use crate::error::{ApiError, Cause, CauseReason};
use crate::ownership::{self, FieldSet, Managed, Operation, Versions as _, Writer};
use crate::registry::{Resource, StatusRule, api_version};
use crate::schema::KindVersions;
use crate::store::Object;
use http::HeaderMap;
use http::header::USER_AGENT;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The name under which the server itself writes.
pub(super) const SYSTEM: &str = "kube-apiserver";

/// A writer that does not say who it is.
const UNKNOWN: &str = "unknown";

/// Longest name of a manager.
const MANAGER_BYTES_MAX: usize = 128;

/// What a write says of managed fields.
#[derive(Debug)]
pub(super) enum Ownership {
    /// Whoever changes a field manages it; `base` is what the object itself said in a request, if it said
    /// anything.
    Tracked {
        /// Replaces what is stored.
        base: Option<Managed>,
    },
    /// An apply has decided it.
    Decided(Managed),
}

/// The name of the writer: what it calls itself, or else what its program is called.
pub(super) fn manager(kind: &str, query: &Query, headers: &HeaderMap) -> Result<String, ApiError> {
    if let Some(name) = query.get("fieldManager") {
        check_name(kind, name)?;
        return Ok(name.to_owned());
    }
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default();
    let mut end = program.len().min(MANAGER_BYTES_MAX);
    while !program.is_char_boundary(end) {
        end -= 1;
    }
    let program = program.get(..end).unwrap_or_default();
    Ok(if program.is_empty() { UNKNOWN } else { program }.to_owned())
}

fn check_name(kind: &str, name: &str) -> Result<(), ApiError> {
    let cause = |reason, message: String| Cause { reason, field: "fieldManager".to_owned(), message };
    let mut causes = Vec::new();
    if name.len() > MANAGER_BYTES_MAX {
        let message = format!("Too long: may not be more than {MANAGER_BYTES_MAX} bytes");
        causes.push(cause(CauseReason::TooLong, message));
    }
    if let Some((at, c)) = name.char_indices().find(|(_, c)| c.is_control()) {
        let message =
            format!("Invalid value: {name:?}: invalid character U+{:04X} (at position {at})", u32::from(c));
        causes.push(cause(CauseReason::Invalid, message));
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid_options(kind, causes)) }
}

/// The writer of a request.
pub(super) fn writer(target: &Target, manager: &str, operation: Operation) -> Writer {
    Writer {
        manager: manager.into(),
        operation,
        api_version: api_version(target.id.resource().group, target.version).into(),
        subresource: match target.sub {
            Some(Sub::Status) => "status",
            Some(Sub::Scale) => "scale",
            Some(Sub::Resize) => "resize",
            _ => "",
        }
        .into(),
    }
}

/// Fields that the cluster sets if the creator of an object does not; nobody manages those. Asked before defaults
/// are set.
pub(super) fn left_to_cluster(resource: &Resource, object: &Value) -> FieldSet {
    let tolerations = object.pointer("/spec/tolerations").is_some_and(|value| !value.is_null());
    if resource.group.is_empty() && resource.kind == "Pod" && !tolerations {
        return FieldSet::of_fields(&[&["spec", "tolerations"]]);
    }
    FieldSet::default()
}

/// Who manages the fields of a new object, which is in hub form and has its defaults.
pub(super) fn created(
    target: &Target,
    object: &Value,
    left_to_cluster: &FieldSet,
    options: WriteOptions<'_>,
    now: Timestamp,
) -> Managed {
    let resource = target.id.resource();
    let writer = writer(target, options.manager, Operation::Update);
    let versions = KindVersions::of(resource);
    let Some(of) = versions.type_of(&writer.api_version) else {
        return Managed::default();
    };
    let hub = api_version(resource.group, resource.hub);
    let converted = (*writer.api_version != *hub)
        .then(|| versions.convert(object, &hub, &writer.api_version).unwrap_or_default());
    let object = converted.as_ref().unwrap_or(object);
    let empty = empty_object(resource);
    let but_status = scope(target);
    // A status that is not taken from the creator is none of its business.
    let keeps_status = resource.status == StatusRule::KeptOnCreate;
    let scope = |set: FieldSet| {
        let set = set.outside(left_to_cluster);
        if keeps_status { set } else { but_status(set) }
    };
    ownership::created(of, &empty, object, writer, &scope, now.as_second())
}

/// Who manages what after a change of a stored object; both states are in hub form.
pub(super) fn updated(
    target: &Target,
    stored: &Object,
    old: &Value,
    new: &Value,
    ownership: Ownership,
    options: WriteOptions<'_>,
    now: Timestamp,
) -> Managed {
    let base = match ownership {
        Ownership::Decided(managed) => return managed,
        // Through a subresource nobody can say who manages what.
        Ownership::Tracked { base: Some(base) } if target.sub.is_none() => base,
        Ownership::Tracked { .. } => stored.managed().clone(),
    };
    let resource = target.id.resource();
    let writer = writer(target, options.manager, Operation::Update);
    let versions = KindVersions::of(resource);
    let hub = api_version(resource.group, resource.hub);
    let now = now.as_second();
    if *writer.api_version == *hub {
        return ownership::updated(&versions, old, new, &base, &writer, now);
    }
    let convert = |object| versions.convert(object, &hub, &writer.api_version).unwrap_or_default();
    ownership::updated(&versions, &convert(old), &convert(new), &base, &writer, now)
}

/// Takes what an object says about its managed fields out of it.
pub(super) fn take_supplied(object: &mut Value) -> Option<Managed> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
    let supplied = metadata.remove("managedFields")?;
    let list = supplied.as_array()?;
    // An empty list, or one with an empty entry, takes the fields away from everybody.
    let is_reset = match list.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    if is_reset {
        return Some(Managed::default());
    }
    // What cannot be understood is not said.
    Managed::from_json(&supplied).filter(|managed| !managed.is_empty())
}

/// Which fields an apply through this endpoint writes.
pub(super) fn scope(target: &Target) -> impl Fn(FieldSet) -> FieldSet + use<> {
    let through_status = target.sub == Some(Sub::Status);
    let has_status = target.id.resource().status != StatusRule::None;
    let status = FieldSet::of_fields(&[&["status"]]);
    move |set| match (through_status, has_status) {
        (true, _) => set.difference(&set.outside(&status)),
        (false, true) => set.outside(&status),
        (false, false) => set,
    }
}

/// An object without content, as Kubernetes has it: parts that are never missing are there already, so nobody
/// manages them as such.
pub(super) fn empty_object(resource: &Resource) -> Value {
    let template = || json!({"metadata": {}, "spec": {"containers": null}});
    match resource.kind {
        "Pod" => json!({"metadata": {}, "spec": {"containers": null}, "status": {}}),
        "Deployment" => json!({
            "metadata": {}, "spec": {"selector": null, "strategy": {}, "template": template()}, "status": {},
        }),
        "ReplicaSet" => json!({"metadata": {}, "spec": {"selector": null}, "status": {"replicas": 0}}),
        "StatefulSet" | "DaemonSet" => json!({
            "metadata": {}, "spec": {"selector": null, "template": template(), "updateStrategy": {}}, "status": {},
        }),
        "Job" => json!({"metadata": {}, "spec": {"template": template()}, "status": {}}),
        "CronJob" => json!({
            "metadata": {}, "spec": {"jobTemplate": {"metadata": {}, "spec": {"template": template()}}}, "status": {},
        }),
        "PersistentVolumeClaim" => json!({"metadata": {}, "spec": {"resources": {}}, "status": {}}),
        "Service" => json!({"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        "Event" => json!({
            "metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "reportingComponent": "", "reportingInstance": "", "eventTime": null,
        }),
        "PodGroup" | "CompositePodGroup" => {
            json!({"metadata": {}, "spec": {"schedulingPolicy": {}}, "status": {}})
        }
        "Workload" => json!({"metadata": {}, "spec": {"podGroupTemplates": null}}),
        "PriorityClass" => json!({"metadata": {}, "value": 0}),
        _ => json!({"metadata": {}, "spec": {}, "status": {}}),
    }
}
