//! Volumes that wait for their pods: those that exist are given once each, others are made for the node that was chosen,
//! and nobody starts before.

use super::storage::{SELECTED_NODE, Storage};
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::time::Duration;
use tutti_scheduler::Config;

/// How long a volume may take to be made. Shorter than usual, for the story to be short.
const VOLUME_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn local_volumes_are_given_once_each_to_a_gang(world: &World<'_>) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(given_once_each(world, &storage)).await
}

async fn given_once_each(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    for node in ["n1", "n2", "n3"] {
        world.node(node, "4").await?;
    }
    storage.class("local", "kubernetes.io/no-provisioner").await?;
    for node in ["n1", "n2"] {
        storage.volume_on(node, &format!("on-{node}"), "local").await?;
    }
    world.gang("g", 3).await?;
    for member in 0..3 {
        storage.claim(&format!("data-{member}"), "local").await?;
        storage.pod(&format!("g-{member}"), Some("g"), &format!("data-{member}")).await?;
    }
    let condition = world.wait_condition("g", "False", "2 of 3 members fit").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    ensure!(message.contains("no free volume for a claim"), "{message}");
    ensure!(world.counts().await?.0 == 0, "somebody started");
    storage.volume_on("n3", "on-n3", "local").await?;
    world.wait_running(3).await?;
    let mut nodes = Vec::new();
    for member in 0..3 {
        let claim = storage.claims().get(&format!("data-{member}")).await?;
        let volume = claim.spec.and_then(|spec| spec.volume_name).context("a claim is not bound")?;
        let node = world.node_of(&format!("g-{member}")).await?.unwrap_or_default();
        ensure!(volume == storage.name(&format!("on-{node}")), "g-{member} is on {node} and has {volume}");
        nodes.push(node);
    }
    nodes.sort_unstable();
    ensure!(nodes == ["n1", "n2", "n3"], "{nodes:?}");
    Ok(())
}

pub(super) async fn a_gang_waits_until_all_its_volumes_are_made(world: &World<'_>) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(made_for_all(world, &storage)).await
}

async fn made_for_all(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    world.node("n1", "1").await?;
    world.node("n2", "1").await?;
    gang_with_claims(world, storage).await?;
    let first = storage.provision("data-0").await?;
    let second = storage.selected_node("data-1").await?;
    ensure!(first != second, "both on {first}");
    storage.wait_bound("data-0").await?;
    ensure!(world.counts().await?.0 == 0, "a member was bound before all claims were");
    // A provisioner that cannot make a volume takes the selected node back; it is asked again.
    let nothing = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
    storage.claims().patch("data-1", &PatchParams::default(), &Patch::Merge(nothing)).await?;
    let said = world.wait_event("g-1", "FailedScheduling").await?;
    ensure!(said.contains("no volume could be made for volume claim data-1"), "{said}");
    storage.provision("data-1").await?;
    world.wait_running(2).await?;
    ensure!(world.node_of("g-0").await?.as_deref() == Some(first.as_str()), "g-0 left its volume");
    Ok(())
}

pub(super) async fn volumes_that_take_too_long_cost_the_gang_its_seats_until_it_is_tried_again(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(too_late(world, &storage)).await
}

async fn too_late(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    world.restart_scheduler_as(Config { volume_bind_timeout: VOLUME_TIMEOUT, ..Config::default() }).await?;
    world.node("n1", "2").await?;
    gang_with_claims(world, storage).await?;
    for claim in ["data-0", "data-1"] {
        ensure!(storage.selected_node(claim).await? == "n1", "there is only one node");
    }
    // Nobody makes a volume, and that is said.
    let said = world.wait_event("g-1", "FailedScheduling").await?;
    ensure!(said.contains("was not bound within 3 s"), "{said}");
    // Somebody who needs no volume comes. The gang has its seats again, but not for ever, and then the other one has one;
    // what was asked for is taken back.
    world.pod("other", None, "1").await?;
    world.wait_running(1).await?;
    ensure!(world.node_of("other").await?.is_some(), "a member runs without its volume");
    for claim in ["data-0", "data-1"] {
        eventually(&format!("no node is selected for {claim} any more"), || async {
            Ok(storage.selected_node_now(claim).await?.map_or(Ok(()), Err))
        })
        .await?;
    }
    world.wait_condition("g", "False", "1 of 2 members fit").await?;
    // With room the gang is tried again.
    world.delete_pod("other").await?;
    storage.provision("data-0").await?;
    storage.provision("data-1").await?;
    world.wait_running(2).await?;
    world.wait_condition("g", "True", "").await?;
    Ok(())
}

/// A gang of two, each with a claim for which a volume is to be made.
async fn gang_with_claims(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    storage.class("made", "e2e.tutti.dev/provisioner").await?;
    world.gang("g", 2).await?;
    for member in 0..2 {
        storage.claim(&format!("data-{member}"), "made").await?;
        storage.pod(&format!("g-{member}"), Some("g"), &format!("data-{member}")).await?;
    }
    Ok(())
}
