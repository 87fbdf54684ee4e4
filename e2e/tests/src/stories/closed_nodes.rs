//! A node is tainted, cordoned or deleted, and a pod is created at once that would like to go there.
//!
//! Schedulers hear of nodes and of pods by different watches, so a pod may overtake the news about its node. That happens
//! to kube-scheduler, too. Here both have the same race, in turns, and Tutti must not lose it more often.

use super::scheduler::start_with;
use crate::process::Component;
use crate::runner::say;
use crate::tutti::Tutti;
use crate::variables::number;
use crate::wait::PATIENCE;
use crate::world::World;
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tutti_cluster::kubelet::NodeTemplate;

/// Races of each scheduler, on every release.
const RACES: u64 = 40;
/// Says how many, instead.
const RACES_VARIABLE: &str = "TUTTI_E2E_RACES";
/// Both lose a race now and then on a busy machine. One in so many says nothing about who loses more.
const CHANCE_ONE_IN: u64 = 100;
/// The node that everybody likes to go to, and the other one.
const LIKED: &str = "liked";
const OTHER: &str = "other";
/// The pause between two looks at a pod.
const LOOK: Duration = Duration::from_millis(5);

/// How a node is closed.
const WAYS: [Way; 3] = [Way::Taint, Way::Cordon, Way::Delete];

#[derive(Debug, Clone, Copy)]
enum Way {
    Taint,
    Cordon,
    Delete,
}

/// Whose pod it is.
#[derive(Debug, Clone, Copy)]
enum Racer {
    Tutti,
    KubeScheduler,
}

impl Racer {
    fn name(self) -> &'static str {
        match self {
            Self::Tutti => "tutti",
            Self::KubeScheduler => "default-scheduler",
        }
    }
}

pub(super) async fn pods_go_to_nodes_that_were_closed_before_no_more_often_than_with_kube_scheduler(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let kube_scheduler = world.kube_scheduler.as_ref().context("there is no kube-scheduler")?;
    let log = world.folder.join("kube-scheduler.log");
    let mut kube_scheduler = kube_scheduler.component(&world.kubeconfig, &[], log);
    kube_scheduler.start()?;
    let told = world.without_scheduler(race(world, &mut kube_scheduler)).await;
    told.with_context(|| format!("kube-scheduler said\n{}", kube_scheduler.tail()))
}

async fn race(world: &World<'_>, kube_scheduler: &mut Component) -> anyhow::Result<()> {
    let races = number(RACES_VARIABLE)?.unwrap_or(RACES);
    let mut tutti = start_with(world, "races", &["tutti"])?;
    world.node(OTHER, "100").await?;
    open(world, Way::Delete).await?;
    let (mut ours, mut theirs) = ([0; WAYS.len()], [0; WAYS.len()]);
    for turn in 0..races {
        let way = usize::try_from(turn)? % WAYS.len();
        for (racer, misses) in [(Racer::Tutti, &mut ours), (Racer::KubeScheduler, &mut theirs)] {
            let missed = one_race(world, racer, WAYS[way]).await;
            misses[way] += u64::from(missed.with_context(|| said(racer, WAYS[way], &tutti))?);
        }
        tutti.check()?;
        kube_scheduler.check()?;
        world.check()?;
    }
    let (ours_all, theirs_all) = (ours.iter().sum::<u64>(), theirs.iter().sum::<u64>());
    say(&format!(
        "        of {races} pods each, {ours_all} of Tutti and {theirs_all} of kube-scheduler went to a node that was closed before \
         (tainted, cordoned, deleted: {ours:?}, {theirs:?})"
    ));
    let bound = theirs_all + races.div_ceil(CHANCE_ONE_IN);
    ensure!(ours_all <= bound, "Tutti lost {ours_all} of {races} races, kube-scheduler {theirs_all}");
    tutti.end().await
}

fn said(racer: Racer, way: Way, tutti: &Tutti) -> String {
    format!("{racer:?}, {way:?}; Tutti said\n{}", tutti.said())
}

/// True if the pod went to the node that was closed before it was created.
async fn one_race(world: &World<'_>, racer: Racer, way: Way) -> anyhow::Result<bool> {
    wait_open(world, racer).await?;
    close(world, way).await?;
    create(world, "late", racer).await?;
    let node = node_of(world, "late").await?;
    remove(world, "late").await?;
    open(world, way).await?;
    Ok(node == LIKED)
}

/// Waits until a scheduler sends pods to the node, or it would win races against news that it has not heard.
async fn wait_open(world: &World<'_>, racer: Racer) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        create(world, "early", racer).await?;
        let node = node_of(world, "early").await?;
        remove(world, "early").await?;
        if node == LIKED {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "{racer:?} sends nobody to a node that is open");
    }
}

async fn close(world: &World<'_>, way: Way) -> anyhow::Result<()> {
    let taint = json!([{"key": "example.com/closed", "effect": "NoSchedule"}]);
    match way {
        Way::Taint => patch(world, &json!({"spec": {"taints": taint}})).await,
        Way::Cordon => patch(world, &json!({"spec": {"unschedulable": true}})).await,
        Way::Delete => world.delete_node(LIKED).await,
    }
}

async fn open(world: &World<'_>, way: Way) -> anyhow::Result<()> {
    match way {
        Way::Taint => patch(world, &json!({"spec": {"taints": null}})).await,
        Way::Cordon => patch(world, &json!({"spec": {"unschedulable": null}})).await,
        Way::Delete => {
            let node = NodeTemplate::new(LIKED, [("cpu", "100"), ("memory", "64Gi")]);
            world.add(node.label("liked", "true")).await
        }
    }
}

async fn patch(world: &World<'_>, patch: &Value) -> anyhow::Result<()> {
    let nodes = Api::<Node>::all(world.client.clone());
    nodes.patch(LIKED, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// A pod that goes to the node if it can, and to another one otherwise.
async fn create(world: &World<'_>, name: &str, racer: Racer) -> anyhow::Result<()> {
    let mut spec = World::pod_spec(None, "1");
    spec["schedulerName"] = json!(racer.name());
    let liked = json!({"matchExpressions": [{"key": "liked", "operator": "Exists"}]});
    spec["affinity"] = json!({"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": liked}],
    }});
    world.pod_of(name, &spec).await
}

async fn node_of(world: &World<'_>, pod: &str) -> anyhow::Result<String> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(node) = world.node_of(pod).await? {
            return Ok(node);
        }
        tokio::time::sleep(LOOK).await;
    }
    bail!("{pod} was not bound within {} s", PATIENCE.as_secs())
}

async fn remove(world: &World<'_>, pod: &str) -> anyhow::Result<()> {
    // One on a deleted node may be gone already.
    match world.pods().delete(pod, &DeleteParams::default().grace_period(0)).await {
        Err(kube::Error::Api(error)) if error.code == 404 => Ok(()),
        other => other.map(|_| ()).map_err(Into::into),
    }
}
