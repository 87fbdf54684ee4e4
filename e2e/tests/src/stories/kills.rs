//! Schedulers that are killed in the middle of a large gang, at random moments, one after the other.
//!
//! Every gang fills all nodes. The next one is created while the lease of a killed scheduler runs out, and cannot start
//! before the one that was killed in parts is complete and gone.

use super::scheduler::start;
use crate::random::Random;
use crate::runner::say;
use crate::tutti::Tutti;
use crate::wait::eventually;
use crate::world::World;
use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, WatchEvent};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
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
        gang.wait_bound(&mut scheduler, moment).await?;
        scheduler.kill()?;
        scheduler = start(world, &[])?;
        tokio::time::sleep(LAST_REQUESTS).await;
        let left = gang.nodes().await?;
        in_parts += u64::from(left.len() < MEMBERS);
        let next = Gang::create(world, round).await?;
        let completed = gang.wait_complete(&left).await;
        completed.with_context(|| {
            let bound = left.len();
            format!("killed at {moment} with {bound} bound; the next one said\n{}", scheduler.said())
        })?;
        ensure!(next.nodes().await?.is_empty(), "a gang without room has started in part");
        gang.remove().await?;
        gang = next;
    }
    // Whoever was left last has nobody to kill it.
    gang.wait_complete(&BTreeMap::new()).await?;
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
    label: String,
    /// From before there was a member.
    version: String,
}

impl<'a> Gang<'a> {
    async fn create(world: &'a World<'a>, round: u64) -> anyhow::Result<Self> {
        let name = format!("g{round}");
        let version = world.version().await?;
        world.gang(&name, u32::try_from(MEMBERS)?).await?;
        let labels = json!({"gang": name});
        futures::stream::iter(0..MEMBERS)
            .map(|index| {
                let (name, labels) = (&name, &labels);
                async move {
                    let spec = World::pod_spec(Some(name), "1");
                    world.labelled_pod(&format!("{name}-{index}"), labels, &spec).await
                }
            })
            .buffer_unordered(REQUESTS_MAX)
            .try_collect::<()>()
            .await?;
        Ok(Self { world, label: format!("gang={name}"), name, version })
    }

    /// Waits until so many members are seen to be bound. A watch sees it at once, which a list does not: most others
    /// would be bound before it is here.
    async fn wait_bound(&self, scheduler: &mut Tutti, count: usize) -> anyhow::Result<()> {
        let mut watch = self.world.watch_pods(&self.label, &self.version);
        let mut bound = BTreeSet::new();
        while bound.len() < count {
            let event = watch.next().await;
            scheduler.check()?;
            let event = event.with_context(|| {
                format!(
                    "{} of {count} members are bound; the scheduler said\n{}",
                    bound.len(),
                    scheduler.said()
                )
            });
            if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event?
                && node_of(&pod).is_some()
            {
                bound.insert(pod.metadata.name);
            }
        }
        Ok(())
    }

    fn members(&self) -> ListParams {
        ListParams::default().labels(&self.label)
    }

    /// Where each member is that is bound.
    async fn nodes(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let pods = self.world.pods().list(&self.members()).await?;
        let bound = pods.iter().filter_map(|pod| Some((pod.metadata.uid.clone()?, node_of(pod)?.to_owned())));
        Ok(bound.collect())
    }

    /// Waits until all members run; those that were bound are where they were, and no node has more than it has room for.
    async fn wait_complete(&self, before: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        eventually(&format!("all members of {} run", self.name), || async {
            self.world.check()?;
            let pods = self.world.pods().list(&self.members()).await?;
            let running = pods.iter().filter(|pod| phase(pod).as_deref() == Some("Running")).count();
            Ok((running == MEMBERS).then_some(()).ok_or_else(|| format!("{running} run")))
        })
        .await?;
        let nodes = self.nodes().await?;
        ensure!(before.iter().all(|(uid, node)| nodes.get(uid) == Some(node)), "somebody has moved");
        let mut on_node = BTreeMap::<&str, usize>::new();
        for node in nodes.values() {
            *on_node.entry(node).or_default() += 1;
        }
        ensure!(on_node.values().all(|&count| count <= MEMBERS_PER_NODE), "over-committed: {on_node:?}");
        Ok(())
    }

    async fn remove(&self) -> anyhow::Result<()> {
        let now = DeleteParams::default().grace_period(0);
        self.world.pods().delete_collection(&now, &self.members()).await?;
        self.world.delete_group(&self.name).await
    }
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}
