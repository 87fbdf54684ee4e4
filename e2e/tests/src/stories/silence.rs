//! A node that goes silent: nobody deletes it, its kubelet just says nothing any more.

use crate::wait::eventually;
use crate::world::World;
use anyhow::ensure;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tutti_cluster::kubelet;
use tutti_scheduler::Config;

/// How long the scheduler waits for a broken gang before it reports it. Shorter than usual, for the story to be short.
const GRACE: Duration = Duration::from_secs(3);

pub(super) async fn a_gang_on_a_silent_node_is_reported_and_completed_first(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.restart_scheduler_as(Config { gang_grace: GRACE, ..Config::default() }).await?;
    world.node("n1", "2").await?;
    world.node("n2", "2").await?;
    world.gang("g", 4).await?;
    world.replicas("members", "tutti", Some("g"), 4).await?;
    world.wait_running(4).await?;
    world.wait_condition("g", "True", "").await?;
    // Somebody waits for room, and has waited for longer than the gang will have.
    world.gang("rival", 2).await?;
    world.members("rival", 0..2, "1").await?;
    world.wait_condition("rival", "False", "0 of 2 members fit").await?;

    // The controller manager notices, taints the node, and evicts its pods, which stay for as long as their kubelet does
    // not confirm their end. Their controller makes others.
    fail(world, "n2", true).await?;
    eventually("the pods of the silent node are evicted and made again", || async {
        let members = members(world).await?;
        Ok((members.leaving == 2 && members.waiting == 2).then_some(()).ok_or_else(|| format!("{members:?}")))
    })
    .await?;
    let said = world.wait_event("g", "GangIncomplete").await?;
    ensure!(said.starts_with("2 of at least 4 members run"), "{said}");

    // Room comes. The gang that was broken gets it, though others have waited for longer.
    world.node("n3", "2").await?;
    let expected = BTreeMap::from([("n1".to_owned(), 2), ("n3".to_owned(), 2)]);
    eventually("the gang is complete again", || async {
        let members = members(world).await?;
        Ok((members.running == expected).then_some(()).ok_or_else(|| format!("{members:?}")))
    })
    .await?;
    world.wait_condition("rival", "False", "0 of 2 members fit").await?;

    // The kubelet is back, ends what was evicted, and there is room for everybody.
    fail(world, "n2", false).await?;
    world.wait_condition("rival", "True", "").await?;
    world.wait_running(6).await?;
    for pod in ["rival-0", "rival-1"] {
        let node = world.node_of(pod).await?;
        ensure!(node.as_deref() == Some("n2"), "{pod} is on {node:?}");
    }
    Ok(())
}

/// Silences the kubelet of a node, or lets it speak again.
async fn fail(world: &World<'_>, node: &str, failed: bool) -> anyhow::Result<()> {
    let nodes = Api::<Node>::all(world.client.clone());
    let value = failed.then_some("true");
    let patch = json!({"metadata": {"annotations": {kubelet::FAILED: value}}});
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// What has become of the members of the gang.
#[derive(Debug, Default)]
struct Members {
    /// By node.
    running: BTreeMap<String, usize>,
    leaving: usize,
    waiting: usize,
}

async fn members(world: &World<'_>) -> anyhow::Result<Members> {
    let mut members = Members::default();
    for pod in world.pods().list(&ListParams::default().labels("of=members")).await?.items {
        let Pod { metadata, spec, status } = pod;
        let phase = status.and_then(|status| status.phase);
        match (metadata.deletion_timestamp, spec.and_then(|spec| spec.node_name)) {
            (Some(_), _) => members.leaving += 1,
            (None, None) => members.waiting += 1,
            (None, Some(node)) if phase.as_deref() == Some("Running") => {
                *members.running.entry(node).or_default() += 1;
            }
            (None, Some(_)) => {}
        }
    }
    Ok(members)
}
