//! Rules of particular kinds that the life of an object depends on: who waits for whom when it is deleted,
//! whether it counts generations. Everything else about kinds lives in `kinds`.

use super::metadata;
use crate::custom;
use crate::kinds;
use crate::registry::{Resource, ResourceId};
use serde_json::Value;

/// Namespaces that exist from the start.
pub(super) const BOOTSTRAP_NAMESPACES: [&str; 4] =
    ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Namespaces that a cluster cannot be without.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Grace of a pod that does not say how long it takes to stop.
const POD_GRACE_SECONDS_DEFAULT: i64 = 30;

/// The resource of namespaces.
pub(super) fn namespaces() -> Option<ResourceId> {
    ResourceId::of_kind("", "Namespace")
}

fn is(resource: &Resource, group: &str, kind: &str) -> bool {
    resource.group == group && resource.kind == kind
}

pub(super) fn is_pod(resource: &Resource) -> bool {
    is(resource, "", "Pod")
}

pub(super) fn is_namespace(resource: &Resource) -> bool {
    is(resource, "", "Namespace")
}

/// True if an object may never be deleted.
pub(super) fn is_immortal(resource: &Resource, name: &str) -> bool {
    is_namespace(resource) && IMMORTAL_NAMESPACES.contains(&name)
}

/// Kinds of groups of pods and of what they come from.
const WORKLOAD_KINDS: [&str; 3] = ["Workload", "PodGroup", "CompositePodGroup"];

/// Kinds with a generation. The others have none in Kubernetes either: a lease, for one, would count its renewals.
pub(super) fn has_generation(resource: &Resource) -> bool {
    match resource.group {
        "" => ["Pod", "ReplicationController"].contains(&resource.kind),
        "coordination.k8s.io" | "events.k8s.io" | "storage.k8s.io" => false,
        "resource.k8s.io" => ["DeviceClass", "DeviceTaintRule", "ResourceSlice"].contains(&resource.kind),
        "scheduling.k8s.io" => !WORKLOAD_KINDS.contains(&resource.kind),
        _ => true,
    }
}

/// Kinds whose generation counts changes of the spec. That of a priority class, which has no spec, stays as it is.
pub(super) fn counts_generations(resource: &Resource) -> bool {
    has_generation(resource) && !is(resource, "scheduling.k8s.io", "PriorityClass")
}

/// Kinds whose metadata can be written through `/status`, by habit: kubelets do.
pub(super) fn status_takes_metadata(resource: &Resource) -> bool {
    is_pod(resource) || is(resource, "", "Node")
}

/// Kinds that a PUT without `resourceVersion` may replace.
pub(super) fn allows_unconditional_update(resource: &Resource) -> bool {
    match resource.group {
        _ if resource.custom.is_some() => false,
        "scheduling.k8s.io" if resource.kind == "Workload" => kinds::is_before_1_37(resource),
        "scheduling.k8s.io" => !WORKLOAD_KINDS.contains(&resource.kind),
        "coordination.k8s.io" => resource.kind != "Lease",
        _ => true,
    }
}

/// Kinds that a PUT creates if they do not exist.
pub(super) fn allows_create_on_update(resource: &Resource) -> bool {
    is(resource, "coordination.k8s.io", "Lease") || is(resource, "", "Event")
}

/// Kinds of which all can be deleted with one request. One slip should not cost a whole cluster.
pub(super) fn allows_delete_together(resource: &Resource) -> bool {
    !is_namespace(resource)
}

/// How long a deletion waits for somebody to confirm it by a second one with grace zero. Only bound pods that
/// still run have such a somebody, their kubelet.
pub(super) fn grace_seconds(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if !is_pod(resource) {
        return 0;
    }
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let terminal = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if text("/spec/nodeName").is_empty() || terminal {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    match asked.or(own).unwrap_or(POD_GRACE_SECONDS_DEFAULT) {
        // A negative grace is how old clients ask for the shortest one that still tells the kubelet.
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Kinds whose dependents stay unless the deletion says otherwise. It is older than owner references.
pub(super) fn orphans_by_default(resource: &Resource) -> bool {
    is(resource, "batch", "Job") || is(resource, "", "ReplicationController")
}

/// What one should know who deletes an object without saying what becomes of its dependents.
pub(super) fn deletion_warning(resource: &Resource) -> Option<&'static str> {
    is(resource, "batch", "Job").then_some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
         set propagationPolicy=Orphan to suppress this warning",
    )
}

/// True if something other than finalizers and grace keeps a terminating object: a namespace goes when the
/// janitor finds it empty, the definition of a kind when no object of the kind is left.
pub(super) fn removed_by_janitor(resource: &Resource) -> bool {
    is_namespace(resource) || is(resource, custom::GROUP, custom::KIND)
}

/// True if an object is marked as deleted and nothing holds it any longer.
pub(super) fn is_released(resource: &Resource, object: &Value) -> bool {
    metadata::is_terminating(object)
        && metadata::finalizers(object).next().is_none()
        && metadata::grace_seconds(object) == 0
        && !removed_by_janitor(resource)
}

/// True if the answer to a completed deletion is the object rather than a `Status`.
pub(super) fn returns_deleted_object(resource: &Resource) -> bool {
    is_pod(resource) || matches!(resource.group, "storage.k8s.io" | "resource.k8s.io")
}

/// True if objects are news that are dropped some time after their last change.
pub(super) fn expires(resource: &Resource) -> bool {
    matches!(resource.group, "" | "events.k8s.io") && resource.kind == "Event"
}
