//! Discovery documents: which groups, versions and resources there are. All generated from the registry.

use crate::registry::{Access, Catalog, Resource, StatusRule, Subresource, api_version};
use serde_json::{Value, json};

/// Verbs of an ordinary resource.
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Verbs of a resource whose objects cannot be deleted together.
const VERBS_ONE_BY_ONE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// Verbs of custom kinds, in the order in which Kubernetes tells them.
const VERBS_CUSTOM: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn verbs(resource: &Resource) -> &'static [&'static str] {
    match resource.access {
        Access::Stored if resource.group.is_empty() && resource.kind == "Namespace" => VERBS_ONE_BY_ONE,
        Access::Stored if resource.custom.is_some() => VERBS_CUSTOM,
        Access::Stored => VERBS,
        Access::Asked => &["create"],
    }
}

/// Groups in the order of the registry, the core group (`""`) included.
fn groups(catalog: &Catalog) -> Vec<&'static str> {
    let mut groups = Vec::new();
    for place in catalog.resources().flat_map(Resource::places) {
        if !groups.contains(&place.group) {
            groups.push(place.group);
        }
    }
    groups
}

/// Versions of a group, most preferred first: stable before beta before alpha.
fn versions(catalog: &Catalog, group: &str) -> Vec<&'static str> {
    let mut versions = Vec::new();
    for place in catalog.resources().flat_map(Resource::places).filter(|place| place.group == group) {
        if !versions.contains(&place.version) {
            versions.push(place.version);
        }
    }
    versions.sort_by_key(|v| (v.contains("alpha"), v.contains("beta")));
    versions
}

fn served<'a>(
    catalog: &Catalog,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'static Resource> + use<'a> {
    catalog.resources().filter(move |r| r.served_as(group, version).is_some())
}

/// A subresource as discovery describes it: path part, group, version and kind of the body, verbs.
struct SubresourceEntry {
    name: &'static str,
    group: &'static str,
    version: String,
    kind: &'static str,
    verbs: &'static [&'static str],
}

fn subresources(resource: &Resource, version: &str) -> Vec<SubresourceEntry> {
    let own = |name, verbs| SubresourceEntry {
        name,
        group: resource.group,
        version: version.to_owned(),
        kind: resource.kind,
        verbs,
    };
    let mut entries: Vec<_> = resource
        .subresources
        .iter()
        .map(|subresource| match subresource {
            Subresource::Binding => SubresourceEntry { kind: "Binding", ..own("binding", &["create"]) },
            Subresource::Eviction => SubresourceEntry {
                name: "eviction",
                group: "policy",
                version: "v1".to_owned(),
                kind: "Eviction",
                verbs: &["create"],
            },
            Subresource::Log => own("log", &["get"]),
            Subresource::Resize => own("resize", &["get", "patch", "update"]),
            Subresource::Scale => SubresourceEntry {
                name: "scale",
                group: "autoscaling",
                version: "v1".to_owned(),
                kind: "Scale",
                verbs: &["get", "patch", "update"],
            },
        })
        .collect();
    if resource.status != StatusRule::None {
        entries.push(own("status", &["get", "patch", "update"]));
    }
    entries
}

/// Body of `GET /api`, not aggregated.
pub fn core_versions(catalog: &Catalog) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": versions(catalog, ""),
        "serverAddressByClientCIDRs": [],
    })
}

/// Body of `GET /apis`, not aggregated.
pub fn group_list(catalog: &Catalog) -> Value {
    let groups: Vec<Value> =
        groups(catalog).into_iter().filter(|g| !g.is_empty()).map(|g| group_entry(catalog, g)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Body of `GET /apis/GROUP`.
pub fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    if name.is_empty() || !groups(catalog).contains(&name) {
        return None;
    }
    let mut entry = group_entry(catalog, name);
    entry["kind"] = json!("APIGroup");
    entry["apiVersion"] = json!("v1");
    Some(entry)
}

fn group_entry(catalog: &Catalog, name: &str) -> Value {
    let versions: Vec<Value> = versions(catalog, name)
        .into_iter()
        .map(|version| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// Body of `GET /api/v1` and `GET /apis/GROUP/VERSION`.
pub fn resource_list(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in served(catalog, group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        resources.push(entry);
        for sub in subresources(resource, version) {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if sub.group != group {
                entry["group"] = json!(sub.group);
                entry["version"] = json!(sub.version);
            }
            resources.push(entry);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = api_version(group, version);
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

/// Body of `GET /api` (`core`) or `GET /apis`, aggregated, in `v2` or `v2beta1` of `apidiscovery.k8s.io`.
pub fn aggregated(catalog: &Catalog, core: bool, discovery_version: &str) -> Value {
    let items: Vec<Value> = groups(catalog)
        .into_iter()
        .filter(|group| group.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = versions(catalog, group)
                .into_iter()
                .map(|version| aggregated_version(catalog, group, version))
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{discovery_version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_version(catalog: &Catalog, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = served(catalog, group, version)
        .map(|resource| {
            let subresources: Vec<Value> = subresources(resource, version)
                .into_iter()
                .map(|sub| {
                    json!({
                        "subresource": sub.name,
                        "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                        "verbs": sub.verbs,
                    })
                })
                .collect();
            let mut entry = json!({
                "resource": resource.plural,
                "responseKind": {"group": group, "version": version, "kind": resource.kind},
                "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": resource.singular,
                "verbs": verbs(resource),
            });
            for (key, list) in [("shortNames", resource.short_names), ("categories", resource.categories)] {
                if !list.is_empty() {
                    entry[key] = json!(list);
                }
            }
            if !subresources.is_empty() {
                entry["subresources"] = json!(subresources);
            }
            entry
        })
        .collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Release;

    const ALL: fn() -> Catalog = || Catalog::new(Release::All);

    #[test]
    fn stable_versions_are_preferred() {
        let group = group(&ALL(), "scheduling.k8s.io").unwrap();
        assert_eq!(group["preferredVersion"]["version"], "v1");
        let versions: Vec<&str> =
            group["versions"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap()).collect();
        assert_eq!(versions.first(), Some(&"v1"));
        assert!(
            versions.iter().position(|v| *v == "v1beta1") < versions.iter().position(|v| *v == "v1alpha2")
        );
    }

    #[test]
    fn plain_and_aggregated_documents_name_the_same_resources() {
        for group in groups(&ALL()) {
            let document = aggregated(&ALL(), group.is_empty(), "v2");
            let items = document["items"].as_array().unwrap();
            let item = items.iter().find(|i| group.is_empty() || i["metadata"]["name"] == group).unwrap();
            for version in item["versions"].as_array().unwrap() {
                let plain = resource_list(&ALL(), group, version["version"].as_str().unwrap()).unwrap();
                let plain = plain["resources"].as_array().unwrap();
                for resource in version["resources"].as_array().unwrap() {
                    assert!(plain.iter().any(|p| p["name"] == resource["resource"]));
                    for sub in resource["subresources"].as_array().into_iter().flatten() {
                        let name = format!(
                            "{}/{}",
                            resource["resource"].as_str().unwrap(),
                            sub["subresource"].as_str().unwrap()
                        );
                        assert!(plain.iter().any(|p| p["name"] == name.as_str()), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_groups_have_no_documents() {
        assert!(group(&ALL(), "").is_none());
        assert!(group(&ALL(), "nope").is_none());
        assert!(resource_list(&ALL(), "nope", "v1").is_none());
        assert!(resource_list(&ALL(), "", "v2").is_none());
    }
}
