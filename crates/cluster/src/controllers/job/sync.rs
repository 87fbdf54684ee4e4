//! One look at a Job that has not finished.

use super::accounts::{Accounts, count, has_failed};
use super::indexes::Indexes;
use super::policies::{Verdict, enough, judge};
use super::view::{JobSpec, JobStatus, JobView};
use super::{Resources, TRACKING, pods};
use crate::controllers::conditions::{self, Says};
use crate::controllers::{owners, rank};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tutti_controllers::{Action, Edit, Note, Plan, PodView, Severity, is_active, is_ready, stamp};

/// Pods that are made or deleted in one go.
const PODS_PER_PLAN_MAX: usize = 500;
/// How often pods may fail where a Job does not say.
const BACKOFF_LIMIT_DEFAULT: u32 = 6;
/// Pause after the first failure; it doubles with every further one until a pod succeeds.
const FAILURE_PAUSE_FIRST: SignedDuration = SignedDuration::from_secs(10);
const FAILURE_PAUSE_LONGEST: SignedDuration = SignedDuration::from_secs(600);
/// Times that a condition of a Job notes besides its transition.
const MOMENTS: [&str; 1] = ["lastProbeTime"];

/// How a Job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    succeeded: bool,
    reason: String,
    message: String,
}

impl End {
    fn failed(reason: &str, message: &str) -> Self {
        Self { succeeded: false, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// The conditions that announce it and that seal it.
    fn kinds(&self) -> (&'static str, &'static str) {
        if self.succeeded { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") }
    }
}

/// All that one look needs.
pub(super) struct Sync<'a> {
    job: &'a JobView,
    spec: &'a JobSpec,
    pods: &'a [&'a PodView],
    resources: &'a Resources,
    now: Timestamp,
    /// Pods that have neither ended nor are being deleted.
    active: Vec<&'a PodView>,
    about: Arc<ObjectReference>,
    /// The status to be.
    status: JobStatus,
    plan: Plan,
}

impl<'a> Sync<'a> {
    pub(super) fn new(
        job: &'a JobView,
        spec: &'a JobSpec,
        pods: &'a [&'a PodView],
        resources: &'a Resources,
        now: Timestamp,
    ) -> Self {
        let active: Vec<&PodView> = pods.iter().copied().filter(|pod| is_active(pod)).collect();
        let mut status = job.status.0.clone();
        if status.start_time.is_none() && !spec.is_suspended() {
            status.start_time = Some(Time(now));
        }
        status.active = count(active.iter());
        status.ready = Some(count(active.iter().filter(|pod| is_ready(pod))));
        status.terminating = Some(count(pods.iter().filter(|pod| pod.is_terminating() && !pod.has_ended())));
        let about = owners::reference(job, &resources.jobs);
        Self { job, spec, pods, resources, now, active, about, status, plan: Plan::nothing() }
    }

    pub(super) fn plan(mut self) -> Plan {
        let stored = &self.job.status.0;
        let mut accounts = Accounts::of(self.spec, stored, self.pods, false);
        let mut end = self.end_in_sight(&accounts);
        if let Some(end) = &end {
            if !end.succeeded {
                accounts = Accounts::of(self.spec, stored, self.pods, true);
            }
            self.stop_everything();
        } else {
            if !self.job.is_terminating() {
                self.manage(&accounts);
            }
            end = self.completion(&accounts);
            if end.is_none() && !self.job.is_terminating() {
                self.note_suspension();
            }
        }
        for pod in &accounts.released {
            let patch = pod.without_finalizer(TRACKING);
            self.plan.actions.push(Action::patch(&self.resources.pods, pod.key(), patch));
        }
        if let Some(end) = &end {
            self.finish(end, &accounts);
        }
        self.write_status(&accounts);
        self.plan
    }

    /// How the Job ends, if that is decided.
    fn end_in_sight(&mut self, accounts: &Accounts<'_>) -> Option<End> {
        for (kind, succeeded) in [("SuccessCriteriaMet", true), ("FailureTarget", false)] {
            let conditions = &self.status.conditions;
            if conditions::holds(conditions, kind) {
                let text = |field| conditions::text(conditions, kind, field).to_owned();
                return Some(End { succeeded, reason: text("reason"), message: text("message") });
            }
        }
        for pod in self.pods {
            if let Verdict::FailsJob(message) = judge(self.spec.pod_failure_policy.as_ref(), pod) {
                return Some(End::failed("PodFailurePolicy", &message));
            }
        }
        let limit = self.spec.backoff_limit.unwrap_or(BACKOFF_LIMIT_DEFAULT);
        if accounts.failed_total > limit || self.restarts_exceed(limit) {
            return Some(End::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        if let (Some(seconds), Some(start), false) =
            (self.spec.active_deadline_seconds, &self.status.start_time, self.spec.is_suspended())
        {
            let deadline = later(start.0, SignedDuration::from_secs(seconds));
            if self.now >= deadline {
                return Some(End::failed(
                    "DeadlineExceeded",
                    "Job was active longer than specified deadline",
                ));
            }
            self.plan.again_at(deadline);
        }
        let completions = self.spec.completions.filter(|_| self.spec.is_indexed())?;
        let message = enough(self.spec.success_policy.as_ref(), &accounts.completed, completions)?;
        Some(End { succeeded: true, reason: "SuccessPolicy".to_owned(), message })
    }

    /// Pods that are started again in place fail without ending.
    fn restarts_exceed(&self, limit: u32) -> bool {
        if !self.spec.restarts_in_place() {
            return false;
        }
        let restarts: i64 = self.active.iter().map(|pod| pod.restarts()).sum();
        if limit == 0 { restarts > 0 } else { restarts >= i64::from(limit) }
    }

    /// Deletes what still runs. Finalizers stay: whoever is deleted now is accounted for when that is seen.
    fn stop_everything(&mut self) {
        let running: Vec<&PodView> = self.active.iter().copied().take(PODS_PER_PLAN_MAX).collect();
        self.delete(&running, false);
    }

    /// Makes or deletes pods until as many are active as should be.
    fn manage(&mut self, accounts: &Accounts<'_>) {
        let active = count(self.active.iter());
        let wanted = self.wanted(accounts, active);
        let surplus = self.surplus(active.saturating_sub(wanted) as usize);
        if !surplus.is_empty() {
            self.delete(&surplus, true);
            return;
        }
        let going = if self.spec.replaces_failed_only() { self.status.terminating.unwrap_or(0) } else { 0 };
        let missing = wanted.saturating_sub(active).saturating_sub(going) as usize;
        if missing == 0 {
            return;
        }
        if let Some(due) = self.pause_after_failures().filter(|due| *due > self.now) {
            self.plan.again_at(due);
            return;
        }
        self.create(missing.min(PODS_PER_PLAN_MAX), accounts);
    }

    fn wanted(&self, accounts: &Accounts<'_>, active: u32) -> u32 {
        let parallelism = self.spec.parallelism.unwrap_or(1);
        match self.spec.completions {
            _ if self.spec.is_suspended() => 0,
            Some(completions) => completions.saturating_sub(accounts.succeeded_total).min(parallelism),
            // The first success means that the work is done; whoever runs may finish.
            None if accounts.succeeded_total > 0 => active,
            None => parallelism,
        }
    }

    /// Pods to delete: at least so many, and all that share an index with another or have none.
    fn surplus(&self, at_least: usize) -> Vec<&'a PodView> {
        let mut left = self.active.clone();
        rank::most_dispensable_first(&mut left, &rank::crowds(self.active.iter().copied()));
        let mut surplus = Vec::new();
        if self.spec.is_indexed() && !self.spec.is_suspended() {
            let mut taken = BTreeSet::new();
            let (keep, go): (Vec<_>, Vec<_>) = left.into_iter().rev().partition(|pod| {
                pods::index_of(pod, self.spec.completions).is_some_and(|index| taken.insert(index))
            });
            surplus = go;
            left = keep;
            left.reverse();
        }
        let more = at_least.saturating_sub(surplus.len());
        surplus.extend(left.into_iter().take(more));
        surplus.truncate(PODS_PER_PLAN_MAX);
        surplus
    }

    /// When the next pod may be made: failures in a row are answered more and more slowly.
    fn pause_after_failures(&self) -> Option<Timestamp> {
        let ended = |pod: &&&PodView| pod.finished_at().unwrap_or_else(|| pod.created());
        let succeeded = self.pods.iter().filter(|pod| pod.status.phase.0 == "Succeeded");
        let last_success = succeeded.map(|pod| ended(&pod)).max();
        let failures: Vec<Timestamp> = self
            .pods
            .iter()
            .filter(|pod| has_failed(pod, self.spec))
            .map(|pod| ended(&pod))
            .filter(|time| last_success.is_none_or(|success| *time > success))
            .collect();
        let doublings = count(failures.iter()).checked_sub(1)?.min(16);
        let pause = FAILURE_PAUSE_FIRST.checked_mul(1 << doublings).unwrap_or(FAILURE_PAUSE_LONGEST);
        Some(later(*failures.iter().max()?, pause.min(FAILURE_PAUSE_LONGEST)))
    }

    fn create(&mut self, missing: usize, accounts: &Accounts<'_>) {
        let indexes: Vec<Option<u32>> = if self.spec.is_indexed() {
            let running: Vec<u32> =
                self.active.iter().filter_map(|pod| pods::index_of(pod, self.spec.completions)).collect();
            free_indexes(&accounts.completed, running, self.spec.completions.unwrap_or(0), missing)
        } else {
            vec![None; missing]
        };
        self.status.active += count(indexes.iter());
        for index in indexes {
            self.plan.actions.push(Action::Create {
                resource: Arc::clone(&self.resources.pods),
                namespace: self.job.key().namespace,
                object: Box::new(pods::new_pod(self.job, self.spec, index, self.resources)),
                told_on: Some(Arc::clone(&self.about).into()),
            });
        }
    }

    /// Deletes active pods. Those that the Job has no use for are not accounted for.
    fn delete(&mut self, pods: &[&PodView], uncounted: bool) {
        for pod in pods {
            let first = (uncounted && pod.has_finalizer(TRACKING)).then(|| pod.without_finalizer(TRACKING));
            self.plan.actions.push(Action::Delete {
                resource: Arc::clone(&self.resources.pods),
                key: pod.key(),
                uid: pod.uid().to_owned(),
                now: false,
                first,
                told_on: Some(Arc::clone(&self.about)),
            });
        }
        self.status.active = self.status.active.saturating_sub(count(pods.iter()));
        let ready = count(pods.iter().filter(|pod| is_ready(pod)));
        self.status.ready = self.status.ready.map(|all| all.saturating_sub(ready));
        self.status.terminating = self.status.terminating.map(|all| all + count(pods.iter()));
    }

    /// The end of a Job whose work is done.
    fn completion(&self, accounts: &Accounts<'_>) -> Option<End> {
        let needed = self.spec.completions.unwrap_or(1);
        let done = accounts.succeeded_total >= needed && self.status.active == 0;
        // Nobody asked for a pod, so none will ever say that the work is done.
        let done = done && (self.spec.completions.is_some() || accounts.succeeded_total > 0);
        done.then(|| End {
            succeeded: true,
            reason: "CompletionsReached".to_owned(),
            message: "Reached expected number of succeeded pods".to_owned(),
        })
    }

    fn note_suspension(&mut self) {
        let known = conditions::find(&self.status.conditions, "Suspended").is_some();
        let (status, reason, message, event) = if self.spec.is_suspended() {
            ("True", "JobSuspended", "Job suspended", "Suspended")
        } else {
            ("False", "JobResumed", "Job resumed", "Resumed")
        };
        // A Job that was never suspended has nothing to say about it.
        if !known && !self.spec.is_suspended() {
            return;
        }
        let says = Says { kind: "Suspended", status, reason, message };
        if conditions::set(&mut self.status.conditions, says, &MOMENTS, self.now) {
            // A suspended Job does not age; its deadline counts from when it goes on.
            self.status.start_time = (!self.spec.is_suspended()).then_some(Time(self.now));
            self.tell(Severity::Normal, event, message);
        }
    }

    /// Announces the end; once that is stored and nobody is left to account for, seals it.
    fn finish(&mut self, end: &End, accounts: &Accounts<'_>) {
        let (announced, sealed) = end.kinds();
        let announced_before = conditions::holds(&self.job.status.0.conditions, announced);
        let says = |kind| Says { kind, status: "True", reason: &end.reason, message: &end.message };
        conditions::set(&mut self.status.conditions, says(announced), &MOMENTS, self.now);
        let quiet = self.status.active == 0 && self.status.terminating == Some(0) && !accounts.is_open;
        let counted = accounts.uncounted.succeeded.is_empty() && accounts.uncounted.failed.is_empty();
        if !(announced_before && quiet && counted) {
            return;
        }
        conditions::set(&mut self.status.conditions, says(sealed), &MOMENTS, self.now);
        if end.succeeded {
            self.status.completion_time = Some(Time(self.now));
            self.tell(Severity::Normal, "Completed", "Job completed");
        } else {
            let reason = match end.reason.as_str() {
                "BackoffLimitExceeded" => "BackoffLimitExceeded",
                "DeadlineExceeded" => "DeadlineExceeded",
                "PodFailurePolicy" => "PodFailurePolicy",
                _ => "Failed",
            };
            self.tell(Severity::Warning, reason, &end.message);
        }
        if let Some(seconds) = self.spec.ttl_seconds_after_finished {
            self.plan.again_at(later(self.now, SignedDuration::from_secs(seconds)));
        }
    }

    fn tell(&mut self, severity: Severity, reason: &'static str, message: &str) {
        let note = Note { about: Arc::clone(&self.about), severity, reason, message: message.to_owned() };
        self.plan.actions.push(Action::Tell(note));
    }

    fn write_status(&mut self, accounts: &Accounts<'_>) {
        self.status.succeeded = accounts.succeeded;
        self.status.failed = accounts.failed;
        self.status.uncounted_terminated_pods = Some(accounts.uncounted.clone());
        if self.spec.is_indexed() {
            let text = accounts.completed.to_string();
            self.status.completed_indexes = Some(text).filter(|text| !text.is_empty());
        }
        if self.status == self.job.status.0 {
            return;
        }
        let status = to_patch(&self.status, &self.job.status.0);
        let patch = json!({
            "metadata": {"uid": self.job.uid(), "resourceVersion": self.job.version()}, "status": status,
        });
        self.plan.actions.push(Action::patch(&self.resources.jobs, self.job.key(), Edit::status(patch)));
    }
}

/// The merge patch from one status to another.
fn to_patch(to: &JobStatus, from: &JobStatus) -> Value {
    let time = |time: &Option<Time>| time.as_ref().map(|time| stamp(time.0));
    let of = |status: &JobStatus| -> Map<String, Value> {
        let fields = [
            ("active", json!(status.active)),
            ("ready", json!(status.ready)),
            ("terminating", json!(status.terminating)),
            ("succeeded", json!(status.succeeded)),
            ("failed", json!(status.failed)),
            ("completedIndexes", json!(status.completed_indexes)),
            ("uncountedTerminatedPods", json!(status.uncounted_terminated_pods)),
            ("startTime", json!(time(&status.start_time))),
            ("completionTime", json!(time(&status.completion_time))),
            ("conditions", json!(status.conditions)),
        ];
        fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
    };
    let before = of(from);
    let mut changed = of(to);
    changed.retain(|field, value| before.get(field) != Some(value));
    if changed.contains_key("uncountedTerminatedPods") {
        // Both lists are named, because a merge keeps what a patch does not mention.
        let uncounted = to.uncounted_terminated_pods.clone().unwrap_or_default();
        let list = |uids: Vec<String>| if uids.is_empty() { Value::Null } else { json!(uids) };
        changed.insert(
            "uncountedTerminatedPods".to_owned(),
            json!({"succeeded": list(uncounted.succeeded), "failed": list(uncounted.failed)}),
        );
    }
    changed.into()
}

/// The lowest indexes that neither succeeded nor run.
fn free_indexes(done: &Indexes, running: Vec<u32>, end: u32, count: usize) -> Vec<Option<u32>> {
    let running: BTreeSet<u32> = running.into_iter().collect();
    let free = (0..end).filter(|index| !done.contains(*index) && !running.contains(index));
    free.take(count).map(Some).collect()
}

fn later(time: Timestamp, delay: SignedDuration) -> Timestamp {
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}
