//! Objects that ask for a group by annotations: which template of which Workload, under which composite.

use crate::view::{Loose, Unread, View, controller_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::sync::Arc;
use tutti_k8s::gangs::{JOB, group_name, workload_name};
use tutti_k8s::inheritance::{self, Annotations};

/// The name of the template.
pub const TEMPLATE: &str = "scheduling.k8s.io/group-template-name";
/// The name of the composite that the group is part of.
pub const PARENT: &str = "scheduling.k8s.io/parent-compositepodgroup";
/// The same, as the proposal spells it.
const PARENT_AS_PROPOSED: &str = "scheduling.k8s.io/parent-composite-podgroup";
/// The name of the Workload, for objects whose owner does not tell.
pub const WORKLOAD: &str = "tutti.dev/workload";

/// A Job, as far as its group matters.
pub type JobView = View<Loose<JobSpec>, Value>;
/// A pod, as far as its group matters.
pub type PodView = View<Loose<PodSpec>, Loose<PodStatus>>;

/// What is read of a Job.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct JobSpec {
    template: PodTemplate,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
struct PodTemplate {
    spec: PodSpec,
}

/// What is read of a pod.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    scheduler_name: String,
    scheduling_group: Option<SchedulingGroup>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SchedulingGroup {
    pod_group_name: String,
}

/// How far a pod is.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct PodStatus {
    phase: String,
}

/// How a Workload is found, in the namespace of whoever looks for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// By its name.
    Named(String),
    /// By the object that it says it is for.
    For {
        /// API group of that object.
        group: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// What an object asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reference {
    /// The group that its pods are in.
    pub(super) group: String,
    /// The Workload.
    pub(super) target: Target,
    /// The template in it.
    pub(super) template: String,
    /// The composite that the group is part of, if it says so.
    pub(super) parent: Option<String>,
    /// Annotations that the group inherits from it.
    pub(super) inherited: Annotations,
    /// The owner of the group; the Workload, if it is none.
    pub(super) owner: Option<Value>,
    /// Identity of that owner.
    pub(super) owner_uid: Option<String>,
    /// Whether a group may still be made: one that comes after the first pod has started is none.
    pub(super) is_open: bool,
    /// Since when it asks.
    pub(super) since: Timestamp,
    /// How events name it.
    pub(super) about: Arc<ObjectReference>,
}

impl Reference {
    /// What a Job asks for: a group of its own.
    pub(super) fn of_job(job: &JobView, serves: impl Fn(&str) -> bool) -> Option<Self> {
        let pod = &job.spec.0.template.spec;
        if pod.scheduling_group.is_some() || !serves(&pod.scheduler_name) || job.is_terminating() {
            return None;
        }
        let asks = JOB.read(&job.metadata, &Value::Null, &job.status);
        if asks.has_ended {
            return None;
        }
        let template = job.annotation(TEMPLATE)?.to_owned();
        let own = || Target::For {
            group: JOB.group.to_owned(),
            kind: JOB.kind.to_owned(),
            name: job.name().to_owned(),
        };
        let api_version = format!("{}/{}", JOB.group, JOB.version);
        Some(Self {
            // Several Jobs may be of one template.
            group: group_name(&workload_name(job.name(), job.uid()), &template),
            target: target(&job.metadata).unwrap_or_else(own),
            owner: Some(json!({
                "apiVersion": api_version, "kind": JOB.kind, "name": job.name(), "uid": job.uid(),
                "controller": true,
            })),
            owner_uid: job.metadata.uid.clone(),
            is_open: !asks.has_run,
            ..Self::new(template, &job.metadata, &api_version, JOB.kind)
        })
    }

    /// What a pod asks for: the group that it names.
    pub(super) fn of_pod(pod: &PodView, serves: impl Fn(&str) -> bool) -> Option<Self> {
        let group = &pod.spec.0.scheduling_group.as_ref()?.pod_group_name;
        let has_ended = matches!(pod.status.0.phase.as_str(), "Succeeded" | "Failed");
        if group.is_empty() || has_ended || pod.is_terminating() || !serves(&pod.spec.0.scheduler_name) {
            return None;
        }
        let template = pod.annotation(TEMPLATE)?.to_owned();
        let target = target(&pod.metadata)?;
        Some(Self { group: group.clone(), target, ..Self::new(template, &pod.metadata, "v1", "Pod") })
    }

    fn new(template: String, metadata: &ObjectMeta, api_version: &str, kind: &str) -> Self {
        let parent = annotation(metadata, PARENT).or_else(|| annotation(metadata, PARENT_AS_PROPOSED));
        Self {
            group: String::new(),
            target: Target::Named(String::new()),
            template,
            parent: parent.map(str::to_owned),
            inherited: metadata.annotations.as_ref().map(inheritance::of_object).unwrap_or_default(),
            owner: None,
            owner_uid: None,
            is_open: true,
            since: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            about: Arc::new(ObjectReference {
                api_version: Some(api_version.to_owned()),
                kind: Some(kind.to_owned()),
                namespace: metadata.namespace.clone(),
                name: metadata.name.clone(),
                uid: metadata.uid.clone(),
                ..ObjectReference::default()
            }),
        }
    }

    /// True if both ask for the same group in the same way.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.target == other.target && self.template == other.template && self.parent == other.parent
    }
}

/// The Workload that an object says it is of: by name, or as the one of its controller.
fn target(metadata: &ObjectMeta) -> Option<Target> {
    if let Some(name) = annotation(metadata, WORKLOAD) {
        return Some(Target::Named(name.to_owned()));
    }
    let owner = controller_of(metadata)?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    Some(Target::For { group: group.to_owned(), kind: owner.kind.clone(), name: owner.name.clone() })
}

fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// The objects by which a Workload may be found.
pub(super) fn targets_of(workload: &View<Value, Unread>) -> Vec<Target> {
    let mut targets = vec![Target::Named(workload.name().to_owned())];
    if let Some(reference) = workload.spec.get("controllerRef") {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        targets.push(Target::For { group: text("apiGroup"), kind: text("kind"), name: text("name") });
    }
    targets
}
