//! What people do and see, with the real kubectl.

use crate::world::World;
use anyhow::ensure;
use serde_json::{Value, json};
use tutti_cluster::kubelet::{GPU, NodeTemplate};

pub(super) async fn people_see_with_kubectl_what_happens(world: &World<'_>) -> anyhow::Result<()> {
    world.add(NodeTemplate::new("n1", [("cpu", "8"), ("memory", "8Gi"), (GPU, "2")])).await?;
    let manifest = gang(world, "gang", 4);
    let said = world.kubectl(&["apply", "-f", "-"], &manifest).await?;
    ensure!(said.contains("/gang created"), "{said}");
    world.wait_condition("gang", "False", "2 of 4 members fit").await?;
    let table = world.kubectl(&["get", "podgroups"], "").await?;
    let line = line_of(&table, "gang")?;
    for word in ["Gang", "Unschedulable"] {
        ensure!(line.contains(word), "{word} is not in {line}");
    }
    let described = world.kubectl(&["describe", "podgroup", "gang"], "").await?;
    ensure!(described.contains("short of 2 nvidia.com/gpu"), "{described}");
    world.wait_event("gang-0", "FailedScheduling").await?;
    let described = world.kubectl(&["describe", "pod", "gang-0"], "").await?;
    ensure!(described.contains("FailedScheduling"), "{described}");

    world.add(NodeTemplate::new("n2", [("cpu", "8"), ("memory", "8Gi"), (GPU, "2")])).await?;
    world.wait_running(4).await?;
    world.wait_condition("gang", "True", "").await?;
    let line = line_of(&world.kubectl(&["get", "podgroups"], "").await?, "gang")?;
    ensure!(line.contains("Scheduled"), "{line}");
    let table = world.kubectl(&["get", "pods", "-o", "wide"], "").await?;
    for pod in ["gang-0", "gang-3"] {
        let line = line_of(&table, pod)?;
        let node = world.node_of(pod).await?.unwrap_or_default();
        ensure!(line.contains("Running") && line.contains(&node), "{line}");
    }
    // Nothing has changed, so applying it again changes nothing, whatever the scheduler has written since.
    let said = world.kubectl(&["apply", "-f", "-"], &manifest).await?;
    ensure!(said.contains("/gang unchanged"), "{said}");
    world.kubectl(&["delete", "-f", "-", "--wait=true", "--timeout=60s"], &manifest).await?;
    world.wait_gone("gang").await
}

/// A gang and its members, one GPU each, as a manifest.
fn gang(world: &World<'_>, name: &str, size: usize) -> String {
    let mut items: Vec<Value> = vec![json!({
        "apiVersion": world.group_api_version(), "kind": "PodGroup", "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    })];
    items.extend((0..size).map(|index| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{name}-{index}")},
            "spec": {
                "schedulerName": "tutti",
                "terminationGracePeriodSeconds": 1,
                "schedulingGroup": {"podGroupName": name},
                "containers": [{"name": "main", "image": "any", "resources": {"limits": {GPU: "1"}}}],
            },
        })
    }));
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// The line of a table about one object.
fn line_of(table: &str, name: &str) -> anyhow::Result<String> {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.map(str::to_owned).ok_or_else(|| anyhow::anyhow!("no line about {name} in\n{table}"))
}
