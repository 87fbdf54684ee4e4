//! A last look at groups before they start. Watches may be behind: a minimum may have been raised, or a group or composite
//! replaced by another of its name, and a gang that is bound by an old picture would start in part. So everything that a
//! start depends on is read once more, and only if all of it is as it was decided on, bindings go out.

use super::facts::{Source, kind_of};
use super::message::{Effect, Fact, GroupLookup};
use super::{Core, UnitKey};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tutti_engine::{Event, Placement, Seat, Standing};
use tutti_model::{ObjectKey, Text, Time};

/// Looks under way at once.
const LOOKS_MAX: usize = 32;
/// How often a look without an answer is repeated.
const TRIES_MAX: u32 = 6;
/// Pause before the second look; every further one is twice as long.
const PAUSE_FIRST_MS: i64 = 200;

/// A group or composite that has to be as it was.
#[derive(Debug)]
struct Question {
    /// Who starts if it is.
    unit: UnitKey,
    uid: Text,
    minimum: u32,
    tries: u32,
    asking: bool,
}

/// A placement that waits for answers.
#[derive(Debug)]
struct Confirm {
    placement: Placement,
    open: BTreeSet<UnitKey>,
}

/// Units that are about to start. Nothing is decided while there are too many, see [`super::STARTS_MAX`]; of what is read
/// for other reasons every group is there once.
#[derive(Debug, Default)]
pub(crate) struct Confirms {
    by_unit: BTreeMap<UnitKey, Confirm>,
    /// By the group or composite that is asked about. It is part of one unit.
    questions: BTreeMap<UnitKey, Question>,
    queue: VecDeque<UnitKey>,
    paused: BTreeSet<(Time, UnitKey)>,
    /// What is being read. One look at a time, so that every answer is that of the latest question.
    under_way: BTreeSet<UnitKey>,
    /// What is read although nothing of it is about to start.
    unsure: BTreeSet<UnitKey>,
}

impl Confirms {
    /// A group has turned out not to be what it was thought to be; it is read anew.
    pub(crate) fn look(&mut self, group: &ObjectKey) {
        let group = UnitKey::Group(group.clone());
        if self.unsure.insert(group.clone()) {
            self.queue.push_back(group);
        }
    }

    pub(crate) fn contains(&self, unit: &UnitKey) -> bool {
        self.by_unit.contains_key(unit)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_unit.is_empty()
    }

    /// How many placements wait.
    pub(crate) fn len(&self) -> usize {
        self.by_unit.len()
    }

    /// When the first pause ends.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.paused.first().map(|(until, _)| *until)
    }

    /// The next look that may go out.
    pub(crate) fn next(&mut self, now: Time) -> Option<Effect> {
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
            let question = self.questions.get_mut(&object);
            let asks = is_unsure || question.is_some();
            if let Some(question) = question {
                question.asking = true;
            }
            if asks {
                self.under_way.insert(object.clone());
                return Some(Effect::GetGroup(object));
            }
        }
        None
    }

    /// Lets a placement wait until all questions have their answer. What comes later for the same unit goes with it.
    fn ask(&mut self, placement: Placement, questions: Vec<(UnitKey, Question)>) {
        let unit = placement.unit.clone();
        let confirm = match self.by_unit.remove(&unit) {
            Some(mut confirm) => {
                join(&mut confirm.placement, placement);
                confirm
            }
            None => Confirm { placement, open: BTreeSet::new() },
        };
        let confirm = self.by_unit.entry(unit).or_insert(confirm);
        for (object, question) in questions {
            if confirm.open.insert(object.clone()) {
                self.questions.insert(object.clone(), question);
                self.queue.push_back(object);
            }
        }
    }

    /// The question that an answer is about; `None` if the question is younger than it, or nobody asks any more.
    fn answered(&mut self, object: &UnitKey) -> Option<Question> {
        self.under_way.remove(object);
        let is_asked = self.questions.get(object).is_some_and(|question| question.asking);
        if !is_asked || self.unsure.contains(object) {
            self.queue.push_back(object.clone());
        }
        if is_asked { self.questions.remove(object) } else { None }
    }

    /// One answer is as it should be. Gives the placement if it was the last.
    fn settle(&mut self, object: &UnitKey, unit: &UnitKey) -> Option<Placement> {
        let confirm = self.by_unit.get_mut(unit)?;
        confirm.open.remove(object);
        if !confirm.open.is_empty() {
            return None;
        }
        self.by_unit.remove(unit).map(|confirm| confirm.placement)
    }

    /// Gives up on a unit, and on what was asked for its sake.
    fn give_up(&mut self, unit: &UnitKey) -> Vec<Seat> {
        let Some(confirm) = self.by_unit.remove(unit) else {
            return Vec::new();
        };
        for object in &confirm.open {
            self.questions.remove(object);
        }
        confirm.placement.seats
    }
}

/// Lets members of a unit that were placed later go with those who wait. Groups that lacked something then may have it now.
pub(super) fn join(waiting: &mut Placement, later: Placement) {
    waiting.seats.extend(later.seats);
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
    /// Sends a placement on its way: what starts, or becomes complete, after another look at what that depends on.
    pub(super) fn confirm_or_launch(&mut self, placement: Placement) {
        let questions = self.questions_of(&placement);
        if questions.is_empty() {
            self.launches.push(placement);
        } else {
            self.confirms.ask(placement, questions);
        }
    }

    /// What has to be as it was decided on: gangs that reach their minimum by this placement, and, for a tree that does,
    /// the composites above them.
    fn questions_of(&self, placement: &Placement) -> Vec<(UnitKey, Question)> {
        let groups: BTreeSet<&ObjectKey> =
            placement.seats.iter().filter_map(|seat| self.pods.get(&seat.pod)?.group.as_ref()).collect();
        let mut objects: BTreeSet<UnitKey> = BTreeSet::new();
        for group in groups {
            if self.gangs.progress(group).is_some_and(|(counted, minimum)| counted < minimum) {
                objects.insert(UnitKey::Group(group.clone()));
            }
            if self.short_composite(group, &BTreeMap::new()).is_some() {
                objects.extend(self.composites_above(group).into_iter().map(UnitKey::Composite));
            }
        }
        let question = |object: UnitKey| {
            let (uid, minimum) = self.minimum_of(&object).filter(|(_, minimum)| *minimum > 1)?;
            let unit = placement.unit.clone();
            Some((object, Question { unit, uid, minimum, tries: 0, asking: false }))
        };
        objects.into_iter().filter_map(question).collect()
    }

    /// Identity and minimum of a group or composite that was seen and understood.
    fn minimum_of(&self, object: &UnitKey) -> Option<(Text, u32)> {
        let known = match object {
            UnitKey::Group(key) => self.groups.get(key),
            UnitKey::Composite(key) => self.composites.get(key),
            UnitKey::Pod(_) => None,
        }?;
        Some((known.uid.clone(), known.asks.as_ref()?.policy.minimum()))
    }

    /// A look was answered.
    pub(super) fn group_answered(&mut self, object: &UnitKey, found: GroupLookup, now: Time) {
        let question = self.confirms.answered(object);
        let mut not_before = now;
        // What is known now is better than what was thought before, whoever asked.
        let why = match found {
            GroupLookup::Unknown(why) => Some(why),
            GroupLookup::Throttled { why, pause } => {
                self.counters.throttled += 1;
                not_before = self.write_window.throttled(pause, now);
                Some(why)
            }
            GroupLookup::Gone => {
                if let Some(uid) = self.known_group_mut(object).map(|known| known.uid.clone()) {
                    self.found_gone(kind_of(object), object.object(), &uid);
                }
                self.object_gone(object, now);
                None
            }
            GroupLookup::Found(reading) => {
                match object {
                    UnitKey::Composite(_) => self.composite_set(*reading, Source::Look, now),
                    UnitKey::Group(_) | UnitKey::Pod(_) => self.group_set(*reading, Source::Look, now),
                }
                None
            }
        };
        let Some(question) = question else {
            return;
        };
        if let Some(why) = why {
            self.look_again(object, question, &why, not_before, now);
        } else if self.minimum_of(object) == Some((question.uid, question.minimum)) {
            if let Some(placement) = self.confirms.settle(object, &question.unit) {
                self.launches.push(placement);
            }
        } else {
            self.counters.stale_groups += 1;
            self.report(Fact::StaleGroup { group: object.object().clone() });
            let seats = self.confirms.give_up(&question.unit);
            self.withdraw(&seats, now);
        }
    }

    fn object_gone(&mut self, object: &UnitKey, now: Time) {
        match object {
            UnitKey::Composite(key) => self.composite_gone(key, now),
            UnitKey::Group(key) | UnitKey::Pod(key) => self.group_gone(key, now),
        }
    }

    /// There was no answer: the look is repeated for a while, when the server can bear it, then its unit is tried again
    /// later.
    fn look_again(
        &mut self,
        object: &UnitKey,
        mut question: Question,
        why: &Text,
        not_before: Time,
        now: Time,
    ) {
        question.tries += 1;
        question.asking = false;
        if question.tries >= TRIES_MAX {
            for seat in self.confirms.give_up(&question.unit) {
                let (pod, uid) = (seat.pod, seat.uid);
                self.tell(Event::BindFailed { pod, uid }, now);
            }
            self.cannot_be_read(object, why, now);
            return;
        }
        let pause = PAUSE_FIRST_MS << (question.tries - 1);
        let until = Time(now.0.saturating_add(pause)).max(not_before);
        self.confirms.paused.insert((until, object.clone()));
        self.confirms.questions.insert(object.clone(), question);
    }
}
