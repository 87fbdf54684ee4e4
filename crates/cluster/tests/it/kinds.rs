//! Kinds that are stored and shown, through HTTP.

use crate::harness::{Cluster, PODS, names, pod, pod_with};
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

fn budget(selector: &Value, policy: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": selector, "unhealthyPodEvictionPolicy": policy},
    })
}

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A cluster with a running pod `p` and a budget for it whose controller has set this status.
async fn with_budget(policy: &str, ready: &str, status: Value) -> Cluster {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    cluster.bind("p", "n1").await.expect(201);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    cluster.patch(&format!("{PODS}/p/status"), "merge", running).await.expect(200);
    cluster.post(BUDGETS, budget(&json!({"matchLabels": {"app": "p"}}), policy)).await.expect(201);
    let status = json!({"status": status});
    cluster.patch(&format!("{BUDGETS}/b/status"), "merge", status).await.expect(200);
    cluster
}

async fn evict(cluster: &Cluster) -> crate::harness::Answer {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    cluster.post(&format!("{PODS}/p/eviction"), eviction).await
}

#[tokio::test]
async fn an_eviction_asks_the_budget() {
    let known = |allowed: i64, healthy: i64| json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": 1});
    let cluster = with_budget("IfHealthyBudget", "True", known(0, 1)).await;
    let answer = evict(&cluster).await;
    assert_eq!(answer.headers["retry-after"], "10");
    assert_eq!(answer.body["details"]["causes"][0]["reason"], "DisruptionBudget");
    let why = answer.body["details"]["causes"][0]["message"].as_str().unwrap().to_owned();
    assert_eq!(why, "The disruption budget b needs 1 healthy pods and has 1 currently");
    let message = answer.refusal(429, "TooManyRequests");
    assert_eq!(message, "Cannot evict pod as it would violate the pod's disruption budget.");
    cluster.get(&format!("{PODS}/p")).await.expect(200);

    let cluster = with_budget("IfHealthyBudget", "True", known(1, 2)).await;
    evict(&cluster).await.expect(201);
    let budget = cluster.get(&format!("{BUDGETS}/b")).await.expect(200);
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string());
}

#[tokio::test]
async fn a_budget_that_nobody_has_computed_yet_allows_nothing() {
    let cluster = with_budget("IfHealthyBudget", "True", json!({"disruptionsAllowed": 5})).await;
    let answer = evict(&cluster).await;
    let why = answer.body["details"]["causes"][0]["message"].as_str().unwrap().to_owned();
    assert_eq!(why, "The disruption budget b is still being processed by the server.");
}

#[tokio::test]
async fn a_pod_that_is_not_well_may_go_if_the_budget_says_so() {
    let broken = || json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1});
    evict(&with_budget("AlwaysAllow", "False", broken()).await).await.expect(201);
    evict(&with_budget("IfHealthyBudget", "False", broken()).await).await.refusal(429, "TooManyRequests");
    let well =
        json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1});
    evict(&with_budget("IfHealthyBudget", "False", well).await).await.expect(201);
}

#[tokio::test]
async fn pods_run_as_the_account_of_their_namespace() {
    let cluster = Cluster::new();
    let created = cluster.create_pod(pod("p")).await;
    assert_eq!(created["spec"]["serviceAccountName"], "default");
    assert_eq!(created["spec"]["serviceAccount"], "default");
    let other = pod_with("q", |pod| pod["spec"]["serviceAccountName"] = json!("robot"));
    let message = cluster.post(PODS, other.clone()).await.refusal(403, "Forbidden");
    assert!(message.contains("serviceaccount \"robot\" not found"), "{message}");
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let robot = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    cluster.post(accounts, robot).await.expect(201);
    cluster.create_pod(other).await;
    cluster.post("/api/v1/namespaces", json!({"metadata": {"name": "new"}})).await.expect(201);
    let accounts = cluster.get("/api/v1/namespaces/new/serviceaccounts").await.expect(200);
    assert_eq!(names(&accounts), ["default"]);
}

#[tokio::test]
async fn a_service_gets_an_address_of_its_own() {
    let cluster = Cluster::new();
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let port = json!([{"port": 80}]);
    let a =
        cluster.post(services, service("a", json!({"ports": port, "type": "NodePort"}))).await.expect(201);
    let address = a["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10."), "{address}");
    assert_eq!(a["spec"]["clusterIPs"], json!([address]));
    assert_eq!(a["spec"]["ports"][0]["nodePort"], 30000);
    let same = service("b", json!({"ports": port, "clusterIP": address}));
    cluster.post(services, same).await.refusal(403, "Forbidden");
    let headless = cluster.post(services, service("c", json!({"clusterIP": "None"}))).await.expect(201);
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
}

#[tokio::test]
async fn only_one_priority_class_is_the_default() {
    let cluster = Cluster::new();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 1, "globalDefault": true});
    cluster.post(classes, class("a")).await.expect(201);
    let message = cluster.post(classes, class("b")).await.refusal(403, "Forbidden");
    assert!(message.contains("PriorityClass a is already marked as default"), "{message}");
}

#[tokio::test]
async fn a_running_pod_can_be_resized() {
    let cluster = Cluster::new();
    let sized = pod_with("p", |pod| {
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}});
    });
    cluster.create_pod(sized).await;
    cluster.bind("p", "n1").await.expect(201);
    let path = format!("{PODS}/p/resize");
    let asked = json!({"spec": {"nodeName": "n9", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}});
    let resized = cluster.patch(&path, "strategic-merge", asked).await.expect(200);
    assert_eq!(
        resized["spec"]["containers"][0]["resources"],
        json!({"requests": {"cpu": "1500m"}, "limits": {"cpu": "2"}})
    );
    assert_eq!((&resized["spec"]["nodeName"], &resized["metadata"]["generation"]), (&json!("n1"), &json!(2)));
    let beyond = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}});
    let message = cluster.patch(&path, "strategic-merge", beyond).await.refusal(422, "Invalid");
    assert!(message.contains("spec.containers[0].resources.requests"), "{message}");
    cluster.get(&path).await.expect(200);
    cluster.post(&path, json!({})).await.refusal(405, "MethodNotAllowed");
}
