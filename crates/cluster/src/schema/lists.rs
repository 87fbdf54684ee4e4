//! How lists are merged. The types do not say it in their schemas, so it is said here, once, for the OpenAPI
//! documents and for strategic merge patch alike. Lists that are not named here are replaced as a whole.

use super::ListMerge;

/// How one list is merged.
pub(super) struct ListRule {
    owner: &'static str,
    field: &'static str,
    /// What strategic merge patch does.
    pub(super) patch: ListMerge,
    /// A patch that names some fields of an entry's union clears the others.
    pub(super) retain_keys: bool,
    /// What identifies an entry for server-side apply; empty for sets and for lists that it replaces.
    pub(super) map_keys: &'static [&'static str],
    /// Server-side apply merges the list as a set of plain values.
    pub(super) is_set: bool,
}

/// Merged by the same single key everywhere.
const fn keyed(
    owner: &'static str,
    field: &'static str,
    keys: &'static [&'static str],
    key: &'static str,
) -> ListRule {
    ListRule { owner, field, patch: ListMerge::ByKey(key), retain_keys: false, map_keys: keys, is_set: false }
}

/// As `keyed`, for entries that are unions.
const fn union(owner: &'static str, field: &'static str) -> ListRule {
    ListRule {
        owner,
        field,
        patch: ListMerge::ByKey("name"),
        retain_keys: true,
        map_keys: &["name"],
        is_set: false,
    }
}

/// Plain values.
const fn set(owner: &'static str, field: &'static str) -> ListRule {
    ListRule { owner, field, patch: ListMerge::Set, retain_keys: false, map_keys: &[], is_set: true }
}

/// Known to server-side apply only; a strategic merge patch replaces the list.
const fn applied(owner: &'static str, field: &'static str, keys: &'static [&'static str]) -> ListRule {
    ListRule { owner, field, patch: ListMerge::Atomic, retain_keys: false, map_keys: keys, is_set: false }
}

/// A set for server-side apply only.
const fn applied_set(owner: &'static str, field: &'static str) -> ListRule {
    ListRule { is_set: true, ..applied(owner, field, &[]) }
}

const NAME: &[&str] = &["name"];
const TYPE: &[&str] = &["type"];
const IP: &[&str] = &["ip"];
const PORT: &[&str] = &["containerPort", "protocol"];
const MOUNT: &[&str] = &["mountPath"];
const DEVICE: &[&str] = &["devicePath"];

static RULES: &[ListRule] = &[
    set("ObjectMeta", "finalizers"),
    keyed("ObjectMeta", "ownerReferences", &["uid"], "uid"),
    keyed("PodSpec", "containers", NAME, "name"),
    keyed("PodSpec", "initContainers", NAME, "name"),
    keyed("PodSpec", "ephemeralContainers", NAME, "name"),
    keyed("PodSpec", "evictionResponders", NAME, "name"),
    keyed("PodSpec", "imagePullSecrets", NAME, "name"),
    keyed("PodSpec", "schedulingGates", NAME, "name"),
    keyed("PodSpec", "hostAliases", IP, "ip"),
    keyed("PodSpec", "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"], "topologyKey"),
    union("PodSpec", "resourceClaims"),
    union("PodSpec", "volumes"),
    keyed("Container", "env", NAME, "name"),
    keyed("Container", "ports", PORT, "containerPort"),
    keyed("Container", "volumeDevices", DEVICE, "devicePath"),
    keyed("Container", "volumeMounts", MOUNT, "mountPath"),
    keyed("EphemeralContainer", "env", NAME, "name"),
    keyed("EphemeralContainer", "ports", PORT, "containerPort"),
    keyed("EphemeralContainer", "volumeDevices", DEVICE, "devicePath"),
    keyed("EphemeralContainer", "volumeMounts", MOUNT, "mountPath"),
    applied("ResourceRequirements", "claims", NAME),
    keyed("PodStatus", "conditions", TYPE, "type"),
    keyed("PodStatus", "podIPs", IP, "ip"),
    keyed("PodStatus", "hostIPs", &[], "ip"),
    union("PodStatus", "resourceClaimStatuses"),
    applied("PodStatus", "nodeAllocatableResourceClaimStatuses", &["resourceClaimName"]),
    applied("PodStatus", "volumeHealth", NAME),
    keyed("ContainerStatus", "allocatedResourcesStatus", NAME, "name"),
    keyed("ContainerStatus", "volumeMounts", MOUNT, "mountPath"),
    set("NodeSpec", "podCIDRs"),
    keyed("NodeStatus", "addresses", TYPE, "type"),
    keyed("NodeStatus", "conditions", TYPE, "type"),
    keyed("NamespaceStatus", "conditions", TYPE, "type"),
    keyed("PodGroupStatus", "conditions", TYPE, "type"),
    keyed("CompositePodGroupStatus", "conditions", TYPE, "type"),
    union("PodGroupStatus", "resourceClaimStatuses"),
    union("PodGroupSpec", "resourceClaims"),
    union("PodGroupTemplate", "resourceClaims"),
    applied("WorkloadSpec", "podGroupTemplates", NAME),
    applied("WorkloadSpec", "podGroups", NAME),
    applied("WorkloadSpec", "compositePodGroupTemplates", NAME),
    applied("CompositePodGroupTemplate", "podGroupTemplates", NAME),
    applied("CompositePodGroupTemplate", "compositePodGroupTemplates", NAME),
    applied("AllocatedDeviceStatus", "conditions", TYPE),
    applied_set("CSIDriverSpec", "volumeLifecycleModes"),
    keyed("CSINodeSpec", "drivers", NAME, "name"),
    keyed("CSINodeStatus", "storageHealth", NAME, "name"),
    applied_set("ContainerRestartRuleOnExitCodes", "values"),
    applied("CustomResourceDefinitionStatus", "conditions", TYPE),
    keyed("DaemonSetStatus", "conditions", TYPE, "type"),
    keyed("DeploymentStatus", "conditions", TYPE, "type"),
    applied_set("DeviceRequestAllocationResult", "skipNodeOperations"),
    keyed("JobSchedulingConfiguration", "resourceClaims", NAME, "name"),
    keyed("JobStatus", "conditions", &[], "type"),
    applied_set("NodeAllocatableResourceClaimStatus", "containers"),
    keyed("NodeAllocatableResourceClaimStatus", "mapping", NAME, "name"),
    keyed("NodeAllocatableResourceClaimStatus", "overhead", NAME, "name"),
    applied_set("NodePodPreemptionPolicy", "disableResizePreemption"),
    keyed("PersistentVolumeClaimStatus", "conditions", TYPE, "type"),
    keyed("PodDisruptionBudgetStatus", "conditions", TYPE, "type"),
    applied_set("PodFailurePolicyOnExitCodesRequirement", "values"),
    keyed("PodVolumeHealth", "healthConditions", &["status", "reason"], "status"),
    keyed("ReplicaSetStatus", "conditions", TYPE, "type"),
    keyed("ReplicationControllerStatus", "conditions", TYPE, "type"),
    applied("ResourceClaimStatus", "devices", &["driver", "device", "pool", "shareID"]),
    keyed("ResourceClaimStatus", "reservedFor", &["uid"], "uid"),
    applied_set("ResourceSliceSpec", "skipNodeOperations"),
    applied("ResourceStatus", "resources", &["resourceID"]),
    keyed("ServiceAccount", "secrets", NAME, "name"),
    keyed("ServiceSpec", "ports", &["port", "protocol"], "port"),
    keyed("ServiceStatus", "conditions", TYPE, "type"),
    keyed("StatefulSetStatus", "conditions", TYPE, "type"),
    applied_set("UncountedTerminatedPods", "failed"),
    applied_set("UncountedTerminatedPods", "succeeded"),
    keyed("VolumeHealthStatus", "healthConditions", &["status", "reason"], "status"),
    applied_set("VolumeMount", "bindMountOptions"),
];

/// Maps that server-side apply replaces as a whole: type and field.
static ATOMIC_MAPS: [(&str, &str); 3] =
    [("PodSpec", "nodeSelector"), ("ReplicationControllerSpec", "selector"), ("ServiceSpec", "selector")];

/// Objects that server-side apply replaces as a whole, since half of a selector or reference means nothing.
static ATOMIC_OBJECTS: [&str; 16] = [
    "ConfigMapKeySelector",
    "EvictionResponder",
    "FieldsV1",
    "FileKeySelector",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectReference",
    "OwnerReference",
    "ResourceFieldSelector",
    "SecretKeySelector",
    "SecretReference",
    "TopologySelectorTerm",
    "TypedLocalObjectReference",
];

/// The rule of a list, if it is not simply replaced. `component` is the full name of the type that has the
/// field; versions of one type agree, so only its last part counts.
pub(super) fn rule(component: &str, field: &str) -> Option<&'static ListRule> {
    let owner = short(component);
    RULES.iter().find(|rule| rule.owner == owner && rule.field == field)
}

/// True if server-side apply replaces objects of this type as a whole.
pub(super) fn is_atomic_object(component: &str) -> bool {
    ATOMIC_OBJECTS.contains(&short(component))
}

/// True if server-side apply replaces this map as a whole.
pub(super) fn is_atomic_map(component: &str, field: &str) -> bool {
    ATOMIC_MAPS.contains(&(short(component), field))
}

/// Every rule's type and field, for tests.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.iter().map(|rule| (rule.owner, rule.field))
}

fn short(component: &str) -> &str {
    component.rsplit('.').next().unwrap_or_default()
}
