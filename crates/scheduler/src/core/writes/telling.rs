//! Conditions and events: what is known to be said already, and what waits to be.

use super::super::groups::written::{Wanted, growing};
use super::super::message::{EventKey, Fact};
use super::super::report::{
    FAILED_SCHEDULING, NOT_UNDERSTOOD, SCHEDULER_ERROR, about_pod, set_aside, too_large,
};
use super::super::{Core, UnitKey};
use tutti_k8s::group::COMPOSITE_CONDITION;
use tutti_k8s::pod::POD_SCHEDULED;
use tutti_k8s::request::{EventNote, Regarding, SCHEDULED, Severity};
use tutti_k8s::{ConditionStatus, ObjectError};
use tutti_model::{ObjectKey, Pod, Text, Time};

/// Least time between two messages on one group, and on one pod, that differ in words only. Every further one takes twice
/// as long.
const GROUP_INTERVAL_SECONDS: i64 = 1;
const POD_INTERVAL_SECONDS: i64 = 10;
/// Least time between two events on one object that say that it waits. Every further one takes twice as long.
const COMPLAINT_INTERVAL_SECONDS: i64 = 10;

/// The last event that said of an object that it waits.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Complaint {
    at: Time,
    /// How many there were since it has the reason that it has.
    count: u32,
}

impl Complaint {
    fn next(before: Option<Self>, now: Time) -> Self {
        Self { at: now, count: before.map_or(0, |before| before.count.saturating_add(1)) }
    }
}

/// When the next event about waiting may be written.
pub(in super::super) fn next_complaint(before: Option<Complaint>, due: Time) -> Time {
    before.map_or(due, |Complaint { at, count }| {
        due.max(at.plus_seconds(growing(COMPLAINT_INTERVAL_SECONDS, count)))
    })
}

impl Core {
    /// Queues the condition of a group unless it says so already. True is final.
    pub(in super::super) fn set_group_condition(
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
    pub(in super::super) fn set_pod_condition(
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

    pub(in super::super) fn announce_bound(&mut self, key: &ObjectKey, node: &Text, now: Time) {
        let Some(known) = self.pods.get(key) else {
            return;
        };
        let regarding = about_pod(key, known.uid.clone());
        let message = Text::from(format!("Successfully assigned {key} to {node}"));
        self.emit(regarding, Severity::Normal, SCHEDULED, message, now, now);
    }

    pub(in super::super) fn complain_of_binding(
        &mut self,
        key: &ObjectKey,
        node: &Text,
        why: &Text,
        now: Time,
    ) {
        let Some(known) = self.pods.get(key) else {
            return;
        };
        let due = next_complaint(known.complaint, now);
        let regarding = about_pod(key, known.uid.clone());
        let message = Text::from(format!("binding to node {node} failed: {why}"));
        self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, due, now);
    }

    /// Says something on a group.
    pub(in super::super) fn tell_group(
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
    pub(in super::super) fn cannot_be_read(&mut self, group: &UnitKey, why: &Text, now: Time) {
        let message = Text::from(format!("the group cannot be read before it starts: {why}"));
        if let Some(regarding) = self.about_group(group) {
            self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, now, now);
        }
    }

    /// An event goes out; another one of its kind has to wait.
    pub(in super::super) fn complained(&mut self, note: &EventNote, now: Time) {
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
    pub(in super::super) fn withdraw_complaint(&mut self, uid: &Text) {
        self.events.cancel(&EventKey { uid: uid.clone(), reason: FAILED_SCHEDULING });
    }

    /// A pod was not understood. The pod of another scheduler is only logged.
    pub(in super::super) fn bad_pod(&mut self, pod: &Pod, ours: bool, errors: Vec<ObjectError>, now: Time) {
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
    pub(in super::super) fn bad_node(
        &mut self,
        key: &ObjectKey,
        uid: Text,
        errors: Vec<ObjectError>,
        now: Time,
    ) {
        let regarding = Regarding { api_version: "v1".into(), kind: "Node".into(), key: key.clone(), uid };
        self.bad_object(regarding, errors, now);
    }

    /// An object was not understood, and learns it by an event.
    pub(in super::super) fn bad_object(&mut self, regarding: Regarding, errors: Vec<ObjectError>, now: Time) {
        let message = self.report_errors(errors);
        self.emit(regarding, Severity::Warning, NOT_UNDERSTOOD, message, now, now);
    }

    /// A group was not understood.
    pub(in super::super) fn bad_group(&mut self, key: &UnitKey, errors: Vec<ObjectError>, now: Time) {
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
    pub(in super::super) fn say_set_aside(&mut self, unit: &UnitKey, seconds: u64, now: Time) {
        let message = set_aside(seconds);
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
    pub(in super::super) fn say_too_large(&mut self, composite: &ObjectKey, now: Time) {
        let message = too_large(composite, self.groups.children_count(composite));
        let unit = UnitKey::Composite(composite.clone());
        let status = ConditionStatus::False;
        self.set_group_condition(&unit, status, SCHEDULER_ERROR, message.clone(), now, now);
        if let Some(regarding) = self.about_group(&unit) {
            self.emit(regarding, Severity::Warning, FAILED_SCHEDULING, message, now, now);
        }
    }

    /// Who reports about an object: the scheduler that its pods ask for. `None` leaves it to the process that writes it.
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

    pub(in super::super) fn about_group(&self, group: &UnitKey) -> Option<Regarding> {
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
    pub(in super::super) fn emit(
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
