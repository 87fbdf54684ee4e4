//! A last look at groups before they start. Watches may be behind: a minimum may have been raised, or a group or composite
//! replaced by another of its name, and a gang that is bound by an old picture would start in part. So everything that a
//! start depends on is read once more, and only if all of it is as it was decided on, bindings go out.

use super::super::facts::{Source, kind_of};
use super::super::message::{Effect, Fact, GroupLookup};
use super::super::{Core, UnitKey};
use super::ready::Ready;
use super::{Abort, Stage, Unsent, ensure};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tutti_engine::Placement;
use tutti_model::{ObjectKey, Text, Time};

/// Looks under way at once.
const LOOKS_MAX: usize = 32;
/// How often a look without an answer is repeated.
const TRIES_MAX: u32 = 6;
/// Pause before the second look; every further one is twice as long.
const PAUSE_FIRST_MS: i64 = 200;

/// How a group or composite has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    uid: Text,
    minimum: u32,
}

/// What a start waits for that is being confirmed.
#[derive(Debug, Default)]
pub(super) struct Confirming {
    open: BTreeMap<UnitKey, Expected>,
    confirmed: BTreeSet<UnitKey>,
}

impl Confirming {
    /// Members have joined: what was confirmed stays so.
    pub(super) fn so_far(self) -> Self {
        self
    }

    /// Members have joined a start that waited for its turn.
    pub(super) fn of(ready: Ready) -> Self {
        Self { open: BTreeMap::new(), confirmed: ready.into_confirmed() }
    }
}

/// Reads of groups and composites: for starts that depend on them, and for writes that found them changed.
#[derive(Debug, Default)]
pub(in super::super) struct Looks {
    queue: VecDeque<UnitKey>,
    paused: BTreeSet<(Time, UnitKey)>,
    /// What is being read. One look at a time, so that every answer is that of the latest question.
    under_way: BTreeSet<UnitKey>,
    /// What is read although nothing of it is about to start.
    unsure: BTreeSet<UnitKey>,
    /// The units that wait for a look, and whether it was sent after they asked.
    askers: BTreeMap<UnitKey, BTreeMap<UnitKey, bool>>,
    /// Looks in a row that were not answered.
    tries: BTreeMap<UnitKey, u32>,
}

impl Looks {
    /// A group has turned out not to be what it was thought to be; it is read anew.
    pub(in super::super) fn look(&mut self, group: &ObjectKey) {
        let group = UnitKey::Group(group.clone());
        if self.unsure.insert(group.clone()) {
            self.queue.push_back(group);
        }
    }

    /// When the first pause ends.
    pub(in super::super) fn wake_at(&self) -> Option<Time> {
        self.paused.first().map(|(until, _)| *until)
    }

    /// The next look that may go out.
    pub(in super::super) fn next(&mut self, now: Time) -> Option<Effect> {
        while let Some((until, object)) = self.paused.first().cloned()
            && until <= now
        {
            self.paused.pop_first();
            self.queue.push_back(object);
        }
        if self.under_way.len() >= LOOKS_MAX {
            return None;
        }
        while let Some(object) = self.queue.pop_front() {
            if self.under_way.contains(&object) {
                // Its turn comes when that answer is there.
                continue;
            }
            let is_unsure = self.unsure.remove(&object);
            let askers = self.askers.get_mut(&object);
            if is_unsure || askers.is_some() {
                askers.into_iter().flat_map(BTreeMap::values_mut).for_each(|is_sent| *is_sent = true);
                self.under_way.insert(object.clone());
                return Some(Effect::GetGroup(object));
            }
        }
        None
    }

    /// A unit waits for looks at all that it has to confirm.
    pub(super) fn ask(&mut self, unit: &UnitKey, confirming: &Confirming) {
        for object in confirming.open.keys() {
            self.askers.entry(object.clone()).or_default().insert(unit.clone(), false);
            self.queue.push_back(object.clone());
        }
    }

    /// A unit waits no longer.
    pub(super) fn forget(&mut self, unit: &UnitKey, confirming: &Confirming) {
        for object in confirming.open.keys() {
            self.asker_leaves(object, unit);
        }
    }

    fn asker_leaves(&mut self, object: &UnitKey, unit: &UnitKey) {
        if let Some(askers) = self.askers.get_mut(object) {
            askers.remove(unit);
            if askers.is_empty() {
                self.askers.remove(object);
                self.tries.remove(object);
            }
        }
    }

    /// A look was answered. Gives the units that had asked before it was sent; those that asked later get another one.
    fn answered(&mut self, object: &UnitKey) -> Vec<UnitKey> {
        self.under_way.remove(object);
        let askers = self.askers.get(object).into_iter().flatten();
        let (sent, later): (Vec<_>, Vec<_>) = askers.partition(|(_, is_sent)| **is_sent);
        if !later.is_empty() || self.unsure.contains(object) {
            self.queue.push_back(object.clone());
        }
        sent.into_iter().map(|(unit, _)| unit.clone()).collect()
    }

    /// There was no answer: the look is repeated after a pause. False if that was done often enough.
    fn again(&mut self, object: &UnitKey, not_before: Time, now: Time) -> bool {
        let tries = self.tries.entry(object.clone()).or_default();
        *tries += 1;
        if *tries >= TRIES_MAX {
            return false;
        }
        let until = Time(now.0.saturating_add(PAUSE_FIRST_MS << (*tries - 1))).max(not_before);
        for is_sent in self.askers.get_mut(object).into_iter().flat_map(BTreeMap::values_mut) {
            *is_sent = false;
        }
        self.paused.insert((until, object.clone()));
        true
    }

    /// A unit that is being confirmed is known to all looks that it waits for, and each of them will come.
    pub(super) fn check(&self, unit: &UnitKey, confirming: &Confirming) -> Result<(), String> {
        ensure(!confirming.open.is_empty(), || format!("{unit} waits for no look"))?;
        for object in confirming.open.keys() {
            let is_known = self.askers.get(object).is_some_and(|askers| askers.contains_key(unit));
            ensure(is_known, || format!("the look at {object} is not for {unit}"))?;
            let comes = self.under_way.contains(object)
                || self.queue.contains(object)
                || self.paused.iter().any(|(_, paused)| paused == object);
            ensure(comes, || format!("{unit} waits for a look at {object} that does not come"))?;
        }
        Ok(())
    }
}

impl Core {
    /// Sends members on their way: what starts, or becomes complete, after another look at what that depends on.
    pub(super) fn confirm(&mut self, mut unsent: Unsent, so_far: Confirming, now: Time) {
        let Confirming { mut open, confirmed } = so_far;
        for (object, expected) in self.expectations_of(&unsent.placement) {
            if !confirmed.contains(&object) {
                open.entry(object).or_insert(expected);
            }
        }
        unsent.stage = if open.is_empty() {
            Stage::Ready(Ready::confirmed(confirmed))
        } else {
            Stage::Confirming(Confirming { open, confirmed })
        };
        self.file(unsent, now);
    }

    /// What has to be as it was decided on: gangs that reach their minimum by this placement, and, for a tree that does,
    /// the composites above them.
    fn expectations_of(&self, placement: &Placement) -> Vec<(UnitKey, Expected)> {
        let groups: BTreeSet<&ObjectKey> =
            placement.seats.iter().filter_map(|seat| self.pods.get(&seat.pod)?.group.as_ref()).collect();
        let mut objects: BTreeSet<UnitKey> = BTreeSet::new();
        for group in groups {
            if self.groups.progress(group).is_some_and(|(counted, minimum)| counted < minimum) {
                objects.insert(UnitKey::Group(group.clone()));
            }
            if self.short_composite(group).is_some() {
                objects.extend(self.composites_above(group).into_iter().map(UnitKey::Composite));
            }
        }
        let expected = |object: UnitKey| {
            let expected = self.as_known(&object).filter(|expected| expected.minimum > 1)?;
            Some((object, expected))
        };
        objects.into_iter().filter_map(expected).collect()
    }

    /// A group or composite as it was seen and understood.
    fn as_known(&self, object: &UnitKey) -> Option<Expected> {
        let known = self.groups.object(object)?;
        Some(Expected { uid: known.uid.clone(), minimum: known.asks.as_ref()?.policy.minimum() })
    }

    /// A look was answered.
    pub(in super::super) fn group_answered(&mut self, object: &UnitKey, found: GroupLookup, now: Time) {
        let askers = self.starts.looks.answered(object);
        let mut not_before = now;
        // What is known now is better than what was thought before, no matter who asked.
        let why = match found {
            GroupLookup::Unknown(why) => Some(why),
            GroupLookup::Throttled { why, pause } => {
                self.counters.throttled += 1;
                not_before = self.write_window.throttled(pause, now);
                Some(why)
            }
            GroupLookup::Gone => {
                if let Some(uid) = self.groups.object_mut(object).map(|known| known.uid.clone()) {
                    self.found_gone(kind_of(object), object.object(), &uid);
                }
                self.unit_gone(object, now);
                None
            }
            GroupLookup::Found(reading) => {
                self.unit_set(object, *reading, Source::Look, now);
                None
            }
        };
        if askers.is_empty() {
            return;
        }
        match why {
            Some(why) => self.look_again(object, &askers, &why, not_before, now),
            None => {
                self.starts.looks.tries.remove(object);
                for unit in askers {
                    self.judge_look(object, &unit, now);
                }
            }
        }
    }

    /// An object was read for the sake of a unit.
    fn judge_look(&mut self, object: &UnitKey, unit: &UnitKey, now: Time) {
        let known = self.as_known(object);
        let expected = match self.starts.unsent(unit).map(|unsent| &unsent.stage) {
            Some(Stage::Confirming(confirming)) => confirming.open.get(object),
            // What was read has ended this start already.
            _ => None,
        };
        let is_stale = expected.is_none_or(|expected| known.as_ref() != Some(expected));
        if is_stale {
            self.counters.stale_groups += 1;
            self.report(Fact::StaleGroup { group: object.object().clone() });
            self.abort(unit, Abort::Changed, now);
            return;
        }
        self.starts.looks.asker_leaves(object, unit);
        let Some(Unsent { stage: Stage::Confirming(confirming), .. }) = self.starts.unsent_mut(unit) else {
            return;
        };
        confirming.open.remove(object);
        confirming.confirmed.insert(object.clone());
        if confirming.open.is_empty()
            && let Some(mut unsent) = self.starts.take(unit)
            && let Stage::Confirming(confirming) = unsent.stage
        {
            unsent.stage = Stage::Ready(Ready::confirmed(confirming.confirmed));
            self.file(unsent, now);
        }
    }

    /// There was no answer: the look is repeated for a while, when the server can bear it, then its units are tried again
    /// later.
    fn look_again(&mut self, object: &UnitKey, askers: &[UnitKey], why: &Text, not_before: Time, now: Time) {
        if self.starts.looks.again(object, not_before, now) {
            return;
        }
        for unit in askers {
            self.abort(unit, Abort::Failed, now);
        }
        self.cannot_be_read(object, why, now);
    }
}
