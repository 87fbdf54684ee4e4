//! Groups from creation to running.

use crate::wait::eventually;
use crate::world::World;
use anyhow::ensure;
use serde_json::json;

pub(super) async fn a_gang_of_four_runs(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "4").await?;
    world.node("n2", "4").await?;
    world.gang("g", 4).await?;
    world.members("g", 0..4, "2").await?;
    world.wait_running(4).await?;
    let condition = world.wait_condition("g", "True", "").await?;
    ensure!(condition["reason"] == "Scheduled", "{condition}");
    let generation = world.groups().get("g").await?.metadata.generation;
    ensure!(
        condition["observedGeneration"].as_i64() == generation,
        "{condition} of generation {generation:?}"
    );
    let said = world.wait_event("g", "Scheduled").await?;
    ensure!(said == "4 members placed on 2 nodes", "{said}");
    let node = world.node_of("g-0").await?.unwrap_or_default();
    let said = world.wait_event("g-0", "Scheduled").await?;
    let expected = format!("Successfully assigned {}/g-0 to {node}", world.namespace);
    ensure!(said == expected, "{said}");
    Ok(())
}

pub(super) async fn six_of_eight_start_nothing_until_a_node_joins(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "6").await?;
    world.gang("g", 8).await?;
    world.members("g", 0..8, "1").await?;
    let condition = world.wait_condition("g", "False", "6 of 8 members fit").await?;
    ensure!(condition["reason"] == "Unschedulable", "{condition}");
    let message = condition["message"].as_str().unwrap_or_default();
    ensure!(message.contains("short of 2 cpu"), "{message}");
    eventually("members say why", || async {
        let said = world.wait_unscheduled("g-0").await?;
        Ok(said.contains("pod group g has no room").then_some(()).ok_or(said))
    })
    .await?;
    ensure!(world.counts().await? == (0, 0), "somebody started");
    world.node("n2", "2").await?;
    world.wait_running(8).await?;
    world.wait_condition("g", "True", "").await?;
    Ok(())
}

pub(super) async fn a_mixed_gang_is_placed_where_only_one_way_fits(world: &World<'_>) -> anyhow::Result<()> {
    world.node("small", "2").await?;
    world.node("large", "4").await?;
    world.gang("g", 2).await?;
    // The small one comes first; on the large node it would leave no room for the other.
    world.pod("g-small", Some("g"), "2").await?;
    world.pod("g-large", Some("g"), "4").await?;
    world.wait_running(2).await?;
    for (pod, node) in [("g-small", "small"), ("g-large", "large")] {
        let found = world.node_of(pod).await?;
        ensure!(found.as_deref() == Some(node), "{pod} is on {found:?}");
    }
    Ok(())
}

pub(super) async fn a_basic_group_starts_with_whoever_fits(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "3").await?;
    world.group("g", &json!({"basic": {}})).await?;
    world.members("g", 0..5, "1").await?;
    world.wait_running(3).await?;
    world.wait_condition("g", "True", "").await?;
    world.node("n2", "2").await?;
    world.wait_running(5).await
}

pub(super) async fn a_quorum_starts_without_the_rest(world: &World<'_>) -> anyhow::Result<()> {
    world.node("n1", "4").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..6, "1").await?;
    world.wait_running(4).await?;
    world.wait_condition("g", "True", "").await?;
    world.node("n2", "2").await?;
    world.wait_running(6).await
}

pub(super) async fn late_members_join_and_a_late_group_is_waited_for(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "16").await?;
    world.members("g", 0..2, "1").await?;
    let said = world.wait_event("g-0", "FailedScheduling").await?;
    ensure!(said.contains("waiting for pod group"), "{said}");
    world.gang("g", 3).await?;
    world.wait_condition("g", "False", "2 are ready").await?;
    ensure!(world.counts().await?.0 == 0, "somebody started");
    world.members("g", 2..3, "1").await?;
    world.wait_running(3).await?;
    world.members("g", 3..5, "1").await?;
    world.wait_running(5).await
}

pub(super) async fn a_deleted_gang_makes_room_and_its_group_waits_for_its_pods(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    world.gang("first", 2).await?;
    world.members("first", 0..2, "1").await?;
    world.wait_running(2).await?;
    world.gang("second", 2).await?;
    world.members("second", 0..2, "1").await?;
    world.wait_condition("second", "False", "0 of 2 members fit").await?;
    // The group is protected while a pod of it is there.
    world.delete_group("first").await?;
    let protected = world.groups().get("first").await?;
    ensure!(
        protected.metadata.deletion_timestamp.is_some() && protected.metadata.finalizers.is_some(),
        "a group with pods is gone at once"
    );
    ensure!(world.counts().await? == (2, 2), "deleting a group moved its pods");
    world.delete_pod("first-0").await?;
    world.delete_pod("first-1").await?;
    world.wait_gone("first").await?;
    world.wait_running(2).await?;
    world.wait_condition("second", "True", "").await?;
    Ok(())
}

pub(super) async fn plain_pods_are_placed_and_restarted_schedulers_go_on(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "4").await?;
    world.pod("a", None, "1").await?;
    world.wait_running(1).await?;
    world.stop("scheduler").await?;
    world.gang("g", 2).await?;
    world.members("g", 0..2, "1").await?;
    world.start_scheduler()?;
    world.wait_running(3).await
}
