//! The one table of everything the API server serves. Routes, discovery, OpenAPI documents and tables are
//! all generated from it; no kind has a handler of its own.

/// A resource as users address it: `pods`, `podgroups.scheduling.k8s.io`.
#[derive(Debug)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Served versions, most preferred first.
    pub versions: &'static [&'static str],
    /// The version in which objects are stored; every other version is converted to and from it.
    pub hub: &'static str,
    /// Kind, as in manifests.
    pub kind: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Singular name, as kubectl accepts it.
    pub singular: &'static str,
    /// Short names, as kubectl accepts them.
    pub short_names: &'static [&'static str],
    /// Categories such as `all`.
    pub categories: &'static [&'static str],
    /// True if objects live in a namespace.
    pub namespaced: bool,
    /// What the status subresource means for this resource.
    pub status: StatusRule,
    /// Further subresources.
    pub subresources: &'static [Subresource],
}

/// How a resource treats `.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusRule {
    /// There is no status and no `/status` endpoint.
    None,
    /// Status is written only through `/status`; it is dropped on create and kept from the stored object on
    /// writes through the main endpoint.
    Separate,
    /// As `Separate`, but a create keeps the status that it brings (Node).
    KeptOnCreate,
}

/// A subresource other than `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `POST pods/NAME/binding`
    Binding,
    /// `POST pods/NAME/eviction`
    Eviction,
    /// `GET pods/NAME/log`
    Log,
}

/// Everything that is served, in the order of discovery.
pub static RESOURCES: &[Resource] = &[
    Resource {
        group: "",
        versions: &["v1"],
        hub: "v1",
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short_names: &["ns"],
        categories: &[],
        namespaced: false,
        status: StatusRule::Separate,
        subresources: &[],
    },
    Resource {
        group: "",
        versions: &["v1"],
        hub: "v1",
        kind: "Node",
        plural: "nodes",
        singular: "node",
        short_names: &["no"],
        categories: &[],
        namespaced: false,
        status: StatusRule::KeptOnCreate,
        subresources: &[],
    },
    Resource {
        group: "",
        versions: &["v1"],
        hub: "v1",
        kind: "Pod",
        plural: "pods",
        singular: "pod",
        short_names: &["po"],
        categories: &["all"],
        namespaced: true,
        status: StatusRule::Separate,
        subresources: &[Subresource::Binding, Subresource::Eviction, Subresource::Log],
    },
    Resource {
        group: "",
        versions: &["v1"],
        hub: "v1",
        kind: "Event",
        plural: "events",
        singular: "event",
        short_names: &["ev"],
        categories: &[],
        namespaced: true,
        status: StatusRule::None,
        subresources: &[],
    },
    Resource {
        group: "coordination.k8s.io",
        versions: &["v1"],
        hub: "v1",
        kind: "Lease",
        plural: "leases",
        singular: "lease",
        short_names: &[],
        categories: &[],
        namespaced: true,
        status: StatusRule::None,
        subresources: &[],
    },
    Resource {
        group: "scheduling.k8s.io",
        versions: &["v1"],
        hub: "v1",
        kind: "PriorityClass",
        plural: "priorityclasses",
        singular: "priorityclass",
        short_names: &["pc"],
        categories: &[],
        namespaced: false,
        status: StatusRule::None,
        subresources: &[],
    },
    Resource {
        group: "scheduling.k8s.io",
        versions: &["v1beta1", "v1alpha2"],
        hub: "v1beta1",
        kind: "Workload",
        plural: "workloads",
        singular: "workload",
        short_names: &[],
        categories: &[],
        namespaced: true,
        status: StatusRule::None,
        subresources: &[],
    },
    Resource {
        group: "scheduling.k8s.io",
        versions: &["v1beta1", "v1alpha2"],
        hub: "v1beta1",
        kind: "PodGroup",
        plural: "podgroups",
        singular: "podgroup",
        short_names: &[],
        categories: &[],
        namespaced: true,
        status: StatusRule::Separate,
        subresources: &[],
    },
];

/// Position of a resource in [`RESOURCES`]: a cheap, ordered, copyable key for tables and indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(usize);

impl ResourceId {
    /// All of them, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..RESOURCES.len()).map(Self)
    }

    /// The resource that is served under this group, version and plural name.
    pub fn find(group: &str, version: &str, plural: &str) -> Option<Self> {
        Self::all().find(|id| {
            let r = id.resource();
            r.group == group && r.plural == plural && r.versions.contains(&version)
        })
    }

    /// The resource of a kind as owner references name it; any served version of the group will do.
    pub fn of_kind(group: &str, kind: &str) -> Option<Self> {
        Self::all().find(|id| id.resource().group == group && id.resource().kind == kind)
    }

    /// The entry of the table.
    pub fn resource(self) -> &'static Resource {
        // Only this type makes ids, and only from positions of the table.
        &RESOURCES[self.0]
    }

    /// The position itself, for tables that have one entry a resource.
    pub fn index(self) -> usize {
        self.0
    }
}

/// The resource with this group and plural name, if it is served in this version.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.group == group && r.plural == plural && r.versions.contains(&version))
}

/// `v1` or `group/v1`, as `apiVersion` spells it.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hub_is_served() {
        for r in RESOURCES {
            assert!(r.versions.contains(&r.hub), "{} stores {} but does not serve it", r.kind, r.hub);
        }
    }

    #[test]
    fn a_resource_is_found_only_in_its_versions() {
        assert_eq!(find("scheduling.k8s.io", "v1alpha2", "podgroups").map(|r| r.kind), Some("PodGroup"));
        assert!(find("scheduling.k8s.io", "v1", "podgroups").is_none());
        assert!(find("", "v1", "podgroups").is_none());
    }
}
