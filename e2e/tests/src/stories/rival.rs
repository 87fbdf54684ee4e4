//! Somebody else who places pods without asking.

use super::storage::{Storage, with_claim};
use crate::wait::eventually;
use crate::world::World;
use anyhow::ensure;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

pub(super) async fn room_that_somebody_else_takes_in_the_last_moment_costs_a_member_but_not_the_gang(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(taken_in_the_last_moment(world, &storage)).await
}

/// A gang has its seats and waits for a volume: that is a last moment that can be made as long as one likes.
async fn taken_in_the_last_moment(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    world.node("n1", "1").await?;
    world.node("n2", "1").await?;
    storage.class("made", "e2e.tutti.dev/provisioner").await?;
    storage.claim_for("shared", "made", "ReadWriteMany").await?;
    world.gang("g", 2).await?;
    world.replicas_of("members", 2, &with_claim(World::pod_spec(Some("g"), "1"), "shared")).await?;
    storage.selected_node("shared").await?;
    bind_rival(world, "n2").await?;
    storage.provision_with("shared", &[]).await?;

    // Kubelets have the last word: one refuses its member, and the controller makes another.
    eventually("a kubelet refuses a member", || async {
        let pods = world.pods().list(&ListParams::default().labels("of=members")).await?;
        let reason = |status: k8s_openapi::api::core::v1::PodStatus| status.reason;
        let reasons: Vec<_> = pods.into_iter().filter_map(|pod| pod.status.and_then(reason)).collect();
        Ok(reasons
            .iter()
            .any(|reason| reason == "OutOfcpu")
            .then_some(())
            .ok_or_else(|| format!("{reasons:?}")))
    })
    .await?;
    world.node("n3", "1").await?;
    eventually("the gang runs whole beside its rival", || async {
        let running = running(world).await?;
        let wanted = [("members", "n1"), ("members", "n3"), ("rival", "n2")];
        let is_whole = running.iter().map(|(of, node)| (of.as_str(), node.as_str())).eq(wanted);
        Ok(is_whole.then_some(()).ok_or_else(|| format!("{running:?}")))
    })
    .await
}

/// Places a pod as a scheduler does that looks at nothing, and waits until it runs.
async fn bind_rival(world: &World<'_>, node: &str) -> anyhow::Result<()> {
    let mut spec = World::pod_spec(None, "1");
    spec["schedulerName"] = json!("careless");
    world.labelled_pod("rival", &json!({"of": "rival"}), &spec).await?;
    let binding = json!({"metadata": {"name": "rival"}, "target": {"kind": "Node", "name": node}});
    let _: Value =
        world.pods().create_subresource("binding", "rival", &PostParams::default(), &binding).await?;
    eventually("the rival runs", || async {
        let running = running(world).await?;
        ensure!(running.len() <= 1, "{running:?}");
        Ok((running.len() == 1).then_some(()).ok_or_else(|| "it does not".to_owned()))
    })
    .await
}

/// What runs: of which set, and where.
async fn running(world: &World<'_>) -> anyhow::Result<Vec<(String, String)>> {
    let pods = world.pods().list(&ListParams::default().fields("status.phase=Running")).await?;
    let mut running: Vec<(String, String)> = pods
        .into_iter()
        .map(|pod| {
            let of = pod.metadata.labels.and_then(|mut labels| labels.remove("of")).unwrap_or_default();
            (of, pod.spec.and_then(|spec| spec.node_name).unwrap_or_default())
        })
        .collect();
    running.sort_unstable();
    Ok(running)
}
