//! Starts: units that have seats in the engine which the API server does not know of yet, from the decision until
//! it is known where every member is.
//!
//! ```text
//! decided -> Preparing -> Confirming -> Ready -> Binding -> settled
//!            volumes      a last look   its turn  requests   every outcome is known: the start is gone
//! ```
//!
//! There is one start per unit. Members that are placed later join it: those that are not sent yet go with them,
//! through every stage that they need. What is sent cannot be called back; everything else can, by [`Core::abort`],
//! which always returns all seats.
//!
//! * `preparing`: claims that get their volumes first;
//! * `confirming`: groups are read once more;
//! * `ready`: whose turn it is, and a last check of every seat;
//! * `bindings`: the requests.

pub(super) mod bindings;
mod confirming;
mod preparing;
mod ready;

use super::{Core, UnitKey};
pub(super) use bindings::{Bindings, Limits, Verdict};
use confirming::{Confirming, Looks};
use preparing::{Preparations, Preparing};
use ready::Ready;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use tutti_engine::{Event, Placement, Seat, Standing};
use tutti_model::{ObjectKey, Text, Time};

/// A gang that waits for its last look keeps those that were decided after it waiting for so long, so that they start in
/// order; one that is broken keeps them waiting until it is sent or given up.
const TURN_KEPT: Duration = Duration::from_secs(1);

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StageName {
    /// Its volumes are not there yet.
    Preparing,
    /// Its groups are read once more.
    Confirming,
    /// It waits for its turn.
    Ready,
    /// Its bindings are under way.
    Binding,
}

/// What members that are not sent wait for.
#[derive(Debug)]
enum Stage {
    Preparing(Preparing),
    Confirming(Confirming),
    Ready(Ready),
}

/// Members of a unit whose bindings are not sent.
#[derive(Debug)]
struct Unsent {
    /// In the order of decisions.
    turn: u64,
    placement: Placement,
    /// The groups that members are of.
    groups: BTreeSet<ObjectKey>,
    /// The unit has members on nodes, and too few: no new gang starts before it.
    is_broken: bool,
    /// Until when units that were decided later let it go first.
    turn_until: Option<Time>,
    stage: Stage,
}

/// One unit on its way.
#[derive(Debug, Default)]
struct Start {
    unsent: Option<Unsent>,
    /// Members whose bindings are under way, and their groups.
    binding: BTreeMap<ObjectKey, Option<ObjectKey>>,
}

/// All units on their way.
#[derive(Debug)]
pub(super) struct Starts {
    by_unit: BTreeMap<UnitKey, Start>,
    /// The unit with whose start a pod has its seat.
    by_pod: FxHashMap<ObjectKey, UnitKey>,
    /// Groups with members that are not sent, and with whose start they go.
    by_group: BTreeSet<(ObjectKey, UnitKey)>,
    /// Groups with members whose bindings are under way, and these.
    binding: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    turns: u64,
    /// Gangs that wait for a last look, gangs that have had it, and those that start nothing that could be incomplete.
    confirming: BTreeSet<(u64, UnitKey)>,
    ready_gangs: BTreeSet<(u64, UnitKey)>,
    ready_others: BTreeSet<(u64, UnitKey)>,
    /// Those of the gangs that are broken.
    broken: BTreeSet<UnitKey>,
    pub(super) looks: Looks,
    pub(super) preparations: Preparations,
    pub(super) bindings: Bindings,
}

/// Why a start is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abort {
    /// Something that it depends on has changed: it is decided anew.
    Changed,
    /// It could not be carried out: it is tried again after a pause.
    Failed,
}

impl Starts {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            by_unit: BTreeMap::new(),
            by_pod: FxHashMap::default(),
            by_group: BTreeSet::new(),
            binding: BTreeMap::new(),
            turns: 0,
            confirming: BTreeSet::new(),
            ready_gangs: BTreeSet::new(),
            ready_others: BTreeSet::new(),
            broken: BTreeSet::new(),
            looks: Looks::default(),
            preparations: Preparations::default(),
            bindings: Bindings::new(limits),
        }
    }

    /// How many wait for a last look or for their turn.
    pub(super) fn waiting_count(&self) -> usize {
        self.confirming.len() + self.ready_gangs.len() + self.ready_others.len()
    }

    /// True if nothing is under way or about to be. Those that wait for volumes are not.
    pub(super) fn is_drained(&self) -> bool {
        self.waiting_count() == 0 && self.bindings.is_empty() && self.preparations.has_no_writes()
    }

    /// True if something of a unit is on its way.
    pub(super) fn contains(&self, unit: &UnitKey) -> bool {
        self.by_unit.contains_key(unit)
    }

    /// Members of a group whose bindings are under way.
    pub(super) fn binding_of(&self, group: &ObjectKey) -> usize {
        self.binding.get(group).map_or(0, BTreeSet::len)
    }

    /// True if members of a group are on their way.
    pub(super) fn has_members_of(&self, group: &ObjectKey) -> bool {
        self.binding_of(group) > 0 || !self.units_of_group(group).is_empty()
    }

    fn unsent(&self, unit: &UnitKey) -> Option<&Unsent> {
        self.by_unit.get(unit)?.unsent.as_ref()
    }

    fn unsent_mut(&mut self, unit: &UnitKey) -> Option<&mut Unsent> {
        self.by_unit.get_mut(unit)?.unsent.as_mut()
    }

    /// Files members that are not sent where their stage can be found.
    fn put(&mut self, unsent: Unsent) {
        let unit = unsent.placement.unit.clone();
        let turn = (unsent.turn, unit.clone());
        match &unsent.stage {
            Stage::Preparing(preparing) => self.preparations.insert(&unsent.placement, preparing),
            Stage::Confirming(confirming) => {
                self.looks.ask(&unit, confirming);
                self.confirming.insert(turn);
            }
            Stage::Ready(ready) if ready.starts_a_gang() => {
                self.ready_gangs.insert(turn);
            }
            Stage::Ready(_) => {
                self.ready_others.insert(turn);
            }
        }
        let is_about_to_start = match &unsent.stage {
            Stage::Preparing(_) => false,
            Stage::Confirming(_) => true,
            Stage::Ready(ready) => ready.starts_a_gang(),
        };
        if unsent.is_broken && is_about_to_start {
            self.broken.insert(unit.clone());
        }
        self.by_pod.extend(unsent.placement.seats.iter().map(|seat| (seat.pod.clone(), unit.clone())));
        self.by_group.extend(unsent.groups.iter().map(|group| (group.clone(), unit.clone())));
        self.by_unit.entry(unit).or_default().unsent = Some(unsent);
    }

    /// Takes the members that are not sent out of their start.
    fn take(&mut self, unit: &UnitKey) -> Option<Unsent> {
        let start = self.by_unit.get_mut(unit)?;
        let unsent = start.unsent.take()?;
        if start.binding.is_empty() {
            self.by_unit.remove(unit);
        }
        let turn = (unsent.turn, unit.clone());
        match &unsent.stage {
            Stage::Preparing(preparing) => self.preparations.remove(&unsent.placement, preparing),
            Stage::Confirming(confirming) => {
                self.looks.forget(unit, confirming);
                self.confirming.remove(&turn);
            }
            Stage::Ready(_) => {
                self.ready_gangs.remove(&turn);
                self.ready_others.remove(&turn);
            }
        }
        self.broken.remove(unit);
        for seat in &unsent.placement.seats {
            self.by_pod.remove(&seat.pod);
        }
        for group in &unsent.groups {
            self.by_group.remove(&(group.clone(), unit.clone()));
        }
        Some(unsent)
    }

    /// Bindings of these members go out.
    fn sent(&mut self, unit: &UnitKey, seats: &[Seat], group_of: impl Fn(&ObjectKey) -> Option<ObjectKey>) {
        for seat in seats {
            self.bindings.start(seat);
            self.by_pod.insert(seat.pod.clone(), unit.clone());
            let start = self.by_unit.entry(unit.clone()).or_default();
            let group = group_of(&seat.pod);
            start.binding.insert(seat.pod.clone(), group.clone());
            if let Some(group) = group {
                self.binding.entry(group).or_default().insert(seat.pod.clone());
            }
        }
    }

    /// It is known what has become of a binding. False if there was none.
    fn settled(&mut self, pod: &ObjectKey) -> bool {
        let Some(unit) = self.by_pod.get(pod).cloned() else { return false };
        let Some(start) = self.by_unit.get_mut(&unit) else { return false };
        let Some(group) = start.binding.remove(pod) else { return false };
        if start.binding.is_empty() && start.unsent.is_none() {
            self.by_unit.remove(&unit);
        }
        self.by_pod.remove(pod);
        if let Some(group) = group
            && let Some(members) = self.binding.get_mut(&group)
        {
            members.remove(pod);
            if members.is_empty() {
                self.binding.remove(&group);
            }
        }
        true
    }

    /// The units with whose start members of a group go that are not sent.
    fn units_of_group(&self, group: &ObjectKey) -> Vec<UnitKey> {
        let first = UnitKey::Group(ObjectKey::new("", ""));
        let from = (group.clone(), first);
        self.by_group.range(from..).take_while(|(of, _)| of == group).map(|(_, unit)| unit.clone()).collect()
    }
}

/// Lets members of a unit that were placed later go with those that wait. Groups that lacked something then may have it now.
fn join(waiting: &mut Placement, later: Placement) {
    waiting.seats.extend(later.seats);
    waiting.claims.extend(later.claims);
    waiting.claims.sort_by(|(a, _), (b, _)| a.cmp(b));
    waiting.claims.dedup_by(|(a, _), (b, _)| a == b);
    waiting.left_out = later.left_out;
    let mut groups: BTreeMap<UnitKey, Standing> =
        later.groups.into_iter().map(|standing| (standing.group.clone(), standing)).collect();
    for known in &mut waiting.groups {
        if let Some(standing) = groups.remove(&known.group)
            && !known.is_met()
        {
            *known = standing;
        }
    }
    waiting.groups.extend(groups.into_values());
}

impl Core {
    /// How far the start of a unit has come that is furthest from its end.
    pub fn stage_of(&self, unit: &UnitKey) -> Option<StageName> {
        let start = self.starts.by_unit.get(unit)?;
        Some(match start.unsent.as_ref().map(|unsent| &unsent.stage) {
            Some(Stage::Preparing(_)) => StageName::Preparing,
            Some(Stage::Confirming(_)) => StageName::Confirming,
            Some(Stage::Ready(_)) => StageName::Ready,
            None => StageName::Binding,
        })
    }

    /// Units that have members on nodes, but too few, and whose missing members are about to be sent.
    pub fn broken_starts(&self) -> impl Iterator<Item = &UnitKey> {
        self.starts.broken.iter()
    }

    /// Begins a start, or lets new members join the one that their unit has begun.
    pub(super) fn begin_start(&mut self, placement: Placement, now: Time) {
        let unit = placement.unit.clone();
        let claims = placement.claims.clone();
        let (mut unsent, stage) = match self.starts.take(&unit) {
            Some(mut unsent) => {
                join(&mut unsent.placement, placement);
                let stage = std::mem::replace(&mut unsent.stage, Stage::Ready(Ready::default()));
                (unsent, Some(stage))
            }
            None => {
                self.starts.turns += 1;
                let is_broken = self.completes_a_broken_one(&placement);
                let (turn, turn_until) = (self.starts.turns, None);
                let stage = Stage::Ready(Ready::default());
                let groups = BTreeSet::new();
                (Unsent { turn, placement, groups, is_broken, turn_until, stage }, None)
            }
        };
        // Of a stage that it has to go through again it keeps what was found out there.
        if let Some(preparing) = self.prepare(&unsent.placement, &claims, stage.as_ref(), now) {
            unsent.stage = Stage::Preparing(preparing);
            self.file(unsent, now);
        } else {
            let confirmed = match stage {
                Some(Stage::Confirming(confirming)) => confirming.so_far(),
                Some(Stage::Ready(ready)) => Confirming::of(ready),
                Some(Stage::Preparing(_)) | None => Confirming::default(),
            };
            self.confirm(unsent, confirmed, now);
        }
        for (claim, plan) in claims {
            self.write_plan(&claim, &plan, now);
        }
    }

    /// Files members that are not sent, and notes since when others let them go first.
    fn file(&mut self, mut unsent: Unsent, now: Time) {
        if matches!(unsent.stage, Stage::Confirming(_)) {
            unsent.turn_until.get_or_insert(now + TURN_KEPT);
        }
        let group_of = |seat: &Seat| self.pods.get(&seat.pod)?.group.clone();
        unsent.groups = unsent.placement.seats.iter().filter_map(group_of).collect();
        self.starts.put(unsent);
    }

    /// True if members of this placement complete a gang or a tree of which too little runs.
    fn completes_a_broken_one(&self, placement: &Placement) -> bool {
        let groups: BTreeSet<&ObjectKey> =
            placement.seats.iter().filter_map(|seat| self.pods.get(&seat.pod)?.group.as_ref()).collect();
        groups.into_iter().any(|group| {
            let runs = |group: &ObjectKey| self.groups.counted(group) > 0;
            let is_short = self.groups.progress(group).is_some_and(|(counted, minimum)| counted < minimum);
            let short_tree = self.short_composite(group).is_some();
            (is_short && runs(group)) || (short_tree && self.groups_beside(group).iter().any(runs))
        })
    }

    /// Gives a start up. All seats of members that are not sent are free again, and nothing is asked for their sake any
    /// more. Gives these seats.
    pub(super) fn abort(&mut self, unit: &UnitKey, how: Abort, now: Time) -> Vec<Seat> {
        let Some(unsent) = self.starts.take(unit) else {
            return Vec::new();
        };
        if let Stage::Preparing(preparing) = &unsent.stage {
            self.take_back_claims(&unsent.placement, preparing, now);
        }
        let seats = unsent.placement.seats;
        self.return_seats(&seats, how, now);
        seats
    }

    /// Seats that were decided and not sent are free again.
    fn return_seats(&mut self, seats: &[Seat], how: Abort, now: Time) {
        for Seat { pod, uid, .. } in seats {
            let (pod, uid) = (pod.clone(), uid.clone());
            self.tell(
                match how {
                    Abort::Changed => Event::Withdrawn { pod, uid },
                    Abort::Failed => Event::BindFailed { pod, uid },
                },
                now,
            );
        }
    }

    /// A group is not what it was when its start was decided: it is gone or replaced, or part of something else.
    pub(super) fn abort_starts_of(&mut self, group: &ObjectKey, now: Time) {
        for unit in self.starts.units_of_group(group) {
            self.abort(&unit, Abort::Changed, now);
        }
    }

    /// The same for all groups of a composite.
    pub(super) fn abort_starts_below(&mut self, composite: &ObjectKey, now: Time) {
        for group in self.groups_below(vec![composite.clone()]) {
            self.abort_starts_of(&group, now);
        }
    }

    /// A pod has no use for its seat any more: it is gone, another one, or on a node. Gives where it was to be bound, if its
    /// binding was under way.
    pub(super) fn seat_ends(&mut self, pod: &ObjectKey, now: Time) -> Option<Text> {
        let unit = self.starts.by_pod.get(pod).cloned()?;
        let node = self.starts.bindings.forget(pod);
        if self.starts.settled(pod) {
            return node;
        }
        let mut unsent = self.starts.take(&unit)?;
        unsent.placement.seats.retain(|seat| seat.pod != *pod);
        if let Stage::Preparing(preparing) = &unsent.stage {
            // Volumes were to be made for all of them together.
            self.take_back_claims(&unsent.placement, preparing, now);
            let seats = unsent.placement.seats;
            self.return_seats(&seats, Abort::Changed, now);
        } else if !unsent.placement.seats.is_empty() {
            // Whether the rest is enough is looked at when its turn comes.
            self.file(unsent, now);
        }
        None
    }

    /// A binding has ended without the pod being on a node.
    pub(super) fn binding_ends(&mut self, pod: &ObjectKey) {
        if !self.starts.bindings.contains(pod) {
            self.starts.settled(pod);
        }
    }

    /// How the tables of starts relate, and how they relate to the engine.
    pub(super) fn check_starts(&self) -> Result<(), String> {
        let starts = &self.starts;
        let mut seats: BTreeSet<&ObjectKey> = BTreeSet::new();
        let mut turns = 0;
        for (unit, start) in &starts.by_unit {
            ensure(start.unsent.is_some() || !start.binding.is_empty(), || {
                format!("the start of {unit} is empty")
            })?;
            let unsent = start.unsent.iter().flat_map(|unsent| &unsent.placement.seats).map(|seat| &seat.pod);
            for pod in unsent.chain(start.binding.keys()) {
                ensure(seats.insert(pod), || format!("{pod} has two seats"))?;
                ensure(starts.by_pod.get(pod) == Some(unit), || {
                    format!("{pod} is not found in the start of {unit}")
                })?;
            }
            for pod in start.binding.keys() {
                ensure(starts.bindings.contains(pod), || format!("the binding of {pod} is not under way"))?;
            }
            if let Some(unsent) = &start.unsent {
                ensure(unsent.placement.unit == *unit, || format!("{unit} has the start of another unit"))?;
                ensure(!unsent.placement.seats.is_empty(), || format!("nobody starts with {unit}"))?;
                for group in &unsent.groups {
                    let of = self.unit_of_group(group);
                    ensure(of == *unit, || format!("{group} starts with {unit}, and is part of {of}"))?;
                }
                let turn = (unsent.turn, unit.clone());
                let filed = match &unsent.stage {
                    Stage::Preparing(_) => starts.preparations.contains(unit),
                    Stage::Confirming(_) => starts.confirming.contains(&turn),
                    Stage::Ready(_) => {
                        starts.ready_gangs.contains(&turn) || starts.ready_others.contains(&turn)
                    }
                };
                turns += usize::from(!matches!(unsent.stage, Stage::Preparing(_)));
                ensure(filed, || format!("the start of {unit} is not found by its stage"))?;
                if let Stage::Confirming(confirming) = &unsent.stage {
                    starts.looks.check(unit, confirming)?;
                }
            }
        }
        for unit in &starts.broken {
            let is_broken = starts.unsent(unit).is_some_and(|unsent| unsent.is_broken);
            ensure(is_broken, || format!("{unit} is not broken, and others wait for it"))?;
        }
        ensure(seats.len() == starts.by_pod.len(), || {
            "a pod is found in a start that does not have it".to_owned()
        })?;
        ensure(turns == starts.waiting_count(), || "a turn is kept for nobody".to_owned())?;
        ensure(
            starts.bindings.len() == starts.by_unit.values().map(|start| start.binding.len()).sum::<usize>(),
            || "a binding belongs to no start".to_owned(),
        )?;
        let assumed = self.engine.assumed();
        for seat in &assumed {
            ensure(seats.contains(&seat.pod), || {
                format!("{} has a seat in the engine and no start", seat.pod)
            })?;
        }
        ensure(assumed.len() == seats.len(), || {
            let assumed: BTreeSet<&ObjectKey> = assumed.iter().map(|seat| &seat.pod).collect();
            format!(
                "starts without a seat in the engine: {:?}",
                seats.difference(&assumed).collect::<Vec<_>>()
            )
        })
    }
}

/// An error unless something holds.
pub(super) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preparing => "preparing",
            Self::Confirming => "confirming",
            Self::Ready => "ready",
            Self::Binding => "binding",
        })
    }
}
