//! Which way of serving groups the scheduler finds, and that it notices another one.

use crate::harness::{World, eventually};
use crate::shape::Shape;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use tutti_cluster::cluster::ClusterOptions;
use tutti_k8s::{Capabilities, GroupLink};
use tutti_scheduler::Config;

async fn discover(world: &World) -> Capabilities {
    Capabilities::discover(&world.client).await.expect("the cluster says what it serves")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cluster_is_found_to_serve_what_it_does() {
    for (shape, link) in [
        (Shape::Part, GroupLink::WorkloadRef),
        (Shape::Alpha, GroupLink::SchedulingGroup),
        (Shape::Beta, GroupLink::SchedulingGroup),
        (Shape::Custom, GroupLink::Label),
    ] {
        let world = World::of_shape(shape).await;
        let found = discover(&world).await;
        assert_eq!((found.pod_group, found.link), (Some(shape.resource()), link));
        assert!(shape.condition().is_none_or(|condition| condition == found.group_condition), "{shape:?}");
        assert_eq!(found.composite.is_some(), shape == Shape::Beta, "{shape:?}");
        assert!(found.storage && found.optional, "{shape:?}");
        world.cluster.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_kubernetes_come_before_those_of_ours() {
    for shape in [Shape::Part, Shape::Alpha, Shape::Beta] {
        let world = World::of_shape(shape).await;
        let before = discover(&world).await;
        world.define_groups().await;
        assert_eq!(discover(&world).await, before, "{shape:?}");
        world.cluster.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_are_defined_later_are_noticed_and_so_is_their_end() {
    let options = ClusterOptions { workload_apis: false, ..ClusterOptions::default() };
    let mut world = World::with(options, Shape::Custom).await;
    let process = world.start_process(world.client.clone(), Config::default());
    world.node("n", "4").await;
    world.pod("plain", None, "1").await;
    world.wait_running(1).await;
    // It is not known yet how many must start together, nor whether anybody will ever say it.
    world.members("g", 0..2, "1").await;
    world.wait_waiting("g-0", "waiting for pod group default/g").await;
    assert_eq!(world.counts().await, (1, 1));

    world.define_groups().await;
    world.gang("g", 2).await;
    world.wait_running(3).await;
    world.wait_condition("g", "True").await;
    assert_eq!(groups_api(&process).await, Some(json!("tutti.dev/v1alpha1/PodGroup")));

    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    let deleted = definitions.delete("podgroups.tutti.dev", &DeleteParams::default()).await;
    deleted.expect("the definition is there");
    eventually("it is noticed that groups are not served any more", || async {
        (groups_api(&process).await == Some(Value::Null)).then_some(())
    })
    .await;
    world.members("g", 2..3, "1").await;
    world.wait_waiting("g-2", "waiting for pod group default/g").await;
    world.pod("later", None, "1").await;
    world.wait_running(4).await;
    assert_eq!(world.node_of("g-2").await, None);
    world.end().await;
}

/// How groups are served, as the scheduler sees it; `None` while it starts anew.
async fn groups_api(process: &Client) -> Option<Value> {
    let request = http::Request::get("/debug/state").body(Vec::new()).expect("it is a request");
    let mut state = process.request::<Value>(request).await.ok()?;
    Some(state["groupsApi"].take())
}
