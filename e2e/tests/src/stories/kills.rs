//! Schedulers that are killed in the middle of a large gang, at random moments, one after the other; and API servers.
//!
//! Most of the time of a kill is spent on a lease that runs out. So several schedulers are killed at the same time, each
//! with a lane of its own: a name, a lease, nodes, and gangs that fill all of these nodes. Most of the work are gangs that
//! are made and removed. So a gang is hit several times: whoever takes it over is killed, too, after some more members.
//! After the last time the next gang is created while the lease runs out, and cannot start before the one that was left in
//! parts is complete and gone.

use super::scheduler::start_with;
use crate::control_plane::Part;
use crate::random::Random;
use crate::runner::say;
use crate::tutti::Tutti;
use crate::variables::{SEED_VARIABLE, number, seed};
use crate::world::{PodWatch, World};
use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, WatchEvent};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;
use tutti_cluster::kubelet::NodeTemplate;

/// Schedulers that are killed at the same time.
const LANES: u64 = 4;
/// Nodes of each.
const NODES: usize = 10;
const MEMBERS_PER_NODE: usize = 20;
const MEMBERS: usize = NODES * MEMBERS_PER_NODE;
/// A scheduler is killed when it has bound so many members at most.
const BOUND_MAX: usize = MEMBERS / 2;
/// How often a scheduler is killed, on every release.
const KILLS: u64 = 50;
/// How often an API server is killed, which takes seconds to come back.
const API_SERVER_KILLS: u64 = 5;
/// Says how often a scheduler is killed, instead.
const KILLS_VARIABLE: &str = "TUTTI_E2E_KILLS";
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
    let seed = seed()?;
    let told = world.without_scheduler(killed_again_and_again(world, kills, seed)).await;
    told.with_context(|| format!("{SEED_VARIABLE}={seed}"))
}

pub(super) async fn an_api_server_killed_in_the_middle_of_a_gang_leaves_no_part_of_it(
    world: &World<'_>,
) -> anyhow::Result<()> {
    let seed = seed()?;
    let lane = Lane { world, name: "lane".to_owned() };
    let told = world.without_scheduler(lane.lose_api_servers(Random::of_case(seed, 0))).await;
    told.with_context(|| format!("{SEED_VARIABLE}={seed}"))
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
        self.nodes().await?;
        let mut in_parts = 0;
        let mut scheduler = self.start()?;
        let mut gang = self.gang(0).await?;
        let mut moment = random.between(1, BOUND_MAX);
        for round in 1..=kills {
            gang.wait(&mut scheduler, |gang| gang.nodes.len() >= moment).await?;
            scheduler.kill()?;
            scheduler = self.start()?;
            tokio::time::sleep(LAST_REQUESTS).await;
            let left = gang.count_bound().await?;
            in_parts += u64::from(left < MEMBERS);
            moment = left + random.between(1, BOUND_MAX);
            if moment <= MEMBERS {
                continue;
            }
            let next = self.gang(round).await?;
            let completed = gang.wait(&mut scheduler, |gang| gang.running.len() == MEMBERS).await;
            completed.with_context(|| format!("the one before was killed with {left} bound"))?;
            gang.check_nodes()?;
            ensure!(next.count_bound().await? == 0, "a gang without room has started in part");
            gang.remove().await?;
            gang = next;
            moment = random.between(1, BOUND_MAX);
        }
        // The last one is not killed.
        gang.wait(&mut scheduler, |gang| gang.running.len() == MEMBERS).await?;
        gang.check_nodes()?;
        scheduler.end().await?;
        Ok(in_parts)
    }

    /// Kills the API server under gangs and starts it again.
    async fn lose_api_servers(&self, mut random: Random) -> anyhow::Result<()> {
        let control_plane = self.world.control_plane.context("this control plane is not ours")?;
        self.nodes().await?;
        let mut scheduler = self.start()?;
        let mut in_parts = 0;
        for round in 0..API_SERVER_KILLS {
            let mut gang = self.gang(round).await?;
            let moment = random.between(1, BOUND_MAX);
            gang.wait(&mut scheduler, |gang| gang.nodes.len() >= moment).await?;
            control_plane.kill_part(Part::ApiServer)?;
            let killed = Timestamp::now();
            control_plane.start_part(Part::ApiServer)?;
            control_plane.wait_ready().await?;
            gang.look_again().await?;
            let completed = gang.wait(&mut scheduler, |gang| gang.running.len() == MEMBERS).await;
            completed.with_context(|| format!("the API server was killed at {moment} members"))?;
            in_parts += u64::from(gang.count_bound_since(killed).await? > 0);
            gang.check_nodes()?;
            gang.remove().await?;
        }
        say(&format!("        {in_parts} of {API_SERVER_KILLS} kills left a part of a gang of {MEMBERS}"));
        let enough = API_SERVER_KILLS / IN_PARTS_AT_LEAST_ONE_OF;
        ensure!(in_parts >= enough, "{in_parts} of {API_SERVER_KILLS} hit a gang in parts; want {enough}");
        scheduler.end().await
    }

    async fn nodes(&self) -> anyhow::Result<()> {
        for index in 0..NODES {
            let cpus = MEMBERS_PER_NODE.to_string();
            let name = format!("{}-{index}", self.name);
            let node = NodeTemplate::new(&name, [("cpu", cpus.as_str()), ("memory", "64Gi")]);
            self.world.add(node.label("lane", &self.name)).await?;
        }
        Ok(())
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

    /// Sees what has become of members while nobody could watch, and watches on from there.
    async fn look_again(&mut self) -> anyhow::Result<()> {
        let members = self.world.pods().list(&self.members).await?;
        let found = members.items.len();
        ensure!(found == MEMBERS, "{found} of {MEMBERS} members of {} are there", self.name);
        let version = members.metadata.resource_version.context("a list without a version")?;
        self.watch = self.world.watch_pods(&format!("gang={}", self.name), &version);
        for pod in members.items {
            self.saw(WatchEvent::Modified(pod))?;
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
        self.count(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()))
    }

    /// How many were bound later than this, by the clock of the API server, which counts in seconds.
    fn count_bound_since(&self, time: Timestamp) -> impl Future<Output = anyhow::Result<usize>> + use<> {
        self.count(move |pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
            conditions.into_iter().flatten().any(|condition| {
                let since = condition.last_transition_time.as_ref();
                condition.type_ == "PodScheduled" && since.is_some_and(|since| since.0 > time)
            })
        })
    }

    /// How many members are so at this moment.
    fn count<F: Fn(&Pod) -> bool>(&self, is_so: F) -> impl Future<Output = anyhow::Result<usize>> + use<F> {
        let (pods, members) = (self.world.pods(), self.members.clone());
        async move { Ok(pods.list(&members).await?.iter().filter(|pod| is_so(pod)).count()) }
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
