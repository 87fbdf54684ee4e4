//! What people are told: conditions and events.

use super::counters::{Attempt, Outcome};
use super::message::{EventKey, Fact};
use super::{Core, Wanted};
use std::collections::BTreeSet;
use tutti_engine::{Placement, Refusal, Seat, Standing, UnitKey, Waiting};
use tutti_k8s::group::COMPOSITE_CONDITION;
use tutti_k8s::pod::POD_SCHEDULED;
use tutti_k8s::request::{EventNote, Regarding, SCHEDULED, Severity};
use tutti_k8s::{ConditionStatus, ObjectError};
use tutti_model::{ObjectKey, Pod, Text, Time};

/// Added for a gang that has waited for very long.
const ROOM_IS_KEPT: &str = "; what becomes free is kept for it";
/// Who runs the scheduler alone should not have to guess.
const WHO_MAKES_IT: &str = ", which tutti controller makes (jobIntegration Off does not wait for it)";
/// Reasons, as users know them.
const FAILED_SCHEDULING: &str = "FailedScheduling";
const UNSCHEDULABLE: &str = "Unschedulable";
const SCHEDULER_ERROR: &str = "SchedulerError";
/// Reason of events on objects that were not understood.
const NOT_UNDERSTOOD: &str = "NotUnderstood";

/// A unit that is not complete yet mostly will be in a moment; nobody needs to hear of it before this time.
const GATHERING_SECONDS: i64 = 2;
/// Least time between two messages on one group, and on one pod, that differ in words only.
const GROUP_INTERVAL_SECONDS: i64 = 1;
const POD_INTERVAL_SECONDS: i64 = 10;
/// Least time between two events on one object that say that it waits.
const COMPLAINT_INTERVAL_SECONDS: i64 = 10;

impl Core {
    /// A unit has a place.
    pub(super) fn placed(&mut self, placement: Placement, now: Time) -> Attempt {
        let member = placement.seats.first().map(|seat| &seat.pod);
        let attempt = self.count_attempt(&placement.unit, member, Outcome::Scheduled);
        self.waits_no_longer(&placement.unit, now);
        self.prepare_volumes(placement, now);
        attempt
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
        for seat in &placement.seats {
            self.binds.start(seat);
            if self.pod_writes.cancel(&seat.pod)
                && let Some(belief) = self.pods.get_mut(&seat.pod).and_then(|known| known.scheduled.as_mut())
            {
                belief.give_up();
            }
            self.withdraw_complaint(&seat.uid);
        }
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
        let nodes: BTreeSet<&Text> = seats.iter().map(|seat| &seat.node).collect();
        let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let mut message =
            format!("{} placed on {}", count(seats.len(), "member"), count(nodes.len(), "node"));
        if let UnitKey::Composite(_) = standing.group {
            let Standing { placed, minimum, .. } = standing;
            message = format!("{placed} of at least {minimum} groups have what they need: {message}");
        }
        if let Some(scattered) = &standing.scattered {
            message = format!("{message}; {scattered}");
        }
        self.group_placed(&standing.group, &Text::from(message), now);
    }

    /// A group that is complete, and what it is part of, are told so if they were not when they started: whoever led then
    /// may have ended before it could, or somebody else has bound the members.
    pub(super) fn tell_complete(&mut self, group: &ObjectKey, counted: u32, minimum: u32, now: Time) {
        self.tell_started(&UnitKey::Group(group.clone()), now, || {
            format!("{counted} of at least {minimum} members run")
        });
        // Of a tree that is not understood nobody knows what it needs.
        if self.is_in_tree(group) && self.knows_tree_of(group) {
            for composite in self.composites_above(group) {
                self.tell_started(&UnitKey::Composite(composite), now, || "enough groups run".to_owned());
            }
        }
    }

    fn tell_started(&mut self, unit: &UnitKey, now: Time, message: impl Fn() -> String) {
        let Some(known) = self.known_group_mut(unit).filter(|known| !known.scheduled.holds()) else {
            return;
        };
        if let Some((again, _)) = known.said_again_at.filter(|(again, _)| now < *again) {
            self.look_again_at(unit, again);
            return;
        }
        let uid = known.uid.clone();
        self.waiting.remove(unit);
        self.withdraw_complaint(&uid);
        self.set_group_condition(unit, ConditionStatus::True, SCHEDULED, message().into(), now, now);
    }

    fn group_placed(&mut self, group: &UnitKey, message: &Text, now: Time) {
        self.waiting.remove(group);
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
        let sentence = self
            .trouble_of(&waiting.refusal)
            .unwrap_or_else(|| Text::from(format!("{}{kept}", waiting.refusal)));
        self.waits(&waiting.unit, &waiting.refusal, now);
        let gathering = is_gathering(&waiting.refusal);
        let reason = reason_of(&waiting.refusal);
        let attempt = self.count_refusal(waiting);
        self.report(Fact::Waiting { unit: waiting.unit.clone(), message: sentence.clone(), gathering });
        let due = if gathering { now.plus_seconds(GATHERING_SECONDS) } else { now };
        let message = match &waiting.unit {
            UnitKey::Group(key) => {
                self.group_refused(&waiting.unit, &waiting.refusal, &sentence, now);
                match self.members.job_awaiting(key) {
                    Some(job) => Text::from(format!("waits for the PodGroup of Job {job}{WHO_MAKES_IT}")),
                    None => Text::from(format!("pod group {}: {sentence}", key.name)),
                }
            }
            UnitKey::Composite(key) => {
                let message = Text::from(format!("composite pod group {}: {sentence}", key.name));
                if waiting.groups.iter().all(|standing| standing.group != waiting.unit) {
                    self.group_refused(&waiting.unit, &waiting.refusal, &sentence, now);
                }
                for standing in &waiting.groups {
                    match &standing.waits {
                        _ if standing.group == waiting.unit => {
                            self.group_refused(&standing.group, &waiting.refusal, &sentence, now);
                        }
                        Some(own) => {
                            self.group_refused(&standing.group, own, &Text::from(own.to_string()), now);
                        }
                        None => self.group_refused(&standing.group, &waiting.refusal, &message, now),
                    }
                }
                message
            }
            UnitKey::Pod(_) => sentence,
        };
        for pod in &waiting.members {
            self.set_pod_condition(pod, reason, &message, due, now);
        }
        attempt
    }

    /// What is wrong with a group that counts as not being there because it was not understood.
    fn trouble_of(&self, refusal: &Refusal) -> Option<Text> {
        let (kind, key, known) = match refusal {
            Refusal::GroupMissing { group } => ("pod group", group, self.groups.get(group)),
            Refusal::CompositeMissing { composite } => {
                ("composite pod group", composite, self.composites.get(composite))
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
            self.waiting.remove(key);
            return;
        }
        self.waiting.insert(key.clone(), (reason, sentence.clone()));
        self.set_group_condition(key, ConditionStatus::False, reason, sentence.clone(), due, now);
        let Some(regarding) = self.about_group(key) else {
            return;
        };
        let complained_at = self.known_group_mut(key).and_then(|known| known.complained_at);
        let due = next_complaint(complained_at, due);
        self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, sentence.clone(), due, now);
    }

    /// A group was changed or made anew while it waits; its condition must speak of this one.
    pub(super) fn repeat_refusal(&mut self, key: &UnitKey, now: Time) {
        if let Some((reason, message)) = self.waiting.get(key).cloned() {
            self.set_group_condition(key, ConditionStatus::False, reason, message, now, now);
        }
    }

    /// Queues the condition of a group unless it says so already. True is final.
    fn set_group_condition(
        &mut self,
        key: &UnitKey,
        status: ConditionStatus,
        reason: &'static str,
        message: Text,
        due: Time,
        now: Time,
    ) {
        if !self.leadership.speaks() {
            return;
        }
        let kind = Text::from(match key {
            UnitKey::Composite(_) => COMPOSITE_CONDITION,
            UnitKey::Group(_) | UnitKey::Pod(_) => self.capabilities.group_condition,
        });
        let Some(known) = self.known_group_mut(key) else {
            return;
        };
        if known.scheduled.holds() {
            return;
        }
        let wanted = Wanted { kind, status, reason, message, observed_generation: known.generation };
        let Some(condition) = known.scheduled.next(&wanted, now) else {
            return;
        };
        let due = known.scheduled.not_before(&condition, due, GROUP_INTERVAL_SECONDS);
        known.scheduled.write(condition.clone());
        let uid = known.uid.clone();
        if let Some(total) = self.group_writes.put(key.clone(), (uid, condition), due) {
            let what = "conditions of pod groups";
            self.report(Fact::WritesDropped { what, total });
        }
    }

    /// Queues the condition of a pod that waits, and an event that says the same, unless it says so already.
    fn set_pod_condition(
        &mut self,
        key: &ObjectKey,
        reason: &'static str,
        message: &Text,
        due: Time,
        now: Time,
    ) {
        if !self.leadership.speaks() {
            return;
        }
        let Some(known) = self.pods.get_mut(key).filter(|known| known.node.is_none()) else {
            return;
        };
        let wanted = Wanted {
            kind: POD_SCHEDULED.into(),
            status: ConditionStatus::False,
            reason,
            message: message.clone(),
            observed_generation: 0,
        };
        let belief = known.scheduled.get_or_insert_default();
        let Some(condition) = belief.next(&wanted, now) else {
            return;
        };
        let write_due = belief.not_before(&condition, due, POD_INTERVAL_SECONDS);
        belief.write(condition.clone());
        let uid = known.uid.clone();
        let event_due = next_complaint(known.complained_at, due);
        if let Some(total) = self.pod_writes.put(key.clone(), (uid.clone(), condition), write_due) {
            let what = "conditions of pods";
            self.report(Fact::WritesDropped { what, total });
        }
        let regarding = about_pod(key, uid);
        self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message.clone(), event_due, now);
    }

    pub(super) fn announce_bound(&mut self, key: &ObjectKey, node: &Text, now: Time) {
        let Some(known) = self.pods.get(key) else {
            return;
        };
        let regarding = about_pod(key, known.uid.clone());
        let message = Text::from(format!("Successfully assigned {key} to {node}"));
        self.emit(regarding, Severity::Normal, SCHEDULED, message, now, now);
    }

    pub(super) fn complain_of_binding(&mut self, key: &ObjectKey, node: &Text, why: &Text, now: Time) {
        let Some(known) = self.pods.get(key) else {
            return;
        };
        let due = next_complaint(known.complained_at, now);
        let regarding = about_pod(key, known.uid.clone());
        let message = Text::from(format!("binding to node {node} failed: {why}"));
        self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, due, now);
    }

    /// Says something on a group.
    pub(super) fn tell_group(
        &mut self,
        key: &ObjectKey,
        severity: Severity,
        reason: &'static str,
        message: Text,
        now: Time,
    ) {
        if let Some(regarding) = self.about_group(&UnitKey::Group(key.clone())) {
            self.emit(regarding, severity, reason, message, now, now);
        }
    }

    /// A group or composite that was to start cannot be read.
    pub(super) fn cannot_be_read(&mut self, group: &UnitKey, why: &Text, now: Time) {
        let message = Text::from(format!("the group cannot be read before it starts: {why}"));
        if let Some(regarding) = self.about_group(group) {
            self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, now, now);
        }
    }

    /// An event goes out; another one of its kind has to wait.
    pub(super) fn complained(&mut self, note: &EventNote, now: Time) {
        if note.reason != FAILED_SCHEDULING {
            return;
        }
        let Regarding { kind, key, uid, .. } = &note.regarding;
        if kind == "Pod" {
            if let Some(known) = self.pods.get_mut(key).filter(|known| known.uid == *uid) {
                known.complained_at = Some(now);
            }
        } else {
            let known = [self.groups.get_mut(key), self.composites.get_mut(key)];
            for known in known.into_iter().flatten().filter(|known| known.uid == *uid) {
                known.complained_at = Some(now);
            }
        }
    }

    /// Takes back what was to be said about waiting.
    pub(super) fn withdraw_complaint(&mut self, uid: &Text) {
        self.events.cancel(&EventKey { uid: uid.clone(), reason: FAILED_SCHEDULING });
    }

    /// A pod was not understood. Somebody else's is only logged.
    pub(super) fn bad_pod(&mut self, pod: &Pod, ours: bool, errors: Vec<ObjectError>, now: Time) {
        let message = self.report_errors(errors);
        if ours {
            let regarding = about_pod(&pod.key, pod.uid.clone());
            self.emit(regarding, Severity::Warning, NOT_UNDERSTOOD, message.clone(), now, now);
            if pod.node.is_none() {
                self.set_pod_condition(&pod.key, SCHEDULER_ERROR, &message, now, now);
            }
        }
    }

    /// A node was not understood.
    pub(super) fn bad_node(&mut self, key: &ObjectKey, uid: Text, errors: Vec<ObjectError>, now: Time) {
        let regarding = Regarding { api_version: "v1".into(), kind: "Node".into(), key: key.clone(), uid };
        self.bad_object(regarding, errors, now);
    }

    /// An object was not understood, and learns it by an event.
    pub(super) fn bad_object(&mut self, regarding: Regarding, errors: Vec<ObjectError>, now: Time) {
        let message = self.report_errors(errors);
        self.emit(regarding, Severity::Warning, NOT_UNDERSTOOD, message, now, now);
    }

    /// A group was not understood.
    pub(super) fn bad_group(&mut self, key: &UnitKey, errors: Vec<ObjectError>, now: Time) {
        let message = self.report_errors(errors);
        self.set_group_condition(key, ConditionStatus::False, SCHEDULER_ERROR, message.clone(), now, now);
        if let Some(regarding) = self.about_group(key) {
            self.emit(regarding, Severity::Warning, NOT_UNDERSTOOD, message, now, now);
        }
    }

    /// Logs all errors and joins them for the object itself.
    fn report_errors(&mut self, errors: Vec<ObjectError>) -> Text {
        self.counters.bad_objects += 1;
        let details: Vec<String> = errors.iter().map(ObjectError::detail).collect();
        for error in errors {
            self.report(Fact::BadObject(error));
        }
        Text::from(details.join("; "))
    }

    fn about_group(&self, group: &UnitKey) -> Option<Regarding> {
        let (resource, known) = match group {
            UnitKey::Group(key) => (&self.capabilities.pod_group, self.groups.get(key)?),
            UnitKey::Composite(key) => (&self.capabilities.composite, self.composites.get(key)?),
            UnitKey::Pod(_) => return None,
        };
        let (resource, key) = (resource.as_ref()?, group.object());
        Some(Regarding {
            api_version: resource.api_version.clone().into(),
            kind: resource.kind.clone().into(),
            key: key.clone(),
            uid: known.uid.clone(),
        })
    }

    /// Queues an event, or makes one with what waits to be said about the same object for the same reason.
    fn emit(
        &mut self,
        regarding: Regarding,
        severity: Severity,
        reason: &'static str,
        message: Text,
        due: Time,
        now: Time,
    ) {
        if !self.leadership.speaks() {
            return;
        }
        let key = EventKey { uid: regarding.uid.clone(), reason };
        let (first, count) = match self.events.waiting(&key) {
            // Other words replace what was not said yet; the same words are one event that happened again.
            Some(waiting) if waiting.message == message => (waiting.first, waiting.count.saturating_add(1)),
            _ => (now, 1),
        };
        self.event_serial += 1;
        let note = EventNote {
            regarding,
            severity,
            reason,
            message,
            first,
            last: now,
            count,
            serial: self.event_serial,
        };
        if let Some(total) = self.events.put(key, note, due) {
            self.report(Fact::WritesDropped { what: "events", total });
        }
    }
}

/// True if a unit is merely not complete yet.
fn is_gathering(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::GroupMissing { .. }
            | Refusal::CompositeMissing { .. }
            | Refusal::TooFewMembers { .. }
            | Refusal::TooFewGroups { .. }
    )
}

fn reason_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Contradiction(_) | Refusal::Inconsistent { .. } => SCHEDULER_ERROR,
        _ => UNSCHEDULABLE,
    }
}

fn about_pod(key: &ObjectKey, uid: Text) -> Regarding {
    Regarding { api_version: "v1".into(), kind: "Pod".into(), key: key.clone(), uid }
}

/// When the next event about waiting may be written.
fn next_complaint(complained_at: Option<Time>, due: Time) -> Time {
    complained_at.map_or(due, |at| due.max(at.plus_seconds(COMPLAINT_INTERVAL_SECONDS)))
}
