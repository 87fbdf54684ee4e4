//! What the cluster serves.

use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kube::discovery;

/// The API group of pod groups.
const GROUP: &str = "scheduling.k8s.io";
/// Versions of it that are understood, the best first, with the condition that each defines.
const VERSIONS: [(&str, &str); 3] = [
    ("v1beta1", "PodGroupInitiallyScheduled"),
    ("v1alpha3", "PodGroupInitiallyScheduled"),
    ("v1alpha2", "PodGroupScheduled"),
];

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// How pod groups are addressed; `None` if the cluster has none, and only plain pods can be scheduled.
    pub pod_group: Option<ApiResource>,
    /// The condition in the status of a pod group that the scheduler writes.
    pub group_condition: &'static str,
}

impl Capabilities {
    /// A cluster without pod groups.
    pub fn plain() -> Self {
        Self::of_versions(&[])
    }

    /// The best of the served versions of pod groups.
    pub fn of_versions(served: &[&str]) -> Self {
        for (version, group_condition) in VERSIONS {
            if served.contains(&version) {
                let kind = GroupVersionKind::gvk(GROUP, version, "PodGroup");
                return Self {
                    pod_group: Some(ApiResource::from_gvk_with_plural(&kind, "podgroups")),
                    group_condition,
                };
            }
        }
        Self { pod_group: None, group_condition: VERSIONS[0].1 }
    }

    /// Asks the cluster. An error means that it could not be asked, not that something is missing.
    pub async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let groups = client.list_api_groups().await?;
        let served: Vec<String> = groups
            .groups
            .into_iter()
            .filter(|group| group.name == GROUP)
            .flat_map(|group| group.versions)
            .map(|version| version.version)
            .collect();
        for (version, _) in VERSIONS {
            // A group can be served in a version without this kind: v1 has priority classes only.
            if served.iter().any(|found| found == version) && serves_pod_groups(client, version).await? {
                return Ok(Self::of_versions(&[version]));
            }
        }
        Ok(Self::plain())
    }
}

async fn serves_pod_groups(client: &Client, version: &str) -> Result<bool, kube::Error> {
    let kind = GroupVersionKind::gvk(GROUP, version, "PodGroup");
    match discovery::pinned_kind(client, &kind).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Discovery(_)) => Ok(false),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_served_version_decides_path_and_condition() {
        let version = |served: &[&str]| {
            let found = Capabilities::of_versions(served);
            (found.pod_group.map(|resource| resource.version), found.group_condition)
        };
        let later = "PodGroupInitiallyScheduled";
        assert_eq!(version(&["v1", "v1alpha3", "v1beta1"]), (Some("v1beta1".to_owned()), later));
        assert_eq!(version(&["v1alpha3"]), (Some("v1alpha3".to_owned()), later));
        assert_eq!(version(&["v1", "v1alpha2"]), (Some("v1alpha2".to_owned()), "PodGroupScheduled"));
        assert_eq!(version(&["v1", "v1alpha1"]).0, None);
        let resource = Capabilities::of_versions(&["v1alpha2"]).pod_group.unwrap();
        assert_eq!(
            <crate::PodGroupView as kube::Resource>::url_path(&resource, Some("a")),
            "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups"
        );
    }
}
