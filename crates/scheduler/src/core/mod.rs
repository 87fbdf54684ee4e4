//! The scheduler without IO: what happened goes in, what is to be done comes out.
//!
//! The core owns the engine, everything that is known of the cluster, and every request under way. It reads no
//! clock, draws no random number and starts nothing: the same inputs give the same effects, so faults can be
//! played at this boundary and replayed exactly.
//!
//! * `leadership`: whether we may act;
//! * `facts`: what watches tell, and `members`: pods whose group follows from their Job;
//! * `confirm`: a last look at groups before they start, and `launch`: at everybody in them;
//! * `binds`: bindings until everybody knows how they ended;
//! * `gangs`: what becomes of gangs below their minimum, and `evictions`: members of those that are taken back;
//! * `kin`: whom pods are like, `priorities`: what classes of groups stand for, `budgets`: who may be disrupted;
//! * `trees`: which groups belong together, and whether they have what they need;
//! * `storage`: what watches tell about storage, and `volumes`: claims that get a volume before their pods are bound;
//! * `answers`: what requests answer;
//! * `report`: conditions and events;
//! * `waits`: how long units wait, and for what;
//! * `counters` and `dump`: how things stand, in numbers and in full; `observer`: how long decisions take;
//! * `lane`: writes of less worth than bindings, coalesced and paced; `window`: how many of all this at once.

mod answers;
mod belief;
mod binds;
mod budgets;
mod confirm;
pub mod counters;
pub mod dump;
mod evictions;
mod facts;
pub mod gangs;
mod kin;
mod lane;
mod launch;
mod leadership;
mod members;
pub mod message;
pub mod observer;
mod priorities;
mod pump;
mod report;
mod storage;
#[cfg(test)]
mod tests;
mod trees;
mod volumes;
pub mod waits;
mod window;

use crate::config::Config;
use belief::{Belief, Wanted};
use binds::{Binds, Limits};
use budgets::Budgets;
use confirm::Confirms;
use counters::Counters;
use evictions::Eviction;
use gangs::{Gangs, Standing};
use kin::Kin;
use lane::{Lane, Pace};
use launch::Launches;
use leadership::Leadership;
use members::Members;
use message::{Effect, EventKey, Fact, Input, Marks, WriteKey};
use observer::Observer;
use priorities::Priorities;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use storage::{KnownStorage, STORAGE_KINDS};
use trees::Trees;
use tutti_engine::{Decision, Engine, Event, UnitKey};
use tutti_k8s::gangs::Api;
use tutti_k8s::request::EventNote;
use tutti_k8s::{Capabilities, Condition, ObjectKind, PodReading};
use tutti_model::{Group, LabelSelector, ObjectKey, Pod, Text, Time};
use volumes::VolumeWaits;
use waits::Waits;
use window::Window;

/// Decisions in one step; the rest is taken in the next, so that answers are not kept waiting.
const DECISIONS_PER_STEP_MAX: usize = 256;
/// Placements that wait for a last look or for their turn to be bound. With so many nothing more is decided: what is
/// decided late is decided on what is known by then, and answers, which always come, make room.
const STARTS_MAX: usize = 1024;
/// Pause after which it is said again on a group that it has started, if the server did not want to hear it; every further
/// one is twice as long.
const SAY_AGAIN_FIRST: Duration = Duration::from_secs(60);
const SAY_AGAIN_MAX: Duration = Duration::from_secs(1800);
/// Looks at pods under way at once.
const LOOKUPS_MAX: usize = 16;
/// Longest queues of writes. What does not fit is dropped and counted.
const GROUP_QUEUE_MAX: usize = 50_000;
const POD_QUEUE_MAX: usize = 200_000;
const EVENT_QUEUE_MAX: usize = 200_000;
const EVICTION_QUEUE_MAX: usize = 50_000;

/// What is known of a pod.
#[derive(Debug)]
struct KnownPod {
    uid: Text,
    version: Text,
    /// Where it is; never unlearned, because a pod never leaves its node.
    node: Option<Text>,
    /// The pod itself while we may have to place it.
    unbound: Option<Box<Pod>>,
    /// The pod as the engine has it since an answer said where it is; seen like this by the watch, it is no news.
    answered: Option<Box<Pod>>,
    /// The pod as it was last read while a binding of it was under way, if that does not become of it.
    postponed: Option<Box<PodReading>>,
    /// True if the engine was told of it.
    told: bool,
    /// Its condition, while we may have to speak of it.
    scheduled: Option<Box<Belief>>,
    /// When it was last said in an event that it waits.
    complained_at: Option<Time>,
    /// Version whose errors were reported.
    reported: Option<Text>,
    /// Whether it is for us to place.
    ours: bool,
    /// Whether it is made again if it is deleted.
    controlled: bool,
    /// Its group, and what it is to it.
    group: Option<ObjectKey>,
    standing: Standing,
    /// Whom it is like, or was when it got its place.
    like: Option<Arc<LabelSelector>>,
    /// When it was first seen waiting.
    waits_since: Option<Time>,
    /// When it may be deleted again, if it was to be.
    evict_after: Option<Time>,
    /// Until when a deletion that was sent may still happen, whatever was heard of it.
    may_go_until: Option<Time>,
}

/// What is known of a group or a composite.
#[derive(Debug)]
struct KnownGroup {
    uid: Text,
    version: Text,
    generation: i64,
    /// What it asks for; `None` if it was not understood. (Not every API server counts generations of groups.)
    asks: Option<Box<Group>>,
    /// What was not understood of it.
    trouble: Option<Text>,
    scheduled: Belief,
    /// When that it has started may be said again, after the server did not want to hear it, and how long that pause is.
    said_again_at: Option<(Time, Duration)>,
    complained_at: Option<Time>,
    reported: Option<Text>,
}

impl KnownGroup {
    /// What was to be said on it was refused. Gives when to try again.
    fn say_again(&mut self, now: Time) -> Time {
        let pause = self.said_again_at.map_or(SAY_AGAIN_FIRST, |(_, pause)| (pause * 2).min(SAY_AGAIN_MAX));
        self.said_again_at = Some((now + pause, pause));
        now + pause
    }
}

/// What is known of a node.
#[derive(Debug)]
struct KnownNode {
    uid: Text,
    reported: Option<Text>,
}

/// The scheduler without IO.
#[derive(Debug)]
pub struct Core {
    config: Config,
    capabilities: Capabilities,
    /// How groups are made for Jobs, if any are.
    job_groups: Option<Api>,
    engine: Engine,
    pods: FxHashMap<ObjectKey, KnownPod>,
    nodes: BTreeMap<Text, KnownNode>,
    groups: BTreeMap<ObjectKey, KnownGroup>,
    composites: BTreeMap<ObjectKey, KnownGroup>,
    trees: Trees,
    /// Why groups and composites wait, so that one that is made anew or changed can be told again.
    waiting: BTreeMap<UnitKey, (&'static str, Text)>,
    waits: Waits,
    namespaces: BTreeSet<Text>,
    /// Kinds that are listed and watched.
    kinds: BTreeSet<ObjectKind>,
    /// Those of them whose first list is not in yet.
    unlisted: BTreeSet<ObjectKind>,
    /// Those that the cluster does not let us list.
    unavailable: BTreeSet<ObjectKind>,
    /// Objects of which nothing is kept because they were not understood, and of which that was said.
    bad: BTreeSet<(ObjectKind, ObjectKey)>,
    /// Names seen in the list that is under way, by kind.
    listing: BTreeMap<ObjectKind, FxHashSet<ObjectKey>>,
    leadership: Leadership,
    gangs: Gangs,
    members: Members,
    kin: Kin,
    priorities: Priorities,
    budgets: Budgets,
    storage: KnownStorage,
    volume_waits: VolumeWaits,
    confirms: Confirms,
    launches: Launches,
    binds: Binds,
    /// How many of each kind of write the server bears.
    write_window: Window,
    evictions: Lane<ObjectKey, Eviction>,
    mark_writes: Lane<ObjectKey, (Text, Marks)>,
    group_writes: Lane<UnitKey, (Text, Condition)>,
    pod_writes: Lane<ObjectKey, (Text, Condition)>,
    events: Lane<EventKey, EventNote>,
    pod_pace: Pace,
    event_pace: Pace,
    event_serial: u64,
    synced: bool,
    stopping: bool,
    wake_at: Option<Time>,
    counters: Counters,
    effects: Vec<Effect>,
}

impl Core {
    /// A core that has seen nothing, where nobody else could lead: it acts once it knows the cluster.
    pub fn new(config: Config, capabilities: Capabilities) -> Self {
        Self::with(config, capabilities, Leadership::Alone)
    }

    /// A core that has seen nothing and sends nothing before it is elected.
    pub fn standby(config: Config, capabilities: Capabilities) -> Self {
        Self::with(config, capabilities, Leadership::Standby)
    }

    fn with(config: Config, capabilities: Capabilities, leadership: Leadership) -> Self {
        let limits = Limits {
            binds: config.bind_concurrency,
            lookups: LOOKUPS_MAX,
            settle_after: config.outcome_settles_after,
        };
        let kinds = kinds(&config, &capabilities);
        let mut core = Self {
            engine: Engine::new(config.engine()),
            pods: FxHashMap::default(),
            nodes: BTreeMap::new(),
            groups: BTreeMap::new(),
            composites: BTreeMap::new(),
            trees: Trees::default(),
            namespaces: BTreeSet::new(),
            waiting: BTreeMap::new(),
            waits: Waits::new(),
            unlisted: kinds.clone(),
            kinds,
            unavailable: BTreeSet::new(),
            bad: BTreeSet::new(),
            listing: BTreeMap::new(),
            leadership,
            gangs: Gangs::default(),
            members: Members::default(),
            kin: Kin::default(),
            priorities: Priorities::default(),
            budgets: Budgets::default(),
            storage: KnownStorage::default(),
            volume_waits: VolumeWaits::default(),
            confirms: Confirms::default(),
            launches: Launches::default(),
            binds: Binds::new(limits),
            write_window: Window::new(pump::WRITES_MAX),
            evictions: Lane::new(EVICTION_QUEUE_MAX),
            mark_writes: Lane::lasting(GROUP_QUEUE_MAX),
            group_writes: Lane::lasting(GROUP_QUEUE_MAX),
            pod_writes: Lane::new(POD_QUEUE_MAX),
            events: Lane::new(EVENT_QUEUE_MAX),
            pod_pace: Pace::new(config.pod_conditions_per_second),
            event_pace: Pace::new(config.events_per_second),
            event_serial: 0,
            synced: false,
            stopping: false,
            wake_at: None,
            counters: Counters::default(),
            effects: Vec::new(),
            job_groups: config.job_groups(&capabilities),
            config,
            capabilities,
        };
        core.await_jobs(Time::default());
        core
    }

    /// Takes in what happened, decides, and says what is to be done. Inputs that came together are best given
    /// together: a gang whose members arrive in one batch is decided once.
    pub fn step(&mut self, inputs: impl IntoIterator<Item = Input>, now: Time) -> Vec<Effect> {
        self.step_observed(inputs, now, &mut ())
    }

    /// As [`Core::step`], while somebody watches.
    pub fn step_observed(
        &mut self,
        inputs: impl IntoIterator<Item = Input>,
        now: Time,
        observer: &mut impl Observer,
    ) -> Vec<Effect> {
        for input in inputs {
            self.take(input, now);
        }
        if !self.leadership.may_act(now) {
            self.wake_at = None;
            return std::mem::take(&mut self.effects);
        }
        self.binds.tick(now);
        self.review_volumes(now);
        let mut wake_at = self.decide(now, observer);
        if self.synced {
            self.review_gangs(now);
            if !self.stopping {
                wake_at = earlier(wake_at, self.gangs.wake_at());
                wake_at = earlier(wake_at, self.volume_waits.wake_at());
            }
        }
        self.wake_at = earlier(wake_at, self.pump(now));
        std::mem::take(&mut self.effects)
    }

    /// When to step again even if nothing happens.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// True if nothing that whoever leads next depends on is under way or waits to be: no binding, no deletion, nothing
    /// that is written on a group for good, on a claim or on a volume. Then this one may end and hand over at once. Why a
    /// group waits is said by whoever leads next, too, and cannot undo what that one says.
    pub fn is_drained(&self) -> bool {
        self.binds.is_empty()
            && self.confirms.is_empty()
            && self.launches.is_empty()
            && self.mark_writes.is_empty()
            && !self.group_writes.has(|(_, condition)| condition.holds())
            && self.evictions.is_empty()
            && self.volume_waits.has_no_writes()
    }

    /// True if it knows the cluster and may decide and send.
    pub fn is_acting(&self, now: Time) -> bool {
        self.synced && self.leadership.may_act(now)
    }

    /// True once all first lists are in.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    fn take(&mut self, input: Input, now: Time) {
        if !self.bad.is_empty() {
            self.no_longer_bad(&input);
        }
        match input {
            Input::ListStarted(kind) => self.list_started(kind),
            Input::ListDone(kind) => self.list_done(kind, now),
            Input::ListRefused { kind, why } => self.list_refused(kind, why, now),
            Input::PodSet(reading) => self.pod_set(*reading, now),
            Input::PodGone(key) => self.pod_gone(&key, now),
            Input::NodeSet(reading) => self.node_set(*reading, now),
            Input::NodeGone(name) => self.node_gone(&name, now),
            Input::NamespaceSet { name, labels } => self.namespace_set(&name, labels, now),
            Input::NamespaceGone(name) => self.namespace_gone(&name, now),
            Input::GroupSet(reading) => self.group_set(*reading, now),
            Input::GroupGone(key) => {
                self.waiting.remove(&UnitKey::Group(key.clone()));
                self.group_gone(&key, now);
            }
            Input::CompositeSet(reading) => self.composite_set(*reading, now),
            Input::CompositeGone(key) => {
                self.waiting.remove(&UnitKey::Composite(key.clone()));
                self.composite_gone(&key, now);
            }
            Input::ClaimSet(reading) => self.claim_set(*reading, now),
            Input::ClaimGone(key) => self.claim_gone(&key, now),
            Input::VolumeSet(reading) => self.volume_set(*reading, now),
            Input::VolumeGone(name) => self.volume_gone(&name, now),
            Input::ClassSet(reading) => self.class_set(*reading, now),
            Input::ClassGone(name) => self.class_gone(&name, now),
            Input::LimitsSet(reading) => self.limits_set(*reading, now),
            Input::LimitsGone(node) => self.limits_gone(&node, now),
            Input::KinSet(reading) => self.kin_set(*reading, now),
            Input::KinGone(kind, key) => self.kin_gone(kind, &key),
            Input::PriorityClassSet(reading) => self.priority_class_set(*reading, now),
            Input::PriorityClassGone(name) => self.priority_class_gone(&name),
            Input::BudgetSet(reading) => self.budget_set(*reading, now),
            Input::BudgetGone(key) => self.budget_gone(&key),
            Input::JobSet(reading) => self.job_set(&reading, now),
            Input::JobGone(key) => self.members.job_gone(&key),
            Input::Answer(answer) => self.answered(answer, now),
            Input::Elected { until } => self.elected(until),
            Input::Renewed { until } => self.renewed(until),
            Input::Tick => {}
            Input::Stop => self.stopping = true,
        }
    }

    /// Asks the engine until it has nothing to say. Gives when to ask again.
    fn decide(&mut self, now: Time, observer: &mut impl Observer) -> Option<Time> {
        if !self.synced || self.stopping {
            return None;
        }
        self.review_kin(now);
        for _ in 0..DECISIONS_PER_STEP_MAX {
            if self.launches.len() + self.confirms.len() >= STARTS_MAX {
                return None;
            }
            let mut waiting_on = Vec::new();
            observer.asks();
            let decision = self.engine.decide_and_tell(now, |waiting| {
                observer.decides();
                waiting_on.push(waiting);
            });
            observer.decides();
            for waiting in &waiting_on {
                observer.done(self.count_refusal(waiting).as_ref());
            }
            let attempt = match decision {
                Decision::Place(placement) => Some(self.placed(placement, now)),
                Decision::Wait(waiting) => self.refused(&waiting, now),
                // Answers, timers and health checks have their turn in between.
                Decision::More => return Some(now),
                Decision::Idle { wake_at } => return wake_at,
            };
            observer.done(attempt.as_ref());
        }
        Some(now)
    }

    fn tell(&mut self, event: Event, now: Time) {
        self.engine.apply(event, now);
    }

    fn report(&mut self, fact: Fact) {
        self.effects.push(Effect::Report(fact));
    }

    fn write_given_up(&mut self, key: WriteKey, why: Text, now: Time) {
        match &key {
            WriteKey::Group(group) => {
                // What replaces it may wait already.
                let is_replaced = self.group_writes.contains(group);
                if let Some(known) = self.known_group_mut(group).filter(|_| !is_replaced) {
                    known.scheduled.give_up();
                    let again = known.say_again(now);
                    self.look_again_at(group, again);
                }
            }
            WriteKey::Marks(group) => self.marks_written(group, false, now),
            WriteKey::Pod(pod) => {
                if let Some(belief) = self.pods.get_mut(pod).and_then(|known| known.scheduled.as_mut()) {
                    belief.give_up();
                }
            }
            WriteKey::Storage(storage) => self.storage_write_given_up(storage, &why, now),
            // Members that are still there are tried again by whoever wants them gone.
            WriteKey::Eviction(_) | WriteKey::Event(_) => {}
        }
        self.counters.writes_given_up += 1;
        self.report(Fact::WriteGivenUp { key, why });
    }
}

/// The kinds that are listed before anything is decided.
fn kinds(config: &Config, capabilities: &Capabilities) -> BTreeSet<ObjectKind> {
    let mut kinds = BTreeSet::from([ObjectKind::Pod, ObjectKind::Node, ObjectKind::Namespace]);
    if capabilities.pod_group.is_some() {
        kinds.insert(ObjectKind::PodGroup);
    }
    if capabilities.composite.is_some() {
        kinds.insert(ObjectKind::Composite);
    }
    if capabilities.storage {
        kinds.extend(STORAGE_KINDS);
    }
    if capabilities.optional {
        kinds.extend(ObjectKind::OPTIONAL);
    }
    if config.job_groups(capabilities).is_none() {
        kinds.remove(&ObjectKind::Job);
    }
    kinds
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    [a, b].into_iter().flatten().min()
}
