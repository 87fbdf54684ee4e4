//! What one server serves.

use super::{PerRelease, Release, Resource, ResourceId, table};
use crate::schema::{self, Document};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Everything that one API server serves: the built-in kinds of a release, and custom ones that come and go.
#[derive(Debug)]
pub struct Catalog {
    release: Release,
    /// Whether pod groups are served, and what they are made of.
    workload_apis: bool,
    custom: RwLock<Arc<CustomKinds>>,
}

/// Custom kinds at one moment.
#[derive(Debug, Default)]
struct CustomKinds {
    /// One for every custom resource that there ever was: positions stay, so that ids do.
    slots: Vec<Slot>,
    documents: OnceLock<BTreeMap<String, Document>>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// What is or was served there.
    resource: &'static Resource,
    state: CustomState,
}

/// Whether a custom kind is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CustomState {
    /// It is.
    Served,
    /// Its definition is being deleted: objects can be read and deleted, but not made.
    Terminating,
    /// It is not; objects of it are history.
    Gone,
}

impl Catalog {
    /// What this release serves.
    pub fn new(release: Release) -> Self {
        Self { release, workload_apis: true, custom: RwLock::default() }
    }

    /// The same where the workload API is not switched on.
    pub fn without_workload_apis(self) -> Self {
        Self { workload_apis: false, ..self }
    }

    /// The release that is served.
    pub fn release(&self) -> Release {
        self.release
    }

    /// All resources that objects can be stored of, whether they are served or not.
    pub fn ids(&self) -> impl Iterator<Item = ResourceId> + use<> {
        let table = built_in(self.release);
        let custom = self.custom();
        let count = custom.slots.len();
        let custom = (0..count).filter_map(move |at| Some(custom.slots.get(at)?.resource));
        table.iter().chain(custom).enumerate().map(|(index, resource)| ResourceId { index, resource })
    }

    /// The resources that are served, in the order of discovery.
    pub fn resources(&self) -> impl Iterator<Item = &'static Resource> + use<> {
        let custom = self.custom();
        let served: Vec<_> = custom.served().map(|(_, slot)| slot.resource).collect();
        self.built_in().map(|(_, row)| row).chain(served)
    }

    /// The built-in resources that are served, and their positions.
    fn built_in(&self) -> impl Iterator<Item = (usize, &'static Resource)> + use<> {
        let workload_apis = self.workload_apis;
        let rows = built_in(self.release).iter().enumerate();
        // Only versions of the workload API differ between releases.
        rows.filter(move |(_, row)| !row.versions.is_empty() && (workload_apis || row.by_release.is_none()))
    }

    /// The resource that is served under this group, version and plural name, and the version as the registry
    /// spells it.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<(ResourceId, &'static str)> {
        self.find_by(
            |resource| {
                if resource.plural == plural { resource.served_as(group, version) } else { None }
            },
        )
    }

    /// The resource of a kind as owner references name it; any served version of the group will do.
    pub fn of_kind(&self, group: &str, kind: &str) -> Option<ResourceId> {
        self.find_by(|resource| {
            let found = resource.kind == kind && resource.places().any(|place| place.group == group);
            found.then_some(())
        })
        .map(|(id, ())| id)
    }

    fn find_by<T>(&self, test: impl Fn(&'static Resource) -> Option<T>) -> Option<(ResourceId, T)> {
        let mut rows = self.built_in();
        let built_in =
            rows.find_map(|(index, resource)| Some((ResourceId { index, resource }, test(resource)?)));
        built_in.or_else(|| {
            self.custom().served().find_map(|(at, Slot { resource, .. })| {
                Some((ResourceId { index: table::RESOURCES.len() + at, resource }, test(resource)?))
            })
        })
    }

    /// True if objects of this resource may be made.
    pub(crate) fn accepts_new(&self, id: ResourceId) -> bool {
        match id.index.checked_sub(table::RESOURCES.len()) {
            None => true,
            Some(at) => self.custom().slots.get(at).is_some_and(|slot| slot.state == CustomState::Served),
        }
    }

    /// OpenAPI documents of custom kinds, by their paths.
    pub(crate) fn custom_documents(&self) -> BTreeMap<String, Document> {
        let custom = self.custom();
        let served = || custom.served().map(|(_, slot)| slot.resource);
        custom.documents.get_or_init(|| schema::custom_documents(served())).clone()
    }

    /// Replaces the custom kinds. Those that are not among the new ones are gone. Returns how many resources there
    /// are now, gone ones included.
    pub(crate) fn set_custom(&self, kinds: impl Iterator<Item = (&'static Resource, CustomState)>) -> usize {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        let mut slots: Vec<Slot> =
            custom.slots.iter().map(|slot| Slot { state: CustomState::Gone, ..*slot }).collect();
        for (resource, state) in kinds {
            let is_same = |slot: &&mut Slot| {
                slot.resource.group == resource.group && slot.resource.plural == resource.plural
            };
            match slots.iter_mut().find(is_same) {
                Some(slot) => *slot = Slot { resource, state },
                None => slots.push(Slot { resource, state }),
            }
        }
        let count = slots.len();
        *custom = Arc::new(CustomKinds { slots, documents: OnceLock::new() });
        table::RESOURCES.len() + count
    }

    fn custom(&self) -> Arc<CustomKinds> {
        Arc::clone(&self.custom.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CustomKinds {
    fn served(&self) -> impl Iterator<Item = (usize, Slot)> {
        self.slots.iter().copied().enumerate().filter(|(_, slot)| slot.state != CustomState::Gone)
    }
}

/// The table as a release has it. Positions are the same in all releases; what a release does not serve has no
/// versions in it.
pub(crate) fn built_in(release: Release) -> &'static [Resource] {
    static TABLES: PerRelease<Vec<Resource>> = PerRelease::new();
    if release == Release::All {
        return table::RESOURCES;
    }
    TABLES.get_or_init(release, || {
        let rows = table::RESOURCES.iter();
        rows.map(|row| Resource { release, versions: row.versions_in(release), ..*row }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(release: Release, version: &str, plural: &str) -> bool {
        Catalog::new(release).find("scheduling.k8s.io", version, plural).is_some()
    }

    #[test]
    fn each_release_serves_its_own_versions_of_the_workload_api() {
        use Release::{All, V1_35, V1_36, V1_37};
        let cases = [
            ("v1alpha1", "workloads", vec![V1_35, All]),
            ("v1alpha1", "podgroups", vec![]),
            ("v1alpha2", "workloads", vec![V1_36, All]),
            ("v1alpha2", "podgroups", vec![V1_36, All]),
            ("v1alpha2", "compositepodgroups", vec![]),
            ("v1alpha3", "podgroups", vec![V1_37, All]),
            ("v1alpha3", "compositepodgroups", vec![V1_37, All]),
            ("v1beta1", "workloads", vec![V1_37, All]),
            ("v1beta1", "compositepodgroups", vec![]),
            ("v1", "priorityclasses", Release::CHOICES.to_vec()),
        ];
        for (version, plural, releases) in cases {
            for release in Release::CHOICES {
                assert_eq!(
                    served(release, version, plural),
                    releases.contains(&release),
                    "{release} {version} {plural}"
                );
            }
        }
    }

    #[test]
    fn without_the_workload_api_everything_else_is_served() {
        for release in Release::CHOICES {
            let (with, without) = (Catalog::new(release), Catalog::new(release).without_workload_apis());
            let kinds = |catalog: &Catalog| catalog.resources().map(|r| r.kind).collect::<Vec<_>>();
            let mut expected = kinds(&with);
            expected.retain(|kind| !["Workload", "PodGroup", "CompositePodGroup"].contains(kind));
            assert_eq!(kinds(&without), expected, "{release}");
            assert!(without.of_kind("scheduling.k8s.io", "Workload").is_none(), "{release}");
            assert!(without.find("scheduling.k8s.io", "v1", "priorityclasses").is_some(), "{release}");
        }
    }

    #[test]
    fn positions_are_the_same_in_every_release() {
        for release in Release::CHOICES {
            let kinds = |table: &[Resource]| table.iter().map(|r| r.kind).collect::<Vec<_>>();
            assert_eq!(kinds(built_in(release)), kinds(table::RESOURCES));
            assert!(built_in(release).iter().all(|r| r.release == release));
        }
    }
}
