//! What simulated kubelets read of nodes and pods. Anything else in an object, also what a newer Kubernetes
//! may add, is passed over.

use super::{EXIT_CODE, FAILED, RUN_SECONDS};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tutti_model::requests::{ContainerRequests, PodResources};
use tutti_model::{Quantity, Resource, ResourceList};

/// An object that is no pod or node at all; nothing can be done for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Which pod: a name alone could mean another one tomorrow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Where a pod is in its life, as its status tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not started, or the status has no phase that is known.
    Pending,
    /// Running.
    Running,
    /// Succeeded or Failed: it takes no room and never runs again.
    Ended,
}

/// When containers that ended are started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Always.
    Always,
    /// If they failed.
    OnFailure,
    /// Never.
    Never,
}

/// A node, as a kubelet sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its kubelet is to be silent: [`FAILED`].
    pub failed: bool,
    /// `metadata.resourceVersion`
    pub version: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `status.capacity`, unread.
    pub capacity: Map<String, Value>,
    /// `status.allocatable`, unread.
    pub allocatable: Map<String, Value>,
    /// `status.conditions`, unread, so that those of others can be kept as they are.
    pub conditions: Vec<Value>,
    /// `status.addresses`, unread.
    pub addresses: Vec<Value>,
    /// `status.nodeInfo.kubeletVersion`
    pub kubelet_version: Option<String>,
}

/// A pod, as a kubelet sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PodView {
    /// Which pod.
    pub pod: PodRef,
    /// `metadata.resourceVersion`
    pub version: String,
    /// `metadata.creationTimestamp`; orders pods that were bound while nobody looked.
    pub created: Option<Timestamp>,
    /// `spec.nodeName`
    pub node: Option<String>,
    /// Where it is in its life.
    pub phase: Phase,
    /// Set while it is being deleted: its grace period in seconds.
    pub deletion_grace_seconds: Option<u64>,
    /// What it takes from its node, or why that cannot be read.
    pub requests: Result<ResourceList, String>,
    /// Name and image of its containers.
    pub containers: Vec<Container>,
    /// Name and image of its init containers.
    pub init_containers: Vec<Container>,
    /// It shares the address of its node.
    pub host_network: bool,
    /// `status.conditions`, unread.
    pub conditions: Vec<Value>,
    /// `status.startTime`, unread.
    pub start_time: Option<String>,
    /// When the first of its containers was started.
    pub running_since: Option<Timestamp>,
    /// When its containers ended, if they wait to be started again.
    pub crashed_at: Option<Timestamp>,
    /// How often its containers were started again.
    pub restarts: u32,
    /// `spec.restartPolicy`
    pub restart_policy: RestartPolicy,
    /// `status.podIP`
    pub address: Option<Ipv4Addr>,
    /// [`RUN_SECONDS`]
    pub run_seconds: Option<u32>,
    /// [`EXIT_CODE`]
    pub exit_code: u8,
    /// What is wrong with the annotations, for people.
    pub complaints: Vec<String>,
}

/// A container, as far as its status repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// An init container that keeps running beside the others.
    pub restartable: bool,
}

impl NodeView {
    /// Reads a node.
    pub fn read(object: &DynamicObject) -> Result<Self, Malformed> {
        let status = object.data.get("status").unwrap_or(&Value::Null);
        Ok(Self {
            name: required(object.metadata.name.as_deref(), "metadata.name")?,
            uid: object.metadata.uid.clone().unwrap_or_default(),
            failed: object
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(FAILED))
                .is_some_and(|v| v == "true"),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            labels: object.metadata.labels.clone().unwrap_or_default(),
            capacity: map(status, "capacity"),
            allocatable: map(status, "allocatable"),
            conditions: list(status, "conditions").to_vec(),
            addresses: list(status, "addresses").to_vec(),
            kubelet_version: status
                .pointer("/nodeInfo/kubeletVersion")
                .and_then(Value::as_str)
                .map(str::to_owned),
        })
    }

    /// The address of a type, such as `InternalIP`.
    pub fn address(&self, kind: &str) -> Option<&str> {
        self.addresses.iter().find(|a| text(a, "type") == Some(kind)).and_then(|a| text(a, "address"))
    }
}

impl PodView {
    /// Reads a pod. Only a pod without a name or uid is malformed; everything else that is wrong with it is
    /// part of the view.
    pub fn read(object: &DynamicObject) -> Result<Self, Malformed> {
        let spec = object.data.get("spec").unwrap_or(&Value::Null);
        let status = object.data.get("status").unwrap_or(&Value::Null);
        let metadata = &object.metadata;
        let mut complaints = Vec::new();
        let mut annotation = |key: &str, range: &str, ok: &dyn Fn(&str) -> bool| -> Option<String> {
            let value = metadata.annotations.as_ref()?.get(key)?;
            if ok(value) {
                return Some(value.clone());
            }
            let shown: String = value.chars().take(40).collect();
            complaints
                .push(format!("annotation {key} is ignored: {shown:?} is not a whole number from {range}"));
            None
        };
        let run_seconds = annotation(RUN_SECONDS, "0 to 4294967295", &|v| v.parse::<u32>().is_ok());
        let exit_code = annotation(EXIT_CODE, "0 to 255", &|v| v.parse::<u8>().is_ok());

        Ok(Self {
            pod: PodRef {
                namespace: required(metadata.namespace.as_deref(), "metadata.namespace")?,
                name: required(metadata.name.as_deref(), "metadata.name")?,
                uid: required(metadata.uid.as_deref(), "metadata.uid")?,
            },
            version: metadata.resource_version.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            node: text(spec, "nodeName").filter(|name| !name.is_empty()).map(str::to_owned),
            phase: match text(status, "phase") {
                Some("Running") => Phase::Running,
                Some("Succeeded" | "Failed") => Phase::Ended,
                _ => Phase::Pending,
            },
            deletion_grace_seconds: metadata.deletion_timestamp.as_ref().map(|_| {
                metadata.deletion_grace_period_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0)
            }),
            requests: requests(spec),
            containers: containers(spec, "containers"),
            init_containers: containers(spec, "initContainers"),
            host_network: spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false),
            conditions: list(status, "conditions").to_vec(),
            start_time: text(status, "startTime").map(str::to_owned),
            running_since: running_since(status),
            crashed_at: crashed_at(status),
            restarts: restarts(status),
            restart_policy: match text(spec, "restartPolicy") {
                Some("Always") => RestartPolicy::Always,
                Some("OnFailure") => RestartPolicy::OnFailure,
                _ => RestartPolicy::Never,
            },
            address: text(status, "podIP").and_then(|address| address.parse().ok()),
            run_seconds: run_seconds.and_then(|v| v.parse().ok()),
            exit_code: exit_code.and_then(|v| v.parse().ok()).unwrap_or(0),
            complaints,
        })
    }
}

fn running_since(status: &Value) -> Option<Timestamp> {
    list(status, "containerStatuses")
        .iter()
        .filter_map(|container| container.pointer("/state/running/startedAt")?.as_str()?.parse().ok())
        .min()
}

fn crashed_at(status: &Value) -> Option<Timestamp> {
    list(status, "containerStatuses")
        .iter()
        .filter(|container| container.pointer("/state/waiting").is_some())
        .filter_map(|container| container.pointer("/lastState/terminated/finishedAt")?.as_str()?.parse().ok())
        .max()
}

fn restarts(status: &Value) -> u32 {
    let counts = list(status, "containerStatuses").iter().filter_map(|c| c.get("restartCount")?.as_u64());
    counts.max().map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
}

fn containers(spec: &Value, field: &str) -> Vec<Container> {
    list(spec, field)
        .iter()
        .map(|container| Container {
            name: text(container, "name").unwrap_or_default().to_owned(),
            image: text(container, "image").unwrap_or_default().to_owned(),
            restartable: text(container, "restartPolicy") == Some("Always"),
        })
        .collect()
}

fn requests(spec: &Value) -> Result<ResourceList, String> {
    let of = |field: &str| -> Result<Vec<ContainerRequests>, String> {
        list(spec, field)
            .iter()
            .map(|container| {
                Ok(ContainerRequests {
                    requests: container_requests(container)?,
                    allocated: ResourceList::new(),
                    restartable: text(container, "restartPolicy") == Some("Always"),
                })
            })
            .collect()
    };
    let resources = PodResources {
        containers: of("containers")?,
        init_containers: of("initContainers")?,
        pod_level: container_requests(spec)?,
        overhead: amounts(&map(spec, "overhead"))?,
    };
    Ok(resources.total())
}

/// `resources.requests`, completed by limits: a limit without a request is a request. The API server does
/// that too, but a pod may have come in another way.
fn container_requests(holder: &Value) -> Result<ResourceList, String> {
    let resources = holder.get("resources").unwrap_or(&Value::Null);
    let mut both = map(resources, "limits");
    both.extend(map(resources, "requests"));
    amounts(&both)
}

/// Reads a map of quantities.
pub(super) fn amounts(quantities: &Map<String, Value>) -> Result<ResourceList, String> {
    quantities
        .iter()
        .map(|(name, value)| {
            let resource = Resource::new(name);
            // YAML users write `cpu: 4`; the API server accepts a number for a quantity.
            let written = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let amount = written
                .parse::<Quantity>()
                .and_then(|quantity| resource.checked_amount_of(quantity))
                .map_err(|error| format!("{name}: {error}"))?;
            Ok((resource, amount))
        })
        .collect()
}

fn required(value: Option<&str>, field: &str) -> Result<String, Malformed> {
    match value {
        Some(value) if !value.is_empty() => Ok(value.to_owned()),
        _ => Err(Malformed(format!("{field} is missing"))),
    }
}

/// The text in a field of an object, if it is one.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn map(object: &Value, field: &str) -> Map<String, Value> {
    object.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
}
