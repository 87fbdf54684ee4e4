//! Schedulers that are killed in the middle of a large gang, at random moments, one after the other.
//!
//! Most of the time of a kill is spent on a lease that runs out. So several schedulers are killed at the same time, each
//! with a lane of its own: a name, a lease, nodes, and gangs that fill all of these nodes. The next gang is created while
//! the lease runs out, and cannot start before the one that was left in parts is complete and gone.

use super::scheduler::start_with;
use crate::random::Random;
use crate::runner::say;
use crate::tutti::Tutti;
use crate::world::{PodWatch, World};
use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, WatchEvent};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;
use tutti_cluster::kubelet::NodeTemplate;

/// Schedulers that are killed at the same time.
const LANES: u64 = 3;
/// Nodes of each.
const NODES: usize = 10;
const MEMBERS_PER_NODE: usize = 20;
const MEMBERS: usize = NODES * MEMBERS_PER_NODE;
/// How often a scheduler is killed, on every release.
const KILLS: u64 = 25;
/// Says how often, instead.
const KILLS_VARIABLE: &str = "TUTTI_E2E_KILLS";
/// Says where randomness starts, instead of anywhere.
const SEED_VARIABLE: &str = "TUTTI_E2E_SEED";
/// Of so many kills, at least one must leave a part of a gang. Others may come when all bindings have been sent, and if
/// there are fewer kills than usual, all of them may.
const IN_PARTS_AT_LEAST_ONE_OF: u64 = 3;
/// Requests of the story that are under way at once.
const REQUESTS_MAX: usize = 16;
/// After this time nothing that a killed scheduler has sent is under way, and its lease is still not free.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

pub(super) async fn a_scheduler_killed_in_the_middle_of_a_gang_leaves_no_part_of_it(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let kills = number(KILLS_VARIABLE)?.unwrap_or(KILLS);
    let seed = number(SEED_VARIABLE)?.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    let told = world.without_scheduler(killed_again_and_again(world, kills, seed)).await;
    told.with_context(|| format!("{SEED_VARIABLE}={seed}"))
}

fn number(variable: &str) -> anyhow::Result<Option<u64>> {
    let text = std::env::var(variable).ok();
    text.map(|text| text.parse().with_context(|| format!("{variable}={text:?} is no number"))).transpose()
}

async fn killed_again_and_again(world: &World<'_>, kills: u64, seed: u64) -> anyhow::Result<()> {
    let lanes = (0..LANES).map(|index| async move {
        let kills = kills / LANES + u64::from(index < kills % LANES);
        let lane = Lane { world, name: format!("lane-{index}") };
        lane.tell(kills, Random::of_case(seed, index)).await.with_context(|| lane.name.clone())
    });
    let in_parts: u64 = futures::future::try_join_all(lanes).await?.iter().sum();
    say(&format!(
        "        {in_parts} of {kills} kills left a part of a gang of {MEMBERS} ({SEED_VARIABLE}={seed})"
    ));
    let enough = if kills < KILLS { 0 } else { kills / IN_PARTS_AT_LEAST_ONE_OF };
    ensure!(in_parts >= enough, "{in_parts} of {kills} kills hit a gang in parts; want {enough}");
    Ok(())
}

/// A scheduler and all that it is about. Its name is that of its lease and the label of its nodes, too.
struct Lane<'a> {
    world: &'a World<'a>,
    name: String,
}

impl<'a> Lane<'a> {
    /// Kills so often, and says how often that left a gang in parts.
    async fn tell(&self, kills: u64, mut random: Random) -> anyhow::Result<u64> {
        for index in 0..NODES {
            let cpus = MEMBERS_PER_NODE.to_string();
            let name = format!("{}-{index}", self.name);
            let node = NodeTemplate::new(&name, [("cpu", cpus.as_str()), ("memory", "64Gi")]);
            self.world.add(node.label("lane", &self.name)).await?;
        }
        let mut in_parts = 0;
        let mut scheduler = self.start()?;
        let mut gang = self.gang(0).await?;
        for round in 1..=kills {
            let moment = random.between(1, MEMBERS);
            gang.wait(&mut scheduler, |gang| gang.nodes.len() >= moment).await?;
            scheduler.kill()?;
            scheduler = self.start()?;
            tokio::time::sleep(LAST_REQUESTS).await;
            let left = gang.count_bound().await?;
            in_parts += u64::from(left < MEMBERS);
            let next = self.gang(round).await?;
            let completed = gang.wait(&mut scheduler, |gang| gang.running.len() == MEMBERS).await;
            completed.with_context(|| format!("the one before was killed at {moment} with {left} bound"))?;
            gang.check_nodes()?;
            ensure!(next.count_bound().await? == 0, "a gang without room has started in part");
            gang.remove().await?;
            gang = next;
        }
        // Whoever comes last has nobody to kill it.
        gang.wait(&mut scheduler, |gang| gang.running.len() == MEMBERS).await?;
        scheduler.end().await?;
        Ok(in_parts)
    }

    fn start(&self) -> anyhow::Result<Tutti> {
        start_with(self.world, &self.name, &[&self.name])
    }

    /// Creates a gang.
    async fn gang(&self, round: u64) -> anyhow::Result<Gang<'a>> {
        let world = self.world;
        let name = format!("{}-{round}", self.name);
        let label = format!("gang={name}");
        let watch = world.watch_pods(&label, &world.version().await?);
        world.gang(&name, u32::try_from(MEMBERS)?).await?;
        let (mut spec, labels) = (World::pod_spec(Some(&name), "1"), json!({"gang": name}));
        spec["schedulerName"] = json!(self.name);
        spec["nodeSelector"] = json!({"lane": self.name});
        each_member(&name, |member| {
            let (spec, labels) = (&spec, &labels);
            async move { world.labelled_pod(&member, labels, spec).await }
        })
        .await?;
        let members = ListParams::default().labels(&label);
        Ok(Gang { world, name, members, watch, nodes: BTreeMap::new(), running: BTreeSet::new() })
    }
}

/// A gang that fills all nodes of its lane.
struct Gang<'a> {
    world: &'a World<'a>,
    name: String,
    members: ListParams,
    /// Sees bindings at once, which lists do not: most others would be bound before one is here.
    watch: PodWatch,
    /// Where members were seen that are bound, by name.
    nodes: BTreeMap<String, String>,
    running: BTreeSet<String>,
}

impl Gang<'_> {
    /// Follows what happens to members until something is so.
    async fn wait(&mut self, scheduler: &mut Tutti, is_so: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        while !is_so(self) {
            let event = self.watch.next().await;
            scheduler.check()?;
            self.world.check()?;
            self.saw(event.with_context(|| {
                let (bound, running) = (self.nodes.len(), self.running.len());
                format!("{bound} of {} are bound, {running} run; it said\n{}", self.name, scheduler.said())
            })?)?;
        }
        Ok(())
    }

    fn saw(&mut self, event: WatchEvent<Pod>) -> anyhow::Result<()> {
        let pod = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => pod,
            WatchEvent::Deleted(pod) => bail!("{:?} is gone", pod.metadata.name),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return Ok(()),
        };
        let name = pod.metadata.name.unwrap_or_default();
        let Some(node) = pod.spec.and_then(|spec| spec.node_name) else { return Ok(()) };
        let before = self.nodes.insert(name.clone(), node.clone());
        ensure!(before.is_none_or(|before| before == node), "{name} has moved to {node}");
        if pod.status.and_then(|status| status.phase).as_deref() == Some("Running") {
            self.running.insert(name);
        }
        Ok(())
    }

    /// How many members are bound at this moment.
    fn count_bound(&self) -> impl Future<Output = anyhow::Result<usize>> + use<> {
        let (pods, members) = (self.world.pods(), self.members.clone());
        async move {
            let is_bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            Ok(pods.list(&members).await?.iter().filter(is_bound).count())
        }
    }

    /// No node has more members than it has room for.
    fn check_nodes(&self) -> anyhow::Result<()> {
        let mut on_node = BTreeMap::<&str, usize>::new();
        for node in self.nodes.values() {
            *on_node.entry(node).or_default() += 1;
        }
        ensure!(on_node.values().all(|&count| count <= MEMBERS_PER_NODE), "over-committed: {on_node:?}");
        Ok(())
    }

    /// Several requests do it sooner than one for all, which the API server carries out one by one.
    async fn remove(self) -> anyhow::Result<()> {
        let (pods, now) = (self.world.pods(), DeleteParams::default().grace_period(0));
        each_member(&self.name, |member| {
            let (pods, now) = (&pods, &now);
            async move { Ok(pods.delete(&member, now).await.map(|_| ())?) }
        })
        .await?;
        self.world.delete_group(&self.name).await
    }
}

/// Does something to every member of a gang, to several at once.
async fn each_member<F>(gang: &str, act: impl Fn(String) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let all = futures::stream::iter(0..MEMBERS).map(|index| act(format!("{gang}-{index}")));
    all.buffer_unordered(REQUESTS_MAX).try_collect().await
}
