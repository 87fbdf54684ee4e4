//! The engine: facts in, decisions out.

use crate::agenda::patience::Starving;
use crate::agenda::queue::Queue;
use crate::agenda::safety_flush::Flush;
use crate::agenda::sleepers::{Offer, Sleepers, WakesOn};
use crate::decision::{Decision, Placement, Seat, UnitKey, Waiting};
use crate::event::Event;
use crate::refusal::Refusal;
use crate::score::rating::Scoring;
use crate::score::{Profile, ProfileId};
use crate::solve::{Budget, Limits, Outcome, Tables, solve};
use crate::state::holds::{Claimant, Holds, Promise};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::pods::{Life, PodRow, PodTable, Sits};
use crate::state::relations::Relations;
use crate::state::room::Rooms;
use crate::state::shape::{AboutPods, Resources, Shape, ShapeId, Shapes};
use crate::state::txn::Txn;
use crate::state::volumes::{ClaimPlan, Volumes};
use crate::unit::attempt::Attempt;
use crate::unit::members::Members;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use tutti_model::{Node, ObjectKey, Pod, Text, Time};

/// First pause after a failed binding.
const RETRY_SECONDS_MIN: i64 = 1;
/// Longest pause after failed bindings.
const RETRY_SECONDS_MAX: i64 = 60;

/// How long a gang waits for room before any is kept for it, unless told otherwise.
const PATIENCE_SECONDS: u32 = 1_800;

/// What can be chosen.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who is served, and how. A name belongs to the first profile that has it.
    pub profiles: Vec<NamedProfile>,
    /// How much work one attempt may do, in branches of an exact search.
    pub branches_max: u32,
    /// Up to which size each way of solving is tried.
    pub limits: Limits,
    /// After so many seconds without room, what becomes free is kept for a gang; `None` never does.
    pub patience_seconds: Option<NonZeroU32>,
}

/// A profile and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProfile {
    /// Names under which pods ask for this scheduler.
    pub scheduler_names: Vec<Text>,
    /// How nodes are compared for those of them that are on their own. Groups fill nodes up.
    pub profile: Profile,
}

impl NamedProfile {
    /// A profile for these names.
    pub fn new(scheduler_names: &[&str], profile: Profile) -> Self {
        Self { scheduler_names: scheduler_names.iter().map(|name| Text::from(*name)).collect(), profile }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profiles: vec![NamedProfile::new(&["tutti"], Profile::default())],
            branches_max: 200_000,
            limits: Limits::default(),
            patience_seconds: NonZeroU32::new(PATIENCE_SECONDS),
        }
    }
}

/// The cluster in memory and what is to be decided about it.
#[derive(Debug, Clone)]
pub struct Engine {
    config: Config,
    pub(crate) resources: Resources,
    pub(crate) shapes: Shapes,
    pub(crate) nodes: NodeTable,
    pub(crate) pods: PodTable,
    pub(crate) relations: Relations,
    pub(crate) holds: Holds,
    pub(crate) volumes: Volumes,
    rooms: Rooms,
    pub(crate) queue: Queue,
    /// Groups and composites of which something has changed since the last decision.
    pub(crate) touched: BTreeSet<UnitKey>,
    pub(crate) sleepers: Sleepers,
    /// The last reason that was told for a unit, and to which members, so that it is told once.
    told: FxHashMap<UnitKey, Told>,
    retries: FxHashMap<UnitKey, Retry>,
    /// Units that are not to be tried.
    pub(crate) suspended: FxHashSet<UnitKey>,
    /// Units that are looked at before all others, once.
    pub(crate) firsts: FxHashSet<UnitKey>,
    attempts_count: u64,
    /// See [`Engine::steps_max`].
    steps_max: u64,
    /// Who was looked at just now and waits for the same reason as before.
    waits_on: Option<Waiting>,
    wake_ups_count: u64,
    flush: Flush,
    pub(crate) starving: Starving,
}

/// What a unit was told, see [`Waiting`].
#[derive(Debug, Clone)]
struct Told {
    refusal: Refusal,
    members: Vec<ObjectKey>,
    is_planned: bool,
}

impl Told {
    fn says_the_same(&self, waiting: &Waiting) -> bool {
        self.refusal == waiting.refusal
            && self.members == waiting.members
            && self.is_planned == waiting.is_planned
    }
}

/// Failed bindings in a row.
#[derive(Debug, Clone, Copy)]
struct Retry {
    failures: u32,
    not_before: Time,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(config: Config) -> Self {
        let mut resources = Resources::default();
        let scoring = |named: &NamedProfile| Scoring::new(&named.profile, &mut resources);
        let rooms = Rooms::new(config.profiles.iter().map(scoring).collect());
        Self {
            config,
            resources,
            shapes: Shapes::default(),
            nodes: NodeTable::default(),
            pods: PodTable::default(),
            relations: Relations::default(),
            holds: Holds::default(),
            volumes: Volumes::default(),
            rooms,
            queue: Queue::default(),
            touched: BTreeSet::new(),
            sleepers: Sleepers::default(),
            told: FxHashMap::default(),
            retries: FxHashMap::default(),
            suspended: FxHashSet::default(),
            firsts: FxHashSet::default(),
            attempts_count: 0,
            steps_max: 0,
            waits_on: None,
            wake_ups_count: 0,
            flush: Flush::default(),
            starving: Starving::default(),
        }
    }

    /// Takes in one fact.
    pub fn apply(&mut self, event: Event, now: Time) {
        match event {
            Event::NodeSet(node) => self.set_node(&node.name, Some(&node), now),
            Event::NodeGone(name) => self.set_node(&name, None, now),
            Event::PodSet(pod) => self.set_pod(&pod, now),
            Event::PodGone(key) => self.remove_pod(&key, now),
            Event::GroupSet(group) => self.set_group(&UnitKey::Group(group.key.clone()), Some(*group), now),
            Event::GroupGone(key) => self.set_group(&UnitKey::Group(key), None, now),
            Event::CompositeSet(group) => {
                self.set_group(&UnitKey::Composite(group.key.clone()), Some(*group), now);
            }
            Event::CompositeGone(key) => self.set_group(&UnitKey::Composite(key), None, now),
            Event::NamespaceSet { name, labels } => self.set_namespace(&name, labels, now),
            Event::ClaimSet(claim) => self.set_claim(&claim.key.clone(), Some(*claim), now),
            Event::ClaimGone(key) => self.set_claim(&key, None, now),
            Event::VolumeSet(volume) => self.set_volume(&volume.name.clone(), Some(*volume), now),
            Event::VolumeGone(name) => self.set_volume(&name, None, now),
            Event::ClassSet(class) => self.set_class(&class.name.clone(), Some(*class), now),
            Event::ClassGone(name) => self.set_class(&name, None, now),
            Event::AttachLimitsSet(limits) => self.set_attach_limits(*limits, now),
            Event::Hold(hold) => self.set_hold(&hold, now),
            Event::PodBound { pod, uid, node } => self.pod_bound(&pod, &uid, &node, now),
            Event::BindFailed { pod, uid } => self.bind_failed(&pod, &uid, true, now),
            Event::Withdrawn { pod, uid } => self.bind_failed(&pod, &uid, false, now),
            Event::Suspend(unit) => self.set_suspended(&unit, true, now),
            Event::Resume(unit) => self.set_suspended(&unit, false, now),
            Event::TakeOver => self.take_over(now),
        }
    }

    /// The next decision. Call it until it is [`Decision::Idle`].
    pub fn decide(&mut self, now: Time) -> Decision {
        self.decide_and_tell(now, |_| {})
    }

    /// The next decision, as [`Engine::decide`] gives it. On the way it tells of all who were looked at and wait for the same
    /// reason as before, for whoever counts or measures that.
    pub fn decide_and_tell(&mut self, now: Time, mut waits_on: impl FnMut(Waiting)) -> Decision {
        self.end_holds(now);
        self.flush_sleepers(now);
        // Nobody is planned for who has nothing to ask for any more.
        self.enqueue_touched(now);
        self.plan_for_the_starving(now);
        // Every round takes a unit out of the queue and none puts one in without returning.
        loop {
            self.enqueue_touched(now);
            let unit = match self.queue.pop(now) {
                Ok(unit) => unit,
                Err(pause_ends) => {
                    let starves = self.patience().and_then(|patience| self.starving.next(patience));
                    let others = [self.holds.next_expiry(), self.flush.next(), starves];
                    let wake_at = others.into_iter().chain([pause_ends]).flatten().min();
                    return Decision::Idle { wake_at };
                }
            };
            self.attempts_count += 1;
            self.firsts.remove(&unit);
            let decision = match self.attempt(&unit) {
                Attempt::Nothing => None,
                Attempt::Refused(members, refusal, groups) => {
                    self.starves_no_more(&unit, now);
                    let groups = if matches!(unit, UnitKey::Composite(_)) { groups } else { Vec::new() };
                    self.refuse(Waiting { unit, members, refusal, groups, is_planned: false })
                }
                Attempt::Solve(members) => self.solve(unit, members, now),
            };
            if let Some(decision) = decision {
                return decision;
            }
            if let Some(waiting) = self.waits_on.take() {
                waits_on(waiting);
            }
        }
    }

    /// How often a unit was looked at. Grows with what happens that concerns somebody, not with what happens.
    pub fn attempts_count(&self) -> u64 {
        self.attempts_count
    }

    /// How often a unit that slept was woken because something happened that could help it.
    pub fn wake_ups_count(&self) -> u64 {
        self.wake_ups_count
    }

    /// How often a unit could be placed that only the safety flush had woken. Each one is a bug of what wakes units.
    pub fn flush_finds_count(&self) -> u64 {
        self.flush.finds_count()
    }

    /// Asks everybody who has slept for very long, in case that somebody should have been woken and was not.
    fn flush_sleepers(&mut self, now: Time) {
        for unit in self.flush.due(now) {
            self.touch(&unit, now);
            self.flush.flushed(unit);
        }
    }

    /// After how many seconds without room some is kept for a gang.
    pub(crate) fn patience(&self) -> Option<i64> {
        self.config.patience_seconds.map(|seconds| i64::from(seconds.get()))
    }

    /// True if this scheduler is to place pods that name it so.
    pub(crate) fn serves(&self, scheduler_name: &Text) -> bool {
        self.named_profile(scheduler_name).is_some()
    }

    /// The profile for pods that name their scheduler so. Somebody else's pods are never compared, so theirs does not
    /// matter.
    pub(crate) fn profile_of(&self, scheduler_name: &Text) -> (ProfileId, Option<&Profile>) {
        let found = self.named_profile(scheduler_name);
        found.map_or((ProfileId::default(), None), |(id, named)| (id, Some(&named.profile)))
    }

    fn named_profile(&self, scheduler_name: &Text) -> Option<(ProfileId, &NamedProfile)> {
        let mut numbered = (0..).map(ProfileId).zip(&self.config.profiles);
        numbered.find(|(_, named)| named.scheduler_names.contains(scheduler_name))
    }

    /// A name under which pods ask for this scheduler.
    pub(crate) fn own_name(&self) -> Text {
        let mut names = self.config.profiles.iter().flat_map(|named| &named.scheduler_names);
        names.next().cloned().unwrap_or_default()
    }

    /// What requests are solved on, and what an attempt may spend.
    pub(crate) fn tables(&mut self) -> (Tables<'_>, Budget) {
        let tables = Tables {
            nodes: &self.nodes,
            shapes: &self.shapes,
            resources: &self.resources,
            relations: &self.relations,
            volumes: &self.volumes,
            rooms: &mut self.rooms,
            limits: self.config.limits,
        };
        (tables, Budget::of_branches(self.config.branches_max))
    }

    /// See [`Config::branches_max`].
    pub(crate) fn branches_max(&self) -> u32 {
        self.config.branches_max
    }

    /// Keeps in mind how much work an attempt was.
    pub(crate) fn note_steps(&mut self, budget: &Budget) {
        self.steps_max = self.steps_max.max(budget.steps_spent());
    }

    /// Steps of the budget that the costliest question took so far, and how many it may take.
    pub fn steps_max(&self) -> (u64, u64) {
        (self.steps_max, Budget::of_branches(self.config.branches_max).steps_max())
    }

    /// Frees what is promised to a unit itself or to somebody less important, for as long as it is looked at.
    pub(crate) fn lift_holds(&mut self, unit: &UnitKey) -> Vec<Promise> {
        let rank = self.rank(unit, &self.pods.members(unit));
        let claimant =
            rank.broken.0.then(|| Claimant { starves: false, created: rank.created, unit: unit.clone() });
        self.holds.lift(unit, rank.priority.0, claimant.as_ref(), &mut self.nodes)
    }

    fn solve(&mut self, unit: UnitKey, members: Members, now: Time) -> Option<Decision> {
        let lifted = self.lift_holds(&unit);
        let (mut tables, mut budget) = self.tables();
        let outcome = solve(&members.request(), &mut tables, &mut budget);
        self.note_steps(&budget);
        let outcome = match outcome {
            Outcome::Placed(seats) => match self.plan_claims(members.seated(&seats)) {
                Some(claims) => return Some(self.place(unit, members, &seats, claims, &lifted, now)),
                None => Outcome::Undecided(self.without_volumes(&members)),
            },
            other => other,
        };
        let usable = self.usable_seats(&unit, &members);
        let is_guess = members.shapes().iter().any(|&shape| self.shapes.get(shape).volumes.is_guess);
        self.holds.restore(&lifted, &mut self.nodes);
        self.claim(&unit, &usable, &lifted, now);
        self.starves(&unit, &members, now);
        let refusal = match outcome {
            Outcome::Placed(_) => return None,
            Outcome::Infeasible(room) if !is_guess => Refusal::NoRoom(room),
            Outcome::Infeasible(room) | Outcome::Undecided(room) => Refusal::Undecided(room),
        };
        let wakes_on = WakesOn { shapes: members.shapes(), reads_domains: members.cares_about_domains() };
        self.flush.sleeps(&unit, now);
        self.sleepers.insert(unit.clone(), wakes_on, &self.shapes, &self.relations.counts);
        let groups = match unit {
            UnitKey::Composite(_) => members.standings(),
            _ => Vec::new(),
        };
        let is_planned = self.starving.is_planned(&unit);
        self.refuse(Waiting { unit, members: members.into_names(), refusal, groups, is_planned })
    }

    /// Takes the seats and says so.
    fn place(
        &mut self,
        unit: UnitKey,
        mut members: Members,
        seats: &[(usize, NodeId, u32)],
        claims: BTreeMap<ObjectKey, ClaimPlan>,
        lifted: &[Promise],
        now: Time,
    ) -> Decision {
        let mut txn = Txn::begin(&mut self.nodes);
        let mut placed: Vec<(ObjectKey, NodeId)> = Vec::new();
        for &(index, node, count) in seats {
            let shape = self.shapes.get(members.shape(index));
            let taken = txn.take(node, shape, count);
            assert!(taken, "the solver seated {count} on a node without that room");
            placed.extend(members.draw(index, count).into_iter().map(|pod| (pod, node)));
        }
        txn.commit();
        self.holds.restore(lifted, &mut self.nodes);
        self.end_hold_of(&unit, now);
        self.ask_claimants_again(&unit, lifted, now);
        self.flush.placed(&unit);
        self.starves_no_more(&unit, now);
        placed.sort_unstable();
        let mut seats = Vec::with_capacity(placed.len());
        for (pod, node) in placed {
            let Some(row) = self.pods.pod(&pod) else { continue };
            let (uid, shape) = (row.uid.clone(), Arc::clone(self.shapes.get(row.shape)));
            self.pods.seat(&pod, Sits::Assumed(node));
            self.relations.shift(&shape, node, true, true);
            self.follow_nomination(&pod, now);
            self.wake_by_pod(&shape, now);
            seats.push(Seat { pod, uid, node: self.nodes.name(node).clone() });
        }
        self.begin_plans(&claims, now);
        self.told.remove(&unit);
        let groups = members.standings();
        let left_out = members.into_names();
        if !left_out.is_empty() {
            // Whoever is left learns why in an attempt of their own.
            self.touch(&unit, now);
        }
        let claims = claims.into_iter().collect();
        Decision::Place(Placement { unit, seats, claims, left_out, groups })
    }

    /// Says why a unit waits. A reason that was told before is not told again.
    fn refuse(&mut self, waiting: Waiting) -> Option<Decision> {
        if self.told.get(&waiting.unit).is_some_and(|told| told.says_the_same(&waiting)) {
            self.waits_on = Some(waiting);
            return None;
        }
        let Waiting { unit, members, refusal, is_planned, .. } = &waiting;
        let told = Told { refusal: refusal.clone(), members: members.clone(), is_planned: *is_planned };
        self.told.insert(unit.clone(), told);
        Some(Decision::Wait(waiting))
    }

    /// Something has changed for a unit: it is to be tried again if it has something to ask for. What that is depends on
    /// all its members, so it is found out once, before the next decision, and not for every member that comes.
    pub(crate) fn touch(&mut self, unit: &UnitKey, now: Time) {
        let root = self.pods.root_of(unit);
        if root != *unit {
            self.sleepers.remove(unit);
            self.flush.wakes(unit);
            self.queue.remove(unit);
            self.touched.remove(unit);
        }
        self.sleepers.remove(&root);
        self.flush.wakes(&root);
        self.end_claims_unless_broken(&root, now);
        match root {
            UnitKey::Pod(_) => self.enqueue(&root, now),
            UnitKey::Group(_) | UnitKey::Composite(_) => {
                self.touched.insert(root);
            }
        }
    }

    /// Puts everybody in the queue or out of it for whom something has changed.
    fn enqueue_touched(&mut self, now: Time) {
        while let Some(unit) = self.touched.pop_first() {
            self.enqueue(&unit, now);
        }
    }

    /// Puts a unit into the queue again, or out of it if it has nothing to ask for.
    fn enqueue(&mut self, unit: &UnitKey, now: Time) {
        let members = self.pods.members(unit);
        if !self.ask_for_seats(&members) {
            let is_over = !members.iter().any(|(_, row)| row.is_live());
            self.queue.remove(unit);
            self.starves_no_more(unit, now);
            if is_over {
                self.told.remove(unit);
                self.retries.remove(unit);
            }
            return;
        }
        let rank = self.rank(unit, &members);
        let not_before = self.retries.get(unit).map(|retry| retry.not_before).filter(|&time| time > now);
        self.queue.push(unit.clone(), rank, not_before);
    }

    fn ask_for_seats(&self, members: &[(&ObjectKey, &PodRow)]) -> bool {
        members.iter().any(|(_, row)| row.wants_seat() && self.serves(&row.scheduler_name))
    }

    /// Units for which something has changed since the last decision, and that ask for seats.
    pub(crate) fn about_to_queue(&self) -> impl Iterator<Item = &UnitKey> {
        self.touched.iter().filter(|unit| self.ask_for_seats(&self.pods.members(unit)))
    }

    fn set_node(&mut self, name: &Text, node: Option<&Node>, now: Time) {
        let id = self.nodes.id(name);
        self.nodes.set_images(id, node.map_or(&[], |node| &node.images));
        // Images are kept apart from the rest, because only the rest decides what fits.
        let node = node.map(|node| Node { images: Vec::new(), ..node.clone() });
        if node.is_some() && self.nodes.node(id) == node.as_ref() {
            return;
        }
        let before = self.offer(id);
        self.relations.set_node(id, node.as_ref());
        let room_to_attach = self.volumes.room_to_attach(name);
        self.nodes.set(id, node, &room_to_attach, &mut self.resources);
        self.wake_by_offer(id, before, now);
    }

    fn set_pod(&mut self, pod: &Pod, now: Time) {
        if self.pods.pod(&pod.key).is_some_and(|row| row.uid != pod.uid || row.group != pod.group) {
            self.remove_pod(&pod.key, now);
        }
        // InterPodTerms first: a matcher that comes to life may give this very pod another shape.
        let inter_pod = self.acquire_terms(pod, now);
        let matches = self.relations.matching(&pod.key, &pod.labels);
        let before = self.pods.pod(&pod.key).cloned();
        let sits = match (&pod.node, &before) {
            // Its node may be long gone, and nobody has to remember it.
            (Some(_), _) if pod.phase.is_terminal() => Sits::Nowhere,
            (Some(node), _) => Sits::Bound(self.nodes.id(node)),
            // An older picture of the pod than our own decision.
            (None, Some(row)) => row.sits,
            (None, None) => Sits::Nowhere,
        };
        let images: Vec<_> = pod.images.iter().map(|name| self.nodes.images_mut().acquire(name)).collect();
        // Who uses a claim comes before what it requires: that depends on who shares it.
        let claims = if pod.phase.is_terminal() { &[][..] } else { &pod.volume_claims };
        self.set_claims_of(&pod.key, claims, now);
        let volumes = self.volumes.resolve(&pod.key, &pod.volume_claims);
        let (profile, _) = self.profile_of(&pod.scheduler_name);
        let about_pods = AboutPods { inter_pod, matches };
        let (shape, is_new) =
            self.shapes.acquire(pod, profile, about_pods, images.clone(), volumes, &mut self.resources);
        if !is_new {
            self.nodes.images_mut().release_all(&images);
        }
        let after = PodRow::new(pod, shape, sits);
        if before.as_ref() == Some(&after) {
            self.let_go(shape, now);
            return;
        }
        self.pods.insert(pod.key.clone(), after.clone());
        if matches!(after.sits, Sits::Bound(_)) {
            self.retries.remove(&self.pods.unit_of(&pod.key, &after));
        }
        self.set_memberships(&pod.key, before.as_ref().map(|row| row.shape), Some(shape));
        let left = before.as_ref().filter(|_| after.life == Life::Failed).and_then(|row| self.seat_of(row));
        self.move_seat(before.as_ref(), Some(&after), now);
        self.vacate(&pod.key, &after, left, now);
        self.follow_nomination(&pod.key, now);
        if let Some(row) = before.as_ref().filter(|row| row.node().is_some() && after.node().is_none()) {
            self.claims_left(&pod.key, row, now);
        }
        // That the API server agrees with a decision is no news to the unit.
        let is_news = before.as_ref().is_none_or(|row| {
            row.node() != after.node() || PodRow { sits: row.sits, ..after.clone() } != *row
        });
        if let Some(row) = &before {
            self.let_go(row.shape, now);
        }
        if is_news {
            self.touch(&self.pods.unit_of(&pod.key, &after), now);
        }
    }

    fn remove_pod(&mut self, key: &ObjectKey, now: Time) {
        let unit = self.pods.pod(key).map(|row| self.pods.unit_of(key, row));
        self.set_claims_of(key, &[], now);
        let Some(row) = self.pods.remove(key) else { return };
        self.set_memberships(key, Some(row.shape), None);
        let left = self.seat_of(&row);
        self.move_seat(Some(&row), None, now);
        self.vacate(key, &row, left, now);
        self.follow_nomination(key, now);
        self.let_go(row.shape, now);
        self.claims_left(key, &row, now);
        if let Some(unit) = unit {
            self.touch(&unit, now);
        }
    }

    /// A pod sits where the API server says. Mostly that is where it was to be, and then nothing moves.
    fn pod_bound(&mut self, key: &ObjectKey, uid: &Text, node: &Text, now: Time) {
        let Some(before) = self.pods.pod(key).filter(|row| row.uid == *uid && row.life == Life::Active)
        else {
            return;
        };
        let sits = Sits::Bound(self.nodes.id(node));
        let unit = self.pods.unit_of(key, before);
        let moved = (before.node() != sits.node()).then(|| before.clone());
        self.retries.remove(&unit);
        self.pods.seat(key, sits);
        if let Some(before) = moved {
            let after = PodRow { sits, ..before.clone() };
            self.move_seat(Some(&before), Some(&after), now);
            self.follow_nomination(key, now);
            self.touch(&unit, now);
        }
    }

    /// The seat of a pod that was to be bound is free again; after a failure its unit pauses.
    fn bind_failed(&mut self, key: &ObjectKey, uid: &Text, pauses: bool, now: Time) {
        let Some(before) = self.pods.pod(key).filter(|row| row.uid == *uid).cloned() else {
            return;
        };
        if !matches!(before.sits, Sits::Assumed(_)) {
            return;
        }
        let after = PodRow { sits: Sits::Nowhere, ..before.clone() };
        self.pods.seat(key, Sits::Nowhere);
        let left = self.seat_of(&before);
        self.move_seat(Some(&before), Some(&after), now);
        self.vacate(key, &before, left, now);
        self.follow_nomination(key, now);
        self.claims_left(key, &before, now);
        let unit = self.pods.unit_of(key, &after);
        if pauses {
            self.pause(&unit, now);
        }
        self.touch(&unit, now);
    }

    /// A unit is not tried for a while, longer every time. Members that fail while it pauses already are part of the same
    /// trouble: a gang must not pause longer because it has more of them.
    fn pause(&mut self, unit: &UnitKey, now: Time) {
        let retry = self.retries.get(unit);
        if retry.is_some_and(|retry| now < retry.not_before) {
            return;
        }
        let failures = retry.map_or(0, |retry| retry.failures) + 1;
        let pause = (RETRY_SECONDS_MIN << failures.min(16).saturating_sub(1)).min(RETRY_SECONDS_MAX);
        self.retries.insert(unit.clone(), Retry { failures, not_before: now.plus_seconds(pause) });
    }

    /// Gives back the seat that a pod had and takes the one that it has.
    fn move_seat(&mut self, before: Option<&PodRow>, after: Option<&PodRow>, now: Time) {
        let seat =
            |row: Option<&PodRow>| row.and_then(|row| Some((row.node()?, row.shape, !row.terminating)));
        let (from, to) = (seat(before), seat(after));
        if from == to {
            return;
        }
        if let Some((node, shape, lasting)) = to {
            let shape = Arc::clone(self.shapes.get(shape));
            self.nodes.take(node, shape.load(), 1);
            self.relations.shift(&shape, node, lasting, true);
            self.wake_by_pod(&shape, now);
        }
        if let Some((node, shape, lasting)) = from {
            let shape = Arc::clone(self.shapes.get(shape));
            self.relations.shift(&shape, node, lasting, false);
            self.wake_by_pod(&shape, now);
            let before = self.offer(node);
            self.nodes.give(node, shape.load(), 1);
            self.wake_by_offer(node, before, now);
        }
    }

    /// A node as it is, to be compared with what it becomes; nothing if nobody would care.
    pub(crate) fn offer(&self, id: NodeId) -> Option<Offer> {
        if self.sleepers.is_empty() {
            return None;
        }
        let free = self.resources.ids().map(|resource| self.nodes.free(id, resource)).collect();
        Some(Offer { node: self.nodes.node(id).cloned(), free })
    }

    /// Wakes whoever gains by what a node has become.
    pub(crate) fn wake_by_offer(&mut self, id: NodeId, before: Option<Offer>, now: Time) {
        let (Some(before), Some(after)) = (before, self.offer(id)) else { return };
        let is_held = self.holds.are_on(id);
        for unit in self.sleepers.wake_by_offer(&before, &after, is_held, &self.shapes) {
            self.wake_ups_count += 1;
            self.touch(&unit, now);
        }
    }

    pub(crate) fn wake_by_pod(&mut self, shape: &Shape, now: Time) {
        if self.sleepers.is_empty() {
            return;
        }
        for unit in self.sleepers.wake_by_pod(shape) {
            self.wake_ups_count += 1;
            self.touch(&unit, now);
        }
    }

    /// Gives back a pod's use of its shape and of the matchers of its wishes.
    fn let_go(&mut self, shape: ShapeId, now: Time) {
        let held = Arc::clone(self.shapes.get(shape));
        self.release_shape(shape);
        self.release_terms(&held.inter_pod, now);
    }

    pub(crate) fn release_shape(&mut self, shape: ShapeId) {
        if let Some((id, forgotten)) = self.shapes.release(shape) {
            self.rooms.forget(id);
            self.nodes.images_mut().release_all(&forgotten.images);
        }
    }
}
