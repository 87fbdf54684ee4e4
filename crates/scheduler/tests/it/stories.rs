//! Gangs from creation to running.

use crate::harness::World;
use crate::shape::Shape;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_of_four_runs() {
    let world = World::start().await;
    world.node("n1", "4").await;
    world.node("n2", "4").await;
    world.gang("g", 4).await;
    world.members("g", 0..4, "2").await;
    world.wait_running(4).await;
    let condition = world.wait_condition("g", "True").await;
    assert_eq!(condition["reason"], "Scheduled");
    assert_eq!(condition["observedGeneration"], 0, "API servers give groups no generation");
    assert_eq!(world.wait_event("g", "Scheduled").await, "4 members placed on 2 nodes");
    let node = world.node_of("g-0").await.expect("it is bound");
    let message = world.wait_event("g-0", "Scheduled").await;
    assert_eq!(message, format!("Successfully assigned default/g-0 to {node}"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_of_eight_start_nothing_and_the_group_says_why_until_a_node_joins() {
    for shape in Shape::ALL.into_iter().filter(|shape| shape.condition().is_some()) {
        let mut world = World::of_shape(shape).await;
        world.start_scheduler(world.client.clone());
        world.node("n1", "6").await;
        world.gang("g", 8).await;
        world.members("g", 0..8, "1").await;
        let condition = world.wait_condition_saying("g", "False", "6 of 8 members fit").await;
        let message = condition["message"].as_str().unwrap_or_default();
        assert_eq!(condition["reason"], "Unschedulable");
        assert!(message.contains("short of 2 cpu"), "{message}");
        world.wait_waiting("g-0", "pod group g has no room for as many members as it must have").await;
        assert_eq!(world.counts().await, (0, 0));
        world.node("n2", "2").await;
        world.wait_running(8).await;
        world.wait_condition("g", "True").await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mixed_gang_is_placed_where_only_one_way_fits() {
    let world = World::start().await;
    world.node("small", "2").await;
    world.node("large", "4").await;
    world.gang("g", 2).await;
    // The small one comes first; on the large node it would leave no room for the other.
    world.pod("g-small", Some("g"), "2").await;
    world.pod("g-large", Some("g"), "4").await;
    world.wait_running(2).await;
    assert_eq!(world.node_of("g-small").await.as_deref(), Some("small"));
    assert_eq!(world.node_of("g-large").await.as_deref(), Some("large"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_members_join_and_a_late_group_is_waited_for() {
    let world = World::start().await;
    world.node("n1", "16").await;
    world.members("g", 0..2, "1").await;
    let message = world.wait_event("g-0", "FailedScheduling").await;
    assert!(message.contains("waiting for pod group"), "{message}");
    world.gang("g", 3).await;
    let condition = world.wait_condition("g", "False").await;
    assert!(condition["message"].as_str().unwrap().contains("2 are ready"), "{condition}");
    assert_eq!(world.counts().await.0, 0);
    world.members("g", 2..3, "1").await;
    world.wait_running(3).await;
    world.members("g", 3..5, "1").await;
    world.wait_running(5).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_has_started_says_so_for_good_even_if_it_breaks() {
    let world = World::start().await;
    world.node("n1", "2").await;
    world.gang("g", 2).await;
    world.members("g", 0..2, "1").await;
    world.wait_running(2).await;
    let started = world.wait_condition("g", "True").await;
    world.delete_pod("g-0").await;
    world.pod("g-2", Some("g"), "9").await;
    let message = world.wait_event("g-2", "FailedScheduling").await;
    assert!(message.starts_with("pod group g: 0/1 nodes are available"), "{message}");
    // What groups are told goes out before what their members are.
    assert_eq!(world.wait_condition("g", "True").await, started, "not a word of it has changed");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_name_the_generation_of_the_group_that_they_are_about() {
    let mut world = World::with(Shape::Custom.cluster(), Shape::Custom).await;
    world.define_groups().await;
    world.start_scheduler(world.client.clone());
    world.node("n1", "1").await;
    world.gang("g", 2).await;
    world.members("g", 0..2, "1").await;
    let condition = world.wait_condition_saying("g", "False", "of 2 members fit").await;
    assert_eq!(condition["observedGeneration"], 1);
    assert!(world.set_minimum("g", 3).await);
    let condition = world.wait_condition_saying("g", "False", "3 must start together and 2 are ready").await;
    assert_eq!(condition["observedGeneration"], 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_with_a_resource_claim_waits_and_says_so_and_its_gang_with_it() {
    let world = World::start().await;
    world.node("n1", "8").await;
    let claims = json!([{"name": "gpu", "resourceClaimName": "one"}]);
    world.pod_with("claims", &json!({"resourceClaims": claims}), "1").await;
    world.gang("g", 2).await;
    world.members("g", 0..1, "1").await;
    let fields = json!({"resourceClaims": claims, "schedulingGroup": {"podGroupName": "g"}});
    world.pod_with("g-1", &fields, "1").await;
    world.pod("plain", None, "1").await;
    for pod in ["claims", "g-0", "g-1"] {
        world.wait_waiting(pod, "resource claim gpu").await;
    }
    world.wait_running(1).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_pods_are_placed_and_a_stopped_scheduler_leaves_the_rest_to_the_next() {
    let mut world = World::start().await;
    world.node("n1", "4").await;
    world.pod("a", None, "1").await;
    world.wait_running(1).await;
    world.stop_scheduler().await;
    world.gang("g", 2).await;
    world.members("g", 0..2, "1").await;
    world.start_scheduler(world.client.clone());
    world.wait_running(3).await;
    world.end().await;
}
