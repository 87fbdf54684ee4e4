//! Gangs from manifest to running pods, on `tutti up` as users run it: all of a gang or none, never a part.

use crate::process::{Folder, Running, tutti};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is watched that nothing starts.
const SUSPENSE: Duration = Duration::from_secs(1);

/// A running `tutti up`.
struct World {
    client: Client,
    _process: Running,
    _folder: Folder,
}

/// A gang in numbers: pods, placed pods, running pods.
type Tally = (usize, usize, usize);

impl World {
    async fn up(arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let file = folder.file("kubeconfig");
        let arguments = [&["up", "--port", "0", "--kubeconfig", &file], arguments].concat();
        let mut process = Running::start(tutti(&arguments));
        process.wait_for_line("Ctrl-C");
        let text = std::fs::read_to_string(&file).unwrap();
        let client = tutti_cluster::kubeconfig::client(&text).await.unwrap();
        Self { client, _process: process, _folder: folder }
    }

    /// Creates everything in a manifest of the examples.
    async fn create_example(&self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        let manifest = std::fs::read_to_string(path).unwrap();
        for object in serde_saphyr::from_multiple::<DynamicObject>(&manifest).unwrap() {
            let types = object.types.as_ref().unwrap();
            let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
            let api: Api<DynamicObject> = if types.kind == "Node" {
                Api::all_with(self.client.clone(), &resource)
            } else {
                Api::default_namespaced_with(self.client.clone(), &resource)
            };
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }

    fn groups(&self) -> Api<DynamicObject> {
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup"));
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    async fn pods(&self, group: &str) -> Vec<Pod> {
        let of_group = ListParams::default().labels(&format!("app={group}"));
        Api::<Pod>::default_namespaced(self.client.clone()).list(&of_group).await.unwrap().items
    }

    async fn tally(&self, group: &str) -> Tally {
        let pods = self.pods(group).await;
        let placed = pods.iter().filter(|pod| node_of(pod).is_some()).count();
        let running = pods.iter().filter(|pod| phase_of(pod) == "Running").count();
        (pods.len(), placed, running)
    }

    async fn wait_for(&self, group: &str, want: Tally) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let tally = self.tally(group).await;
            if tally == want {
                return;
            }
            let refusal = self.refusal(group).await;
            assert!(Instant::now() < deadline, "{group} is {tally:?}, not {want:?}; {refusal:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What the scheduler says about a group that waits.
    async fn refusal(&self, group: &str) -> Option<String> {
        let group = self.groups().get_opt(group).await.unwrap()?;
        let conditions = group.data.pointer("/status/conditions")?.as_array()?;
        let refused = |c: &&Value| c["type"] == "PodGroupInitiallyScheduled" && c["status"] == "False";
        Some(conditions.iter().find(refused)?["message"].as_str()?.to_owned())
    }

    /// Waits until the reason has these words in it: the first one may be about a gang whose pods still arrive.
    async fn wait_for_refusal(&self, group: &str, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reason = self.refusal(group).await;
            if reason.as_ref().is_some_and(|reason| reason.contains(words)) {
                return;
            }
            assert!(Instant::now() < deadline, "{group} waits, and the reason is {reason:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// For a while no pod of the group gets a node.
    async fn nothing_is_placed(&self, group: &str, members: usize) {
        let deadline = Instant::now() + SUSPENSE;
        while Instant::now() < deadline {
            assert_eq!(self.tally(group).await, (members, 0, 0));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn add_node(&self, name: &str, capacity: &Value) {
        let node = json!({"metadata": {"name": name}, "status": {"capacity": capacity}});
        let node = serde_json::from_value(node).unwrap();
        Api::<Node>::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    async fn delete_pods(&self, group: &str) {
        let of_group = ListParams::default().labels(&format!("app={group}"));
        let pods = Api::<Pod>::default_namespaced(self.client.clone());
        pods.delete_collection(&DeleteParams::default(), &of_group).await.unwrap();
    }
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

fn phase_of(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

#[tokio::test]
async fn six_of_eight_never_start_and_all_eight_do_when_a_node_joins() {
    let world = World::up(&["--nodes", "3", "--gpus", "2"]).await;
    world.create_example("gang-8.yaml").await;
    world
        .wait_for_refusal("gang-8", "6 of 8 members fit (most on node-0: 2), short of 2 nvidia.com/gpu")
        .await;
    world.nothing_is_placed("gang-8", 8).await;
    world.add_node("late", &json!({"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "2"})).await;
    world.wait_for("gang-8", (8, 8, 8)).await;
}

#[tokio::test]
async fn a_gang_that_waits_starts_when_another_one_goes() {
    let world = World::up(&["--nodes", "3", "--gpus", "3"]).await;
    world.create_example("gang-4.yaml").await;
    world.wait_for("gang-4", (4, 4, 4)).await;
    world.create_example("gang-8-v1alpha2.yaml").await;
    world.wait_for_refusal("gang-8-v1alpha2", "5 of 8 members fit").await;
    world.nothing_is_placed("gang-8-v1alpha2", 8).await;
    world.delete_pods("gang-4").await;
    world.wait_for("gang-8-v1alpha2", (8, 8, 8)).await;
}

#[tokio::test]
async fn a_mixed_gang_finds_the_one_placement_that_there_is() {
    let world = World::up(&["--nodes", "0"]).await;
    world.create_example("mixed-gang.yaml").await;
    world.create_example("mixed-nodes.yaml").await;
    world.wait_for("mixed", (4, 4, 4)).await;
    let places: BTreeMap<String, String> = world
        .pods("mixed")
        .await
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.clone()?, node_of(pod)?.to_owned())))
        .collect();
    for (pod, node) in &places {
        let size = if pod.contains("large") { "large" } else { "small" };
        assert!(node.starts_with(size), "{places:?}");
    }
    let nodes: std::collections::BTreeSet<&String> = places.values().collect();
    assert_eq!(nodes.len(), 4);
}

#[tokio::test]
async fn a_tree_is_made_of_the_templates_that_pods_name_and_starts_whole() {
    let world = World::up(&["--nodes", "0"]).await;
    let node = json!({"cpu": "4", "memory": "8Gi", "pods": "10"});
    world.add_node("one", &node).await;
    world.add_node("two", &node).await;
    world.create_example("workload.yaml").await;
    // Four places of two CPUs are enough for the workers or for the driver.
    world.wait_for_refusal("training-workers", "").await;
    world.nothing_is_placed("training", 5).await;
    let parent = |group: &DynamicObject| group.data["spec"]["parentCompositePodGroupName"].clone();
    let workers = world.groups().get("training-workers").await.unwrap();
    let driver = world.groups().get("training-driver").await.unwrap();
    assert!(parent(&workers).is_string() && parent(&workers) == parent(&driver));
    world.add_node("late", &node).await;
    world.wait_for("training", (5, 5, 5)).await;
}

#[tokio::test]
async fn pods_without_a_gang_and_without_a_scheduler_name_run_too() {
    let world = World::up(&["--nodes", "1", "--gpus", "0"]).await;
    let pod = json!({
        "metadata": {"name": "plain", "labels": {"app": "plain"}},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    });
    let pods = Api::<Pod>::default_namespaced(world.client.clone());
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    world.wait_for("plain", (1, 1, 1)).await;
}
