//! Leaders that are killed in the middle of a large gang, at random moments, one after the other; and API servers that
//! go away at such moments and come back.
//!
//! Most of the time of a kill is spent on a lease that runs out. So several leaders are killed at the same time, each
//! beside a cluster of its own. Most of the work are gangs that are made and removed. So a gang is hit several times:
//! whoever takes it over is killed, too, after some more members. After the last time the next gang is created while the
//! lease runs out, and cannot start before the one that was left in parts is complete and gone.

use crate::door::Door;
use crate::replicas::Replica;
use crate::world::{PATIENCE, World, node_of, of_gang, phase_of};
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, WatchEvent, WatchParams};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use tokio::runtime::Handle;

/// Clusters on which leaders are killed at the same time.
const LANES: usize = 5;
/// Kills on each, and on all of them together.
const KILLS_PER_LANE: usize = 10;
const KILLS: usize = LANES * KILLS_PER_LANE;
/// Says where randomness starts, instead of anywhere.
const SEED_VARIABLE: &str = "TUTTI_KILLS_SEED";
/// Of so many kills, at least one must leave a part of a gang. Others may come when all bindings have been sent.
const IN_PARTS_AT_LEAST_ONE_OF: usize = 3;
/// Nodes of a cluster, and the members of a gang that fill each.
const NODES: usize = 20;
const MEMBERS_PER_NODE: usize = 10;
const MEMBERS: usize = NODES * MEMBERS_PER_NODE;
/// A leader is killed when it has bound so many members at most.
const BOUND_MAX: usize = MEMBERS / 2;
/// After this time nothing that a killed leader has sent is under way, and its lease is still not free.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// How many members are bound when the API server goes away, and for how long: not long enough to lose the lease, and
/// long enough.
const AWAY: [(usize, Duration); 3] =
    [(10, Duration::from_millis(200)), (50, Duration::from_secs(3)), (90, Duration::from_millis(500))];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_killed_in_the_middle_of_a_gang_leaves_no_part_of_it() {
    let given = std::env::var(SEED_VARIABLE).ok().map(|seed| seed.parse().expect("a seed is a number"));
    let seed: u64 = given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    println!("{SEED_VARIABLE}={seed}");
    // Each on a thread of its own: starting a process takes a while, and nobody else should miss his moment by it.
    let lanes = (0..LANES).map(|lane| {
        let lots = (0..KILLS_PER_LANE).map(|round| drawn(seed, lane, round)).collect();
        tokio::task::spawn_blocking(move || Handle::current().block_on(tell(lots)))
    });
    let in_parts: usize = futures::future::try_join_all(lanes).await.unwrap().iter().sum();
    println!("{in_parts} of {KILLS} kills left a part of a gang of {MEMBERS}");
    assert!(
        in_parts >= KILLS / IN_PARTS_AT_LEAST_ONE_OF,
        "most kills came too late to find a part of a gang"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_goes_away_in_the_middle_of_a_gang_leaves_no_part_of_it() {
    let world = cluster().await;
    let mut pods = Pods::watch(&world).await;
    let door = Door::before(&world).await;
    let scheduler = Replica::start(&world);
    let mut in_parts = 0;
    for (round, (moment, time)) in AWAY.into_iter().enumerate() {
        let gang = format!("g{round}");
        world.whole_gang(&gang, MEMBERS).await;
        pods.follow(|pods| pods.bound(&gang) >= moment).await;
        door.shut();
        tokio::time::sleep(time).await;
        pods.catch_up();
        let left = pods.bound(&gang);
        println!("gone at {moment} members for {time:?}, {left} are bound");
        in_parts += usize::from(left < MEMBERS);
        door.open();
        pods.follow(|pods| pods.running.len() == MEMBERS).await;
        pods.remove(&gang).await;
        pods.follow(|pods| pods.nodes.is_empty()).await;
    }
    assert!(in_parts > 0, "it always went too late to find a part of a gang");
    let log = scheduler.end();
    assert!(log.contains("not leading any more"), "nobody has lost a lease: {log}");
}

/// A random number of members that a leader binds before it is killed.
fn drawn(seed: u64, lane: usize, round: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (seed, lane, round).hash(&mut hasher);
    1 + hasher.finish() as usize % BOUND_MAX
}

async fn cluster() -> World {
    let world = World::up(&["--nodes", "0"]).await;
    for index in 0..NODES {
        world.node(&format!("n{index}"), MEMBERS_PER_NODE).await;
    }
    world
}

/// Kills a leader whenever it has bound so many members. Says how often that left a gang in parts.
async fn tell(lots: Vec<usize>) -> usize {
    let world = cluster().await;
    let mut pods = Pods::watch(&world).await;
    let mut leader = Replica::start(&world);
    let mut gang = "g0".to_owned();
    world.whole_gang(&gang, MEMBERS).await;
    let (mut in_parts, mut left) = (0, 0);
    for (round, lot) in lots.into_iter().enumerate() {
        if left + lot > MEMBERS {
            // So many are not left of this gang: it is completed, and the next one is hit.
            let next = format!("g{round}");
            world.whole_gang(&next, MEMBERS).await;
            pods.follow(|pods| pods.running.len() == MEMBERS).await;
            assert_eq!(pods.bound(&gang), MEMBERS, "a gang without room has started");
            pods.remove(&gang).await;
            (gang, left) = (next, 0);
        }
        pods.follow(|pods| pods.bound(&gang) >= left + lot).await;
        drop(leader);
        leader = Replica::start(&world);
        tokio::time::sleep(LAST_REQUESTS).await;
        pods.catch_up();
        println!("killed at {} members, {} are bound", left + lot, pods.bound(&gang));
        left = pods.bound(&gang);
        in_parts += usize::from(left < MEMBERS);
    }
    // The last one is not killed.
    pods.follow(|pods| pods.running.len() == MEMBERS).await;
    assert_eq!(pods.bound(&gang), MEMBERS, "{gang} is not complete");
    let log = leader.end();
    assert!(log.contains("takeover=true"), "nothing was handed over: {log}");
    in_parts
}

/// What happens to all pods of a cluster, in order. What must never be so is looked for after every step.
struct Pods<'a> {
    world: &'a World,
    /// Sees bindings at once, which lists do not: most others would be bound before one is here.
    events: BoxStream<'a, kube::Result<WatchEvent<Pod>>>,
    /// Where those are that are bound, by name.
    nodes: BTreeMap<String, String>,
    running: BTreeSet<String>,
    /// The gang that may go.
    leaving: String,
}

impl<'a> Pods<'a> {
    async fn watch(world: &'a World) -> Self {
        let events = world.pods().watch(&WatchParams::default(), "0").await.unwrap().boxed();
        Self { world, events, nodes: BTreeMap::new(), running: BTreeSet::new(), leaving: String::new() }
    }

    /// Follows what happens until something is so.
    async fn follow(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let event = tokio::time::timeout(PATIENCE, self.events.next()).await;
            let event = event.unwrap_or_else(|_| panic!("{} are bound and it stays so", self.nodes.len()));
            self.saw(event.unwrap().unwrap());
        }
    }

    /// Sees what has happened already.
    fn catch_up(&mut self) {
        while let Some(event) = self.events.next().now_or_never() {
            self.saw(event.unwrap().unwrap());
        }
    }

    fn saw(&mut self, event: WatchEvent<Pod>) {
        let (pod, is_gone) = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
            WatchEvent::Deleted(pod) => (pod, true),
            WatchEvent::Bookmark(_) => return,
            WatchEvent::Error(status) => panic!("{status:?}"),
        };
        let name = pod.metadata.name.as_deref().unwrap();
        if is_gone {
            assert!(is_member(name, &self.leaving), "{name} was deleted, and would have to be made again");
            self.nodes.remove(name);
            self.running.remove(name);
            return;
        }
        let Some(node) = node_of(&pod) else { return };
        let before = self.nodes.insert(name.to_owned(), node.to_owned());
        if let Some(before) = before {
            assert_eq!(before, node, "{name} was bound twice");
        } else {
            let on_node = self.nodes.values().filter(|other| *other == node).count();
            assert!(on_node <= MEMBERS_PER_NODE, "{node} has {on_node} members");
        }
        if phase_of(&pod) == "Running" {
            self.running.insert(name.to_owned());
        }
    }

    /// How many members of a gang are bound.
    fn bound(&self, gang: &str) -> usize {
        self.nodes.keys().filter(|name| is_member(name, gang)).count()
    }

    async fn remove(&mut self, gang: &str) {
        gang.clone_into(&mut self.leaving);
        let (now, members) = (DeleteParams::default().grace_period(0), of_gang(gang));
        self.world.pods().delete_collection(&now, &members).await.unwrap();
        self.world.groups().delete(gang, &DeleteParams::default()).await.unwrap();
    }
}

fn is_member(pod: &str, gang: &str) -> bool {
    pod.rsplit_once('-').is_some_and(|(of, _)| of == gang)
}
