//! Pods of Jobs that are to have a group: none of them is bound before it is there.

use super::small_cluster::{Fault, Sim, key};
use crate::config::Config;
use crate::core::Core;
use crate::core::message::{Fact, Input};
use serde_json::json;
use std::num::NonZeroU32;
use tutti_k8s::gangs::{Integration, JobReading, JobRef, JobView, group_of_job};
use tutti_k8s::{Capabilities, ObjectKind};
use tutti_model::{Group, Policy};

const MEMBERS: usize = 3;
/// All orders in which watches can tell.
const ORDERS: [[ObjectKind; 3]; 6] = {
    use ObjectKind::{Job, Pod, PodGroup};
    [
        [Job, Pod, PodGroup],
        [Job, PodGroup, Pod],
        [Pod, Job, PodGroup],
        [Pod, PodGroup, Job],
        [PodGroup, Job, Pod],
        [PodGroup, Pod, Job],
    ]
};

fn capabilities() -> Capabilities {
    Sim::capabilities().with_optional()
}

/// A cluster with room for two such Jobs.
fn sim() -> Sim {
    let mut sim = Sim::of(Core::new(Config::default(), capabilities()));
    sim.list_everything();
    ObjectKind::OPTIONAL.into_iter().for_each(|kind| sim.relist(kind));
    sim.node("a", 2 * MEMBERS as i64);
    sim.run();
    sim
}

/// A Job that wants a gang of all its pods by annotation, unless it does not.
fn job(name: &str, uid: &str, wants_gang: bool, ready: u32) -> JobReading {
    let annotations = if wants_gang { json!({"tutti.dev/gang": "true"}) } else { json!({}) };
    let view: JobView = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": uid, "annotations": annotations},
        "spec": {"parallelism": MEMBERS, "template": {"spec": {"schedulerName": "tutti"}}},
        "status": {"ready": ready},
    }))
    .unwrap();
    view.read()
}

impl Sim {
    fn job(&mut self, name: &str, wants_gang: bool, ready: u32) {
        let job = job(name, &format!("uid-{name}"), wants_gang, ready);
        self.jobs.insert(job.key.clone(), job.clone());
        self.notify(ObjectKind::Job, Input::JobSet(Box::new(job)));
    }

    fn job_pods(&mut self, job: &str) {
        for index in 0..MEMBERS {
            let name = format!("{job}-{index}");
            let reference = JobRef { uid: format!("uid-{job}").into(), name: job.into() };
            self.job_of_pod.insert(key(&name), reference);
            self.pod(&name, None, 1);
        }
    }

    /// Whoever makes groups makes that of a Job.
    fn job_group(&mut self, job: &str) {
        self.job_group_named(job, &group_of_job(job, &format!("uid-{job}")));
    }

    fn job_group_named(&mut self, job: &str, name: &str) {
        self.job_of_group.insert(key(name), format!("uid-{job}").into());
        let min_count = NonZeroU32::new(MEMBERS as u32).unwrap();
        let group =
            Group { policy: Policy::Gang { min_count }, ..Group::new(key(name), format!("uid-{name}")) };
        self.groups.insert(key(name), group);
        self.notify_group(name);
    }

    /// The group of a Job comes, and all its pods start.
    fn starts_whole_with_its_group(&mut self, job: &str) {
        self.job_group(job);
        self.run();
        assert_eq!(self.bound(), MEMBERS);
    }

    fn why(&self, pod: &str) -> Option<String> {
        let (_, condition) = self.pod_patches.iter().rev().find(|(patched, _)| *patched == key(pod))?;
        Some(condition.message.to_string())
    }
}

#[test]
fn no_member_is_bound_before_its_group_in_whichever_order_watches_tell() {
    for order in ORDERS {
        let mut sim = sim();
        for kind in order {
            sim.hold(kind);
        }
        sim.job("j", true, 0);
        sim.job_pods("j");
        sim.job_group("j");
        for told in 1..=order.len() {
            sim.release();
            order[told..].iter().for_each(|kind| sim.hold(*kind));
            sim.run_for(60);
            let group_is_seen = order[..told].contains(&ObjectKind::PodGroup);
            let pods_are_seen = order[..told].contains(&ObjectKind::Pod);
            let expected = if group_is_seen && pods_are_seen { MEMBERS } else { 0 };
            assert_eq!(sim.bound(), expected, "{order:?} after {told}");
        }
    }
}

#[test]
fn pods_that_wait_say_for_what_and_start_whole_when_it_comes() {
    let mut sim = sim();
    sim.job("train", true, 0);
    sim.job_pods("train");
    sim.run_for(600);
    assert_eq!(sim.bound(), 0, "whoever makes groups may be away for long");
    let why = sim.why("train-0").unwrap_or_default();
    assert!(why.starts_with("waits for the PodGroup of Job train, which tutti controller makes"), "{why}");
    sim.starts_whole_with_its_group("train");
}

#[test]
fn the_group_may_have_any_name() {
    let mut sim = sim();
    sim.job("j", true, 0);
    sim.job_pods("j");
    sim.run();
    sim.job_group_named("j", "made-of-a-users-workload");
    sim.run();
    assert_eq!(sim.bound(), MEMBERS);
}

#[test]
fn a_job_that_wants_no_group_waits_for_none() {
    let mut sim = sim();
    sim.hold(ObjectKind::Job);
    sim.job("plain", false, 0);
    sim.job_pods("plain");
    sim.run_for(5);
    assert_eq!(sim.bound(), 0, "nobody knows yet what it wants");
    sim.release();
    sim.run();
    assert_eq!(sim.bound(), MEMBERS);
}

#[test]
fn a_job_whose_pods_ran_before_gets_no_group_and_waits_for_none() {
    let mut sim = sim();
    sim.job("old", true, 1);
    sim.job_pods("old");
    sim.run();
    assert_eq!(sim.bound(), MEMBERS);
}

#[test]
fn a_restart_forgets_nobody_who_waits() {
    let mut sim = sim();
    sim.job("j", true, 0);
    sim.job_pods("j");
    sim.run();
    sim.core = Core::new(Config::default(), capabilities());
    sim.list_everything();
    sim.run_for(60);
    assert_eq!(sim.bound(), 0, "not all is known");
    ObjectKind::OPTIONAL.into_iter().for_each(|kind| sim.relist(kind));
    sim.run_for(60);
    assert_eq!(sim.bound(), 0);
    sim.starts_whole_with_its_group("j");
}

#[test]
fn members_of_a_group_that_was_deleted_wait_for_it_to_be_made_again() {
    let mut sim = sim();
    sim.job("j", true, 0);
    sim.job_group("j");
    sim.run();
    sim.delete_group(&group_of_job("j", "uid-j"));
    sim.run();
    sim.job_pods("j");
    sim.run_for(60);
    assert_eq!(sim.bound(), 0);
    sim.starts_whole_with_its_group("j");
}

#[test]
fn a_job_that_is_made_anew_under_its_name_waits_for_a_group_of_its_own() {
    let mut sim = sim();
    sim.job("j", true, 0);
    sim.job_group("j");
    sim.run();
    let again = job("j", "another", true, 0);
    sim.notify(ObjectKind::Job, Input::JobSet(Box::new(again)));
    sim.job_of_pod.insert(key("p"), JobRef { uid: "another".into(), name: "j".into() });
    sim.pod("p", None, 1);
    sim.run_for(60);
    assert_eq!(sim.bound(), 0);
}

#[test]
fn where_jobs_may_not_be_read_their_pods_are_scheduled_as_they_come_and_that_is_said() {
    let mut sim = Sim::of(Core::new(Config::default(), capabilities()));
    sim.list_everything();
    let refused = |kind| Input::ListRefused { kind, why: "forbidden".into() };
    ObjectKind::OPTIONAL.into_iter().for_each(|kind| sim.notify(kind, refused(kind)));
    sim.node("a", 2 * MEMBERS as i64);
    sim.job_pods("j");
    sim.run();
    assert_eq!(sim.bound(), MEMBERS);
    let is_said = |fact: &Fact| matches!(fact, Fact::Unavailable { kind: ObjectKind::Job, .. });
    assert!(sim.facts.iter().any(is_said));
}

#[test]
fn with_the_integration_off_nobody_waits_and_jobs_are_not_read() {
    let config = Config { job_integration: Integration::Off, ..Config::default() };
    let mut sim = Sim::of(Core::new(config, capabilities()));
    sim.list_everything();
    let others = ObjectKind::OPTIONAL.into_iter().filter(|kind| *kind != ObjectKind::Job);
    others.for_each(|kind| sim.relist(kind));
    sim.node("a", 2 * MEMBERS as i64);
    sim.job_pods("j");
    sim.run();
    assert_eq!(sim.bound(), MEMBERS);
}

#[test]
fn pods_that_fail_to_start_alone_are_in_the_group_that_came_meanwhile() {
    let mut sim = sim();
    sim.delete_node("a");
    sim.node("b", MEMBERS as i64 - 1);
    sim.job("j", false, 0);
    sim.job_pods("j");
    for index in 0..MEMBERS {
        sim.faults.insert(format!("j-{index}"), [Fault::Refuse].into());
    }
    sim.step();
    sim.job_group("j");
    sim.step();
    sim.run_for(100);
    assert_eq!(sim.binds.len(), MEMBERS - 1);
    assert_eq!(sim.bound(), 0, "there is no room for all of it");
}

#[test]
fn a_pod_that_is_bound_stays_so_when_its_group_is_seen_before_its_node() {
    let mut sim = sim();
    sim.job("j", false, 0);
    sim.job_pods("j");
    sim.step();
    sim.hold(ObjectKind::Pod);
    while sim.answer() {}
    sim.job_group("j");
    sim.run();
    sim.release();
    sim.run_for(10);
    assert_eq!((sim.binds.len(), sim.bound()), (MEMBERS, MEMBERS), "each was bound once");
    for index in 0..=MEMBERS {
        sim.pod(&format!("more-{index}"), None, 1);
    }
    sim.run();
    assert_eq!(sim.bound(), 2 * MEMBERS, "their room is not given away");
}
