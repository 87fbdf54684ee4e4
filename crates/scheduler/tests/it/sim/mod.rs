//! The scheduler's core against a simulated cluster that misbehaves, with a virtual clock. One seed is one story: who
//! comes and goes, what is lost, late, refused, restarted or lied about. The promises are checked after every step, and
//! the same seed tells the same story.
//!
//! * `server`: the API server: objects, and what requests do to them; `volumes_and_claims`: what pods keep their data in;
//! * `users`, `machines` and `cluster`: all others: people, nodes, controllers, kubelets, other schedulers;
//! * `replica`: one process of the scheduler with its watches, `lease`: whether it leads, and how it ends;
//! * `network`: what becomes of requests on their way;
//! * `check`: the promises, `order`: in which order they are kept, `trees`: what they mean for composites, `told`: what they mean for who knows what;
//! * `tally`: what has happened, so that stories without a story are noticed.

mod check;
mod cluster;
mod lease;
mod machines;
mod network;
mod order;
mod replica;
mod server;
mod tally;
mod told;
mod trees;
mod users;
mod volumes_and_claims;

use network::Request;
use replica::Replica;
use server::{Draft, Server, SimPod};
use std::collections::{BTreeMap, BTreeSet};
use tally::Deed;
pub(crate) use tally::Tally;
use tutti_engine::UnitKey;
use tutti_k8s::{ObjectKind, WhenBroken};
use tutti_model::{ObjectKey, Text, Time};
use tutti_scheduler::core::message::Answer;

/// When every story begins.
const START: Time = Time(1_700_000_000_000);
/// How long things go wrong, at most, and how long it may take until all is well after that.
const TROUBLE_SECONDS: u64 = 240;
const HEALING_SECONDS: i64 = 450;
/// Of so many stories one is about nothing but gangs and schedulers that are killed.
const ONLY_KILLS_ONE_IN: u64 = 10;
/// A story with more steps than this does not come to rest.
const STEPS_MAX: u64 = 200_000;

/// A small generator: stories need variety, not quality.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not tell similar stories.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(index).cloned()
    }
}

/// Something that happens at a time.
#[derive(Debug, Clone)]
enum Happening {
    /// A user or the cluster does something.
    Act,
    /// A watch of a process has something to tell.
    Deliver(usize),
    /// A process wakes up.
    Wake(usize),
    /// A process looks after its lease.
    Lease(usize),
    /// A process starts.
    Start(usize),
    /// A process that was elected in this term begins to lead.
    Begin(usize, u64),
    /// A broken watch of a process is made again.
    List(usize, ObjectKind),
    /// A request reaches the server.
    Arrive(Box<Request>),
    /// An answer reaches the process that asked, if it still lives.
    Answer(u64, Box<Answer>),
    /// The kubelet of a pod looks at it.
    Kubelet(ObjectKey, Text),
    /// What is left of a pod goes.
    Remove(ObjectKey, Text),
    /// A controller makes a pod again.
    Replace(Box<SimPod>),
    /// The provisioner looks at a claim.
    Provision(ObjectKey, Text),
    /// The controller of volumes looks at a volume.
    BindVolume(Text),
    /// A process is asked to end.
    Stop(usize),
    /// A group is made for a Job.
    MakeGroup(Box<Draft>),
    /// The server works again.
    ServerUp,
}

/// The worst moment for a process to stop is when it has just sent bindings.
#[derive(Debug, Clone, Copy)]
enum Doom {
    Crash,
    Pause,
    End(lease::End),
}

/// How much goes wrong.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    /// Of so many requests one meets with a fault.
    requests_one_in: u64,
    /// Of so many pods one is rejected by a kubelet without reason.
    lies_one_in: u64,
    on: bool,
}

/// One story.
pub(crate) struct Sim {
    trace: bool,
    dice: Dice,
    now: Time,
    serial: u64,
    steps: u64,
    agenda: BTreeMap<(Time, u64), Happening>,
    server: Server,
    replicas: Vec<Replica>,
    lease: lease::Lease,
    trouble: Trouble,
    acts_left: u64,
    /// Gangs come and schedulers are killed, and nothing else happens.
    only_kills: bool,
    has_storage: bool,
    /// There are Jobs and priority classes.
    has_optional: bool,
    /// Groups that were made for Jobs, at some time.
    made: BTreeSet<ObjectKey>,
    /// The kinds that are watched.
    kinds: Vec<ObjectKind>,
    /// What becomes of gangs that were complete, unless they say so themselves.
    when_broken: WhenBroken,
    /// Groups of which a member was on a node at some time.
    ran: BTreeSet<ObjectKey>,
    /// Groups that the server let nobody write marks on.
    refused_marks: BTreeSet<ObjectKey>,
    /// The minimum of a group or composite as it was last read by a scheduler that was about to start it.
    confirmed: BTreeMap<UnitKey, u32>,
    /// Groups and trees of which a scheduler has sent bindings, by its term.
    sent: BTreeSet<(u64, UnitKey)>,
    /// The group that was unwound when the deletion of a pod was sent, by its identity and the pod's.
    meant: BTreeMap<Text, Text>,
    /// What befalls the process that sends the next bindings.
    doom: Option<Doom>,
    down: bool,
    incarnations: u64,
    terms: u64,
    /// How the story went.
    pub(crate) tally: Tally,
}

/// Tells the story of a seed. An error says which promise was broken.
pub(crate) fn story(seed: u64, trace: bool) -> Result<Tally, String> {
    let mut sim = Sim::new(seed, trace);
    sim.live().map_err(|broken| format!("seed {seed}: at {} ms: {broken}", sim.now.0 - START.0))?;
    Ok(sim.tally)
}

impl Sim {
    fn new(seed: u64, trace: bool) -> Self {
        let mut dice = Dice::new(seed);
        let only_kills = dice.once_in(ONLY_KILLS_ONE_IN);
        let mut trouble = Trouble {
            requests_one_in: [4, 10, 30, u64::MAX][dice.below(4) as usize],
            lies_one_in: [5, 20, u64::MAX][dice.below(3) as usize],
            on: true,
        };
        if only_kills {
            trouble = Trouble { requests_one_in: u64::MAX, lies_one_in: u64::MAX, ..trouble };
        }
        let replicas = 1 + dice.below(2) as usize;
        let acts_left = 10 + dice.below(40);
        let has_storage = dice.once_in(4) && !only_kills;
        let has_optional = dice.once_in(3) && !only_kills;
        let when_broken = if dice.once_in(5) { WhenBroken::Unwind } else { WhenBroken::Keep };
        let mut sim = Self {
            trace,
            dice,
            now: START,
            serial: 0,
            steps: 0,
            agenda: BTreeMap::new(),
            server: Server::new(),
            replicas: Vec::new(),
            lease: lease::Lease::default(),
            trouble,
            acts_left,
            only_kills,
            has_storage,
            has_optional,
            made: BTreeSet::new(),
            kinds: replica::kinds(has_storage, has_optional),
            when_broken,
            ran: BTreeSet::new(),
            refused_marks: BTreeSet::new(),
            confirmed: BTreeMap::new(),
            sent: BTreeSet::new(),
            meant: BTreeMap::new(),
            doom: None,
            down: false,
            incarnations: 0,
            terms: 0,
            tally: Tally::default(),
        };
        for index in 0..replicas {
            let replica = sim.born();
            sim.replicas.push(replica);
            sim.schedule(0, Happening::Start(index));
        }
        if only_kills {
            sim.tally.count(Deed::OnlyKills);
            sim.add_large_nodes();
        }
        for _ in 0..2 + sim.dice.below(4) {
            sim.add_node();
        }
        sim.schedule(0, Happening::Act);
        sim
    }

    fn live(&mut self) -> Result<(), String> {
        // Trouble, then healing, each until its time is over or nothing happens any more.
        while self.acts_left > 0 {
            self.next()?;
        }
        self.end_trouble();
        let end = self.now.plus_seconds(HEALING_SECONDS);
        while self.agenda.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.next()?;
        }
        self.check_end()
    }

    fn next(&mut self) -> Result<(), String> {
        self.steps += 1;
        self.tally.count(Deed::Step);
        if self.steps > STEPS_MAX {
            return Err("the story does not come to rest".to_owned());
        }
        let Some(((at, _), happening)) = self.agenda.pop_first() else {
            return Err("nothing happens any more".to_owned());
        };
        self.now = at;
        if self.trace {
            println!("{:>9} {happening:?}", at.0 - START.0);
        }
        match happening {
            Happening::Act => self.act()?,
            Happening::Deliver(replica) | Happening::Wake(replica) => self.step_replica(replica)?,
            Happening::Lease(replica) => self.tend_lease(replica)?,
            Happening::Start(replica) => self.start_replica(replica),
            Happening::Begin(replica, term) => self.begin(replica, term)?,
            Happening::List(replica, kind) => self.list(replica, kind),
            Happening::Arrive(request) => self.arrive(*request)?,
            Happening::Answer(incarnation, answer) => self.answer(incarnation, *answer)?,
            Happening::Kubelet(pod, uid) => self.kubelet(&pod, &uid),
            Happening::Remove(pod, uid) => self.remove_pod(&pod, &uid),
            Happening::Replace(pod) => self.replace(&pod),
            Happening::Provision(claim, uid) => self.provision(&claim, &uid),
            Happening::BindVolume(volume) => self.bind_volume(&volume),
            Happening::Stop(replica) => self.stop(replica, lease::End::HandOver)?,
            Happening::MakeGroup(draft) => self.make_group(*draft),
            Happening::ServerUp => self.down = false,
        }
        self.check_step()
    }

    /// Requests of a process that are on their way take longer.
    fn delay_requests(&mut self, incarnation: u64) {
        let is_its =
            |happening: &Happening| matches!(happening, Happening::Arrive(r) if r.incarnation == incarnation);
        let late: Vec<(Time, u64)> =
            self.agenda.iter().filter(|(_, happening)| is_its(happening)).map(|(at, _)| *at).collect();
        for at in late {
            if self.dice.once_in(2)
                && let Some(happening) = self.agenda.remove(&at)
            {
                let delay = self.dice.below(60_000);
                self.schedule(delay, happening);
            }
        }
    }

    fn schedule(&mut self, in_ms: u64, happening: Happening) {
        let at = Time(self.now.0 + i64::try_from(in_ms).unwrap_or(i64::MAX / 4));
        self.schedule_at(at, happening);
    }

    fn schedule_at(&mut self, at: Time, happening: Happening) {
        self.serial += 1;
        self.agenda.insert((at.max(self.now), self.serial), happening);
    }
}
