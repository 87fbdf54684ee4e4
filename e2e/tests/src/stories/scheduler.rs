//! `tutti scheduler` as processes: leaders that come and go, and are killed.

use crate::control_plane::Part;
use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::json;
use std::time::Duration;

/// The name of the lease, as it is if nobody says otherwise.
const LEASE: &str = "tutti-scheduler";

/// A scheduler with a lease of two seconds in the namespace of the story.
fn start(world: &World<'_>, names: &[&str]) -> anyhow::Result<Tutti> {
    start_with(world, LEASE, names)
}

/// The same with another lease.
pub(super) fn start_with(world: &World<'_>, lease: &str, names: &[&str]) -> anyhow::Result<Tutti> {
    let config = world.folder.join(format!("{lease}.yaml"));
    let text = json!({
        "apiVersion": "tutti.dev/v1alpha1", "kind": "SchedulerConfiguration",
        "leaderElection": {"leaseNamespace": world.namespace, "leaseName": lease, "leaseDuration": "2s",
                           "renewDeadline": "1s300ms", "retryPeriod": "300ms"},
        // Few at a time, so that gangs have a middle to be killed in.
        "limits": {"bindConcurrency": 8},
        "http": {"address": ""},
    });
    std::fs::write(&config, text.to_string())?;
    let (kubeconfig, config) = (world.kubeconfig.display().to_string(), config.display().to_string());
    let mut arguments = vec!["scheduler", "--kubeconfig", &kubeconfig, "--config", &config];
    arguments.extend(names.iter().flat_map(|name| ["--scheduler-name", name]));
    Tutti::start(world, &arguments)
}

pub(super) async fn of_two_schedulers_one_leads_and_the_other_takes_over(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.without_scheduler(taken_over(world)).await
}

async fn taken_over(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "6").await?;
    let mut first = start(world, &[])?;
    let leader = wait_holder(world, "").await?;
    let mut second = start(world, &[])?;
    gang_of_two(world, "g1").await?;
    world.wait_running(2).await?;
    second.check()?;
    ensure!(second.said().contains("following"), "the second must follow:\n{}", second.said());

    // Handed over: nobody waits for the lease to expire.
    first.check()?;
    first.end().await?;
    gang_of_two(world, "g2").await?;
    world.wait_running(4).await?;
    let next = wait_holder(world, &leader).await?;
    ensure!(second.said().contains("takeover=false"), "it was handed over:\n{}", second.said());

    // Killed: the third waits for the lease, and then for what may be under way.
    let third = start(world, &[])?;
    second.kill()?;
    gang_of_two(world, "g3").await?;
    world.wait_running(6).await?;
    wait_holder(world, &next).await?;
    ensure!(third.said().contains("takeover=true"), "it was not handed over:\n{}", third.said());
    third.end().await
}

/// Waits until somebody else holds the lease, and says who.
async fn wait_holder(world: &World<'_>, other: &str) -> anyhow::Result<String> {
    let leases = Api::<Lease>::namespaced(world.client.clone(), &world.namespace);
    eventually("somebody leads", || async {
        let lease = leases.get_opt(LEASE).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
        Ok(if holder.is_empty() || holder == other { Err(format!("{holder:?} leads")) } else { Ok(holder) })
    })
    .await
}

async fn gang_of_two(world: &World<'_>, name: &str) -> anyhow::Result<()> {
    world.gang(name, 2).await?;
    world.members(name, 0..2, "1").await
}

pub(super) async fn without_kube_scheduler_pods_that_name_none_are_placed(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.without_scheduler(in_place_of_kube_scheduler(world)).await
}

async fn in_place_of_kube_scheduler(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    let container = json!({"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [container]});
    world.pod_of("plain", &spec).await?;
    let scheduler = start(world, &["default-scheduler"])?;
    world.wait_running(1).await?;
    let pod: Pod = world.pods().get("plain").await?;
    let name = pod.spec.and_then(|spec| spec.scheduler_name);
    ensure!(name.as_deref() == Some("default-scheduler"), "{name:?}");
    scheduler.end().await
}

pub(super) async fn a_leader_that_loses_its_api_server_goes_on_when_it_is_back(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.without_scheduler(api_server_lost(world)).await
}

async fn api_server_lost(world: &World<'_>) -> anyhow::Result<()> {
    let control_plane = world.control_plane.context("this control plane is not ours")?;
    let mut scheduler = start(world, &[])?;
    world.node("n1", "2").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_condition("g", "False", "2 of 3 members fit").await?;
    control_plane.kill_part(Part::ApiServer)?;
    // Longer than the lease: it is lost.
    tokio::time::sleep(Duration::from_secs(3)).await;
    control_plane.start_part(Part::ApiServer)?;
    control_plane.wait_ready().await?;
    world.node("n2", "1").await?;
    world.wait_running(3).await?;
    scheduler.check()?;
    ensure!(scheduler.said().contains("not leading any more"), "{}", scheduler.said());
    scheduler.end().await
}
