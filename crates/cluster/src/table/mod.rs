//! Tables as `kubectl get` asks for them. Which columns a kind has, and what is in them, is part of what
//! people know of Kubernetes, so both follow it closely.

mod age;
mod cells;
mod columns;
mod custom;
mod pod;
mod replicas;
mod storage;
#[cfg(test)]
mod tests;

use crate::kinds::field::Field;
use crate::registry::Resource;
use columns::Column;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// How much of each object a row carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, as `PartialObjectMetadata`.
    Metadata,
    /// All of it.
    Object,
}

/// The cells of an object, in the order of its kind's columns.
type Cells = fn(&Field<'_, '_>, Timestamp) -> Vec<Value>;

/// What makes rows of one kind: the columns, and the cells of an object in their order.
struct Printer {
    columns: &'static [Column],
    cells: Cells,
}

fn printer(resource: &Resource) -> Printer {
    let (columns, cells): (&[Column], Cells) = match (resource.group, resource.kind) {
        (crate::custom::GROUP, crate::custom::KIND) => (&cells::DEFINITION, cells::definition),
        ("", "Namespace") => (&cells::NAMESPACE, cells::namespace),
        ("", "Node") => (&cells::NODE, cells::node),
        ("", "Pod") => (&pod::POD, pod::cells),
        ("", "Event") => (&cells::EVENT, cells::event),
        ("", "ConfigMap") => (&storage::CONFIG_MAP, storage::config_map),
        ("", "Secret") => (&storage::SECRET, storage::secret),
        ("", "Service") => (&storage::SERVICE, storage::service),
        ("", "PersistentVolume") => (&storage::VOLUME, storage::volume),
        ("", "PersistentVolumeClaim") => (&storage::CLAIM, storage::claim),
        ("", "ReplicationController") => (&replicas::REPLICA_SET, replicas::replica_set),
        ("apps", "Deployment") => (&replicas::DEPLOYMENT, replicas::deployment),
        ("apps", "ReplicaSet") => (&replicas::REPLICA_SET, replicas::replica_set),
        ("apps", "StatefulSet") => (&replicas::STATEFUL_SET, replicas::stateful_set),
        ("apps", "DaemonSet") => (&replicas::DAEMON_SET, replicas::daemon_set),
        ("batch", "Job") => (&replicas::JOB, replicas::job),
        ("batch", "CronJob") => (&replicas::CRON_JOB, replicas::cron_job),
        ("coordination.k8s.io", "Lease") => (&cells::LEASE, cells::lease),
        ("policy", "PodDisruptionBudget") => (&replicas::DISRUPTION_BUDGET, replicas::disruption_budget),
        ("resource.k8s.io", "ResourceClaim") => (&storage::RESOURCE_CLAIM, storage::resource_claim),
        ("resource.k8s.io", "ResourceSlice") => (&storage::RESOURCE_SLICE, storage::resource_slice),
        ("scheduling.k8s.io", "PriorityClass") => (&cells::PRIORITY_CLASS, cells::priority_class),
        ("scheduling.k8s.io", "PodGroup") => (&cells::POD_GROUP, cells::pod_group),
        ("scheduling.k8s.io", "CompositePodGroup") => {
            (&cells::COMPOSITE_POD_GROUP, cells::composite_pod_group)
        }
        ("storage.k8s.io", "StorageClass") => (&storage::STORAGE_CLASS, storage::storage_class),
        ("storage.k8s.io", "CSINode") => (&storage::CSI_NODE, storage::csi_node),
        ("storage.k8s.io", "CSIDriver") => (&storage::CSI_DRIVER, storage::csi_driver),
        ("storage.k8s.io", "CSIStorageCapacity") => (&storage::STORAGE_CAPACITY, storage::storage_capacity),
        ("storage.k8s.io", "VolumeAttachment") => (&storage::ATTACHMENT, storage::attachment),
        _ => (&columns::PLAIN, cells::plain),
    };
    Printer { columns, cells }
}

/// Column headers of a resource, as `columnDefinitions` has them.
pub fn column_definitions(resource: &Resource, version: &str) -> Value {
    if let Some(definition) = resource.custom {
        return custom::column_definitions(definition, version);
    }
    printer(resource).columns.iter().map(Column::to_json).collect()
}

/// One row an object. Objects are in the requested version; `now` is what ages are counted from.
pub fn rows(
    resource: &Resource,
    version: &str,
    objects: &[Arc<Value>],
    include: IncludeObject,
    now: jiff::Timestamp,
) -> Vec<Value> {
    let cells_of = |object: &Value| match resource.custom {
        Some(definition) => custom::cells(definition, version, object, now),
        None => (printer(resource).cells)(&Field::root(object), now),
    };
    objects
        .iter()
        .map(|object| json!({"cells": cells_of(object), "object": carried(object, include)}))
        .collect()
}

fn carried(object: &Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
        }),
    }
}
