//! Jobs: so many pods have to succeed, so many may run at a time.
//!
//! [`plan`] is the whole controller. Every pod of a Job carries a finalizer until it is accounted for: first its
//! uid is noted in the status, then the finalizer goes, then the count goes up – each step is planned when the one
//! before has been seen, so a crash between any two loses nothing.
//!
//! Failures per index (`backoffLimitPerIndex`) are not kept here; such a Job is refused with an event.

mod accounts;
mod indexes;
mod pods;
mod policies;
mod sync;
mod view;

pub(crate) use self::view::{JobSpec, JobStatus, JobView};

use super::{conditions, owners};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::core::ApiResource;
use std::sync::Arc;
use tutti_controllers::{Action, Note, Plan, PodView, Severity};

/// What every pod of a Job keeps until it is accounted for.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label of the pods of an indexed Job.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// What `spec.managedBy` is for Jobs that are managed here.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The resources that Jobs are made of.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) jobs: Arc<ApiResource>,
    pub(super) pods: Arc<ApiResource>,
}

impl Default for Resources {
    fn default() -> Self {
        Self { jobs: Arc::new(ApiResource::erase::<Job>(&())), pods: tutti_controllers::pods() }
    }
}

/// What is to be done about a Job, given its pods.
pub(super) fn plan(job: &JobView, pods: &[&PodView], resources: &Resources, now: Timestamp) -> Plan {
    let Ok(spec) = &job.spec.0 else {
        return Plan::nothing();
    };
    if spec.managed_by.as_deref().is_some_and(|manager| manager != MANAGER) {
        return Plan::nothing();
    }
    if spec.backoff_limit_per_index.is_some() {
        return Plan::one(Action::Tell(Note {
            about: owners::reference(job, &resources.jobs),
            severity: Severity::Warning,
            reason: "Unsupported",
            message: "spec.backoffLimitPerIndex is not supported by this cluster: the Job does not start"
                .to_owned(),
        }));
    }
    if is_finished(&job.status.0) {
        return plan_finished(job, spec, pods, resources, now);
    }
    sync::Sync::new(job, spec, pods, resources, now).plan()
}

/// A pod whose Job is gone has nobody who would account for it.
pub(super) fn release(pod: &PodView, resources: &Resources) -> Option<Action> {
    pod.has_finalizer(TRACKING)
        .then(|| Action::patch(&resources.pods, pod.key(), pod.without_finalizer(TRACKING)))
}

fn is_finished(status: &JobStatus) -> bool {
    conditions::holds(&status.conditions, "Complete") || conditions::holds(&status.conditions, "Failed")
}

/// A finished Job goes when its time is over.
fn plan_finished(
    job: &JobView,
    spec: &JobSpec,
    pods: &[&PodView],
    resources: &Resources,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::nothing();
    plan.actions.extend(pods.iter().filter_map(|pod| release(pod, resources)));
    let Some(seconds) = spec.ttl_seconds_after_finished.filter(|_| !job.is_terminating()) else {
        return plan;
    };
    let since = ["Complete", "Failed"].iter().find_map(|kind| {
        conditions::text(&job.status.0.conditions, kind, "lastTransitionTime").parse::<Timestamp>().ok()
    });
    let due = since.unwrap_or(now).checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    if now < due {
        plan.again_at(due);
    } else {
        plan.actions.push(Action::Delete {
            resource: Arc::clone(&resources.jobs),
            key: job.key(),
            uid: job.uid().to_owned(),
            now: false,
            first: None,
            told_on: None,
        });
    }
    plan
}
