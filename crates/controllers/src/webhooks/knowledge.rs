//! What the webhooks know of the cluster, as the watches tell it.

use crate::action::{Plan, Written};
use crate::cache::{Cache, Change};
use crate::core::Core;
use crate::view::{Key, Loose, Unread, View, controller_of};
use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tutti_k8s::GroupLink;
use tutti_model::{Quantity, Resource, ResourceList};

/// A Job, as far as its size matters.
pub type JobView = View<Loose<JobSize>>;
/// A node, as far as its size and labels matter.
pub type NodeView = View<Unread, Loose<NodeSize>>;
/// A group, or in 1.35 the Workload that has groups as its parts.
pub type GroupView = View<Value>;

/// How many pods a Job runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub struct JobSize {
    parallelism: Option<u32>,
    completions: Option<u32>,
}

impl JobSize {
    /// How many of its pods ever exist at a time.
    pub fn pods_at_once(self) -> u32 {
        let parallelism = self.parallelism();
        self.completions.map_or(parallelism, |completions| completions.min(parallelism))
    }

    /// How many it asks for.
    pub fn parallelism(self) -> u32 {
        self.parallelism.unwrap_or(1)
    }
}

/// What a node has.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct NodeSize {
    /// For pods.
    pub allocatable: Amounts,
}

/// Amounts of resources; those that cannot be read are not there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amounts(pub ResourceList);

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::<String, Loose<String>>::deserialize(deserializer)?;
        let amounts = texts.iter().filter_map(|(name, text)| {
            let resource = Resource::new(name);
            let amount = resource.checked_amount_of(text.0.parse::<Quantity>().ok()?).ok()?;
            Some((resource, amount))
        });
        Ok(Self(amounts.collect()))
    }
}

/// All of it; at first nothing.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// How pods name their groups here.
    pub link: GroupLink,
    /// Schedulers that understand groups.
    pub scheduler_names: Vec<String>,
    groups: Cache<Value>,
    jobs: Cache<Loose<JobSize>>,
    nodes: Cache<Unread, Loose<NodeSize>>,
}

impl Knowledge {
    /// Nothing yet, of a cluster like this.
    pub fn new(link: GroupLink, scheduler_names: Vec<String>) -> Self {
        Self { link, scheduler_names, ..Self::default() }
    }

    /// Takes in what happened.
    pub fn observe(&mut self, event: Event) {
        match event {
            Event::Group(change) => drop(self.groups.apply(change)),
            Event::Job(change) => drop(self.jobs.apply(change)),
            Event::Node(change) => drop(self.nodes.apply(change)),
        }
    }

    /// The group of a Job, if there is exactly one that it could be.
    pub fn group_of_job<'a>(&'a self, namespace: &'a str, job: &'a str, uid: &str) -> Option<&'a GroupView> {
        let by_owner = self.groups.owned_by(uid).filter(|group| group.key().namespace == namespace);
        let mut all = by_owner.chain(self.groups_for(namespace, job)).filter(|group| !group.is_terminating());
        let first = all.next()?;
        all.all(|other| other.uid() == first.uid()).then_some(first)
    }

    /// Workloads of 1.35 that name a Job as the object they are for.
    fn groups_for<'a>(&'a self, namespace: &'a str, job: &'a str) -> impl Iterator<Item = &'a GroupView> {
        let all = (self.link == GroupLink::WorkloadRef).then(|| self.groups.in_namespace(namespace));
        all.into_iter().flatten().filter(move |workload| controller_named(workload) == Some(job))
    }

    /// A group by its name.
    pub fn group(&self, namespace: &str, name: &str) -> Option<&GroupView> {
        self.groups.get(&Key::new(namespace, name))
    }

    /// The Job that an object was made for, by its owner or by what a Workload says.
    pub fn job_of(&self, namespace: &str, object: &GroupView) -> Option<&JobView> {
        let owner = controller_of(&object.metadata).filter(|owner| owner.kind == "Job");
        let name = owner.map(|owner| owner.name.as_str()).or_else(|| controller_named(object))?;
        let job = self.jobs.get(&Key::new(namespace, name))?;
        owner.is_none_or(|owner| owner.uid == job.uid()).then_some(job)
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeView> {
        self.nodes.iter()
    }
}

/// The Job that a Workload names in `spec.controllerRef`.
fn controller_named(workload: &GroupView) -> Option<&str> {
    let reference = workload.spec.get("controllerRef")?;
    let is = |field: &str, text: &str| reference.get(field).and_then(Value::as_str) == Some(text);
    (is("apiGroup", "batch") && is("kind", "Job")).then(|| reference.get("name")?.as_str()).flatten()
}

/// News from a watch.
#[derive(Debug)]
pub enum Event {
    /// About a group.
    Group(Change<GroupView>),
    /// About a Job.
    Job(Change<JobView>),
    /// About a node.
    Node(Change<NodeView>),
}

/// What is known, for many who ask and one who follows the watches.
#[derive(Debug, Clone)]
pub struct Shared(Arc<RwLock<Knowledge>>);

impl Shared {
    /// Shares it.
    pub fn new(knowledge: Knowledge) -> Self {
        Self(Arc::new(RwLock::new(knowledge)))
    }

    /// From now on the cluster links pods like this, and these are the schedulers. Objects stay as they are known
    /// until the watches have listed what there is now.
    pub fn serve(&self, link: GroupLink, scheduler_names: Vec<String>) {
        let mut knowledge = self.write();
        (knowledge.link, knowledge.scheduler_names) = (link, scheduler_names);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Knowledge> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// To ask.
    pub fn read(&self) -> RwLockReadGuard<'_, Knowledge> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// It only listens: there is never anything to do.
impl Core for Shared {
    type Event = Event;
    type Task = Key;

    fn observe(&mut self, event: Event, _now: Timestamp) -> Vec<Key> {
        self.write().observe(event);
        Vec::new()
    }

    fn is_ready(&self) -> bool {
        let knowledge = self.read();
        knowledge.jobs.is_listed() && knowledge.nodes.is_listed()
    }

    fn has_seen(&self, _written: &Written) -> bool {
        true
    }

    fn plan(&mut self, _task: &Key, _now: Timestamp) -> Plan {
        Plan::nothing()
    }
}
