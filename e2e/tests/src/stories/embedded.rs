//! The other way round: the real kube-scheduler on the embedded cluster.

use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{from_value, json};
use std::collections::BTreeMap;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;

/// Pods, two for each node.
const PODS: usize = 4;

/// What each pod requests. A quarter of a node: enough for kube-scheduler, which rates the room that is left in percent,
/// to tell a node with a pod from one without. Between nodes that it rates alike it draws lots.
const CPUS: &str = "16";

pub(super) async fn the_real_kube_scheduler_schedules_on_the_embedded_cluster(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let options = ClusterOptions { port: Port::Exactly(0), nodes: 2, ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await?;
    let folder = std::env::temp_dir().join(format!("tutti-e2e-embedded-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let told = tell(world, &cluster, &folder).await;
    cluster.shutdown().await;
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    told
}

async fn tell(world: &World<'_>, cluster: &Cluster, folder: &std::path::Path) -> anyhow::Result<()> {
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig())?;
    let kube_scheduler = world.kube_scheduler.as_ref().context("there is no kube-scheduler")?;
    // The embedded cluster answers in JSON whatever it is asked in.
    let json_only = ["--kube-api-content-type=application/json"];
    let mut scheduler = kube_scheduler.component(&kubeconfig, &json_only, folder.join("kube-scheduler.log"));
    scheduler.start()?;

    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    for index in 0..PODS {
        let pod = json!({
            "metadata": {"name": format!("p{index}")},
            "spec": {"containers": [
                {"name": "main", "image": "any", "resources": {"requests": {"cpu": CPUS}}},
            ]},
        });
        pods.create(&PostParams::default(), &from_value(pod)?).await?;
    }
    let scheduler = &mut scheduler;
    let nodes: Vec<String> = eventually("all pods run where kube-scheduler has put them", || {
        let (pods, checked) = (pods.clone(), scheduler.check());
        async move {
            checked?;
            let all = pods.list(&ListParams::default()).await?.items;
            let running = all.iter().filter(|pod| {
                pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
            });
            let nodes: Vec<String> = running.filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
            let seen = format!("{} of {PODS} run", nodes.len());
            Ok(if nodes.len() == PODS { Ok(nodes) } else { Err(seen) })
        }
    })
    .await
    .with_context(|| format!("kube-scheduler said\n{}", scheduler.tail()))?;
    let mut pods_on = BTreeMap::<&str, usize>::new();
    for node in &nodes {
        *pods_on.entry(node).or_default() += 1;
    }
    let expected = BTreeMap::from([("node-0", PODS / 2), ("node-1", PODS / 2)]);
    ensure!(pods_on == expected, "kube-scheduler prefers the emptier node, but they are on {pods_on:?}");
    Ok(())
}
