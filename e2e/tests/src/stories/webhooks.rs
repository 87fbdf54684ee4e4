//! The webhooks, called by the real API server over TLS.

use crate::rights::{self, NAMESPACE, deploy};
use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;
use tutti_controllers::gangs::Integration;
use tutti_controllers::process::Settings;
use tutti_controllers::webhooks::{self, Places, Timing};
use tutti_controllers::{Key, Meters};

const MANIFEST: &str = "../../deploy/base/webhooks.yaml";
const CONTROLLER_RIGHTS: &str = "base/controller-rbac.yaml";
/// Changes of certificates that a story waits for.
const CHANGES: usize = 3;

/// The webhooks of a story: the configurations of `deploy/`, but called on loopback.
struct Site {
    name: String,
    address: SocketAddr,
}

impl Site {
    async fn prepare(world: &World<'_>) -> anyhow::Result<Self> {
        Self::prepare_as(world, format!("tutti-{}", world.namespace)).await
    }

    async fn prepare_as(world: &World<'_>, name: String) -> anyhow::Result<Self> {
        // Whoever else takes the port before it is used makes the story fail, not succeed.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let site = Self { name, address };
        for configuration in site.configurations()? {
            world.kubectl(&["create", "-f", "-"], &configuration.to_string()).await?;
        }
        Ok(site)
    }

    /// What `deploy/` has, under a name of its own and with addresses instead of a service.
    fn configurations(&self) -> anyhow::Result<Vec<Value>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(MANIFEST);
        let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let mut configurations: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        configurations.retain(|object| object.get("webhooks").is_some());
        ensure!(configurations.len() == 2, "two configurations, not {}", configurations.len());
        for configuration in &mut configurations {
            configuration["metadata"]["name"] = json!(self.name);
            for webhook in configuration["webhooks"].as_array_mut().context("a list")? {
                let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
                let url = format!("https://{}{}", self.address, path.context("a path")?);
                webhook["clientConfig"] = json!({"url": url});
            }
        }
        Ok(configurations)
    }

    async fn start(&self, world: &World<'_>, timing: Timing) -> anyhow::Result<()> {
        let settings = Settings { scheduler_names: vec!["tutti".to_owned()], integration: Integration::Off };
        let settings = watch::channel(settings).1;
        let options = webhooks::Options {
            address: self.address,
            places: Places {
                secret: Key::new(world.namespace.as_str(), self.name.as_str()),
                configurations: self.name.clone(),
                names: vec![self.address.ip().to_string()],
            },
            timing,
        };
        let client = world.client.clone();
        world.spawn("webhooks", |ended| async move {
            Ok(webhooks::run(client, settings, options, &Meters::default(), ended).await?)
        })
    }

    /// Configurations are not of a namespace, and would be called in the next story.
    async fn remove(&self, world: &World<'_>) -> anyhow::Result<()> {
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            world.kubectl(&["delete", kind, &self.name], "").await?;
        }
        world.kubectl(&["delete", "jobs", "--all", "--cascade=background", "--wait=false"], "").await?;
        Ok(())
    }
}

pub(super) async fn a_pod_of_a_job_with_a_group_names_it_and_what_can_never_run_is_warned_of(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let site = Site::prepare(world).await?;
    let result = linked_and_warned(world, &site).await;
    site.remove(world).await?;
    world.stop("webhooks").await?;
    result
}

async fn linked_and_warned(world: &World<'_>, site: &Site) -> anyhow::Result<()> {
    world.node("n1", "4").await?;
    site.start(world, Timing { poll: Duration::from_secs(1), ..Timing::default() }).await?;
    let job = suspended_job(world, "train", 3).await?;
    group_of(world, &job, 3).await?;
    eventually("a new pod of the Job is linked", || async {
        Ok(link_of_new_pod(world, &job).await?.map_or(Err("it is not".to_owned()), |_| Ok(())))
    })
    .await?;
    resume(world, "train").await?;
    world.wait_running(3).await?;
    for pod in raw_pods(world).await? {
        let name = pod.pointer("/spec/schedulingGroup/podGroupName");
        ensure!(name == Some(&json!("train")), "{} is linked to {name:?}", pod["metadata"]["name"]);
    }
    // Others' pods are not sent at all.
    world.pod("alone", None, "1").await?;
    world.wait_running(4).await?;

    let said = warnings(world, "batch/v1", "jobs", &job_of("huge", 2, "5")).await?;
    ensure!(said.contains("a pod asks for cpu 5, and the largest node has 4"), "{said:?}");
    let group = json!({
        "apiVersion": world.group_api_version(), "kind": "PodGroup", "metadata": {"name": "far"},
        "spec": {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "example.com/nowhere"}]}},
    });
    let said = warnings(world, world.group_api_version(), "podgroups", &group).await?;
    ensure!(said.contains("example.com/nowhere: no node has this label"), "{said:?}");
    let said = warnings(world, "batch/v1", "jobs", &job_of("good", 2, "1")).await?;
    ensure!(said.is_empty(), "{said:?}");
    Ok(())
}

pub(super) async fn certificates_change_under_load_and_no_request_is_lost(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let site = Site::prepare(world).await?;
    let result = rotated(world, &site).await;
    site.remove(world).await?;
    world.stop("webhooks").await?;
    result
}

async fn rotated(world: &World<'_>, site: &Site) -> anyhow::Result<()> {
    // Every certificate is due from the start, so one change follows the other.
    let hour = Duration::from_secs(3600);
    let timing = Timing {
        valid_for: hour,
        renew_before: hour,
        settle: Duration::from_secs(2),
        poll: Duration::from_millis(400),
    };
    site.start(world, timing).await?;
    let job = suspended_job(world, "train", 3).await?;
    group_of(world, &job, 3).await?;
    eventually("a new pod of the Job is linked", || async {
        Ok(link_of_new_pod(world, &job).await?.map_or(Err("it is not".to_owned()), |_| Ok(())))
    })
    .await?;

    let mut served = vec![certificate(world, site).await?];
    let mut requests = 0;
    while served.len() <= CHANGES {
        world.check()?;
        let linked = link_of_new_pod(world, &job).await?;
        requests += 1;
        // A request that the webhook does not answer goes on without a link.
        ensure!(
            linked.as_deref() == Some("train"),
            "request {requests} was lost, after {} changes",
            served.len() - 1
        );
        let now = certificate(world, site).await?;
        if served.last() != Some(&now) {
            served.push(now);
        }
        if requests > 20_000 {
            bail!("{requests} requests, and certificates have changed {} times", served.len() - 1);
        }
    }
    tracing::info!(requests, changes = CHANGES, "no request was lost");
    Ok(())
}

pub(super) async fn without_webhooks_pods_are_created_and_jobs_start_whole(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let site = Site::prepare(world).await?;
    let result = on_their_own(world, &site).await;
    site.remove(world).await?;
    result
}

async fn on_their_own(world: &World<'_>, site: &Site) -> anyhow::Result<()> {
    world.node("n1", "2").await?;
    // Nobody listens.
    starts_whole(world, "refused", 0).await?;
    // Somebody listens and never answers.
    let _silent = TcpListener::bind(site.address)?;
    starts_whole(world, "silent", 3).await
}

/// Three pods of a Job wait for a third place, and then start together.
async fn starts_whole(world: &World<'_>, name: &str, running: usize) -> anyhow::Result<()> {
    let job = suspended_job(world, name, 3).await?;
    group_of(world, &job, 3).await?;
    resume(world, name).await?;
    world.wait_condition(name, "False", "of 3 members fit").await?;
    let (bound, _) = world.counts().await?;
    ensure!(bound == running, "{bound} pods are bound, and {name} started in part");
    world.node(&format!("more-for-{name}"), "3").await?;
    world.wait_running(running + 3).await
}

pub(super) async fn controllers_with_exactly_the_rights_of_deploy_make_groups_and_answer(
    world: &World<'_>,
) -> anyhow::Result<()> {
    // Rights are about configurations of this name only.
    let site = Site::prepare_as(world, "tutti-webhooks".to_owned()).await?;
    let result = with_least_rights(world, &site).await;
    site.remove(world).await?;
    let here = format!("--namespace={NAMESPACE}");
    // What was not created need not be removed.
    let _ = world.kubectl(&[&here, "delete", "-f", &deploy(CONTROLLER_RIGHTS)], "").await;
    result
}

async fn with_least_rights(world: &World<'_>, site: &Site) -> anyhow::Result<()> {
    let token = rights::grant(&world.kubectl, CONTROLLER_RIGHTS, "tutti-controller").await?;
    let path = world.folder.join("controller.kubeconfig");
    let kubeconfig = rights::kubeconfig_with(&world.kubeconfig, &token, path)?.display().to_string();
    let config = world.folder.join("controller.yaml");
    let settings = json!({"apiVersion": "tutti.dev/v1alpha1", "kind": "SchedulerConfiguration",
                          "leaderElection": {"leaseNamespace": NAMESPACE}});
    std::fs::write(&config, settings.to_string())?;
    let (config, address) = (config.display().to_string(), site.address.to_string());
    let mut controller = Tutti::start(
        world,
        &[
            "controller",
            "--kubeconfig",
            &kubeconfig,
            "--config",
            &config,
            "--http-address",
            "off",
            "--job-integration",
            "on",
            "--webhook-address",
            &address,
        ],
    )?;

    world.node("n1", "3").await?;
    let mut asks = job_of("train", 3, "1");
    asks["metadata"]["annotations"] = json!({"tutti.dev/gang": "true"});
    world.kubectl(&["create", "-f", "-"], &asks.to_string()).await?;
    let jobs = Api::<Job>::namespaced(world.client.clone(), &world.namespace);
    let job = jobs.get("train").await?;
    eventually("a new pod of the Job is linked to the group that was made", || async {
        Ok(link_of_new_pod(world, &job).await?.map_or(Err("it is not".to_owned()), |_| Ok(())))
    })
    .await?;
    resume(world, "train").await?;
    world.wait_running(3).await?;
    world.wait_event("train", "PodGroupCreated").await?;
    controller.check()?;
    let said = controller.said();
    ensure!(!said.contains("orbidden"), "something is not allowed:\n{said}");
    controller.end().await
}

// === making and looking ===

/// A Job of ours with pods of so many CPUs.
fn job_of(name: &str, pods: u32, cpus: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"suspend": true, "parallelism": pods, "completions": pods, "completionMode": "Indexed",
            "template": {"spec": {
                "schedulerName": "tutti", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": cpus}}}]}}},
    })
}

async fn suspended_job(world: &World<'_>, name: &str, pods: u32) -> anyhow::Result<Job> {
    let jobs = Api::<Job>::namespaced(world.client.clone(), &world.namespace);
    let job = serde_json::from_value(job_of(name, pods, "1"))?;
    Ok(jobs.create(&PostParams::default(), &job).await?)
}

async fn resume(world: &World<'_>, job: &str) -> anyhow::Result<()> {
    world.kubectl(&["patch", "job", job, "--type=merge", "-p", r#"{"spec":{"suspend":false}}"#], "").await?;
    Ok(())
}

/// A gang that the Job controls, under the same name.
async fn group_of(world: &World<'_>, job: &Job, minimum: u32) -> anyhow::Result<()> {
    let group = json!({
        "apiVersion": world.group_api_version(), "kind": "PodGroup",
        "metadata": {"name": job.metadata.name, "ownerReferences": [owner(job)]},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
    });
    world.groups().create(&PostParams::default(), &serde_json::from_value(group)?).await?;
    Ok(())
}

fn owner(job: &Job) -> Value {
    let metadata = &job.metadata;
    json!({"apiVersion": "batch/v1", "kind": "Job", "name": metadata.name, "uid": metadata.uid, "controller": true})
}

/// The group that a new pod of the Job would name. Nothing is created.
async fn link_of_new_pod(world: &World<'_>, job: &Job) -> anyhow::Result<Option<String>> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": "new-", "ownerReferences": [owner(job)],
            "labels": {"batch.kubernetes.io/controller-uid": job.metadata.uid},
        },
        "spec": {"schedulerName": "tutti", "containers": [{"name": "main", "image": "any"}]},
    });
    let pod: Value = post(world, "v1", "pods", &pod).await?.1;
    Ok(pod.pointer("/spec/schedulingGroup/podGroupName").and_then(Value::as_str).map(str::to_owned))
}

/// What is said about a new object. Nothing is created.
async fn warnings(world: &World<'_>, api: &str, plural: &str, object: &Value) -> anyhow::Result<String> {
    Ok(post(world, api, plural, object).await?.0)
}

/// Warnings and object of a creation that is only tried.
async fn post(world: &World<'_>, api: &str, plural: &str, object: &Value) -> anyhow::Result<(String, Value)> {
    let root = if api.contains('/') { "apis" } else { "api" };
    let uri = format!("/{root}/{api}/namespaces/{}/{plural}?dryRun=All", world.namespace);
    let request = http::Request::post(uri)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(object.to_string().into_bytes()))?;
    let answer = world.client.send(request).await?;
    let said: Vec<String> = answer
        .headers()
        .get_all("warning")
        .iter()
        .map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
        .collect();
    let status = answer.status();
    let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok((said.join("\n"), serde_json::from_slice(&body)?))
}

/// Pods with all their fields, also those that types may not know.
async fn raw_pods(world: &World<'_>) -> anyhow::Result<Vec<Value>> {
    let text = world.kubectl(&["get", "pods", "-l", "job-name", "-o", "json"], "").await?;
    let list: Value = serde_json::from_str(&text)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// The certificate that is served, as the replicas share it.
async fn certificate(world: &World<'_>, site: &Site) -> anyhow::Result<Vec<u8>> {
    let secrets = Api::<Secret>::namespaced(world.client.clone(), &world.namespace);
    let data = secrets.get(&site.name).await?.data.unwrap_or_default();
    Ok(data.get("tls.crt").context("a certificate")?.0.clone())
}
