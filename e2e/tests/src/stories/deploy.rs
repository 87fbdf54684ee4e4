//! What is under `deploy/`, on a real API server.

use crate::rights::{NAMESPACE, deploy};
use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, bail, ensure};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::path::Path;
use tutti_k8s::Capabilities;

pub(super) async fn a_scheduler_with_exactly_the_rights_of_deploy_works(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.without_scheduler(with_least_rights(world)).await
}

async fn with_least_rights(world: &World<'_>) -> anyhow::Result<()> {
    let here = format!("--namespace={NAMESPACE}");
    let rendered = world.kubectl(&["kustomize", &deploy("base")], "").await?;
    let taken = world.kubectl(&[&here, "apply", "--dry-run=server", "-f", "-"], &rendered).await?;
    for kind in ["deployment.apps", "configmap", "clusterrole", "poddisruptionbudget.policy", "service"] {
        ensure!(taken.contains(kind), "{kind} is not in\n{taken}");
    }
    let kubeconfig = world.scheduler_kubeconfig.display().to_string();
    let config = world.folder.join("rights.yaml");
    std::fs::write(
        &config,
        json!({"apiVersion": "tutti.dev/v1alpha1", "kind": "SchedulerConfiguration",
               "leaderElection": {"leaseNamespace": NAMESPACE}, "http": {"address": ""}})
        .to_string(),
    )?;
    let config = config.display().to_string();
    let mut scheduler =
        Tutti::start(world, &["scheduler", "--kubeconfig", &kubeconfig, "--config", &config])?;

    world.node("n1", "2").await?;
    world.gang("g", 3).await?;
    world.members("g", 0..3, "1").await?;
    world.wait_condition("g", "False", "2 of 3 members fit").await?;
    world.wait_event("g", "FailedScheduling").await?;
    world.wait_unscheduled("g-0").await?;
    world.node("n2", "1").await?;
    world.wait_running(3).await?;
    world.wait_condition("g", "True", "").await?;
    world.wait_event("g-0", "Scheduled").await?;
    // What is to survive the scheduler is written on the group.
    eventually("the group remembers that it was complete", || async {
        let annotations = world.groups().get("g").await?.metadata.annotations.unwrap_or_default();
        let marked = annotations.contains_key("tutti.dev/fully-bound");
        Ok(marked.then_some(()).ok_or_else(|| format!("{annotations:?}")))
    })
    .await?;
    scheduler.check()?;
    let said = scheduler.said();
    ensure!(!said.contains("orbidden"), "something is not allowed:\n{said}");
    scheduler.end().await
}

pub(super) async fn the_chart_renders_to_what_the_api_server_takes(world: &World<'_>) -> anyhow::Result<()> {
    let all_values = json!({
        "image": {"repository": "registry.example/tutti", "tag": "1.2.3"}, "replicas": 3,
        "schedulerNames": ["default-scheduler", "tutti"],
        "config": {"limits": {"bindConcurrency": 7}, "gangs": {"whenBroken": "Unwind"}},
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
    });
    for (values, names, concurrency) in [(json!({}), "tutti", 100), (all_values, "default-scheduler", 7)] {
        let file = world.folder.join("values.yaml");
        std::fs::write(&file, values.to_string())?;
        let chart = deploy("helm/tutti");
        // Not asked by helm itself, which would need the cluster for it.
        let version = world.client.apiserver_version().await?.git_version;
        let arguments =
            ["template", "mine", &chart, "--kube-version", &version, "--include-crds", "--values"];
        let rendered = helm(world, &arguments, &file)?;
        let taken = world.kubectl(&["apply", "--dry-run=server", "-o", "json", "-f", "-"], &rendered).await?;
        let taken: Value = serde_json::from_str(&taken)?;
        let items = taken["items"].as_array().context("no list was taken")?;
        let find = |kind: &str, name: &str| {
            let mut items = items.iter();
            let found = items.find(|item| item["kind"] == kind && item["metadata"]["name"] == name);
            found.with_context(|| format!("no {kind} is called {name}"))
        };
        for kind in ["Deployment", "ClusterRole", "ClusterRoleBinding", "PodDisruptionBudget"] {
            find(kind, "mine-scheduler")?;
            find(kind, "mine-controller")?;
        }
        find("Service", "mine-scheduler")?;
        find("Service", "mine-webhooks")?;
        find("ValidatingWebhookConfiguration", "mine-webhooks")?;
        let calls = find("MutatingWebhookConfiguration", "mine-webhooks")?.to_string();
        ensure!(calls.contains(names), "pods of {names} are not sent: {calls}");
        // What the chart makes of its values is a configuration that the scheduler takes.
        let config = find("ConfigMap", "mine-scheduler")?;
        let config = config["data"]["scheduler.yaml"].as_str().context("no configuration")?;
        let settings = tutti_scheduler::config::parse(config).with_context(|| config.to_owned())?;
        ensure!(settings.config.names_in_words().starts_with(names), "{config}");
        ensure!(settings.config.bind_concurrency == concurrency, "{config}");
        let lease = settings.lease.context("replicas elect nobody")?;
        ensure!(lease.name == "mine-scheduler", "rights are for a lease of another name: {config}");
    }
    Ok(())
}

fn helm(world: &World<'_>, arguments: &[&str], file: &Path) -> anyhow::Result<String> {
    let helm = world.helm.as_ref().context("there is no helm")?;
    let output = std::process::Command::new(helm)
        .args(arguments)
        .arg(file)
        .env("HOME", &world.folder)
        .output()
        .with_context(|| format!("cannot start {}", helm.display()))?;
    ensure!(output.status.success(), "helm failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) async fn pod_groups_of_our_own_work_where_kubernetes_has_none(
    world: &World<'_>,
) -> anyhow::Result<()> {
    world.stop("scheduler").await?;
    world.kubectl(&["apply", "-f", &deploy("crds")], "").await?;
    let result = with_own_groups(world).await;
    let _ = world.stop("scheduler").await;
    let _ = world.kubectl(&["delete", "-f", &deploy("crds"), "--wait=true", "--timeout=60s"], "").await;
    world.start_scheduler()?;
    result
}

async fn with_own_groups(world: &World<'_>) -> anyhow::Result<()> {
    // This server has groups of its own; the scheduler is told to do as if it had not.
    world.start_scheduler_with(Capabilities::custom())?;
    world.kubectl(&["wait", "--for=condition=Established", "crd/podgroups.tutti.dev"], "").await?;
    let group = |policy: Value| {
        json!({"apiVersion": "tutti.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": "own"},
               "spec": {"schedulingPolicy": policy}})
        .to_string()
    };
    for wrong in [json!({}), json!({"basic": {}, "gang": {"minCount": 1}}), json!({"gang": {"minCount": 0}})]
    {
        let said = world.kubectl(&["create", "-f", "-"], &group(wrong.clone())).await;
        ensure!(said.is_err(), "{wrong} was taken");
    }
    world.kubectl(&["create", "-f", "-"], &group(json!({"gang": {"minCount": 2}}))).await?;
    let said = world.kubectl(&["apply", "-f", "-"], &group(json!({"basic": {}}))).await;
    ensure!(said.is_err(), "a gang became something else");
    world.node("n1", "1").await?;
    for name in ["own-0", "own-1"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"tutti.dev/pod-group": "own"}},
            "spec": {"schedulerName": "tutti", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]},
        });
        world.kubectl(&["create", "-f", "-"], &pod.to_string()).await?;
    }
    wait_own_condition(world, "False", "1 of 2 members fit").await?;
    world.node("n2", "1").await?;
    world.wait_running(2).await?;
    wait_own_condition(world, "True", "2 members placed").await
}

async fn wait_own_condition(world: &World<'_>, status: &str, text: &str) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("tutti.dev", "v1alpha1", "PodGroup");
    let resource = ApiResource::from_gvk_with_plural(&kind, "podgroups");
    let groups = Api::<DynamicObject>::namespaced_with(world.client.clone(), &world.namespace, &resource);
    eventually(&format!("the group is scheduled: {status}"), || async {
        let conditions = groups.get("own").await?.data["status"]["conditions"].clone();
        let Some(list) = conditions.as_array() else {
            return Ok(Err(conditions.to_string()));
        };
        if list.len() > 1 {
            bail!("more than one condition: {conditions}");
        }
        let found = list.iter().any(|condition| {
            condition["type"] == "PodGroupInitiallyScheduled"
                && condition["status"] == status
                && condition["message"].as_str().unwrap_or_default().contains(text)
        });
        Ok(found.then_some(()).ok_or_else(|| conditions.to_string()))
    })
    .await
}
