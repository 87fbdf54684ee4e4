//! What the minimum of a gang means to members that come later, and when somebody changes it where the release lets them.

use crate::world::World;
use anyhow::ensure;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// The metric that counts looks for room for a group, with the labels that every such line has.
const ATTEMPTS: &str = "scheduler_podgroup_schedule_attempts_total{";

pub(super) async fn a_gang_with_fewer_members_than_its_minimum_is_never_tried(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.stop("scheduler").await?;
    let scheduler = world.start_scheduler_with_metrics()?;
    world.node("n1", "8").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..2, "1").await?;
    world.wait_condition("g", "False", "3 must start together and 2 are ready").await?;
    // Another node is no reason to look for room either.
    world.node("n2", "8").await?;
    // It comes after the node, and is seen after it.
    world.pod("plain", None, "1").await?;
    world.wait_running(1).await?;
    ensure!(attempts(&scheduler).await? == 0.0, "somebody looked for room for a gang of too few");
    world.members("g", 2..3, "1").await?;
    world.wait_running(4).await?;
    ensure!(attempts(&scheduler).await? == 1.0, "one look is enough for a gang that fits");
    Ok(())
}

/// How often a scheduler has looked for room for a group.
async fn attempts(scheduler: &Client) -> anyhow::Result<f64> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let text = scheduler.request_text(request).await?;
    let values = text.lines().filter_map(|line| line.strip_prefix(ATTEMPTS)?.rsplit_once(' '));
    Ok(values.map(|(_, value)| value.parse::<f64>()).sum::<Result<f64, _>>()?)
}

pub(super) async fn a_minimum_that_is_lowered_lets_a_gang_of_too_few_members_start(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "8").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..2, "1").await?;
    world.wait_condition("g", "False", "3 must start together and 2 are ready").await?;
    ensure!(world.counts().await?.0 == 0, "a gang of too few members has started");
    set_minimum(world, "g", 2).await?;
    world.wait_running(2).await?;
    world.wait_condition("g", "True", "2 members placed").await?;
    Ok(())
}

pub(super) async fn a_minimum_that_is_lowered_lets_a_waiting_gang_start(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_condition("g", "False", "2 of 3 members fit").await?;
    ensure!(world.counts().await?.0 == 0, "a part of the gang has started");
    set_minimum(world, "g", 2).await?;
    world.wait_running(2).await?;
    world.wait_condition("g", "True", "2 members placed").await?;
    Ok(())
}

pub(super) async fn a_minimum_that_is_raised_holds_for_members_that_wait(
    world: &World<'_>,
) -> anyhow::Result<()> {
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

pub(super) async fn a_minimum_that_is_raised_above_what_runs_holds_for_those_who_come(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "8").await?;
    world.gang("g", 2).await?;
    world.members("g", 0..2, "1").await?;
    world.wait_running(2).await?;
    set_minimum(world, "g", 4).await?;
    // Nobody who runs is stopped. There is room for one more, but that would still not be enough.
    world.members("g", 2..3, "1").await?;
    let said = world.wait_event("g-2", "FailedScheduling").await?;
    ensure!(said.contains("4 must start together and 3 are ready"), "{said}");
    ensure!(world.counts().await? == (2, 2), "a member has started below the minimum, or was stopped");
    world.members("g", 3..4, "1").await?;
    world.wait_running(4).await
}

pub(super) async fn members_beyond_the_minimum_wait_without_harm_and_come_one_by_one(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    world.gang("g", 2).await?;
    world.members("g", 0..2, "1").await?;
    world.wait_running(2).await?;
    world.wait_condition("g", "True", "").await?;
    world.members("g", 2..4, "1").await?;
    for member in ["g-2", "g-3"] {
        world.wait_event(member, "FailedScheduling").await?;
    }
    ensure!(world.counts().await? == (2, 2), "somebody started without room, or was stopped");
    // Once true, it stays true.
    world.wait_condition("g", "True", "").await?;
    for (node, running) in [("n2", 3), ("n3", 4)] {
        world.node(node, "1").await?;
        world.wait_running(running).await?;
    }
    Ok(())
}

pub(super) async fn members_of_a_basic_group_that_runs_wait_without_harm(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.node("n1", "1").await?;
    world.group("g", &json!({"basic": {}})).await?;
    world.members("g", 0..1, "1").await?;
    world.wait_running(1).await?;
    world.wait_condition("g", "True", "").await?;
    world.members("g", 1..3, "1").await?;
    world.wait_event("g-1", "FailedScheduling").await?;
    world.wait_event("g-2", "FailedScheduling").await?;
    // The one that runs counts: the group has started, whoever waits.
    world.wait_condition("g", "True", "").await?;
    ensure!(world.counts().await? == (1, 1), "somebody started without room, or was stopped");
    world.node("n2", "1").await?;
    world.wait_running(2).await
}

async fn set_minimum(world: &World<'_>, group: &str, minimum: u32) -> anyhow::Result<()> {
    let patch = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}});
    world.groups().patch(group, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
