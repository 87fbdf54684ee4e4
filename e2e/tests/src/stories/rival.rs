//! Somebody else who places pods without asking.

use super::hook::{self, BeforeBinding};
use super::storage::{Storage, with_claim};
use crate::wait::eventually;
use crate::world::World;
use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{Notify, OnceCell};

const RIVAL: &str = "rival";

pub(super) async fn a_gang_does_not_start_on_room_that_somebody_else_took_while_it_waited_for_volumes(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let storage = Storage::of(world);
    storage.tell(taken_while_it_waited(world, &storage)).await
}

async fn taken_while_it_waited(world: &World<'_>, storage: &Storage<'_>) -> anyhow::Result<()> {
    world.node("n1", "1").await?;
    world.node("n2", "1").await?;
    storage.class("made", "e2e.tutti.dev/provisioner").await?;
    storage.claim_for("shared", "made", "ReadWriteMany").await?;
    world.gang("g", 2).await?;
    world.replicas_of("members", 2, &with_claim(World::pod_spec(Some("g"), "1"), "shared")).await?;
    // Both have their seats, and wait.
    storage.selected_node("shared").await?;
    create_rival(world).await?;
    bind_rival(&world.pods(), "n2").await?;
    storage.provision_with("shared", &[]).await?;
    storage.wait_bound("shared").await?;
    world.wait_condition("g", "False", "1 of 2 members fit").await?;
    ensure!(world.counts().await? == (1, 1), "somebody beside the rival is bound");
    world.node("n3", "1").await?;
    wait_whole(world).await?;
    let pods = world.pods().list(&ListParams::default().labels("of=members")).await?.items.len();
    ensure!(pods == 2, "a member was lost: there are {pods}");
    Ok(())
}

pub(super) async fn a_race_for_room_that_is_lost_costs_a_member_but_not_the_gang(
    world: &World<'_>,
) -> anyhow::Result<()> {
    // While the binding of a member to one node is on its way, somebody else gets the room there.
    let (pods, asked, taken) = (world.pods(), Arc::new(Notify::new()), Arc::new(OnceCell::new()));
    let noted = asked.clone();
    let before: BeforeBinding = Arc::new(move |pod, node| {
        let (pods, noted, taken) = (pods.clone(), noted.clone(), taken.clone());
        Box::pin(async move {
            if pod == RIVAL {
                noted.notify_one();
            } else if node == "n2" {
                taken.get_or_try_init(|| bind_rival(&pods, "n2")).await?;
            }
            Ok(())
        })
    });
    hook::install(world, before).await?;
    let told = race_is_lost(world, &asked).await;
    hook::remove(world).await?;
    told
}

async fn race_is_lost(world: &World<'_>, asked: &Notify) -> anyhow::Result<()> {
    world.node("n1", "1").await?;
    world.node("n2", "1").await?;
    create_rival(world).await?;
    wait_asked(world, asked).await?;
    world.gang("g", 2).await?;
    world.replicas("members", "tutti", Some("g"), 2).await?;
    // Kubelets have the last word: one refuses its member, and the controller makes another.
    eventually("a kubelet refuses a member", || async {
        let pods = world.pods().list(&ListParams::default().labels("of=members")).await?;
        let reasons: Vec<String> =
            pods.into_iter().filter_map(|pod| pod.status.and_then(|status| status.reason)).collect();
        let is_refused = reasons.iter().any(|reason| reason == "OutOfcpu");
        Ok(is_refused.then_some(()).ok_or_else(|| format!("{reasons:?}")))
    })
    .await?;
    world.node("n3", "1").await?;
    wait_whole(world).await
}

/// API servers take a moment to heed a webhook: waits until one has asked about a binding that changes nothing.
async fn wait_asked(world: &World<'_>, asked: &Notify) -> anyhow::Result<()> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the webhook is asked", || async {
        bind(&world.pods(), "n1", &dry_run).await?;
        let pause = std::time::Duration::from_millis(50);
        Ok(tokio::time::timeout(pause, asked.notified()).await.map_err(|_| "it is not".to_owned()))
    })
    .await
}

async fn create_rival(world: &World<'_>) -> anyhow::Result<()> {
    let mut spec = World::pod_spec(None, "1");
    spec["schedulerName"] = json!("careless");
    world.labelled_pod(RIVAL, &json!({"of": RIVAL}), &spec).await
}

/// Places the rival as a scheduler does that looks at nothing, and waits until it runs.
async fn bind_rival(pods: &Api<Pod>, node: &str) -> anyhow::Result<()> {
    bind(pods, node, &PostParams::default()).await?;
    eventually("the rival runs", || async {
        let phase = pods.get(RIVAL).await?.status.and_then(|status| status.phase);
        Ok((phase.as_deref() == Some("Running")).then_some(()).ok_or_else(|| format!("{phase:?}")))
    })
    .await
}

async fn bind(pods: &Api<Pod>, node: &str, params: &PostParams) -> anyhow::Result<()> {
    let binding = json!({"metadata": {"name": RIVAL}, "target": {"kind": "Node", "name": node}});
    let _: Value = pods.create_subresource("binding", RIVAL, params, &binding).await?;
    Ok(())
}

/// Waits until the gang runs where the rival does not, and nobody else does.
async fn wait_whole(world: &World<'_>) -> anyhow::Result<()> {
    let wanted = [("members", "n1"), ("members", "n3"), (RIVAL, "n2")];
    eventually("the gang runs whole beside its rival", || async {
        let pods = world.pods().list(&ListParams::default().fields("status.phase=Running")).await?;
        let mut running: Vec<(String, String)> = pods
            .into_iter()
            .map(|pod| {
                let of = pod.metadata.labels.and_then(|mut labels| labels.remove("of")).unwrap_or_default();
                (of, pod.spec.and_then(|spec| spec.node_name).unwrap_or_default())
            })
            .collect();
        running.sort_unstable();
        let is_whole = running.iter().map(|(of, node)| (of.as_str(), node.as_str())).eq(wanted);
        Ok(is_whole.then_some(()).ok_or_else(|| format!("{running:?}")))
    })
    .await
}
