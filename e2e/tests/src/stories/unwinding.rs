//! Gangs that are taken back: their members are told, deleted, made again by their controller, and start as a whole.

use super::policy::Policy;
use crate::rights;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tutti_k8s::marks::{FULLY_BOUND, UNWIND_AT, WHEN_BROKEN};
use tutti_scheduler::Config;

/// How long a gang may be incomplete. Shorter than usual, for stories to be short.
const GRACE: Duration = Duration::from_secs(2);

pub(super) async fn a_gang_that_cannot_be_bound_whole_is_taken_back_and_starts_again(
    world: &World<'_>,
) -> anyhow::Result<()> {
    // A cluster that lets nobody onto one of its nodes, and lets the scheduler delete only the very pods that it means.
    let bindings =
        Policy::create(world, ("CREATE", "pods/binding"), None, "object.target.name != 'n2'").await?;
    let the_same = "has(request.options.preconditions) && has(request.options.preconditions.uid)";
    let deletions = Policy::create(world, ("DELETE", "pods"), Some(rights::SCHEDULER), the_same).await?;
    let told = taken_back(world, &bindings, &deletions).await;
    bindings.remove().await?;
    deletions.remove().await?;
    told
}

async fn taken_back(world: &World<'_>, bindings: &Policy<'_>, deletions: &Policy<'_>) -> anyhow::Result<()> {
    world.restart_scheduler_as(Config { gang_grace: GRACE, ..Config::default() }).await?;
    world.node("n1", "2").await?;
    world.node("n2", "2").await?;
    wait_heeded(world, bindings, deletions).await?;
    let start = world.version().await?;
    world.gang("g", 4).await?;
    world.replicas("members", "tutti", Some("g"), 4).await?;
    let said = world.wait_event("g", "GangUnwinding").await?;
    ensure!(said.starts_with("2 of at least 4 members run"), "{said}");
    let said = world.wait_event("g", "GangUnwound").await?;
    ensure!(said.contains("starts again as a whole"), "{said}");

    bindings.remove().await?;
    world.wait_running(4).await?;
    world.wait_condition("g", "True", "").await?;
    let running = uids(world).await?;
    let evicted = evicted(world, &start, 2).await?;
    ensure!(evicted.is_disjoint(&running), "somebody who was deleted runs");
    wait_marks(world, true).await
}

pub(super) async fn a_gang_that_was_complete_is_taken_back_if_its_group_asks_for_it(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.restart_scheduler_as(Config { gang_grace: GRACE, ..Config::default() }).await?;
    world.node("n1", "2").await?;
    world.node("n2", "2").await?;
    let start = world.version().await?;
    world.gang("g", 4).await?;
    let wish = json!({"metadata": {"annotations": {WHEN_BROKEN: "Unwind"}}});
    world.groups().patch("g", &PatchParams::default(), &Patch::Merge(wish)).await?;
    world.replicas("members", "tutti", Some("g"), 4).await?;
    world.wait_running(4).await?;
    wait_marks(world, true).await?;

    // Half of it is lost, and nobody can come in its place.
    cordon(world, "n2", true).await?;
    for pod in world.pods().list(&ListParams::default().fields("spec.nodeName=n2")).await? {
        world.delete_pod(&pod.metadata.name.unwrap_or_default()).await?;
    }
    world.wait_event("g", "GangUnwound").await?;
    world.wait_running(0).await?;
    evicted(world, &start, 2).await?;
    wait_marks(world, false).await?;

    cordon(world, "n2", false).await?;
    world.wait_running(4).await?;
    wait_marks(world, true).await
}

/// Waits until both policies refuse what they should, shown by requests that would change nothing.
async fn wait_heeded(world: &World<'_>, bindings: &Policy<'_>, deletions: &Policy<'_>) -> anyhow::Result<()> {
    let mut probe = World::pod_spec(None, "1");
    probe["schedulerName"] = json!("nobody");
    world.pod_of("probe", &probe).await?;
    let pods = world.pods();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let to_n2 = json!({"metadata": {"name": "probe"}, "target": {"kind": "Node", "name": "n2"}});
    bindings
        .wait_heeded(|| async {
            let request = pods.create_subresource("binding", "probe", &dry_run, &to_n2);
            request.await.map(|_: Value| ())
        })
        .await?;
    let as_scheduler = Api::<Pod>::namespaced(world.scheduler_client.clone(), &world.namespace);
    let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
    deletions.wait_heeded(|| async { as_scheduler.delete("probe", &dry_run).await.map(|_| ()) }).await?;
    pods.delete("probe", &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

/// Looks back at all that happened to members since then, and gives those that were deleted by the scheduler: at least so
/// many, each of which had a node and was told why.
async fn evicted(world: &World<'_>, since: &str, at_least: usize) -> anyhow::Result<BTreeSet<String>> {
    let mut history = world.watch_pods("of=members", since);
    let mut evicted = BTreeSet::new();
    let mut told = BTreeMap::new();
    while evicted.len() < at_least {
        let event = history.next().await;
        match event.with_context(|| format!("{evicted:?} were deleted; told were {told:?}"))? {
            WatchEvent::Modified(pod) if pod.metadata.deletion_timestamp.is_none() => {
                if let Some(reason) = disruption(&pod) {
                    told.insert(pod.metadata.uid.unwrap_or_default(), reason);
                }
            }
            WatchEvent::Deleted(pod) => {
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                match disruption(&pod).as_deref() {
                    Some("GangUnwound") => {
                        ensure!(pod.spec.is_some_and(|spec| spec.node_name.is_some()), "{uid} had no node");
                        ensure!(told.contains_key(&uid), "{uid} was not told before it was deleted");
                        evicted.insert(uid);
                    }
                    None => {}
                    Some(other) => bail!("{uid} was disrupted because of {other}"),
                }
            }
            _ => {}
        }
    }
    Ok(evicted)
}

/// Why a pod is disrupted, if it is.
fn disruption(pod: &Pod) -> Option<String> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|found| found.type_ == "DisruptionTarget" && found.status == "True")?.reason.clone()
}

async fn uids(world: &World<'_>) -> anyhow::Result<BTreeSet<String>> {
    let pods = world.pods().list(&ListParams::default()).await?;
    Ok(pods.into_iter().filter_map(|pod| pod.metadata.uid).collect())
}

/// Waits until it is written on the group that it was complete, or that it was not; and not that it is to be unwound.
async fn wait_marks(world: &World<'_>, complete: bool) -> anyhow::Result<()> {
    eventually("the group says how it stands", || async {
        let annotations = world.groups().get("g").await?.metadata.annotations.unwrap_or_default();
        let found = (annotations.contains_key(FULLY_BOUND), annotations.contains_key(UNWIND_AT));
        Ok((found == (complete, false)).then_some(()).ok_or_else(|| format!("{annotations:?}")))
    })
    .await
}

async fn cordon(world: &World<'_>, node: &str, cordoned: bool) -> anyhow::Result<()> {
    let nodes = Api::<Node>::all(world.client.clone());
    let patch = json!({"spec": {"unschedulable": cordoned}});
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
