//! Deletion: finalizers, grace, preconditions, owners, namespaces.

use crate::harness::{Cluster, PODS, pod, pod_with};
use serde_json::{Value, json};
use tutti_cluster::server::Janitor;

const NAMESPACES: &str = "/api/v1/namespaces";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn lease(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {}})
}

#[tokio::test]
async fn an_unbound_pod_goes_at_once_and_is_returned() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let deleted =
        cluster.delete(&format!("{PODS}/p"), json!({"propagationPolicy": "Background"})).await.expect(200);
    assert_eq!(deleted["kind"], "Pod");
    let message = cluster.get(&format!("{PODS}/p")).await.refusal(404, "NotFound");
    assert_eq!(message, "pods \"p\" not found");
}

#[tokio::test]
async fn other_objects_are_answered_with_a_status() {
    let cluster = Cluster::new();
    let created = cluster.post(LEASES, lease("l")).await.expect(201);
    let status = cluster.delete(&format!("{LEASES}/l"), Value::Null).await.expect(200);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(
        status["details"],
        json!({
            "name": "l", "group": "coordination.k8s.io", "kind": "leases", "uid": created["metadata"]["uid"],
        })
    );
}

#[tokio::test]
async fn a_bound_pod_waits_for_its_kubelet() {
    let cluster = Cluster::new();
    let path = format!("{PODS}/p");
    for (options, grace) in [(json!({}), 30), (json!({"gracePeriodSeconds": 5}), 5)] {
        cluster.create_pod(pod("p")).await;
        cluster.bind("p", "n1").await.expect(201);
        let pending = cluster.delete(&path, options).await.expect(200);
        assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], grace);
        assert!(pending["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(pending["metadata"]["generation"], 2);
        // Deleting again changes nothing, neither does asking for a longer wait.
        let before = cluster.server.store().revision();
        assert_eq!(cluster.delete(&path, json!({})).await.expect(200), pending);
        assert_eq!(cluster.delete(&path, json!({"gracePeriodSeconds": 60})).await.expect(200), pending);
        assert_eq!(cluster.server.store().revision(), before);
        let shorter = cluster.delete(&path, json!({"gracePeriodSeconds": 2})).await.expect(200);
        assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 2);
        cluster.delete(&path, json!({"gracePeriodSeconds": 0})).await.expect(200);
        cluster.get(&path).await.refusal(404, "NotFound");
    }
}

#[tokio::test]
async fn a_pod_says_itself_how_long_it_takes() {
    let cluster = Cluster::new();
    cluster
        .create_pod(pod_with("p", |p| {
            p["spec"]["terminationGracePeriodSeconds"] = json!(7);
        }))
        .await;
    cluster.bind("p", "n1").await.expect(201);
    let pending = cluster.delete(&format!("{PODS}/p"), Value::Null).await.expect(200);
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 7);
}

#[tokio::test]
async fn a_finished_pod_goes_at_once() {
    let cluster = Cluster::new();
    let path = format!("{PODS}/p");
    cluster.create_pod(pod("p")).await;
    cluster.bind("p", "n1").await.expect(201);
    cluster
        .patch(&format!("{path}/status"), "merge", json!({"status": {"phase": "Succeeded"}}))
        .await
        .expect(200);
    cluster.delete(&path, Value::Null).await.expect(200);
    cluster.get(&path).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn the_last_finalizer_holds_an_object() {
    let cluster = Cluster::new();
    let path = format!("{LEASES}/l");
    let mut object = lease("l");
    object["metadata"]["finalizers"] = json!(["x.io/a", "x.io/b"]);
    cluster.post(LEASES, object).await.expect(201);
    let pending = cluster.delete(&path, Value::Null).await.expect(200);
    assert_eq!(pending["kind"], "Lease");
    assert!(pending["metadata"]["deletionTimestamp"].is_string());
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let message = cluster.patch(&path, "merge", finalizers(json!(["x.io/c"]))).await.refusal(422, "Invalid");
    assert!(message.contains("no new finalizers"), "{message}");
    cluster.patch(&path, "merge", finalizers(json!(["x.io/b"]))).await.expect(200);
    cluster.get(&path).await.expect(200);
    cluster.patch(&path, "merge", finalizers(Value::Null)).await.expect(200);
    cluster.get(&path).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn a_bound_pod_with_a_finalizer_waits_for_both() {
    let cluster = Cluster::new();
    let path = format!("{PODS}/p");
    cluster.create_pod(pod_with("p", |p| p["metadata"]["finalizers"] = json!(["x.io/a"]))).await;
    cluster.bind("p", "n1").await.expect(201);
    cluster.delete(&path, Value::Null).await.expect(200);
    let pending = cluster.delete(&path, json!({"gracePeriodSeconds": 0})).await.expect(200);
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 0);
    cluster.patch(&path, "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    cluster.get(&path).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn preconditions_are_honoured() {
    let cluster = Cluster::new();
    let created = cluster.create_pod(pod("p")).await;
    let path = format!("{PODS}/p");
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        cluster.delete(&path, json!({"preconditions": wrong})).await.refusal(409, "Conflict");
    }
    let right =
        json!({"uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"]});
    cluster.delete(&path, json!({"preconditions": right})).await.expect(200);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.create_pod(pod(name)).await;
    }
    cluster.delete(&format!("{PODS}?labelSelector=app%20in%20(a,b)"), Value::Null).await.expect(200);
    assert_eq!(crate::harness::names(&cluster.get(PODS).await.expect(200)), ["c"]);
    cluster.delete("/api/v1/pods", Value::Null).await.refusal(405, "MethodNotAllowed");
}

#[tokio::test]
async fn an_eviction_is_a_deletion() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let path = format!("{PODS}/p/eviction");
    let mut wrong = eviction.clone();
    wrong["deleteOptions"] = json!({"preconditions": {"uid": "other"}});
    cluster.post(&path, wrong).await.refusal(409, "Conflict");
    cluster.post(&path, eviction.clone()).await.expect(201);
    cluster.post(&path, eviction).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn dependents_go_when_all_their_owners_are_gone() {
    let cluster = Cluster::new();
    let mut janitor = Janitor::default();
    let owner = async |name: &str| {
        let created = cluster.post(LEASES, lease(name)).await.expect(201);
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": name,
            "uid": created["metadata"]["uid"],
        })
    };
    let (a, b) = (owner("a").await, owner("b").await);
    let foreign = json!({"apiVersion": "example.com/v1", "kind": "Nobody", "name": "r", "uid": "u"});
    for (name, owners) in
        [("one", json!([a])), ("both", json!([a, b])), ("foreign", json!([a, foreign])), ("none", json!([]))]
    {
        cluster.create_pod(pod_with(name, |p| p["metadata"]["ownerReferences"] = owners)).await;
    }
    cluster.tidy(&mut janitor);
    let left = async || {
        let list = cluster.get(PODS).await.expect(200);
        crate::harness::names(&list).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(left().await, ["both", "foreign", "none", "one"]);
    cluster.delete(&format!("{LEASES}/a"), Value::Null).await.expect(200);
    cluster.tidy(&mut janitor);
    assert_eq!(left().await, ["both", "foreign", "none"]);
    cluster.delete(&format!("{LEASES}/b"), Value::Null).await.expect(200);
    cluster.tidy(&mut janitor);
    assert_eq!(left().await, ["foreign", "none"]);
    // A dependent that comes after its owner went.
    cluster
        .create_pod(pod_with("late", |p| {
            p["metadata"]["ownerReferences"] = json!([b]);
        }))
        .await;
    cluster.tidy(&mut janitor);
    assert_eq!(left().await, ["foreign", "none"]);
}

#[tokio::test]
async fn a_namespace_goes_when_it_is_empty() {
    let cluster = Cluster::new();
    let mut janitor = Janitor::default();
    cluster.post(NAMESPACES, json!({"metadata": {"name": "team"}})).await.expect(201);
    let pods = format!("{NAMESPACES}/team/pods");
    for name in ["bound", "loose"] {
        cluster.post(&pods, pod(name)).await.expect(201);
    }
    cluster.post(&format!("{pods}/bound/binding"), crate::harness::binding("bound", "n")).await.expect(201);
    let path = format!("{NAMESPACES}/team");
    let pending = cluster.delete(&path, Value::Null).await.expect(200);
    assert_eq!(pending["status"]["phase"], "Terminating");
    let message = cluster.post(&pods, pod("late")).await.refusal(403, "Forbidden");
    assert!(message.contains("because it is being terminated"), "{message}");

    cluster.tidy(&mut janitor);
    let left = cluster.get(&pods).await.expect(200);
    assert_eq!(crate::harness::names(&left), ["bound"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
    cluster.get(&path).await.expect(200);
    cluster.delete(&format!("{pods}/bound"), json!({"gracePeriodSeconds": 0})).await.expect(200);
    cluster.tidy(&mut janitor);
    cluster.get(&path).await.refusal(404, "NotFound");
}

#[tokio::test]
async fn a_cluster_keeps_its_own_namespaces() {
    let cluster = Cluster::new();
    let list = cluster.get(NAMESPACES).await.expect(200);
    assert_eq!(crate::harness::names(&list), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    cluster.delete(&format!("{NAMESPACES}/default"), Value::Null).await.refusal(403, "Forbidden");
}

#[tokio::test]
async fn the_janitor_runs_by_itself() {
    let cluster = Cluster::new();
    let janitor = tokio::spawn(tutti_cluster::server::run_janitor(cluster.server.clone()));
    let mut events =
        cluster.watch(&format!("{NAMESPACES}?watch=true&fieldSelector=metadata.name%3Dteam")).await;
    cluster.post(NAMESPACES, json!({"metadata": {"name": "team"}})).await.expect(201);
    cluster.post(&format!("{NAMESPACES}/team/pods"), pod("p")).await.expect(201);
    cluster.delete(&format!("{NAMESPACES}/team"), Value::Null).await.expect(200);
    for expected in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(events.next_brief().await.0, expected);
    }
    assert!(crate::harness::names(&cluster.get("/api/v1/pods").await.expect(200)).is_empty());
    janitor.abort();
}

/// A clock that a test turns.
struct TurnedClock(std::sync::Mutex<jiff::Timestamp>);

impl tutti_cluster::store::Environment for TurnedClock {
    fn now(&self) -> jiff::Timestamp {
        *self.0.lock().unwrap()
    }

    fn uid(&self) -> String {
        tutti_cluster::store::SystemEnvironment.uid()
    }

    fn random(&self) -> u64 {
        tutti_cluster::store::SystemEnvironment.random()
    }
}

#[tokio::test]
async fn events_go_an_hour_after_their_last_change() {
    let clock = std::sync::Arc::new(TurnedClock(std::sync::Mutex::new(jiff::Timestamp::UNIX_EPOCH)));
    let cluster =
        Cluster::with(tutti_cluster::server::Options { environment: clock.clone(), ..Default::default() });
    let mut janitor = Janitor::default();
    let events = "/api/v1/namespaces/default/events";
    for name in ["quiet", "repeated"] {
        let event = json!({
            "metadata": {"name": name}, "reason": "Test", "type": "Normal", "count": 1,
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        });
        cluster.post(events, event).await.expect(201);
    }
    let mut pass_minutes = |minutes: i64| {
        *clock.0.lock().unwrap() += jiff::SignedDuration::from_mins(minutes);
        cluster.tidy(&mut janitor);
    };
    pass_minutes(0);
    pass_minutes(50);
    cluster.patch(&format!("{events}/repeated"), "merge", json!({"count": 2})).await.expect(200);
    pass_minutes(9);
    assert_eq!(crate::harness::names(&cluster.get(events).await.expect(200)).len(), 2);
    pass_minutes(2);
    assert_eq!(crate::harness::names(&cluster.get(events).await.expect(200)), ["repeated"]);
    pass_minutes(60);
    assert!(crate::harness::names(&cluster.get(events).await.expect(200)).is_empty());
}

#[tokio::test]
async fn a_namespace_that_does_not_go_says_what_it_waits_for() {
    let cluster = Cluster::new();
    let mut janitor = Janitor::default();
    cluster.post(NAMESPACES, json!({"metadata": {"name": "team"}})).await.expect(201);
    let pods = format!("{NAMESPACES}/team/pods");
    let held = pod_with("held", |p| p["metadata"]["finalizers"] = json!(["example.com/wait"]));
    cluster.post(&pods, held).await.expect(201);
    cluster.post(&pods, pod("loose")).await.expect(201);
    let path = format!("{NAMESPACES}/team");
    cluster.delete(&path, Value::Null).await.expect(200);
    cluster.tidy(&mut janitor);
    let waiting = cluster.get(&path).await.expect(200);
    let condition = |kind: &str| {
        let all = waiting["status"]["conditions"].as_array().unwrap();
        all.iter().find(|c| c["type"] == kind).unwrap()["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        condition("NamespaceContentRemaining"),
        "Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        condition("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances"
    );
    let before = cluster.server.store().revision();
    cluster.tidy(&mut janitor);
    assert_eq!(cluster.server.store().revision(), before, "it is said once");
    cluster
        .patch(&format!("{pods}/held"), "merge", json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    cluster.tidy(&mut janitor);
    cluster.get(&path).await.refusal(404, "NotFound");
}
