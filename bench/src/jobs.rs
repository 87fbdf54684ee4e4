//! Many Jobs at once on the embedded cluster over HTTPS: Job controller, groups, scheduler and simulated kubelets, all in
//! one process. What is measured is everything together.

use crate::report::Report;
use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;
use tutti_controllers::gangs::Integration;
use tutti_controllers::process::{self, Settings};
use tutti_controllers::{Meters, PodView};
use tutti_k8s::Capabilities;

/// Requests for Jobs under way at once.
const CREATES_MAX: usize = 32;
/// GPUs of a node; a pod takes one.
const GPUS_PER_NODE: u32 = 8;
/// Something is broken if it takes longer.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much is measured.
pub(crate) struct Sizes {
    /// Jobs.
    pub(crate) jobs: usize,
    /// Pods of each.
    pub(crate) pods: usize,
}

/// Measures and reports.
pub(crate) fn run(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(all_at_once(sizes, report))
}

async fn all_at_once(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let pods = sizes.jobs * sizes.pods;
    let nodes = u32::try_from(pods.div_ceil(GPUS_PER_NODE as usize))?;
    let options = ClusterOptions {
        port: Port::Exactly(0),
        nodes,
        gpus_per_node: GPUS_PER_NODE,
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await?;
    let client = cluster.client();
    let config = tutti_scheduler::Config { job_integration: Integration::On, ..Default::default() };
    let scheduler = tokio::spawn(tutti_scheduler::run(client.clone(), config, std::future::pending()));
    let controller = tokio::spawn(run_controller(client.clone()));
    let started = Instant::now();
    let bound = tokio::spawn(wait_bound(cluster.in_process_client(), pods, started));
    let jobs = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource("batch", "v1", "Job"));
    futures::stream::iter(0..sizes.jobs)
        .map(|index| create(&jobs, index, sizes.pods))
        .buffer_unordered(CREATES_MAX)
        .try_collect::<Vec<()>>()
        .await?;
    report.figure("jobs-created", nodes, started.elapsed().as_secs_f64(), "s");
    let took = tokio::time::timeout(PATIENCE, bound).await.context("not all pods were ever bound")??;
    let (first, all) = took?;
    report.figure("jobs-first-pod-bound", nodes, first.as_secs_f64(), "s");
    report.figure("jobs-all-pods-bound", nodes, all.as_secs_f64(), "s");
    report.figure("jobs-pods-bound", nodes, pods as f64 / all.as_secs_f64(), "pods/s");
    let groups =
        Api::<DynamicObject>::all_with(client, &resource("scheduling.k8s.io", "v1beta1", "PodGroup"));
    let groups = groups.list(&ListParams::default()).await?.items.len();
    ensure!(groups == sizes.jobs, "there are {groups} groups for {} Jobs", sizes.jobs);
    scheduler.abort();
    controller.abort();
    cluster.shutdown().await;
    Ok(())
}

async fn run_controller(client: Client) -> anyhow::Result<()> {
    let capabilities = Capabilities::discover(&client).await?;
    let settings = Settings { scheduler_names: vec!["tutti".to_owned()], integration: Integration::On };
    process::run(client, &capabilities, settings, &Meters::default(), std::future::pending()).await;
    Ok(())
}

async fn create(jobs: &Api<DynamicObject>, index: usize, pods: usize) -> anyhow::Result<()> {
    let container = json!({"name": "main", "image": "any", "resources": {"limits": {"nvidia.com/gpu": "1"}}});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": format!("job-{index}")},
        "spec": {
            "completionMode": "Indexed", "parallelism": pods, "completions": pods,
            "scheduling": {"schedulingPolicy": {"gang": {}}},
            "template": {"spec": {"schedulerName": "tutti", "restartPolicy": "Never", "containers": [container]}},
        },
    });
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    Ok(())
}

/// When the first pod had a node, and when all had.
async fn wait_bound(client: Client, pods: usize, started: Instant) -> anyhow::Result<(Duration, Duration)> {
    let api = Api::<PodView>::all_with(client, &tutti_controllers::pods());
    let mut seen = std::pin::pin!(watcher(api, watcher::Config::default()).applied_objects());
    let (mut bound, mut first) = (HashSet::new(), None);
    while let Some(pod) = seen.try_next().await? {
        if pod.node().is_some() && bound.insert(pod.name_any()) {
            first.get_or_insert_with(|| started.elapsed());
            if let (true, Some(first)) = (bound.len() == pods, first) {
                return Ok((first, started.elapsed()));
            }
        }
    }
    anyhow::bail!("the watch ended")
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
