//! The one table of everything the API server serves. Routes, discovery, OpenAPI documents and tables are
//! all generated from it; no kind has a handler of its own.

mod catalog;
mod release;
mod table;

pub use catalog::Catalog;
pub(crate) use catalog::{CustomState, built_in};
pub(crate) use release::PerRelease;
pub use release::{Release, UnknownRelease};
pub use table::RESOURCES;

use crate::custom::Definition;

/// A resource as users address it: `pods`, `podgroups.scheduling.k8s.io`.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Served versions, most preferred first. One that names its group too, as in `events.k8s.io/v1`, serves
    /// the same objects in another group.
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
    /// What can be done with objects.
    pub access: Access,
    /// The release of Kubernetes that the resource is served like.
    pub release: Release,
    /// What the definition of a custom kind says; nothing for built-in ones.
    pub(crate) custom: Option<&'static Definition>,
    /// Versions that only one release serves, where there are such.
    pub(crate) by_release: Option<&'static VersionsByRelease>,
}

/// What can be done with objects of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They are stored: all verbs.
    Stored,
    /// They are questions: a create is answered, and nothing stays.
    Asked,
}

/// Versions that came and went.
#[derive(Debug)]
pub(crate) struct VersionsByRelease {
    v1_35: &'static [&'static str],
    v1_36: &'static [&'static str],
    v1_37: &'static [&'static str],
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
    /// `GET`, `PUT` and `PATCH` of `deployments/NAME/scale`
    Scale,
    /// `GET`, `PUT` and `PATCH` of `pods/NAME/resize`
    Resize,
}

impl Resource {
    /// Every group and version under which the resource is served, with the version as the table spells it.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let group = self.group;
        self.versions.iter().map(move |spelled| match spelled.split_once('/') {
            Some((group, version)) => Place { group, version, spelled },
            None => Place { group, version: spelled, spelled },
        })
    }

    /// The versions that a release serves.
    fn versions_in(&self, release: Release) -> &'static [&'static str] {
        match (self.by_release, release) {
            (None, _) | (_, Release::All) => self.versions,
            (Some(by), Release::V1_35) => by.v1_35,
            (Some(by), Release::V1_36) => by.v1_36,
            (Some(by), Release::V1_37) => by.v1_37,
        }
    }

    /// The version under this group and version as the table spells it, if it is served.
    pub fn served_as(&self, group: &str, version: &str) -> Option<&'static str> {
        self.places().find(|p| p.group == group && p.version == version).map(|p| p.spelled)
    }
}

/// Where a resource is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version, as in paths.
    pub version: &'static str,
    /// The version as the table spells it, which may name the group too.
    pub spelled: &'static str,
}

/// A resource and its position among all that a server serves: a cheap, ordered, copyable key for tables and
/// indices. Two ids are the same if their positions are; what is served under it may change meanwhile.
#[derive(Clone, Copy)]
pub struct ResourceId {
    index: usize,
    resource: &'static Resource,
}

impl ResourceId {
    /// All built-in ones, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        table::RESOURCES.iter().enumerate().map(|(index, resource)| Self { index, resource })
    }

    /// The built-in resource that is served under this group, version and plural name.
    pub fn find(group: &str, version: &str, plural: &str) -> Option<Self> {
        Self::all().find(|id| id.resource.plural == plural && id.resource.served_as(group, version).is_some())
    }

    /// The built-in resource of a kind.
    pub fn of_kind(group: &str, kind: &str) -> Option<Self> {
        Self::all()
            .find(|id| id.resource.kind == kind && id.resource.places().any(|place| place.group == group))
    }

    /// What is served.
    pub fn resource(self) -> &'static Resource {
        self.resource
    }

    /// The position itself, for tables that have one entry a resource.
    pub fn index(self) -> usize {
        self.index
    }
}

impl std::fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResourceId({}, {})", self.index, self.resource.plural)
    }
}

impl PartialEq for ResourceId {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl Eq for ResourceId {}

impl PartialOrd for ResourceId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.index.cmp(&other.index)
    }
}

impl std::hash::Hash for ResourceId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

/// The resource with this group and plural name, if it is served in this version.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.plural == plural && r.served_as(group, version).is_some())
}

/// `v1` or `group/v1`, as `apiVersion` spells it. A version that names its group already stays as it is.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() || version.contains('/') { version.to_owned() } else { format!("{group}/{version}") }
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

    #[test]
    fn events_are_one_resource_in_two_groups() {
        let old = ResourceId::find("", "v1", "events").unwrap();
        assert_eq!(ResourceId::find("events.k8s.io", "v1", "events"), Some(old));
        assert_eq!(ResourceId::of_kind("events.k8s.io", "Event"), Some(old));
        let spelled = old.resource().served_as("events.k8s.io", "v1").unwrap();
        assert_eq!(api_version(old.resource().group, spelled), "events.k8s.io/v1");
        assert!(ResourceId::find("events.k8s.io", "v1", "pods").is_none());
    }

    #[test]
    fn kinds_are_unique_and_so_are_names_within_a_group() {
        let mut kinds = std::collections::BTreeSet::new();
        let mut names = std::collections::BTreeSet::new();
        for resource in RESOURCES {
            assert!(kinds.insert(resource.kind), "two resources of kind {}", resource.kind);
            let all =
                [resource.plural, resource.singular].into_iter().chain(resource.short_names.iter().copied());
            for name in all {
                assert!(names.insert((resource.group, name)), "{name} is taken");
            }
        }
    }
}
