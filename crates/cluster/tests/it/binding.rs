//! The rules of binding, one by one.

use crate::harness::{Cluster, PODS, binding, pod, pod_with};
use serde_json::{Value, json};

async fn pod_now(cluster: &Cluster) -> Value {
    cluster.get(&format!("{PODS}/p")).await.expect(200)
}

async fn bind_with(cluster: &Cluster, change: impl FnOnce(&mut Value)) -> crate::harness::Answer {
    let mut body = binding("p", "n1");
    change(&mut body);
    cluster.post(&format!("{PODS}/p/binding"), body).await
}

#[tokio::test]
async fn the_name_must_be_that_of_the_url() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    bind_with(&cluster, |b| b["metadata"]["name"] = json!("q")).await.refusal(400, "BadRequest");
    bind_with(&cluster, |b| b["metadata"]["namespace"] = json!("other")).await.refusal(400, "BadRequest");
    assert!(pod_now(&cluster).await["spec"].get("nodeName").is_none());
}

#[tokio::test]
async fn the_target_must_be_a_node_with_a_name() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    bind_with(&cluster, |b| b["target"]["kind"] = json!("Pod")).await.refusal(400, "BadRequest");
    bind_with(&cluster, |b| b["target"] = json!({})).await.refusal(400, "BadRequest");
    bind_with(&cluster, |b| b["target"] = json!("n1")).await.refusal(400, "BadRequest");
    bind_with(&cluster, |b| b["kind"] = json!("Pod")).await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn the_pod_must_exist() {
    Cluster::new().bind("p", "n1").await.refusal(404, "NotFound");
}

#[tokio::test]
async fn uid_and_version_are_preconditions() {
    let cluster = Cluster::new();
    let created = cluster.create_pod(pod("p")).await;
    bind_with(&cluster, |b| b["metadata"]["uid"] = json!("other")).await.refusal(409, "Conflict");
    bind_with(&cluster, |b| b["metadata"]["resourceVersion"] = json!("1")).await.refusal(409, "Conflict");
    let right = |b: &mut Value| {
        b["metadata"]["uid"] = created["metadata"]["uid"].clone();
        b["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    };
    bind_with(&cluster, right).await.expect(201);
}

#[tokio::test]
async fn a_pod_that_is_being_deleted_is_not_bound() {
    let cluster = Cluster::new();
    cluster.create_pod(pod_with("p", |p| p["metadata"]["finalizers"] = json!(["x.io/a"]))).await;
    cluster.delete(&format!("{PODS}/p"), Value::Null).await.expect(200);
    let message = cluster.bind("p", "n1").await.refusal(409, "Conflict");
    assert!(message.contains("pod p is being deleted, cannot be assigned to a host"), "{message}");
}

#[tokio::test]
async fn a_bound_pod_is_not_bound_again() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    cluster.bind("p", "n1").await.expect(201);
    for node in ["n1", "n2"] {
        let message = cluster.bind("p", node).await.refusal(409, "Conflict");
        assert_eq!(
            message,
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\""
        );
    }
}

#[tokio::test]
async fn a_gated_pod_is_not_bound() {
    let cluster = Cluster::new();
    cluster
        .create_pod(pod_with("p", |p| {
            p["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
        }))
        .await;
    let message = cluster.bind("p", "n1").await.refusal(409, "Conflict");
    assert!(message.contains("pod p has non-empty .spec.schedulingGates"), "{message}");
}

#[tokio::test]
async fn a_binding_sets_the_node_and_brings_its_labels_and_annotations() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let status = json!({"status": {
        "nominatedNodeName": "n9",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
            {"type": "Other", "status": "True"},
        ],
    }});
    cluster.patch(&format!("{PODS}/p/status"), "merge", status).await.expect(200);
    let answer = bind_with(&cluster, |b| {
        b["metadata"]["annotations"] = json!({"x.io/why": "best"});
        b["metadata"]["labels"] = json!({"topology": "r1"});
    })
    .await
    .expect(201);
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let bound = pod_now(&cluster).await;
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert!(bound["status"].get("nominatedNodeName").is_none());
    assert_eq!(bound["metadata"]["annotations"], json!({"x.io/why": "best"}));
    assert_eq!(bound["metadata"]["labels"], json!({"app": "p", "topology": "r1"}));
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    let scheduled: Vec<&Value> = conditions.iter().filter(|c| c["type"] == "PodScheduled").collect();
    assert_eq!(scheduled.len(), 1);
    assert_eq!(scheduled[0]["status"], "True");
    assert!(scheduled[0].get("reason").is_none());
    assert_eq!(conditions.len(), 2);
}

#[tokio::test]
async fn a_dry_binding_binds_nothing() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    cluster.post(&format!("{PODS}/p/binding?dryRun=All"), binding("p", "n1")).await.expect(201);
    assert!(pod_now(&cluster).await["spec"].get("nodeName").is_none());
}

#[tokio::test]
async fn of_many_bindings_at_once_one_wins() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let nodes: Vec<String> = (0..8).map(|i| format!("n{i}")).collect();
    let answers = futures::future::join_all(nodes.iter().map(|node| cluster.bind("p", node))).await;
    assert_eq!(answers.iter().filter(|a| a.code == 201).count(), 1);
    assert!(answers.iter().all(|a| matches!(a.code, 201 | 409)));
}
