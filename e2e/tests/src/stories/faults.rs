//! What breaks, and what must not.

use crate::control_plane::{ControlPlane, Part};
use crate::world::World;
use anyhow::{Context as _, ensure};

pub(super) async fn a_lost_node_takes_its_pods_and_others_come(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    world.node("n2", "2").await?;
    world.gang("g", 4).await?;
    world.members("g", 0..4, "1").await?;
    world.wait_running(4).await?;
    // The cluster's own garbage collector removes pods of a node that is gone.
    world.delete_node("n2").await?;
    world.wait_running(2).await?;
    // Two are left of a minimum of four: one more alone does not come, two do.
    world.node("n3", "2").await?;
    world.members("g", 4..5, "1").await?;
    world.wait_event("g-4", "FailedScheduling").await?;
    ensure!(world.counts().await? == (2, 2), "a member started below the minimum");
    world.members("g", 5..6, "1").await?;
    world.wait_running(4).await
}

pub(super) async fn an_api_server_that_is_killed_costs_nothing(world: &World<'_>) -> anyhow::Result<()> {
    survives(world, &[Part::ApiServer]).await
}

pub(super) async fn an_etcd_that_is_killed_costs_nothing(world: &World<'_>) -> anyhow::Result<()> {
    survives(world, &[Part::Etcd]).await
}

/// A gang that waits when parts are killed starts when they are back and there is room.
async fn survives(world: &World<'_>, parts: &[Part]) -> anyhow::Result<()> {
    let control_plane: &ControlPlane = world.control_plane.context("this control plane is not ours")?;
    world.node("n1", "2").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_condition("g", "False", "2 of 3 members fit").await?;
    for &part in parts {
        control_plane.kill_part(part)?;
    }
    for &part in parts {
        control_plane.start_part(part)?;
    }
    control_plane.wait_ready().await?;
    world.node("n2", "1").await?;
    world.wait_running(3).await?;
    world.wait_condition("g", "True", "").await?;
    Ok(())
}
