//! Groups out of the templates of a Workload, for pods and Jobs that ask by annotations.

use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use std::path::Path;

const TREE: &str = "../../examples/workload.yaml";

fn start(world: &World<'_>) -> anyhow::Result<Tutti> {
    let kubeconfig = world.kubeconfig.display().to_string();
    let arguments = [
        "controller",
        "--kubeconfig",
        &kubeconfig,
        "--leader-elect=false",
        "--http-address",
        "off",
        "--job-integration",
        "on",
    ];
    Tutti::start(world, &arguments)
}

pub(super) async fn a_workload_gives_groups_to_pods_and_jobs_that_name_its_templates(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let mut controller = start(world)?;
    world.node("n1", "4").await?;
    let template = |name: &str| json!({"name": name, "schedulingPolicy": {"gang": {"minCount": 2}}});
    let workload = json!({
        "apiVersion": world.group_api_version(), "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": [template("pods"), template("job")]},
    });
    world.kubectl(&["create", "-f", "-"], &workload.to_string()).await?;
    for name in ["p0", "p1"] {
        world.kubectl(&["create", "-f", "-"], &annotated_pod(name).to_string()).await?;
    }
    world.wait_running(2).await?;

    world.kubectl(&["create", "-f", "-"], &annotated_job("train", "job").to_string()).await?;
    let group = eventually("the Job has a group", || async {
        let all = world.groups().list(&ListParams::default()).await?;
        let of_job = |group: &&DynamicObject| {
            let owners = group.metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| owner.kind == "Job" && owner.name == "train")
        };
        let found = all.iter().find(of_job).and_then(|group| group.metadata.name.clone());
        Ok(found.ok_or_else(|| format!("{} groups", all.items.len())))
    })
    .await?;
    world
        .kubectl(&["patch", "job", "train", "--type=merge", "-p", r#"{"spec":{"suspend":false}}"#], "")
        .await?;
    world.wait_running(4).await?;
    world.wait_condition(&group, "True", "").await?;

    world.kubectl(&["create", "-f", "-"], &annotated_job("lost", "nobody").to_string()).await?;
    let said = world.wait_event("lost", "FailedGroupStamping").await?;
    ensure!(said == "workload w: there is no template nobody", "{said:?}");

    world.kubectl(&["delete", "jobs", "--all", "--cascade=foreground", "--timeout=60s"], "").await?;
    world.wait_gone(&group).await?;
    world.kubectl(&["delete", "workload", "w"], "").await?;
    world.kubectl(&["delete", "pods", "--all", "--grace-period=0", "--force"], "").await?;
    world.wait_gone("g").await?;
    controller.check()?;
    controller.end().await
}

/// A pod that names its group, and what that is to be made of.
fn annotated_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {
            "tutti.dev/workload": "w", "scheduling.k8s.io/group-template-name": "pods"}},
        "spec": {"schedulerName": "tutti", "schedulingGroup": {"podGroupName": "g"},
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]},
    })
}

fn annotated_job(name: &str, template: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "annotations": {
            "tutti.dev/workload": "w", "scheduling.k8s.io/group-template-name": template}},
        "spec": {"suspend": true, "parallelism": 2, "template": {"spec": {
            "schedulerName": "tutti", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]}}},
    })
}

pub(super) async fn a_tree_is_made_once_by_a_controller_that_is_killed_meanwhile(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let composites = world.capabilities.composite.clone().context("the cluster serves no composites")?;
    let mut controller = start(world)?;
    world.node("n1", "4").await?;
    world.node("n2", "4").await?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TREE);
    let manifest = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    world.kubectl(&["create", "-f", "-"], &manifest).await?;
    let all = Api::<DynamicObject>::namespaced_with(world.client.clone(), &world.namespace, &composites);
    wait_for_composites(&all, 1).await?;
    controller.kill()?;
    let controller = start(world)?;
    world.wait_condition("training-workers", "False", "").await?;
    let (bound, _) = world.counts().await?;
    ensure!(bound == 0, "{bound} pods of the tree are bound");
    world.node("n3", "2").await?;
    world.wait_running(5).await?;
    wait_for_composites(&all, 1).await?;
    let groups = world.groups().list(&ListParams::default()).await?.items.len();
    ensure!(groups == 2, "{groups} groups");

    world.kubectl(&["delete", "deployments,workloads", "--all"], "").await?;
    wait_for_composites(&all, 0).await?;
    controller.end().await
}

async fn wait_for_composites(all: &Api<DynamicObject>, count: usize) -> anyhow::Result<()> {
    eventually(&format!("{count} composites"), || async {
        let found = all.list(&ListParams::default()).await?.items.len();
        Ok((found == count).then_some(()).ok_or_else(|| found.to_string()))
    })
    .await
}
