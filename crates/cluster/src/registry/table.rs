//! The rows of the registry, written as compactly as they can be read.

use super::{Access, Release, Resource, StatusRule, Subresource, VersionsByRelease};

const CORE: &str = "";
const API_EXTENSIONS: &str = "apiextensions.k8s.io";
const APPS: &str = "apps";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const BATCH: &str = "batch";
const COORDINATION: &str = "coordination.k8s.io";
const POLICY: &str = "policy";
const RESOURCE: &str = "resource.k8s.io";
const SCHEDULING: &str = "scheduling.k8s.io";
const STORAGE: &str = "storage.k8s.io";

static WORKLOADS: VersionsByRelease =
    VersionsByRelease { v1_35: &["v1alpha1"], v1_36: &["v1alpha2"], v1_37: &["v1beta1", "v1alpha3"] };
static POD_GROUPS: VersionsByRelease =
    VersionsByRelease { v1_35: &[], v1_36: &["v1alpha2"], v1_37: &["v1beta1", "v1alpha3"] };
static COMPOSITES: VersionsByRelease = VersionsByRelease { v1_35: &[], v1_36: &[], v1_37: &["v1alpha3"] };

/// Everything that is served, in the order of discovery.
pub static RESOURCES: &[Resource] = &[
    cluster(CORE, "Namespace", "namespaces", "namespace").short(&["ns"]).status(),
    cluster(CORE, "Node", "nodes", "node").short(&["no"]).status_kept_on_create(),
    namespaced(CORE, "Pod", "pods", "pod").short(&["po"]).in_all().status().subresources(&[
        Subresource::Binding,
        Subresource::Eviction,
        Subresource::Log,
        Subresource::Resize,
    ]),
    namespaced(CORE, "Event", "events", "event").short(&["ev"]).versions(&["v1", "events.k8s.io/v1"]),
    namespaced(CORE, "ConfigMap", "configmaps", "configmap").short(&["cm"]),
    namespaced(CORE, "Secret", "secrets", "secret"),
    namespaced(CORE, "Service", "services", "service").short(&["svc"]).in_all().status(),
    namespaced(CORE, "ServiceAccount", "serviceaccounts", "serviceaccount").short(&["sa"]),
    cluster(CORE, "PersistentVolume", "persistentvolumes", "persistentvolume").short(&["pv"]).status(),
    namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim")
        .short(&["pvc"])
        .status(),
    namespaced(CORE, "ReplicationController", "replicationcontrollers", "replicationcontroller")
        .short(&["rc"])
        .in_all()
        .scaled(),
    cluster(
        API_EXTENSIONS,
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
    )
    .short(&["crd", "crds"])
    .in_category(&["api-extensions"])
    .status(),
    namespaced(APPS, "Deployment", "deployments", "deployment").short(&["deploy"]).in_all().scaled(),
    namespaced(APPS, "ReplicaSet", "replicasets", "replicaset").short(&["rs"]).in_all().scaled(),
    namespaced(APPS, "StatefulSet", "statefulsets", "statefulset").short(&["sts"]).in_all().scaled(),
    namespaced(APPS, "DaemonSet", "daemonsets", "daemonset").short(&["ds"]).in_all().status(),
    cluster(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview").asked(),
    cluster(AUTHENTICATION, "TokenReview", "tokenreviews", "tokenreview").asked(),
    namespaced(
        AUTHORIZATION,
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
    )
    .asked(),
    cluster(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview")
        .asked(),
    cluster(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview")
        .asked(),
    cluster(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview").asked(),
    namespaced(BATCH, "Job", "jobs", "job").in_all().status(),
    namespaced(BATCH, "CronJob", "cronjobs", "cronjob").short(&["cj"]).in_all().status(),
    namespaced(COORDINATION, "Lease", "leases", "lease"),
    namespaced(POLICY, "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget")
        .short(&["pdb"])
        .status(),
    namespaced(RESOURCE, "ResourceClaim", "resourceclaims", "resourceclaim").status(),
    namespaced(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate"),
    cluster(RESOURCE, "DeviceClass", "deviceclasses", "deviceclass"),
    cluster(RESOURCE, "ResourceSlice", "resourceslices", "resourceslice"),
    cluster(RESOURCE, "DeviceTaintRule", "devicetaintrules", "devicetaintrule").status(),
    cluster(SCHEDULING, "PriorityClass", "priorityclasses", "priorityclass").short(&["pc"]),
    namespaced(SCHEDULING, "Workload", "workloads", "workload")
        .versions(&["v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"])
        .in_releases(&WORKLOADS),
    namespaced(SCHEDULING, "PodGroup", "podgroups", "podgroup")
        .versions(&["v1beta1", "v1alpha3", "v1alpha2"])
        .in_releases(&POD_GROUPS)
        .status(),
    namespaced(SCHEDULING, "CompositePodGroup", "compositepodgroups", "compositepodgroup")
        .versions(&["v1alpha3"])
        .in_releases(&COMPOSITES)
        .status(),
    cluster(STORAGE, "StorageClass", "storageclasses", "storageclass").short(&["sc"]),
    cluster(STORAGE, "CSINode", "csinodes", "csinode"),
    cluster(STORAGE, "CSIDriver", "csidrivers", "csidriver"),
    namespaced(STORAGE, "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity"),
    cluster(STORAGE, "VolumeAttachment", "volumeattachments", "volumeattachment").status(),
];

/// A cluster-wide resource, served as `v1`, without status.
const fn cluster(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Resource {
    Resource {
        group,
        versions: &["v1"],
        hub: "v1",
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: false,
        status: StatusRule::None,
        subresources: &[],
        access: Access::Stored,
        release: Release::All,
        by_release: None,
        custom: None,
    }
}

/// As `cluster`, with objects in namespaces.
const fn namespaced(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Resource {
    Resource { namespaced: true, ..cluster(group, kind, plural, singular) }
}

impl Resource {
    /// Other versions than `v1`; the first one is the hub.
    const fn versions(self, versions: &'static [&'static str]) -> Self {
        let hub = match versions {
            [first, ..] => first,
            [] => self.hub,
        };
        Self { versions, hub, ..self }
    }

    /// Not every release serves all versions.
    const fn in_releases(self, versions: &'static VersionsByRelease) -> Self {
        Self { by_release: Some(versions), ..self }
    }

    /// A question: answered, not stored.
    const fn asked(self) -> Self {
        Self { access: Access::Asked, ..self }
    }

    const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn in_category(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    /// Shown by `kubectl get all`.
    const fn in_all(self) -> Self {
        self.in_category(&["all"])
    }

    const fn status(self) -> Self {
        Self { status: StatusRule::Separate, ..self }
    }

    const fn status_kept_on_create(self) -> Self {
        Self { status: StatusRule::KeptOnCreate, ..self }
    }

    const fn subresources(self, subresources: &'static [Subresource]) -> Self {
        Self { subresources, ..self }
    }

    /// With a status, and with a number of replicas that can be read and written on its own.
    const fn scaled(self) -> Self {
        Self { subresources: &[Subresource::Scale], ..self.status() }
    }
}
