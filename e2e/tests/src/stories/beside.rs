//! Two schedulers in one cluster, each with pods of its own: the real kube-scheduler and Tutti.

use crate::process::Component;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;

/// Nodes, and pods of one CPU that each has room for. Both schedulers together fill them to the last CPU.
const NODES: usize = 4;
const PODS_PER_NODE: usize = 4;
/// Pods of each scheduler.
const PODS: usize = NODES * PODS_PER_NODE / 2;
/// Pods that leave for others to come in their place.
const LEAVING: usize = 4;

pub(super) async fn kube_scheduler_and_tutti_share_nodes(world: &World<'_>) -> anyhow::Result<()> {
    let kube_scheduler = world.kube_scheduler.as_ref().context("there is no kube-scheduler")?;
    let log = world.folder.join("kube-scheduler.log");
    let mut kube_scheduler = kube_scheduler.component(&world.kubeconfig, &[], log);
    kube_scheduler.start()?;
    let told = tell(world, &mut kube_scheduler).await;
    told.with_context(|| format!("kube-scheduler said\n{}", kube_scheduler.tail()))
}

/// Both decide at the same time and do not know of each other's plans, so kubelets may have to refuse pods. Controllers
/// make those again, and in the end everybody runs.
async fn tell(world: &World<'_>, kube_scheduler: &mut Component) -> anyhow::Result<()> {
    for index in 0..NODES {
        world.node(&format!("n{index}"), &PODS_PER_NODE.to_string()).await?;
    }
    world.gang("gang", u32::try_from(PODS)?).await?;
    let (ours, theirs) = tokio::join!(
        world.replicas("ours", "tutti", Some("gang"), PODS),
        world.replicas("theirs", "default-scheduler", None, PODS),
    );
    ours.and(theirs)?;
    wait_shared(world, kube_scheduler, &[("ours", PODS), ("theirs", PODS)]).await?;

    // Room that pods of one scheduler leave is seen and used by the other.
    world.gang("late", u32::try_from(LEAVING)?).await?;
    world.replicas("late", "tutti", Some("late"), LEAVING).await?;
    world.wait_condition("late", "False", "0 of 4 members fit").await?;
    let fewer = json!({"spec": {"replicas": PODS - LEAVING}});
    world.replica_sets().patch("theirs", &PatchParams::default(), &Patch::Merge(&fewer)).await?;
    let all = [("ours", PODS), ("theirs", PODS - LEAVING), ("late", LEAVING)];
    wait_shared(world, kube_scheduler, &all).await?;
    world.replica_sets().delete("late", &DeleteParams::background()).await?;
    let again = json!({"spec": {"replicas": PODS}});
    world.replica_sets().patch("theirs", &PatchParams::default(), &Patch::Merge(&again)).await?;
    wait_shared(world, kube_scheduler, &[("ours", PODS), ("theirs", PODS)]).await
}

/// Waits until of every set so many pods run, placed by the scheduler that they name; no node may ever run more than it
/// has room for.
async fn wait_shared(
    world: &World<'_>,
    kube_scheduler: &mut Component,
    wanted: &[(&str, usize)],
) -> anyhow::Result<()> {
    let wanted: BTreeMap<String, usize> = wanted.iter().map(|(set, n)| ((*set).to_owned(), *n)).collect();
    eventually(&format!("pods run: {wanted:?}"), || {
        let checked = kube_scheduler.check();
        let wanted = &wanted;
        async move {
            checked?;
            world.check()?;
            let pods = world.pods().list(&ListParams::default()).await?.items;
            let mut running = BTreeMap::<String, usize>::new();
            let mut on_node = BTreeMap::<String, usize>::new();
            let mut seen = Vec::new();
            for pod in &pods {
                let (phase, reason) = phase(pod);
                let set = pod.metadata.labels.iter().flatten().find(|(key, _)| *key == "of");
                let set = set.map(|(_, value)| value.clone()).unwrap_or_default();
                match phase {
                    "Failed" => {
                        ensure!(reason == "OutOfcpu", "a pod of {set} failed because of {reason:?}");
                        seen.push(format!("{set} refused by a kubelet"));
                        continue;
                    }
                    "Running" => {
                        *running.entry(set).or_default() += 1;
                        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                        *on_node.entry(node.unwrap_or_default()).or_default() += 1;
                    }
                    other => seen.push(format!("{set} {other}")),
                }
            }
            let over = on_node.iter().find(|(_, count)| **count > PODS_PER_NODE);
            ensure!(over.is_none(), "a node runs more than it has room for: {over:?}");
            let done = running == *wanted;
            Ok(done.then_some(()).ok_or_else(|| format!("running {running:?}; others {seen:?}")))
        }
    })
    .await
}

fn phase(pod: &Pod) -> (&str, &str) {
    let status = pod.status.as_ref();
    (
        status.and_then(|status| status.phase.as_deref()).unwrap_or_default(),
        status.and_then(|status| status.reason.as_deref()).unwrap_or_default(),
    )
}
