//! `tutti scheduler` as processes: leaders that come and go, and are killed.

use crate::control_plane::Part;
use crate::runner::say;
use crate::tutti::Tutti;
use crate::wait::{PATIENCE, eventually};
use crate::world::World;
use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The gang that is being bound when its scheduler is killed: nodes, and members on each.
const NODES: usize = 20;
const MEMBERS_PER_NODE: usize = 10;
/// How often it is killed; `TUTTI_E2E_KILLS` says otherwise.
const KILLS: usize = 5;
/// Requests of the story that are under way at once.
const REQUESTS_MAX: usize = 16;

/// A scheduler with a lease of two seconds in the namespace of the story.
fn start(world: &World<'_>, kubeconfig: &Path, names: &[&str]) -> anyhow::Result<Tutti> {
    let config = world.folder.join("scheduler.yaml");
    let text = json!({
        "apiVersion": "tutti.dev/v1alpha1", "kind": "SchedulerConfiguration",
        "leaderElection": {"leaseNamespace": world.namespace, "leaseDuration": "2s",
                           "renewDeadline": "1s300ms", "retryPeriod": "300ms"},
        "http": {"address": ""},
    });
    std::fs::write(&config, text.to_string())?;
    let (kubeconfig, config) = (kubeconfig.display().to_string(), config.display().to_string());
    let mut arguments = vec!["scheduler", "--kubeconfig", &kubeconfig, "--config", &config];
    arguments.extend(names.iter().flat_map(|name| ["--scheduler-name", name]));
    Tutti::start(world, &arguments)
}

/// Tells a story without the scheduler that every other story has.
macro_rules! with_processes {
    ($world:expr, $story:expr) => {{
        $world.stop("scheduler").await?;
        let result = $story.await;
        $world.start_scheduler()?;
        result
    }};
}

pub(super) async fn a_scheduler_killed_in_the_middle_of_a_gang_leaves_no_part_of_it(
    world: &World<'_>,
) -> anyhow::Result<()> {
    with_processes!(world, killed_in_the_middle(world))
}

async fn killed_in_the_middle(world: &World<'_>) -> anyhow::Result<()> {
    let kills = std::env::var("TUTTI_E2E_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    for index in 0..NODES {
        world.node(&format!("n{index}"), &MEMBERS_PER_NODE.to_string()).await?;
    }
    let members = NODES * MEMBERS_PER_NODE;
    let mut in_parts = 0;
    for round in 0..kills {
        let gang = format!("g{round}");
        let mut scheduler = start(world, &world.kubeconfig, &[])?;
        world.gang(&gang, u32::try_from(members)?).await?;
        futures::stream::iter(0..members)
            .map(|index| {
                let gang = &gang;
                async move { world.pod(&format!("{gang}-{index}"), Some(gang), "1").await }
            })
            .buffer_unordered(REQUESTS_MAX)
            .try_collect::<()>()
            .await?;
        // A random number of members that is seen to be bound makes a random moment in the middle.
        let moment = usize::try_from(uuid::Uuid::new_v4().as_u128() % members as u128)?;
        let deadline = Instant::now() + PATIENCE;
        while world.counts().await?.0 <= moment {
            scheduler.check()?;
            ensure!(Instant::now() < deadline, "never bound more than {moment}:\n{}", scheduler.said());
        }
        scheduler.kill()?;
        let (bound, _) = world.counts().await?;
        in_parts += usize::from(bound < members);
        let next = start(world, &world.kubeconfig, &[])?;
        let completed = world.wait_running(members).await;
        completed
            .with_context(|| format!("killed with {bound} bound; the next one said\n{}", next.said()))?;
        check_nodes(world).await?;
        next.end().await?;
        clear(world, &gang).await?;
    }
    say(&format!(
        "        {in_parts} of {kills} times a part of the gang was bound when its scheduler was killed"
    ));
    Ok(())
}

/// No node has more members than it has room for.
async fn check_nodes(world: &World<'_>) -> anyhow::Result<()> {
    let mut on_node: BTreeMap<String, usize> = BTreeMap::new();
    for pod in world.pods().list(&ListParams::default()).await? {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        *on_node.entry(node).or_default() += 1;
    }
    ensure!(on_node.values().all(|&count| count <= MEMBERS_PER_NODE), "over-committed: {on_node:?}");
    Ok(())
}

async fn clear(world: &World<'_>, gang: &str) -> anyhow::Result<()> {
    let now = DeleteParams::default().grace_period(0);
    world.pods().delete_collection(&now, &ListParams::default()).await?;
    world.delete_group(gang).await?;
    eventually("all members are gone", || async {
        let left = world.pods().list(&ListParams::default()).await?.items.len();
        Ok((left == 0).then_some(()).ok_or_else(|| format!("{left} are left")))
    })
    .await?;
    world.wait_gone(gang).await
}

pub(super) async fn of_two_schedulers_one_leads_and_the_other_takes_over(
    world: &World<'_>,
) -> anyhow::Result<()> {
    with_processes!(world, taken_over(world))
}

async fn taken_over(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "6").await?;
    let mut first = start(world, &world.kubeconfig, &[])?;
    let leader = wait_holder(world, "").await?;
    let mut second = start(world, &world.kubeconfig, &[])?;
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
    let third = start(world, &world.kubeconfig, &[])?;
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
        let lease = leases.get_opt("tutti-scheduler").await?;
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
    with_processes!(world, in_place_of_kube_scheduler(world))
}

async fn in_place_of_kube_scheduler(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    let container = json!({"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [container]});
    world.pod_of("plain", &spec).await?;
    let scheduler = start(world, &world.kubeconfig, &["default-scheduler"])?;
    world.wait_running(1).await?;
    let pod: Pod = world.pods().get("plain").await?;
    let name = pod.spec.and_then(|spec| spec.scheduler_name);
    ensure!(name.as_deref() == Some("default-scheduler"), "{name:?}");
    scheduler.end().await
}

pub(super) async fn a_leader_that_loses_its_api_server_goes_on_when_it_is_back(
    world: &World<'_>,
) -> anyhow::Result<()> {
    with_processes!(world, api_server_lost(world))
}

async fn api_server_lost(world: &World<'_>) -> anyhow::Result<()> {
    let control_plane = world.control_plane.context("this control plane is not ours")?;
    let mut scheduler = start(world, &world.kubeconfig, &[])?;
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
