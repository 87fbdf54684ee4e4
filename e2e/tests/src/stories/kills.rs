//! Schedulers that are killed in the middle of a large gang, at random moments, one after the other.
//!
//! Every gang fills all nodes. The next one is created while the lease of a killed scheduler runs out, and cannot start
//! before the one that was killed in parts is complete and gone.

use super::scheduler::start;
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

const NODES: usize = 20;
const MEMBERS_PER_NODE: usize = 10;
const MEMBERS: usize = NODES * MEMBERS_PER_NODE;
/// How often a scheduler is killed, on every release.
const KILLS: u64 = 25;
/// Says how often, instead.
const KILLS_VARIABLE: &str = "TUTTI_E2E_KILLS";
/// Says where randomness starts, instead of anywhere.
const SEED_VARIABLE: &str = "TUTTI_E2E_SEED";
/// Of so many kills, at least one must leave a part of a gang. Others may come when all bindings have been sent.
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
    for index in 0..NODES {
        world.node(&format!("n{index}"), &MEMBERS_PER_NODE.to_string()).await?;
    }
    let mut random = Random::of_case(seed, 0);
    let mut in_parts = 0;
    let mut scheduler = start(world, &[])?;
    let mut gang = Gang::create(world, 0).await?;
    for round in 1..=kills {
        let moment = random.between(1, MEMBERS);
        gang.wait(&mut scheduler, |gang| gang.nodes.len() >= moment).await?;
        scheduler.kill()?;
        scheduler = start(world, &[])?;
        tokio::time::sleep(LAST_REQUESTS).await;
        let left = gang.count_bound().await?;
        in_parts += u64::from(left < MEMBERS);
        let next = Gang::create(world, round).await?;
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
    say(&format!(
        "        {in_parts} of {kills} kills left a part of a gang of {MEMBERS} ({SEED_VARIABLE}={seed})"
    ));
    let enough = kills / IN_PARTS_AT_LEAST_ONE_OF;
    ensure!(in_parts >= enough, "{in_parts} of {kills} kills hit a gang in parts; want {enough}");
    Ok(())
}

/// A gang that fills all nodes.
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

impl<'a> Gang<'a> {
    async fn create(world: &'a World<'a>, round: u64) -> anyhow::Result<Self> {
        let name = format!("g{round}");
        let label = format!("gang={name}");
        let watch = world.watch_pods(&label, &world.version().await?);
        world.gang(&name, u32::try_from(MEMBERS)?).await?;
        let (spec, labels) = (World::pod_spec(Some(&name), "1"), json!({"gang": name}));
        each_member(&name, |member| {
            let (spec, labels) = (&spec, &labels);
            async move { world.labelled_pod(&member, labels, spec).await }
        })
        .await?;
        let members = ListParams::default().labels(&label);
        Ok(Self { world, name, members, watch, nodes: BTreeMap::new(), running: BTreeSet::new() })
    }

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
