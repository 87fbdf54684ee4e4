//! From Jobs to gangs, with `tutti controller`: where the cluster's own Job controller makes no groups, and beside one
//! that does.

use crate::control_plane::{ControlPlane, Purpose};
use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::{Setting, World};
use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use std::time::Duration;

/// By this feature gate the cluster's own controller makes groups for Jobs.
const GATE: &str = "WorkloadWithJob";
/// How long it is watched that nothing happens.
pub(super) const SUSPENSE: Duration = Duration::from_secs(2);

pub(super) async fn jobs_become_gangs_where_nobody_else_makes_groups(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let mut controller = start(world, "auto")?;
    world.node("n1", "3").await?;
    world.node("n2", "3").await?;
    world.create_job(&world.gang_job("train", 8)).await?;
    six_of_eight(world).await?;
    ensure!(world.made().await? == (1, 1), "one Workload and one group, not {:?}", world.made().await?);
    world.wait_event("train", "WorkloadCreated").await?;
    world.wait_event("train", "PodGroupCreated").await?;
    suspend(world, "train", true).await?;
    world.wait_running(0).await?;
    suspend(world, "train", false).await?;
    world.wait_running(8).await?;
    world.delete_job("train").await?;
    world.wait_made(0, 0).await?;

    // What does not ask for a gang is left alone.
    let mut plain = world.gang_job("plain", 2);
    plain["spec"]["completionMode"] = json!("NonIndexed");
    plain["metadata"]["annotations"] = json!({});
    world.create_job(&plain).await?;
    world.wait_running(2).await?;
    ensure!(world.made().await? == (0, 0), "something was made for a plain Job");
    world.delete_job("plain").await?;
    world.wait_running(0).await?;

    // Without the controller Jobs wait, and start whole when it comes.
    controller.check()?;
    controller.kill()?;
    world.create_job(&world.gang_job("later", 4)).await?;
    wait_reason(world, "waits for the PodGroup of Job later").await?;
    nothing_starts(world).await?;
    let mut controller = start(world, "auto")?;
    world.wait_running(4).await?;
    controller.check()?;
    controller.end().await
}

pub(super) async fn three_hundred_jobs_at_once_are_gangs_and_leave_nothing(
    world: &World<'_>,
) -> anyhow::Result<()> {
    const JOBS: usize = 300;
    let mut controller = start(world, "on")?;
    for index in 0..6 {
        world.node(&format!("n{index}"), "110").await?;
    }
    let jobs: Vec<Value> = (0..JOBS).map(|index| world.gang_job(&format!("job-{index}"), 2)).collect();
    let mut created =
        futures::stream::iter(&jobs).map(|job| world.create_job(job)).buffer_unordered(32).boxed();
    while let Some(created) = created.next().await {
        created?;
    }
    drop(created);
    world.wait_made(JOBS, JOBS).await?;
    world.wait_running(2 * JOBS).await?;
    // Half of them end whatever they do, and the others just after they were made.
    world.jobs().delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
    for (index, delay) in [0, 5, 20, 50, 100, 200, 500].into_iter().enumerate() {
        let name = format!("short-{index}");
        world.create_job(&world.gang_job(&name, 2)).await?;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        world.delete_job(&name).await?;
    }
    world.wait_made(0, 0).await?;
    world.wait_running(0).await?;
    controller.check()?;
    controller.end().await
}

pub(super) async fn jobs_of_a_cluster_that_makes_groups_itself_are_left_to_it(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let ours = world.control_plane.context("the control plane is not ours")?;
    let control_plane =
        ControlPlane::start_with(ours.release(), ours.binary(), Purpose::Stories, &[GATE]).await?;
    let setting = Setting {
        control_plane: Some(&control_plane),
        ..Setting::of(control_plane.kubeconfig(), ours.binary(), &world.tutti).await?
    };
    let world = World::start(setting).await?;
    let told = beside_the_clusters_own(&world).await;
    let ended = world.end().await;
    told.and(ended)
}

async fn beside_the_clusters_own(world: &World<'_>) -> anyhow::Result<()> {
    let scheduled = |name: &str, size: u32| {
        let mut job = world.gang_job(name, size);
        if !world.group_api_version().ends_with("/v1alpha2") {
            job["metadata"]["annotations"] = json!({});
            job["spec"]["scheduling"] = json!({"schedulingPolicy": {"gang": {}}});
        }
        job
    };
    let controller = start(world, "auto")?;
    world.node("n1", "3").await?;
    world.node("n2", "3").await?;
    world.create_job(&scheduled("train", 8)).await?;
    six_of_eight(world).await?;
    ensure!(world.made().await? == (1, 1), "{:?}", world.made().await?);
    ensure!(ours(world).await? == 0, "there were groups already");
    world.delete_job("train").await?;
    world.wait_made(0, 0).await?;
    world.wait_running(0).await?;
    controller.end().await?;

    // Even if both act at once, there is one group for each Job, and nobody stumbles over the other.
    let mut controller = start(world, "on")?;
    world.node("n3", "34").await?;
    for index in 0..20 {
        world.create_job(&scheduled(&format!("job-{index}"), 2)).await?;
    }
    world.wait_running(40).await?;
    ensure!(world.made().await? == (20, 20), "{:?}", world.made().await?);
    if !world.group_api_version().ends_with("/v1alpha2") {
        let patch = r#"{"spec":{"parallelism":3,"completions":3}}"#;
        world.kubectl(&["patch", "job", "job-0", "--type=merge", "-p", patch], "").await?;
        wait_minimum(world, "job-0", 3).await?;
    }
    controller.check()?;
    controller.end().await
}

pub(super) fn start(world: &World<'_>, integration: &str) -> anyhow::Result<Tutti> {
    let kubeconfig = world.kubeconfig.display().to_string();
    let options = ["--job-integration", integration, "--leader-elect=false", "--http-address", "off"];
    Tutti::start(world, &[&["controller", "--kubeconfig", &kubeconfig], &options[..]].concat())
}

/// A Job of eight waits where six fit, and starts when a node joins.
async fn six_of_eight(world: &World<'_>) -> anyhow::Result<()> {
    wait_reason(world, "has no room for as many members as it must have").await?;
    nothing_starts(world).await?;
    world.node("late", "2").await?;
    world.wait_running(8).await
}

async fn nothing_starts(world: &World<'_>) -> anyhow::Result<()> {
    tokio::time::sleep(SUSPENSE).await;
    ensure!(world.counts().await?.0 == 0, "a part of the gang has started");
    Ok(())
}

async fn suspend(world: &World<'_>, job: &str, suspend: bool) -> anyhow::Result<()> {
    let patch = json!({"spec": {"suspend": suspend}}).to_string();
    world.kubectl(&["patch", "job", job, "--type=merge", "-p", &patch], "").await?;
    Ok(())
}

/// Waits until a pod says this about why it waits.
async fn wait_reason(world: &World<'_>, words: &str) -> anyhow::Result<()> {
    eventually(&format!("a pod says {words:?}"), || async {
        world.check()?;
        let pods = world.pods().list(&ListParams::default()).await?.items;
        let conditions = pods.into_iter().filter_map(|pod| pod.status?.conditions).flatten();
        let said: Vec<String> = conditions.filter_map(|condition| condition.message).collect();
        Ok(said
            .iter()
            .any(|message| message.contains(words))
            .then_some(())
            .ok_or_else(|| format!("{said:?}")))
    })
    .await
}

async fn wait_minimum(world: &World<'_>, job: &str, minimum: u64) -> anyhow::Result<()> {
    eventually(&format!("the minimum of {job} is {minimum}"), || async {
        let groups = world.groups().list(&ListParams::default()).await?.items;
        let of_job = groups.iter().find(|group| {
            group
                .metadata
                .owner_references
                .iter()
                .flatten()
                .any(|owner| owner.kind == "Job" && owner.name == job)
        });
        let found =
            of_job.and_then(|group| group.data.pointer("/spec/schedulingPolicy/gang/minCount")?.as_u64());
        Ok((found == Some(minimum)).then_some(()).ok_or_else(|| format!("{found:?}")))
    })
    .await
}

/// How many groups are from our controller.
async fn ours(world: &World<'_>) -> anyhow::Result<usize> {
    let groups = world.groups().list(&ListParams::default()).await?.items;
    let is_ours = |group: &&kube::core::DynamicObject| {
        group.metadata.annotations.iter().flatten().any(|(key, _)| key == "tutti.dev/made-by")
    };
    Ok(groups.iter().filter(is_ours).count())
}
