//! The conductor: facts go into the state, changes of the state into the agenda, and units of the agenda to the solver.

use crate::agenda::Agenda;
use crate::agenda::patience::{self, PLAN_SECONDS};
use crate::agenda::sleepers::{Needs, WakesOn};
use crate::agenda::undecided::Effort;
use crate::config::Config;
use crate::decision::{Decision, Placement, Seat, UnitKey, Waiting};
use crate::event::{Event, Hold};
use crate::queries::census::{self, Census, WaitState};
use crate::queries::survey::{self, Survey};
use crate::queries::{keep_seat, probe};
use crate::refusal::{Contradiction, Refusal};
use crate::score::Aspect;
use crate::solve::Budget;
use crate::state::State;
use crate::state::holds::HoldKey;
use crate::state::volumes::VolumeState;
use crate::unit::attempt::{self, Attempt};
use crate::unit::members::Members;
use crate::unit::trial::{self, Trial};
use std::collections::BTreeMap;
use tutti_model::{ObjectKey, Pod, ResourceList, Text, Time};

/// Gangs that are planned for at one go. The others are due at once again.
const PLANS_MAX: usize = 4;

/// The cluster in memory and what is to be decided about it.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    state: State,
    agenda: Agenda,
    /// The unit that is being decided about.
    deciding: Option<UnitKey>,
    /// See [`Engine::steps_max`].
    steps_max: u64,
}

impl Clone for Engine {
    fn clone(&self) -> Self {
        self.fork()
    }
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(config: Config) -> Self {
        let state = State::new(&config);
        Self { config, state, agenda: Agenda::default(), deciding: None, steps_max: 0 }
    }

    /// An engine of its own that knows the same and decides alike: the start of every question and forecast. Caches are
    /// not copied but rebuilt on demand.
    pub fn fork(&self) -> Self {
        let (config, state, agenda) = (self.config.clone(), self.state.fork(), self.agenda.fork());
        Self { config, state, agenda, deciding: None, steps_max: 0 }
    }

    /// Takes in one fact.
    pub fn apply(&mut self, event: Event, now: Time) {
        let state = &mut self.state;
        match event {
            Event::NodeSet(node) => state.set_node(&node.name, Some(&node)),
            Event::NodeGone(name) => state.set_node(&name, None),
            Event::PodSet(pod) => state.set_pod(&pod, now),
            Event::PodGone(key) => state.remove_pod(&key, now),
            Event::GroupSet(group) => state.set_group(&UnitKey::Group(group.key.clone()), Some(*group)),
            Event::GroupGone(key) => state.set_group(&UnitKey::Group(key), None),
            Event::CompositeSet(group) => {
                state.set_group(&UnitKey::Composite(group.key.clone()), Some(*group));
            }
            Event::CompositeGone(key) => state.set_group(&UnitKey::Composite(key), None),
            Event::NamespaceSet { name, labels } => state.set_namespace(&name, labels),
            Event::ClaimSet(claim) => state.set_claim(&claim.key.clone(), Some(*claim)),
            Event::ClaimGone(key) => state.set_claim(&key, None),
            Event::VolumeSet(volume) => state.set_volume(&volume.name.clone(), Some(*volume)),
            Event::VolumeGone(name) => state.set_volume(&name, None),
            Event::ClassSet(class) => state.set_class(&class.name.clone(), Some(*class)),
            Event::ClassGone(name) => state.set_class(&name, None),
            Event::AttachLimitsSet(limits) => state.set_attach_limits(*limits),
            Event::Hold(hold) => state.set_hold(&hold, now),
            Event::PodBound { pod, uid, node } => state.pod_bound(&pod, &uid, &node),
            Event::BindFailed { pod, uid } => {
                if let Some(unit) = state.unassume(&pod, &uid, now) {
                    self.agenda.bind_failed(&unit, now);
                }
            }
            Event::Withdrawn { pod, uid } => {
                state.unassume(&pod, &uid, now);
            }
            Event::Suspend(unit) => state.set_suspended(&unit, true),
            Event::Resume(unit) => state.set_suspended(&unit, false),
            Event::TakeOver => self.agenda.take_over(state, now),
        }
        self.agenda.follow(&mut self.state, now);
    }

    /// A gang has waited for room since then, as an engine that decided before this one knows. It counts from its first
    /// refusal on.
    pub fn carry_waiting_since(&mut self, unit: UnitKey, since: Time) {
        self.agenda.carry_waiting_since(unit, since);
    }

    /// The next decision. Call it until it is [`Decision::Idle`].
    pub fn decide(&mut self, now: Time) -> Decision {
        self.decide_and_tell(now, |_| {})
    }

    /// The next decision, as [`Engine::decide`] gives it. On the way it tells of all units that were looked at and wait
    /// for the same reason as before, for those who count or measure that.
    pub fn decide_and_tell(&mut self, now: Time, mut still_waits: impl FnMut(Waiting)) -> Decision {
        let mut quota = Budget::of_branches(self.config.branches_max);
        let whole = quota.steps_left();
        self.state.expire_holds(now);
        self.agenda.follow(&mut self.state, now);
        self.agenda.flush(&self.state, now);
        self.agenda.enqueue_touched(&self.state, now);
        self.plan_for_the_starving(now, &mut quota);
        // Every round takes a unit out of the agenda and none puts one in without returning.
        loop {
            self.agenda.follow(&mut self.state, now);
            if quota.steps_left() < Effort::Usual.share(whole) {
                return Decision::More;
            }
            let (unit, effort) = match self.agenda.next(&self.state, now) {
                Ok(next) => next,
                Err(wake_at) => {
                    let starves = self.next_plan();
                    let times = [wake_at, self.state.holds().next_expiry(), starves];
                    return Decision::Idle { wake_at: times.into_iter().flatten().min() };
                }
            };
            self.deciding = Some(unit.clone());
            let waiting = match attempt::look(&self.state, &unit) {
                Attempt::Nothing => None,
                Attempt::Refused(members, refusal, groups) => {
                    // Nothing is held for a unit that cannot be tried, but it has waited all the same.
                    self.state.end_plan_of(&unit);
                    self.agenda.gives_up_plan(&unit);
                    if let Refusal::Contradiction(Contradiction::Scattered { .. }) = refusal {
                        // Other labels of nodes can mend it.
                        self.agenda.sleeps(&unit, WakesOn::domains(), None, &self.state, now);
                    }
                    let groups = if matches!(unit, UnitKey::Composite(_)) { groups } else { Vec::new() };
                    Some(Waiting { unit, members, refusal, groups, is_planned: false })
                }
                Attempt::Solve(members) => {
                    let mut budget = quota.split(effort.share(whole));
                    let tried = self.try_unit(unit, members, effort, now, &mut budget);
                    self.steps_max = self.steps_max.max(budget.steps_spent());
                    quota.give_back(budget);
                    match tried {
                        Decision::Wait(waiting) => Some(waiting),
                        placed => {
                            self.deciding = None;
                            return placed;
                        }
                    }
                }
            };
            self.deciding = None;
            if let Some(waiting) = waiting {
                if self.agenda.report(&waiting, now) {
                    return Decision::Wait(waiting);
                }
                still_waits(waiting);
            }
        }
    }

    /// Tries to place a unit; if that is not possible the decision is that it waits, and why.
    fn try_unit(
        &mut self,
        unit: UnitKey,
        mut members: Members,
        effort: Effort,
        now: Time,
        budget: &mut Budget,
    ) -> Decision {
        let (request, moment) = (members.request(), self.state.changes().end());
        let missing = if members.are_incomplete() { self.state.missing(&unit) } else { None };
        let is_shareable = missing.is_none() && !self.state.may_lift_holds(&unit);
        let known = self.agenda.refused.find(&request, moment).filter(|_| is_shareable);
        self.agenda.counts.solves += u64::from(known.is_none());
        let refusal = match trial::run(&mut self.state, &unit, &mut members, missing, &request, known, budget)
        {
            Trial::Placed { seats, claims, lifted } => {
                return Decision::Place(self.place(unit, members, seats, claims, &lifted));
            }
            Trial::Inconsistent(what) => {
                self.agenda.set_aside(&unit, now);
                Refusal::Inconsistent { what: what.into() }
            }
            Trial::Refused { mut room, is_proven, usable, lifted } => {
                if is_shareable && is_proven {
                    self.agenda.refused.note(request, &room, moment);
                }
                // Equal requests share a refusal, also if members of only one of the units are gated.
                room.gated = members.gated_count();
                if self.state.hold_usable_seats(&unit, &usable) {
                    self.state.note_holders(&unit, &lifted);
                }
                self.starves(&unit, &members, now, budget);
                // An incomplete gang holds what it can get, so every bit of room is worth a look.
                let wakes_on = WakesOn {
                    shapes: members.shapes(),
                    reads_domains: members.reads_domains(),
                    needs: if missing.is_some() { Needs::Anything } else { members.needs() },
                    lacks_nodes: room.nodes == 0,
                };
                let unproven = (!is_proven).then_some(effort);
                self.agenda.sleeps(&unit, wakes_on, unproven, &self.state, now);
                if is_proven { Refusal::NoRoom(room) } else { Refusal::Undecided(room) }
            }
        };
        let groups = if matches!(unit, UnitKey::Composite(_)) { members.standings() } else { Vec::new() };
        let is_planned = self.state.holds().is_planned(&unit);
        Decision::Wait(Waiting { unit, members: members.into_names(), refusal, groups, is_planned })
    }

    /// Says which seats were taken.
    fn place(
        &mut self,
        unit: UnitKey,
        members: Members,
        placed: Vec<(ObjectKey, crate::state::nodes::NodeId)>,
        claims: BTreeMap<ObjectKey, crate::state::volumes::ClaimPlan>,
        lifted: &[HoldKey],
    ) -> Placement {
        self.agenda.placed(&unit);
        let seat = |(pod, node): (ObjectKey, _)| {
            let uid = self.state.pods().pod(&pod).map(|row| row.uid.clone()).unwrap_or_default();
            Seat { pod, uid, node: self.state.nodes().name(node).clone() }
        };
        let seats: Vec<Seat> = placed.into_iter().map(seat).collect();
        self.state.settle(&unit, seats.iter().map(|seat| &seat.pod), &claims, lifted);
        let groups = members.standings();
        let left_out = members.into_names();
        if !left_out.is_empty() {
            // Members that are left out learn why in an attempt of their own.
            self.state.note_unit(&unit);
        }
        Placement { unit, seats, claims: claims.into_iter().collect(), left_out, groups }
    }

    /// A unit was refused for lack of room. A pod by itself, or one of many that may start alone, is no gang.
    fn starves(&mut self, unit: &UnitKey, members: &Members, now: Time, budget: &mut Budget) {
        let is_gang = members.need() >= 2 || matches!(unit, UnitKey::Composite(_));
        if self.config.patience().is_none() || !is_gang {
            return;
        }
        self.agenda.waits_for_room(unit, now);
        let expires = self.state.holds().planned().filter(|(planned, _)| *planned == unit);
        if let Some(expires) = expires.and_then(|(_, held)| held.expires)
            && self.agenda.plan_is_stale(unit, now)
        {
            self.plan(unit, members, expires, now, budget);
        }
    }

    /// When the next gang gets a plan, unless one has a plan already.
    fn next_plan(&self) -> Option<Time> {
        let patience = self.config.patience().filter(|_| self.state.holds().planned().is_none())?;
        self.agenda.patience_ends(patience)
    }

    /// Plans for a gang that has waited for too long, unless one has a plan.
    fn plan_for_the_starving(&mut self, now: Time, quota: &mut Budget) {
        let Some(patience) = self.config.patience() else { return };
        self.agenda.follow_plan(&self.state, now);
        if self.state.holds().planned().is_some() {
            return;
        }
        let mut due = self.agenda.starving(patience, now);
        due.sort_by_cached_key(|unit| (self.state.importance(unit), unit.clone()));
        let tried = due.into_iter().filter_map(|unit| match attempt::look(&self.state, &unit) {
            Attempt::Solve(members) => Some((unit, members)),
            _ => None,
        });
        for (unit, members) in tried.take(PLANS_MAX).collect::<Vec<_>>() {
            let mut budget = quota.split(Effort::Usual.share(quota.steps_left()));
            self.plan(&unit, &members, now.plus_seconds(PLAN_SECONDS), now, &mut budget);
            quota.give_back(budget);
            if self.state.holds().is_planned(&unit) {
                // It learns of it with its next refusal.
                self.state.note_unit(&unit);
                return;
            }
        }
    }

    /// Makes a plan, or lets the unit wait for as long again if there is none.
    fn plan(&mut self, unit: &UnitKey, members: &Members, expires: Time, now: Time, budget: &mut Budget) {
        match patience::seats_on_emptied_nodes(&mut self.state, unit, members, budget) {
            Some(seats) => {
                let seats = seats.into_iter().map(|(index, node, count)| (members.shape(index), node, count));
                self.state.hold_planned_seats(unit, seats, expires);
                self.agenda.planned(unit, now);
            }
            None => {
                self.state.end_plan_of(unit);
                self.agenda.waits_anew(unit, now);
            }
        }
    }
}

#[cfg(feature = "check")]
impl Engine {
    /// Seats pods (a pod and a node) or takes their seats away (a pod and no node) on trial, with the holds of a unit
    /// lifted and with a checkpoint in the middle, and takes everything back. Tells how many of them could be done.
    pub fn rehearse(&mut self, unit: &UnitKey, moves: &[(ObjectKey, Option<Text>)]) -> usize {
        let mut txn = crate::state::txn::Txn::begin(&mut self.state);
        txn.lift_holds(unit);
        let (first, second) = moves.split_at(moves.len() / 2);
        let mut done = 0;
        let mut run = |txn: &mut crate::state::txn::Txn<'_>, moves: &[(ObjectKey, Option<Text>)]| {
            for (pod, node) in moves {
                let is_done = match node.as_ref().map(|node| txn.state().nodes().find(node)) {
                    None => txn.unseat(pod),
                    Some(Some(node)) => match txn.state().pods().pod(pod).map(|row| row.shape) {
                        Some(shape) => txn.seat(shape, std::slice::from_ref(pod), node),
                        None => false,
                    },
                    Some(None) => false,
                };
                done += usize::from(is_done);
            }
        };
        run(&mut txn, first);
        let checkpoint = txn.checkpoint();
        run(&mut txn, second);
        txn.roll_back(checkpoint);
        run(&mut txn, second);
        drop(txn);
        self.agenda.follow(&mut self.state, Time::default());
        done
    }
}

/// Questions. None of them changes anything.
impl Engine {
    /// The unit that is being decided about; set after a panic in [`Engine::decide`], so that it can be suspended.
    pub fn deciding(&self) -> Option<&UnitKey> {
        self.deciding.as_ref()
    }

    /// How often a unit was looked at. Grows with what happens that concerns a unit, not with what happens.
    pub fn attempts_count(&self) -> u64 {
        self.agenda.counts.attempts
    }

    /// How often a unit that slept was woken because something happened that could help it.
    pub fn wake_ups_count(&self) -> u64 {
        self.agenda.counts.wake_ups
    }

    /// How often the solver was asked. Equal requests are refused by one solve.
    pub fn solves_count(&self) -> u64 {
        self.agenda.counts.solves
    }

    /// How often a unit could be placed that only the safety flush had woken. Each one is a bug of what wakes units.
    pub fn flush_finds_count(&self) -> u64 {
        self.agenda.flush_finds()
    }

    /// Steps of the budget that the costliest attempt took so far, and how many a decision may take.
    pub fn steps_max(&self) -> (u64, u64) {
        (self.steps_max, Budget::of_branches(self.config.branches_max).steps_max())
    }

    /// Units about which a reason was reported that still stands.
    pub fn reported_count(&self) -> usize {
        self.agenda.reported_count()
    }

    /// Seats that are held for a gang that has waited for very long.
    pub fn seats_kept_count(&self) -> u64 {
        let planned = self.state.holds().planned();
        planned.map_or(0, |(_, held)| held.seats.iter().map(|(_, _, count)| u64::from(*count)).sum())
    }

    /// A number that differs if anything differs that a decision depends on. For tests and for comparing replicas.
    pub fn digest(&self) -> u64 {
        self.state.digest().wrapping_add(self.agenda.digest(&self.state))
    }

    /// The same for facts alone: what the engine remembers of its own decisions does not count. An engine that is told of
    /// the same cluster just now has the same number.
    pub fn facts_digest(&self) -> u64 {
        self.state.digest()
    }

    /// Every hold.
    pub fn holds(&self) -> Vec<Hold> {
        self.state.told_holds()
    }

    /// True if a unit, or the tree that a group is part of, waits for room or for its turn. If not, it waits for something
    /// else, or for nothing.
    pub fn is_waiting(&self, unit: &UnitKey) -> bool {
        self.agenda.wait_state(&self.state.pods().root_of(unit)).is_some()
    }

    /// Every unit that waits, and how; the next one first.
    pub fn waiters(&self) -> Vec<(UnitKey, WaitState)> {
        self.agenda.waiters(&self.state)
    }

    /// Gangs that wait for room, and since when, by name.
    pub fn waiting_since(&self) -> Vec<(UnitKey, Time)> {
        self.agenda.waiting_since()
    }

    /// Units that are not to be tried, in order.
    pub fn suspended(&self) -> Vec<UnitKey> {
        let mut units: Vec<UnitKey> = self.state.suspended().iter().cloned().collect();
        units.sort_unstable();
        units
    }

    /// Seats that were decided and that the API server has not confirmed, by pod.
    pub fn assumed(&self) -> Vec<Seat> {
        census::assumed(&self.state)
    }

    /// Counts the units that wait. Goes through all pods.
    pub fn census(&self) -> Census {
        census::census(&self.state, &self.agenda)
    }

    /// What a pod takes from its node; nothing if it is not known.
    pub fn requests_of(&self, pod: &ObjectKey) -> ResourceList {
        self.state.requests_of(pod)
    }

    /// Whether the volumes of a pod are there for it on a node. Of a pod or node that is not known nothing is.
    pub fn volumes_for(&self, pod: &ObjectKey, node: &Text) -> VolumeState {
        self.state.volumes_for(pod, node)
    }

    /// True if a pod may be bound where it was decided to be: its node is there and lets it in, and of nothing that it
    /// asks for more is taken there than the node has.
    pub fn may_keep_seat(&self, pod: &ObjectKey) -> bool {
        keep_seat::may_keep_seat(&self.state, pod)
    }

    /// The room that domains of these levels (label keys, wide to narrow) have for pods like these.
    ///
    /// Each kind is looked at for itself. What pods ask of nodes counts; terms about other pods, claims, groups and
    /// gates play no part.
    pub fn survey(&self, levels: &[Text], kinds: &[Pod]) -> Survey {
        survey::survey(self.state.fork(), levels, kinds)
    }

    /// Names of the nodes that this pod could be bound to as things are, in order.
    ///
    /// The pod is taken for itself: whether it names a group, a node or gates plays no part, and one that is for
    /// another scheduler is taken as one for us.
    pub fn feasible_nodes(&self, pod: &Pod) -> Vec<Text> {
        probe::feasible_nodes(self.state.fork(), pod, self.config.branches_max)
    }

    /// Weighted scores of the nodes that this pod could be bound to, one by one. Their sum decides where a pod on its
    /// own goes.
    pub fn scores(&self, pod: &Pod) -> BTreeMap<Text, BTreeMap<Aspect, i64>> {
        probe::scores(self.state.fork(), pod, self.config.branches_max)
    }
}
