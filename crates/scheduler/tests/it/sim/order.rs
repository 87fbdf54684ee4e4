//! In which order a process sends what it has decided, so that one that is killed leaves few gangs in part.
//!
//! * Bindings go out start by start: at any moment at most one start is sent in part. A process that is killed leaves
//!   that one in part, and gangs of which requests were under way.
//! * After a takeover no new gang begins before every broken one that fits is sent. Whether one fits is for the scheduler to
//!   say: it says so by sending it. If it has heard of nothing in between, the broken one fitted before, too.
//! * Where nothing else goes wrong and two bindings at most are under way at once, it follows that two gangs at most are in
//!   part, at any moment and however often the scheduler is killed. These stories are told, too ([`Sim::only_kills`]).

use super::Sim;
use super::server::SimGroup;
use super::tally::Deed;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tutti_engine::UnitKey;
use tutti_model::{ObjectKey, Text, Time};
use tutti_scheduler::core::groups::GangState;
use tutti_scheduler::core::message::{Answer, BindOutcome, Effect, Fact, GroupLookup, Input, WriteKey};

/// Bindings under way at once in stories in which schedulers are killed and nothing else goes wrong, and with it the most
/// gangs that can be in part.
pub(super) const BINDS_WHERE_ONLY_KILLED: usize = 2;
/// A broken gang that is sent so long after a new one may have waited for something that only time brings.
const PASSED_OVER_SECONDS: i64 = 5;

/// What one process has sent since it leads.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Counts what it hears that could change what fits.
    news: u64,
    /// Units of which it has sent something.
    begun: BTreeSet<UnitKey>,
    /// Units of which a request has failed, so that they are tried again after a pause.
    failed: BTreeSet<UnitKey>,
    /// Broken units that a new gang was sent before: which, when, and after which news.
    passed: BTreeMap<UnitKey, (ObjectKey, Time, u64)>,
    /// Starts that were announced: their numbers, and how many bindings each has not sent.
    announced: BTreeMap<UnitKey, VecDeque<(u64, usize)>>,
    announced_count: u64,
    /// The latest start of which something was certainly sent.
    furthest: u64,
    /// Identities of pods whose bindings were sent.
    sent: BTreeSet<Text>,
}

impl Order {
    /// Follows what it hears. Gives what fails by it.
    fn hear(&mut self, input: &Input) -> Option<Failed> {
        let failed = match input {
            Input::Renewed { .. } | Input::Elected { .. } | Input::Tick | Input::Stop => return None,
            Input::Answer(Answer::Bind { outcome: BindOutcome::Done, .. }) => return None,
            Input::Answer(Answer::Group { found: GroupLookup::Found(_), .. }) => return None,
            Input::Answer(Answer::Write { key: WriteKey::Storage(_), .. }) => None,
            Input::Answer(Answer::Write { .. }) => return None,
            Input::Answer(Answer::Bind { seat, .. }) => Some(Failed::Pod(seat.pod.clone())),
            Input::Answer(Answer::Pod { pod, .. }) => Some(Failed::Pod(pod.clone())),
            Input::Answer(Answer::Group { group, .. }) => Some(Failed::Group(group.clone())),
            _ => None,
        };
        self.news += 1;
        failed
    }

    fn announce(&mut self, unit: &UnitKey, bindings: usize) {
        self.announced_count += 1;
        self.announced.entry(unit.clone()).or_default().push_back((self.announced_count, bindings));
    }

    /// A binding is sent for the first time. False if one of a later start was sent before it. Where a unit has
    /// announced several starts it is not known which of them a binding belongs to, and that counts which is in order.
    fn sends(&mut self, unit: &UnitKey) -> bool {
        let Some(starts) = self.announced.get_mut(unit) else { return true };
        let is_in_order = starts.back().is_none_or(|(number, _)| *number >= self.furthest);
        if let Some((number, left)) = starts.front_mut() {
            self.furthest = self.furthest.max(*number);
            *left = left.saturating_sub(1);
            if *left == 0 {
                starts.pop_front();
            }
        }
        is_in_order
    }
}

/// What a request was about that failed.
enum Failed {
    Pod(ObjectKey),
    Group(UnitKey),
}

impl Sim {
    /// Follows what a process hears.
    pub(super) fn hear_in_order(&mut self, index: usize, inputs: &[Input]) {
        for input in inputs {
            let failed = match self.replicas[index].order.hear(input) {
                Some(Failed::Pod(pod)) => {
                    let group = self.server.pods.get(&pod).and_then(|found| found.pod.group.clone());
                    group.map(|group| self.unit_of(&group))
                }
                Some(Failed::Group(UnitKey::Group(group))) => Some(self.unit_of(&group)),
                Some(Failed::Group(unit)) => Some(unit),
                None => None,
            };
            self.replicas[index].order.failed.extend(failed);
        }
    }

    /// Holds what a process sends against the order in which it must be sent.
    pub(super) fn check_order(&mut self, index: usize, effects: &[Effect]) -> Result<(), String> {
        for effect in effects {
            match effect {
                Effect::Report(Fact::Placed { unit, pods, .. }) => {
                    self.replicas[index].order.announce(unit, *pods);
                }
                Effect::Report(Fact::StaleGroup { .. }) => self.replicas[index].order.news += 1,
                Effect::Bind(seat) => {
                    let group = self.server.pods.get(&seat.pod).and_then(|found| found.pod.group.clone());
                    let unit = match &group {
                        Some(group) => self.unit_of(group),
                        None => UnitKey::Pod(seat.pod.clone()),
                    };
                    let order = &mut self.replicas[index].order;
                    if order.sent.insert(seat.uid.clone()) && !order.sends(&unit) {
                        return Err(format!("{} is sent after bindings of a later start", seat.pod));
                    }
                    if let Some(group) = group
                        && order.begun.insert(unit.clone())
                    {
                        self.check_turn(index, &group, &unit)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A unit begins to be sent.
    fn check_turn(&mut self, index: usize, group: &ObjectKey, unit: &UnitKey) -> Result<(), String> {
        // Of a tree that lacks nothing as a whole, a group that is not broken itself may start like any other.
        let members = self.server.counted_by_group();
        let completes =
            self.gangs_in_part().any(|broken| broken == group) || self.server.is_tree_short(group, &members);
        let order = &mut self.replicas[index].order;
        if let Some((new, at, news)) = order.passed.remove(unit)
            && completes
            && news == order.news
            && self.now <= at.plus_seconds(PASSED_OVER_SECONDS)
            && !order.failed.contains(unit)
        {
            return Err(format!("{new} is sent before {unit}, which is broken and fits"));
        }
        let is_gang = self.server.groups.get(group).is_some_and(|found| found.minimum() > 1);
        let beside = self.server.groups_beside(group);
        if is_gang && self.replicas[index].has_heard_all() && beside.is_disjoint(&self.ran) {
            let broken = self.broken_units(index);
            let order = &mut self.replicas[index].order;
            let passed = broken.into_iter().filter(|unit| !order.begun.contains(unit));
            let passed: Vec<UnitKey> = passed.collect();
            if !passed.is_empty() {
                self.tally.count(Deed::PassedOver);
            }
            let (now, news) = (self.now, order.news);
            order.passed.extend(passed.into_iter().map(|unit| (unit, (group.clone(), now, news))));
        }
        Ok(())
    }

    /// Units that are in part and are to be completed, as the server and the process have it.
    fn broken_units(&self, index: usize) -> BTreeSet<UnitKey> {
        let core = &self.replicas[index].core;
        let is_completed = |group: &&ObjectKey| {
            matches!(core.gang_state(group), Some(GangState::Completing | GangState::Kept))
        };
        self.gangs_in_part().filter(is_completed).map(|group| self.unit_of(group)).collect()
    }

    /// Groups of which too few members are on nodes, but some.
    fn gangs_in_part(&self) -> impl Iterator<Item = &ObjectKey> {
        let members = self.server.counted_by_group();
        let is_partial = move |key: &ObjectKey, group: &SimGroup| {
            let (counted, bound) = members.get(key).copied().unwrap_or_default();
            bound > 0 && (counted < group.minimum() || self.server.is_tree_short(key, &members))
        };
        self.server.groups.iter().filter(move |(key, group)| is_partial(key, group)).map(|(key, _)| key)
    }

    pub(super) fn has_gang_in_part(&self) -> bool {
        self.gangs_in_part().next().is_some()
    }

    /// Where schedulers are killed, and nothing else goes wrong, few gangs are in part, at any moment.
    pub(super) fn check_in_part(&self) -> Result<(), String> {
        if !self.only_kills {
            return Ok(());
        }
        let in_part: Vec<&ObjectKey> = self.gangs_in_part().collect();
        if in_part.len() > BINDS_WHERE_ONLY_KILLED {
            return Err(format!("{} gangs are in part: {in_part:?}", in_part.len()));
        }
        Ok(())
    }

    /// What a group starts with.
    fn unit_of(&self, group: &ObjectKey) -> UnitKey {
        match self.server.above(group).pop() {
            Some(root) => UnitKey::Composite(root),
            None => UnitKey::Group(group.clone()),
        }
    }
}
