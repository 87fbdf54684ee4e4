//! What follows from decisions: starts begin, and those who wait are told why.

use super::Core;
use super::counters::{Attempt, Outcome};
use super::message::Fact;
use super::report::{
    FAILED_SCHEDULING, ROOM_IS_KEPT, SCHEDULER_ERROR, UNSCHEDULABLE, WHO_MAKES_IT, for_members, is_gathering,
    met, reason_of, too_large,
};
use super::writes::telling::next_complaint;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::{Placement, Refusal, Seat, Standing, UnitKey, Waiting};
use tutti_k8s::request::{SCHEDULED, Severity};
use tutti_k8s::{Condition, ConditionStatus};
use tutti_model::tree::TREE_DEPTH_MAX;
use tutti_model::{ObjectKey, Text, Time};

/// A unit that is not complete yet mostly will be in a moment; it is not worth a word before this time.
const GATHERING_SECONDS: i64 = 2;

/// Parts of a tree that could not start however much room there was, and what they wait for. The tree as a whole is none of them.
type Unready<'a> = BTreeMap<&'a UnitKey, &'a Refusal>;

impl Core {
    /// A unit has a place.
    pub(super) fn placed(&mut self, placement: Placement, now: Time) -> Attempt {
        let member = placement.seats.first().map(|seat| &seat.pod);
        let attempt = self.count_attempt(&placement.unit, member, Outcome::Scheduled);
        self.waits_no_longer(&placement.unit, now);
        self.withdraw_refusal(&placement);
        self.begin_start(placement, now);
        attempt
    }

    /// What was to be said about why a unit waits is not true any more: it has a place, though it may wait for volumes.
    fn withdraw_refusal(&mut self, placement: &Placement) {
        for seat in &placement.seats {
            if self.pod_writes.cancel(&seat.pod) {
                self.pod_condition_not_written(&seat.pod);
            }
            self.withdraw_complaint(&seat.uid);
        }
        for group in placement.groups.iter().filter(|standing| standing.is_met()).map(|met| &met.group) {
            self.groups.set_waits(group, None);
            let is_refused = |(_, condition): &(Text, Condition)| !condition.holds();
            if self.group_writes.waiting(group).is_some_and(is_refused)
                && self.group_writes.cancel(group)
                && let Some(known) = self.groups.object_mut(group)
            {
                known.scheduled.give_up();
                let uid = known.uid.clone();
                self.withdraw_complaint(&uid);
            }
        }
    }

    /// A unit starts: all its bindings go out, and the group is told.
    pub(super) fn started(&mut self, placement: &Placement, now: Time) {
        let nodes: BTreeSet<&Text> = placement.seats.iter().map(|seat| &seat.node).collect();
        self.report(Fact::Placed {
            unit: placement.unit.clone(),
            pods: placement.seats.len(),
            nodes: nodes.len(),
            left_out: placement.left_out.len(),
        });
        self.withdraw_refusal(placement);
        for standing in &placement.groups {
            match &standing.waits {
                Some(refusal) if !standing.is_met() => {
                    self.group_refused(&standing.group, refusal, &Text::from(refusal.to_string()), now);
                }
                _ if standing.is_met() => self.standing_met(standing, placement, now),
                _ => {}
            }
        }
    }

    /// A group or composite has what it needs.
    fn standing_met(&mut self, standing: &Standing, placement: &Placement, now: Time) {
        let groups = match &standing.group {
            UnitKey::Composite(key) => self.groups_below(vec![key.clone()]),
            UnitKey::Group(key) | UnitKey::Pod(key) => BTreeSet::from([key.clone()]),
        };
        let group_of = |seat: &Seat| self.pods.get(&seat.pod).and_then(|known| known.group.as_ref());
        let is_member = |seat: &&Seat| group_of(seat).is_some_and(|group| groups.contains(group));
        let seats: Vec<&Seat> = placement.seats.iter().filter(is_member).collect();
        if seats.is_empty() {
            // It has started before, and nobody has joined it now; or what was decided for it could not be kept.
            return;
        }
        let message = met(standing, &seats);
        self.group_placed(&standing.group, &message, now);
    }

    /// A group that is complete, and what it is part of, are told so if they were not when they started: the leader of that time
    /// may have ended before it could, or another scheduler has bound the members.
    pub(super) fn tell_complete(&mut self, group: &ObjectKey, counted: u32, minimum: u32, now: Time) {
        self.tell_started(&UnitKey::Group(group.clone()), now, || {
            format!("{counted} of at least {minimum} members run")
        });
        // Of a tree that is not understood it is not known what it needs.
        if self.is_in_tree(group) && self.knows_tree_of(group) {
            for composite in self.composites_above(group) {
                self.tell_started(&UnitKey::Composite(composite), now, || "enough groups run".to_owned());
            }
        }
    }

    fn tell_started(&mut self, unit: &UnitKey, now: Time, message: impl Fn() -> String) {
        let Some(known) = self.groups.object_mut(unit).filter(|known| !known.scheduled.holds()) else {
            return;
        };
        if let Some((again, _)) = known.said_again_at.filter(|(again, _)| now < *again) {
            self.look_again_at(unit, again);
            return;
        }
        let uid = known.uid.clone();
        self.groups.set_waits(unit, None);
        self.withdraw_complaint(&uid);
        self.set_group_condition(unit, ConditionStatus::True, SCHEDULED, message().into(), now, now);
    }

    fn group_placed(&mut self, group: &UnitKey, message: &Text, now: Time) {
        self.groups.set_waits(group, None);
        self.set_group_condition(group, ConditionStatus::True, SCHEDULED, message.clone(), now, now);
        if let Some(regarding) = self.about_group(group) {
            self.withdraw_complaint(&regarding.uid);
            self.emit(regarding, Severity::Normal, SCHEDULED, message.clone(), now, now);
        }
    }

    /// Counts an attempt that was refused. A unit that is merely not complete was not tried.
    pub(super) fn count_refusal(&mut self, waiting: &Waiting) -> Option<Attempt> {
        let outcome = match &waiting.refusal {
            Refusal::Contradiction(_) => Outcome::Error,
            refusal if is_gathering(refusal) => return None,
            _ => Outcome::Unschedulable,
        };
        Some(self.count_attempt(&waiting.unit, waiting.members.first(), outcome))
    }

    /// A unit cannot start: the group and its members are told why. One that is merely not complete was not tried.
    pub(super) fn refused(&mut self, waiting: &Waiting, now: Time) -> Option<Attempt> {
        let kept = if waiting.is_planned { ROOM_IS_KEPT } else { "" };
        let trouble = self.trouble_of(&waiting.refusal);
        let reason = if trouble.is_some() { SCHEDULER_ERROR } else { reason_of(&waiting.refusal) };
        let sentence = trouble.unwrap_or_else(|| Text::from(format!("{}{kept}", waiting.refusal)));
        self.waits(&waiting.unit, &waiting.refusal, now);
        let gathering = is_gathering(&waiting.refusal);
        let attempt = self.count_refusal(waiting);
        self.report(Fact::Waiting { unit: waiting.unit.clone(), message: sentence.clone(), gathering });
        let due = if gathering { now.plus_seconds(GATHERING_SECONDS) } else { now };
        let parts = waiting.groups.iter().filter(|standing| standing.group != waiting.unit);
        let unready: Unready<'_> =
            parts.filter_map(|part| Some((&part.group, part.waits.as_ref()?))).collect();
        let message = match &waiting.unit {
            UnitKey::Group(key) => {
                self.group_refused(&waiting.unit, &waiting.refusal, &sentence, now);
                match self.job_pods.job_awaiting(key) {
                    Some(job) => Text::from(format!("waits for the PodGroup of Job {job}{WHO_MAKES_IT}")),
                    None if self.has_details(&waiting.unit) => {
                        for_members("pod group", key, &waiting.refusal, &sentence, kept)
                    }
                    None => Text::from(format!("pod group {}: {sentence}", key.name)),
                }
            }
            UnitKey::Composite(key) => {
                let detailed = Text::from(format!("composite pod group {}: {sentence}", key.name));
                let message = match self.has_details(&waiting.unit) {
                    true => for_members("composite pod group", key, &waiting.refusal, &sentence, kept),
                    false => detailed.clone(),
                };
                if waiting.groups.is_empty() {
                    // It was not looked at group by group. What they were told before may not be true any more.
                    let group_of = |pod: &ObjectKey| self.pods.get(pod)?.group.clone();
                    let groups: BTreeSet<ObjectKey> = waiting.members.iter().filter_map(group_of).collect();
                    self.group_refused(&waiting.unit, &waiting.refusal, &sentence, now);
                    for group in groups {
                        self.group_refused(&UnitKey::Group(group), &waiting.refusal, &detailed, now);
                    }
                }
                for standing in &waiting.groups {
                    match self.unready_part(&unready, &standing.group) {
                        _ if standing.group == waiting.unit => {
                            self.group_refused(&standing.group, &waiting.refusal, &sentence, now);
                        }
                        Some((part, own)) if *part == standing.group => {
                            self.group_refused(&standing.group, own, &Text::from(own.to_string()), now);
                        }
                        Some((part, above)) => {
                            let name = &part.object().name;
                            let sentence = Text::from(format!("composite pod group {name}: {above}"));
                            self.group_refused(&standing.group, above, &sentence, now);
                        }
                        None => self.group_refused(&standing.group, &waiting.refusal, &detailed, now),
                    }
                }
                message
            }
            UnitKey::Pod(_) => sentence,
        };
        // Members of a part that is not ready itself do not wait for room, whatever the rest of its tree waits for.
        let mut own: BTreeMap<ObjectKey, Option<&'static str>> = BTreeMap::new();
        for pod in &waiting.members {
            let group = self.pods.get(pod).and_then(|known| known.group.clone());
            let own = group.filter(|_| reason == UNSCHEDULABLE).and_then(|group| {
                *own.entry(group).or_insert_with_key(|group| {
                    let part = self.unready_part(&unready, &UnitKey::Group(group.clone()));
                    part.map(|(_, refusal)| reason_of(refusal))
                })
            });
            self.set_pod_condition(pod, own.unwrap_or(reason), &message, due, now);
        }
        attempt
    }

    /// The nearest of the parts of a tree that are not ready, from a group or composite upwards.
    fn unready_part<'a>(&self, unready: &Unready<'a>, part: &UnitKey) -> Option<(&'a UnitKey, &'a Refusal)> {
        let mut next = Some(part.clone());
        for _ in 0..TREE_DEPTH_MAX {
            let at = next?;
            if let Some((part, refusal)) = unready.get_key_value(&at) {
                return Some((*part, *refusal));
            }
            next = self.groups.parent(&at).cloned().map(UnitKey::Composite);
        }
        None
    }

    /// True if a group says on itself what is missing: it has a status, and has not started, which is said for good.
    fn has_details(&self, unit: &UnitKey) -> bool {
        let has_started = self.groups.object(unit).is_some_and(|known| known.scheduled.holds());
        self.capabilities.link.has_group_objects() && !has_started
    }

    /// What is wrong with a group that counts as not being there because it was not understood.
    fn trouble_of(&self, refusal: &Refusal) -> Option<Text> {
        let (kind, key, known) = match refusal {
            Refusal::GroupMissing { group } => ("pod group", group, self.groups.group(group)),
            Refusal::CompositeMissing { composite } if self.groups.is_too_large(composite) => {
                return Some(too_large(composite, self.groups.children_count(composite)));
            }
            Refusal::CompositeMissing { composite } => {
                ("composite pod group", composite, self.groups.composite(composite))
            }
            _ => return None,
        };
        let trouble = known?.trouble.as_ref()?;
        Some(Text::from(format!("{kind} {key} is not understood: {trouble}")))
    }

    fn group_refused(&mut self, key: &UnitKey, refusal: &Refusal, sentence: &Text, now: Time) {
        let reason = reason_of(refusal);
        let due = if is_gathering(refusal) { now.plus_seconds(GATHERING_SECONDS) } else { now };
        // To what is not there nothing can be said, and what was not understood has been told that. Once it is there, it
        // is decided on anew.
        let is_missing = match refusal {
            Refusal::GroupMissing { .. } => true,
            Refusal::CompositeMissing { composite } => *key == UnitKey::Composite(composite.clone()),
            _ => false,
        };
        if is_missing {
            self.groups.set_waits(key, None);
            return;
        }
        let is_new = self.groups.waits(key).is_none_or(|(before, _)| *before != reason);
        self.groups.set_waits(key, Some((reason, sentence.clone())));
        if let Some(known) = self.groups.object_mut(key).filter(|_| is_new) {
            known.complaint = None;
        }
        self.set_group_condition(key, ConditionStatus::False, reason, sentence.clone(), due, now);
        let Some(regarding) = self.about_group(key) else {
            return;
        };
        let complaint = self.groups.object(key).and_then(|known| known.complaint);
        let due = next_complaint(complaint, due);
        self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, sentence.clone(), due, now);
    }

    /// A group was changed or made anew while it waits; its condition must speak of this one.
    pub(super) fn repeat_refusal(&mut self, key: &UnitKey, now: Time) {
        if let Some((reason, message)) = self.groups.waits(key).cloned() {
            self.set_group_condition(key, ConditionStatus::False, reason, message, now, now);
        }
    }
}
