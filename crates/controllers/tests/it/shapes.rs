//! Which Jobs become gangs, and what of.

use crate::harness::{World, minimum, plain};
use k8s_openapi::api::batch::v1::CronJob;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tutti_cluster::registry::Release;

const BOTH: [Release; 2] = [Release::V1_36, Release::V1_37];

#[tokio::test]
async fn a_qualifying_job_becomes_one_gang_runs_and_ends() {
    for release in BOTH {
        let world = World::start(release, &["8"]).await;
        let mut job = world.gang("train", 4);
        job["spec"]["template"]["metadata"] = json!({"annotations": {"tutti.dev/run-seconds": "1"}});
        world.create_job(&job).await;
        world.wait_made(1, 1).await;
        assert_eq!(minimum(&world.groups().await[0]), Some(4));
        world.wait_tally("train", (4, 4, 4)).await;
        world.wait_complete("train").await;
        assert_eq!((world.workloads().await.len(), world.groups().await.len()), (1, 1));
    }
}

#[tokio::test]
async fn six_of_eight_fit_so_none_starts_and_then_all() {
    for release in BOTH {
        let world = World::start(release, &["3", "3"]).await;
        world.create_job(&world.gang("train", 8)).await;
        world.wait_reason("train", "has no room for as many members as it must have").await;
        world.stays_unbound("train", 8).await;
        world.node("late", "2").await;
        world.wait_tally("train", (8, 8, 8)).await;
    }
}

#[tokio::test]
async fn an_annotation_makes_a_gang_of_any_job_and_long_dotted_names_work() {
    for release in BOTH {
        let world = World::start(release, &["8"]).await;
        for name in ["a", "with.dots.in-it", &format!("{}.{}", "x".repeat(30), "y".repeat(30))] {
            let mut job = plain(name, 2);
            job["metadata"]["annotations"] = json!({"tutti.dev/gang": "true"});
            world.create_job(&job).await;
            world.wait_tally(name, (2, 2, 2)).await;
        }
        world.wait_made(3, 3).await;
    }
}

/// Fields of a Job's spec or metadata that are set besides the usual ones.
fn with(mut job: Value, place: &str, field: &str, value: Value) -> Value {
    job.pointer_mut(place).unwrap()[field] = value;
    job
}

#[tokio::test]
async fn every_other_shape_is_left_alone_and_runs_as_ever() {
    for release in BOTH {
        let world = World::start(release, &["40"]).await;
        let indexed =
            |name: &str, size: u32| with(plain(name, size), "/spec", "completionMode", json!("Indexed"));
        let yes = json!({"tutti.dev/gang": "yes"});
        let delegated = json!({"scheduling.k8s.io/group-template-name": "t"});
        let mut jobs = vec![
            (plain("not-indexed", 2), 2),
            (indexed("one-pod", 1), 1),
            (with(indexed("fewer-at-a-time", 3), "/spec", "parallelism", json!(2)), 2),
            (with(plain("no-completions", 2), "/spec", "completions", Value::Null), 2),
            (with(plain("annotated-otherwise", 2), "/metadata", "annotations", yes), 2),
        ];
        if release == Release::V1_37 {
            jobs.push((indexed("says-nothing-of-scheduling", 2), 2));
        }
        for (job, pods) in &jobs {
            world.create_job(job).await;
            world.wait_tally(job["metadata"]["name"].as_str().unwrap(), (*pods, *pods, *pods)).await;
        }
        // Its group comes out of a Workload that somebody has yet to make; it does not start without.
        world.create_job(&with(world.gang("delegated", 2), "/metadata", "annotations", delegated)).await;
        world.stays_unbound("delegated", 2).await;
        let other = with(world.gang("others", 2), "/spec/template/spec", "schedulerName", json!("other"));
        world.create_job(&other).await;
        world.stays_unbound("others", 2).await;
        assert_eq!((world.workloads().await.len(), world.groups().await.len()), (0, 0));
    }
}

#[tokio::test]
async fn a_job_that_a_cron_job_made_is_a_gang_like_any_other() {
    let world = World::start(Release::V1_37, &["8"]).await;
    let template = json!({"spec": world.gang("unused", 3)["spec"]});
    let cron =
        json!({"metadata": {"name": "nightly"}, "spec": {"schedule": "0 3 * * *", "jobTemplate": template}});
    let crons: Api<CronJob> = Api::default_namespaced(world.client.clone());
    let cron = crons.create(&PostParams::default(), &serde_json::from_value(cron).unwrap()).await.unwrap();
    let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly",
                        "uid": cron.metadata.uid, "controller": true}]);
    world.create_job(&with(world.gang("nightly-1", 3), "/metadata", "ownerReferences", owner)).await;
    world.wait_made(1, 1).await;
    world.wait_tally("nightly-1", (3, 3, 3)).await;
}

#[tokio::test]
async fn a_users_own_workload_is_what_the_group_is_made_of() {
    let world = World::start(Release::V1_37, &["2"]).await;
    let workload = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": "mine"},
        "spec": {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
                 "podGroupTemplates": [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}]}});
    let workload = serde_json::from_value(workload).unwrap();
    world.scheduling("Workload").create(&PostParams::default(), &workload).await.unwrap();
    world.create_job(&world.gang("train", 4)).await;
    world.wait_tally("train", (4, 2, 2)).await;
    let groups = world.groups().await;
    assert_eq!(groups.iter().map(minimum).collect::<Vec<_>>(), [Some(2)]);
    assert_eq!(groups[0].data["spec"]["workloadRef"]["workloadName"], "mine");
    assert_eq!(world.workloads().await.len(), 1, "nothing is made beside it");
}
