//! Who has ended, and who of them is in the counts.

use super::indexes::Indexes;
use super::policies::{Verdict, judge};
use super::view::{JobSpec, JobStatus, Uncounted};
use super::{TRACKING, pods};
use std::collections::BTreeSet;
use tutti_controllers::PodView;

/// Pods that are accounted for at a time: the status holds their uids meanwhile.
const UNCOUNTED_MAX: usize = 500;

/// The counts of a Job, as far as its status and its pods tell.
#[derive(Debug, Default)]
pub(super) struct Accounts<'a> {
    /// Counts to write.
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    /// Pods between "has ended" and "is counted", to write.
    pub(super) uncounted: Uncounted,
    /// Indexes that have succeeded, to write.
    pub(super) completed: Indexes,
    /// Pods that are accounted for in the status as it is stored and can go.
    pub(super) released: Vec<&'a PodView>,
    /// Some pod has yet to be accounted for.
    pub(super) is_open: bool,
    /// All successes and failures, counted or not.
    pub(super) succeeded_total: u32,
    pub(super) failed_total: u32,
}

/// True if a pod counts as failed. One that is being deleted does, unless the Job waits for its real end.
pub(super) fn has_failed(pod: &PodView, spec: &JobSpec) -> bool {
    match pod.status.phase.0.as_str() {
        "Failed" => true,
        "Succeeded" => false,
        _ => pod.is_terminating() && !spec.replaces_failed_only(),
    }
}

impl<'a> Accounts<'a> {
    /// Takes stock. `counts_all` is for a Job that has failed: whatever is being deleted counts as failed.
    pub(super) fn of(spec: &JobSpec, status: &JobStatus, all: &[&'a PodView], counts_all: bool) -> Self {
        let tracked: Vec<&'a PodView> =
            all.iter().copied().filter(|pod| pod.has_finalizer(TRACKING)).collect();
        let end = spec.completions.unwrap_or(u32::MAX);
        let stored = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), end);
        let mut accounts = Self {
            succeeded: status.succeeded,
            failed: status.failed,
            completed: stored.clone(),
            is_open: !tracked.is_empty(),
            ..Self::default()
        };
        let noted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        accounts.settle(&noted, &tracked);
        let (noted_ok, noted_bad) = (set(&noted.succeeded), set(&noted.failed));
        let (mut new_succeeded, mut new_failed) = (0, 0);
        for pod in tracked {
            let succeeded = pod.status.phase.0 == "Succeeded";
            let failed = has_failed(pod, spec) || (counts_all && pod.is_terminating() && !succeeded);
            if noted_ok.contains(pod.uid()) || noted_bad.contains(pod.uid()) {
                accounts.released.push(pod);
                continue;
            }
            if !succeeded && !failed {
                continue;
            }
            let index = pods::index_of(pod, spec.completions);
            let is_full =
                accounts.uncounted.succeeded.len() + accounts.uncounted.failed.len() >= UNCOUNTED_MAX;
            match (spec.is_indexed(), index) {
                // It never counted for anything.
                (true, None) => accounts.released.push(pod),
                (true, Some(index)) if succeeded => {
                    if stored.contains(index) {
                        accounts.released.push(pod);
                    }
                    accounts.completed.insert(index);
                }
                (false, _) if succeeded => {
                    new_succeeded += 1;
                    if !is_full {
                        accounts.uncounted.succeeded.push(pod.uid().to_owned());
                    }
                }
                _ if judge(spec.pod_failure_policy.as_ref(), pod) == Verdict::Ignored => {
                    accounts.released.push(pod);
                }
                _ => {
                    new_failed += 1;
                    if !is_full {
                        accounts.uncounted.failed.push(pod.uid().to_owned());
                    }
                }
            }
        }
        let noted_only = |list: &[String], noted: &BTreeSet<&str>| {
            count(list.iter().filter(|uid| noted.contains(uid.as_str())))
        };
        accounts.succeeded_total =
            accounts.succeeded + noted_only(&accounts.uncounted.succeeded, &noted_ok) + new_succeeded;
        accounts.failed_total =
            accounts.failed + noted_only(&accounts.uncounted.failed, &noted_bad) + new_failed;
        if spec.is_indexed() {
            accounts.succeeded = accounts.completed.len();
            accounts.succeeded_total = accounts.succeeded;
        }
        accounts
    }

    /// Whoever was noted and has lost the finalizer goes into the counts.
    fn settle(&mut self, noted: &Uncounted, tracked: &[&PodView]) {
        let held: BTreeSet<&str> = tracked.iter().map(|pod| pod.uid()).collect();
        let split = |uids: &[String]| -> (Vec<String>, u32) {
            let (open, done): (Vec<String>, Vec<String>) =
                uids.iter().cloned().partition(|uid| held.contains(uid.as_str()));
            (open, count(done.iter()))
        };
        let (open, done) = split(&noted.succeeded);
        self.succeeded += done;
        self.uncounted.succeeded = open;
        let (open, done) = split(&noted.failed);
        self.failed += done;
        self.uncounted.failed = open;
    }
}

fn set(uids: &[String]) -> BTreeSet<&str> {
    uids.iter().map(String::as_str).collect()
}

pub(super) fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
