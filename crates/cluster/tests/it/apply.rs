//! Server-side apply: many managers of one object.

use crate::harness::{Cluster, PODS, managed, managers, pod, version};
use serde_json::{Value, json};

const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";

fn path(name: &str) -> String {
    format!("{PODS}/{name}")
}

/// A pod to apply, with these labels.
fn labelled(labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}})
}

fn with_spec(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

fn applied_pod() -> Value {
    with_spec(&json!({"containers": [{"name": "c", "image": "i"}]}))
}

#[tokio::test]
async fn an_apply_creates_what_is_not_there_and_manages_what_it_says() {
    let cluster = Cluster::new();
    let created = cluster.apply(&path("p"), "me", applied_pod()).await.expect(201);
    assert_eq!(created["spec"]["restartPolicy"], "Always", "defaults are set");
    assert_eq!(
        managed(&created, "me").unwrap(),
        &json!({"f:spec": {"f:containers": {
            "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}},
        }}})
    );
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["operation"], &entry["apiVersion"]), (&json!("Apply"), &json!("v1")));
    assert!(entry["time"].is_string() && entry["fieldsType"] == "FieldsV1");
    // Once more is no write at all.
    let again = cluster.apply(&path("p"), "me", applied_pod()).await.expect(200);
    assert_eq!(again, created);
}

#[tokio::test]
async fn what_another_manager_has_is_a_conflict_that_names_it_until_it_is_forced() {
    let cluster = Cluster::new();
    cluster.apply(&path("p"), "one", applied_pod()).await.expect(201);
    cluster
        .apply(&path("p"), "one", with_spec(&json!({"containers": [{"name": "c", "image": "i"}]})))
        .await
        .expect(200);
    let other = with_spec(&json!({"containers": [{"name": "c", "image": "j"}]}));
    let refused = cluster.apply(&path("p"), "two", other.clone()).await;
    let causes = refused.body["details"]["causes"].clone();
    let message = refused.refusal(409, "Conflict");
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.containers[name=\"c\"].image"
    );
    assert_eq!(
        causes,
        json!([{
            "reason": "FieldManagerConflict", "message": "conflict with \"one\"",
            "field": ".spec.containers[name=\"c\"].image",
        }])
    );
    let forced = cluster.apply(&path("p"), "two&force=true", other).await.expect(200);
    assert_eq!(forced["spec"]["containers"][0]["image"], "j");
    assert!(managed(&forced, "two").unwrap().to_string().contains("f:image"));
    assert!(!managed(&forced, "one").unwrap().to_string().contains("f:image"), "it changed hands");
}

#[tokio::test]
async fn conflicts_with_several_managers_are_listed_by_manager() {
    let cluster = Cluster::new();
    cluster.post(&format!("{PODS}?fieldManager=maker"), pod("p")).await.expect(201);
    cluster.apply(&path("p"), "one", labelled(&json!({"a": "1", "b": "1"}))).await.expect(200);
    let refused = cluster.apply(&path("p"), "two", labelled(&json!({"a": "2", "b": "2", "app": "x"}))).await;
    assert_eq!(
        refused.refusal(409, "Conflict"),
        "Apply failed with 3 conflicts: conflicts with \"maker\" using v1:\n- .metadata.labels.app\n\
         conflicts with \"one\":\n- .metadata.labels.a\n- .metadata.labels.b"
    );
}

#[tokio::test]
async fn equal_values_have_several_managers_and_go_with_the_last() {
    let cluster = Cluster::new();
    cluster.apply(&path("p"), "base", applied_pod()).await.expect(201);
    for manager in ["one", "two"] {
        cluster.apply(&path("p"), manager, labelled(&json!({"shared": "x"}))).await.expect(200);
    }
    let left = cluster.apply(&path("p"), "one", labelled(&json!({}))).await.expect(200);
    assert_eq!(left["metadata"]["labels"]["shared"], "x", "two still applies it");
    let gone = cluster.apply(&path("p"), "two", labelled(&json!({}))).await.expect(200);
    assert_eq!(gone["metadata"]["labels"].get("shared"), None);
}

#[tokio::test]
async fn what_is_no_longer_applied_goes_and_what_others_wrote_stays() {
    let cluster = Cluster::new();
    cluster.apply(&path("p"), "base", applied_pod()).await.expect(201);
    cluster.apply(&path("p"), "me", labelled(&json!({"mine": "1", "kept": "1"}))).await.expect(200);
    cluster.patch(&path("p"), "merge", json!({"metadata": {"labels": {"theirs": "1"}}})).await.expect(200);
    let now = cluster.apply(&path("p"), "me", labelled(&json!({"kept": "1"}))).await.expect(200);
    assert_eq!(now["metadata"]["labels"], json!({"kept": "1", "theirs": "1"}));
}

#[tokio::test]
async fn lists_with_keys_are_merged_by_entry_and_lists_without_as_a_whole() {
    let cluster = Cluster::new();
    let first = with_spec(&json!({
        "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }));
    let created = cluster.apply(&path("p"), "one", first).await.expect(201);
    let text = managed(&created, "one").unwrap().to_string();
    assert!(
        text.contains(r#"k:{\"containerPort\":80,\"protocol\":\"TCP\"}"#),
        "the default is part of the key: {text}"
    );
    assert!(text.contains(r#""f:tolerations":{}"#), "{text}");
    // Another manager adds an annotation-like label of its own and conflicts on the whole atomic list.
    let atomic = with_spec(&json!({"tolerations": [{"key": "b", "operator": "Exists"}]}));
    let message = cluster.apply(&path("p"), "two", atomic).await.refusal(409, "Conflict");
    assert!(message.ends_with("conflict with \"one\": .spec.tolerations"), "{message}");
}

#[tokio::test]
async fn entries_of_a_list_belong_to_those_who_apply_them() {
    let cluster = Cluster::new();
    let owner = |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
    let owned = |owners: Value, finalizers: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "p", "ownerReferences": owners, "finalizers": finalizers,
        }})
    };
    cluster.apply(&path("p"), "base", applied_pod()).await.expect(201);
    cluster.apply(&path("p"), "one", owned(json!([owner("a", "1")]), json!(["x.io/a"]))).await.expect(200);
    let both = cluster
        .apply(&path("p"), "two", owned(json!([owner("b", "2")]), json!(["x.io/b"])))
        .await
        .expect(200);
    assert_eq!(both["metadata"]["ownerReferences"], json!([owner("a", "1"), owner("b", "2")]));
    assert_eq!(both["metadata"]["finalizers"], json!(["x.io/a", "x.io/b"]));
    assert!(managed(&both, "two").unwrap().to_string().contains(r#"v:\"x.io/b\""#));
    let one_left = cluster.apply(&path("p"), "one", owned(json!([]), json!([]))).await.expect(200);
    assert_eq!(one_left["metadata"]["ownerReferences"], json!([owner("b", "2")]));
    assert_eq!(one_left["metadata"]["finalizers"], json!(["x.io/b"]));
}

#[tokio::test]
async fn a_dry_run_tells_and_does_nothing() {
    let cluster = Cluster::new();
    let told = cluster.apply(&path("p"), "me&dryRun=All", applied_pod()).await.expect(201);
    assert_eq!(managers(&told), ["me"]);
    cluster.get(&path("p")).await.refusal(404, "NotFound");
    cluster.apply(&path("p"), "me", applied_pod()).await.expect(201);
    let before = cluster.get(&path("p")).await.expect(200);
    let told = cluster.apply(&path("p"), "two&dryRun=All", labelled(&json!({"x": "y"}))).await.expect(200);
    assert_eq!(told["metadata"]["labels"]["x"], "y");
    assert_eq!(cluster.get(&path("p")).await.expect(200), before);
}

#[tokio::test]
async fn bad_applies_are_refused_with_a_reason() {
    let cluster = Cluster::new();
    cluster.apply(&path("p"), "me", applied_pod()).await.expect(201);
    let media_type = "application/apply-patch+yaml";
    let nobody = cluster.call("PATCH", &path("p"), media_type, applied_pod().to_string()).await;
    let message = nobody.refusal(422, "Invalid");
    assert!(message.contains("fieldManager: Required value: is required for apply patch"), "{message}");
    let cases = [
        (json!({"kind": "Pod", "metadata": {"name": "p"}}), "invalid object type"),
        (json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "p"}}), "invalid object type"),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}}), "does not match the name"),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": []}), "metadata must be an object"),
        (with_spec(&json!({"contaners": []})), ".spec.contaners: field not declared in schema"),
        (with_spec(&json!({"containers": "x"})), ".spec.containers"),
        (with_spec(&json!({"containers": [{"image": "i"}]})), "none of its keys"),
        (
            with_spec(&json!({"containers": [{"name": "c"}, {"name": "c"}]})),
            "duplicate entries for key [name=\"c\"]",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "managedFields": []}}),
            "metadata.managedFields must be nil",
        ),
    ];
    for (body, expected) in cases {
        let message = cluster.apply(&path("p"), "me", body.clone()).await.refusal(400, "BadRequest");
        assert!(message.contains(expected), "{body}: {message}");
    }
    let stale = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "resourceVersion": "1"}});
    cluster.apply(&path("p"), "me", stale).await.refusal(409, "Conflict");
    let other = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "x"}});
    cluster.apply(&path("p"), "me", other.clone()).await.refusal(409, "Conflict");
    cluster
        .apply(&path("new"), "me", json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "x"}}))
        .await
        .refusal(409, "Conflict");
    let forced = cluster.patch(&format!("{}?force=true", path("p")), "merge", json!({})).await;
    assert!(forced.refusal(422, "Invalid").contains("force: Forbidden"));
    let long = "x".repeat(200);
    cluster.apply(&path("p"), &long, applied_pod()).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn the_status_is_applied_through_its_own_endpoint_only() {
    let cluster = Cluster::new();
    cluster.apply(&path("p"), "me", applied_pod()).await.expect(201);
    let mut both = labelled(&json!({"x": "y"}));
    both["status"] = json!({"message": "hello"});
    let main = cluster.apply(&path("p"), "main", both.clone()).await.expect(200);
    assert_eq!(main["status"].get("message"), None);
    assert_eq!(managed(&main, "main").unwrap(), &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
    let status = cluster.apply(&format!("{}/status", path("p")), "st", both).await.expect(200);
    assert_eq!(status["status"]["message"], "hello");
    assert_eq!(managed(&status, "st").unwrap(), &json!({"f:status": {"f:message": {}}}));
    let entries = status["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().any(|e| e["manager"] == "st" && e["subresource"] == "status"));
    let nameless = json!({"apiVersion": "v1", "kind": "Pod"});
    cluster.apply(&format!("{}/status", path("none")), "st", nameless).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn objects_that_nobody_managed_belong_to_a_past_before_the_first_apply() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let bare = cluster.patch(&path("p"), "merge", reset).await.expect(200);
    assert_eq!(bare["metadata"].get("managedFields"), None);
    // Updates do not begin to track.
    let bare =
        cluster.patch(&path("p"), "merge", json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    assert_eq!(bare["metadata"].get("managedFields"), None);
    let applied = cluster.apply(&path("p"), "me", labelled(&json!({"a": "b"}))).await.expect(200);
    assert_eq!(managers(&applied), ["before-first-apply", "me"]);
    let message =
        cluster.apply(&path("p"), "me", labelled(&json!({"a": "c"}))).await.refusal(409, "Conflict");
    assert!(message.contains("\"before-first-apply\" using v1: .metadata.labels.a"), "{message}");
}

#[tokio::test]
async fn kubectl_takes_over_what_it_applied_on_the_client_side() {
    let cluster = Cluster::new();
    let mut body = pod("p");
    let text = body.to_string();
    body["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": text});
    cluster.post(&format!("{PODS}?fieldManager=kubectl-client-side-apply"), body).await.expect(201);
    cluster
        .patch(
            &format!("{}?fieldManager=other", path("p")),
            "merge",
            json!({"metadata": {"labels": {"x": "1"}}}),
        )
        .await
        .expect(200);
    let mut wanted = pod("p");
    wanted["metadata"]["labels"]["app"] = json!("changed");
    // Anybody else is refused …
    cluster.apply(&path("p"), "someone", wanted.clone()).await.refusal(409, "Conflict");
    // … and kubectl too where the field is no longer what it had applied.
    let mut theirs = wanted.clone();
    theirs["metadata"]["labels"]["x"] = json!("2");
    let message = cluster.apply(&path("p"), "kubectl", theirs).await.refusal(409, "Conflict");
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"other\" using v1: .metadata.labels.x");
    let done = cluster.apply(&path("p"), "kubectl", wanted).await.expect(200);
    assert_eq!(done["metadata"]["labels"], json!({"app": "changed", "x": "1"}));
    let kept = done["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str();
    assert!(kept.unwrap().contains("changed"), "the annotation follows: {kept:?}");
}

#[tokio::test]
async fn every_version_manages_its_own_fields() {
    let cluster = Cluster::new();
    let alpha = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/g";
    let body = |version: &str, mode: Value| {
        json!({
            "apiVersion": format!("scheduling.k8s.io/{version}"), "kind": "PodGroup", "metadata": {"name": "g"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": mode},
        })
    };
    let created = cluster.apply(alpha, "old", body("v1alpha2", json!("PodGroup"))).await.expect(201);
    assert_eq!(created["metadata"]["managedFields"][0]["apiVersion"], "scheduling.k8s.io/v1alpha2");
    let beta = format!("{GROUPS}/g");
    let same = cluster.apply(&beta, "new", body("v1beta1", json!({"all": {}}))).await.expect(200);
    assert_eq!(managers(&same), ["new", "old"]);
    // Whoever applies stays the same when it moves to a newer version.
    let moved = cluster.apply(&beta, "old", body("v1beta1", json!({"all": {}}))).await.expect(200);
    assert_eq!(managers(&moved), ["new", "old"]);
    let entries = moved["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().all(|e| e["apiVersion"] == "scheduling.k8s.io/v1beta1"), "{entries:?}");
}

#[tokio::test]
async fn a_watch_sees_an_apply_once_and_a_repeated_one_not_at_all() {
    let cluster = Cluster::new();
    let created = cluster.apply(&path("p"), "me", applied_pod()).await.expect(201);
    let mut events = cluster.watch(&format!("{PODS}?watch=true&resourceVersion={}", version(&created))).await;
    cluster.apply(&path("p"), "me", applied_pod()).await.expect(200);
    assert!(events.is_quiet().await);
    cluster.apply(&path("p"), "two", labelled(&json!({"x": "y"}))).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(managers(&event["object"]), ["me", "two"]);
}
