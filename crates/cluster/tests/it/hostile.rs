//! Requests that nobody should send: every one gets a 4xx, and the server lives on.

use crate::harness::{Cluster, PODS, pod};
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

/// Values that are wrong almost everywhere.
fn oddities() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}/../\u{10ffff}"),
        json!("x".repeat(5000)),
        json!([]),
        json!([null, 1, "a", {}, []]),
        json!({}),
        json!({"": {"": null}, "a.b[0]": 1}),
    ]
}

/// All places of a value, as JSON pointers.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| places(v, &format!("{at}/{k}"), out)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| places(v, &format!("{at}/{i}"), out)),
        _ => {}
    }
}

fn full_pod() -> Value {
    let mut full = pod("p");
    full["metadata"]["annotations"] = json!({"a": "b"});
    full["metadata"]["finalizers"] = json!(["x.io/a"]);
    full["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]);
    full["spec"]["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
    full["spec"]["nodeSelector"] = json!({"a": "b"});
    full["spec"]["schedulingGroup"] = json!({"podGroupName": "g"});
    full["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    full["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    full["status"] = json!({"phase": "Pending", "conditions": [{"type": "X", "status": "True"}]});
    full
}

fn check(code: u16, what: &str) {
    assert!((200..500).contains(&code), "{code} for {what}");
}

#[tokio::test]
async fn odd_values_anywhere_in_a_body_never_break_the_server() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("target")).await;
    let full = full_pod();
    let mut all = Vec::new();
    places(&full, "", &mut all);
    for place in &all {
        for odd in oddities() {
            let mut body = full.clone();
            *body.pointer_mut(place).unwrap() = odd;
            let what = format!("{place}: {body}");
            check(cluster.post(&format!("{PODS}?dryRun=All"), body.clone()).await.code, &what);
            check(cluster.post(PODS, body.clone()).await.code, &what);
            check(cluster.put(&format!("{PODS}/p"), body.clone()).await.code, &what);
            check(cluster.put(&format!("{PODS}/p/status"), body.clone()).await.code, &what);
            for kind in ["merge", "strategic-merge", "json"] {
                check(cluster.patch(&format!("{PODS}/target"), kind, body.clone()).await.code, &what);
                check(cluster.patch(&format!("{PODS}/target/status"), kind, body.clone()).await.code, &what);
            }
            check(cluster.post(&format!("{PODS}/p/binding"), body.clone()).await.code, &what);
            check(cluster.post(&format!("{PODS}/p/eviction"), body.clone()).await.code, &what);
            check(cluster.delete(&format!("{PODS}/p"), body).await.code, &what);
        }
    }
    // Whatever got in can be listed, in all forms.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    cluster.get_as("/api/v1/pods", table).await.expect(200);
    cluster.get("/api/v1/pods?fieldSelector=status.phase%3DRunning&labelSelector=app").await.expect(200);
}

#[tokio::test]
async fn odd_options_never_break_the_server() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let options = [
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "watch",
        "dryRun",
        "fieldValidation",
        "includeObject",
        "gracePeriodSeconds",
        "propagationPolicy",
    ];
    let values = [
        "",
        "x",
        "-1",
        "0",
        "99999999999999999999999",
        "%00",
        "%ff",
        "%",
        "=",
        "a%3D%3D%3Db",
        "!",
        "(((",
        "a in (",
        "%5C",
        "metadata.name%3D%5C",
        "e30",
        "null",
    ];
    for option in options {
        for value in values {
            let value = value.replace(' ', "+");
            let query = format!("{PODS}?{option}={value}&timeoutSeconds=1");
            if option == "watch" {
                continue;
            }
            check(cluster.get(&query).await.code, &query);
            check(cluster.post(&query, pod("q")).await.code, &query);
            let item = format!("{PODS}/q?{option}={value}");
            check(cluster.patch(&item, "merge", json!({})).await.code, &item);
            check(cluster.delete(&item, Value::Null).await.code, &item);
        }
    }
}

#[tokio::test]
async fn odd_paths_are_not_found() {
    let cluster = Cluster::new();
    for path in [
        "/api//pods",
        "/apis//v1/pods",
        "/api/v1//",
        "/api/v1/namespaces//pods",
        "/api/v1/pods/x/y/z",
        "/api/v1/namespaces/default/pods/a/b/c",
        "/api/v1/namespaces/default/pods/%2e%2e/status",
        "/apis/scheduling.k8s.io/v1/podgroups",
        "/api/v1/namespaces/default/nodes",
        "/%F0%9F%92%A9",
        "/a%00b",
        "/openapi/v3/../../version",
    ] {
        let answer = cluster.get(path).await;
        assert!((400..500).contains(&answer.code), "{path}: {}", answer.code);
        assert_eq!(answer.body["kind"], "Status", "{path}");
    }
    let long = format!("/api/v1/namespaces/default/pods/{}", "x".repeat(10_000));
    assert_eq!(cluster.get(&long).await.code, 414);
}

#[tokio::test]
async fn odd_headers_never_break_the_server() {
    let cluster = Cluster::new();
    for value in
        ["", ";;;", ",,,", "application/json;as=", "application/json;as=Table;g=;v=", "\u{e9}", "a/b;c"]
    {
        for header in ["accept", "content-type"] {
            let request = Request::builder().uri(PODS).method("POST");
            let Ok(request) = request.header(header, value.as_bytes()).body(Body::from("{}")) else {
                continue;
            };
            check(cluster.send(request).await.code, value);
        }
    }
}

#[tokio::test]
async fn torn_bodies_never_break_the_server() {
    let cluster = Cluster::new();
    let text = full_pod().to_string();
    for end in (0..text.len()).step_by(7) {
        let torn = text[..end].to_owned();
        for media_type in ["application/json", "application/yaml"] {
            let answer = cluster.call("POST", PODS, media_type, torn.clone()).await;
            assert!((400..500).contains(&answer.code), "{torn}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn every_resource_survives_odd_fields() {
    let cluster = Cluster::new();
    for resource in tutti_cluster::registry::RESOURCES {
        for version in resource.versions {
            let root = if resource.group.is_empty() {
                "/api/v1".to_owned()
            } else {
                format!("/apis/{}/{version}", resource.group)
            };
            let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
            let collection = format!("{root}{namespace}/{}", resource.plural);
            for field in ["spec", "status", "value", "metadata", "involvedObject", "spec/schedulingPolicy"] {
                for odd in oddities() {
                    let mut body = json!({"metadata": {"name": "x"}});
                    match field.split_once('/') {
                        Some((outer, inner)) => body[outer] = json!({inner: odd}),
                        None => body[field] = odd,
                    }
                    let what = format!("{collection}: {body}");
                    check(cluster.post(&collection, body.clone()).await.code, &what);
                    let item = format!("{collection}/x");
                    check(cluster.put(&item, body.clone()).await.code, &what);
                    for kind in ["merge", "strategic-merge"] {
                        check(cluster.patch(&item, kind, body.clone()).await.code, &what);
                        check(cluster.patch(&format!("{item}/status"), kind, body.clone()).await.code, &what);
                    }
                    check(cluster.get(&collection).await.code, &what);
                    check(cluster.delete(&item, Value::Null).await.code, &what);
                }
            }
        }
    }
}
