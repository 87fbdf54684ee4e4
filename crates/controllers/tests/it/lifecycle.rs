//! What becomes of gangs while their Jobs live, change and go.

use crate::harness::{World, minimum};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;
use tutti_cluster::registry::Release;

#[tokio::test]
async fn a_suspended_job_has_its_group_before_its_pods_and_keeps_it() {
    for release in [Release::V1_36, Release::V1_37] {
        let world = World::start(release, &["8"]).await;
        let mut job = world.gang("train", 4);
        job["spec"]["suspend"] = json!(true);
        world.create_job(&job).await;
        world.wait_made(1, 1).await;
        let group = world.groups().await.remove(0);
        world.wait_tally("train", (0, 0, 0)).await;
        for _ in 0..2 {
            world.patch_job("train", json!({"spec": {"suspend": false}})).await;
            world.wait_tally("train", (4, 4, 4)).await;
            world.patch_job("train", json!({"spec": {"suspend": true}})).await;
            world.wait_tally("train", (0, 0, 0)).await;
        }
        let groups = world.groups().await;
        assert_eq!((groups.len(), &groups[0].metadata.uid), (1, &group.metadata.uid));
    }
}

#[tokio::test]
async fn the_minimum_follows_the_parallelism() {
    let world = World::start(Release::V1_37, &["5"]).await;
    let mut job = world.gang("train", 3);
    job["spec"]["completionMode"] = json!("Indexed");
    world.create_job(&job).await;
    world.wait_tally("train", (3, 3, 3)).await;
    for size in [5, 2] {
        world.patch_job("train", json!({"spec": {"parallelism": size, "completions": size}})).await;
        world.wait_tally("train", (size, size, size)).await;
        let mut tries = 0..500;
        while minimum(&world.groups().await[0]) != Some(size as u64) {
            assert!(tries.next().is_some(), "the minimum stays behind");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn pods_that_succeed_early_do_not_break_the_gang() {
    let world = World::start(Release::V1_36, &["4"]).await;
    world.create_job(&world.gang("train", 4)).await;
    world.wait_tally("train", (4, 4, 4)).await;
    let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
    let all = world.pods("train").await;
    for pod in &all[..2] {
        let done = json!({"metadata": {"annotations": {"tutti.dev/run-seconds": "0"}}});
        let name = pod.metadata.name.as_deref().unwrap();
        pods.patch(name, &PatchParams::default(), &Patch::Merge(done)).await.unwrap();
    }
    world.wait_tally("train", (4, 4, 2)).await;
    // One of the others is lost, and replaced in its turn.
    pods.delete(all[3].metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();
    world.wait_gone("train", all[3].metadata.uid.as_deref().unwrap()).await;
    world.wait_tally("train", (4, 4, 2)).await;
}

#[tokio::test]
async fn a_job_that_is_deleted_at_any_moment_leaves_nothing() {
    let world = World::start(Release::V1_37, &["100"]).await;
    for (index, delay) in [0, 1, 2, 4, 8, 15, 30, 60, 120, 250].into_iter().enumerate() {
        let name = format!("short-{index}");
        world.create_job(&world.gang(&name, 4)).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        world.jobs().delete(&name, &DeleteParams::background()).await.unwrap();
    }
    for index in 0..10 {
        world.wait_tally(&format!("short-{index}"), (0, 0, 0)).await;
    }
    world.wait_made(0, 0).await;
    // Nobody comes late and makes something for a Job that is gone.
    tokio::time::sleep(crate::harness::SUSPENSE).await;
    world.wait_made(0, 0).await;
}
