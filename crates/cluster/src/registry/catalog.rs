//! What one server serves.

use super::{PerRelease, Release, Resource, ResourceId, table};

/// Everything that one API server serves.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    release: Release,
}

impl Catalog {
    /// What this release serves.
    pub fn new(release: Release) -> Self {
        Self { release }
    }

    /// The release that is served.
    pub fn release(&self) -> Release {
        self.release
    }

    /// All resources that objects can be stored of, whether this release serves them or not.
    pub fn ids(&self) -> impl Iterator<Item = ResourceId> + use<> {
        built_in(self.release).iter().enumerate().map(|(index, resource)| ResourceId { index, resource })
    }

    /// The resources that are served, in the order of discovery.
    pub fn resources(&self) -> impl Iterator<Item = &'static Resource> + use<> {
        self.ids().map(ResourceId::resource).filter(|resource| !resource.versions.is_empty())
    }

    /// The resource that is served under this group, version and plural name, and the version as the registry
    /// spells it.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<(ResourceId, &'static str)> {
        self.ids().filter(|id| id.resource().plural == plural).find_map(|id| {
            let spelled = id.resource().served_as(group, version)?;
            Some((id, spelled))
        })
    }

    /// The resource of a kind as owner references name it; any served version of the group will do.
    pub fn of_kind(&self, group: &str, kind: &str) -> Option<ResourceId> {
        self.ids().filter(|id| id.resource().kind == kind).find(|id| {
            let resource = id.resource();
            resource.places().any(|place| place.group == group)
        })
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
    fn positions_are_the_same_in_every_release() {
        for release in Release::CHOICES {
            let kinds = |table: &[Resource]| table.iter().map(|r| r.kind).collect::<Vec<_>>();
            assert_eq!(kinds(built_in(release)), kinds(table::RESOURCES));
            assert!(built_in(release).iter().all(|r| r.release == release));
        }
    }
}
