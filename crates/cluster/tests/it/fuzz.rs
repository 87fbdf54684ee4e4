//! Requests made by chance: whatever they say, each is answered, soon, and never with a failure of the server.

use crate::harness::{Cluster, PODS, pod};
use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// No request takes longer, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whoever may have asked for a watch is listened to for so long: it has no end of its own.
const A_LOOK: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
struct Sent {
    method: &'static str,
    path: String,
    query: String,
    accept: &'static str,
    media_type: &'static str,
    body: Vec<u8>,
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["p", "default", "metadata", "spec", "name", "a", "", "status", "containers", "$patch"])
            .prop_map(str::to_owned),
        "[a-z0-9.-]{0,8}",
        "\\PC{0,6}",
    ]
}

/// Any JSON of moderate size.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words().prop_map(Value::from),
        select(vec![
            "1Gi",
            "-1",
            "1e999",
            "99999999999999999999",
            "2026-01-01T00:00:00Z",
            "delete",
            "replace"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(words(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An object that is almost right.
fn damaged() -> impl Strategy<Value = Value> {
    let whole = select(vec![
        pod("p"),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "1"}}}),
        json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "p"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        json!({"kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        json!({"propagationPolicy": "Orphan", "gracePeriodSeconds": 0, "preconditions": {"uid": "x"}}),
        json!({"spec": {"replicas": 3}}),
        json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}, {"op": "copy", "from": "/spec", "path": "/x"}]),
        json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}]}}),
    ]);
    (whole, any::<prop::sample::Index>(), any_json(), any::<bool>()).prop_map(
        |(mut whole, at, odd, damage)| {
            let mut places = Vec::new();
            collect(&whole, String::new(), &mut places);
            if damage && let Some(place) = whole.pointer_mut(at.get(&places).as_str()) {
                *place = odd;
            }
            whole
        },
    )
}

fn collect(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(k, v)| collect(v, format!("{at}/{}", k.replace('/', "~1")), out));
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| collect(v, format!("{at}/{i}"), out)),
        _ => {}
    }
    out.push(at);
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![4 => damaged(), 2 => any_json()].prop_map(|value| value.to_string().into_bytes());
    let torn = (damaged(), any::<prop::sample::Index>()).prop_map(|(value, at)| {
        let mut bytes = value.to_string().into_bytes();
        bytes.truncate(at.index(bytes.len().max(1)));
        bytes
    });
    let yaml = prop::collection::vec(
        select(vec!["a: ", "- ", "\n", "  ", "&x ", "*x", "{", "}", "!!int ", "'", "\t", "1"]),
        0..24,
    )
    .prop_map(|parts| parts.concat().into_bytes());
    let bytes = prop::collection::vec(any::<u8>(), 0..64);
    let protobuf = prop::collection::vec(any::<u8>(), 0..64).prop_map(|raw| {
        let mut body = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12".to_vec();
        body.push(u8::try_from(raw.len()).unwrap_or(0));
        body.extend(raw);
        body
    });
    prop_oneof![6 => text, 1 => torn, 1 => yaml, 1 => bytes, 1 => protobuf, 1 => Just(Vec::new())]
}

fn any_path() -> impl Strategy<Value = String> {
    let collection = select(vec![
        PODS,
        "/api/v1/nodes",
        "/api/v1/namespaces",
        "/api/v1/pods",
        "/api/v1/namespaces/default/events",
        "/api/v1/namespaces/default/configmaps",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
        "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    ]);
    let tail = select(vec![
        "",
        "/p",
        "/p",
        "/p",
        "/p/status",
        "/p/binding",
        "/p/eviction",
        "/p/scale",
        "/p/log",
        "/p/resize",
        "/p/nothing",
    ]);
    let known = (collection, tail).prop_map(|(collection, tail)| format!("{collection}{tail}"));
    let odd = prop::collection::vec(
        select(vec!["/api", "/apis", "/v1", "/", "/%2e%2e", "/%00", "/pods", "/x", "/openapi/v3", "/%ff"]),
        0..6,
    )
    .prop_map(|parts| format!("/{}", parts.concat()));
    prop_oneof![8 => known, 1 => odd]
}

/// A text of the letters that selectors and numbers are made of, as it is in a URL.
fn any_option() -> impl Strategy<Value = String> {
    let letters = select(vec![
        "a",
        "b",
        "app",
        "metadata.name",
        "spec.nodeName",
        "status.phase",
        "%3D",
        "%21",
        "%20in%20",
        "(",
        ")",
        "%2C",
        "%5C",
        "+",
        "notin",
        "0",
        "1",
        "-1",
        "99999999999999999999",
        "true",
        "false",
        "All",
        "NotOlderThan",
        "Exact",
        "Strict",
        "%22",
    ]);
    prop::collection::vec(letters, 0..6).prop_map(|parts| parts.concat())
}

fn any_query() -> impl Strategy<Value = String> {
    let names = select(vec![
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "watch",
        "dryRun",
        "fieldManager",
        "fieldManager",
        "force",
        "fieldValidation",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "includeObject",
        "pretty",
        "nonsense",
    ]);
    prop::collection::vec((names, any_option()), 0..4).prop_map(|options| {
        let mut query = "timeoutSeconds=1".to_owned();
        options.iter().for_each(|(name, value)| query.push_str(&format!("&{name}={value}")));
        query
    })
}

fn any_request() -> impl Strategy<Value = Sent> {
    let method = select(vec!["GET", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS"]);
    let accept = select(vec![
        "application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "*/*",
        "text/html",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ]);
    let media_type = select(vec![
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "text/plain",
        "",
    ]);
    (method, any_path(), any_query(), accept, media_type, any_body()).prop_map(
        |(method, path, query, accept, media_type, body)| Sent {
            method,
            path,
            query,
            accept,
            media_type,
            body,
        },
    )
}

/// Sends requests to one cluster, and then looks at all that got in.
async fn survive(requests: &[Sent]) -> Result<(), TestCaseError> {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    for sent in requests {
        let request = Request::builder()
            .method(sent.method)
            .uri(format!("{}?{}", sent.path, sent.query))
            .header("accept", sent.accept)
            .header("content-type", sent.media_type)
            .body(Body::from(sent.body.clone()));
        let Ok(request) = request else { continue };
        let (patience, may_go_on) =
            if sent.query.contains("watch=") { (A_LOOK, true) } else { (PATIENCE, false) };
        let answer = match tokio::time::timeout(patience, cluster.send(request)).await {
            Ok(answer) => answer,
            Err(_) if may_go_on => continue,
            Err(_) => return Err(TestCaseError::fail(format!("no answer to {sent:?}"))),
        };
        prop_assert!((200..500).contains(&answer.code), "{} to {:?}: {}", answer.code, sent, answer.text);
        if answer.code >= 400 && sent.method != "HEAD" {
            prop_assert_eq!(&answer.body["kind"], "Status", "{:?}: {}", sent, answer.text);
        }
    }
    for accept in ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"] {
        for path in ["/api/v1/pods", "/api/v1/nodes", "/apis/apps/v1/deployments"] {
            let list = cluster.get_as(path, accept).await;
            prop_assert_eq!(list.code, 200, "{}", list.text);
            prop_assert!(list.body.is_object(), "{} is no JSON: {}", path, list.text);
        }
    }
    Ok(())
}

#[test]
fn any_sequence_of_requests_is_answered() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 384, failure_persistence: None, ..Config::default() });
    let requests = prop::collection::vec(any_request(), 1..10);
    runner.run(&requests, |requests| runtime.block_on(survive(&requests))).unwrap();
}
