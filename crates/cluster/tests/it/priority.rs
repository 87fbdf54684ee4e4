//! Pods and pod groups take their priority from their class.

use crate::harness::{Cluster, PODS, pod, pod_with};
use serde_json::{Value, json};

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";

async fn class(cluster: &Cluster, name: &str, value: i64, more: Value) {
    let mut body = json!({"metadata": {"name": name}, "value": value});
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    cluster.post(CLASSES, body).await.expect(201);
}

fn of_class(name: &str, class: &str) -> Value {
    pod_with(name, |p| p["spec"]["priorityClassName"] = json!(class))
}

#[tokio::test]
async fn a_pod_without_a_class_has_priority_zero() {
    let cluster = Cluster::new();
    let created = cluster.create_pod(pod("p")).await;
    assert_eq!(created["spec"]["priority"], 0);
    assert_eq!(created["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    assert!(created["spec"].get("priorityClassName").is_none());
}

#[tokio::test]
async fn a_pod_gets_the_value_and_the_policy_of_its_class() {
    let cluster = Cluster::new();
    class(&cluster, "high", 1000, json!({"preemptionPolicy": "Never"})).await;
    let created = cluster.create_pod(of_class("p", "high")).await;
    assert_eq!(created["spec"]["priority"], 1000);
    assert_eq!(created["spec"]["preemptionPolicy"], "Never");
    let message = cluster.post(PODS, of_class("q", "nope")).await.refusal(403, "Forbidden");
    assert_eq!(message, "pods \"q\" is forbidden: no PriorityClass with name nope was found");
}

#[tokio::test]
async fn nobody_may_contradict_the_class() {
    let cluster = Cluster::new();
    class(&cluster, "high", 1000, json!({})).await;
    for (field, wrong, right) in [
        ("priority", json!(7), json!(1000)),
        ("preemptionPolicy", json!("Never"), json!("PreemptLowerPriority")),
    ] {
        let mut body = of_class("p", "high");
        body["spec"][field] = wrong;
        cluster.post(PODS, body.clone()).await.refusal(403, "Forbidden");
        body["spec"][field] = right;
        cluster.post(&format!("{PODS}?dryRun=All"), body).await.expect(201);
    }
}

#[tokio::test]
async fn the_lowest_default_class_is_the_default() {
    let cluster = Cluster::new();
    class(&cluster, "a", 50, json!({"globalDefault": true})).await;
    class(&cluster, "b", 20, json!({})).await;
    class(&cluster, "c", 10, json!({})).await;
    // A second one cannot be made, but a class can become one.
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses/b";
    cluster.patch(path, "merge", json!({"globalDefault": true})).await.expect(200);
    let created = cluster.create_pod(pod("p")).await;
    assert_eq!(created["spec"]["priority"], 20);
    assert_eq!(created["spec"]["priorityClassName"], "b");
}

#[tokio::test]
async fn groups_get_the_value_of_their_class() {
    let cluster = Cluster::new();
    class(&cluster, "high", 1000, json!({})).await;
    let group = |name: &str, class: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": class,
        }})
    };
    let created = cluster.post(GROUPS, group("g", "high")).await.expect(201);
    assert_eq!(created["spec"]["priority"], 1000);
    cluster.post(GROUPS, group("h", "nope")).await.refusal(403, "Forbidden");
    // Above what a group may have.
    cluster.post(GROUPS, group("i", "system-node-critical")).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn the_classes_of_the_system_are_there_from_the_start() {
    let cluster = Cluster::new();
    let created = cluster.create_pod(of_class("p", "system-node-critical")).await;
    assert_eq!(created["spec"]["priority"], 2_000_001_000);
    let mine = json!({"metadata": {"name": "system-mine"}, "value": 1});
    cluster.post(CLASSES, mine).await.refusal(422, "Invalid");
}
