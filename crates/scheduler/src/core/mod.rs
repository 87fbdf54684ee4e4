//! The scheduler without IO: what happened goes in, what is to be done comes out.
//!
//! The core owns the engine, everything that is known of the cluster, and every request under way. It reads no
//! clock, draws no random number and starts nothing: the same inputs give the same effects, so faults can be
//! played at this boundary and replayed exactly.
//!
//! * `facts`: what watches tell;
//! * `binds`: bindings until everybody knows how they ended;
//! * `answers`: what requests answer;
//! * `report`: conditions and events;
//! * `lane`: writes of less worth than bindings, coalesced and paced.

mod answers;
mod belief;
mod binds;
mod facts;
mod lane;
pub mod message;
mod report;
#[cfg(test)]
mod tests;

use crate::config::Config;
use belief::{Belief, Wanted};
use binds::{Binds, Limits};
use lane::{Lane, Pace};
use message::{Effect, EventKey, Fact, Input, WriteKey};
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::{Decision, Engine, Event};
use tutti_k8s::request::EventNote;
use tutti_k8s::{Capabilities, Condition, ObjectKind};
use tutti_model::{ObjectKey, Pod, Text, Time};

/// Decisions in one step; the rest is taken in the next, so that answers are not kept waiting.
const DECISIONS_PER_STEP_MAX: usize = 256;
/// Looks at pods under way at once.
const LOOKUPS_MAX: usize = 16;
/// Conditions of groups under way at once.
const GROUP_WRITES_MAX: usize = 16;
/// Conditions of pods, and events, under way at once.
const LOW_WRITES_MAX: usize = 8;
/// The same while bindings are under way: a trickle, so that steady binding does not silence them for ever.
const LOW_WRITES_WHILE_BINDING_MAX: usize = 2;
/// Longest queues of writes. What does not fit is dropped and counted.
const GROUP_QUEUE_MAX: usize = 50_000;
const POD_QUEUE_MAX: usize = 200_000;
const EVENT_QUEUE_MAX: usize = 50_000;

/// What is known of a pod.
#[derive(Debug)]
struct KnownPod {
    uid: Text,
    version: Text,
    /// Where it is; never unlearned, because a pod never leaves its node.
    node: Option<Text>,
    /// The pod itself while we may have to place it.
    unbound: Option<Box<Pod>>,
    /// True if the engine was told of it.
    told: bool,
    /// Its condition, while we may have to speak of it.
    scheduled: Option<Box<Belief>>,
    /// When it was last said in an event that it waits.
    complained_at: Option<Time>,
    /// Version whose errors were reported.
    reported: Option<Text>,
}

/// What is known of a group.
#[derive(Debug)]
struct KnownGroup {
    uid: Text,
    generation: i64,
    scheduled: Belief,
    complained_at: Option<Time>,
    reported: Option<Text>,
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
    engine: Engine,
    pods: BTreeMap<ObjectKey, KnownPod>,
    nodes: BTreeMap<Text, KnownNode>,
    groups: BTreeMap<ObjectKey, KnownGroup>,
    /// Why groups wait, so that a group that is made anew or changed can be told again.
    waiting: BTreeMap<ObjectKey, (&'static str, Text)>,
    namespaces: BTreeSet<Text>,
    /// Kinds whose first list is not in yet.
    unlisted: BTreeSet<ObjectKind>,
    /// Names seen in the list that is under way, by kind.
    listing: BTreeMap<ObjectKind, BTreeSet<ObjectKey>>,
    binds: Binds,
    group_writes: Lane<ObjectKey, (Text, Condition)>,
    pod_writes: Lane<ObjectKey, (Text, Condition)>,
    events: Lane<EventKey, EventNote>,
    pod_pace: Pace,
    event_pace: Pace,
    event_serial: u64,
    synced: bool,
    stopping: bool,
    wake_at: Option<Time>,
    effects: Vec<Effect>,
}

impl Core {
    /// A core that has seen nothing.
    pub fn new(config: Config, capabilities: Capabilities) -> Self {
        let mut unlisted = BTreeSet::from([ObjectKind::Pod, ObjectKind::Node, ObjectKind::Namespace]);
        if capabilities.pod_group.is_some() {
            unlisted.insert(ObjectKind::PodGroup);
        }
        let limits = Limits {
            binds: config.bind_concurrency,
            lookups: LOOKUPS_MAX,
            settle_ms: i64::try_from(config.outcome_settles_after.as_millis()).unwrap_or(i64::MAX),
        };
        Self {
            engine: Engine::new(config.engine()),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            groups: BTreeMap::new(),
            namespaces: BTreeSet::new(),
            waiting: BTreeMap::new(),
            unlisted,
            listing: BTreeMap::new(),
            binds: Binds::new(limits),
            group_writes: Lane::new(GROUP_QUEUE_MAX),
            pod_writes: Lane::new(POD_QUEUE_MAX),
            events: Lane::new(EVENT_QUEUE_MAX),
            pod_pace: Pace::new(config.pod_conditions_per_second),
            event_pace: Pace::new(config.events_per_second),
            event_serial: 0,
            synced: false,
            stopping: false,
            wake_at: None,
            effects: Vec::new(),
            config,
            capabilities,
        }
    }

    /// Takes in what happened, decides, and says what is to be done. Inputs that came together are best given
    /// together: a gang whose members arrive in one batch is decided once.
    pub fn step(&mut self, inputs: impl IntoIterator<Item = Input>, now: Time) -> Vec<Effect> {
        for input in inputs {
            self.take(input, now);
        }
        self.binds.tick(now);
        let engine_wakes = self.decide(now);
        self.pump(now);
        self.wake_at = [engine_wakes, self.binds.wake_at(), self.writes_due(now)].into_iter().flatten().min();
        std::mem::take(&mut self.effects)
    }

    /// When to step again even if nothing happens.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// True if no binding and no condition of a group is under way or waits to be.
    pub fn is_drained(&self) -> bool {
        self.binds.is_empty() && self.group_writes.is_empty()
    }

    /// True once all first lists are in.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    fn take(&mut self, input: Input, now: Time) {
        match input {
            Input::ListStarted(kind) => self.list_started(kind),
            Input::ListDone(kind) => self.list_done(kind, now),
            Input::PodSet(reading) => self.pod_set(*reading, now),
            Input::PodGone(key) => self.pod_gone(&key, now),
            Input::NodeSet(reading) => self.node_set(*reading, now),
            Input::NodeGone(name) => self.node_gone(&name, now),
            Input::NamespaceSet { name, labels } => self.namespace_set(&name, labels, now),
            Input::NamespaceGone(name) => self.namespace_gone(&name, now),
            Input::GroupSet(reading) => self.group_set(*reading, now),
            Input::GroupGone(key) => {
                self.waiting.remove(&key);
                self.group_gone(&key, now);
            }
            Input::Answer(answer) => self.answered(answer, now),
            Input::Tick => {}
            Input::Stop => self.stopping = true,
        }
    }

    /// Asks the engine until it has nothing to say. Gives when to ask again.
    fn decide(&mut self, now: Time) -> Option<Time> {
        if !self.synced || self.stopping {
            return None;
        }
        for _ in 0..DECISIONS_PER_STEP_MAX {
            match self.engine.decide(now) {
                Decision::Place(placement) => self.placed(&placement, now),
                Decision::Wait(waiting) => self.refused(&waiting, now),
                Decision::Idle { wake_at } => return wake_at,
            }
        }
        Some(now)
    }

    /// Lets requests out, the most valuable first.
    fn pump(&mut self, now: Time) {
        while let Some(effect) = self.binds.next() {
            self.effects.push(effect);
        }
        while let Some((group, (uid, condition))) = self.group_writes.next(GROUP_WRITES_MAX, now) {
            if let Some(known) = self.groups.get_mut(&group) {
                known.scheduled.sent(now);
            }
            let condition = Box::new(condition);
            self.effects.push(Effect::PatchGroupCondition { group, uid, condition });
        }
        let window = self.low_window();
        while self.pod_writes.under_way() < window
            && self.pod_writes.due().is_some_and(|due| due <= now)
            && self.pod_pace.take(now)
        {
            let Some((pod, (uid, condition))) = self.pod_writes.next(window, now) else {
                break;
            };
            // Bound or replaced since: there is nothing to complain about.
            let known = self.pods.get_mut(&pod).filter(|known| known.uid == uid && known.node.is_none());
            let Some(known) = known else {
                self.pod_writes.done(&pod);
                continue;
            };
            if let Some(belief) = &mut known.scheduled {
                belief.sent(now);
            }
            let version = known.version.clone();
            let condition = Box::new(condition);
            self.effects.push(Effect::PatchPodCondition { pod, uid, version, condition });
        }
        while self.events.under_way() < window
            && self.events.due().is_some_and(|due| due <= now)
            && self.event_pace.take(now)
        {
            let Some((_, note)) = self.events.next(window, now) else {
                break;
            };
            self.complained(&note, now);
            self.effects.push(Effect::EmitEvent(Box::new(note)));
        }
    }

    fn low_window(&self) -> usize {
        if self.binds.is_busy() { LOW_WRITES_WHILE_BINDING_MAX } else { LOW_WRITES_MAX }
    }

    /// When the next write becomes due by time alone. Writes that wait for an answer need no wake-up.
    fn writes_due(&self, now: Time) -> Option<Time> {
        let window = self.low_window();
        let groups = self.group_writes.due().filter(|_| self.group_writes.under_way() < GROUP_WRITES_MAX);
        let pods = self.pod_writes.due().filter(|_| self.pod_writes.under_way() < window);
        let events = self.events.due().filter(|_| self.events.under_way() < window);
        [
            groups,
            pods.map(|due| due.max(self.pod_pace.ready_at(now))),
            events.map(|due| due.max(self.event_pace.ready_at(now))),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn tell(&mut self, event: Event, now: Time) {
        self.engine.apply(event, now);
    }

    fn report(&mut self, fact: Fact) {
        self.effects.push(Effect::Report(fact));
    }

    fn write_given_up(&mut self, key: WriteKey, why: Text) {
        match &key {
            WriteKey::Group(group) => {
                if let Some(known) = self.groups.get_mut(group) {
                    known.scheduled.give_up();
                }
            }
            WriteKey::Pod(pod) => {
                if let Some(belief) = self.pods.get_mut(pod).and_then(|known| known.scheduled.as_mut()) {
                    belief.give_up();
                }
            }
            WriteKey::Event(_) => {}
        }
        self.report(Fact::WriteGivenUp { key, why });
    }
}
