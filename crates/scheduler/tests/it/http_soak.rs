//! Two hundred stories of a misbehaving API server, through HTTP, with the scheduler as it is.
//!
//! The simulation checks every step in virtual time; here watches, requests, timeouts and decoding are the real ones, and
//! what can be seen from outside is checked, at every change of a pod: no node is given more than it has, nobody is bound
//! twice, and a gang that does not fit has nothing bound. Once the trouble is over everything that fits is bound. Nodes
//! are lost meanwhile, and schedulers killed, some of which are one of two replicas.

use crate::faulty::{Fate, Fates, Faulty};
use crate::harness::{ALONE, LEASE_NAME, World};
use crate::journal;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, WatchEvent, WatchParams};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::Instrument as _;
use tutti_lease::Timing;
use tutti_scheduler::Config;

const SEEDS: u64 = 200;
/// One story instead of all: the seed is read from here.
const SEED_VARIABLE: &str = "TUTTI_HTTP_SEED";
/// Stories that are told at the same time; most of them wait most of the time.
const AT_ONCE: usize = 32;
/// Another story begins if a nap does not last twice as long as it should; after so many it begins nevertheless.
const NAP: Duration = Duration::from_millis(25);
const NAPS_MAX: u32 = 200;
/// How long things go wrong.
const TROUBLE: Duration = Duration::from_millis(1_500);
/// Everything must be bound so long after the trouble. That takes seconds, unless the machine does many things at once.
const HEALING: Duration = Duration::from_secs(300);
/// How long a client waits for an answer.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Whatever was sent before has been carried out by then, even if the machine is busy.
const SETTLES_AFTER: Duration = Duration::from_millis(3_000);
/// What is begun for a leader that dies ends within the gap between this lease and the next one.
const LEASE: Timing = Timing {
    lease_duration: Duration::from_secs(4),
    renew_deadline: Duration::from_secs(2),
    retry_period: Duration::from_millis(500),
};
const REPLICAS: [&str; 2] = ["one", "two"];
/// So many seats are lost with nodes, and so many leaders killed, in all stories together: about a third of what is usual.
const LOST_SEATS_MIN: usize = 30;
const TAKEOVERS_MIN: usize = 8;
const NODE_CPUS: usize = 4;
/// The node that is lost.
const DOOMED: &str = "n0";
/// The group that fits nowhere.
const HUGE: &str = "huge";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_network_does_gangs_start_whole_and_nodes_are_not_over_committed() {
    journal::open();
    let only = std::env::var(SEED_VARIABLE).ok().map(|seed| seed.parse::<u64>().expect("a seed is a number"));
    let seeds = only.map_or(0..SEEDS, |seed| seed..seed + 1);
    let turn = &Mutex::new(());
    let stories = futures::stream::iter(seeds).map(|seed| async move {
        keeps_up(turn).await;
        let told = tokio::spawn(story(seed).instrument(journal::story(seed))).await;
        told.map_err(|error| error.to_string()).and_then(|told| told).map_err(|why| {
            let again = format!("{SEED_VARIABLE}={seed} cargo test -p tutti-scheduler http_soak");
            format!("{}seed {seed}: {why}\ntold again by {again}", journal::of_story(seed))
        })
    });
    let all: Vec<Told> =
        stories.buffer_unordered(AT_ONCE).try_collect().await.unwrap_or_else(|why| panic!("{why}"));
    let lost_seats: usize = all.iter().map(|told| told.lost_seats).sum();
    let takeovers = all.iter().filter(|told| told.taken_over).count();
    let mut fates = Fates::new();
    for (fate, count) in all.into_iter().flat_map(|told| told.fates) {
        *fates.entry(fate).or_default() += count;
    }
    println!("{lost_seats} seats were lost with nodes, {takeovers} leaders killed; {fates:?}");
    if only.is_some() {
        return;
    }
    assert!(lost_seats >= LOST_SEATS_MIN, "nodes were lost with too few seats: {lost_seats}");
    assert!(takeovers >= TAKEOVERS_MIN, "too few leaders were killed: {takeovers}");
    // Stories that avoid what they are about prove nothing.
    use Fate::{
        Conflict, Cut, Down, ErrorAfter, ErrorBefore, Expired, ExpiredLater, Lost, Mute, Slow, Throttled,
    };
    for fate in
        [Conflict, Cut, Down, ErrorAfter, ErrorBefore, Expired, ExpiredLater, Lost, Mute, Slow, Throttled]
    {
        assert!(fates.get(&fate).is_some_and(|&count| count >= SEEDS / 4), "too few {fate:?}: {fates:?}");
    }
}

/// Waits until the machine keeps up with what is being told already. Timeouts are real here, and a machine that has too
/// much else to do would only tell of those.
async fn keeps_up(turn: &Mutex<()>) {
    let _turn = turn.lock().await;
    for _ in 0..NAPS_MAX {
        let asleep = Instant::now();
        tokio::time::sleep(NAP).await;
        if asleep.elapsed() < 2 * NAP {
            return;
        }
    }
}

/// What is done to the cluster, besides what the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// The API server goes away, and comes back.
    ServerDown,
    ServerBack,
    /// The scheduler ends without a word, and another one starts when nothing of the first can be under way any more.
    Kill,
    Start,
    /// The one of two replicas ends that leads.
    KillLeader,
    /// A node goes, and so do all who are on it or get there; others of their names follow.
    LoseNode,
    /// A member is deleted; another of its name follows as soon as it is gone.
    Delete,
    EndTrouble,
}

/// What happens in a story, and when.
fn plot(seed: u64) -> VecDeque<(Duration, Act)> {
    let ms = Duration::from_millis;
    let mut acts = vec![(TROUBLE, Act::EndTrouble)];
    if seed.is_multiple_of(3) {
        acts.extend([(ms(300), Act::ServerDown), (ms(500), Act::ServerBack)]);
    }
    let killed = ms(100 + seed * 7 % 700);
    if has_replicas(seed) {
        acts.push((killed, Act::KillLeader));
    } else if seed.is_multiple_of(4) {
        acts.extend([(killed, Act::Kill), (killed + SETTLES_AFTER, Act::Start)]);
    }
    if seed % 5 == 1 {
        acts.push((ms(50 + seed * 11 % 900), Act::Delete));
    }
    if seed % 5 == 3 {
        acts.push((ms(200 + seed * 13 % 1_200), Act::LoseNode));
    }
    acts.sort_by_key(|(at, _)| *at);
    acts.into()
}

/// True if two replicas schedule in a story, instead of one process that is alone.
fn has_replicas(seed: u64) -> bool {
    seed % 8 == 4
}

/// What came of a story.
struct Told {
    fates: Fates,
    /// Pods that were on a node when it was lost, or got there later.
    lost_seats: usize,
    /// A leader was killed, and the other replica leads.
    taken_over: bool,
}

/// Tells one story.
async fn story(seed: u64) -> Result<Told, String> {
    let (gangs, size) = (2 + seed % 3, 2 + (seed / 3 % 3) as usize);
    let mut world = World::without_controllers().await;
    let inside = world.cluster.in_process_client();
    // Half of the stories begin with a scheduler that knows nothing yet. The others begin with everything there, and with
    // lists that are good, so that there is all the more trouble with what follows.
    let knows_nothing = seed.is_multiple_of(2);
    let faulty = Faulty::start(inside.clone(), seed, !knows_nothing).await;
    let config = Config {
        request_timeout: REQUEST_TIMEOUT,
        outcome_settles_after: SETTLES_AFTER,
        ..Config::default()
    };
    for index in 0..(gangs as usize * size).div_ceil(NODE_CPUS) + 1 {
        world.node(&format!("n{index}"), &NODE_CPUS.to_string()).await;
    }
    let start = |world: &mut World| {
        if has_replicas(seed) {
            for identity in REPLICAS {
                world.start_replica(identity, faulty.client.clone(), config.clone(), LEASE);
            }
        } else {
            world.start_scheduler_through(faulty.client.clone(), config.clone());
        }
    };
    if knows_nothing {
        start(&mut world);
    }
    world.gang(HUGE, 3).await;
    world.members(HUGE, 0..3, &(NODE_CPUS + 1).to_string()).await;
    let mut wanted = BTreeSet::new();
    for index in 0..gangs {
        let name = format!("g{index}");
        world.gang(&name, size as u32).await;
        world.members(&name, 0..size, "1").await;
        wanted.extend((0..size).map(|member| format!("{name}-{member}")));
    }
    if !knows_nothing {
        start(&mut world);
    }
    let mut pods = Pods::watch(Api::default_namespaced(inside.clone())).await?;
    let (began, mut plot) = (Instant::now(), plot(seed));
    // Pods that are deleted and follow anew as soon as they are gone.
    let mut leaving = BTreeSet::new();
    let (mut node_lost, mut lost_seats, mut killed) = (false, 0, None);
    while !plot.is_empty() || !leaving.is_empty() || !pods.are_bound(&wanted) {
        let next = plot.front().map_or(TROUBLE + HEALING, |(at, _)| *at);
        tokio::select! {
            gone = pods.next() => {
                if let Some(pod) = gone?.filter(|pod| leaving.remove(pod)) {
                    let (group, _) = pod.rsplit_once('-').ok_or_else(|| format!("{pod} is of no group"))?;
                    world.pod(&pod, Some(group), "1").await;
                }
            }
            () = tokio::time::sleep_until(began + next) => match plot.pop_front() {
                Some((_, Act::ServerDown)) => faulty.go_down(),
                Some((_, Act::ServerBack)) => faulty.come_back(),
                Some((_, Act::EndTrouble)) => faulty.end_trouble(),
                Some((_, Act::Kill)) => world.kill_scheduler(ALONE).await,
                Some((_, Act::Start)) => start(&mut world),
                Some((_, Act::KillLeader)) => {
                    // If none leads yet, the one that came first is as good.
                    killed = holder(&inside).await;
                    world.kill_scheduler(killed.as_deref().unwrap_or(REPLICAS[0])).await;
                }
                Some((_, Act::Delete)) => {
                    leaving.insert("g0-0".to_owned());
                    world.delete_pod("g0-0").await;
                }
                Some((_, Act::LoseNode)) => {
                    node_lost = true;
                    let nodes = Api::<Node>::all(inside.clone());
                    nodes.delete(DOOMED, &DeleteParams::default()).await.map_err(|error| error.to_string())?;
                }
                None => return Err(format!("not everything is bound in the end, only {:?}", pods.seats)),
            },
        }
        if node_lost {
            let there = pods.seats.iter().filter(|(_, (_, node))| node == DOOMED).map(|(pod, _)| pod);
            let there: Vec<String> = there.filter(|pod| !leaving.contains(*pod)).cloned().collect();
            lost_seats += there.len();
            for pod in there {
                world.remove_pod(&pod).await;
                leaving.insert(pod);
            }
        }
    }
    let leads = holder(&inside).await;
    world.end().await;
    let taken_over = killed.is_some_and(|killed| leads.is_some_and(|leads| leads != killed));
    Ok(Told { fates: faulty.fates(), lost_seats, taken_over })
}

/// Who holds the lease.
async fn holder(client: &Client) -> Option<String> {
    let leases = Api::<Lease>::default_namespaced(client.clone());
    let lease = leases.get_opt(LEASE_NAME).await.expect("leases can be read")?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// Where pods are, as one who watches sees it.
struct Pods {
    events: BoxStream<'static, kube::Result<WatchEvent<Pod>>>,
    /// Identity and node of all that have one.
    seats: BTreeMap<String, (String, String)>,
}

impl Pods {
    async fn watch(pods: Api<Pod>) -> Result<Self, String> {
        let events = pods.watch(&WatchParams::default(), "0").await.map_err(|error| error.to_string())?;
        Ok(Self { events: events.boxed(), seats: BTreeMap::new() })
    }

    fn are_bound(&self, pods: &BTreeSet<String>) -> bool {
        self.seats.keys().eq(pods)
    }

    /// Takes in what happens next, and checks what must be true at any moment. Gives the name of a pod that is gone.
    async fn next(&mut self) -> Result<Option<String>, String> {
        match self.events.next().await {
            Some(Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))) => self.set(pod).map(|()| None),
            Some(Ok(WatchEvent::Deleted(pod))) => {
                let name = pod.metadata.name.unwrap_or_default();
                self.seats.remove(&name);
                Ok(Some(name))
            }
            Some(Ok(WatchEvent::Bookmark(_))) => Ok(None),
            other => Err(format!("the watch of the test itself ended: {other:?}")),
        }
    }

    fn set(&mut self, pod: Pod) -> Result<(), String> {
        let (name, uid) = (pod.metadata.name.unwrap_or_default(), pod.metadata.uid.unwrap_or_default());
        let Some(node) = pod.spec.and_then(|spec| spec.node_name) else {
            return Ok(());
        };
        if name.starts_with(HUGE) {
            return Err(format!("{name} is bound, and its gang cannot start"));
        }
        let seat = (uid, node);
        let node = &seat.1;
        if let Some(before) = self.seats.insert(name.clone(), seat.clone())
            && before != seat
        {
            return Err(format!("{name} is bound twice: {before:?} and {seat:?}"));
        }
        let used = self.seats.values().filter(|(_, other)| other == node).count();
        if used > NODE_CPUS {
            return Err(format!("{node} is over-committed: {:?}", self.seats));
        }
        Ok(())
    }
}
