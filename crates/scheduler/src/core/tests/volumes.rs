//! Volumes first, pods second: what is asked for, what is waited for, and what is taken back.

use super::small_cluster::{Sim, key, written};
use crate::config::Config;
use crate::core::facts::storage_objects::STORAGE_KINDS;
use crate::core::message::{Answer, Fact, Input, StorageKey, WriteKey, WriteOutcome};
use std::collections::VecDeque;
use std::time::Duration;
use tutti_k8s::{ClaimReading, ClassReading, LimitsReading, ObjectKind, VolumeReading};
use tutti_model::scenario::Scenario;
use tutti_model::{ClaimRef, ModelError, ObjectKey, Storage, Text, Volume, VolumeClaim};

/// Claims, volumes, classes and limits of the simulated cluster.
#[derive(Default)]
pub(super) struct SimStorage {
    objects: Storage,
    /// Writes that reached the server, in order.
    writes: Vec<String>,
    /// Answers to the next writes instead of good ones.
    refusals: VecDeque<WriteOutcome>,
}

impl SimStorage {
    pub(super) fn inputs(&self, kind: ObjectKind) -> Vec<Input> {
        match kind {
            ObjectKind::Claim => self.objects.claims.iter().map(|claim| seen_claim(claim.clone())).collect(),
            ObjectKind::Volume => self.objects.volumes.iter().map(|one| seen_volume(one.clone())).collect(),
            ObjectKind::StorageClass => {
                let class = |class: &tutti_model::StorageClass| ClassReading {
                    class: class.clone(),
                    uid: class.name.clone(),
                    errors: Vec::new(),
                };
                self.objects.classes.iter().map(|one| Input::ClassSet(Box::new(class(one)))).collect()
            }
            ObjectKind::CsiNode => {
                let limits = |limits: &tutti_model::AttachLimits| LimitsReading {
                    limits: limits.clone(),
                    uid: limits.node.clone(),
                    errors: Vec::new(),
                };
                self.objects.limits.iter().map(|one| Input::LimitsSet(Box::new(limits(one)))).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn seen_claim(claim: VolumeClaim) -> Input {
    Input::ClaimSet(Box::new(ClaimReading { claim, version: "1".into(), errors: Vec::new() }))
}

fn seen_volume(volume: Volume) -> Input {
    let uid = volume.name.clone();
    Input::VolumeSet(Box::new(VolumeReading { volume, uid, version: "1".into(), errors: Vec::new() }))
}

impl Sim {
    /// A cluster of nodes `a` and `b` with the storage that a text describes.
    fn with_storage(text: &str) -> Self {
        let config = Config { volume_bind_timeout: Duration::from_secs(60), ..Config::default() };
        let core = crate::core::Core::new(config, Self::capabilities().with_storage());
        let mut sim = Self::of(core);
        sim.storage.objects = Scenario::parse(text).unwrap().storage;
        sim.node("a", 4);
        sim.node("b", 4);
        sim.list_everything();
        STORAGE_KINDS.into_iter().for_each(|kind| sim.relist(kind));
        sim
    }

    fn pod_with_claim(&mut self, name: &str, group: Option<&str>, claim: &str) {
        self.pod(name, group, 1);
        let uses = Scenario::parse(&format!("pod p claim:{claim}")).unwrap().pods.remove(0).volume_claims;
        self.pods.get_mut(&key(name)).unwrap().volume_claims = uses;
        self.notify_pod(name);
    }

    pub(super) fn select_node(&mut self, claim: &ObjectKey, uid: &Text, node: Option<Text>) -> Answer {
        let node_text = node.as_deref().unwrap_or("nothing");
        self.storage.writes.push(format!("select {node_text} for {}", claim.name));
        let write = WriteKey::Storage(StorageKey::Claim(claim.clone()));
        if let Some(outcome) = self.storage.refusals.pop_front() {
            return Answer::Write { key: write, outcome };
        }
        let exists = self.storage.objects.claims.iter().any(|found| found.key == *claim && found.uid == *uid);
        self.change_claim(&claim.name.clone(), |claim| claim.selected_node = node);
        written(write, exists)
    }

    pub(super) fn keep_volume(&mut self, volume: &Text, claim: ObjectKey, uid: Text) -> Answer {
        self.storage.writes.push(format!("keep {volume} for {}", claim.name));
        let write = WriteKey::Storage(StorageKey::Volume(volume.clone()));
        if let Some(outcome) = self.storage.refusals.pop_front() {
            return Answer::Write { key: write, outcome };
        }
        self.change_volume(volume, |volume| volume.claim = Some(ClaimRef { key: claim, uid: Some(uid) }));
        written(write, true)
    }

    fn change_claim(&mut self, name: &str, change: impl FnOnce(&mut VolumeClaim)) {
        let claim = self.storage.objects.claims.iter_mut().find(|claim| claim.key == key(name)).unwrap();
        change(claim);
        let input = seen_claim(claim.clone());
        self.notify(ObjectKind::Claim, input);
    }

    fn change_volume(&mut self, name: &str, change: impl FnOnce(&mut Volume)) {
        let volume = self.storage.objects.volumes.iter_mut().find(|volume| volume.name.as_ref() == name);
        let volume = volume.unwrap();
        change(volume);
        let input = seen_volume(volume.clone());
        self.notify(ObjectKind::Volume, input);
    }

    /// What the cluster's controllers do: a volume and a claim agree on each other.
    fn bind_claim(&mut self, claim: &str, volume: &str) {
        if self.storage.objects.volumes.iter().all(|known| known.name.as_ref() != volume) {
            self.storage.objects.volumes.push(Volume { name: volume.into(), ..Volume::default() });
        }
        let kept = ClaimRef { key: key(claim), uid: Some(format!("uid-{claim}").into()) };
        self.change_volume(volume, |volume| volume.claim = Some(kept));
        self.change_claim(claim, |claim| {
            claim.volume = Some(volume.into());
            claim.bound = true;
        });
    }

    fn selected(&self, claim: &str) -> Option<&str> {
        let claim = self.storage.objects.claims.iter().find(|found| found.key == key(claim)).unwrap();
        claim.selected_node.as_deref()
    }

    /// Why bindings failed, the last one only.
    fn failure(&self) -> Option<&str> {
        let why = |fact: &'_ Fact| matches!(fact, Fact::BindFailed { .. });
        match self.facts.iter().rfind(|fact| why(fact)) {
            Some(Fact::BindFailed { why, .. }) => Some(why),
            _ => None,
        }
    }
}

const MADE: &str = "class fast wait provisioner=d\nclaim c class=fast\nclaim d class=fast";

#[test]
fn a_volume_is_asked_for_and_the_pod_is_bound_once_it_is_there() {
    let mut sim = Sim::with_storage(MADE);
    sim.pod_with_claim("p", None, "c");
    sim.run();
    assert_eq!((sim.storage.writes.as_slice(), sim.bound()), (&["select a for c".to_owned()][..], 0));
    assert!(sim.facts.iter().any(|fact| matches!(fact, Fact::WaitsForVolumes { claims: 1, .. })));
    sim.bind_claim("c", "made");
    sim.run();
    assert_eq!(sim.node_of("p"), Some("a"));
    assert_eq!(sim.storage.writes, ["select a for c"], "nothing else was written");
}

#[test]
fn no_member_of_a_gang_is_bound_before_all_claims_are() {
    let mut sim = Sim::with_storage(MADE);
    sim.gang("g", 3);
    sim.pod_with_claim("g-0", Some("g"), "c");
    sim.pod_with_claim("g-1", Some("g"), "d");
    sim.pod("g-2", Some("g"), 1);
    sim.run_for(5);
    sim.bind_claim("c", "v");
    sim.run_for(5);
    // A member that comes meanwhile does not start before the others either.
    sim.pod("g-3", Some("g"), 1);
    sim.run_for(5);
    assert_eq!(sim.binds, Vec::<String>::new());
    sim.bind_claim("d", "w");
    sim.run_for(5);
    assert_eq!(sim.bound(), 4);
}

#[test]
fn a_gang_that_has_a_place_and_waits_for_volumes_is_not_told_what_it_lacked_before() {
    let mut sim = Sim::with_storage(MADE);
    sim.gang("g", 2);
    sim.pod_with_claim("g-0", Some("g"), "c");
    sim.run();
    sim.pod_with_claim("g-1", Some("g"), "d");
    sim.run_for(10);
    assert!(sim.facts.iter().any(|fact| matches!(fact, Fact::WaitsForVolumes { claims: 2, .. })));
    assert_eq!(sim.pod_patches, [], "it does not lack members any more");
    assert!(!sim.group_conditions.contains_key(&key("g")));
}

#[test]
fn a_volume_that_exists_is_kept_for_the_claim() {
    let mut sim =
        Sim::with_storage("class local wait\nvolume v class=local size=2\nclaim c class=local size=1");
    sim.pod_with_claim("p", None, "c");
    sim.run();
    assert_eq!((sim.storage.writes.as_slice(), sim.bound()), (&["keep v for c".to_owned()][..], 0));
    sim.bind_claim("c", "v");
    sim.run();
    assert_eq!(sim.bound(), 1);
}

#[test]
fn who_waits_for_too_long_gives_back_seats_and_selected_node_and_is_tried_again() {
    let mut sim = Sim::with_storage(MADE);
    sim.gang("g", 2);
    sim.pod_with_claim("g-0", Some("g"), "c");
    sim.pod("g-1", Some("g"), 4);
    sim.run_for(30);
    // Both nodes are promised to the gang.
    sim.pod("other", None, 4);
    sim.run_for(20);
    assert_eq!(sim.node_of("other"), None);
    sim.run_for(15);
    assert_eq!(sim.failure(), Some("volume claim c was not bound within 60 s"));
    assert_eq!(sim.storage.writes[1], "select nothing for c");
    assert!(sim.node_of("other").is_some(), "the seats were free for a moment");
    assert!(sim.events.iter().any(|note| note.message.contains("was not bound within 60 s")));
    sim.delete_pod("other");
    sim.run_for(90);
    assert!(sim.selected("c").is_some(), "and it was tried again: {:?}", sim.storage.writes);
    sim.bind_claim("c", "v");
    sim.run_for(5);
    assert_eq!(sim.bound(), 2);
}

#[test]
fn a_provisioner_that_gives_up_is_believed_at_once() {
    let mut sim = Sim::with_storage(MADE);
    sim.pod_with_claim("p", None, "c");
    sim.run();
    sim.change_claim("c", |claim| claim.selected_node = None);
    sim.run();
    assert_eq!(sim.failure(), Some("no volume could be made for volume claim c"));
    sim.run_for(5);
    assert_eq!(sim.selected("c"), Some("a"), "after a pause it is asked again");
    sim.bind_claim("c", "v");
    sim.run_for(5);
    assert_eq!(sim.bound(), 1);
}

#[test]
fn a_volume_that_turns_out_to_be_out_of_reach_moves_the_pod() {
    let mut sim = Sim::with_storage(MADE);
    sim.pod_with_claim("p", None, "c");
    sim.run();
    let reach = Scenario::parse("volume v reach:zone=b").unwrap().storage.volumes.remove(0);
    sim.storage.objects.volumes.push(reach);
    sim.bind_claim("c", "v");
    sim.run();
    assert_eq!(sim.failure(), Some("a volume of pod p cannot be reached from there"));
    assert_eq!(sim.bound(), 0);
    sim.run_for(5);
    let told = sim.pod_patches.last().map(|(_, condition)| condition.message.to_string()).unwrap_or_default();
    assert!(told.contains("out of reach of a volume"), "{told}");
}

#[test]
fn a_volume_that_another_claim_took_is_given_up() {
    let mut sim = Sim::with_storage(
        "class local wait\nvolume v class=local size=1\nvolume w class=local size=2\nclaim c class=local size=1",
    );
    sim.hold(ObjectKind::Volume);
    sim.pod_with_claim("p", None, "c");
    sim.storage.refusals.push_back(WriteOutcome::Failed("conflict".into()));
    sim.release();
    sim.run();
    assert_eq!(sim.storage.writes, ["keep v for c"]);
    let other = ClaimRef { key: key("other"), uid: Some("x".into()) };
    sim.change_volume("v", |volume| volume.claim = Some(other));
    sim.run_for(10);
    assert_eq!(sim.failure(), Some("volume v was given to volume claim default/other"));
    assert_eq!(sim.storage.writes, ["keep v for c", "keep w for c"], "another one will do");
    sim.bind_claim("c", "w");
    sim.run();
    assert_eq!(sim.bound(), 1);
}

#[test]
fn a_write_whose_unit_has_given_up_is_not_sent_again() {
    let mut sim =
        Sim::with_storage("class local wait\nvolume v class=local size=2\nclaim c class=local size=1");
    sim.pod_with_claim("p", None, "c");
    // The request is under way when the pod goes, and fails after that.
    sim.step();
    sim.storage.refusals.push_back(WriteOutcome::Failed("no answer in time".into()));
    sim.delete_pod("p");
    sim.step();
    sim.run_for(60);
    assert_eq!(sim.storage.writes, ["keep v for c"], "nobody waits for it any more");
}

#[test]
fn a_write_that_is_not_allowed_ends_the_wait() {
    let mut sim = Sim::with_storage(MADE);
    sim.storage.refusals.push_back(WriteOutcome::Rejected("forbidden".into()));
    sim.pod_with_claim("p", None, "c");
    sim.run();
    assert_eq!(sim.failure(), Some("forbidden"));
    sim.run_for(5);
    assert_eq!(sim.selected("c"), Some("a"), "it is tried again after a pause");
}

#[test]
fn a_pod_that_is_deleted_while_it_waits_takes_its_request_back() {
    let mut sim = Sim::with_storage(MADE);
    sim.gang("g", 2);
    sim.pod_with_claim("g-0", Some("g"), "c");
    sim.pod("g-1", Some("g"), 1);
    sim.run();
    sim.delete_pod("g-0");
    sim.run();
    assert_eq!(sim.storage.writes, ["select a for c", "select nothing for c"]);
    assert_eq!((sim.bound(), sim.failure()), (0, None), "nobody is blamed, and nobody starts alone");
}

#[test]
fn a_restart_in_the_middle_goes_on_where_it_was() {
    let mut sim = Sim::with_storage(MADE);
    sim.pod_with_claim("p", None, "c");
    sim.run();
    assert_eq!(sim.selected("c"), Some("a"));
    sim.core = crate::core::Core::new(Config::default(), Sim::capabilities().with_storage());
    sim.list_everything();
    STORAGE_KINDS.into_iter().for_each(|kind| sim.relist(kind));
    sim.run();
    assert_eq!(sim.storage.writes, ["select a for c"], "what was asked for needs not be asked again");
    sim.bind_claim("c", "v");
    sim.run();
    assert_eq!(sim.node_of("p"), Some("a"));
}

#[test]
fn storage_that_is_not_understood_is_reported_on_itself_and_its_pod_waits() {
    let mut sim = Sim::with_storage("");
    let claim = VolumeClaim::new(key("c"), "uid-c");
    let error = tutti_model::ModelError::new("spec.accessModes", "\"Sometimes\" is not known");
    let error = tutti_k8s::ObjectError::new(ObjectKind::Claim, key("c"), error);
    let reading = ClaimReading { claim, version: "1".into(), errors: vec![error] };
    for _ in 0..2 {
        sim.notify(ObjectKind::Claim, Input::ClaimSet(Box::new(reading.clone())));
    }
    sim.pod_with_claim("p", None, "c");
    sim.run_for(5);
    let events: Vec<_> = sim.events.iter().filter(|note| note.reason == "NotUnderstood").collect();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].regarding.kind.as_ref(), "PersistentVolumeClaim");
    assert_eq!(sim.bound(), 0);
}

#[test]
fn a_gang_of_which_nobody_knows_the_minimum_any_more_does_not_start_when_its_volumes_are_there() {
    let mut sim = Sim::with_storage(MADE);
    sim.gang("g", 2);
    sim.pod_with_claim("g-0", Some("g"), "c");
    sim.pod("g-1", Some("g"), 1);
    sim.run_for(5);
    sim.group_errors.insert(key("g"), ModelError::new("metadata.annotations", "is wrong"));
    sim.set_minimum("g", 3);
    sim.run_for(5);
    sim.bind_claim("c", "v");
    sim.run_for(5);
    assert_eq!(sim.binds, Vec::<String>::new(), "it needs three, but that cannot be read");
    sim.group_errors.clear();
    sim.pod("g-2", Some("g"), 1);
    sim.notify_group("g");
    sim.run_for(5);
    assert_eq!(sim.bound(), 3);
}
