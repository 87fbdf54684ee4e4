//! Gangs of which some members are bound, but fewer than their minimum.
//!
//! ```text
//!            fewer than the minimum        the grace time is over
//! (complete) ---------------------> Completing ----------------> Kept: it ran complete once, or a member
//!     ^            enough again         |                        would not be made again
//!     `---------------------------------+----------------------> Unwinding: its members are deleted,
//!                                                                to start together later
//! ```
//!
//! The engine keeps the seats of such a gang (see its claims); here is what becomes of it in the end. What must survive
//! us is written on the group: that it was complete once, and, before the first member is deleted, when it is unwound.
//!
//! A group of a composite that has too few groups is below its minimum, too, however many members it has: a tree starts as
//! one, and what is left of a start that failed is unwound or kept as one.

use super::super::message::Fact;
use super::super::{Core, UnitKey};
use super::Groups;
use super::evictions::EVICT_AGAIN_SECONDS;
use super::tree::ShortComposite;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use tutti_engine::Event;
use tutti_k8s::marks::{FULLY_BOUND, UNWIND_AT, mark_time};
use tutti_k8s::request::Severity;
use tutti_k8s::{GroupMarks, WhenBroken};
use tutti_model::{ObjectKey, Phase, Pod, Text, Time};

/// A start that ends within this time leaves no mark of when it would have been unwound.
const MARK_AFTER_SECONDS: i64 = 10;
/// Marks are written so much later than they are wanted: by then it is known what else was written on the group at that
/// moment, and the mark is not refused because of it.
const MARK_PAUSE: Duration = Duration::from_millis(250);
/// Marks that the server did not want are tried again so much later: nobody else would think of them.
const MARK_AGAIN_SECONDS: i64 = 60;
/// While bindings of a gang are under way it is not judged; it is looked at again so much later.
const BUSY_SECONDS: i64 = 1;

/// Reasons of events.
const UNWINDING: &str = "GangUnwinding";
const UNWOUND: &str = "GangUnwound";
const INCOMPLETE: &str = "GangIncomplete";

/// What is done about a gang below its minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum GangState {
    /// It keeps its seats and is tried before others.
    Completing,
    /// Its members are deleted.
    Unwinding,
    /// It stays as it is, is reported, and has first claim on replacement room.
    Kept,
}

/// What a pod is to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) enum MemberState {
    /// Nothing that counts.
    #[default]
    Absent,
    /// On a node.
    Bound {
        /// Made again if it is deleted.
        controlled: bool,
    },
    /// Ended well, which counts.
    Ended,
}

impl MemberState {
    pub(in super::super) fn of(pod: &Pod, controlled: bool) -> Self {
        match pod.phase {
            Phase::Succeeded => Self::Ended,
            Phase::Failed => Self::Absent,
            _ if pod.node.is_some() && !pod.terminating => Self::Bound { controlled },
            _ => Self::Absent,
        }
    }
}

/// What was written on a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Marks {
    fully_bound: bool,
    unwind_at: Option<Time>,
}

/// A gang below its minimum.
#[derive(Debug, Clone, Copy)]
struct Partial {
    state: GangState,
    since: Time,
    deadline: Time,
}

impl Partial {
    /// When its deadline is written on the group, so that it survives us; most gangs are complete before.
    fn mark_at(&self) -> Time {
        self.since.plus_seconds(MARK_AFTER_SECONDS)
    }

    /// When something has to be done about a gang that is being completed.
    fn next_look(&self, now: Time) -> Time {
        if now < self.mark_at() { self.deadline.min(self.mark_at()).max(now) } else { self.deadline }
    }
}

/// What a gang below its minimum lacks.
enum Shortfall {
    /// Members.
    Members { counted: u32, minimum: u32 },
    /// Nothing itself, but a composite above it lacks groups.
    Groups(ShortComposite),
}

impl Shortfall {
    /// How many there are, and how many there must be.
    fn numbers(&self) -> (u32, u32) {
        match self {
            Self::Members { counted, minimum } => (*counted, *minimum),
            Self::Groups(short) => (short.met, short.minimum),
        }
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members { counted, minimum } => write!(f, "{counted} of at least {minimum} members run"),
            Self::Groups(ShortComposite { composite, met, minimum }) => {
                write!(f, "{met} of at least {minimum} groups of composite {composite} run")
            }
        }
    }
}

/// A group and its members, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Gang {
    /// Members on a node, and whether they are made again if they are deleted.
    bound: BTreeMap<ObjectKey, bool>,
    ended: u32,
    /// The scheduler that members ask for who are ours.
    scheduler: Option<Text>,
    /// Pods that are ours to place, and others.
    ours: u32,
    foreign: u32,
    was_complete: bool,
    when_broken: Option<WhenBroken>,
    /// What is on the server, and what is being written there.
    marked: Marks,
    asked: Option<Marks>,
    /// When that may be tried again, after it was given up.
    marks_not_before: Option<Time>,
    /// It was looked at since we act.
    reviewed: bool,
    partial: Option<Partial>,
    due: Option<Time>,
}

impl Gang {
    pub(super) fn counted(&self) -> u32 {
        self.bound.len() as u32 + self.ended
    }

    pub(super) fn has_no_members(&self) -> bool {
        self.ours + self.foreign == 0
    }

    /// Members that are ours, others, those that are bound and those that have ended.
    pub(super) fn counts(&self) -> (u32, u32, u32, u32) {
        (self.ours, self.foreign, self.bound.len() as u32, self.ended)
    }

    pub(super) fn scheduler(&self) -> Option<&Text> {
        self.scheduler.as_ref()
    }

    /// True if it is being completed, unwound or kept.
    pub(super) fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    fn shift(&mut self, pod: &ObjectKey, standing: MemberState, joins: bool) {
        match (standing, joins) {
            (MemberState::Absent, _) => {}
            (MemberState::Bound { controlled }, true) => {
                self.bound.insert(pod.clone(), controlled);
            }
            (MemberState::Bound { .. }, false) => {
                self.bound.remove(pod);
            }
            (MemberState::Ended, true) => self.ended += 1,
            (MemberState::Ended, false) => self.ended = self.ended.saturating_sub(1),
        }
    }
}

/// What was found out about whole trees while their groups are looked at one after the other: it is the same for all of them.
#[derive(Debug, Default)]
struct Judged {
    /// Whether something of it is on its way.
    under_way: BTreeMap<UnitKey, bool>,
    /// Why it must not be unwound.
    why_kept: BTreeMap<UnitKey, Option<String>>,
}

impl Groups {
    /// When a group is to be looked at although nothing has changed.
    pub(in super::super) fn wake_at(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// All gangs below their minimum, with their state and the members that are bound.
    pub(in super::super) fn partial(
        &self,
    ) -> impl Iterator<Item = (&ObjectKey, GangState, &BTreeMap<ObjectKey, bool>)> {
        let partial = |row: &super::GroupRow| row.gang.partial.map(|partial| partial.state);
        self.rows.iter().filter_map(move |(unit, row)| Some((unit.object(), partial(row)?, &row.gang.bound)))
    }

    /// Changes what is known of the members of a group.
    fn change(&mut self, group: &ObjectKey, change: impl FnOnce(&mut Gang)) {
        self.changed.insert(group.clone());
        let unit = UnitKey::Group(group.clone());
        change(&mut self.row(&unit).gang);
        self.refresh(&unit);
    }

    #[cfg(test)]
    pub(super) fn bind_for_test(&mut self, group: &ObjectKey, pod: &ObjectKey) {
        self.change(group, |gang| gang.shift(pod, MemberState::Bound { controlled: true }, true));
    }

    /// A group is looked at by then, if a time is given, or sooner.
    fn look_by(&mut self, group: &ObjectKey, due: Option<Time>) {
        let planned = self.gang(group).and_then(|gang| gang.due);
        if due.is_some() {
            self.set_due(group, [due, planned].into_iter().flatten().min());
        }
    }

    pub(super) fn set_due(&mut self, group: &ObjectKey, due: Option<Time>) {
        let Some(gang) = self.gang_mut(group) else {
            return;
        };
        if gang.due == due {
            return;
        }
        let before = std::mem::replace(&mut gang.due, due);
        if let Some(before) = before {
            self.due.remove(&(before, group.clone()));
        }
        self.due.extend(due.map(|due| (due, group.clone())));
    }
}

impl Core {
    /// What is done about a gang below its minimum; `None` if it is complete, not started, or no gang of ours.
    pub fn gang_state(&self, group: &ObjectKey) -> Option<GangState> {
        Some(self.groups.gang(group)?.partial?.state)
    }

    /// True if members of a group are being deleted.
    pub(in super::super) fn is_unwinding(&self, group: &ObjectKey) -> bool {
        self.gang_state(group) == Some(GangState::Unwinding)
    }

    /// How many members of a group have a binding that is under way, or that waits because too many others are.
    pub fn bindings_of(&self, group: &ObjectKey) -> usize {
        self.starts.binding_of(group)
    }

    /// Identity of a group, as far as is known.
    pub fn group_uid(&self, group: &ObjectKey) -> Option<&Text> {
        Some(&self.groups.group(group)?.uid)
    }

    /// A pod has come to mean something else to its group.
    pub(in super::super) fn set_standing(&mut self, key: &ObjectKey, standing: MemberState) {
        let Some(known) = self.pods.get_mut(key) else {
            return;
        };
        let before = std::mem::replace(&mut known.standing, standing);
        if let Some(group) = known.group.clone()
            && before != standing
        {
            self.groups.change(&group, |gang| {
                gang.shift(key, before, false);
                gang.shift(key, standing, true);
            });
        }
    }

    /// A pod names a group, or does not any more. One that is ours says who its scheduler is.
    pub(in super::super) fn joins(&mut self, group: &ObjectKey, ours: Option<&Text>, joins: bool) {
        self.groups.change(group, |gang| {
            if let Some(scheduler) = ours.filter(|_| joins) {
                gang.scheduler = Some(scheduler.clone());
            }
            let ours = ours.is_some();
            let count = if ours { &mut gang.ours } else { &mut gang.foreign };
            *count = if joins { *count + 1 } else { count.saturating_sub(1) };
        });
    }

    /// A group was seen.
    pub(in super::super) fn gang_seen(&mut self, group: &ObjectKey, marks: &GroupMarks) {
        self.groups.change(group, |gang| {
            gang.when_broken = marks.when_broken;
            gang.was_complete |= marks.fully_bound;
            let seen = Marks { fully_bound: marks.fully_bound, unwind_at: marks.unwind_at };
            if gang.asked.is_none() && gang.marked != seen {
                gang.marked = seen;
                // Another client could write on it, so perhaps we can by now.
                gang.marks_not_before = None;
            }
        });
    }

    /// A group is gone, and with it all that was written on it.
    pub(in super::super) fn gang_gone(&mut self, group: &ObjectKey, now: Time) {
        self.forget_partial(group, now);
        self.mark_writes.cancel(group);
        self.groups.change(group, |gang| {
            gang.was_complete = false;
            gang.marked = Marks::default();
            gang.asked = None;
            gang.marks_not_before = None;
        });
    }

    /// What was to be said on a group, or on what it is part of, could not be said; it is looked at again then, because
    /// nobody else would think of it.
    pub(in super::super) fn look_again_at(&mut self, unit: &UnitKey, again: Time) {
        let groups = match unit {
            UnitKey::Composite(composite) => self.groups_below(vec![composite.clone()]),
            UnitKey::Group(group) | UnitKey::Pod(group) => BTreeSet::from([group.clone()]),
        };
        for group in groups {
            self.groups.look_by(&group, Some(again));
        }
    }

    /// A composite has changed, and with it what its groups are part of.
    pub(in super::super) fn composite_changed(&mut self, composite: &ObjectKey) {
        let groups = self.groups_around(composite);
        self.groups.changed.extend(groups);
    }

    /// A group leaves the tree that it was part of.
    pub(in super::super) fn tree_changed(&mut self, group: &ObjectKey) {
        let groups = self.groups_beside(group);
        self.groups.changed.extend(groups);
    }

    /// Looks at every group that has changed or is due, and at those that are in a tree with one.
    pub(in super::super) fn review_gangs(&mut self, now: Time) {
        while let Some((due, group)) = self.groups.due.first().cloned()
            && due <= now
        {
            self.groups.set_due(&group, None);
            self.groups.changed.insert(group);
        }
        let changed = std::mem::take(&mut self.groups.changed);
        let mut affected = BTreeSet::new();
        // Trees that were looked at.
        let mut trees: BTreeSet<UnitKey> = BTreeSet::new();
        for group in changed {
            if self.is_in_tree(&group) {
                let root = self.unit_of_group(&group);
                // What a group of a tree lacks concerns all of them; in one that lacks nothing each is by itself.
                if trees.insert(root.clone()) && !self.is_settled_tree(&root) {
                    affected.extend(self.groups_beside(&group));
                }
            }
            affected.insert(group);
        }
        let mut judged = Judged::default();
        for group in affected {
            self.review(&group, &mut judged, now);
        }
    }

    /// What a group with members that run lacks; `None` if it has what it needs.
    fn shortfall(&self, group: &ObjectKey, minimum: u32) -> Option<Shortfall> {
        let counted = self.groups.counted(group);
        if counted < minimum {
            return Some(Shortfall::Members { counted, minimum });
        }
        self.short_composite(group).map(Shortfall::Groups)
    }

    fn review(&mut self, group: &ObjectKey, judged: &mut Judged, now: Time) {
        let Some(gang) = self.groups.gang(group) else {
            return;
        };
        let has_members = !gang.has_no_members();
        let (is_ours, counted, nothing_is_bound) = (gang.ours > 0, gang.counted(), gang.bound.is_empty());
        if !has_members && self.groups.group(group).is_none() {
            // All members that waited for a group that never came may be gone.
            self.forget_partial(group, now);
            self.forget_row(&UnitKey::Group(group.clone()), now);
            return;
        }
        // Where every member starts on its own, the group is still part of a tree that starts as one.
        let is_understood = self.groups.group(group).is_some_and(|known| known.asks.is_some());
        let alone = is_understood && self.is_in_tree(group);
        let minimum = self.groups.minimum(group).or(alone.then_some(1));
        let Some(minimum) = minimum.filter(|_| is_ours) else {
            self.forget_partial(group, now);
            if is_ours && is_understood && counted > 0 {
                self.tell_complete(group, counted, 1, now);
            }
            return;
        };
        if nothing_is_bound {
            self.nothing_is_bound(group, now);
            // All of it may have ended before it could be said that it had started.
            if counted > 0 && self.shortfall(group, minimum).is_none() {
                self.tell_complete(group, counted, minimum, now);
            }
        } else if let Some(shortfall) = self.shortfall(group, minimum) {
            self.review_partial(group, &shortfall, judged, now);
        } else {
            self.forget_partial(group, now);
            if let Some(gang) = self.groups.gang_mut(group) {
                gang.was_complete = true;
            }
            self.tell_complete(group, counted, minimum, now);
        }
        if let Some(gang) = self.groups.gang_mut(group) {
            gang.reviewed = true;
        }
        self.write_marks(group, now);
    }

    /// It is complete, or it is not known what it needs: what was begun about it ends.
    fn forget_partial(&mut self, group: &ObjectKey, now: Time) {
        let Some(gang) = self.groups.gang_mut(group) else {
            return;
        };
        let Some(partial) = gang.partial.take() else {
            return;
        };
        if partial.state == GangState::Unwinding {
            for pod in gang.bound.keys() {
                self.evictions.cancel(pod);
            }
            self.tell(Event::Resume(UnitKey::Group(group.clone())), now);
        }
        self.groups.set_due(group, None);
    }

    fn nothing_is_bound(&mut self, group: &ObjectKey, now: Time) {
        let unwinding = self.gang_state(group) == Some(GangState::Unwinding);
        self.forget_partial(group, now);
        if unwinding && let Some(gang) = self.groups.gang_mut(group) {
            gang.was_complete = false;
            self.counters.unwinds += 1;
            let message = Text::from("nothing of it runs any more; it starts again as a whole");
            self.tell_group(group, Severity::Normal, UNWOUND, message, now);
        }
    }

    fn review_partial(&mut self, group: &ObjectKey, shortfall: &Shortfall, judged: &mut Judged, now: Time) {
        let (counted, minimum) = shortfall.numbers();
        let grace = self.config.gang_grace;
        let Some(gang) = self.groups.gang_mut(group) else {
            return;
        };
        let Some(partial) = gang.partial else {
            // The leader that wrote a deadline before us may have had another clock.
            let fresh = next_second(now + grace);
            let deadline = gang.marked.unwind_at.filter(|_| !gang.reviewed).unwrap_or(fresh).min(fresh);
            let noteworthy = !gang.reviewed || gang.was_complete;
            let partial = Partial { state: GangState::Completing, since: now, deadline };
            gang.partial = Some(partial);
            self.groups.set_due(group, Some(partial.next_look(now)));
            if noteworthy {
                let why = "it keeps its seats and is tried before others".into();
                self.report(Fact::Gang {
                    group: group.clone(),
                    state: GangState::Completing,
                    counted,
                    minimum,
                    why,
                });
            }
            return;
        };
        match partial.state {
            // The next leader decides what becomes of it, and deletes what is to be deleted: nothing new is begun.
            _ if self.stopping => {}
            GangState::Completing | GangState::Kept if now >= partial.deadline => {
                let unit = self.unit_of_group(group);
                let is_under_way = judged.under_way.entry(unit).or_insert_with(|| self.is_under_way(group));
                if *is_under_way {
                    self.groups.set_due(group, Some(now.plus_seconds(BUSY_SECONDS)));
                } else {
                    let why_kept = self.why_kept(group, judged);
                    self.judge_partial(group, partial, shortfall, why_kept, now);
                }
            }
            GangState::Completing => self.groups.set_due(group, Some(partial.next_look(now))),
            GangState::Unwinding => self.evict_members(group, now),
            GangState::Kept => {}
        }
    }

    /// The grace time of a gang is over.
    fn judge_partial(
        &mut self,
        group: &ObjectKey,
        partial: Partial,
        shortfall: &Shortfall,
        why_kept: Option<String>,
        now: Time,
    ) {
        let (counted, minimum) = shortfall.numbers();
        let (state, why) = match why_kept {
            None => (GangState::Unwinding, "its members are deleted, to start together later".to_owned()),
            Some(why) => (GangState::Kept, why),
        };
        if state == partial.state {
            return;
        }
        // An unwinding gang gets a mark of its own, even if an earlier leader has written its deadline: once ours is
        // there, whatever else is on its way to the group is about an older version of it and comes too late.
        let deadline = match state {
            GangState::Unwinding => next_second(now),
            GangState::Completing | GangState::Kept => partial.deadline,
        };
        if let Some(gang) = self.groups.gang_mut(group) {
            gang.partial = Some(Partial { state, deadline, ..partial });
        }
        let seconds = now.0.saturating_sub(partial.since.0) / 1000;
        let message = format!("{shortfall} since {seconds} s: {why}");
        let reason = if state == GangState::Kept { INCOMPLETE } else { UNWINDING };
        self.tell_group(group, Severity::Warning, reason, message.into(), now);
        let group_key = group.clone();
        self.report(Fact::Gang { group: group_key, state, counted, minimum, why: why.into() });
        if state == GangState::Kept {
            self.counters.gangs_kept += 1;
        } else {
            self.tell(Event::Suspend(UnitKey::Group(group.clone())), now);
        }
    }

    /// Why a gang must not be unwound; `None` if it may. What belongs together is unwound as one or not at all.
    fn why_kept(&self, group: &ObjectKey, judged: &mut Judged) -> Option<String> {
        if self.short_composite(group).is_none() {
            return self.why_kept_alone(group);
        }
        let all = || self.groups_beside(group).iter().find_map(|group| self.why_kept_alone(group));
        judged.why_kept.entry(self.unit_of_group(group)).or_insert_with(all).clone()
    }

    fn why_kept_alone(&self, group: &ObjectKey) -> Option<String> {
        let gang = self.groups.gang(group)?;
        if gang.foreign > 0 {
            return Some("it is kept, because some of its members belong to another scheduler".to_owned());
        }
        if let Some((pod, _)) = gang.bound.iter().find(|(_, controlled)| !**controlled) {
            return Some(format!("it is kept, because nobody would make pod {} again", pod.name));
        }
        let unwinds = gang.when_broken.unwrap_or(self.config.when_broken) == WhenBroken::Unwind;
        if gang.was_complete && !unwinds {
            return Some(
                "it is kept, because it was complete once and its work may be worth keeping".to_owned(),
            );
        }
        None
    }

    /// True if a binding of a member, or of one in the same tree, is under way or about to be.
    fn is_under_way(&self, group: &ObjectKey) -> bool {
        let unit = self.unit_of_group(group);
        self.starts.contains(&unit)
            || self.groups_beside(group).iter().any(|group| self.starts.binding_of(group) > 0)
    }

    /// Deletes what is bound of a gang, once it is written on the group that this is intended.
    fn evict_members(&mut self, group: &ObjectKey, now: Time) {
        let Some(gang) = self.groups.gang(group) else {
            return;
        };
        let is_marked = gang.partial.is_some_and(|partial| {
            let marked = gang.asked.is_none() && gang.marked.unwind_at == Some(partial.deadline);
            marked && partial.state == GangState::Unwinding
        });
        if !is_marked {
            return;
        }
        for pod in gang.bound.keys().cloned().collect::<Vec<_>>() {
            self.evict(&pod, group, now);
        }
        self.groups.set_due(group, Some(now.plus_seconds(EVICT_AGAIN_SECONDS)));
    }

    /// Brings what is written on the group in line with what must survive us.
    fn write_marks(&mut self, group: &ObjectKey, now: Time) {
        let is_in_tree = self.is_in_tree(group);
        let (Some(gang), Some(known)) = (self.groups.gang(group), self.groups.group(group)) else {
            return;
        };
        let minimum = self.groups.minimum(group);
        let lasting = is_in_tree || minimum.is_some_and(|minimum| minimum > 1);
        let unwind_at = gang.partial.and_then(|partial| {
            let marked = now >= partial.mark_at();
            let shown = match partial.state {
                GangState::Unwinding => true,
                GangState::Completing => {
                    (marked && !gang.was_complete) || gang.marked.unwind_at == Some(partial.deadline)
                }
                GangState::Kept => false,
            };
            shown.then_some(partial.deadline)
        });
        let said = gang.asked.unwrap_or(gang.marked);
        // What was announced stays so until the last deletion that was sent can no longer happen.
        let may_go = |pod| self.pods.get(pod)?.may_go_until.filter(|until| now < *until);
        let announced = said.unwind_at.filter(|_| unwind_at.is_none());
        let settles = announced.and_then(|_| gang.bound.keys().filter_map(may_go).max());
        let unwind_at = unwind_at.or(announced.filter(|_| settles.is_some()));
        let wanted = Marks { fully_bound: gang.was_complete && lasting, unwind_at };
        let again = gang.marks_not_before.filter(|again| now < *again);
        if said == wanted || again.is_some() {
            self.groups.look_by(group, if said == wanted { settles } else { again });
            return;
        }
        let uid = known.uid.clone();
        if let Some(gang) = self.groups.gang_mut(group) {
            gang.asked = Some(wanted);
        }
        self.groups.look_by(group, settles);
        let marks = vec![
            (FULLY_BOUND.into(), wanted.fully_bound.then(|| mark_time(now))),
            (UNWIND_AT.into(), wanted.unwind_at.map(mark_time)),
        ];
        let write = (uid, marks);
        if let Some(total) = self.mark_writes.put(group.clone(), write, now + MARK_PAUSE) {
            self.report(Fact::WritesDropped { what: "marks of pod groups", total });
        }
        if self.mark_writes.waiting(group).is_none() {
            // The queue is full.
            self.marks_written(group, false, now);
        }
    }

    /// Marks were written, or given up.
    pub(in super::super) fn marks_written(&mut self, group: &ObjectKey, written: bool, now: Time) {
        let grace = self.config.gang_grace;
        let Some(gang) = self.groups.gang_mut(group) else {
            return;
        };
        let asked = gang.asked.take();
        gang.marks_not_before = (!written).then(|| now.plus_seconds(MARK_AGAIN_SECONDS));
        if written {
            gang.marked = asked.unwrap_or(gang.marked);
        } else if let Some(partial) = gang.partial.as_mut()
            && partial.state == GangState::Unwinding
            && gang.marked.unwind_at != Some(partial.deadline)
        {
            // Without the mark nothing may be deleted; it is tried again after another grace time.
            partial.state = GangState::Completing;
            partial.deadline = next_second(now + grace);
            self.tell(Event::Resume(UnitKey::Group(group.clone())), now);
        }
        self.groups.changed.insert(group.clone());
    }
}

/// The first whole second after a time: annotations have no fractions.
fn next_second(time: Time) -> Time {
    Time(time.0.div_euclid(1000).saturating_add(1).saturating_mul(1000))
}
