//! What the cluster serves.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use std::time::Duration;

/// The API group of Kubernetes' own pod groups.
pub const NATIVE_GROUP: &str = "scheduling.k8s.io";
/// The API group of ours, for clusters that have none.
pub const CUSTOM_GROUP: &str = "tutti.dev";

/// The only version that has composites, and their name in paths.
const COMPOSITE_VERSION: &str = "v1alpha3";
const COMPOSITES: &str = "compositepodgroups";

/// Pause before the cluster is asked a second time what it serves; every further one is twice as long, up to a limit.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Pause before it is asked whether it serves something else by now: short at first, because what is installed together
/// does not come at the same moment; every further one is twice as long, up to a limit.
const INTERVAL_FIRST: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(30);

/// How a pod says to which group it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum GroupLink {
    /// `spec.schedulingGroup.podGroupName`, since 1.36.
    #[default]
    SchedulingGroup,
    /// `spec.workloadRef`, in 1.35: there are no pod groups, but parts of workloads.
    WorkloadRef,
    /// The label `tutti.dev/pod-group`, where Kubernetes has no pod groups.
    Label,
}

impl GroupLink {
    /// All of them, the newest first.
    pub const ALL: [Self; 3] = [Self::SchedulingGroup, Self::WorkloadRef, Self::Label];

    /// The field of the pod that names the group.
    pub fn field(self) -> &'static str {
        match self {
            Self::SchedulingGroup => "spec.schedulingGroup.podGroupName",
            Self::WorkloadRef => "spec.workloadRef",
            Self::Label => "metadata.labels[tutti.dev/pod-group]",
        }
    }

    /// True if groups have objects of their own, with a status.
    pub fn has_group_objects(self) -> bool {
        self != Self::WorkloadRef
    }
}

/// A way in which clusters serve groups.
struct Flavour {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    condition: &'static str,
    link: GroupLink,
}

impl Flavour {
    const fn native(version: &'static str, condition: &'static str) -> Self {
        Self {
            group: NATIVE_GROUP,
            version,
            kind: "PodGroup",
            plural: "podgroups",
            condition,
            link: GroupLink::SchedulingGroup,
        }
    }
}

/// All of them, the best first.
const FLAVOURS: [Flavour; 5] = [
    Flavour::native("v1beta1", "PodGroupInitiallyScheduled"),
    Flavour::native("v1alpha3", "PodGroupInitiallyScheduled"),
    Flavour::native("v1alpha2", "PodGroupScheduled"),
    Flavour {
        kind: "Workload",
        plural: "workloads",
        link: GroupLink::WorkloadRef,
        // Workloads have no status, so nothing is ever written under this name.
        ..Flavour::native("v1alpha1", "PodGroupScheduled")
    },
    Flavour {
        group: CUSTOM_GROUP,
        link: GroupLink::Label,
        ..Flavour::native("v1alpha1", "PodGroupInitiallyScheduled")
    },
];

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// How pod groups are addressed; `None` if the cluster has none, and only plain pods can be scheduled. In 1.35 these
    /// are workloads.
    pub pod_group: Option<ApiResource>,
    /// How composites of them are addressed; `None` if the cluster has none.
    pub composite: Option<ApiResource>,
    /// The condition in the status of a pod group that the scheduler writes.
    pub group_condition: &'static str,
    /// How pods say to which group they belong.
    pub link: GroupLink,
    /// True if volumes, their claims and classes, and the drivers of nodes are served. Without them pods that use claims
    /// wait.
    pub storage: bool,
    /// True if the kinds that scheduling can do without are watched, see [`ObjectKind::OPTIONAL`]. Every cluster serves
    /// them, but may not let us read them.
    ///
    /// [`ObjectKind::OPTIONAL`]: crate::ObjectKind::OPTIONAL
    pub optional: bool,
}

impl Capabilities {
    /// A cluster without pod groups. Only ours can be added to it, so pods that name one of these wait for it: placed alone
    /// they would break the gang that they are meant for.
    pub fn plain() -> Self {
        Self {
            pod_group: None,
            composite: None,
            group_condition: FLAVOURS[0].condition,
            link: GroupLink::Label,
            storage: false,
            optional: false,
        }
    }

    /// The best of the served versions of Kubernetes' own groups.
    pub fn of_versions(served: &[&str]) -> Self {
        Self::best(|flavour| flavour.group == NATIVE_GROUP && served.contains(&flavour.version))
    }

    /// Pod groups by our own definition.
    pub fn custom() -> Self {
        Self::best(|flavour| flavour.group == CUSTOM_GROUP)
    }

    /// The API that is called `group/version/Kind`, if it is understood.
    pub fn of_api(name: &str) -> Option<Self> {
        let found = FLAVOURS.iter().find(|f| name == format!("{}/{}/{}", f.group, f.version, f.kind));
        found.map(Self::of)
    }

    fn best(serves: impl Fn(&Flavour) -> bool) -> Self {
        FLAVOURS.iter().find(|flavour| serves(flavour)).map_or_else(Self::plain, Self::of)
    }

    fn of(flavour: &Flavour) -> Self {
        let kind = GroupVersionKind::gvk(flavour.group, flavour.version, flavour.kind);
        Self {
            pod_group: Some(ApiResource::from_gvk_with_plural(&kind, flavour.plural)),
            composite: None,
            group_condition: flavour.condition,
            link: flavour.link,
            storage: false,
            optional: false,
        }
    }

    /// The same where storage is served, too.
    pub fn with_storage(self) -> Self {
        Self { storage: true, ..self }
    }

    /// The same where the kinds are watched that scheduling can do without.
    pub fn with_optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// The same where composites of Kubernetes' own groups are served, too.
    pub fn with_composites(self) -> Self {
        let kind = GroupVersionKind::gvk(NATIVE_GROUP, COMPOSITE_VERSION, "CompositePodGroup");
        Self { composite: Some(ApiResource::from_gvk_with_plural(&kind, COMPOSITES)), ..self }
    }

    /// Asks the cluster. An error means that it could not be asked, not that something is missing.
    pub async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let storage = serves_storage(client).await?;
        let groups = client.list_api_groups().await?.groups;
        for flavour in &FLAVOURS {
            let served = groups.iter().filter(|group| group.name == flavour.group);
            let mut versions = served.flat_map(|group| &group.versions);
            // A group can be served in a version without this kind: v1 has priority classes only.
            if versions.any(|found| found.version == flavour.version) && serves(client, flavour).await? {
                let found = Self { storage, ..Self::of(flavour) }.with_optional();
                // Only 1.37 has them, and only in its alpha version; its groups may be served in a better one.
                let composites = flavour.group == NATIVE_GROUP && serves_composites(client).await?;
                return Ok(if composites { found.with_composites() } else { found });
            }
        }
        Ok(Self { storage, ..Self::plain() }.with_optional())
    }
}

/// Asks what the cluster serves, again if it does not say: `tries_max` times, or for ever.
pub async fn discover_patiently(
    client: &Client,
    tries_max: Option<u32>,
) -> Result<Capabilities, kube::Error> {
    let mut pause = PAUSE_FIRST;
    let mut attempt: u32 = 1;
    loop {
        match Capabilities::discover(client).await {
            Ok(capabilities) => return Ok(capabilities),
            Err(error) if tries_max.is_some_and(|max| attempt >= max) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, attempt, "the cluster does not say which APIs it serves; trying again");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
        attempt = attempt.saturating_add(1);
    }
}

/// Completes when the cluster serves other APIs than these.
pub async fn changed(client: &Client, known: &Capabilities) {
    let mut interval = INTERVAL_FIRST;
    loop {
        tokio::time::sleep(interval).await;
        interval = (interval * 2).min(INTERVAL_MAX);
        match Capabilities::discover(client).await {
            Ok(found) if found != *known => {
                tracing::info!("the cluster serves other APIs than before");
                return;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the cluster does not say which APIs it serves"),
        }
    }
}

async fn serves(client: &Client, flavour: &Flavour) -> Result<bool, kube::Error> {
    let group_version = format!("{}/{}", flavour.group, flavour.version);
    all_served(client.list_api_group_resources(&group_version).await, &[flavour.plural])
}

async fn serves_composites(client: &Client) -> Result<bool, kube::Error> {
    let group_version = format!("{NATIVE_GROUP}/{COMPOSITE_VERSION}");
    all_served(client.list_api_group_resources(&group_version).await, &[COMPOSITES])
}

async fn serves_storage(client: &Client) -> Result<bool, kube::Error> {
    let volumes = client.list_core_api_resources("v1").await;
    let classes = client.list_api_group_resources("storage.k8s.io/v1").await;
    Ok(all_served(volumes, &["persistentvolumes", "persistentvolumeclaims"])?
        && all_served(classes, &["storageclasses", "csinodes"])?)
}

fn all_served(list: Result<APIResourceList, kube::Error>, plurals: &[&str]) -> Result<bool, kube::Error> {
    match list {
        Ok(list) => {
            Ok(plurals.iter().all(|plural| list.resources.iter().any(|resource| resource.name == *plural)))
        }
        // Not served, or withdrawn between two questions.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_served_version_decides_path_condition_and_link() {
        let version = |served: &[&str]| {
            let found = Capabilities::of_versions(served);
            (found.pod_group.map(|resource| resource.version), found.group_condition)
        };
        let later = "PodGroupInitiallyScheduled";
        assert_eq!(version(&["v1", "v1alpha3", "v1beta1"]), (Some("v1beta1".to_owned()), later));
        assert_eq!(version(&["v1alpha3"]), (Some("v1alpha3".to_owned()), later));
        assert_eq!(version(&["v1", "v1alpha2"]), (Some("v1alpha2".to_owned()), "PodGroupScheduled"));
        assert_eq!(version(&["v1"]).0, None);
        let path = |capabilities: Capabilities| {
            let resource = capabilities.pod_group.unwrap();
            <crate::PodGroupView as kube::Resource>::url_path(&resource, Some("a"))
        };
        let found = Capabilities::of_versions(&["v1alpha2"]);
        assert_eq!(path(found), "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups");
        let found = Capabilities::of_versions(&["v1", "v1alpha1"]);
        assert_eq!(found.link, GroupLink::WorkloadRef);
        assert_eq!(path(found), "/apis/scheduling.k8s.io/v1alpha1/namespaces/a/workloads");
        let named = Capabilities::of_api("scheduling.k8s.io/v1alpha1/Workload").unwrap();
        assert_eq!(named, Capabilities::of_versions(&["v1alpha1"]));
        assert_eq!(Capabilities::of_api("v1/Pod"), None);
        let found = Capabilities::custom();
        assert_eq!(found.link, GroupLink::Label);
        assert_eq!(path(found), "/apis/tutti.dev/v1alpha1/namespaces/a/podgroups");
    }
}
