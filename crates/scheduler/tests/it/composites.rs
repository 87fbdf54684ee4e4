//! Groups of groups.

use crate::harness::{World, eventually};
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

const CONDITION: &str = "CompositePodGroupInitiallyScheduled";

fn composites(world: &World) -> Api<DynamicObject> {
    world.scheduling("v1alpha3", "CompositePodGroup")
}

fn reference(template: &str) -> Value {
    json!({"workloadName": "w", "templateName": template})
}

async fn composite(world: &World, name: &str, parent: Option<&str>, policy: &Value, key: Option<&str>) {
    let mut spec = json!({"workloadRef": reference(name), "schedulingPolicy": policy});
    if let Some(parent) = parent {
        spec["parentCompositePodGroupName"] = json!(parent);
    }
    if let Some(key) = key {
        spec["schedulingConstraints"] = json!({"topology": [{"key": key}]});
    }
    let composite = json!({
        "apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup",
        "metadata": {"name": name}, "spec": spec,
    });
    let composite = serde_json::from_value(composite).expect("it is a composite");
    composites(world).create(&PostParams::default(), &composite).await.expect("the composite is taken");
}

/// A gang of pods of one CPU each, all of which must be in one rack.
async fn child(world: &World, name: &str, parent: &str, members: usize) {
    let fields = json!({
        "workloadRef": reference(name), "parentCompositePodGroupName": parent,
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
    });
    world.gang_with(name, u32::try_from(members).expect("few"), &json!({}), &fields).await;
    world.members(name, 0..members, "1").await;
}

async fn wait_condition(world: &World, name: &str, status: &str, part: &str) -> String {
    eventually(&format!("{name} is {status} and says {part:?}"), || async {
        let found = composites(world).get(name).await.expect("the composite is there");
        let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let condition = conditions.into_iter().find(|c| c["type"] == CONDITION && c["status"] == status)?;
        let message = condition["message"].as_str().unwrap_or_default().to_owned();
        message.contains(part).then_some(message)
    })
    .await
}

/// The block, and the rack, that a group is in.
async fn place(world: &World, group: &str, members: usize) -> (String, String) {
    let mut places = Vec::new();
    for index in 0..members {
        let node = world.node_of(&format!("{group}-{index}")).await.expect("it is bound");
        let (block, rest) = node.split_once('-').expect("named block-rack-number");
        let (rack, _) = rest.split_once('-').expect("named block-rack-number");
        places.push((block.to_owned(), rack.to_owned()));
    }
    places.dedup();
    assert_eq!(places.len(), 1, "{group} is in one rack");
    places.remove(0)
}

async fn node(world: &World, block: &str, rack: &str, number: usize, cpus: &str) {
    // Racks are told apart by their own name alone, as one level tells them.
    let (name, rack) = (format!("{block}-{rack}-{number}"), format!("{block}{rack}"));
    world.node_at(&name, cpus, &[("block", block), ("rack", &rack)]).await;
}

fn gang(groups: u32) -> Value {
    json!({"gang": {"minGroupCount": groups}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_of_two_levels_starts_as_one_in_one_block() {
    let world = World::start().await;
    // Block p has a rack for each part but only one of them large enough; q has two.
    node(&world, "p", "a", 0, "4").await;
    node(&world, "p", "b", 0, "2").await;
    composite(&world, "top", None, &gang(2), Some("block")).await;
    composite(&world, "workers", Some("top"), &gang(2), None).await;
    child(&world, "one", "workers", 3).await;
    child(&world, "two", "workers", 3).await;
    child(&world, "side", "top", 1).await;
    wait_condition(&world, "top", "False", "block").await;
    wait_condition(&world, "workers", "False", "").await;
    world.wait_condition("one", "False").await;
    assert_eq!(world.counts().await, (0, 0));
    node(&world, "q", "a", 0, "3").await;
    node(&world, "q", "b", 0, "4").await;
    world.wait_running(7).await;
    let (one, two, side) =
        (place(&world, "one", 3).await, place(&world, "two", 3).await, place(&world, "side", 1).await);
    assert_eq!((one.0.as_str(), two.0.as_str(), side.0.as_str()), ("q", "q", "q"));
    assert_ne!(one.1, two.1, "no rack has room for both");
    let message = wait_condition(&world, "top", "True", "").await;
    assert_eq!(message, "2 of at least 2 groups have what they need: 7 members placed on 2 nodes");
    wait_condition(&world, "workers", "True", "2 of at least 2 groups have what they need").await;
    let condition = world.wait_condition("one", "True").await;
    assert_eq!(condition["message"], "3 members placed on 1 node");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_does_not_fit_waits_alone_and_a_late_one_joins() {
    let world = World::start().await;
    node(&world, "p", "a", 0, "4").await;
    node(&world, "p", "b", 0, "4").await;
    composite(&world, "top", None, &gang(2), None).await;
    child(&world, "one", "top", 4).await;
    let message = wait_condition(&world, "top", "False", "waiting for groups").await;
    assert!(message.contains("2 must start together and 1"), "{message}");
    child(&world, "huge", "top", 5).await;
    child(&world, "two", "top", 3).await;
    eventually("the two that fit run", || async { (world.counts().await == (7, 7)).then_some(()) }).await;
    wait_condition(&world, "top", "True", "2 of at least 2 groups have what they need").await;
    world.wait_condition("one", "True").await;
    let condition = world.wait_condition("huge", "False").await;
    assert!(condition["message"].as_str().unwrap_or_default().contains("rack"), "{condition}");
    // Late, and with room: it joins what has started.
    child(&world, "late", "top", 1).await;
    eventually("the late one runs", || async { (world.counts().await == (8, 8)).then_some(()) }).await;
    world.wait_condition("late", "True").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_composite_is_waited_for() {
    let world = World::start().await;
    node(&world, "p", "a", 0, "4").await;
    child(&world, "one", "top", 2).await;
    let message = world.wait_event("one-0", "FailedScheduling").await;
    assert!(message.contains("composite pod group default/top"), "{message}");
    assert_eq!(world.counts().await, (0, 0));
    composite(&world, "top", None, &json!({"basic": {}}), None).await;
    world.wait_running(2).await;
    wait_condition(&world, "top", "True", "1 of at least 1 groups").await;
    world.end().await;
}
