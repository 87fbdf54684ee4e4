//! Pods that belong to a group because their Job does.
//!
//! Where the Job controller does not name the group in its pods, membership follows from the owner: a pod of a Job
//! is in the group that was made for the same Job, by its uid. A pod that names a group itself is in that one.
//!
//! Watches are not ordered among each other, so pods may be seen before their group. Those that could still join it
//! are kept as they were read. Once a Job has a group its pods stay in it even if the group goes: placed one by one,
//! they would break what they were meant for.

use std::collections::BTreeMap;
use tutti_k8s::PodReading;
use tutti_model::{ObjectKey, Text};

/// Jobs with pods or groups, by uid, and the Jobs of both.
#[derive(Debug, Default)]
pub(super) struct Members {
    jobs: BTreeMap<Text, JobMembers>,
    job_of_pod: BTreeMap<ObjectKey, Text>,
    job_of_group: BTreeMap<ObjectKey, Text>,
}

#[derive(Debug, Default)]
struct JobMembers {
    group: Option<ObjectKey>,
    group_exists: bool,
    /// Its pods; as they were read while a group could still come for them.
    pods: BTreeMap<ObjectKey, Option<Box<PodReading>>>,
}

impl Members {
    /// Fills in the group of a pod that names none. Pods that have a node are kept for a group to come only during
    /// the first lists, whose order says nothing: later, one that started alone joins when it is seen next.
    pub(super) fn complete(&mut self, reading: &mut PodReading, is_listing: bool) {
        let key = &reading.pod.key;
        let Some(job) = reading.job.clone().filter(|_| reading.pod.group.is_none()) else {
            self.pod_gone(key);
            return;
        };
        if self.job_of_pod.get(key).is_some_and(|known| *known != job) {
            self.pod_gone(key);
        }
        self.job_of_pod.insert(key.clone(), job.clone());
        let members = self.jobs.entry(job).or_default();
        let may_join = (reading.pod.node.is_none() || is_listing) && !reading.pod.phase.is_terminal();
        let kept = (members.group.is_none() && may_join).then(|| Box::new(reading.clone()));
        members.pods.insert(key.clone(), kept);
        reading.pod.group.clone_from(&members.group);
    }

    /// Notes the group of a Job, and gives the pods that are in it from now on.
    pub(super) fn group_seen(&mut self, job: &Text, group: &ObjectKey) -> Vec<PodReading> {
        let members = self.jobs.entry(job.clone()).or_default();
        match &members.group {
            None => members.group = Some(group.clone()),
            Some(known) if known == group => {}
            // A Job has one group; a second one has no members by its owner.
            Some(_) => return Vec::new(),
        }
        members.group_exists = true;
        self.job_of_group.insert(group.clone(), job.clone());
        let in_namespace = |pod: &ObjectKey| pod.namespace == group.namespace;
        let kept = members.pods.iter_mut().filter(|(pod, _)| in_namespace(pod));
        kept.filter_map(|(_, reading)| reading.take()).map(|reading| *reading).collect()
    }

    pub(super) fn group_gone(&mut self, group: &ObjectKey) {
        let Some(job) = self.job_of_group.remove(group) else { return };
        if let Some(members) = self.jobs.get_mut(&job) {
            members.group_exists = false;
        }
        self.drop_if_unused(&job);
    }

    pub(super) fn pod_gone(&mut self, pod: &ObjectKey) {
        let Some(job) = self.job_of_pod.remove(pod) else { return };
        if let Some(members) = self.jobs.get_mut(&job) {
            members.pods.remove(pod);
        }
        self.drop_if_unused(&job);
    }

    /// All first lists are in: whoever has a node and no group started without one, and need not be kept.
    pub(super) fn all_listed(&mut self) {
        for kept in self.jobs.values_mut().flat_map(|members| members.pods.values_mut()) {
            kept.take_if(|reading| reading.pod.node.is_some());
        }
    }

    fn drop_if_unused(&mut self, job: &Text) {
        if self.jobs.get(job).is_some_and(|members| members.pods.is_empty() && !members.group_exists) {
            self.jobs.remove(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::Pod;

    fn reading(name: &str, job: Option<&str>, node: Option<&str>) -> PodReading {
        let mut pod = Pod::new(ObjectKey::new("a", name), name);
        pod.node = node.map(Text::from);
        let job = job.map(Text::from);
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

    fn group_of(members: &mut Members, mut reading: PodReading) -> Option<ObjectKey> {
        members.complete(&mut reading, false);
        reading.pod.group
    }

    fn joined(members: &mut Members, job: &str) -> Vec<String> {
        let pods = members.group_seen(&job.into(), &group());
        pods.iter().map(|reading| reading.pod.key.name.to_string()).collect()
    }

    #[test]
    fn a_pod_is_in_the_group_of_its_job_whichever_is_seen_first() {
        let mut members = Members::default();
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
        let mut members = Members::default();
        joined(&mut members, "j");
        let own = ObjectKey::new("a", "own");
        let mut pod = reading("p", Some("j"), None);
        pod.pod.group = Some(own.clone());
        assert_eq!(group_of(&mut members, pod), Some(own));
    }

    #[test]
    fn a_pod_that_started_alone_is_not_kept_for_a_group_and_joins_when_it_is_seen_next() {
        let mut members = Members::default();
        members.complete(&mut reading("listed", Some("j"), Some("n")), true);
        members.complete(&mut reading("started", Some("j"), Some("n")), false);
        assert_eq!(joined(&mut members, "j"), ["listed"]);

        let mut members = Members::default();
        members.complete(&mut reading("listed", Some("j"), Some("n")), true);
        members.all_listed();
        assert_eq!(joined(&mut members, "j"), [""; 0]);
        assert_eq!(group_of(&mut members, reading("listed", Some("j"), Some("n"))), Some(group()));
    }

    #[test]
    fn members_stay_when_their_group_goes_and_nothing_is_kept_of_what_is_gone() {
        let mut members = Members::default();
        joined(&mut members, "j");
        group_of(&mut members, reading("p", Some("j"), None));
        members.group_gone(&group());
        assert_eq!(group_of(&mut members, reading("q", Some("j"), None)), Some(group()));
        for pod in ["p", "q"] {
            members.pod_gone(&ObjectKey::new("a", pod));
        }
        assert!(members.jobs.is_empty() && members.job_of_pod.is_empty() && members.job_of_group.is_empty());
    }
}
