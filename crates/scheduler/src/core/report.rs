//! What people are told: conditions and events.

use super::Core;
use super::counters::{Attempt, Outcome};
use super::groups::tree::CHILDREN_MAX;
use super::groups::written::{Wanted, growing};
use super::message::{EventKey, Fact};
use std::collections::{BTreeMap, BTreeSet};
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
/// There is no room. Autoscalers make nodes for pods that say so, and for no others.
const UNSCHEDULABLE: &str = "Unschedulable";
/// Room is not what is missing.
const NOT_READY: &str = "NotReadyForScheduling";
const SCHEDULER_ERROR: &str = "SchedulerError";
/// Where members find the numbers: those change all the time, and there are many members.
const SEE_GROUP: &str = "see its condition for what is missing";
/// Reason of events on objects that were not understood.
const NOT_UNDERSTOOD: &str = "NotUnderstood";

/// A unit that is not complete yet mostly will be in a moment; nobody needs to hear of it before this time.
const GATHERING_SECONDS: i64 = 2;
/// Least time between two messages on one group, and on one pod, that differ in words only. Every further one takes twice
/// as long.
const GROUP_INTERVAL_SECONDS: i64 = 1;
const POD_INTERVAL_SECONDS: i64 = 10;
/// Least time between two events on one object that say that it waits. Every further one takes twice as long.
const COMPLAINT_INTERVAL_SECONDS: i64 = 10;

/// The last event that said of an object that it waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complaint {
    at: Time,
    /// How many there were since it has the reason that it has.
    count: u32,
}

impl Core {
    /// A unit has a place.
    pub(super) fn placed(&mut self, placement: Placement, now: Time) -> Attempt {
        let member = placement.seats.first().map(|seat| &seat.pod);
        let attempt = self.count_attempt(&placement.unit, member, Outcome::Scheduled);
        self.waits_no_longer(&placement.unit, now);
        self.begin_start(placement, now);
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
            if self.pod_writes.cancel(&seat.pod)
                && let Some(condition_written) =
                    self.pods.get_mut(&seat.pod).and_then(|known| known.scheduled.as_mut())
            {
                condition_written.give_up();
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
        let message = match &waiting.unit {
            UnitKey::Group(key) => {
                self.group_refused(&waiting.unit, &waiting.refusal, &sentence, now);
                match self.job_pods.job_awaiting(key) {
                    Some(job) => Text::from(format!("waits for the PodGroup of Job {job}{WHO_MAKES_IT}")),
                    None => for_members("pod group", key, &waiting.refusal, &sentence, kept),
                }
            }
            UnitKey::Composite(key) => {
                let message = for_members("composite pod group", key, &waiting.refusal, &sentence, kept);
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
        // Members of a group that is not ready itself do not wait for room, whatever the rest of its tree waits for.
        let own: BTreeMap<&ObjectKey, &Refusal> = waiting
            .groups
            .iter()
            .filter_map(|standing| match &standing.group {
                UnitKey::Group(group) => Some((group, standing.waits.as_ref()?)),
                UnitKey::Composite(_) | UnitKey::Pod(_) => None,
            })
            .collect();
        for pod in &waiting.members {
            let group = self.pods.get(pod).and_then(|known| known.group.as_ref());
            let own = group.and_then(|group| own.get(group)).filter(|_| reason == UNSCHEDULABLE);
            let reason = own.map_or(reason, |own| reason_of(own));
            self.set_pod_condition(pod, reason, &message, due, now);
        }
        attempt
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
        let Some(known) = self.groups.object_mut(key) else {
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
        let is_new = known.scheduled.is_another_reason(&condition);
        known.scheduled.write(condition.clone());
        let write = (known.uid.clone(), condition);
        let dropped = match is_new {
            true => self.group_writes.put(key.clone(), write, due),
            false => self.group_writes.put_slow(key.clone(), write, due),
        };
        if let Some(total) = dropped {
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
        let condition_written = known.scheduled.get_or_insert_default();
        let Some(condition) = condition_written.next(&wanted, now) else {
            return;
        };
        let write_due = condition_written.not_before(&condition, due, POD_INTERVAL_SECONDS);
        let is_new = condition_written.is_another_reason(&condition);
        condition_written.write(condition.clone());
        let uid = known.uid.clone();
        if is_new {
            known.complaint = None;
        }
        let event_due = next_complaint(known.complaint, due);
        let write = (uid.clone(), condition);
        // A reason that is new goes to all members of a unit at once: autoscalers must not see a part of a gang.
        let dropped = match is_new {
            true => self.pod_writes.put(key.clone(), write, write_due),
            false => self.pod_writes.put_slow(key.clone(), write, write_due),
        };
        if let Some(total) = dropped {
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
        let due = next_complaint(known.complaint, now);
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
                known.complaint = Some(Complaint::next(known.complaint, now));
            }
        } else {
            for unit in [UnitKey::Group(key.clone()), UnitKey::Composite(key.clone())] {
                if let Some(known) = self.groups.object_mut(&unit).filter(|known| known.uid == *uid) {
                    known.complaint = Some(Complaint::next(known.complaint, now));
                }
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

    /// Says on a unit that it was set aside, because the scheduler broke over it.
    pub(super) fn say_set_aside(&mut self, unit: &UnitKey, seconds: u64, now: Time) {
        let message = Text::from(format!(
            "the scheduler broke over it, which is a mistake of the scheduler; it is tried again in {seconds} s"
        ));
        match unit {
            UnitKey::Pod(pod) => self.set_pod_condition(pod, SCHEDULER_ERROR, &message, now, now),
            UnitKey::Group(_) | UnitKey::Composite(_) => {
                let status = ConditionStatus::False;
                self.set_group_condition(unit, status, SCHEDULER_ERROR, message.clone(), now, now);
                if let Some(regarding) = self.about_group(unit) {
                    self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, now, now);
                }
            }
        }
    }

    /// Says on a composite that too many groups are part of it.
    pub(super) fn say_too_large(&mut self, composite: &ObjectKey, now: Time) {
        let message = too_large(composite, self.groups.children_count(composite));
        let unit = UnitKey::Composite(composite.clone());
        let status = ConditionStatus::False;
        self.set_group_condition(&unit, status, SCHEDULER_ERROR, message.clone(), now, now);
        if let Some(regarding) = self.about_group(&unit) {
            self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, now, now);
        }
    }

    /// Who reports about an object: the scheduler that its pods ask for. `None` leaves it to whoever writes it.
    fn reporter_of(&self, regarding: &Regarding) -> Option<Text> {
        let Regarding { kind, key, .. } = regarding;
        if kind == "Pod" {
            return self.pods.get(key).map(|known| known.scheduler.clone());
        }
        let is_composite =
            self.capabilities.composite.as_ref().is_some_and(|composite| composite.kind == *kind);
        match is_composite {
            true => {
                let groups = self.groups_below(vec![key.clone()]);
                groups.iter().find_map(|group| self.groups.scheduler(group)).cloned()
            }
            false => self.groups.scheduler(key).cloned(),
        }
    }

    fn about_group(&self, group: &UnitKey) -> Option<Regarding> {
        let (resource, known) = match group {
            UnitKey::Group(_) => (&self.capabilities.pod_group, self.groups.object(group)?),
            UnitKey::Composite(_) => (&self.capabilities.composite, self.groups.object(group)?),
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
        let reporter = self.reporter_of(&regarding);
        let note = EventNote {
            regarding,
            reporter,
            severity,
            reason,
            message,
            first,
            last: now,
            count,
            serial: self.event_serial,
        };
        let dropped = match reason == FAILED_SCHEDULING {
            true => self.events.put_slow(key, note, due),
            false => self.events.put(key, note, due),
        };
        if let Some(total) = dropped {
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

/// The reason of the condition. Only missing room is called [`UNSCHEDULABLE`]: an autoscaler would make nodes for it.
fn reason_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoRoom(_) | Refusal::Undecided(_) => UNSCHEDULABLE,
        Refusal::Contradiction(_) | Refusal::Inconsistent { .. } => SCHEDULER_ERROR,
        Refusal::GroupMissing { .. }
        | Refusal::CompositeMissing { .. }
        | Refusal::TooFewGroups { .. }
        | Refusal::TooFewMembers { .. }
        | Refusal::Unsupported(_)
        | Refusal::Claim { .. } => NOT_READY,
    }
}

/// What members of a group or composite are told. It stays the same while only numbers change: those are on the group.
fn for_members(kind: &str, key: &ObjectKey, refusal: &Refusal, sentence: &Text, kept: &str) -> Text {
    let name = &key.name;
    let what = match refusal {
        Refusal::NoRoom(_) => "has no room for as many members as it must have",
        Refusal::Undecided(_) => "found no room within the search budget, though there may be some",
        Refusal::TooFewMembers { .. } => "waits for more members",
        Refusal::TooFewGroups { .. } => "waits for more of its groups",
        Refusal::GroupMissing { .. }
        | Refusal::CompositeMissing { .. }
        | Refusal::Contradiction(_)
        | Refusal::Unsupported(_)
        | Refusal::Inconsistent { .. }
        | Refusal::Claim { .. } => return Text::from(format!("{kind} {name}: {sentence}")),
    };
    Text::from(format!("{kind} {name} {what}{kept}; {SEE_GROUP}"))
}

/// What is wrong with a composite that too many groups are part of.
fn too_large(composite: &ObjectKey, children: usize) -> Text {
    Text::from(format!(
        "{children} groups are part of composite pod group {composite}; at most {CHILDREN_MAX} can be placed together"
    ))
}

fn about_pod(key: &ObjectKey, uid: Text) -> Regarding {
    Regarding { api_version: "v1".into(), kind: "Pod".into(), key: key.clone(), uid }
}

impl Complaint {
    fn next(before: Option<Self>, now: Time) -> Self {
        Self { at: now, count: before.map_or(0, |before| before.count.saturating_add(1)) }
    }
}

/// When the next event about waiting may be written.
fn next_complaint(before: Option<Complaint>, due: Time) -> Time {
    before.map_or(due, |Complaint { at, count }| {
        due.max(at.plus_seconds(growing(COMPLAINT_INTERVAL_SECONDS, count)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_engine::refusal::{ClaimProblem, Contradiction, NoRoom, Unsupported};

    #[test]
    fn only_missing_room_is_called_unschedulable() {
        let key = ObjectKey::new("a", "g");
        let claim = |problem| Refusal::Claim { pod: key.clone(), claim: "c".into(), problem };
        let others = [
            Refusal::GroupMissing { group: key.clone() },
            Refusal::CompositeMissing { composite: key.clone() },
            Refusal::TooFewGroups { minimum: 2, ready: 1 },
            Refusal::TooFewMembers { minimum: 2, observed: 1, gated: 0 },
            Refusal::TooFewMembers { minimum: 2, observed: 1, gated: 1 },
            Refusal::Contradiction(Contradiction::Tree("circle".into())),
            Refusal::Contradiction(Contradiction::SchedulerNames(vec![])),
            Refusal::Contradiction(Contradiction::Priorities { group: None, members: vec![] }),
            Refusal::Unsupported(Unsupported::DeviceClaim("d".into())),
            claim(ClaimProblem::Missing),
            claim(ClaimProblem::OfAnotherPod),
            claim(ClaimProblem::Terminating),
            claim(ClaimProblem::Lost),
            claim(ClaimProblem::VolumeMissing { volume: "v".into() }),
            claim(ClaimProblem::Unbound),
            claim(ClaimProblem::ClassMissing { class: "c".into() }),
            claim(ClaimProblem::InUse { pod: "p".into() }),
        ];
        for refusal in others {
            assert_ne!(reason_of(&refusal), UNSCHEDULABLE, "{refusal:?}");
        }
        for refusal in [Refusal::NoRoom(NoRoom::default()), Refusal::Undecided(NoRoom::default())] {
            assert_eq!(reason_of(&refusal), UNSCHEDULABLE, "{refusal:?}");
        }
    }

    #[test]
    fn members_are_told_the_same_while_only_numbers_change() {
        let key = ObjectKey::new("a", "g");
        let told = |fit| {
            let refusal = Refusal::NoRoom(NoRoom { needed: 8, fit, ..NoRoom::default() });
            for_members("pod group", &key, &refusal, &refusal.to_string().into(), "")
        };
        assert_eq!(told(0), told(1));
        assert!(told(0).starts_with("pod group g has no room"));
    }
}
