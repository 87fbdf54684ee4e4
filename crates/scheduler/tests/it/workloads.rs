//! Kubernetes 1.35, where groups are parts of workloads and pods name them.

use crate::harness::{World, eventually};
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use tutti_cluster::registry::Release;

fn workloads(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("scheduling.k8s.io", "v1alpha1", "Workload");
    Api::default_namespaced_with(world.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "workloads"))
}

async fn member(world: &World, name: &str, replica: &str) {
    let reference = json!({"name": "w", "podGroup": "workers", "podGroupReplicaKey": replica});
    world.pod_with(name, &json!({"workloadRef": reference}), "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_of_a_part_are_gangs_of_their_own() {
    let mut world = World::of_release(Release::V1_35).await;
    world.start_scheduler(world.client.clone());
    world.node("n1", "3").await;
    for index in 0..2 {
        member(&world, &format!("a-{index}"), "a").await;
    }
    for index in 0..2 {
        member(&world, &format!("b-{index}"), "b").await;
    }
    let workload = json!({
        "apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]},
    });
    let workload = serde_json::from_value(workload).expect("it is a workload");
    workloads(&world).create(&PostParams::default(), &workload).await.expect("the workload is taken");
    // There is room for three: one replica runs whole, the other waits whole.
    world.wait_running(2).await;
    let waiting = if world.node_of("a-0").await.is_some() { "b" } else { "a" };
    let message = eventually("the workload says which part waits", || async {
        let message = world.wait_event("w", "FailedScheduling").await;
        message.starts_with(&format!("pod group workers/{waiting}: 1 of 2 members fit")).then_some(message)
    })
    .await;
    assert!(message.contains("short of 1 cpu"), "{message}");
    assert_eq!(world.counts().await, (2, 2));
    world.node("n2", "1").await;
    world.wait_running(4).await;
    world.end().await;
}
