//! Claims about schemas, through the functions that the server calls.

use super::*;
use crate::registry::{RESOURCES, find};
use serde_json::json;

fn document(path: &str) -> Value {
    document_of(Release::All, path).unwrap()
}

fn document_of(release: Release, path: &str) -> Option<Value> {
    openapi_documents(release).get(path).map(|document| serde_json::from_slice(&document.text).unwrap())
}

fn schema<'a>(document: &'a Value, name: &str) -> &'a Value {
    &document["components"]["schemas"][name]
}

/// Calls `visit` for every value in a JSON tree.
fn each_value<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Object(map) => map.values().for_each(|v| each_value(v, visit)),
        Value::Array(list) => list.iter().for_each(|v| each_value(v, visit)),
        _ => {}
    }
}

#[test]
fn there_is_a_document_for_every_served_version() {
    for release in Release::CHOICES {
        let documents = openapi_documents(release);
        for expected in ["api/v1", "apis/apps/v1", "apis/events.k8s.io/v1"] {
            assert!(documents.contains_key(expected), "{expected} is missing in {release}");
        }
        assert_eq!(documents.len(), group_versions(release).count());
        let alpha2 = release.includes(Release::V1_36);
        assert_eq!(documents.contains_key("apis/scheduling.k8s.io/v1alpha2"), alpha2, "{release}");
    }
}

#[test]
fn a_pod_names_its_group_as_its_release_does() {
    for release in Release::CHOICES {
        let document = document_of(release, "api/v1").unwrap();
        let pod = &schema(&document, "io.k8s.api.core.v1.PodSpec")["properties"];
        assert_eq!(pod.get("workloadRef").is_some(), release.includes(Release::V1_35), "{release}");
        assert_eq!(pod.get("schedulingGroup").is_some(), release != Release::V1_35, "{release}");
        let batch = document_of(release, "apis/batch/v1").unwrap();
        let job = &schema(&batch, "io.k8s.api.batch.v1.JobSpec")["properties"];
        assert_eq!(job.get("scheduling").is_some(), release.includes(Release::V1_37), "{release}");
    }
}

#[test]
fn every_reference_of_every_document_resolves() {
    for (group, version) in group_versions(Release::All) {
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let document = document(&path);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut references = 0;
        each_value(&document, &mut |value| {
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                let name = target.strip_prefix("#/components/schemas/").unwrap();
                assert!(schemas.contains_key(name), "{path} lacks {name}");
                assert_eq!(
                    value.as_object().unwrap().len(),
                    1,
                    "beside a reference everything is ignored: {value}"
                );
                references += 1;
            }
        });
        assert!(references > 10, "{path}");
    }
}

#[test]
fn kinds_and_lists_say_what_they_are() {
    let core = document("api/v1");
    for kind in ["Pod", "PodList", "Node", "Event", "Namespace"] {
        let gvk = &schema(&core, &format!("io.k8s.api.core.v1.{kind}"))["x-kubernetes-group-version-kind"];
        assert_eq!(*gvk, json!([{"group": "", "version": "v1", "kind": kind}]));
    }
    let items = &schema(&core, "io.k8s.api.core.v1.PodList")["properties"]["items"]["items"]["$ref"];
    assert_eq!(*items, "#/components/schemas/io.k8s.api.core.v1.Pod");
}

#[test]
fn quantities_and_ports_may_be_numbers_or_texts() {
    let core = document("api/v1");
    let quantity = schema(&core, "io.k8s.apimachinery.pkg.api.resource.Quantity");
    assert_eq!(quantity["oneOf"], json!([{"type": "string"}, {"type": "number"}]));
    let port = schema(&core, "io.k8s.apimachinery.pkg.util.intstr.IntOrString");
    assert_eq!(port["oneOf"], json!([{"type": "string"}, {"type": "integer"}]));
    assert_eq!(port["format"], "int-or-string");
    let time = schema(&core, "io.k8s.apimachinery.pkg.apis.meta.v1.Time");
    assert_eq!((&time["type"], &time["format"]), (&json!("string"), &json!("date-time")));
}

#[test]
fn lists_say_how_they_are_merged() {
    let core = document("api/v1");
    let containers = &schema(&core, "io.k8s.api.core.v1.PodSpec")["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let properties = &schema(&core, "io.k8s.api.core.v1.PodSpec")["properties"];
    assert_eq!(properties["volumes"]["x-kubernetes-patch-strategy"], "merge,retainKeys");
    assert_eq!(properties["tolerations"]["x-kubernetes-list-type"], "atomic");
    let finalizers =
        &schema(&core, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")["properties"]["finalizers"];
    assert_eq!(finalizers["x-kubernetes-list-type"], "set");
    assert_eq!(finalizers["x-kubernetes-patch-strategy"], "merge");
}

#[test]
fn every_merge_rule_is_about_a_list_that_exists() {
    let documents: Vec<Value> =
        openapi_documents(Release::All).values().map(|d| serde_json::from_slice(&d.text).unwrap()).collect();
    for (owner, field) in lists::all() {
        let found = documents.iter().any(|document| {
            document["components"]["schemas"].as_object().unwrap().iter().any(|(name, schema)| {
                name.ends_with(&format!(".{owner}")) && schema["properties"][field]["type"] == "array"
            })
        });
        assert!(found, "{owner} has no list {field}");
    }
}

#[test]
fn the_old_version_has_its_own_fields_and_not_those_of_the_hub() {
    let alpha = document("apis/scheduling.k8s.io/v1alpha2");
    let spec = &schema(&alpha, "io.k8s.api.scheduling.v1alpha2.PodGroupSpec")["properties"];
    assert_eq!(spec["disruptionMode"]["type"], "string");
    assert!(
        spec["podGroupTemplateRef"]["allOf"][0]["$ref"]
            .as_str()
            .unwrap()
            .ends_with("PodGroupTemplateReference")
    );
    for field in ["workloadRef", "preemptionPolicy", "parentCompositePodGroupName"] {
        assert!(spec.get(field).is_none(), "{field}");
    }
    let names = alpha["components"]["schemas"].as_object().unwrap();
    assert!(names.keys().all(|name| !name.contains("v1beta1") && !name.contains("Composite")), "{names:?}");
}

#[test]
fn writes_offer_what_kubectl_looks_for() {
    let groups = document("apis/scheduling.k8s.io/v1beta1");
    let item = &groups["paths"]["/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups/{name}"];
    let patch = &item["patch"];
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "scheduling.k8s.io", "version": "v1beta1", "kind": "PodGroup"})
    );
    let content = patch["requestBody"]["content"].as_object().unwrap();
    assert!(content.contains_key("application/strategic-merge-patch+json"));
    let collection = &groups["paths"]["/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"];
    for operation in [patch, &item["put"], &collection["post"]] {
        let names: Vec<&str> =
            operation["parameters"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
        assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"), "{names:?}");
    }
    let core = document("api/v1");
    let paths = core["paths"].as_object().unwrap();
    for path in
        ["/api/v1/nodes/{name}/status", "/api/v1/pods", "/api/v1/namespaces/{namespace}/pods/{name}/binding"]
    {
        assert!(paths.contains_key(path), "{path}");
    }
    assert!(!paths.contains_key("/api/v1/namespaces/{namespace}/events/{name}/status"));
}

#[test]
fn strategic_merge_asks_for_lists_by_path() {
    let pods = find("", "v1", "pods").unwrap();
    let groups = find("scheduling.k8s.io", "v1alpha2", "podgroups").unwrap();
    let cases: [(_, _, &[&str], _); 13] = [
        (pods, "v1", &["spec", "containers"], ListMerge::ByKey("name")),
        (pods, "v1", &["spec", "containers", "ports"], ListMerge::ByKey("containerPort")),
        (pods, "v1", &["spec", "containers", "args"], ListMerge::Atomic),
        (pods, "v1", &["spec", "initContainers", "env"], ListMerge::ByKey("name")),
        (pods, "v1", &["spec", "tolerations"], ListMerge::Atomic),
        (pods, "v1", &["spec", "volumes", "projected", "sources"], ListMerge::Atomic),
        (pods, "v1", &["status", "conditions"], ListMerge::ByKey("type")),
        (pods, "v1", &["metadata", "finalizers"], ListMerge::Set),
        (pods, "v1", &["metadata", "ownerReferences"], ListMerge::ByKey("uid")),
        (groups, "v1beta1", &["status", "conditions"], ListMerge::ByKey("type")),
        (groups, "v1alpha2", &["status", "conditions"], ListMerge::ByKey("type")),
        (groups, "v1alpha2", &["spec", "nothing", "here"], ListMerge::Atomic),
        (groups, "v7", &["spec"], ListMerge::Atomic),
    ];
    for (resource, version, path, want) in cases {
        assert_eq!(list_merge(resource, version, path), want, "{version} {path:?}");
    }
}

#[test]
fn unknown_fields_are_named_by_path_and_pruned() {
    let pods = find("", "v1", "pods").unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "x": 1,
        "metadata": {"name": "p", "labels": {"anything": "goes"}, "managedFields": [{"fieldsV1": {"f:x": {}}}]},
        "spec": {
            "schedulingGroup": {"podGroupName": "g", "podGroup": "g"},
            "containers": [{"name": "c", "imge": "i", "resources": {"limits": {"example.com/x": 1}}}],
        },
    });
    let unknown = unknown_fields(pods, "v1", &pod);
    assert_eq!(unknown, ["spec.containers[0].imge", "spec.schedulingGroup.podGroup", "x"]);
    let mut pruned = pod;
    prune_unknown(pods, "v1", &mut pruned);
    assert_eq!(unknown_fields(pods, "v1", &pruned), [""; 0]);
    assert_eq!(
        pruned["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:x": {}}),
        "free content is kept"
    );
}

#[test]
fn each_version_knows_its_own_fields() {
    let groups = find("scheduling.k8s.io", "v1alpha2", "podgroups").unwrap();
    let alpha = json!({"spec": {"podGroupTemplateRef": {"workload": {"podGroupTemplateName": "t"}}, "disruptionMode": "Pod"}});
    let hub = json!({"spec": {"workloadRef": {"templateName": "t"}, "disruptionMode": {"single": {"x": 1}}}});
    assert_eq!(unknown_fields(groups, "v1alpha2", &alpha), [""; 0]);
    assert_eq!(unknown_fields(groups, "v1beta1", &alpha), ["spec.podGroupTemplateRef"]);
    assert_eq!(unknown_fields(groups, "v1alpha2", &hub), ["spec.workloadRef"]);
    assert_eq!(unknown_fields(groups, "v1beta1", &hub), ["spec.disruptionMode.single.x"]);
}

#[test]
fn templates_within_templates_are_known_at_any_depth() {
    let workloads = find("scheduling.k8s.io", "v1beta1", "workloads").unwrap();
    let mut tree = json!({"podGroupTemplates": [{"name": "leaf", "typo": 1}]});
    for _ in 0..20 {
        tree = json!({"compositePodGroupTemplates": [tree]});
    }
    let unknown = unknown_fields(workloads, "v1beta1", &json!({"spec": tree}));
    assert_eq!(unknown.len(), 1);
    assert!(unknown[0].ends_with("podGroupTemplates[0].typo"), "{unknown:?}");
}

#[test]
fn any_shape_is_walked_without_harm() {
    for resource in RESOURCES {
        for object in [json!(null), json!(3), json!([[]]), json!({"spec": [{"a": 1}], "metadata": "m"})] {
            let _ = unknown_fields(resource, resource.hub, &object);
            let _ = wrong_types(resource, resource.hub, &object);
            prune_unknown(resource, resource.hub, &mut object.clone());
        }
    }
}
