//! What is under `deploy/`, on a real API server.

use crate::rights::{NAMESPACE, deploy};
use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, bail, ensure};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tutti_k8s::Capabilities;
use tutti_k8s::gangs::Integration;
use tutti_scheduler::Settings;

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
    // For clusters without kube-scheduler.
    for (namespace, file) in [(NAMESPACE, "rbac.yaml"), ("kube-system", "tutti-scheduler.yaml")] {
        let there = format!("--namespace={namespace}");
        let file = deploy(&format!("static/{file}"));
        world.kubectl(&[&there, "apply", "--dry-run=server", "-f", &file], "").await?;
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
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 1, "podAffinityTerm": {"topologyKey": "topology.kubernetes.io/zone"},
        }]}},
        "imagePullSecrets": [{"name": "registry"}], "terminationGracePeriodSeconds": 45, "logLevel": "debug",
    });
    for (values, names, concurrency) in [(json!({}), "tutti", 100), (all_values, "default-scheduler", 7)] {
        let chart = Chart::taken(world, &values).await?;
        for kind in ["Deployment", "ClusterRole", "ClusterRoleBinding", "PodDisruptionBudget"] {
            chart.find(kind, "mine-scheduler")?;
            chart.find(kind, "mine-controller")?;
        }
        chart.find("Service", "mine-scheduler")?;
        chart.find("Service", "mine-webhooks")?;
        chart.find("ValidatingWebhookConfiguration", "mine-webhooks")?;
        let calls = chart.find("MutatingWebhookConfiguration", "mine-webhooks")?.to_string();
        ensure!(calls.contains(names), "pods of {names} are not sent: {calls}");
        // What the chart makes of its values is a configuration that the scheduler takes.
        let settings = chart.settings()?;
        ensure!(settings.config.names_in_words().starts_with(names), "{settings:?}");
        ensure!(settings.config.bind_concurrency == concurrency, "{settings:?}");
        let lease = settings.election().context("replicas elect nobody")?;
        ensure!(lease.name == "mine-scheduler", "rights are for a lease of another name: {lease:?}");
    }
    one_file_says_whether_groups_of_jobs_are_made_and_waited_for(world).await?;
    values_that_would_break_it_are_refused_by_name(world).await
}

async fn one_file_says_whether_groups_of_jobs_are_made_and_waited_for(
    world: &World<'_>,
) -> anyhow::Result<()> {
    for (values, expected) in [
        (json!({}), Integration::Auto),
        (json!({"controller": {"jobIntegration": "on"}}), Integration::On),
        (json!({"controller": {"jobIntegration": "off"}}), Integration::Off),
        // As Helm reads an off without quotes.
        (json!({"controller": {"jobIntegration": false}}), Integration::Off),
        (json!({"config": {"jobIntegration": "Off"}}), Integration::Off),
        // Nobody makes groups then.
        (json!({"controller": {"enabled": false}}), Integration::Off),
    ] {
        let chart = Chart::taken(world, &values).await?;
        let found = chart.settings()?.config.job_integration;
        ensure!(found == expected, "{values} became {found:?}");
        let mut names = vec!["mine-scheduler"];
        if values["controller"]["enabled"] == false {
            ensure!(chart.find("Deployment", "mine-controller").is_err(), "controllers run anyway");
        } else {
            names.push("mine-controller");
        }
        for name in names {
            let pod = &chart.find("Deployment", name)?["spec"]["template"]["spec"];
            let arguments = pod["containers"][0]["args"].to_string();
            let reads_it = arguments.contains("--config=/etc/tutti/scheduler.yaml")
                && pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/tutti"
                && pod["volumes"][0]["configMap"]["name"] == "mine-scheduler";
            ensure!(reads_it, "{name} reads another file: {pod}");
            ensure!(!arguments.contains("job-integration"), "{name} is told something else: {arguments}");
        }
    }
    Ok(())
}

async fn values_that_would_break_it_are_refused_by_name(world: &World<'_>) -> anyhow::Result<()> {
    for (values, named) in [
        (json!({"config": {"leaderElection": {"leaseName": "x"}}}), "config.leaderElection.leaseName: "),
        (
            json!({"config": {"leaderElection": {"leaseNamespace": "x"}}}),
            "config.leaderElection.leaseNamespace: ",
        ),
        (json!({"config": {"leaderElection": {"enabled": false}}}), "config.leaderElection.enabled: "),
        (json!({"config": {"http": {"address": "127.0.0.1:10270"}}}), "config.http.address: "),
        (json!({"config": {"http": {"address": ""}}}), "config.http.address: "),
        (json!({"controller": {"jobIntegration": "maybe"}}), "controller.jobIntegration or "),
        (
            json!({"controller": {"enabled": false}, "config": {"jobIntegration": "On"}}),
            "config.jobIntegration: want Off",
        ),
    ] {
        let Err(error) = rendered(world, &values).await else {
            bail!("{values} was taken");
        };
        let said = format!("{error:#}");
        ensure!(said.contains(named), "{values}: {said}");
    }
    Ok(())
}

/// The chart as a release called `mine`.
struct Chart {
    items: Vec<Value>,
}

impl Chart {
    /// With these values, as the API server takes it.
    async fn taken(world: &World<'_>, values: &Value) -> anyhow::Result<Self> {
        let rendered = rendered(world, values).await?;
        let taken = world.kubectl(&["apply", "--dry-run=server", "-o", "json", "-f", "-"], &rendered).await?;
        let taken: Value = serde_json::from_str(&taken)?;
        Ok(Self { items: taken["items"].as_array().context("no list was taken")?.clone() })
    }

    fn find(&self, kind: &str, name: &str) -> anyhow::Result<&Value> {
        let mut items = self.items.iter();
        let found = items.find(|item| item["kind"] == kind && item["metadata"]["name"] == name);
        found.with_context(|| format!("no {kind} is called {name}"))
    }

    /// What its configuration says to whoever reads it.
    fn settings(&self) -> anyhow::Result<Settings> {
        let config = self.find("ConfigMap", "mine-scheduler")?;
        let config = config["data"]["scheduler.yaml"].as_str().context("no configuration")?;
        tutti_scheduler::config::parse(config).with_context(|| config.to_owned())
    }
}

/// What Helm makes of the chart with these values.
async fn rendered(world: &World<'_>, values: &Value) -> anyhow::Result<String> {
    let file = world.folder.join("values.yaml");
    std::fs::write(&file, values.to_string())?;
    // Not asked by helm itself, which would need the cluster for it.
    let version = world.client.apiserver_version().await?.git_version;
    let chart = deploy("helm/tutti");
    let helm = world.helm.as_ref().context("there is no helm")?;
    let output = std::process::Command::new(helm)
        .args(["template", "mine", &chart, "--kube-version", &version, "--include-crds", "--values"])
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
