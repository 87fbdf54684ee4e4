//! A scheduler with a long queue of gangs that is killed soon after every start, before it has worked the queue off.
//!
//! There is no election here: the next scheduler starts at once, and has as little time. What it does first is what counts:
//! it completes the gang that the one before left in part. If it began others instead, more and more gangs would have a few
//! members each, which hold room and run for nothing.

use crate::random::Random;
use crate::runner::say;
use crate::tutti::Tutti;
use crate::variables::{SEED_VARIABLE, number, seed};
use crate::wait::{PATIENCE, eventually};
use crate::world::{PodWatch, World};
use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, WatchEvent};
use serde_json::json;
use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};
use tutti_cluster::kubelet::NodeTemplate;

const GANGS: usize = 40;
const MEMBERS: usize = 200;
const NODES: usize = 80;
/// There is room for all gangs, and for no member more.
const MEMBERS_PER_NODE: usize = GANGS * MEMBERS / NODES;
/// How often the scheduler is killed, on every release.
const KILLS: u64 = 20;
/// Says how often, instead.
const KILLS_VARIABLE: &str = "TUTTI_E2E_RESTARTS";
/// When it is killed, in milliseconds after its start; every other time after it has begun to decide, because on a busy machine
/// most of the time is gone until then.
const KILLED_AFTER: (usize, usize) = (500, 1300);
/// What it says when it begins to decide.
const DECIDES: &str = "decisions begin";
/// Bindings under way at once, by default. The API server may carry out the last of them first.
const UNDER_WAY_MAX: usize = 100;
/// The gang that is being started, and the one before it, of which the last requests were lost.
const PARTIAL_MAX: usize = 2;
/// After so long without a binding nothing that a killed scheduler has sent is under way.
const QUIET: Duration = Duration::from_millis(500);
/// Requests of the story that are under way at once.
const REQUESTS_MAX: usize = 32;
/// The label that names the gang of a member.
const GANG_LABEL: &str = "gang";
/// The label of all members.
const BACKLOG: &str = "story=backlog";

pub(super) async fn a_scheduler_killed_soon_after_every_start_completes_broken_gangs_first(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let kills = number(KILLS_VARIABLE)?.unwrap_or(KILLS);
    let seed = seed()?;
    world.restart_kubelets_without_pods().await?;
    let told = world.without_scheduler(killed_again_and_again(world, kills, seed)).await;
    told.with_context(|| format!("{SEED_VARIABLE}={seed}"))
}

async fn killed_again_and_again(world: &World<'_>, kills: u64, seed: u64) -> anyhow::Result<()> {
    let mut random = Random::of_case(seed, 0);
    let mut backlog = Backlog::create(world).await?;
    let (mut left_in_part, mut partial_max) = (0, 0);
    for kill in 1..=kills {
        let before = backlog.bound.clone();
        let mut scheduler = start(world)?;
        let life = random.between(KILLED_AFTER.0, KILLED_AFTER.1);
        if kill.is_multiple_of(2) {
            wait_decides(&mut scheduler).await?;
        }
        let order = backlog.bindings_within(Duration::from_millis(life as u64)).await?;
        scheduler.check()?;
        scheduler.kill()?;
        let order = [order, backlog.bindings_until_quiet().await?].concat();
        let context = || format!("kill {kill}, {life} ms after the start; it said\n{}", scheduler.said());
        check_order(&before, &order).with_context(context)?;
        let partial = backlog.partial();
        ensure!(partial.len() <= PARTIAL_MAX, "in part: {partial:?}; {}", context());
        left_in_part += u64::from(!partial.is_empty());
        partial_max = partial_max.max(partial.len());
    }
    let bound: usize = backlog.bound.values().sum();
    say(&format!(
        "        {left_in_part} of {kills} kills left a gang in part, at most {partial_max} at once; {bound} of {} members were bound \
         ({SEED_VARIABLE}={seed})",
        GANGS * MEMBERS
    ));
    // The last one is not killed.
    let scheduler = start(world)?;
    backlog.wait_whole().await.with_context(|| format!("it said\n{}", scheduler.said()))?;
    check_nodes(world).await?;
    scheduler.end().await?;
    backlog.remove().await
}

/// The scheduler as it is if nobody says otherwise, alone.
fn start(world: &World<'_>) -> anyhow::Result<Tutti> {
    let kubeconfig = world.kubeconfig.display().to_string();
    Tutti::start(
        world,
        &["scheduler", "--kubeconfig", &kubeconfig, "--leader-elect=false", "--http-address", "off"],
    )
}

async fn wait_decides(scheduler: &mut Tutti) -> anyhow::Result<()> {
    eventually("it begins to decide", || {
        let said = scheduler.check().map(|()| scheduler.said());
        async move { said.map(|said| if said.contains(DECIDES) { Ok(()) } else { Err(said) }) }
    })
    .await
}

/// No gang begins while one that was left in part stays as it was. Requests that are under way together may overtake
/// each other: that is no more than so many bindings.
fn check_order(before: &BTreeMap<String, usize>, order: &[String]) -> anyhow::Result<()> {
    let mut untouched: Vec<&String> =
        before.iter().filter(|(_, n)| is_partial(**n)).map(|(gang, _)| gang).collect();
    let mut early = BTreeMap::<&String, usize>::new();
    for gang in order {
        untouched.retain(|broken| *broken != gang);
        if !untouched.is_empty() && before.get(gang) == Some(&0) {
            *early.entry(gang).or_default() += 1;
        }
    }
    let overtaken = early.values().sum::<usize>();
    ensure!(
        overtaken < UNDER_WAY_MAX,
        "{early:?} began while {untouched:?} stayed as it was; before: {:?}",
        before.iter().filter(|(_, n)| is_partial(**n)).collect::<Vec<_>>()
    );
    Ok(())
}

fn is_partial(bound: usize) -> bool {
    (1..MEMBERS).contains(&bound)
}

/// All gangs, and what has become of them.
struct Backlog<'a> {
    world: &'a World<'a>,
    watch: PodWatch,
    /// How many members of each gang are bound.
    bound: BTreeMap<String, usize>,
    /// Where each member is.
    nodes: BTreeMap<String, String>,
}

impl<'a> Backlog<'a> {
    async fn create(world: &'a World<'a>) -> anyhow::Result<Self> {
        let capacity = MEMBERS_PER_NODE.to_string();
        each(NODES, |index| {
            let capacity = [("cpu", capacity.as_str()), ("memory", "64Gi")];
            world.add(NodeTemplate::new(format!("backlog-{index}"), capacity))
        })
        .await?;
        let gangs: Vec<String> = (0..GANGS).map(|index| format!("gang-{index:02}")).collect();
        let min_count = u32::try_from(MEMBERS)?;
        each(GANGS, |index| world.gang(&gangs[index], min_count)).await?;
        let version = world.version().await?;
        each(GANGS * MEMBERS, |index| {
            let gang = &gangs[index / MEMBERS];
            async move {
                let labels = json!({GANG_LABEL: gang, "story": "backlog"});
                let spec = World::pod_spec(Some(gang), "1");
                world.labelled_pod(&member(index), &labels, &spec).await
            }
        })
        .await?;
        let bound = gangs.into_iter().map(|gang| (gang, 0)).collect();
        Ok(Self { world, watch: world.watch_pods(BACKLOG, &version), bound, nodes: BTreeMap::new() })
    }

    /// Gangs of which some members are bound, and how many.
    fn partial(&self) -> BTreeMap<&str, usize> {
        let partial = self.bound.iter().filter(|(_, bound)| is_partial(**bound));
        partial.map(|(gang, bound)| (gang.as_str(), *bound)).collect()
    }

    /// The gangs of members that are bound within some time, one by one.
    async fn bindings_within(&mut self, time: Duration) -> anyhow::Result<Vec<String>> {
        let deadline = tokio::time::Instant::now() + time;
        let mut order = Vec::new();
        while let Ok(event) = tokio::time::timeout_at(deadline, self.watch.next()).await {
            order.extend(self.saw(event?)?);
        }
        Ok(order)
    }

    /// The same until there are no more.
    async fn bindings_until_quiet(&mut self) -> anyhow::Result<Vec<String>> {
        let mut order = Vec::new();
        while let Ok(event) = tokio::time::timeout(QUIET, self.watch.next()).await {
            order.extend(self.saw(event?)?);
        }
        Ok(order)
    }

    async fn wait_whole(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while self.nodes.len() < GANGS * MEMBERS {
            ensure!(started.elapsed() < PATIENCE, "in part: {:?}", self.partial());
            self.world.check()?;
            let event = self.watch.next().await?;
            self.saw(event)?;
        }
        Ok(())
    }

    /// Gives the gang of a member that is bound now.
    fn saw(&mut self, event: WatchEvent<Pod>) -> anyhow::Result<Option<String>> {
        let pod = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => pod,
            WatchEvent::Deleted(pod) => bail!("{:?} is gone", pod.metadata.name),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return Ok(None),
        };
        let name = pod.metadata.name.unwrap_or_default();
        let Some(node) = pod.spec.and_then(|spec| spec.node_name) else { return Ok(None) };
        if let Some(before) = self.nodes.insert(name.clone(), node.clone()) {
            ensure!(before == node, "{name} has moved from {before} to {node}");
            return Ok(None);
        }
        let gang = pod.metadata.labels.and_then(|mut labels| labels.remove(GANG_LABEL)).unwrap_or_default();
        let bound = self.bound.get_mut(&gang).with_context(|| format!("{name} is of no gang"))?;
        *bound += 1;
        Ok(Some(gang))
    }

    /// Several requests do it sooner than one for all, which the API server carries out one by one.
    async fn remove(self) -> anyhow::Result<()> {
        let (pods, now) = (self.world.pods(), DeleteParams::default().grace_period(0));
        each(GANGS * MEMBERS, |index| {
            let (pods, now) = (&pods, &now);
            async move { Ok(pods.delete(&member(index), now).await.map(|_| ())?) }
        })
        .await
    }
}

/// Every member is there, and no node has more than it has room for.
async fn check_nodes(world: &World<'_>) -> anyhow::Result<()> {
    let mut on_node = BTreeMap::<String, usize>::new();
    for pod in world.pods().list(&ListParams::default().labels(BACKLOG)).await? {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        *on_node.entry(node).or_default() += 1;
    }
    let full = on_node.len() == NODES && on_node.values().all(|&count| count == MEMBERS_PER_NODE);
    ensure!(full, "{MEMBERS_PER_NODE} should be on each of {NODES} nodes: {on_node:?}");
    Ok(())
}

/// The name of a member.
fn member(index: usize) -> String {
    format!("gang-{:02}-{}", index / MEMBERS, index % MEMBERS)
}

/// Does something so often, several at once.
async fn each<F>(count: usize, act: impl Fn(usize) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    futures::stream::iter(0..count).map(act).buffer_unordered(REQUESTS_MAX).try_collect().await
}
