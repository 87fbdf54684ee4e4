//! The picture of the cluster that controllers share: it takes in what watches tell and says who should look.

use super::budget::{BudgetSpec, BudgetStatus, BudgetView};
use super::deployment::{DeploymentSpec, DeploymentStatus, DeploymentView};
use super::job::{JobSpec, JobStatus, JobView};
use super::node::{LeaseSpec, LeaseView, NodeSpec, NodeStatus, NodeView};
use super::replica_set::{ReplicaSetSpec, ReplicaSetStatus, ReplicaSetView};
use super::{Options, budget, deployment, job, node, pod, replica_set};
use jiff::{SignedDuration, Timestamp};
use kube::core::ApiResource;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tutti_controllers::{
    Action, Cache, Change, Checked, Core, Key, Loose, Plan, PodSpec, PodStatus, PodView, Written,
    controller_of,
};

/// Pods that are removed at a time because too many have ended.
const COLLECTED_PER_PLAN_MAX: usize = 500;

/// News from a watch.
#[derive(Debug)]
pub(crate) enum Event {
    /// About a pod.
    Pod(Change<PodView>),
    /// About a node.
    Node(Change<NodeView>),
    /// About a lease.
    Lease(Change<LeaseView>),
    /// About a Job.
    Job(Change<JobView>),
    /// About a ReplicaSet.
    ReplicaSet(Change<ReplicaSetView>),
    /// About a Deployment.
    Deployment(Change<DeploymentView>),
    /// About a disruption budget.
    Budget(Change<BudgetView>),
}

/// Which controller should look at what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A Job.
    Job(Key),
    /// A pod whose Job is gone.
    JobOrphan(Key),
    /// A ReplicaSet.
    ReplicaSet(Key),
    /// A Deployment.
    Deployment(Key),
    /// A disruption budget.
    Budget(Key),
    /// A node.
    Node(String),
    /// A bound pod, because of its node.
    Pod(Key),
    /// All pods that have ended.
    EndedPods,
}

/// All that controllers know.
#[derive(Debug)]
pub(crate) struct World {
    options: Options,
    pods: Cache<PodSpec, PodStatus>,
    nodes: Cache<NodeSpec, NodeStatus>,
    leases: Cache<LeaseSpec>,
    jobs: Cache<Checked<JobSpec>, Loose<JobStatus>>,
    sets: Cache<Checked<ReplicaSetSpec>, Loose<ReplicaSetStatus>>,
    deployments: Cache<Checked<DeploymentSpec>, Loose<DeploymentStatus>>,
    budgets: Cache<Checked<BudgetSpec>, Loose<BudgetStatus>>,
    pods_by_node: BTreeMap<String, BTreeSet<Key>>,
    /// Pods that have ended, oldest first.
    ended: BTreeSet<(Timestamp, Key)>,
    /// When a node that pods are bound to was first missed.
    missed: BTreeMap<String, Timestamp>,
    /// When a taint was first seen on a node.
    tainted: BTreeMap<(String, String), Timestamp>,
    resources: Resources,
}

#[derive(Debug)]
struct Resources {
    pods: Arc<ApiResource>,
    nodes: Arc<ApiResource>,
    budgets: Arc<ApiResource>,
    jobs: job::Resources,
    sets: replica_set::Resources,
    deployments: deployment::Resources,
}

impl World {
    /// A picture of nothing yet.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            pods: Cache::default(),
            nodes: Cache::default(),
            leases: Cache::default(),
            jobs: Cache::default(),
            sets: Cache::default(),
            deployments: Cache::default(),
            budgets: Cache::default(),
            pods_by_node: BTreeMap::new(),
            ended: BTreeSet::new(),
            missed: BTreeMap::new(),
            tainted: BTreeMap::new(),
            resources: Resources {
                pods: tutti_controllers::pods(),
                nodes: node::nodes(),
                budgets: budget::budgets(),
                jobs: job::Resources::default(),
                sets: replica_set::Resources::default(),
                deployments: deployment::Resources::default(),
            },
        }
    }

    // === pods ===

    fn observe_pods(&mut self, change: Change<PodView>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (before, key) in self.pods.apply(change) {
            if let Some(before) = &before {
                self.unindex(before);
                self.concern(before, &mut tasks);
            }
            if let Some(pod) = self.pods.get(&key).cloned() {
                self.index(&pod);
                self.concern(&pod, &mut tasks);
                self.concern_node(&pod, &mut tasks);
            }
        }
        if self.ended.len() > self.options.ended_pods_max {
            tasks.push(Task::EndedPods);
        }
        tasks.sort();
        tasks.dedup();
        tasks
    }

    fn index(&mut self, pod: &PodView) {
        if let Some(node) = pod.node() {
            self.pods_by_node.entry(node.to_owned()).or_default().insert(pod.key());
        }
        if pod.has_ended() && !pod.is_terminating() {
            self.ended.insert((pod.created(), pod.key()));
        }
    }

    fn unindex(&mut self, pod: &PodView) {
        if let Some(node) = pod.node()
            && let Some(keys) = self.pods_by_node.get_mut(node)
        {
            keys.remove(&pod.key());
            if keys.is_empty() {
                self.pods_by_node.remove(node);
            }
        }
        self.ended.remove(&(pod.created(), pod.key()));
    }

    /// Everybody who has to do with a pod, as it was or as it is.
    fn concern(&self, pod: &PodView, tasks: &mut Vec<Task>) {
        let key = pod.key();
        if let Some(owner) = controller_of(&pod.metadata) {
            let owner_key = Key::new(key.namespace.clone(), owner.name.clone());
            match owner.kind.as_str() {
                "Job" if self.jobs.get(&owner_key).is_some_and(|job| job.uid() == owner.uid) => {
                    tasks.push(Task::Job(owner_key));
                }
                "Job" => tasks.push(Task::JobOrphan(key.clone())),
                "ReplicaSet" => {
                    if let Some(set) = self.sets.get(&owner_key) {
                        self.concern_deployment(set, tasks);
                    }
                    tasks.push(Task::ReplicaSet(owner_key));
                }
                _ => {}
            }
        }
        for budget in self.budgets.in_namespace(&key.namespace) {
            if budget::covers(budget, pod) {
                tasks.push(Task::Budget(budget.key()));
            }
        }
    }

    /// A pod concerns the controllers of nodes only where something is wrong with its node.
    fn concern_node(&self, pod: &PodView, tasks: &mut Vec<Task>) {
        let Some(name) = pod.node() else { return };
        let healthy = self.nodes.get(&Key::new("", name)).is_some_and(is_healthy);
        if !healthy && self.nodes.is_listed() {
            tasks.push(Task::Pod(pod.key()));
        }
    }

    // === nodes ===

    fn observe_nodes(&mut self, change: Change<NodeView>, now: Timestamp) -> Vec<Task> {
        let mut tasks = Vec::new();
        let first = !self.nodes.is_listed();
        for (before, key) in self.nodes.apply(change) {
            let node = self.nodes.get(&key);
            let was_healthy = before.as_ref().is_some_and(is_healthy);
            if node.is_some() {
                self.missed.remove(&key.name);
            }
            let taints = node.map(|node| node.spec.taints.0.clone()).unwrap_or_default();
            self.note_taints(&key.name, &taints, now);
            if !was_healthy || !self.nodes.get(&key).is_some_and(is_healthy) {
                let pods = self.pods_by_node.get(&key.name).into_iter().flatten();
                tasks.extend(pods.cloned().map(Task::Pod));
            }
            tasks.push(Task::Node(key.name));
        }
        if first {
            // Pods may have been seen before any node was.
            for pod in self.pods.iter() {
                self.concern_node(pod, &mut tasks);
            }
        }
        tasks
    }

    fn note_taints(&mut self, node: &str, taints: &[Value], now: Timestamp) {
        let present: BTreeSet<String> = taints.iter().map(taint_id).collect();
        let from = (node.to_owned(), String::new());
        let gone: Vec<(String, String)> = self
            .tainted
            .range(from..)
            .map(|(id, _)| id)
            .take_while(|(name, _)| name == node)
            .filter(|(_, taint)| !present.contains(taint))
            .cloned()
            .collect();
        for id in gone {
            self.tainted.remove(&id);
        }
        for taint in present {
            self.tainted.entry((node.to_owned(), taint)).or_insert(now);
        }
    }

    // === owners ===

    fn observe_jobs(&mut self, change: Change<JobView>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (before, key) in self.jobs.apply(change) {
            let now = self.jobs.get(&key);
            if let Some(Err(error)) = now.map(|job| &job.spec.0) {
                tracing::warn!(job = %key, error, "a Job cannot be read");
            }
            // Whoever belonged to a Job that is gone or was replaced has lost the one who counts them.
            if let Some(before) = before.filter(|before| now.is_none_or(|now| now.uid() != before.uid())) {
                tasks.extend(self.pods.owned_by(before.uid()).map(|pod| Task::JobOrphan(pod.key())));
            }
            tasks.push(Task::Job(key));
        }
        tasks
    }

    fn observe_sets(&mut self, change: Change<ReplicaSetView>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (before, key) in self.sets.apply(change) {
            for set in before.iter().chain(self.sets.get(&key)) {
                self.concern_deployment(set, &mut tasks);
                self.concern_budgets(set, &mut tasks);
            }
            tasks.push(Task::ReplicaSet(key));
        }
        tasks
    }

    fn concern_deployment(&self, set: &ReplicaSetView, tasks: &mut Vec<Task>) {
        if let Some(owner) = controller_of(&set.metadata).filter(|owner| owner.kind == "Deployment") {
            tasks.push(Task::Deployment(Key::new(set.key().namespace, owner.name.clone())));
        }
    }

    /// How many pods a set wants matters to the budgets that are shares of it.
    fn concern_budgets(&self, set: &ReplicaSetView, tasks: &mut Vec<Task>) {
        let namespace = set.key().namespace;
        let pod = self.pods.owned_by(set.uid()).next();
        for budget in self.budgets.in_namespace(&namespace) {
            if pod.is_some_and(|pod| budget::covers(budget, pod)) {
                tasks.push(Task::Budget(budget.key()));
            }
        }
    }

    /// The controller that a pod belongs to in the end, and how many pods that wants.
    fn scale_of(&self, pod: &PodView) -> Result<Option<(String, u32)>, String> {
        let Some(owner) = controller_of(&pod.metadata) else {
            return Ok(None);
        };
        let namespace = pod.key().namespace;
        let unknown = || format!("found no controllers for pod {:?}", pod.name());
        let set = self.sets.get(&Key::new(namespace.clone(), owner.name.clone()));
        let set =
            set.filter(|set| owner.kind == "ReplicaSet" && set.uid() == owner.uid).ok_or_else(unknown)?;
        let parent = controller_of(&set.metadata).filter(|parent| parent.kind == "Deployment");
        let deployment = parent.and_then(|parent| {
            let deployment = self.deployments.get(&Key::new(namespace, parent.name.clone()))?;
            (deployment.uid() == parent.uid).then_some(deployment)
        });
        Ok(match (deployment, &set.spec.0) {
            (Some(deployment), _) => {
                deployment.spec.0.as_ref().ok().map(|spec| (deployment.uid().to_owned(), spec.wanted()))
            }
            (None, Ok(spec)) => Some((set.uid().to_owned(), spec.wanted())),
            (None, Err(_)) => None,
        })
    }

    // === plans ===

    fn plan_job(&self, key: &Key, now: Timestamp) -> Plan {
        let Some(job) = self.jobs.get(key) else { return Plan::nothing() };
        let pods: Vec<&PodView> = self.pods.owned_by(job.uid()).collect();
        job::plan(job, &pods, &self.resources.jobs, now)
    }

    fn plan_job_orphan(&self, key: &Key) -> Plan {
        let Some(pod) = self.pods.get(key) else { return Plan::nothing() };
        let Some(owner) = controller_of(&pod.metadata).filter(|owner| owner.kind == "Job") else {
            return Plan::nothing();
        };
        let job = self.jobs.get(&Key::new(key.namespace.clone(), owner.name.clone()));
        if job.is_some_and(|job| job.uid() == owner.uid) {
            return Plan::nothing();
        }
        job::release(pod, &self.resources.jobs).map_or_else(Plan::nothing, Plan::one)
    }

    fn plan_set(&self, key: &Key, now: Timestamp) -> Plan {
        let Some(set) = self.sets.get(key) else { return Plan::nothing() };
        let pods: Vec<&PodView> = self.pods.owned_by(set.uid()).collect();
        replica_set::plan(set, &pods, &self.resources.sets, now)
    }

    fn plan_deployment(&self, key: &Key, now: Timestamp) -> Plan {
        let Some(deployment) = self.deployments.get(key) else { return Plan::nothing() };
        let sets: Vec<&ReplicaSetView> = self.sets.owned_by(deployment.uid()).collect();
        let has_pods = |set: &ReplicaSetView| self.pods.owned_by(set.uid()).any(|pod| !pod.has_ended());
        deployment::plan(deployment, &sets, has_pods, &self.resources.deployments, now)
    }

    fn plan_budget(&self, key: &Key, now: Timestamp) -> Plan {
        let Some(budget) = self.budgets.get(key) else { return Plan::nothing() };
        let pods: Vec<&PodView> =
            self.pods.in_namespace(&key.namespace).filter(|pod| budget::covers(budget, pod)).collect();
        budget::plan(budget, &pods, |pod| self.scale_of(pod), &self.resources.budgets, now)
    }

    fn plan_node(&self, name: &str, now: Timestamp) -> Plan {
        let Some(node) = self.nodes.get(&Key::new("", name)) else { return Plan::nothing() };
        let lease = self.leases.get(&Key::new(node::LEASE_NAMESPACE, name));
        node::plan(node, lease, signed(self.options.node_grace), &self.resources.nodes, now)
    }

    fn plan_pod(&mut self, key: &Key, now: Timestamp) -> Plan {
        let Some(pod) = self.pods.get(key) else { return Plan::nothing() };
        let Some(name) = pod.node() else { return Plan::nothing() };
        let place = match self.nodes.get(&Key::new("", name)) {
            Some(node) => {
                let seen = |taint: &Value| self.tainted.get(&(name.to_owned(), taint_id(taint))).copied();
                return pod::plan(pod, &pod::Place::Node { node, seen: &seen }, &self.resources.pods, now);
            }
            None => pod::Place::Nowhere {
                since: *self.missed.entry(name.to_owned()).or_insert(now),
                delay: signed(self.options.orphan_delay),
            },
        };
        pod::plan(pod, &place, &self.resources.pods, now)
    }

    fn plan_ended_pods(&self) -> Plan {
        let surplus = self.ended.len().saturating_sub(self.options.ended_pods_max);
        let oldest = self.ended.iter().take(surplus.min(COLLECTED_PER_PLAN_MAX));
        let delete = |(_, key): &(Timestamp, Key)| {
            let pod = self.pods.get(key)?;
            Some(Action::Delete {
                resource: Arc::clone(&self.resources.pods),
                key: key.clone(),
                uid: pod.uid().to_owned(),
                now: true,
                first: None,
                told_on: None,
            })
        };
        Plan { actions: oldest.filter_map(delete).collect(), look_again: None }
    }
}

impl Core for World {
    type Event = Event;
    type Task = Task;

    fn observe(&mut self, event: Event, now: Timestamp) -> Vec<Task> {
        match event {
            Event::Pod(change) => self.observe_pods(change),
            Event::Node(change) => self.observe_nodes(change, now),
            Event::Lease(change) => {
                // Renewals need no look: a node is looked at when its lease would have run out.
                self.leases.apply(change);
                Vec::new()
            }
            Event::Job(change) => self.observe_jobs(change),
            Event::ReplicaSet(change) => self.observe_sets(change),
            Event::Deployment(change) => {
                self.deployments.apply(change).into_iter().map(|(_, key)| Task::Deployment(key)).collect()
            }
            Event::Budget(change) => {
                self.budgets.apply(change).into_iter().map(|(_, key)| Task::Budget(key)).collect()
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.pods.is_listed()
            && self.nodes.is_listed()
            && self.leases.is_listed()
            && self.jobs.is_listed()
            && self.sets.is_listed()
            && self.deployments.is_listed()
            && self.budgets.is_listed()
    }

    fn has_seen(&self, written: &Written) -> bool {
        let version = written.version;
        match written.plural.as_str() {
            "pods" => self.pods.has_seen(version),
            "nodes" => self.nodes.has_seen(version),
            "jobs" => self.jobs.has_seen(version),
            "replicasets" => self.sets.has_seen(version),
            "deployments" => self.deployments.has_seen(version),
            "poddisruptionbudgets" => self.budgets.has_seen(version),
            _ => true,
        }
    }

    fn plan(&mut self, task: &Task, now: Timestamp) -> Plan {
        match task {
            Task::Job(key) => self.plan_job(key, now),
            Task::JobOrphan(key) => self.plan_job_orphan(key),
            Task::ReplicaSet(key) => self.plan_set(key, now),
            Task::Deployment(key) => self.plan_deployment(key, now),
            Task::Budget(key) => self.plan_budget(key, now),
            Task::Node(name) => self.plan_node(name, now),
            Task::Pod(key) => self.plan_pod(key, now),
            Task::EndedPods => self.plan_ended_pods(),
        }
    }
}

/// True if a node gives nobody reason to look at its pods.
fn is_healthy(node: &NodeView) -> bool {
    let evicts = |taint: &Value| taint.get("effect").and_then(Value::as_str) == Some("NoExecute");
    node::readiness(node) == "True" && !node.spec.taints.0.iter().any(evicts)
}

fn taint_id(taint: &Value) -> String {
    let text = |field| taint.get(field).and_then(Value::as_str).unwrap_or_default();
    format!("{}={}:{}", text("key"), text("value"), text("effect"))
}

fn signed(duration: std::time::Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
