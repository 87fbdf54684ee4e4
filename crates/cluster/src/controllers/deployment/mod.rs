//! Deployments: a ReplicaSet for every template that there was, and the way from one to the next.
//!
//! [`plan`] is the whole controller; [`rollout`] holds the arithmetic of an update, [`revision`] the numbering that
//! `kubectl rollout history` and `undo` read.

mod revision;
mod rollout;
mod status;
mod view;

pub(crate) use self::view::{DeploymentSpec, DeploymentStatus, DeploymentView};

use super::owners;
use super::replica_set::ReplicaSetView;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ApiResource;
use rollout::Sized;
use serde_json::{Map, Value, json};
use status::News;
use std::sync::Arc;
use tutti_controllers::{Action, Edit, Note, Plan, Severity};

/// The resources that Deployments are made of.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) deployments: Arc<ApiResource>,
    pub(super) replica_sets: Arc<ApiResource>,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            deployments: Arc::new(ApiResource::erase::<Deployment>(&())),
            replica_sets: Arc::new(ApiResource::erase::<ReplicaSet>(&())),
        }
    }
}

/// What is to be done about a Deployment, given its ReplicaSets and which of them still have pods that have not
/// ended.
pub(super) fn plan(
    deployment: &DeploymentView,
    sets: &[&ReplicaSetView],
    has_pods: impl Fn(&ReplicaSetView) -> bool,
    resources: &Resources,
    now: Timestamp,
) -> Plan {
    let Ok(spec) = &deployment.spec.0 else {
        return Plan::nothing();
    };
    let new = revision::newest(spec, sets);
    let mut old: Vec<&ReplicaSetView> =
        sets.iter().copied().filter(|set| new.is_none_or(|new| new.uid() != set.uid())).collect();
    old.sort_by_key(|set| (set.created(), set.key()));
    let about = owners::reference(deployment, &resources.deployments);
    let mut rollout = Rollout { deployment, spec, new, old, about, resources, plan: Plan::nothing() };
    let news = if deployment.is_terminating() { News::None } else { rollout.act(has_pods) };
    let mut plan = rollout.plan;
    let mut wanted = status::status(deployment, spec, sets, new, &news, now, &mut plan);
    if collides(deployment, spec, sets, new) {
        wanted.collision_count = Some(wanted.collision_count.unwrap_or(0).saturating_add(1));
    }
    if wanted != deployment.status.0 {
        let patch = status::patch(deployment, &wanted);
        plan.actions.push(Action::patch(&resources.deployments, deployment.key(), Edit::status(patch)));
    }
    plan
}

/// True if the name of the set to be made is taken by one of another template.
fn collides(
    deployment: &DeploymentView,
    spec: &DeploymentSpec,
    sets: &[&ReplicaSetView],
    new: Option<&ReplicaSetView>,
) -> bool {
    new.is_none() && sets.iter().any(|set| set.name() == revision::name_of(deployment, spec).0)
}

struct Rollout<'a> {
    deployment: &'a DeploymentView,
    spec: &'a DeploymentSpec,
    new: Option<&'a ReplicaSetView>,
    /// Oldest first.
    old: Vec<&'a ReplicaSetView>,
    about: Arc<ObjectReference>,
    resources: &'a Resources,
    plan: Plan,
}

impl Rollout<'_> {
    fn act(&mut self, has_pods: impl Fn(&ReplicaSetView) -> bool) -> News {
        let revision = revision::revision_to_be(self.new, &self.old);
        let old_pods_run = self.old.iter().any(|set| has_pods(set));
        let Some(new) = self.new else {
            return self.act_without_new(revision, old_pods_run);
        };
        self.number_deployment(revision);
        let mut sets = self.old.clone();
        sets.push(new);
        let sized: Vec<Sized> = sets.iter().map(|set| Sized::of(set)).collect();
        let sizes = rollout::sizes(self.spec, &sized, old_pods_run);
        for (set, size) in self.old.clone().into_iter().zip(&sizes) {
            self.write_set(set, *size, Map::new());
        }
        let annotations = revision::annotations_to_write(self.deployment, new, revision);
        self.write_set(new, sizes.last().copied().unwrap_or(0), annotations);
        if sizes.iter().zip(&sized).all(|(size, set)| *size == set.replicas) {
            self.forget_history();
        }
        News::None
    }

    /// There is no set for the present template yet.
    fn act_without_new(&mut self, revision: i64, old_pods_run: bool) -> News {
        let mut sized: Vec<Sized> = self.old.iter().map(|set| Sized::of(set)).collect();
        if self.spec.paused {
            let sizes = rollout::sizes(self.spec, &sized, old_pods_run);
            for (set, size) in self.old.clone().into_iter().zip(sizes) {
                self.write_set(set, size, Map::new());
            }
            return News::None;
        }
        if collides(self.deployment, self.spec, &self.old, None) {
            return News::None;
        }
        sized.push(Sized::empty());
        let sizes = rollout::sizes(self.spec, &sized, old_pods_run);
        let size = sizes.last().copied().unwrap_or(0);
        let object =
            revision::new_set(self.deployment, self.spec, revision, size, &self.resources.deployments);
        let name = revision::name_of(self.deployment, self.spec).0;
        self.number_deployment(revision);
        self.plan.actions.push(Action::Create {
            resource: Arc::clone(&self.resources.replica_sets),
            namespace: self.deployment.key().namespace,
            object: Box::new(object),
            told_on: None,
        });
        self.tell_scaled(&name, 0, size);
        News::Created(name)
    }

    fn number_deployment(&mut self, revision: i64) {
        let number = revision.to_string();
        if self.deployment.annotation(revision::REVISION) == Some(&number) {
            return;
        }
        let patch = json!({"metadata": {
            "uid": self.deployment.uid(), "annotations": {revision::REVISION: number},
        }});
        let key = self.deployment.key();
        self.plan.actions.push(Action::patch(&self.resources.deployments, key, Edit::merge(patch)));
    }

    /// Scales a set and sets annotations of it, as far as that changes anything.
    fn write_set(&mut self, set: &ReplicaSetView, size: u32, mut annotations: Map<String, Value>) {
        let before = Sized::of(set).replicas;
        if size > 0 || before != size {
            for (key, value) in revision::sizes(self.spec) {
                if set.annotation(&key) != Some(&value) {
                    annotations.insert(key, json!(value));
                }
            }
        }
        let mut patch = json!({"metadata": {"uid": set.uid(), "resourceVersion": set.version()}});
        if before != size {
            patch["spec"] = json!({"replicas": size});
            self.tell_scaled(set.name(), before, size);
        } else if annotations.is_empty() {
            return;
        }
        if !annotations.is_empty() {
            patch["metadata"]["annotations"] = annotations.into();
        }
        self.plan.actions.push(Action::patch(&self.resources.replica_sets, set.key(), Edit::merge(patch)));
    }

    fn tell_scaled(&mut self, name: &str, from: u32, to: u32) {
        if from == to {
            return;
        }
        let way = if to > from { "up" } else { "down" };
        self.plan.actions.push(Action::Tell(Note {
            about: Arc::clone(&self.about),
            severity: Severity::Normal,
            reason: "ScalingReplicaSet",
            message: format!("Scaled {way} replica set {name} from {from} to {to}"),
        }));
    }

    /// Drops the oldest sets that nobody can want back any more.
    fn forget_history(&mut self) {
        let mut idle: Vec<&ReplicaSetView> = self
            .old
            .iter()
            .copied()
            .filter(|set| {
                let status = &set.status.0;
                let seen = status.observed_generation >= set.metadata.generation.unwrap_or(0);
                Sized::of(set).replicas == 0 && status.replicas == 0 && seen && !set.is_terminating()
            })
            .collect();
        idle.sort_by_key(|set| (revision::revision_of(set), set.created(), set.key()));
        let surplus = idle.len().saturating_sub(self.spec.history_limit());
        for set in idle.into_iter().take(surplus) {
            self.plan.actions.push(Action::Delete {
                resource: Arc::clone(&self.resources.replica_sets),
                key: set.key(),
                uid: set.uid().to_owned(),
                now: false,
                first: None,
                told_on: None,
            });
        }
    }
}
