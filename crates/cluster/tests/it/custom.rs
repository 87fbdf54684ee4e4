//! Custom kinds, through HTTP.

use crate::harness::{Cluster, names};
use serde_json::{Value, json};
use tutti_cluster::server::Janitor;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object", "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "mode": {"type": "string", "default": "fast"},
                    "parts": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                        "items": {"type": "object", "required": ["id"], "properties": {
                            "id": {"type": "string"}, "weight": {"type": "integer"},
                        }},
                    },
                },
            },
            "status": {"type": "object", "properties": {
                "ready": {"type": "integer"}, "selector": {"type": "string"},
            }},
        },
    })
}

fn crd() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema()},
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready",
                "labelSelectorPath": ".status.selector",
            }},
            "selectableFields": [{"jsonPath": ".spec.mode"}],
            "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    })
}

fn widget(name: &str, size: impl Into<Value>) -> Value {
    let size: Value = size.into();
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}})
}

async fn with_widgets() -> Cluster {
    let cluster = Cluster::new();
    cluster.post(CRDS, crd()).await.expect(201);
    cluster
}

#[tokio::test]
async fn a_definition_is_served_as_soon_as_it_is_made() {
    let cluster = with_widgets().await;
    let crd = cluster.get(&format!("{CRDS}/widgets.example.com")).await.expect(200);
    assert_eq!(crd["spec"]["names"]["singular"], "widget");
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    for kind in ["NamesAccepted", "Established"] {
        let condition = conditions.iter().find(|c| c["type"] == kind).unwrap();
        assert_eq!(condition["status"], "True", "{kind}");
    }
    let group = cluster.get("/apis/example.com").await.expect(200);
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let list = cluster.get("/apis/example.com/v1beta1").await.expect(200);
    let found: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(found, ["widgets", "widgets/scale", "widgets/status"]);
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovery = cluster.get_as("/apis", aggregated).await.expect(200);
    let groups = discovery["items"].as_array().unwrap();
    assert!(groups.iter().any(|g| g["metadata"]["name"] == "example.com"));
    let index = cluster.get("/openapi/v3").await.expect(200);
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = cluster.get(url).await.expect(200);
    let kind = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(kind["properties"]["spec"]["properties"]["size"]["minimum"], 1);
    assert_eq!(kind["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    let item = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"];
    let patches = item["patch"]["requestBody"]["content"].as_object().unwrap();
    assert!(patches.contains_key("application/merge-patch+json"));
    assert!(!patches.contains_key("application/strategic-merge-patch+json"), "kubectl apply would send it");
}

#[tokio::test]
async fn objects_are_defaulted_pruned_and_validated() {
    let cluster = with_widgets().await;
    let mut sloppy = widget("a", 2);
    sloppy["spec"]["typo"] = json!(1);
    sloppy["status"] = json!({"ready": 7});
    let created = cluster.post(WIDGETS, sloppy.clone()).await.expect(201);
    assert_eq!(created["spec"], json!({"size": 2, "mode": "fast"}));
    assert_eq!(created["metadata"]["generation"], 1);
    assert!(created.get("status").is_none(), "{created}");
    sloppy["metadata"]["name"] = json!("b");
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let message = cluster.post(&strict, sloppy).await.refusal(400, "BadRequest");
    assert!(message.contains("unknown field \"spec.typo\""), "{message}");
    for (size, want) in [
        (json!(0), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (json!("2"), "spec.size: Invalid value: \"string\""),
        (json!(null), "spec.size: Required value"),
    ] {
        let message = cluster.post(WIDGETS, widget("b", size)).await.refusal(422, "Invalid");
        assert!(
            message.starts_with("Widget.example.com \"b\" is invalid: ") && message.contains(want),
            "{message}"
        );
    }
    let path = format!("{WIDGETS}/a");
    cluster.patch(&path, "merge", json!({"spec": {"size": -1}})).await.refusal(422, "Invalid");
    cluster
        .patch(&path, "strategic-merge", json!({"spec": {"size": 3}}))
        .await
        .refusal(415, "UnsupportedMediaType");
    let status =
        cluster.patch(&format!("{path}/status"), "merge", json!({"status": {"ready": 1}})).await.expect(200);
    assert_eq!((&status["status"]["ready"], &status["metadata"]["generation"]), (&json!(1), &json!(1)));
    let selected = cluster.get(&format!("{WIDGETS}?fieldSelector=spec.mode%3Dfast")).await.expect(200);
    assert_eq!(names(&selected), ["a"]);
    cluster.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D2")).await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn every_version_shows_the_same_objects() {
    let cluster = with_widgets().await;
    cluster.post(WIDGETS, widget("a", 2)).await.expect(201);
    let beta = "/apis/example.com/v1beta1/namespaces/default/widgets";
    let read = cluster.get(&format!("{beta}/a")).await.expect(200);
    assert_eq!(read["apiVersion"], "example.com/v1beta1");
    let mut changed = read;
    changed["spec"]["size"] = json!(4);
    cluster.put(&format!("{beta}/a"), changed).await.expect(200);
    let read = cluster.get(&format!("{WIDGETS}/a")).await.expect(200);
    assert_eq!((&read["apiVersion"], &read["spec"]["size"]), (&json!("example.com/v1"), &json!(4)));
    let mut watch = cluster.watch(&format!("{beta}?watch=true&resourceVersion=0")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], "example.com/v1beta1");
}

#[tokio::test]
async fn tables_and_scales_follow_the_definition() {
    let cluster = with_widgets().await;
    cluster.post(WIDGETS, widget("a", 2)).await.expect(201);
    let table = cluster.get_as(WIDGETS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.expect(200);
    let columns: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "Size", "Mode", "Age"]);
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap()[..3], [json!("a"), json!(2), json!("fast")]);
    let scale = cluster.get(&format!("{WIDGETS}/a/scale")).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 2);
    cluster.patch(&format!("{WIDGETS}/a/scale"), "merge", json!({"spec": {"replicas": 9}})).await.expect(200);
    assert_eq!(cluster.get(&format!("{WIDGETS}/a")).await.expect(200)["spec"]["size"], 9);
}

#[tokio::test]
async fn lists_of_custom_objects_are_applied_entry_by_entry() {
    let cluster = with_widgets().await;
    let apply = async |manager: &str, id: &str| {
        let body = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": {"size": 1, "parts": [{"id": id, "weight": 1}]},
        });
        let path = format!("{WIDGETS}/a?fieldManager={manager}&force=true");
        cluster.call("PATCH", &path, "application/apply-patch+yaml", body.to_string()).await
    };
    apply("one", "x").await.expect(201);
    let both = apply("two", "y").await.expect(200);
    assert_eq!(both["spec"]["parts"], json!([{"id": "x", "weight": 1}, {"id": "y", "weight": 1}]));
}

#[tokio::test]
async fn a_changed_definition_takes_effect_and_old_objects_stay() {
    let cluster = with_widgets().await;
    cluster.post(WIDGETS, widget("a", 2)).await.expect(201);
    let path = format!("{CRDS}/widgets.example.com");
    let color = json!([{
        "op": "add", "path": "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/color",
        "value": {"type": "string", "default": "red"},
    }]);
    cluster.patch(&path, "json", color).await.expect(200);
    let touched =
        cluster.patch(&format!("{WIDGETS}/a"), "merge", json!({"spec": {"size": 3}})).await.expect(200);
    assert_eq!(touched["spec"]["color"], "red");
    let unserved = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
    cluster.patch(&path, "json", unserved).await.expect(200);
    cluster.get("/apis/example.com/v1beta1/namespaces/default/widgets").await.refusal(404, "NotFound");
    let scope = json!({"spec": {"scope": "Cluster"}});
    let message = cluster.patch(&path, "merge", scope).await.refusal(422, "Invalid");
    assert!(message.contains("spec.scope"), "{message}");
}

#[tokio::test]
async fn objects_go_before_their_definition() {
    let cluster = with_widgets().await;
    let mut janitor = Janitor::default();
    let mut held = widget("held", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.post(WIDGETS, held).await.expect(201);
    cluster.post(WIDGETS, widget("free", 1)).await.expect(201);
    let path = format!("{CRDS}/widgets.example.com");
    let going = cluster.delete(&path, Value::Null).await.expect(200);
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    cluster.post(WIDGETS, widget("late", 1)).await.refusal(405, "MethodNotAllowed");
    cluster.tidy(&mut janitor);
    assert_eq!(names(&cluster.get(WIDGETS).await.expect(200)), ["held"]);
    cluster.get(&path).await.expect(200);
    let release = json!({"metadata": {"finalizers": null}});
    cluster.patch(&format!("{WIDGETS}/held"), "merge", release).await.expect(200);
    cluster.tidy(&mut janitor);
    cluster.get(&path).await.refusal(404, "NotFound");
    cluster.get(WIDGETS).await.refusal(404, "NotFound");
    cluster.get("/apis/example.com").await.refusal(404, "NotFound");
    cluster.post(CRDS, crd()).await.expect(201);
    assert_eq!(names(&cluster.get(WIDGETS).await.expect(200)), [""; 0]);
}

#[tokio::test]
async fn a_taken_name_is_not_served_twice() {
    let cluster = with_widgets().await;
    let mut other = crd();
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]});
    cluster.post(CRDS, other).await.expect(201);
    let crd = cluster.get(&format!("{CRDS}/gadgets.example.com")).await.expect(200);
    assert_eq!(crd["status"]["conditions"][0]["reason"], "ShortNamesConflict");
    cluster.get("/apis/example.com/v1/gadgets").await.refusal(404, "NotFound");
    let mut janitor = Janitor::default();
    cluster.delete(&format!("{CRDS}/widgets.example.com"), Value::Null).await.expect(200);
    cluster.tidy(&mut janitor);
    cluster.get("/apis/example.com/v1/gadgets").await.expect(200);
}
