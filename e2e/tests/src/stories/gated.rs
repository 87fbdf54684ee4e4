//! Groups of which scheduling gates hold back a member.

use super::topology::{gang, group, racks};
use crate::world::World;
use anyhow::ensure;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tutti_cluster::kubelet::NodeTemplate;

async fn gated_member(world: &World<'_>, group: &str, suffix: usize) -> anyhow::Result<()> {
    let mut spec = World::pod_spec(Some(group), "1");
    spec["schedulingGates"] = json!([{"name": "example.com/later"}]);
    world.pod_of(&format!("{group}-{suffix}"), &spec).await
}

async fn ungate(world: &World<'_>, pod: &str) -> anyhow::Result<()> {
    let patch = json!([{"op": "remove", "path": "/spec/schedulingGates"}]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    world.pods().patch(pod, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A rack with two seats, in which a group would be stranded that waits for a third, and one with four.
async fn racks_of_two_and_four(world: &World<'_>) -> anyhow::Result<()> {
    racks(world, "x", &["rack-1"], "2").await?;
    racks(world, "x", &["rack-2"], "4").await
}

async fn are_all_in(world: &World<'_>, group: &str, members: usize, rack: &str) -> anyhow::Result<()> {
    for index in 0..members {
        let node = world.node_of(&format!("{group}-{index}")).await?;
        ensure!(node.as_deref() == Some(rack), "{group}-{index} is on {node:?}");
    }
    Ok(())
}

pub(super) async fn a_gated_member_holds_its_group_until_all_have_room_in_one_rack(
    world: &World<'_>,
) -> anyhow::Result<()> {
    racks_of_two_and_four(world).await?;
    group(world, "g", &json!({}), &gang(2, true)).await?;
    gated_member(world, "g", 2).await?;
    world.members("g", 0..2, "1").await?;
    let said =
        world.wait_condition("g", "False", "waiting for pod g-2, which scheduling gates hold back").await?;
    ensure!(said["reason"] == "NotReadyForScheduling", "{said}");
    let said = world.wait_unscheduled("g-0").await?;
    ensure!(said.contains("waits for members that scheduling gates hold back"), "{said}");
    ensure!(world.counts().await? == (0, 0), "nobody starts");
    ungate(world, "g-2").await?;
    world.wait_running(3).await?;
    are_all_in(world, "g", 3, "rack-2").await?;
    // A basic group is held, too. What runs stays.
    world.group("b", &json!({"basic": {}})).await?;
    world.members("b", 0..1, "1").await?;
    world.wait_running(4).await?;
    gated_member(world, "b", 2).await?;
    world.members("b", 1..2, "1").await?;
    let said = world.wait_unscheduled("b-1").await?;
    ensure!(said == "pod group b: waiting for pod b-2, which scheduling gates hold back", "{said}");
    ungate(world, "b-2").await?;
    world.wait_running(6).await
}

pub(super) async fn a_group_that_starts_without_gated_members_goes_where_they_have_room(
    world: &World<'_>,
) -> anyhow::Result<()> {
    racks_of_two_and_four(world).await?;
    group(world, "bad", &json!({"tutti.dev/when-gated": "Go"}), &gang(2, true)).await?;
    let wrong = "metadata.annotations[tutti.dev/when-gated]: want Hold or Start, found \"Go\"";
    world.wait_condition("bad", "False", wrong).await?;
    let start = json!({"tutti.dev/when-gated": "Start"});
    group(world, "g", &start, &gang(2, true)).await?;
    gated_member(world, "g", 2).await?;
    world.members("g", 0..2, "1").await?;
    world.wait_running(2).await?;
    are_all_in(world, "g", 2, "rack-2").await?;
    ungate(world, "g-2").await?;
    world.wait_running(3).await?;
    are_all_in(world, "g", 3, "rack-2").await?;
    // Two more would fit into the first rack, but not with their third.
    group(world, "h", &start, &gang(2, true)).await?;
    gated_member(world, "h", 2).await?;
    world.members("h", 0..2, "1").await?;
    let short = "1 gated member must have room in the same domain";
    let said = world.wait_condition("h", "False", short).await?;
    ensure!(said["reason"] == "Unschedulable", "{said}");
    let node = NodeTemplate::new("rack-3", [("cpu", "3"), ("memory", "64Gi")]);
    world.add(node.label("rack", "rack-3")).await?;
    world.wait_running(5).await?;
    are_all_in(world, "h", 2, "rack-3").await
}
