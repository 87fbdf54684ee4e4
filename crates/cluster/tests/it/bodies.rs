//! What comes in and what goes out: media types, strictness, forms, dry runs, versions.

use crate::harness::{Cluster, PODS, names, pod, pod_with, version};
use serde_json::{Value, json};

const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";
const GROUPS_ALPHA: &str = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn group(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
}

#[tokio::test]
async fn yaml_is_as_good_as_json() {
    let cluster = Cluster::new();
    let yaml = "kind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - {name: c, image: i}\n";
    let created = cluster.call("POST", PODS, "application/yaml", yaml.to_owned()).await.expect(201);
    assert_eq!(created["spec"]["containers"][0]["image"], "i");
    assert_eq!(created["apiVersion"], "v1");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_the_reason() {
    let cluster = Cluster::new();
    for (media_type, body, code, why) in [
        ("application/json", "{\"a\": ", 400, "not valid JSON: EOF"),
        ("application/json", "[1]", 400, "must be an object"),
        ("application/yaml", "a: [", 400, "not valid YAML"),
        ("application/vnd.kubernetes.protobuf", "k8s\0", 415, "kubectl create -f"),
        ("application/vnd.kubernetes.protobuf", "{}", 400, "not valid protobuf"),
        ("text/plain", "x", 415, "text/plain"),
        ("application/json", "{\"kind\": \"Node\"}", 400, "(Node) does not match"),
        ("application/json", "{\"apiVersion\": \"v2\"}", 400, "(v2) does not match"),
        ("application/json", "{\"metadata\": 5}", 400, "metadata must be an object"),
        ("application/json", "{\"metadata\": {\"name\": 5}}", 400, "metadata.name must be a string"),
        ("application/json", "{\"metadata\": {\"labels\": {\"a\": 1}}}", 400, "map of strings"),
        (
            "application/json",
            "{\"metadata\": {\"name\": \"p\", \"resourceVersion\": \"5\"}}",
            400,
            "should not be set",
        ),
    ] {
        let answer = cluster.call("POST", PODS, media_type, body.to_owned()).await;
        let reason = if code == 400 { "BadRequest" } else { "UnsupportedMediaType" };
        let message = answer.refusal(code, reason);
        assert!(message.contains(why), "{body}: {message}");
    }
    let large = format!("{{\"x\": \"{}\"}}", "y".repeat(3 << 20));
    let answer = cluster.call("POST", PODS, "application/json", large).await;
    answer.refusal(413, "RequestEntityTooLarge");
}

#[tokio::test]
async fn answers_come_only_in_forms_that_exist() {
    let cluster = Cluster::new();
    cluster.get_as(PODS, "application/cbor").await.refusal(406, "NotAcceptable");
    cluster.get_as(PODS, "application/vnd.kubernetes.protobuf,application/json").await.expect(200);
    cluster.call("PUT", PODS, "", String::new()).await.refusal(405, "MethodNotAllowed");
    cluster.call("POST", "/version", "", String::new()).await.refusal(405, "MethodNotAllowed");
    cluster.get(&format!("{PODS}/p/binding")).await.refusal(405, "MethodNotAllowed");
}

#[tokio::test]
async fn tables_and_metadata_are_forms_of_the_same_objects() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("a")).await;
    cluster.create_pod(pod("b")).await;
    let table = cluster.get_as(&format!("{PODS}?limit=1"), TABLE).await.expect(200);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["rows"].as_array().unwrap().len(), 1);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert!(table["metadata"]["continue"].is_string());
    let one = cluster.get_as(&format!("{PODS}/a?includeObject=Object"), TABLE).await.expect(200);
    assert_eq!(one["rows"][0]["object"]["kind"], "Pod");
    let none = cluster.get_as(&format!("{PODS}?includeObject=None"), TABLE).await.expect(200);
    assert!(none["rows"][0].get("object").is_none_or(Value::is_null));
    cluster.get_as(&format!("{PODS}?includeObject=Half"), TABLE).await.refusal(400, "BadRequest");

    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = cluster.get_as(PODS, accept).await.expect(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(names(&list), ["a", "b"]);
    assert!(list["items"][0].get("spec").is_none());
}

#[tokio::test]
async fn a_dry_run_does_everything_but_the_write() {
    let cluster = Cluster::new();
    let existing = cluster.create_pod(pod("old")).await;
    let before = cluster.server.store().revision();
    let path = format!("{PODS}/old");
    let created = cluster.post(&format!("{PODS}?dryRun=All"), pod("new")).await.expect(201);
    assert!(created["metadata"]["uid"].is_string());
    cluster.post(&format!("{PODS}?dryRun=All"), pod("old")).await.refusal(409, "AlreadyExists");
    let bad = pod_with("Bad_Name", |_| {});
    cluster.post(&format!("{PODS}?dryRun=All"), bad).await.refusal(422, "Invalid");
    let patch = json!({"metadata": {"labels": {"x": "1"}}});
    let patched = cluster.patch(&format!("{path}?dryRun=All"), "merge", patch).await.expect(200);
    assert_eq!(patched["metadata"]["labels"]["x"], "1");
    assert_eq!(version(&patched), version(&existing));
    cluster.delete(&format!("{path}?dryRun=All"), Value::Null).await.expect(200);
    cluster.delete(&path, json!({"dryRun": ["All"]})).await.expect(200);
    assert_eq!(cluster.get(&path).await.expect(200), existing);
    assert_eq!(cluster.server.store().revision(), before);
    cluster.post(&format!("{PODS}?dryRun=Maybe"), pod("new")).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn every_served_version_shows_the_same_object() {
    let cluster = Cluster::new();
    let created = cluster.post(GROUPS, group("g")).await.expect(201);
    assert_eq!(created["apiVersion"], "scheduling.k8s.io/v1beta1");
    let alpha = cluster.get(&format!("{GROUPS_ALPHA}/g")).await.expect(200);
    assert_eq!(alpha["apiVersion"], "scheduling.k8s.io/v1alpha2");
    assert_eq!(alpha["metadata"], created["metadata"]);
    // Writing back what was read changes nothing, in either version.
    let before = cluster.server.store().revision();
    cluster.put(&format!("{GROUPS_ALPHA}/g"), alpha).await.expect(200);
    cluster.put(&format!("{GROUPS}/g"), created.clone()).await.expect(200);
    assert_eq!(cluster.server.store().revision(), before);
    let mut events = cluster.watch(&format!("{GROUPS_ALPHA}?watch=true")).await;
    assert_eq!(events.next().await.unwrap()["object"]["apiVersion"], "scheduling.k8s.io/v1alpha2");
    let wrong = pod_with("g", |p| p["apiVersion"] = json!("scheduling.k8s.io/v1beta1"));
    cluster.post(GROUPS_ALPHA, wrong).await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn a_group_is_replaced_only_by_those_who_read_it() {
    let cluster = Cluster::new();
    let mut created = cluster.post(GROUPS, group("g")).await.expect(201);
    created["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let message = cluster.put(&format!("{GROUPS}/g"), created).await.refusal(422, "Invalid");
    assert!(message.contains("metadata.resourceVersion"), "{message}");
    let patch = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}});
    let patched = cluster.patch(&format!("{GROUPS}/g"), "merge", patch).await.expect(200);
    assert_eq!(patched["metadata"]["generation"], Value::Null, "groups have no generation");
}

#[tokio::test]
async fn a_lease_is_created_by_a_put() {
    let cluster = Cluster::new();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let created = cluster.put(path, json!({"spec": {"holderIdentity": "me"}})).await.expect(201);
    assert_eq!(created["metadata"]["name"], "l");
    assert!(created["metadata"].get("generation").is_none());
    cluster.put(&format!("{PODS}/nope"), pod("nope")).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn patches_of_all_kinds_apply() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let path = format!("{PODS}/p");
    let json_patch = json!([{"op": "add", "path": "/metadata/labels/j", "value": "1"}]);
    cluster.patch(&path, "json", json_patch).await.expect(200);
    cluster.patch(&path, "merge", json!({"metadata": {"labels": {"m": "1", "j": null}}})).await.expect(200);
    let strategic =
        json!({"metadata": {"annotations": {"s": "1"}, "labels": {"$patch": "replace", "r": "1"}}});
    let patched = cluster.patch(&path, "strategic-merge", strategic).await.expect(200);
    assert_eq!(patched["metadata"]["labels"], json!({"r": "1"}));
    assert_eq!(patched["metadata"]["annotations"], json!({"s": "1"}));

    let apply = cluster.call("PATCH", &path, "application/apply-patch+cbor", "{}".to_owned()).await;
    apply.refusal(415, "UnsupportedMediaType");
    cluster.patch(&path, "nonsense", json!({})).await.refusal(415, "UnsupportedMediaType");
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"x": "1"}}});
    cluster.patch(&path, "merge", stale).await.refusal(409, "Conflict");
    let renamed = json!({"metadata": {"name": "q"}});
    cluster.patch(&path, "merge", renamed).await.refusal(400, "BadRequest");
    let retyped = json!({"kind": "Node"});
    cluster.patch(&path, "merge", retyped).await.refusal(422, "Invalid");
    cluster.patch(&format!("{PODS}/q"), "merge", json!({})).await.refusal(404, "NotFound");
    let test = json!([{"op": "test", "path": "/kind", "value": "Node"}]);
    cluster.patch(&path, "json", test).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn a_conflict_names_the_object_in_its_details() {
    let cluster = Cluster::new();
    let answer = cluster.get(&format!("{GROUPS}/g")).await;
    assert_eq!(
        answer.body["details"],
        json!({"name": "g", "group": "scheduling.k8s.io", "kind": "podgroups"})
    );
    let message = answer.refusal(404, "NotFound");
    assert_eq!(message, "podgroups.scheduling.k8s.io \"g\" not found");
}

#[tokio::test]
async fn simulated_pods_have_no_logs_and_say_so() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let answer = cluster.get(&format!("{PODS}/p/log?container=c")).await;
    assert_eq!(answer.headers["content-type"], "text/plain");
    assert!(answer.text.contains("simulated"));
    cluster.get(&format!("{PODS}/q/log")).await.refusal(404, "NotFound");
}

fn pod_with_typo() -> Value {
    pod_with("p", |p| {
        p["spec"]["containers"][0]["imge"] = json!("x");
        p["spec"]["nope"] = json!({"deep": [1]});
    })
}

#[tokio::test]
async fn unknown_fields_are_refused_warned_about_or_dropped() {
    let cluster = Cluster::new();
    let strict = cluster.post(&format!("{PODS}?fieldValidation=Strict"), pod_with_typo()).await;
    let message = strict.refusal(400, "BadRequest");
    let start =
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.";
    assert!(message.starts_with(start), "{message}");
    assert!(message.contains("unknown field \"spec.containers[0].imge\""), "{message}");
    assert!(message.contains("unknown field \"spec.nope\""), "{message}");

    let warned = cluster.post(PODS, pod_with_typo()).await;
    let mut warnings: Vec<&str> =
        warned.headers.get_all("warning").iter().map(|w| w.to_str().unwrap()).collect();
    warnings.sort_unstable();
    assert_eq!(
        warnings,
        [r#"299 - "unknown field \"spec.containers[0].imge\"""#, r#"299 - "unknown field \"spec.nope\"""#]
    );
    let created = warned.expect(201);
    assert!(created["spec"].get("nope").is_none());
    assert!(created["spec"]["containers"][0].get("imge").is_none());

    let patch = json!({"spec": {"nope": 1}});
    let ignored = cluster.patch(&format!("{PODS}/p?fieldValidation=Ignore"), "merge", patch.clone()).await;
    assert!(ignored.headers.get("warning").is_none());
    assert_eq!(ignored.expect(200), created);
    let strict = format!("{PODS}/p?fieldValidation=Strict");
    cluster.patch(&strict, "merge", patch).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn strategic_patches_merge_lists_by_their_keys() {
    let cluster = Cluster::new();
    let two = json!([{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]);
    cluster.create_pod(pod_with("p", |p| p["spec"]["containers"] = two)).await;
    let path = format!("{PODS}/p");
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "k"}]}});
    let patched = cluster.patch(&path, "strategic-merge", patch).await.expect(200);
    let images: Vec<&Value> =
        patched["spec"]["containers"].as_array().unwrap().iter().map(|c| &c["image"]).collect();
    assert_eq!(images, ["i", "k"]);
    // The conditions of a status are merged by type: two writers do not undo each other.
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    let status = format!("{path}/status");
    cluster.patch(&status, "strategic-merge", condition("Ready")).await.expect(200);
    let patched = cluster.patch(&status, "strategic-merge", condition("Initialized")).await.expect(200);
    assert_eq!(patched["status"]["conditions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn patches_are_applied_in_the_version_of_the_client() {
    let cluster = Cluster::new();
    cluster.post(GROUPS, group("g")).await.expect(201);
    let patch = json!([{"op": "test", "path": "/apiVersion", "value": "scheduling.k8s.io/v1alpha2"}]);
    cluster.patch(&format!("{GROUPS_ALPHA}/g"), "json", patch).await.expect(200);
}

#[tokio::test]
async fn schemas_are_served_with_a_hash_that_stays() {
    let cluster = Cluster::new();
    let index = cluster.get("/openapi/v3").await.expect(200);
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(url.starts_with("/openapi/v3/api/v1?hash="), "{url}");
    let document = cluster.get(url).await;
    let tag = document.headers["etag"].to_str().unwrap().to_owned();
    assert!(document.expect(200)["components"]["schemas"].is_object());
    let request = http::Request::builder().uri(url).header("if-none-match", tag);
    let again = cluster.send(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!((again.code, again.text.as_str()), (304, ""));
}
