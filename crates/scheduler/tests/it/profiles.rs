//! One scheduler under several names, each with scores of its own.

use crate::harness::{World, eventually};
use serde_json::json;
use tutti_scheduler::config;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pod_goes_where_the_profile_of_its_scheduler_name_sends_it() {
    let text = "
apiVersion: tutti.dev/v1alpha1
kind: SchedulerConfiguration
profiles:
- schedulerNames: [spreader]
- schedulerNames: [packer]
  scoring: {strategy: {type: MostAllocated}}
";
    let config = config::parse(text).expect("it is a configuration").config;
    let mut world = World::empty().await;
    world.node("a", "8").await;
    world.node("b", "8").await;
    world.pod_with("old", &json!({"nodeName": "b"}), "4").await;
    world.wait_running(1).await;
    world.start_scheduler_as(world.client.clone(), config);
    for (name, node) in [("spreader", "a"), ("packer", "b")] {
        world.pod_with(name, &json!({"schedulerName": name}), "1").await;
        let found = eventually("it has a node", || async { world.node_of(name).await }).await;
        assert_eq!(found, node, "{name}");
    }
    world.pod("nobodys", None, "1").await;
    world.pod_with("last", &json!({"schedulerName": "packer"}), "1").await;
    eventually("the last one has a node", || async { world.node_of("last").await }).await;
    assert_eq!(world.node_of("nobodys").await, None, "tutti is not among the names");
    world.end().await;
}
