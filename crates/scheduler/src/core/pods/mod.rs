//! Pods: one row for each, from the first sight of it until it is gone.
//!
//! * `job_pods`: pods whose group follows from their Job;
//! * `default_spread`: pods that are spread by default, because they do the same.

pub(super) mod default_spread;
pub(super) mod job_pods;

use super::facts::{Sighting, Source};
use super::groups::written::ConditionWritten;
use super::waits::Constraint;
use super::writes::telling::Complaint;
use super::{Core, MemberState};
use std::sync::Arc;
use tutti_engine::{Event, UnitKey};
use tutti_k8s::gangs::JobReading;
use tutti_k8s::{ObjectKind, PodReading};
use tutti_model::{LabelSelector, ObjectKey, Pod, Text, Time};

/// What is known of a pod.
#[derive(Debug)]
pub(super) struct PodRow {
    pub(super) uid: Text,
    pub(super) version: Text,
    /// Where it is; never unlearned, because a pod never leaves its node.
    pub(super) node: Option<Text>,
    /// The pod as the engine has it: while we may have to place it, and, since an answer said where it is, until the watch
    /// says the same, which then is no news.
    pub(super) pod: Option<Box<Pod>>,
    /// The pod as it was last read, while something else decides what becomes of that: a binding that is under way, or the
    /// group of its Job.
    pub(super) kept: Option<Box<PodReading>>,
    /// True if the engine was told of it.
    pub(super) told: bool,
    /// Its condition, while we may have to speak of it.
    pub(super) scheduled: Option<Box<ConditionWritten>>,
    /// The last event that said that it waits.
    pub(super) complaint: Option<Complaint>,
    /// Version whose errors were reported.
    pub(super) reported: Option<Text>,
    /// Whether it is for us to place.
    pub(super) ours: bool,
    /// The scheduler that it asks for, which is who reports about it.
    pub(super) scheduler: Text,
    /// Whether it is made again if it is deleted.
    pub(super) controlled: bool,
    /// Its group, and what it is to it.
    pub(super) group: Option<ObjectKey>,
    pub(super) standing: MemberState,
    /// Whom it is like, or was when it got its place.
    pub(super) like: Option<Arc<LabelSelector>>,
    /// When it was first seen waiting.
    pub(super) waits_since: Option<Time>,
    /// What it waits for on its own, and since when.
    pub(super) waits_for: Option<(Constraint, Time)>,
    /// When it may be deleted again, if it was to be.
    pub(super) evict_after: Option<Time>,
    /// Until when a deletion that was sent may still happen, whatever was heard of it.
    pub(super) may_go_until: Option<Time>,
}

impl PodRow {
    /// The pod, if we may have to place it.
    pub(super) fn unbound(&self) -> Option<&Pod> {
        self.pod.as_deref().filter(|pod| pod.node.is_none())
    }
}

impl Core {
    /// Takes in a pod.
    ///
    /// A pod that was not understood is never placed. If it has a node already it is counted with what could be
    /// read of it: leaving it out would call its whole room free.
    pub(super) fn pod_set(&mut self, reading: PodReading, now: Time) {
        let PodReading { pod: Pod { key, uid, .. }, version, errors, .. } = &reading;
        let seen = Sighting { kind: ObjectKind::Pod, key, uid, version };
        if self.can_be_named(key, errors) && self.admits(&seen, Source::Watch) {
            self.read_pod(reading, now);
        }
    }

    /// Takes in a pod as it was read, just now or before something else became known.
    fn read_pod(&mut self, mut reading: PodReading, now: Time) {
        let is_on_its_way = reading.pod.node.is_none() && self.starts.bindings.contains(&reading.pod.key);
        let awaits_group = self.job_pods.awaits_group(&reading, !self.synced);
        let kept = (is_on_its_way || awaits_group).then(|| Box::new(reading.clone()));
        self.job_pods.complete(&mut reading, !self.synced);
        let PodReading { mut pod, version, scheduled, controlled, job: _, replicator, errors } = reading;
        let key = pod.key.clone();
        if self.pods.get(&key).is_some_and(|known| known.uid != pod.uid) {
            self.forget_pod(&key, now);
        }
        match self.pods.get(&key) {
            // Decided on without its group; it stays so until the outcome is known.
            Some(known) if known.group != pod.group && self.starts.bindings.contains(&key) => {
                pod.group.clone_from(&known.group);
            }
            // The group that it belongs to by its Job was found since.
            Some(known) if known.group != pod.group => {
                pod.node = pod.node.or_else(|| known.node.clone());
                self.forget_pod(&key, now);
            }
            _ => {}
        }
        let ours = self.config.serves(&pod.scheduler_name);
        if !self.pods.contains_key(&key) {
            self.meet_pod(&pod, version.clone(), ours, now);
        }
        let Some(known) = self.pods.get_mut(&key) else {
            return;
        };
        known.kept = kept;
        known.version = version.clone();
        known.controlled = controlled;
        let newly_bound = known.node.is_none() && pod.node.is_some();
        match (&known.node, &pod.node) {
            (None, Some(node)) => known.node = Some(node.clone()),
            // A picture of the pod from before it was bound.
            (Some(node), None) => pod.node = Some(node.clone()),
            _ => {}
        }
        let standing = MemberState::of(&pod, controlled);
        if ours && pod.node.is_none() {
            known.scheduled.get_or_insert_default().see(scheduled);
        } else {
            known.scheduled = None;
        }
        let broken = !errors.is_empty();
        let placeable = !broken && ours && pod.node.is_none();
        self.set_default_spread(&mut pod, replicator, placeable);
        let Some(known) = self.pods.get_mut(&key) else {
            return;
        };
        let before = std::mem::replace(&mut known.pod, placeable.then(|| Box::new(pod.clone())));
        let is_news = before.is_none_or(|before| before.node.is_none() || *before != pod);
        let report = broken && known.reported.as_ref() != Some(&version);
        if report {
            known.reported = Some(version);
        }
        let (unreadable, has_ended) =
            (report.then(|| pod.clone()), pod.terminating || pod.phase.is_terminal());
        let node = pod.node.clone();
        if broken && node.is_none() {
            // On its way to a node it stays as it was decided on, until the outcome is known.
            if known.told && !self.starts.bindings.contains(&key) {
                known.told = false;
                self.seat_ends(&key, now);
                self.tell(Event::PodGone(key.clone()), now);
            }
        } else {
            known.told = true;
            if is_news {
                self.tell(Event::PodSet(Box::new(pod)), now);
            }
        }
        self.set_standing(&key, standing);
        if has_ended {
            // Of a pod that goes nothing has to be said any more, and an autoscaler must not make a node for it.
            self.evictions.cancel(&key);
            self.pod_writes.cancel(&key);
        }
        if let Some(pod) = unreadable {
            self.bad_pod(&pod, ours, errors, now);
        }
        if newly_bound && let Some(node) = node {
            self.pod_has_node(&key, &node, now);
        }
    }

    /// Takes in a Job: its pods may have to wait for its group, or need not any more.
    pub(super) fn job_set(&mut self, job: &JobReading, now: Time) {
        if job.key.name.is_empty() {
            return;
        }
        self.listed(ObjectKind::Job, &job.key);
        let serves = |name: &str| self.config.serves(name);
        let awaits_group = self.job_groups.as_ref().is_some_and(|api| job.asks.awaits_groups(api, serves));
        let concerned = self.job_pods.job_seen(&job.key, &job.uid, awaits_group);
        self.read_kept(&concerned, now);
    }

    /// Pods of Jobs that were not seen wait for them where Jobs can be read.
    pub(super) fn await_jobs(&mut self, now: Time) {
        let awaits = self.may_be_listed(ObjectKind::Job);
        let concerned = self.job_pods.await_unseen(awaits);
        self.read_kept(&concerned, now);
    }

    /// What pods depended on has become known: what was read of them counts now.
    pub(super) fn read_kept(&mut self, pods: &[ObjectKey], now: Time) {
        for pod in pods {
            if let Some(reading) = self.pods.get_mut(pod).and_then(|known| known.kept.take()) {
                self.read_pod(*reading, now);
            }
        }
    }

    /// All first lists are in: a pod that has a node and no group has started without one, and need not be kept.
    pub(super) fn drop_kept(&mut self) {
        for pod in self.job_pods.all_listed() {
            let kept = self.pods.get_mut(&pod).map(|known| &mut known.kept);
            if kept.is_some_and(|kept| kept.take_if(|reading| reading.pod.node.is_some()).is_some()) {
                self.job_pods.not_kept(&pod);
            }
        }
    }

    /// Only what is waited for is kept of pods.
    pub(super) fn check_pods(&self) -> Result<(), String> {
        for pod in self.job_pods.kept() {
            let has_kept = self.pods.get(pod).is_some_and(|known| known.kept.is_some());
            super::starts::ensure(has_kept, || {
                format!("nothing is kept of {pod}, which may get another group")
            })?;
        }
        for (key, known) in &self.pods {
            let is_waiting = known.unbound().is_some();
            super::starts::ensure(!is_waiting || (known.node.is_none() && known.told), || {
                format!("{key} waits, and is on a node or unknown to the engine")
            })?;
        }
        Ok(())
    }

    fn meet_pod(&mut self, pod: &Pod, version: Text, ours: bool, now: Time) {
        let known = PodRow {
            uid: pod.uid.clone(),
            version,
            node: None,
            pod: None,
            kept: None,
            told: false,
            scheduled: None,
            complaint: None,
            reported: None,
            ours,
            scheduler: pod.scheduler_name.clone(),
            controlled: false,
            group: pod.group.clone(),
            standing: MemberState::default(),
            like: None,
            waits_since: pod.node.is_none().then_some(now),
            waits_for: None,
            evict_after: None,
            may_go_until: None,
        };
        self.pods.insert(pod.key.clone(), known);
        if let Some(group) = &pod.group {
            self.joins(group, ours.then_some(&pod.scheduler_name), true);
        }
    }

    pub(super) fn pod_gone(&mut self, key: &ObjectKey, now: Time) {
        self.job_pods.pod_gone(key);
        self.forget_pod(key, now);
    }

    fn forget_pod(&mut self, key: &ObjectKey, now: Time) {
        self.set_standing(key, MemberState::Absent);
        self.seat_ends(key, now);
        self.default_spread.leaves(key);
        self.waits_no_longer(&UnitKey::Pod(key.clone()), now);
        let Some(known) = self.pods.remove(key) else {
            return;
        };
        if let Some(group) = &known.group {
            self.joins(group, known.ours.then_some(&known.scheduler), false);
        }
        self.evictions.cancel(key);
        self.pod_writes.cancel(key);
        self.withdraw_complaint(&known.uid);
        if known.told {
            self.tell(Event::PodGone(key.clone()), now);
        }
    }
}
