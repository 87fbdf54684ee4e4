//! Which Jobs become gangs where `tutti controller` makes the groups: shapes that are left alone, Jobs of CronJobs, long
//! names, and members that end before the others.

use super::jobs::{SUSPENSE, start};
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) async fn jobs_that_do_not_ask_for_a_gang_are_left_alone(world: &World<'_>) -> anyhow::Result<()> {
    let controller = start(world, "on")?;
    world.node("n1", "40").await?;
    let asks_by_shape = world.group_api_version().ends_with("/v1alpha2");
    let silent = |name: &str, size: u32| {
        let mut job = world.gang_job(name, size);
        job["metadata"]["annotations"] = json!({});
        job
    };
    let with = |mut job: Value, place: &str, field: &str, value: Value| {
        job[place][field] = value;
        job
    };
    let any_order = |name: &str| with(silent(name, 2), "spec", "completionMode", json!("NonIndexed"));
    let mut jobs = vec![
        (any_order("not-indexed"), 2),
        (silent("one-pod", 1), 1),
        (with(silent("fewer-at-a-time", 3), "spec", "parallelism", json!(2)), 2),
        (with(any_order("no-completions"), "spec", "completions", Value::Null), 2),
        (with(any_order("asks-otherwise"), "metadata", "annotations", json!({"tutti.dev/gang": "yes"})), 2),
    ];
    if !asks_by_shape {
        jobs.push((silent("says-nothing-of-scheduling", 2), 2));
    }
    let mut of_others = world.gang_job("of-another-scheduler", 2);
    of_others["spec"]["template"]["spec"]["schedulerName"] = json!("another");
    world.create_job(&of_others).await?;
    for (job, _) in &jobs {
        world.create_job(job).await?;
    }
    world.wait_running(jobs.iter().map(|(_, pods)| pods).sum()).await?;
    tokio::time::sleep(SUSPENSE).await;
    ensure!(world.made().await? == (0, 0), "nobody asked for {:?}", world.made().await?);
    controller.end().await
}

pub(super) async fn jobs_of_cron_jobs_and_of_long_names_are_gangs(world: &World<'_>) -> anyhow::Result<()> {
    let controller = start(world, "on")?;
    world.node("n1", "8").await?;
    let job = world.gang_job("unused", 3);
    let cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "suspend": true, "jobTemplate": {
            "metadata": {"annotations": job["metadata"]["annotations"]}, "spec": job["spec"]}},
    });
    world.kubectl(&["apply", "-f", "-"], &cron.to_string()).await?;
    world.kubectl(&["create", "job", "nightly-1", "--from=cronjob/nightly"], "").await?;
    world.wait_running(3).await?;
    world.wait_made(1, 1).await?;
    let mut long = world.gang_job(&format!("{}.{}", "x".repeat(28), "y".repeat(28)), 2);
    long["metadata"]["annotations"] = json!({"tutti.dev/gang": "true"});
    // Names of indexed pods have no dots, so that Kubernetes takes no dots in names of such Jobs.
    long["spec"]["completionMode"] = json!("NonIndexed");
    world.create_job(&long).await?;
    world.wait_running(5).await?;
    world.wait_made(2, 2).await?;
    controller.end().await
}

pub(super) async fn members_that_succeed_early_do_not_break_the_gang(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let controller = start(world, "on")?;
    world.node("n1", "4").await?;
    world.create_job(&world.gang_job("train", 4)).await?;
    world.wait_running(4).await?;
    let names: Vec<String> = all(world).await?.into_iter().filter_map(|pod| pod.metadata.name).collect();
    for name in &names[..2] {
        let done = json!({"metadata": {"annotations": {"tutti.dev/run-seconds": "0"}}});
        world.pods().patch(name, &PatchParams::default(), &Patch::Merge(done)).await?;
    }
    wait_phases(world, (2, 2), "").await?;
    // One of the others is lost, and replaced in its turn.
    let lost = names.get(3).context("four pods")?;
    world.delete_pod(lost).await?;
    wait_phases(world, (2, 2), lost).await?;
    controller.end().await
}

pub(super) async fn a_controller_killed_at_any_moment_leaves_one_group_for_every_job(
    world: &World<'_>,
) -> anyhow::Result<()> {
    const DELAYS_MS: [u64; 10] = [0, 5, 10, 15, 20, 30, 45, 70, 110, 200];
    world.node("n1", "20").await?;
    for (index, delay) in DELAYS_MS.into_iter().enumerate() {
        let mut controller = start(world, "on")?;
        // It has mended what the one before has left, so it is in the middle of work when it is killed.
        world.wait_made(index, index).await?;
        world.create_job(&world.gang_job(&format!("job-{index}"), 2)).await?;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        controller.kill()?;
    }
    let controller = start(world, "on")?;
    world.wait_running(2 * DELAYS_MS.len()).await?;
    world.wait_made(DELAYS_MS.len(), DELAYS_MS.len()).await?;
    controller.end().await
}

async fn all(world: &World<'_>) -> anyhow::Result<Vec<Pod>> {
    Ok(world.pods().list(&ListParams::default()).await?.items)
}

/// Waits until so many pods run and so many have succeeded, and this one is gone.
async fn wait_phases(world: &World<'_>, wanted: (usize, usize), gone: &str) -> anyhow::Result<()> {
    eventually(&format!("{wanted:?} run and have succeeded"), || async {
        world.check()?;
        let pods = all(world).await?;
        let count = |phase: &str| {
            let of =
                |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase);
            pods.iter().filter(of).count()
        };
        let found = (count("Running"), count("Succeeded"));
        let is_there = pods.iter().any(|pod| pod.metadata.name.as_deref() == Some(gone));
        Ok((found == wanted && !is_there).then_some(()).ok_or_else(|| format!("{found:?}, {is_there}")))
    })
    .await
}
