//! Spreading by default, as the real kube-scheduler does it.

use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use kube::api::PostParams;
use serde_json::{Value, json};

pub(super) async fn pods_of_a_service_go_where_kube_scheduler_sends_them(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let kube_scheduler = world.kube_scheduler.as_ref().context("there is no kube-scheduler")?;
    let log = world.folder.join("kube-scheduler.log");
    let mut kube_scheduler = kube_scheduler.component(&world.kubeconfig, &[], log);
    kube_scheduler.start()?;
    tell(world).await.with_context(|| format!("kube-scheduler said\n{}", kube_scheduler.tail()))
}

/// Node `a` has more room, but two pods of the app.
async fn tell(world: &World<'_>) -> anyhow::Result<()> {
    world.node("a", "8").await?;
    world.node("b", "8").await?;
    for (name, app, cpus, node) in
        [("old-0", "web", "1", "a"), ("old-1", "web", "1", "a"), ("other", "db", "4", "b")]
    {
        pod(world, name, app, cpus, &json!({"nodeName": node})).await?;
    }
    world.wait_running(3).await?;
    let alone = [chosen(world, "default-scheduler").await?, chosen(world, "tutti").await?];
    ensure!(alone == ["a", "a"], "without a service they went to {alone:?}");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                         "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    world.kubectl(&["create", "-f", "-"], &service.to_string()).await?;
    // Watches are not ordered among each other: each may take in the service a moment later.
    for scheduler in ["default-scheduler", "tutti"] {
        eventually(&format!("{scheduler} spreads pods of the service"), || async {
            let node = chosen(world, scheduler).await?;
            Ok(if node == "b" { Ok(()) } else { Err(format!("the last one went to {node}")) })
        })
        .await?;
    }
    Ok(())
}

/// Where a scheduler puts a pod of the app; it does not stay there.
async fn chosen(world: &World<'_>, scheduler: &str) -> anyhow::Result<String> {
    let name = format!("new-{}", uuid::Uuid::new_v4().simple());
    pod(world, &name, "web", "1", &json!({"schedulerName": scheduler})).await?;
    let node = eventually(&format!("{name} has a node"), || async {
        let spec = world.pods().get(&name).await?.spec;
        Ok(spec.and_then(|spec| spec.node_name).ok_or_else(|| "it waits".to_owned()))
    })
    .await?;
    world.delete_pod(&name).await?;
    eventually(&format!("{name} is gone"), || async {
        let found = world.pods().get_opt(&name).await?;
        Ok(found.map_or(Ok(()), |_| Err("it is there".to_owned())))
    })
    .await?;
    Ok(node)
}

async fn pod(world: &World<'_>, name: &str, app: &str, cpus: &str, fields: &Value) -> anyhow::Result<()> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": "any", "resources": {"requests": {"cpu": cpus, "memory": format!("{cpus}Gi")}}}]},
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    world.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(())
}
