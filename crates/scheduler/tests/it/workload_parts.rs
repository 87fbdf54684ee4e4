//! Kubernetes 1.35, where groups are parts of workloads and pods name them.

use crate::harness::{World, eventually};
use crate::shape::{PART, Shape};
use serde_json::json;
use tutti_k8s::marks::FULLY_BOUND;
use tutti_k8s::workload::mark_of;
use tutti_model::ObjectKey;

/// A member of one of the replicas of the only part of workload `w`.
async fn member(world: &World, name: &str, replica: &str) {
    let reference = json!({"name": "w", "podGroup": PART, "podGroupReplicaKey": replica});
    world.pod_with(name, &json!({"workloadRef": reference}), "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_of_a_part_are_gangs_of_their_own() {
    let mut world = World::of_shape(Shape::Part).await;
    world.start_scheduler(world.client.clone());
    world.node("n1", "3").await;
    for index in 0..2 {
        member(&world, &format!("a-{index}"), "a").await;
    }
    for index in 0..2 {
        member(&world, &format!("b-{index}"), "b").await;
    }
    world.gang("w", 2).await;
    // There is room for three: one replica runs whole, the other waits whole.
    world.wait_running(2).await;
    let (started, waiting) = if world.node_of("a-0").await.is_some() { ("a", "b") } else { ("b", "a") };
    let words = format!("pod group {PART}/{waiting}: 1 of 2 members fit");
    let message = world.wait_event_saying("w", "FailedScheduling", &words).await;
    assert!(message.contains("short of 1 cpu"), "{message}");
    assert_eq!(world.counts().await, (2, 2));
    // What must survive the scheduler is on the workload, for each of its groups by itself.
    let is_marked = |replica: &str| {
        let mark = mark_of(FULLY_BOUND, &ObjectKey::new("default", format!("w/{PART}/{replica}")));
        let workloads = world.groups();
        async move {
            let workload = workloads.get("w").await.expect("the workload is there");
            workload.metadata.annotations.is_some_and(|all| all.contains_key(&*mark))
        }
    };
    eventually("the replica that runs is marked", || async { is_marked(started).await.then_some(()) }).await;
    assert!(!is_marked(waiting).await, "it has not started");
    world.node("n2", "1").await;
    world.wait_running(4).await;
    eventually("the other one is marked, too", || async { is_marked(waiting).await.then_some(()) }).await;
    assert!(is_marked(started).await, "a mark does not take the place of another");
    world.end().await;
}
