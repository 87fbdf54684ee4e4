//! What a deletion means for those whom the deleted object owns.

use crate::harness::{Cluster, PODS, names, pod_with};
use serde_json::{Value, json};
use tutti_cluster::server::Janitor;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

struct World {
    cluster: Cluster,
    janitor: Janitor,
}

impl World {
    fn new() -> Self {
        Self { cluster: Cluster::new(), janitor: Janitor::default() }
    }

    /// A lease, and how its dependents refer to it.
    async fn owner(&self, name: &str) -> Value {
        let body = json!({"metadata": {"name": name}, "spec": {}});
        let created = self.cluster.post(LEASES, body).await.expect(201);
        let uid = &created["metadata"]["uid"];
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": name, "uid": uid})
    }

    async fn pod(&self, name: &str, owners: Value) -> Value {
        self.cluster.create_pod(pod_with(name, |p| p["metadata"]["ownerReferences"] = owners)).await
    }

    async fn delete(&self, name: &str, options: Value) -> Value {
        self.cluster.delete(&format!("{LEASES}/{name}"), options).await.expect(200)
    }

    fn tidy(&mut self) {
        self.cluster.tidy(&mut self.janitor);
    }

    async fn pods(&self) -> Vec<String> {
        let list = self.cluster.get(PODS).await.expect(200);
        names(&list).into_iter().map(str::to_owned).collect()
    }

    async fn lease_exists(&self, name: &str) -> bool {
        self.cluster.get(&format!("{LEASES}/{name}")).await.code == 200
    }
}

fn blocking(owner: &Value) -> Value {
    let mut owner = owner.clone();
    owner["blockOwnerDeletion"] = json!(true);
    owner
}

#[tokio::test]
async fn orphans_are_set_free_before_their_owner_goes() {
    for options in [json!({"propagationPolicy": "Orphan"}), json!({"orphanDependents": true})] {
        let mut world = World::new();
        let owner = world.owner("o").await;
        world.pod("p", json!([owner])).await;
        let pending = world.delete("o", options).await;
        assert_eq!(pending["metadata"]["finalizers"], json!(["orphan"]));
        assert!(pending["metadata"]["deletionTimestamp"].is_string());
        world.tidy();
        assert!(!world.lease_exists("o").await);
        let free = world.cluster.get(&format!("{PODS}/p")).await.expect(200);
        assert_eq!(free["metadata"].get("ownerReferences"), None);
    }
}

#[tokio::test]
async fn in_the_foreground_an_owner_waits_for_those_who_block_it() {
    let mut world = World::new();
    let owner = world.owner("o").await;
    world.pod("p", json!([blocking(&owner)])).await;
    world.cluster.bind("p", "n").await.expect(201);
    let pending = world.delete("o", json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!(pending["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    world.tidy();
    let dependent = world.cluster.get(&format!("{PODS}/p")).await.expect(200);
    assert!(dependent["metadata"]["deletionTimestamp"].is_string(), "it was asked to go");
    assert!(world.lease_exists("o").await, "the owner waits while its kubelet stops the pod");
    world.cluster.delete(&format!("{PODS}/p"), json!({"gracePeriodSeconds": 0})).await.expect(200);
    world.tidy();
    assert!(!world.lease_exists("o").await);
}

#[tokio::test]
async fn those_who_do_not_block_are_not_waited_for() {
    let mut world = World::new();
    let owner = world.owner("o").await;
    world.pod("p", json!([owner])).await;
    world.cluster.bind("p", "n").await.expect(201);
    world.delete("o", json!({"propagationPolicy": "Foreground"})).await;
    world.tidy();
    assert!(!world.lease_exists("o").await);
    let dependent = world.cluster.get(&format!("{PODS}/p")).await.expect(200);
    assert!(dependent["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn in_the_foreground_dependents_of_dependents_go_first_too() {
    let mut world = World::new();
    let top = world.owner("top").await;
    let middle = json!({"metadata": {"name": "middle", "ownerReferences": [blocking(&top)]}, "spec": {}});
    let middle = world.cluster.post(LEASES, middle).await.expect(201);
    let reference = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "middle",
        "uid": middle["metadata"]["uid"], "blockOwnerDeletion": true,
    });
    world.pod("p", json!([reference])).await;
    world.cluster.bind("p", "n").await.expect(201);
    world.tidy();
    world.delete("top", json!({"propagationPolicy": "Foreground"})).await;
    world.tidy();
    let waiting = world.cluster.get(&format!("{LEASES}/middle")).await.expect(200);
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(world.lease_exists("top").await);
    world.cluster.delete(&format!("{PODS}/p"), json!({"gracePeriodSeconds": 0})).await.expect(200);
    world.tidy();
    assert!(!world.lease_exists("middle").await && !world.lease_exists("top").await);
}

#[tokio::test]
async fn whoever_has_another_owner_loses_only_the_reference() {
    let mut world = World::new();
    let (a, b) = (world.owner("a").await, world.owner("b").await);
    world.pod("p", json!([blocking(&a), b])).await;
    world.delete("a", json!({"propagationPolicy": "Foreground"})).await;
    world.tidy();
    assert!(!world.lease_exists("a").await);
    let kept = world.cluster.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(kept["metadata"]["ownerReferences"], json!([b]));
}

#[tokio::test]
async fn a_policy_can_come_with_the_query_and_an_unknown_one_is_refused() {
    let mut world = World::new();
    let owner = world.owner("o").await;
    world.pod("p", json!([owner])).await;
    let path = format!("{LEASES}/o?propagationPolicy");
    let message = world.cluster.delete(&format!("{path}=Never"), Value::Null).await.refusal(422, "Invalid");
    assert!(message.contains("\"Never\""), "{message}");
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    world.cluster.delete(&format!("{LEASES}/o"), both).await.refusal(422, "Invalid");
    world.cluster.delete(&format!("{path}=Orphan"), Value::Null).await.expect(200);
    world.tidy();
    assert_eq!(world.pods().await, ["p"]);
}

#[tokio::test]
async fn jobs_leave_their_pods_unless_the_deletion_says_otherwise() {
    let mut world = World::new();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}})
    };
    for (name, options) in [("kept", Value::Null), ("gone", json!({"propagationPolicy": "Background"}))] {
        let created = world.cluster.post(jobs, job(name)).await.expect(201);
        let owner =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": created["metadata"]["uid"]});
        world.pod(&format!("{name}-pod"), json!([owner])).await;
        world.cluster.delete(&format!("{jobs}/{name}"), options).await.expect(200);
    }
    world.tidy();
    assert_eq!(world.pods().await, ["kept-pod"]);
    assert!(names(&world.cluster.get(jobs).await.expect(200)).is_empty());
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector_with_a_policy_and_without_doing_it_in_a_dry_run() {
    let mut world = World::new();
    let owner = world.owner("o").await;
    for name in ["a", "b"] {
        world.pod(name, json!([owner])).await;
    }
    world.cluster.delete(&format!("{PODS}?labelSelector=app%3Da"), Value::Null).await.expect(200);
    assert_eq!(world.pods().await, ["b"]);
    world.cluster.delete(PODS, json!({"dryRun": ["All"]})).await.expect(200);
    assert_eq!(world.pods().await, ["b"]);
    world.cluster.delete(LEASES, json!({"propagationPolicy": "Orphan"})).await.expect(200);
    world.tidy();
    assert!(!world.lease_exists("o").await);
    assert_eq!(world.pods().await, ["b"]);
}
