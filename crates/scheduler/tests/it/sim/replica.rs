//! One process of the scheduler: its core and its watches.

use super::lease::Ending;
use super::order::{BINDS_WHERE_ONLY_KILLED, Order};
use super::tally::Deed;
use super::told::Told;
use super::{Doom, Happening, Sim};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tutti_k8s::{Capabilities, ObjectKind};
use tutti_model::{ObjectKey, Time};
use tutti_scheduler::core::groups::GangState;
use tutti_scheduler::core::message::{Effect, Fact, Input};
use tutti_scheduler::{Config, Core};

/// What is watched, and what besides where there is storage.
const KINDS: [ObjectKind; 9] = [
    ObjectKind::Pod,
    ObjectKind::Node,
    ObjectKind::PodGroup,
    ObjectKind::Composite,
    ObjectKind::Namespace,
    ObjectKind::Claim,
    ObjectKind::Volume,
    ObjectKind::StorageClass,
    ObjectKind::CsiNode,
];
const KINDS_WITHOUT_STORAGE: usize = 5;
/// Of so many lists one is told bit by bit, and so long it takes from one bit to the next, at most.
const SLOW_LISTS_ONE_IN: u64 = 4;
const LIST_BIT_MS: u64 = 1_500;

/// How long an incomplete gang, and a unit that waits for volumes, may take; short, so that stories see the end.
const GANG_GRACE: Duration = Duration::from_secs(40);
const VOLUME_TIMEOUT: Duration = Duration::from_secs(30);

/// How soon all lists of a new leader are asked for.
const LISTS_WITHIN_MS: u64 = 50;

/// The kinds that are watched.
pub(super) fn kinds(has_storage: bool, has_optional: bool) -> Vec<ObjectKind> {
    let needed = if has_storage { &KINDS[..] } else { &KINDS[..KINDS_WITHOUT_STORAGE] };
    let optional = ObjectKind::OPTIONAL.into_iter().filter(|_| has_optional);
    needed.iter().copied().chain(optional).collect()
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    queue: VecDeque<(Time, Input)>,
    /// It was listed, and changes come.
    live: bool,
    /// It tells nothing before this time.
    pub(super) stalled_until: Time,
}

pub(super) struct Replica {
    pub(super) core: Core,
    pub(super) incarnation: u64,
    /// The term of its latest election.
    pub(super) term: u64,
    pub(super) alive: bool,
    pub(super) paused_until: Time,
    pub(super) watches: BTreeMap<ObjectKind, Watch>,
    pub(super) leads: bool,
    /// Until when it may send.
    pub(super) lease_until: Time,
    /// It leads, and has waited for what an earlier leader sent.
    pub(super) has_begun: bool,
    pub(super) next_lease: Time,
    /// Set once it is asked to end.
    pub(super) ending: Option<Ending>,
    /// What it knows.
    pub(super) told: Told,
    /// What it has sent.
    pub(super) order: Order,
    pub(super) inbox: Vec<Input>,
    wake_at: Option<Time>,
}

impl Replica {
    /// True if it knows all there is to know and may act on it.
    pub(super) fn is_up_to_date(&self, now: Time) -> bool {
        self.alive
            && now >= self.paused_until
            && self.inbox.is_empty()
            && self.core.is_acting(now)
            && self.watches.values().all(|watch| watch.live && watch.queue.is_empty())
    }

    /// True if nothing is on its way to it about pods and groups.
    pub(super) fn has_heard_all(&self) -> bool {
        self.watches.values().all(|watch| watch.live && watch.queue.is_empty())
    }
}

impl Sim {
    /// A new process that has seen nothing.
    pub(super) fn born(&mut self) -> Replica {
        self.incarnations += 1;
        let config = Config {
            request_timeout: super::network::TIMEOUT,
            gang_grace: GANG_GRACE,
            volume_bind_timeout: VOLUME_TIMEOUT,
            when_broken: self.when_broken,
            ..Config::default()
        };
        let config = match self.only_kills {
            true => Config { bind_concurrency: BINDS_WHERE_ONLY_KILLED, ..config },
            false => config,
        };
        let capabilities = Capabilities::of_versions(&["v1beta1"]).with_composites();
        let capabilities = if self.has_storage { capabilities.with_storage() } else { capabilities };
        let capabilities = if self.has_optional { capabilities.with_optional() } else { capabilities };
        Replica {
            core: Core::standby(config, capabilities),
            incarnation: self.incarnations,
            term: 0,
            alive: false,
            paused_until: Time(0),
            watches: self.kinds.iter().map(|kind| (*kind, Watch::default())).collect(),
            leads: false,
            lease_until: Time(0),
            has_begun: false,
            next_lease: Time(0),
            ending: None,
            told: Told::default(),
            order: Order::default(),
            inbox: Vec::new(),
            wake_at: None,
        }
    }

    pub(super) fn start_replica(&mut self, index: usize) {
        if self.replicas[index].alive {
            return;
        }
        let mut replica = self.born();
        replica.alive = true;
        self.replicas[index] = replica;
        self.schedule(0, Happening::Lease(index));
    }

    /// Lists everything, soon.
    pub(super) fn list_all(&mut self, index: usize) {
        for kind in self.kinds.clone() {
            let delay = self.dice.below(LISTS_WITHIN_MS);
            self.schedule(delay, Happening::List(index, kind));
        }
    }

    /// A process ends without a word; another one starts in its place.
    pub(super) fn crash(&mut self, index: usize) {
        if !self.replicas[index].alive {
            return;
        }
        self.tally.count(Deed::Crash);
        if self.replicas[index].leads && self.has_gang_in_part() {
            self.tally.count(Deed::CrashInPart);
        }
        // Its requests go on without it.
        self.replicas[index].alive = false;
        self.replicas[index].leads = false;
        if !self.only_kills {
            self.delay_requests(self.replicas[index].incarnation);
        }
        let delay = self.dice.below(20_000);
        self.schedule(delay, Happening::Start(index));
    }

    /// A process does nothing for a while, not even to find out that it has lost its lease.
    pub(super) fn pause(&mut self, index: usize) {
        self.tally.count(Deed::Pause);
        self.replicas[index].paused_until = self.now.plus_seconds(self.dice.below(40) as i64);
        self.delay_requests(self.replicas[index].incarnation);
    }

    // --- watches -----------------------------------------------------------------------------------------

    /// Tells every watch what has changed.
    pub(super) fn spread_news(&mut self) {
        for (kind, input) in self.server.take_news() {
            for index in 0..self.replicas.len() {
                let delay = 1 + self.dice.below(20);
                self.push(index, kind, input.clone(), delay);
            }
        }
    }

    fn push(&mut self, index: usize, kind: ObjectKind, input: Input, delay_ms: u64) {
        let replica = &mut self.replicas[index];
        let Some(watch) = replica.watches.get_mut(&kind).filter(|watch| watch.live && replica.alive) else {
            return;
        };
        let last = watch.queue.back().map_or(Time(0), |(at, _)| *at);
        let at = Time(self.now.0 + delay_ms as i64).max(watch.stalled_until).max(last);
        watch.queue.push_back((at, input));
        if last < at {
            self.schedule_at(at, Happening::Deliver(index));
        }
    }

    /// A watch breaks; what it had not told is lost, and a list follows.
    pub(super) fn break_watch(&mut self, index: usize, kind: ObjectKind) {
        let Some(watch) = self.replicas[index].watches.get_mut(&kind) else {
            return;
        };
        *watch = Watch::default();
        let delay = self.dice.below(3_000);
        self.schedule(delay, Happening::List(index, kind));
    }

    pub(super) fn list(&mut self, index: usize, kind: ObjectKind) {
        let replica = &mut self.replicas[index];
        let is_open = replica.watches.get(&kind).is_some_and(|watch| watch.live);
        // A process that does not lead reads nothing.
        if !replica.alive || !replica.has_begun || is_open {
            return;
        }
        if self.down {
            self.schedule(500, Happening::List(index, kind));
            return;
        }
        if let Some(watch) = replica.watches.get_mut(&kind) {
            watch.live = true;
        }
        let mut delay = 1 + self.dice.below(50);
        let is_slow = self.trouble.on && self.dice.once_in(SLOW_LISTS_ONE_IN);
        if is_slow {
            self.tally.count(Deed::SlowList);
        }
        // All of it is of one moment, whenever it is told; what changes since then follows.
        for input in self.server.list(kind) {
            if is_slow && self.dice.once_in(3) {
                delay += self.dice.below(LIST_BIT_MS);
            }
            self.push(index, kind, input, delay);
        }
    }

    // --- the process -------------------------------------------------------------------------------------

    pub(super) fn give(&mut self, index: usize, input: Input) -> Result<(), String> {
        self.replicas[index].inbox.push(input);
        self.step_replica(index)
    }

    pub(super) fn step_replica(&mut self, index: usize) -> Result<(), String> {
        self.step_core(index)?;
        self.end_if_done(index)
    }

    fn step_core(&mut self, index: usize) -> Result<(), String> {
        let now = self.now;
        let replica = &mut self.replicas[index];
        if !replica.alive {
            return Ok(());
        }
        if now < replica.paused_until {
            let until = replica.paused_until;
            if replica.wake_at != Some(until) {
                replica.wake_at = Some(until);
                self.schedule_at(until, Happening::Wake(index));
            }
            return Ok(());
        }
        let mut inputs = std::mem::take(&mut replica.inbox);
        for watch in replica.watches.values_mut() {
            while watch.queue.front().is_some_and(|(at, _)| *at <= now) {
                inputs.extend(watch.queue.pop_front().map(|(_, input)| input));
            }
        }
        if inputs.is_empty() && replica.core.wake_at().is_none_or(|at| at > now) {
            return Ok(());
        }
        let is_news = inputs.iter().any(|input| !matches!(input, Input::Renewed { .. }));
        for input in &inputs {
            replica.told.hear(input);
        }
        self.hear_in_order(index, &inputs);
        let replica = &mut self.replicas[index];
        let effects = replica.core.step(inputs, now);
        replica.core.check_invariants()?;
        let wake_at = replica.core.wake_at();
        if let Some(at) = wake_at
            && replica.wake_at != Some(at)
        {
            replica.wake_at = Some(at);
            self.schedule_at(at, Happening::Wake(index));
        }
        self.check_order(index, &effects)?;
        self.check_effects(index, &effects)?;
        self.check_starts(index, &effects)?;
        let binds = effects.iter().any(|effect| matches!(effect, Effect::Bind(_)));
        for effect in effects {
            if self.trace {
                println!("          #{} {effect:?}", self.replicas[index].incarnation);
            }
            match effect {
                Effect::Report(fact) => self.noted(&fact),
                request => self.send(index, request),
            }
        }
        if is_news {
            self.check_gangs(index)?;
        }
        match self.doom.take_if(|_| binds) {
            Some(Doom::Crash) => self.crash(index),
            Some(Doom::Pause) => self.pause(index),
            Some(Doom::End(why)) => return self.stop(index, why),
            None => {}
        }
        Ok(())
    }

    fn noted(&mut self, fact: &Fact) {
        let deed = match fact {
            Fact::Gang { state: GangState::Kept, .. } => Deed::Kept,
            Fact::Gang { state: GangState::Unwinding, .. } => Deed::Unwound,
            Fact::Gang { state: GangState::Completing, .. } => Deed::Partial,
            Fact::StaleGroup { .. } => Deed::Stale,
            _ => return,
        };
        self.tally.count(deed);
    }

    pub(super) fn answer(
        &mut self,
        incarnation: u64,
        answer: tutti_scheduler::core::message::Answer,
    ) -> Result<(), String> {
        let index = self.replicas.iter().position(|replica| replica.incarnation == incarnation);
        match index.filter(|&index| self.replicas[index].alive) {
            Some(index) => self.give(index, Input::Answer(answer)),
            None => Ok(()),
        }
    }

    /// The process that leads.
    pub(super) fn leader(&self) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.alive && replica.leads)
    }

    /// What the leader does about a gang.
    pub(super) fn state_of(&self, group: &ObjectKey) -> Option<GangState> {
        self.leader()?.core.gang_state(group)
    }
}
