//! Volumes that are there before their pods: where they can be reached from, how many a node can attach, and who else
//! uses them.

use super::storage::{Storage, reached_by};
use crate::world::World;
use anyhow::ensure;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use tutti_cluster::kubelet::NodeTemplate;

const ZONE: &str = "topology.kubernetes.io/zone";
const DRIVER: &str = "csi.e2e.tutti.dev";

pub(super) async fn bound_volumes_say_where_members_can_go(world: &World<'_>) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(where_they_are_reached(world, &storage)).await
}

async fn where_they_are_reached(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    let node = |name: &str, zone: &str, cpus: &str| {
        NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi")]).label(ZONE, zone)
    };
    world.add(node("a", "a", "1")).await?;
    world.add(node("b1", "b", "1")).await?;
    // All the room in the world is of no use where no volume is.
    world.add(node("c", "c", "16")).await?;
    storage.class_at_once("there").await?;
    let once = "ReadWriteOnce";
    let on_a = [reached_by("kubernetes.io/hostname", "a")];
    storage.bound_claim("on-a", "there", once, &json!({}), &on_a).await?;
    let in_b = [reached_by(ZONE, "b")];
    storage.bound_claim("in-b", "there", once, &json!({}), &in_b).await?;
    // As volumes of old say it.
    storage.bound_claim("labelled-b", "there", once, &json!({ZONE: "b"}), &[]).await?;
    world.gang("g", 3).await?;
    for claim in ["on-a", "in-b", "labelled-b"] {
        storage.pod(&format!("g-{claim}"), Some("g"), claim).await?;
    }
    let condition = world.wait_condition("g", "False", "2 of 3 members fit").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    ensure!(message.contains("out of reach of a volume"), "{message}");
    ensure!(world.counts().await?.0 == 0, "somebody started");
    world.add(node("b2", "b", "1")).await?;
    world.wait_running(3).await?;
    for (pod, zone) in [("g-on-a", "a"), ("g-in-b", "b"), ("g-labelled-b", "b")] {
        let node = world.node_of(pod).await?.unwrap_or_default();
        ensure!(node.starts_with(zone), "{pod} is on {node}");
    }
    Ok(())
}

pub(super) async fn nodes_get_no_more_volumes_than_they_can_attach(world: &World<'_>) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    let told = storage.tell(as_many_as_are_attached(world, &storage)).await;
    let drivers = Api::<CSIDriver>::all(world.client.clone());
    let attaching = Api::<CSINode>::all(world.client.clone());
    // What was not created need not be removed.
    let _ = drivers.delete(DRIVER, &DeleteParams::default()).await;
    for node in ["two", "one", "more"] {
        let _ = attaching.delete(node, &DeleteParams::default()).await;
    }
    told
}

async fn as_many_as_are_attached(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    // The attaching itself is left out.
    let driver = json!({"metadata": {"name": DRIVER}, "spec": {"attachRequired": false}});
    let drivers = Api::<CSIDriver>::all(world.client.clone());
    drivers.create(&PostParams::default(), &serde_json::from_value(driver)?).await?;
    attaching_node(world, "two", 2).await?;
    attaching_node(world, "one", 1).await?;
    storage.class_at_once("attached").await?;
    world.gang("g", 4).await?;
    for member in 0..4 {
        let claim = format!("data-{member}");
        let source = [("csi", json!({"driver": DRIVER, "volumeHandle": storage.name(&claim)}))];
        storage.bound_claim(&claim, "attached", "ReadWriteOnce", &json!({}), &source).await?;
        storage.pod(&format!("g-{member}"), Some("g"), &claim).await?;
    }
    let condition = world.wait_condition("g", "False", "3 of 4 members fit").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    ensure!(message.contains(&format!("no more volumes of {DRIVER} can be attached")), "{message}");
    ensure!(world.counts().await?.0 == 0, "somebody started");
    // Somebody without volumes is not held back.
    world.pod("plain", None, "1").await?;
    world.wait_running(1).await?;
    attaching_node(world, "more", 1).await?;
    world.wait_running(5).await
}

/// A node with room for many pods, but for few volumes.
async fn attaching_node(world: &World<'_>, name: &str, volumes: u32) -> anyhow::Result<()> {
    let driver = json!({"name": DRIVER, "nodeID": name, "allocatable": {"count": volumes}});
    let attaching = json!({"metadata": {"name": name}, "spec": {"drivers": [driver]}});
    // Before the node, which would be without a limit otherwise.
    Api::<CSINode>::all(world.client.clone())
        .create(&PostParams::default(), &serde_json::from_value(attaching)?)
        .await?;
    world.node(name, "16").await
}

pub(super) async fn a_claim_for_one_pod_is_waited_for_by_the_whole_gang(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(one_pod_only(world, &storage)).await
}

async fn one_pod_only(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    world.node("n1", "8").await?;
    storage.class_at_once("single").await?;
    storage.bound_claim("data", "single", "ReadWriteOncePod", &json!({}), &[]).await?;
    storage.pod("first", None, "data").await?;
    world.wait_running(1).await?;
    world.gang("g", 2).await?;
    storage.pod("g-0", Some("g"), "data").await?;
    world.pod("g-1", Some("g"), "1").await?;
    world.wait_condition("g", "False", "is for one pod only, and pod first uses it").await?;
    ensure!(world.counts().await? == (1, 1), "a member has started");
    world.delete_pod("first").await?;
    world.wait_running(2).await?;
    world.wait_condition("g", "True", "").await?;
    Ok(())
}
