//! A controller that is late, dies half way, or has much to do.

use crate::harness::World;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use std::time::Duration;
use tower::BoxError;
use tutti_cluster::registry::Release;

/// A client that makes no groups, as if whoever uses it died before.
fn client_without_groups(inner: Client) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            if request.method() == Method::POST && request.uri().path().ends_with("/podgroups") {
                let status = json!({"kind": "Status", "status": "Failure", "code": 500, "message": "no"});
                let body = Body::from(status.to_string().into_bytes());
                let mut response = Response::new(body);
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                return Ok(response);
            }
            inner.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn with_no_controller_jobs_wait_and_start_whole_when_it_comes() {
    for release in [Release::V1_36, Release::V1_37] {
        let mut world = World::without_controller(release, &["8"]).await;
        world.create_job(&world.gang("train", 4)).await;
        world.wait_reason("train", "waits for the PodGroup of Job train").await;
        world.stays_unbound("train", 4).await;
        world.start_controller(world.client.clone()).await;
        world.wait_tally("train", (4, 4, 4)).await;
    }
}

#[tokio::test]
async fn a_controller_that_dies_between_workload_and_group_loses_nothing() {
    for release in [Release::V1_36, Release::V1_37] {
        let mut world = World::without_controller(release, &["8"]).await;
        let first = world.start_controller(client_without_groups(world.client.clone())).await;
        world.create_job(&world.gang("train", 4)).await;
        world.wait_made(1, 0).await;
        world.stays_unbound("train", 4).await;
        world.kill(first);
        let before = world.workloads().await.remove(0);
        world.start_controller(world.client.clone()).await;
        world.wait_tally("train", (4, 4, 4)).await;
        world.wait_made(1, 1).await;
        assert_eq!(world.workloads().await[0].metadata.uid, before.metadata.uid);
    }
}

#[tokio::test]
async fn three_hundred_jobs_at_once_are_three_hundred_gangs() {
    const JOBS: usize = 300;
    let world = World::start(Release::V1_37, &["700"]).await;
    let jobs = (0..JOBS).map(|index| {
        let job = world.gang(&format!("job-{index}"), 2);
        let world = &world;
        async move { world.create_job(&job).await }
    });
    futures::future::join_all(jobs).await;
    world.wait_made(JOBS, JOBS).await;
    for index in 0..JOBS {
        world.wait_tally(&format!("job-{index}"), (2, 2, 2)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.wait_made(JOBS, JOBS).await;
}
