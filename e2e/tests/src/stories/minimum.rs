//! A minimum that somebody changes, where the release lets them.

use crate::world::World;
use anyhow::ensure;
use kube::api::{Patch, PatchParams};
use serde_json::json;

pub(super) async fn a_minimum_that_is_lowered_lets_a_waiting_gang_start(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_condition("g", "False", "2 of 3 members fit").await?;
    ensure!(world.counts().await?.0 == 0, "a part of the gang has started");
    let changed = set_minimum(world, "g", 2).await;
    if world.group_api_version().ends_with("/v1alpha2") {
        ensure!(changed.is_err(), "this release does not let anybody change a policy");
        return Ok(());
    }
    changed?;
    world.wait_running(2).await?;
    world.wait_condition("g", "True", "2 members placed").await?;
    Ok(())
}

pub(super) async fn a_minimum_that_is_raised_holds_for_members_that_wait(
    world: &World<'_>,
) -> anyhow::Result<()> {
    if world.group_api_version().ends_with("/v1alpha2") {
        // This release does not let anybody change a policy.
        return Ok(());
    }
    world.node("n1", "2").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_condition("g", "False", "2 of 3 members fit").await?;
    set_minimum(world, "g", 4).await?;
    world.node("n2", "2").await?;
    // There would be room for the three by the old minimum.
    world.wait_condition("g", "False", "4 must start together and 3 are ready").await?;
    ensure!(world.counts().await?.0 == 0, "a gang below its new minimum has started");
    world.members("g", 3..4, "1").await?;
    world.wait_running(4).await
}

async fn set_minimum(world: &World<'_>, group: &str, minimum: u32) -> anyhow::Result<()> {
    let patch = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}});
    world.groups().patch(group, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
