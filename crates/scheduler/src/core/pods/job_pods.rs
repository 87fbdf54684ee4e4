//! Pods that belong to a group because their Job does, and pods that wait for the group of their Job.
//!
//! Where the Job controller does not name the group in its pods, membership follows from the owner: a pod of a Job
//! is in the group that was made for the same Job, by namespace and uid. A pod that names a group itself is in that one.
//!
//! A Job that is to have a group may have pods before. They are members of the group that it will get, which is not
//! there yet, and wait like all members of a group that is missing. So do pods of a Job that has not been seen: watches
//! are not ordered among each other. Pods are kept as they were read until their group is known, because it may turn
//! out to be another one, or none. Once a Job has a group its pods stay in it even if the group goes, until it gets
//! another one: placed one by one, they would break what they were meant for.

use std::collections::BTreeMap;
use tutti_k8s::PodReading;
use tutti_k8s::gangs::{JobRef, group_of_job};
use tutti_model::{ObjectKey, Phase, Text};

/// A Job over time: its namespace and uid. Whoever makes groups in another namespace has no say in this one.
type JobId = ObjectKey;

/// Jobs with pods or groups, and the Jobs of both.
#[derive(Debug, Default)]
pub(in super::super) struct JobPods {
    jobs: BTreeMap<JobId, PodsOfJob>,
    /// Jobs that were seen.
    id_of_job: BTreeMap<ObjectKey, JobId>,
    job_of_pod: BTreeMap<ObjectKey, JobId>,
    job_of_group: BTreeMap<ObjectKey, JobId>,
    /// Groups that pods wait for, and the names of their Jobs.
    awaited: BTreeMap<ObjectKey, Text>,
    /// Whether pods of a Job that was not seen wait for it: Jobs are watched, and some get groups.
    awaits_unseen: bool,
}

#[derive(Debug, Default)]
struct PodsOfJob {
    group: Option<ObjectKey>,
    group_exists: bool,
    /// Whether it is to have a group before its pods start; `None` if it was not seen.
    awaits_group: Option<bool>,
    /// The group that its pods wait for.
    awaited: Option<ObjectKey>,
    /// Its pods, and whether what was read of them is kept, because a group could still come for them.
    pods: BTreeMap<ObjectKey, bool>,
}

impl JobPods {
    /// What to do about pods of Jobs that were not seen. Gives those of which is known now that they need not wait.
    pub(in super::super) fn await_unseen(&mut self, awaits: bool) -> Vec<ObjectKey> {
        let freed = self.awaits_unseen && !awaits;
        self.awaits_unseen = awaits;
        let unseen: Vec<JobId> = self
            .jobs
            .iter()
            .filter(|(_, members)| freed && members.awaits_group.is_none())
            .map(|(id, _)| id.clone())
            .collect();
        unseen.iter().flat_map(|id| self.reconsider(id)).collect()
    }

    /// Fills in the group of a pod that names none. Pods that have a node are kept for a group to come only during
    /// the first lists, whose order says nothing: later, one that started alone joins when it is seen next.
    pub(in super::super) fn complete(&mut self, reading: &mut PodReading, is_listing: bool) {
        let key = &reading.pod.key;
        let Some(job) = reading.job.clone().filter(|_| reading.pod.group.is_none()) else {
            self.pod_gone(key);
            return;
        };
        let id = JobId::new(key.namespace.clone(), job.uid.clone());
        if self.job_of_pod.get(key).is_some_and(|known| *known != id) {
            self.pod_gone(key);
        }
        self.job_of_pod.insert(key.clone(), id.clone());
        let members = self.jobs.entry(id.clone()).or_default();
        let may_wait = reading.pod.node.is_none() && !reading.pod.phase.is_terminal();
        members.pods.insert(key.clone(), !members.group_exists && may_join(reading, is_listing));
        reading.pod.group = match &members.group {
            Some(group) => Some(group.clone()),
            None if may_wait && members.awaits_group.unwrap_or(self.awaits_unseen) => {
                Some(self.await_group(&id, &job))
            }
            None => None,
        };
    }

    /// True if what was read of a pod has to be kept, because a group may come for it.
    pub(in super::super) fn awaits_group(&self, reading: &PodReading, is_listing: bool) -> bool {
        let Some(job) = reading.job.as_ref().filter(|_| reading.pod.group.is_none()) else { return false };
        let id = JobId::new(reading.pod.key.namespace.clone(), job.uid.clone());
        let group_exists = self.jobs.get(&id).is_some_and(|members| members.group_exists);
        !group_exists && may_join(reading, is_listing)
    }

    /// Pods of which what was read is kept.
    pub(in super::super) fn kept(&self) -> impl Iterator<Item = &ObjectKey> {
        let pods = self.jobs.values().flat_map(|members| &members.pods);
        pods.filter(|(_, is_kept)| **is_kept).map(|(pod, _)| pod)
    }

    /// The group that a Job will get.
    fn await_group(&mut self, id: &JobId, job: &JobRef) -> ObjectKey {
        if let Some(awaited) = self.jobs.get(id).and_then(|members| members.awaited.clone()) {
            return awaited;
        }
        let group = ObjectKey::new(id.namespace.clone(), group_of_job(&job.name, &job.uid));
        self.awaited.insert(group.clone(), job.name.clone());
        self.jobs.entry(id.clone()).or_default().awaited = Some(group.clone());
        group
    }

    /// The name of the Job whose pods wait for this group.
    pub(in super::super) fn job_awaiting(&self, group: &ObjectKey) -> Option<&Text> {
        self.awaited.get(group)
    }

    /// Notes whether a Job is to have a group before its pods start, and gives the pods for which that is news.
    pub(in super::super) fn job_seen(
        &mut self,
        job: &ObjectKey,
        uid: &Text,
        awaits_group: bool,
    ) -> Vec<ObjectKey> {
        let id = JobId::new(job.namespace.clone(), uid.clone());
        if self.id_of_job.get(job).is_some_and(|known| *known != id) {
            self.job_gone(job);
        }
        self.id_of_job.insert(job.clone(), id.clone());
        let members = self.jobs.entry(id.clone()).or_default();
        let before = members.awaits_group.replace(awaits_group).unwrap_or(self.awaits_unseen);
        if before == awaits_group { Vec::new() } else { self.reconsider(&id) }
    }

    /// A Job is gone. Its pods go, too, or lose their owner, and until then nothing changes for them.
    pub(in super::super) fn job_gone(&mut self, job: &ObjectKey) {
        let Some(id) = self.id_of_job.remove(job) else { return };
        if let Some(members) = self.jobs.get_mut(&id) {
            members.awaits_group = None;
        }
        self.drop_if_unused(&id);
    }

    /// All Jobs that were seen and are not gone.
    pub(in super::super) fn jobs(&self) -> impl Iterator<Item = &ObjectKey> {
        self.id_of_job.keys()
    }

    /// The pods of a Job that are in no group which exists, to be completed anew.
    fn reconsider(&mut self, id: &JobId) -> Vec<ObjectKey> {
        self.awaits_no_longer(id);
        let members = self.jobs.get(id).filter(|members| members.group.is_none());
        let pods = members.into_iter().flat_map(|members| &members.pods);
        pods.filter(|(_, is_kept)| **is_kept).map(|(pod, _)| pod.clone()).collect()
    }

    fn awaits_no_longer(&mut self, id: &JobId) {
        if let Some(group) = self.jobs.get_mut(id).and_then(|members| members.awaited.take()) {
            self.awaited.remove(&group);
        }
    }

    /// Notes the group of a Job, and gives the pods that are in it from now on.
    pub(in super::super) fn group_seen(&mut self, job: &Text, group: &ObjectKey) -> Vec<ObjectKey> {
        let id = JobId::new(group.namespace.clone(), job.clone());
        let members = self.jobs.entry(id.clone()).or_default();
        // A Job has one group; a second one has no members by its owner while the first is there.
        if members.group_exists && members.group.as_ref() != Some(group) {
            return Vec::new();
        }
        members.group = Some(group.clone());
        members.group_exists = true;
        self.job_of_group.insert(group.clone(), id.clone());
        let joining =
            members.pods.iter().filter(|(_, is_kept)| **is_kept).map(|(pod, _)| pod.clone()).collect();
        members.pods.values_mut().for_each(|is_kept| *is_kept = false);
        self.awaits_no_longer(&id);
        joining
    }

    pub(in super::super) fn group_gone(&mut self, group: &ObjectKey) {
        let Some(job) = self.job_of_group.remove(group) else { return };
        if let Some(members) = self.jobs.get_mut(&job) {
            members.group_exists = false;
        }
        self.drop_if_unused(&job);
    }

    pub(in super::super) fn pod_gone(&mut self, pod: &ObjectKey) {
        let Some(job) = self.job_of_pod.remove(pod) else { return };
        if let Some(members) = self.jobs.get_mut(&job) {
            members.pods.remove(pod);
        }
        self.drop_if_unused(&job);
    }

    /// All first lists are in: pods that have started without a group need not be kept. Gives all that were kept, of which
    /// those that still wait are to be kept.
    pub(in super::super) fn all_listed(&mut self) -> Vec<ObjectKey> {
        self.kept().cloned().collect()
    }

    /// What was read of a pod is not kept any more.
    pub(in super::super) fn not_kept(&mut self, pod: &ObjectKey) {
        let members = self.job_of_pod.get(pod).and_then(|job| self.jobs.get_mut(job));
        if let Some(is_kept) = members.and_then(|members| members.pods.get_mut(pod)) {
            *is_kept = false;
        }
    }

    fn drop_if_unused(&mut self, job: &JobId) {
        let is_unused = |members: &PodsOfJob| {
            members.pods.is_empty() && !members.group_exists && members.awaits_group.is_none()
        };
        if self.jobs.get(job).is_some_and(is_unused) {
            self.awaits_no_longer(job);
            self.jobs.remove(job);
        }
    }
}

/// True if a group that comes later may be that of a pod. Those that have a node are kept for one only during the first
/// lists, whose order says nothing; one that has ended well counts to the minimum of its group, too.
fn may_join(reading: &PodReading, is_listing: bool) -> bool {
    let may_wait = reading.pod.node.is_none() && !reading.pod.phase.is_terminal();
    may_wait || (is_listing && reading.pod.phase != Phase::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::Pod;

    fn reading(name: &str, job: Option<&str>, node: Option<&str>) -> PodReading {
        let mut pod = Pod::new(ObjectKey::new("a", name), name);
        pod.node = node.map(Text::from);
        let job = job.map(|uid| JobRef { uid: uid.into(), name: format!("name-of-{uid}").into() });
        PodReading {
            pod,
            version: "1".into(),
            scheduled: None,
            controlled: true,
            job,
            replicator: None,
            errors: vec![],
        }
    }

    fn group() -> ObjectKey {
        ObjectKey::new("a", "g")
    }

    fn group_of(members: &mut JobPods, mut reading: PodReading) -> Option<ObjectKey> {
        members.complete(&mut reading, false);
        reading.pod.group
    }

    fn joined(members: &mut JobPods, job: &str) -> Vec<String> {
        let pods = members.group_seen(&job.into(), &group());
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    #[test]
    fn a_pod_is_in_the_group_of_its_job_whichever_is_seen_first() {
        let mut members = JobPods::default();
        assert_eq!(group_of(&mut members, reading("early", Some("j"), None)), None);
        assert_eq!(group_of(&mut members, reading("other", Some("k"), None)), None);
        assert_eq!(group_of(&mut members, reading("plain", None, None)), None);
        assert_eq!(joined(&mut members, "j"), ["early"]);
        assert_eq!(joined(&mut members, "j"), [""; 0], "once");
        assert_eq!(group_of(&mut members, reading("late", Some("j"), None)), Some(group()));
        assert_eq!(group_of(&mut members, reading("early", Some("j"), Some("n"))), Some(group()));
    }

    #[test]
    fn a_pod_that_names_a_group_is_in_that_one() {
        let mut members = JobPods::default();
        joined(&mut members, "j");
        let own = ObjectKey::new("a", "own");
        let mut pod = reading("p", Some("j"), None);
        pod.pod.group = Some(own.clone());
        assert_eq!(group_of(&mut members, pod), Some(own));
    }

    #[test]
    fn a_pod_that_started_alone_is_not_kept_for_a_group_and_joins_when_it_is_seen_next() {
        let mut members = JobPods::default();
        members.complete(&mut reading("listed", Some("j"), Some("n")), true);
        members.complete(&mut reading("started", Some("j"), Some("n")), false);
        assert_eq!(joined(&mut members, "j"), ["listed"]);

        let mut members = JobPods::default();
        members.complete(&mut reading("listed", Some("j"), Some("n")), true);
        for pod in members.all_listed() {
            members.not_kept(&pod);
        }
        assert_eq!(joined(&mut members, "j"), [""; 0]);
        assert_eq!(group_of(&mut members, reading("listed", Some("j"), Some("n"))), Some(group()));
    }

    #[test]
    fn a_pod_that_has_ended_well_is_a_member_even_if_it_is_listed_before_its_group() {
        let mut members = JobPods::default();
        for (name, phase) in [("good", Phase::Succeeded), ("bad", Phase::Failed)] {
            let mut ended = reading(name, Some("j"), Some("n"));
            ended.pod.phase = phase;
            members.complete(&mut ended, true);
        }
        assert_eq!(joined(&mut members, "j"), ["good"]);
    }

    #[test]
    fn members_stay_when_their_group_goes_and_nothing_is_kept_of_what_is_gone() {
        let mut members = JobPods::default();
        joined(&mut members, "j");
        group_of(&mut members, reading("p", Some("j"), None));
        members.group_gone(&group());
        assert_eq!(group_of(&mut members, reading("q", Some("j"), None)), Some(group()));
        for pod in ["p", "q"] {
            members.pod_gone(&ObjectKey::new("a", pod));
        }
        assert_empty(&members);
    }

    #[test]
    fn a_group_of_another_namespace_is_not_that_of_a_job() {
        let mut members = JobPods::default();
        assert!(members.group_seen(&"j".into(), &ObjectKey::new("b", "g")).is_empty());
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), None);
        assert_eq!(joined(&mut members, "j"), ["p"]);
        members.group_gone(&ObjectKey::new("b", "g"));
        assert_eq!(group_of(&mut members, reading("q", Some("j"), None)), Some(group()));
    }

    #[test]
    fn a_job_whose_group_went_can_get_another_one() {
        let mut members = JobPods::default();
        joined(&mut members, "j");
        group_of(&mut members, reading("p", Some("j"), None));
        members.group_gone(&group());
        assert_eq!(
            group_of(&mut members, reading("p", Some("j"), None)),
            Some(group()),
            "until then it waits"
        );
        let other = ObjectKey::new("a", "other");
        assert_eq!(members.group_seen(&"j".into(), &other).len(), 1);
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), Some(other));
    }

    fn assert_empty(members: &JobPods) {
        assert!(members.jobs.is_empty() && members.job_of_pod.is_empty() && members.job_of_group.is_empty());
        assert!(members.id_of_job.is_empty() && members.awaited.is_empty());
    }

    fn see_job(members: &mut JobPods, uid: &str, awaits_group: bool) -> Vec<String> {
        let key = ObjectKey::new("a", format!("name-of-{uid}"));
        let pods = members.job_seen(&key, &uid.into(), awaits_group);
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    fn awaited(uid: &str) -> Option<ObjectKey> {
        Some(ObjectKey::new("a", group_of_job(&format!("name-of-{uid}"), uid)))
    }

    #[test]
    fn pods_of_a_job_that_is_to_have_a_group_wait_for_it_in_whichever_order_they_are_seen() {
        let mut members = JobPods::default();
        members.await_unseen(true);
        assert_eq!(group_of(&mut members, reading("early", Some("j"), None)), awaited("j"), "not seen yet");
        assert_eq!(see_job(&mut members, "j", true), [""; 0], "that is no news");
        assert_eq!(group_of(&mut members, reading("late", Some("j"), None)), awaited("j"));
        let group_awaited = awaited("j").unwrap();
        assert_eq!(members.job_awaiting(&group_awaited).map(|name| &**name), Some("name-of-j"));
        assert_eq!(joined(&mut members, "j"), ["early", "late"]);
        assert_eq!(members.job_awaiting(&group_awaited), None);
        assert_eq!(group_of(&mut members, reading("later", Some("j"), None)), Some(group()));
    }

    #[test]
    fn pods_of_a_job_without_a_group_wait_only_until_it_is_seen() {
        let mut members = JobPods::default();
        members.await_unseen(true);
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), awaited("j"));
        assert_eq!(see_job(&mut members, "j", false), ["p"]);
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), None);
        assert_eq!(see_job(&mut members, "j", true), ["p"], "it was annotated since");
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), awaited("j"));
        assert_eq!(group_of(&mut members, reading("q", Some("j"), Some("n"))), None, "it has started");
    }

    #[test]
    fn where_jobs_cannot_be_read_nobody_waits_for_them() {
        let mut members = JobPods::default();
        members.await_unseen(true);
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), awaited("j"));
        see_job(&mut members, "k", true);
        group_of(&mut members, reading("q", Some("k"), None));
        let freed = members.await_unseen(false);
        assert_eq!(freed.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["p"]);
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), None);
    }

    #[test]
    fn nothing_is_kept_of_jobs_that_are_gone() {
        let mut members = JobPods::default();
        members.await_unseen(true);
        see_job(&mut members, "j", true);
        group_of(&mut members, reading("p", Some("j"), None));
        let job = ObjectKey::new("a", "name-of-j");
        assert_eq!(members.jobs().collect::<Vec<_>>(), [&job]);
        members.job_gone(&job);
        assert_eq!(group_of(&mut members, reading("p", Some("j"), None)), awaited("j"), "it goes, too");
        members.pod_gone(&ObjectKey::new("a", "p"));
        assert_empty(&members);
        let again = |members: &mut JobPods, uid: &str| members.job_seen(&job, &uid.into(), true);
        again(&mut members, "first");
        again(&mut members, "second");
        assert_eq!(members.jobs.len(), 1, "a Job of the same name is another one");
    }
}
