//! The scheduler without IO: what happened goes in, what is to be done comes out.
//!
//! The core owns the engine, everything that is known of the cluster, and every request under way. It reads no
//! clock, draws no random number and starts nothing: the same inputs give the same effects, so faults can be
//! played at this boundary and replayed exactly.
//!
//! * `leadership`: whether we may act;
//! * `facts`: what watches tell, and what of it is believed;
//! * `pods`: pods, those whose group follows from their Job, and those that are spread by default;
//! * `starts`: placements on their way, from the decision until it is known where every member is;
//! * `groups`: groups and composites, and what becomes of those that have too few members;
//! * `outcomes`: what follows from decisions, `report`: the words of conditions and events;
//! * `waits`: how long units wait, and for what;
//! * `counters` and `dump`: how things stand, in numbers and in full; `observer`: how long decisions take;
//! * `set_aside`: units over which the engine broke;
//! * `writes`: what goes out and in which order, and what is answered.

pub mod counters;
pub mod dump;
mod facts;
pub mod groups;
mod leadership;
pub mod message;
pub mod observer;
mod outcomes;
mod pods;
mod report;
mod set_aside;
pub mod starts;
#[cfg(test)]
mod tests;
pub mod waits;
mod writes;

use crate::config::Config;
use counters::Counters;
use facts::budgets::Budgets;
use facts::storage_objects::{KnownStorage, STORAGE_KINDS};
use facts::{Listing, Source};
use groups::evictions::Eviction;
use groups::priorities::Priorities;
use groups::{Groups, MemberState};
use leadership::Leadership;
use message::{Annotations, Answer, BindOutcome, Effect, EventKey, Fact, Input, WriteKey};
use observer::Observer;
use pods::PodRow;
use pods::default_spread::DefaultSpread;
use pods::job_pods::JobPods;
use rustc_hash::FxHashMap;
use set_aside::SetAside;
use starts::{Limits, Starts};
use std::collections::{BTreeMap, BTreeSet};

use tutti_engine::{Decision, Engine, Event, UnitKey};
use tutti_k8s::gangs::Api;
use tutti_k8s::request::EventNote;
use tutti_k8s::{Capabilities, Condition, ObjectKind};
use tutti_model::{ObjectKey, Text, Time};
use writes::pace::Pace;
use writes::queue::WriteQueue;
use writes::window::Window;

/// Decisions in one step; the rest is taken in the next, so that answers are not kept waiting.
const DECISIONS_PER_STEP_MAX: usize = 256;
/// Placements that wait for a last look or for their turn to be bound. With so many nothing more is decided: what is
/// decided late is decided on what is known by then, and answers, which always come, make room.
const STARTS_MAX: usize = 1024;
/// Looks at pods under way at once.
const LOOKUPS_MAX: usize = 16;
/// Longest queues of writes. What does not fit is dropped and counted.
const GROUP_QUEUE_MAX: usize = 50_000;
const POD_QUEUE_MAX: usize = 200_000;
const EVENT_QUEUE_MAX: usize = 200_000;
const EVICTION_QUEUE_MAX: usize = 50_000;

/// What is known of a node.
#[derive(Debug)]
struct KnownNode {
    uid: Text,
    reported: Option<Text>,
}

/// What is handed on to the next core of a process that goes on with other settings: it is in no object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CarryOver {
    /// Gangs that wait for room, and since when: that decides when some is kept for them.
    waiting_since: Vec<(UnitKey, Time)>,
}

/// The scheduler without IO.
#[derive(Debug)]
pub struct Core {
    config: Config,
    capabilities: Capabilities,
    /// How groups are made for Jobs, if any are.
    job_groups: Option<Api>,
    engine: Engine,
    pods: FxHashMap<ObjectKey, PodRow>,
    nodes: BTreeMap<Text, KnownNode>,
    groups: Groups,
    namespaces: BTreeSet<Text>,
    /// Kinds that are listed and watched.
    kinds: BTreeSet<ObjectKind>,
    /// Those of them whose first list is not in yet.
    unlisted: BTreeSet<ObjectKind>,
    /// Those that the cluster does not let us list.
    unavailable: BTreeSet<ObjectKind>,
    /// Objects of which nothing is kept because they were not understood, and of which that was said.
    bad: BTreeSet<(ObjectKind, ObjectKey)>,
    /// Lists under way, by kind.
    listing: BTreeMap<ObjectKind, Listing>,
    /// Identities of objects of which a look said that they are gone, until watches say so, too.
    found_gone: BTreeMap<(ObjectKind, ObjectKey), Text>,
    leadership: Leadership,
    job_pods: JobPods,
    default_spread: DefaultSpread,
    priorities: Priorities,
    budgets: Budgets,
    storage: KnownStorage,
    starts: Starts,
    set_aside: SetAside,
    /// How many of each kind of write the server bears.
    write_window: Window,
    evictions: WriteQueue<ObjectKey, Eviction>,
    mark_writes: WriteQueue<ObjectKey, (Text, Annotations)>,
    group_writes: WriteQueue<UnitKey, (Text, Condition)>,
    pod_writes: WriteQueue<ObjectKey, (Text, Condition)>,
    events: WriteQueue<EventKey, EventNote>,
    /// Of conditions that say what they said before in other words, and of events that say that something waits.
    reason_pace: Pace,
    complaint_pace: Pace,
    /// Of all other events.
    event_pace: Pace,
    event_serial: u64,
    synced: bool,
    stopping: bool,
    /// Something has happened since the engine had nothing to decide any more, and when it is to be asked again.
    has_news: bool,
    decide_at: Option<Time>,
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
            groups: Groups::default(),
            namespaces: BTreeSet::new(),
            unlisted: kinds.clone(),
            kinds,
            unavailable: BTreeSet::new(),
            bad: BTreeSet::new(),
            listing: BTreeMap::new(),
            found_gone: BTreeMap::new(),
            leadership,
            job_pods: JobPods::default(),
            default_spread: DefaultSpread::default(),
            priorities: Priorities::default(),
            budgets: Budgets::default(),
            storage: KnownStorage::default(),
            starts: Starts::new(limits),
            set_aside: SetAside::default(),
            write_window: Window::new(writes::WRITES_MAX),
            evictions: WriteQueue::new(EVICTION_QUEUE_MAX),
            mark_writes: WriteQueue::lasting(GROUP_QUEUE_MAX),
            group_writes: WriteQueue::lasting(GROUP_QUEUE_MAX),
            pod_writes: WriteQueue::new(POD_QUEUE_MAX),
            events: WriteQueue::new(EVENT_QUEUE_MAX),
            reason_pace: Pace::new(config.pod_conditions_per_second),
            complaint_pace: writes::complaint_pace(config.events_per_second),
            event_pace: Pace::new(config.events_per_second),
            event_serial: 0,
            synced: false,
            stopping: false,
            has_news: false,
            decide_at: None,
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

    /// Takes in what happened and does nothing about it yet: [`Core::step`] has to follow. A caller that hears of more meanwhile
    /// tells it first, so that decisions are about things as they are.
    pub fn take_in(&mut self, inputs: impl IntoIterator<Item = Input>, now: Time) {
        for input in inputs {
            self.has_news |= is_news(&input);
            self.take(input, now);
        }
    }

    /// True if something has happened that a decision may follow from, or time has come for one.
    pub fn is_about_to_decide(&self, now: Time) -> bool {
        let is_time = self.has_news || self.decide_at.is_some_and(|at| at <= now);
        is_time && self.synced && !self.stopping && self.leadership.may_act(now)
    }

    /// As [`Core::step`], while an observer watches.
    pub fn step_observed(
        &mut self,
        inputs: impl IntoIterator<Item = Input>,
        now: Time,
        observer: &mut impl Observer,
    ) -> Vec<Effect> {
        self.take_in(inputs, now);
        if !self.leadership.may_act(now) {
            self.wake_at = None;
            return std::mem::take(&mut self.effects);
        }
        self.starts.bindings.tick(now);
        self.review_volumes(now);
        let mut wake_at = self.decide(now, observer);
        self.decide_at = wake_at;
        if self.synced {
            self.review_gangs(now);
            if !self.stopping {
                wake_at = earlier(wake_at, self.groups.wake_at());
                wake_at = earlier(wake_at, self.starts.preparations.wake_at());
            }
        }
        self.wake_at = earlier(wake_at, self.pump(now));
        std::mem::take(&mut self.effects)
    }

    /// How the tables relate to each other, for tests that look after every step. An error says what is wrong.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.check_starts()?;
        self.check_groups()?;
        self.check_pods()
    }

    /// What of it a core that follows in the same process should know, beyond what it can read.
    pub fn carry_over(&self) -> CarryOver {
        CarryOver { waiting_since: self.engine.waiting_since() }
    }

    /// Goes on where an earlier core of the same process has ended.
    pub fn carry_on(&mut self, carried: CarryOver) {
        for (unit, since) in carried.waiting_since {
            self.engine.carry_waiting_since(unit, since);
        }
    }

    /// When to step again even if nothing happens.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// True if nothing that the next leader depends on is under way or waits to be: no binding, no deletion, nothing
    /// that is written on a group for good, on a claim or on a volume. Then this one may end and hand over at once. Why a
    /// group waits is said by the next leader, too, and cannot undo what that one says.
    pub fn is_drained(&self) -> bool {
        self.starts.is_drained()
            && self.mark_writes.is_empty()
            && !self.group_writes.has(|(_, condition)| condition.holds())
            && self.evictions.is_empty()
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
            Input::PodGone(key) => self.seen_gone(ObjectKind::Pod, &key, now),
            Input::NodeSet(reading) => self.node_set(*reading, now),
            Input::NodeGone(name) => self.node_gone(&name, now),
            Input::NamespaceSet { name, labels } => self.namespace_set(&name, labels, now),
            Input::NamespaceGone(name) => self.namespace_gone(&name, now),
            Input::GroupSet(reading) => {
                let unit = UnitKey::Group(reading.key.clone());
                self.unit_set(&unit, *reading, Source::Watch, now);
            }
            Input::GroupGone(key) => self.seen_gone(ObjectKind::PodGroup, &key, now),
            Input::CompositeSet(reading) => {
                let unit = UnitKey::Composite(reading.key.clone());
                self.unit_set(&unit, *reading, Source::Watch, now);
            }
            Input::CompositeGone(key) => self.seen_gone(ObjectKind::Composite, &key, now),
            Input::ClaimSet(reading) => self.claim_set(*reading, now),
            Input::ClaimGone(key) => self.claim_gone(&key, now),
            Input::VolumeSet(reading) => self.volume_set(*reading, now),
            Input::VolumeGone(name) => self.volume_gone(&name, now),
            Input::ClassSet(reading) => self.class_set(*reading, now),
            Input::ClassGone(name) => self.class_gone(&name, now),
            Input::LimitsSet(reading) => self.limits_set(*reading, now),
            Input::LimitsGone(node) => self.limits_gone(&node, now),
            Input::SelectorSet(reading) => self.selector_set(*reading, now),
            Input::SelectorGone(kind, key) => self.selector_gone(kind, &key),
            Input::PriorityClassSet(reading) => self.priority_class_set(*reading, now),
            Input::PriorityClassGone(name) => self.priority_class_gone(&name),
            Input::BudgetSet(reading) => self.budget_set(*reading, now),
            Input::BudgetGone(key) => self.budget_gone(&key),
            Input::JobSet(reading) => self.job_set(&reading, now),
            Input::JobGone(key) => self.job_pods.job_gone(&key),
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
        self.review_default_spread(now);
        self.resume_set_aside(now);
        for _ in 0..DECISIONS_PER_STEP_MAX {
            if self.starts.waiting_count() >= STARTS_MAX {
                return None;
            }
            let mut waiting_on = Vec::new();
            observer.asks();
            let asked = self.ask_engine(now, |waiting| {
                observer.decides();
                waiting_on.push(waiting);
            });
            observer.decides();
            for waiting in &waiting_on {
                observer.done(self.count_refusal(waiting).as_ref());
            }
            let Some(decision) = asked else {
                observer.done(None);
                continue;
            };
            let attempt = match decision {
                Decision::Place(placement) => Some(self.placed(placement, now)),
                Decision::Wait(waiting) => self.refused(&waiting, now),
                // Answers, timers and health checks have their turn in between.
                Decision::More => return Some(now),
                Decision::Idle { wake_at } => {
                    self.has_news = false;
                    return earlier(wake_at, self.set_aside.wake_at());
                }
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

    /// The condition of a pod was not written, and is not tried again.
    fn pod_condition_not_written(&mut self, pod: &ObjectKey) {
        if let Some(condition) = self.pods.get_mut(pod).and_then(|known| known.scheduled.as_mut()) {
            condition.give_up();
        }
    }

    fn write_given_up(&mut self, key: WriteKey, why: Text, now: Time) {
        match &key {
            WriteKey::Group(group) => {
                // What replaces it may wait already.
                let is_replaced = self.group_writes.contains(group);
                if let Some(known) = self.groups.object_mut(group).filter(|_| !is_replaced) {
                    known.scheduled.give_up();
                    let again = known.say_again(now);
                    self.look_again_at(group, again);
                }
            }
            WriteKey::Marks(group) => self.marks_written(group, false, now),
            // What follows from it was done when it was answered.
            WriteKey::Pod(_) => {}
            WriteKey::Storage(storage) => self.storage_write_given_up(storage, &why, now),
            // Members that are still there are tried again while their gang is unwound.
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

/// True if a decision may follow from it.
fn is_news(input: &Input) -> bool {
    !matches!(
        input,
        Input::Answer(Answer::Write { .. } | Answer::Bind { outcome: BindOutcome::Done, .. })
            | Input::Renewed { .. }
            | Input::Tick
            | Input::Stop
    )
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    [a, b].into_iter().flatten().min()
}
