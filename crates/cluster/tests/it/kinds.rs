//! Kinds that are stored and shown, through HTTP.

use crate::harness::Cluster;
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
    })
}

#[tokio::test]
async fn a_deployment_is_scaled_without_being_rewritten() {
    let cluster = Cluster::new();
    cluster.post(DEPLOYMENTS, deployment("web")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scale = cluster.get(&path).await.expect(200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    assert_eq!(scale["status"]["selector"], "app=web");

    let mut asked = scale.clone();
    asked["spec"]["replicas"] = json!(3);
    assert_eq!(cluster.put(&path, asked.clone()).await.expect(200)["spec"]["replicas"], 3);
    cluster.put(&path, asked).await.refusal(409, "Conflict");
    let patched = cluster.patch(&path, "merge", json!({"spec": {"replicas": 5}})).await.expect(200);
    assert_eq!(patched["spec"]["replicas"], 5);
    let web = cluster.get(&format!("{DEPLOYMENTS}/web")).await.expect(200);
    assert_eq!(web["spec"]["replicas"], 5);
    assert_eq!(web["metadata"]["generation"], 3);
    assert_eq!(web["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");

    let message =
        cluster.patch(&path, "merge", json!({"spec": {"replicas": -1}})).await.refusal(422, "Invalid");
    assert!(message.contains("spec.replicas"), "{message}");
    cluster.get(&format!("{DEPLOYMENTS}/nobody/scale")).await.refusal(404, "NotFound");
    cluster.post(&path, json!({})).await.refusal(405, "MethodNotAllowed");
}

#[tokio::test]
async fn an_event_is_seen_in_both_groups() {
    let cluster = Cluster::new();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "It happened.",
        "reason": "Happened", "type": "Normal", "action": "Binding", "reportingController": "tutti",
        "reportingInstance": "tutti-0", "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let created = cluster.post(EVENTS, event).await.expect(201);
    assert_eq!(created["note"], "It happened.");
    let core = cluster.get("/api/v1/namespaces/default/events/e").await.expect(200);
    assert_eq!(core["apiVersion"], "v1");
    assert_eq!(core["message"], "It happened.");
    assert_eq!(core["involvedObject"]["name"], "p");
    let selected = cluster.get(&format!("{EVENTS}?fieldSelector=regarding.name%3Dp")).await.expect(200);
    assert_eq!(selected["apiVersion"], "events.k8s.io/v1");
    assert_eq!(selected["items"][0]["regarding"]["name"], "p");
    let mut watch = cluster.watch(&format!("{EVENTS}?watch=true&resourceVersion=0")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["reportingController"], "tutti");
}

#[tokio::test]
async fn the_text_of_a_secret_is_stored_as_data() {
    let cluster = Cluster::new();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"user": "admin"},
    });
    let created = cluster.post("/api/v1/namespaces/default/secrets", secret).await.expect(201);
    assert_eq!(created["data"], json!({"user": "YWRtaW4="}));
    assert_eq!(created["type"], "Opaque");
    assert!(created.get("stringData").is_none());
}
