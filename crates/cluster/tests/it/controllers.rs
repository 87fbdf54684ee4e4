//! Controllers of the embedded cluster, as users see them: they write manifests and look at what comes of it. Pods
//! are put onto nodes by a scheduler of one line.

use crate::cluster::{eventually, is_ready};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, NamespaceResourceScope};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;
use tutti_cluster::{controllers, kubelet};
use tutti_controllers::protection;

/// A cluster of two nodes, and everything goes to the first that lives.
struct World {
    cluster: Cluster,
    scheduler: tokio::task::JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.scheduler.abort();
    }
}

impl World {
    async fn start() -> Self {
        let moment = Duration::from_millis(20);
        let options = ClusterOptions {
            port: Port::Exactly(0),
            nodes: 2,
            kubelets: kubelet::Options {
                start_delay: moment,
                stop_delay: moment,
                lease_interval: Duration::from_millis(300),
                ..kubelet::Options::default()
            },
            controllers: Some(controllers::Options {
                node_grace: Duration::from_secs(2),
                orphan_delay: moment,
                ..controllers::Options::default()
            }),
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start(options).await.expect("the cluster starts");
        let scheduler = tokio::spawn(schedule(cluster.client()));
        Self { cluster, scheduler }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.cluster.client())
    }

    async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: DeserializeOwned + serde::Serialize + Clone + Debug,
    {
        let object = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    async fn merge<K>(&self, name: &str, patch: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn pods(&self, selector: &str) -> Vec<Pod> {
        self.api::<Pod>().list(&ListParams::default().labels(selector)).await.unwrap().items
    }

    /// Waits until an object is as it should be.
    async fn wait<K>(&self, name: &str, what: &str, test: impl Fn(&Value) -> bool) -> Value
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: DeserializeOwned + serde::Serialize + Clone + Debug,
    {
        let (api, test) = (self.api::<K>(), &test);
        eventually(&format!("{name} {what}"), || async {
            let object = serde_json::to_value(api.get_opt(name).await.unwrap()?).unwrap();
            test(&object).then_some(object)
        })
        .await
    }
}

/// Binds every pod to the first node that it could run on.
async fn schedule(client: Client) {
    let pods = Api::<Pod>::all(client.clone());
    let events = watcher(pods, watcher::Config::default().fields("spec.nodeName="));
    let mut events = std::pin::pin!(events.default_backoff().applied_objects());
    while let Some(pod) = events.next().await {
        let Ok(pod) = pod else { continue };
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
        let free = |node: &&Node| {
            let spec = node.spec.clone().unwrap_or_default();
            is_ready(node) && spec.taints.unwrap_or_default().is_empty()
        };
        let Some(node) = nodes.items.iter().find(free) else { continue };
        let name = pod.metadata.name.clone().unwrap();
        let namespace = pod.metadata.namespace.clone().unwrap();
        let binding =
            json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node.metadata.name}});
        let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
        let _: Result<Value, _> =
            pods.create_subresource("binding", &name, &PostParams::default(), &binding).await;
    }
}

/// A template whose pods run so many seconds and end with this code.
fn template(seconds: u32, code: u8) -> Value {
    json!({
        "metadata": {
            "labels": {"app": "x"},
            "annotations": {"tutti.dev/run-seconds": seconds.to_string(), "tutti.dev/exit-code": code.to_string()},
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn jobs_of_both_kinds_run_to_their_end_and_everything_goes_with_them() {
    let world = World::start().await;
    for (name, mode) in [("plain", "NonIndexed"), ("indexed", "Indexed")] {
        let spec =
            json!({"parallelism": 2, "completions": 4, "completionMode": mode, "template": template(0, 0)});
        world.create::<Job>(json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    for name in ["plain", "indexed"] {
        let done = |job: &Value| condition(job, "Complete")["status"] == "True";
        let job = world.wait::<Job>(name, "is complete", done).await;
        assert_eq!(job["status"]["succeeded"], 4, "{job}");
        assert_eq!(condition(&job, "SuccessCriteriaMet")["status"], "True");
        assert_eq!(
            job["status"]["completedIndexes"],
            if name == "plain" { Value::Null } else { json!("0-3") }
        );
        let pods = world.pods(&format!("batch.kubernetes.io/job-name={name}")).await;
        assert_eq!(pods.len(), 4);
        assert!(pods.iter().all(|pod| pod.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)));
    }
    world.api::<Job>().delete("indexed", &DeleteParams::background()).await.unwrap();
    eventually("the pods of a deleted Job go", || async {
        world.pods("batch.kubernetes.io/job-name=indexed").await.is_empty().then_some(())
    })
    .await;
    assert_eq!(world.pods("batch.kubernetes.io/job-name=plain").await.len(), 4);
}

#[tokio::test]
async fn a_job_that_runs_can_be_suspended_resumed_and_deleted() {
    let world = World::start().await;
    let spec = json!({"parallelism": 3, "completions": 3, "template": template(3600, 0)});
    world.create::<Job>(json!({"metadata": {"name": "j"}, "spec": spec})).await;
    world.wait::<Job>("j", "runs", |job| job["status"]["ready"] == 3).await;
    world.merge::<Job>("j", json!({"spec": {"suspend": true}})).await;
    let job = world.wait::<Job>("j", "has stopped", |job| {
        condition(job, "Suspended")["status"] == "True" && job["status"]["terminating"] == 0
    });
    assert_eq!(job.await["status"]["failed"], Value::Null);
    assert!(world.pods("job-name=j").await.is_empty());
    world.merge::<Job>("j", json!({"spec": {"suspend": false, "parallelism": 2}})).await;
    world.wait::<Job>("j", "runs again", |job| job["status"]["ready"] == 2).await;
    world.api::<Job>().delete("j", &DeleteParams::foreground()).await.unwrap();
    eventually("Job and pods are gone", || async {
        let gone = world.api::<Job>().get_opt("j").await.unwrap().is_none();
        (gone && world.pods("job-name=j").await.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_job_that_fails_says_why_and_goes_when_its_time_is_over() {
    let world = World::start().await;
    let spec = json!({"backoffLimit": 0, "ttlSecondsAfterFinished": 1, "template": template(0, 7)});
    world.create::<Job>(json!({"metadata": {"name": "j"}, "spec": spec})).await;
    let failed = |job: &Value| condition(job, "Failed")["reason"] == "BackoffLimitExceeded";
    let job = world.wait::<Job>("j", "has failed", failed).await;
    assert_eq!(job["status"]["failed"], 1);
    eventually("the Job goes", || async {
        let gone = world.api::<Job>().get_opt("j").await.unwrap().is_none();
        (gone && world.pods("job-name=j").await.is_empty()).then_some(())
    })
    .await;
}

fn deployment(replicas: u32, image: &str) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }},
    })
}

fn is_rolled_out(deployment: &Value, replicas: u32) -> bool {
    let status = &deployment["status"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| status[field] == replicas)
}

#[tokio::test]
async fn a_deployment_rolls_out_updates_and_heals_and_its_budget_follows() {
    let world = World::start().await;
    let budget = json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}});
    world.create::<PodDisruptionBudget>(json!({"metadata": {"name": "web"}, "spec": budget})).await;
    world.create::<Deployment>(deployment(4, "v1")).await;
    world.wait::<Deployment>("web", "is there", |d| is_rolled_out(d, 4)).await;
    world.wait::<PodDisruptionBudget>("web", "allows two", |b| b["status"]["disruptionsAllowed"] == 2).await;
    world.merge::<Deployment>("web", deployment(4, "v2")).await;
    let web = world.wait::<Deployment>("web", "is updated", |d| is_rolled_out(d, 4)).await;
    assert_eq!(condition(&web, "Progressing")["reason"], "NewReplicaSetAvailable");
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let sets = world.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
    let mut sizes: Vec<i32> = sets.iter().filter_map(|set| set.spec.replicas).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 4]);
    let victim = world.pods("app=web").await[0].metadata.name.clone().unwrap();
    world.api::<Pod>().delete(&victim, &DeleteParams::default().grace_period(0)).await.unwrap();
    world.merge::<Deployment>("web", json!({"spec": {"replicas": 6}})).await;
    world.wait::<Deployment>("web", "is larger", |d| is_rolled_out(d, 6)).await;
    world.api::<Deployment>().delete("web", &DeleteParams::background()).await.unwrap();
    eventually("everything of it goes", || async {
        let sets = world.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
        (sets.items.is_empty() && world.pods("app=web").await.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failed_node_is_given_up_and_a_restored_one_comes_back() {
    let world = World::start().await;
    let client = world.cluster.client();
    let nodes = Api::<Node>::all(client.clone());
    let leases = Api::<Lease>::namespaced(client, "kube-node-lease");
    eventually("both nodes have leases", || async {
        let names = leases.list(&ListParams::default()).await.unwrap();
        (names.items.len() == 2).then_some(())
    })
    .await;
    world.create::<Deployment>(deployment(2, "v1")).await;
    world.wait::<Deployment>("web", "is there", |d| is_rolled_out(d, 2)).await;
    assert!(
        world
            .pods("app=web")
            .await
            .iter()
            .all(|p| p.spec.as_ref().unwrap().node_name.as_deref() == Some("node-0"))
    );

    let fail = |failed: Value| json!({"metadata": {"annotations": {kubelet::FAILED: failed}}});
    let annotate = |failed| {
        let nodes = nodes.clone();
        async move { nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(fail(failed))).await.unwrap() }
    };
    annotate(json!("true")).await;
    let unreachable = |node: &Node| {
        let taints = node.spec.clone().unwrap_or_default().taints.unwrap_or_default();
        !is_ready(node)
            && taints.iter().any(|t| t.key == "node.kubernetes.io/unreachable" && t.effect == "NoExecute")
    };
    eventually("node-0 is given up", || async {
        Some(nodes.get("node-0").await.unwrap()).filter(unreachable)
    })
    .await;
    world
        .wait::<Deployment>("web", "misses its pods", |d| {
            d["status"]["readyReplicas"].as_u64().unwrap_or(0) == 0
        })
        .await;

    annotate(Value::Null).await;
    eventually("node-0 is back", || async {
        let node = nodes.get("node-0").await.unwrap();
        let taints = node.spec.clone().unwrap_or_default().taints.unwrap_or_default();
        (is_ready(&node) && taints.is_empty()).then_some(())
    })
    .await;
    world.wait::<Deployment>("web", "is whole again", |d| is_rolled_out(d, 2)).await;
}

#[tokio::test]
async fn a_deleted_group_stays_while_a_member_needs_it() {
    let world = World::start().await;
    let groups: Api<DynamicObject> =
        Api::default_namespaced_with(world.cluster.client(), &*protection::pod_groups("v1beta1"));
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 1}}});
    let group = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec});
    let group = groups.create(&PostParams::default(), &serde_json::from_value(group).unwrap()).await.unwrap();
    assert_eq!(group.metadata.finalizers, Some(vec![protection::FINALIZER.to_owned()]));
    let spec =
        json!({"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "main", "image": "i"}]});
    world.create::<Pod>(json!({"metadata": {"name": "member"}, "spec": spec})).await;
    groups.delete("g", &DeleteParams::default()).await.unwrap();
    crate::cluster::wait_for_phase(&world.cluster.client(), "member", "Running").await;
    assert!(groups.get_opt("g").await.unwrap().is_some(), "a member needs it");
    world.api::<Pod>().delete("member", &DeleteParams::default()).await.unwrap();
    eventually("the group goes", || async { groups.get_opt("g").await.unwrap().is_none().then_some(()) })
        .await;
}
