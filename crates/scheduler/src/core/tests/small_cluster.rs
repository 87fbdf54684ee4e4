//! An API server in a few lines: it applies bindings and patches, tells watches, and misbehaves on demand.

use crate::config::Config;
use crate::core::Core;
use crate::core::message::{
    Answer, BindOutcome, Effect, EventKey, Fact, GroupLookup, Input, Lookup, WriteKey, WriteOutcome,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use tutti_engine::{Seat, UnitKey};
use tutti_k8s::gangs::{JobReading, JobRef};
use tutti_k8s::marks::{FULLY_BOUND, UNWIND_AT};
use tutti_k8s::request::EventNote;
use tutti_k8s::{
    Capabilities, Condition, GroupMarks, GroupReading, NodeReading, ObjectError, ObjectKind, PodReading,
};
use tutti_model::{Group, ModelError, Node, ObjectKey, Pod, Policy, Resource, ResourceList, Text, Time};

/// What happens to a binding that reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Refused for certain.
    Refuse,
    /// Never written, and no answer.
    LoseRequest,
    /// Written, and no answer.
    LoseAnswer,
    /// Not written, because there is too much to do.
    Throttle,
}

impl Fault {
    pub(super) fn outcome(self) -> BindOutcome {
        match self {
            Self::Refuse => BindOutcome::Refused("forbidden".into()),
            Self::LoseRequest => BindOutcome::Unknown("connection lost".into()),
            Self::LoseAnswer => BindOutcome::Unknown("no answer in time".into()),
            Self::Throttle => BindOutcome::Throttled { why: "busy".into(), pause: None },
        }
    }
}

const KINDS: [ObjectKind; 5] =
    [ObjectKind::Pod, ObjectKind::Node, ObjectKind::PodGroup, ObjectKind::Composite, ObjectKind::Namespace];

/// Steps without an end are a bug of the core.
const ROUNDS_MAX: usize = 100_000;
/// Clusters with more pods are not checked after every step.
const CHECKED_PODS_MAX: usize = 100;

pub(super) struct Sim {
    pub(super) core: Core,
    pub(super) now: Time,
    version: u64,
    pub(super) pods: BTreeMap<ObjectKey, Pod>,
    pod_conditions: BTreeMap<ObjectKey, Condition>,
    pub(super) groups: BTreeMap<ObjectKey, Group>,
    pub(super) composites: BTreeMap<ObjectKey, Group>,
    /// Groups and composites that were read once more before something of theirs started, in order.
    pub(super) looks: Vec<String>,
    pub(super) group_conditions: BTreeMap<ObjectKey, Condition>,
    pub(super) composite_conditions: BTreeMap<ObjectKey, Condition>,
    /// What is wrong with a group or composite, if it cannot be understood.
    pub(super) group_errors: BTreeMap<ObjectKey, ModelError>,
    /// Nothing that is said on groups is written.
    pub(super) refuses_conditions: bool,
    group_versions: BTreeMap<ObjectKey, u64>,
    nodes: BTreeMap<Text, Node>,
    /// Pods that nobody makes again.
    pub(super) uncontrolled: BTreeSet<ObjectKey>,
    /// What is written on groups.
    pub(super) marks: BTreeMap<ObjectKey, GroupMarks>,
    /// Pods that were deleted on request, with what was said on them before.
    pub(super) evicted: Vec<(String, Option<Condition>)>,
    disrupted: BTreeMap<ObjectKey, Condition>,
    /// What watches will tell, by kind; each kind in order, kinds among each other in any.
    watches: BTreeMap<ObjectKind, VecDeque<Input>>,
    held: Vec<ObjectKind>,
    requests: VecDeque<Effect>,
    /// How many requests there were.
    pub(super) requests_count: usize,
    /// Looks at this group get no answer in time.
    pub(super) unreadable: Option<String>,
    /// Looks at this group are on their way for as long as it is set.
    pub(super) slow_look: Option<String>,
    /// So many marks of groups are on their way for longer than anybody waits for an answer.
    pub(super) slow_marks: usize,
    /// Marks of groups are forbidden.
    pub(super) refuses_marks: bool,
    /// Deletions of pods are on their way for so long, too.
    pub(super) slow_deletions: bool,
    late: Vec<Effect>,
    /// Faults of the next bindings of a pod, by name.
    pub(super) faults: BTreeMap<String, VecDeque<Fault>>,
    /// All bindings that reached the server, in order.
    pub(super) binds: Vec<String>,
    /// All other writes that reached the server, in order.
    pub(super) order: Vec<String>,
    /// All bindings that were written.
    pub(super) written: Vec<String>,
    pub(super) group_patches: Vec<Condition>,
    pub(super) pod_patches: Vec<(ObjectKey, Condition)>,
    pub(super) events: Vec<EventNote>,
    pub(super) facts: Vec<Fact>,
    pub(super) storage: super::volumes::SimStorage,
    pub(super) jobs: BTreeMap<ObjectKey, JobReading>,
    /// Pods and groups that belong to Jobs.
    pub(super) job_of_pod: BTreeMap<ObjectKey, JobRef>,
    pub(super) job_of_group: BTreeMap<ObjectKey, Text>,
    /// Controllers of pods, and priority classes of groups.
    pub(super) replicators: BTreeMap<ObjectKey, (ObjectKind, ObjectKey)>,
    pub(super) priority_classes: BTreeMap<ObjectKey, Text>,
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn cpu(amount: i64) -> ResourceList {
    [(Resource::new("cpu"), amount * 1000), (Resource::new("pods"), 1)].into_iter().collect()
}

impl Sim {
    /// An empty cluster, listed and watched.
    pub(super) fn new() -> Self {
        let mut sim = Self::unlisted(Config::default());
        sim.list_everything();
        sim
    }

    /// A node `a` with room for so many pods, and a gang `g` of so many that all have to start together.
    pub(super) fn with_gang(room: i64, members: u32) -> Self {
        let mut sim = Self::new();
        sim.node("a", room);
        sim.gang("g", members);
        sim.gang_pods("g", members as usize, 1);
        sim
    }

    pub(super) fn capabilities() -> Capabilities {
        Capabilities::of_versions(&["v1beta1"]).with_composites()
    }

    pub(super) fn list_everything(&mut self) {
        KINDS.into_iter().for_each(|kind| self.relist(kind));
    }

    /// The scheduler ends without a word, and another one starts.
    pub(super) fn restart(&mut self) {
        self.replace_core();
        self.run();
    }

    /// The same before it has done anything.
    pub(super) fn replace_core(&mut self) {
        self.core = Core::new(Config::default(), Self::capabilities());
        self.requests.clear();
        self.list_everything();
    }

    /// An empty cluster that was not listed yet.
    pub(super) fn unlisted(config: Config) -> Self {
        Self::of(Core::new(config, Self::capabilities()))
    }

    /// The same with a core of its own.
    pub(super) fn of(core: Core) -> Self {
        Self {
            core,
            now: Time(1_000_000_000),
            version: 0,
            pods: BTreeMap::new(),
            pod_conditions: BTreeMap::new(),
            groups: BTreeMap::new(),
            composites: BTreeMap::new(),
            looks: Vec::new(),
            group_conditions: BTreeMap::new(),
            composite_conditions: BTreeMap::new(),
            group_errors: BTreeMap::new(),
            refuses_conditions: false,
            group_versions: BTreeMap::new(),
            nodes: BTreeMap::new(),
            uncontrolled: BTreeSet::new(),
            marks: BTreeMap::new(),
            evicted: Vec::new(),
            disrupted: BTreeMap::new(),
            watches: BTreeMap::new(),
            held: Vec::new(),
            requests: VecDeque::new(),
            requests_count: 0,
            slow_look: None,
            unreadable: None,
            slow_marks: 0,
            refuses_marks: false,
            slow_deletions: false,
            late: Vec::new(),
            faults: BTreeMap::new(),
            binds: Vec::new(),
            order: Vec::new(),
            written: Vec::new(),
            group_patches: Vec::new(),
            pod_patches: Vec::new(),
            events: Vec::new(),
            facts: Vec::new(),
            storage: super::volumes::SimStorage::default(),
            jobs: BTreeMap::new(),
            job_of_pod: BTreeMap::new(),
            job_of_group: BTreeMap::new(),
            replicators: BTreeMap::new(),
            priority_classes: BTreeMap::new(),
        }
    }

    // --- the cluster -------------------------------------------------------------------------------------

    pub(super) fn node(&mut self, name: &str, cpus: i64) {
        let mut allocatable = cpu(cpus);
        allocatable.set(Resource::new("pods"), 110);
        let node = Node { name: name.into(), allocatable, ..Node::default() };
        self.nodes.insert(node.name.clone(), node.clone());
        let input = Input::NodeSet(Box::new(self.node_reading(node)));
        self.notify(ObjectKind::Node, input);
    }

    pub(super) fn delete_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.notify(ObjectKind::Node, Input::NodeGone(name.into()));
    }

    pub(super) fn gang(&mut self, name: &str, min_count: u32) {
        let group = self.gang_object(name, min_count, None);
        self.groups.insert(group.key.clone(), group);
        self.group_conditions.remove(&key(name));
        self.marks.remove(&key(name));
        self.notify_group(name);
    }

    fn gang_object(&self, name: &str, min_count: u32, parent: Option<&str>) -> Group {
        Group {
            created: self.now,
            parent: parent.map(key),
            policy: Policy::Gang { min_count: NonZeroU32::new(min_count).unwrap() },
            ..Group::new(key(name), format!("{name}-{}", self.version))
        }
    }

    /// A gang of which all members must start together, as part of a composite.
    pub(super) fn child(&mut self, name: &str, parent: &str, members: u32) {
        let group = self.gang_object(name, members, Some(parent));
        self.groups.insert(group.key.clone(), group);
        self.notify_group(name);
        self.gang_pods(name, members as usize, 1);
    }

    /// A gang without members, as part of a composite.
    pub(super) fn empty_child(&mut self, name: &str, parent: &str) {
        let group = self.gang_object(name, 1, Some(parent));
        self.groups.insert(group.key.clone(), group);
        self.notify_group(name);
    }

    /// Deletes a group and makes another of its name, as part of a composite or of none; its pods stay.
    pub(super) fn replace_group(&mut self, name: &str, parent: Option<&str>, min_count: u32) {
        self.delete_group(name);
        self.version += 1;
        let group = self.gang_object(name, min_count, parent);
        self.groups.insert(group.key.clone(), group);
        self.group_conditions.remove(&key(name));
        self.marks.remove(&key(name));
        self.notify_group(name);
    }

    /// A composite of which so many groups must start together.
    pub(super) fn composite(&mut self, name: &str, parent: Option<&str>, min_count: u32) {
        self.version += 1;
        let composite = self.gang_object(name, min_count, parent);
        self.composites.insert(composite.key.clone(), composite);
        self.tell_composite(name);
    }

    pub(super) fn delete_composite(&mut self, name: &str) {
        self.composites.remove(&key(name));
        self.notify(ObjectKind::Composite, Input::CompositeGone(key(name)));
    }

    fn tell_composite(&mut self, name: &str) {
        let reading = self.composite_reading(&key(name));
        self.notify(ObjectKind::Composite, Input::CompositeSet(Box::new(reading)));
    }

    pub(super) fn set_composite_minimum(&mut self, name: &str, min_count: u32) {
        let composite = self.composites.get_mut(&key(name)).unwrap();
        composite.policy = Policy::Gang { min_count: NonZeroU32::new(min_count).unwrap() };
        self.version += 1;
        self.tell_composite(name);
    }

    pub(super) fn set_minimum(&mut self, name: &str, min_count: u32) {
        let group = self.groups.get_mut(&key(name)).unwrap();
        group.policy = Policy::Gang { min_count: NonZeroU32::new(min_count).unwrap() };
        self.notify_group(name);
    }

    pub(super) fn delete_group(&mut self, name: &str) {
        self.groups.remove(&key(name));
        self.notify(ObjectKind::PodGroup, Input::GroupGone(key(name)));
    }

    /// A pod of a group (or of none) that wants so many processors.
    pub(super) fn pod(&mut self, name: &str, group: Option<&str>, cpus: i64) {
        let mut pod = Pod::new(key(name), format!("{name}-{}", self.version));
        pod.scheduler_name = "tutti".into();
        pod.group = group.map(key);
        pod.requests = cpu(cpus);
        pod.created = self.now;
        self.pods.insert(pod.key.clone(), pod);
        self.pod_conditions.remove(&key(name));
        self.notify_pod(name);
    }

    pub(super) fn gang_pods(&mut self, group: &str, count: usize, cpus: i64) {
        for index in 0..count {
            self.pod(&format!("{group}-{index}"), Some(group), cpus);
        }
    }

    pub(super) fn delete_pod(&mut self, name: &str) {
        self.pods.remove(&key(name));
        self.notify(ObjectKind::Pod, Input::PodGone(key(name)));
    }

    /// Somebody else binds a pod.
    pub(super) fn bind_by_other(&mut self, name: &str, node: &str) {
        self.pods.get_mut(&key(name)).unwrap().node = Some(node.into());
        self.notify_pod(name);
    }

    pub(super) fn node_of(&self, name: &str) -> Option<&str> {
        self.pods.get(&key(name))?.node.as_deref()
    }

    pub(super) fn bound(&self) -> usize {
        self.pods.values().filter(|pod| pod.node.is_some()).count()
    }

    // --- watches -----------------------------------------------------------------------------------------

    pub(super) fn notify_pod(&mut self, name: &str) {
        let pod = self.pods[&key(name)].clone();
        let reading = self.pod_reading(pod, vec![]);
        self.notify(ObjectKind::Pod, Input::PodSet(Box::new(reading)));
    }

    /// A group has changed.
    pub(super) fn notify_group(&mut self, name: &str) {
        self.version += 1;
        self.group_versions.insert(key(name), self.version);
        self.tell_group(name);
    }

    fn tell_group(&mut self, name: &str) {
        let reading = self.group_reading(&key(name));
        self.notify(ObjectKind::PodGroup, Input::GroupSet(Box::new(reading)));
    }

    pub(super) fn notify(&mut self, kind: ObjectKind, input: Input) {
        self.watches.entry(kind).or_default().push_back(input);
    }

    pub(super) fn pod_reading(&mut self, pod: Pod, errors: Vec<ModelError>) -> PodReading {
        self.version += 1;
        let errors = errors.into_iter().map(|e| ObjectError::new(ObjectKind::Pod, pod.key.clone(), e));
        PodReading {
            version: self.version.to_string().into(),
            scheduled: self.pod_conditions.get(&pod.key).cloned(),
            controlled: !self.uncontrolled.contains(&pod.key),
            job: self.job_of_pod.get(&pod.key).cloned(),
            replicator: self.replicators.get(&pod.key).cloned(),
            errors: errors.collect(),
            pod,
        }
    }

    pub(super) fn group_reading(&self, key: &ObjectKey) -> GroupReading {
        let errors = self.errors_of(key);
        GroupReading {
            group: errors.is_empty().then(|| self.groups[key].clone()),
            errors,
            version: self.group_version(key),
            scheduled: self.group_conditions.get(key).cloned(),
            priority_class: self.priority_classes.get(key).cloned(),
            marks: self.marks.get(key).cloned().unwrap_or_default(),
            job: self.job_of_group.get(key).cloned(),
            ..reading_of(&self.groups[key])
        }
    }

    fn errors_of(&self, key: &ObjectKey) -> Vec<ObjectError> {
        let error = self.group_errors.get(key).cloned();
        error.map(|error| ObjectError::new(ObjectKind::PodGroup, key.clone(), error)).into_iter().collect()
    }

    fn composite_reading(&self, key: &ObjectKey) -> GroupReading {
        let errors = self.errors_of(key);
        GroupReading {
            group: errors.is_empty().then(|| self.composites[key].clone()),
            errors,
            version: self.version.to_string().into(),
            scheduled: self.composite_conditions.get(key).cloned(),
            ..reading_of(&self.composites[key])
        }
    }

    fn group_version(&self, key: &ObjectKey) -> Text {
        self.group_versions.get(key).copied().unwrap_or_default().to_string().into()
    }

    fn node_reading(&mut self, node: Node) -> NodeReading {
        self.version += 1;
        NodeReading { uid: node.name.clone(), version: self.version.to_string().into(), errors: vec![], node }
    }

    /// From now on a watch tells nothing, until it is released.
    pub(super) fn hold(&mut self, kind: ObjectKind) {
        self.held.push(kind);
    }

    pub(super) fn release(&mut self) {
        self.held.clear();
    }

    /// A watch breaks: what it had not told is lost, and a list follows.
    pub(super) fn relist(&mut self, kind: ObjectKind) {
        self.watches.remove(&kind);
        self.notify(kind, Input::ListStarted(kind));
        match kind {
            ObjectKind::Pod => {
                for name in self.pods.keys().map(|key| key.name.clone()).collect::<Vec<_>>() {
                    self.notify_pod(&name);
                }
            }
            ObjectKind::Node => {
                for node in self.nodes.values().cloned().collect::<Vec<_>>() {
                    let input = Input::NodeSet(Box::new(self.node_reading(node)));
                    self.notify(kind, input);
                }
            }
            ObjectKind::Composite => {
                for name in self.composites.keys().map(|key| key.name.clone()).collect::<Vec<_>>() {
                    self.tell_composite(&name);
                }
            }
            ObjectKind::Claim | ObjectKind::Volume | ObjectKind::StorageClass | ObjectKind::CsiNode => {
                for input in self.storage.inputs(kind) {
                    self.notify(kind, input);
                }
            }
            ObjectKind::PodGroup => {
                for name in self.groups.keys().map(|key| key.name.clone()).collect::<Vec<_>>() {
                    self.tell_group(&name);
                }
            }
            ObjectKind::Job => {
                for job in self.jobs.values().cloned().collect::<Vec<_>>() {
                    self.notify(kind, Input::JobSet(Box::new(job)));
                }
            }
            // No namespace of the simulated cluster has labels, so none needs to be told. Of other kinds it has nothing.
            _ => {}
        }
        self.notify(kind, Input::ListDone(kind));
    }

    /// Everything that is in the cluster, as a list would tell it.
    pub(super) fn objects(&mut self) -> Vec<Input> {
        let untold = std::mem::take(&mut self.watches);
        self.list_everything();
        let listed = std::mem::replace(&mut self.watches, untold);
        listed.into_values().flatten().collect()
    }

    // --- time --------------------------------------------------------------------------------------------

    /// Tells the core what the watches have, once, and takes its requests without answering them.
    pub(super) fn step(&mut self) -> usize {
        let mut inputs = Vec::new();
        for (kind, queue) in &mut self.watches {
            if !self.held.contains(kind) {
                inputs.extend(queue.drain(..));
            }
        }
        let count = inputs.len();
        self.give(inputs);
        count
    }

    pub(super) fn give(&mut self, inputs: Vec<Input>) {
        for effect in self.core.step(inputs, self.now) {
            match effect {
                Effect::Report(fact) => self.facts.push(fact),
                request => {
                    self.requests_count += 1;
                    self.requests.push_back(request);
                }
            }
        }
        // It goes through everything, which is too much for large clusters.
        if self.pods.len() <= CHECKED_PODS_MAX {
            self.core.check_invariants().unwrap();
        }
    }

    /// Answers one request. False if there is none.
    pub(super) fn answer(&mut self) -> bool {
        let is_slow = |request: &Effect| match request {
            Effect::GetGroup(group) => self.slow_look.as_deref() == Some(&group.object().name),
            _ => false,
        };
        let next = self.requests.iter().position(|request| !is_slow(request));
        let Some(request) = next.and_then(|next| self.requests.remove(next)) else {
            return false;
        };
        let answer = self.serve(request);
        self.give(vec![Input::Answer(answer)]);
        true
    }

    /// Runs until nothing is under way and nothing is due; time stands still.
    pub(super) fn run(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let told = self.step();
            if !self.answer() && told == 0 && self.core.wake_at().is_none_or(|at| at > self.now) {
                return;
            }
        }
        panic!("the core does not come to rest");
    }

    /// Runs for so many seconds, waking the core when it asks for it.
    pub(super) fn run_for(&mut self, seconds: i64) {
        let end = self.now.plus_seconds(seconds);
        for _ in 0..ROUNDS_MAX {
            self.run();
            match self.core.wake_at() {
                Some(at) if at <= end => self.now = at,
                _ => {
                    self.now = end;
                    self.run();
                    return;
                }
            }
        }
        panic!("the core wakes without an end");
    }

    // --- the server --------------------------------------------------------------------------------------

    fn serve(&mut self, request: Effect) -> Answer {
        match &request {
            Effect::PatchGroupMarks { group, .. } => self.order.push(format!("marks {}", group.name)),
            Effect::DeletePod { pod, .. } => self.order.push(format!("delete {}", pod.name)),
            Effect::EmitEvent(note) => self.order.push(format!("event {}", note.reason)),
            _ => {}
        }
        match request {
            Effect::Bind(seat) => {
                let outcome = self.serve_bind(&seat);
                Answer::Bind { seat, outcome }
            }
            Effect::GetPod { pod, uid } => {
                let found = self.pods.get(&pod).map_or(Lookup::Gone, |pod| Lookup::Found {
                    uid: pod.uid.clone(),
                    node: pod.node.clone(),
                });
                Answer::Pod { pod, uid, found }
            }
            Effect::PatchGroupCondition { group, uid, condition, .. } => {
                let key = group.object().clone();
                if self.refuses_conditions {
                    return written(WriteKey::Group(group), false);
                }
                if let UnitKey::Composite(key) = &group {
                    let exists = self.composites.get(key).is_some_and(|found| found.uid == uid);
                    if exists {
                        self.composite_conditions.insert(key.clone(), *condition);
                        self.version += 1;
                        self.tell_composite(&key.name.clone());
                    }
                    return written(WriteKey::Group(group), exists);
                }
                let exists = self.groups.get(&key).is_some_and(|found| found.uid == uid);
                if exists {
                    self.group_patches.push((*condition).clone());
                    self.group_conditions.insert(key.clone(), *condition);
                    self.notify_group(&key.name);
                }
                written(WriteKey::Group(group), exists)
            }
            Effect::PatchPodCondition { pod, uid, condition, .. } => {
                let found = self.pods.get(&pod).filter(|found| found.uid == uid).cloned();
                if let Some(found) = &found {
                    assert_eq!(found.node, None, "{pod} is bound and called unschedulable");
                    self.pod_patches.push((pod.clone(), (*condition).clone()));
                    self.pod_conditions.insert(pod.clone(), *condition);
                    self.notify_pod(&pod.name.clone());
                }
                written(WriteKey::Pod(pod), found.is_some())
            }
            Effect::EmitEvent(note) => {
                let key = EventKey { uid: note.regarding.uid.clone(), reason: note.reason };
                self.events.push(*note);
                written(WriteKey::Event(key), true)
            }
            Effect::GetGroup(group) if self.unreadable.as_deref() == Some(&group.object().name) => {
                Answer::Group { group, found: GroupLookup::Unknown("no answer in time".into()) }
            }
            Effect::GetGroup(group) => {
                self.looks.push(group.to_string());
                let reading = match &group {
                    UnitKey::Composite(key) if self.composites.contains_key(key) => {
                        Some(self.composite_reading(key))
                    }
                    UnitKey::Group(key) if self.groups.contains_key(key) => Some(self.group_reading(key)),
                    _ => None,
                };
                let found =
                    reading.map_or(GroupLookup::Gone, |reading| GroupLookup::Found(Box::new(reading)));
                Answer::Group { group, found }
            }
            Effect::PatchGroupMarks { ref group, .. } if self.slow_marks > 0 => {
                self.slow_marks -= 1;
                let key = WriteKey::Marks(group.clone());
                self.late.push(request);
                Answer::Write { key, outcome: WriteOutcome::Failed("no answer in time".into()) }
            }
            Effect::PatchGroupMarks { group, .. } if self.refuses_marks => {
                let outcome = WriteOutcome::Rejected("forbidden".into());
                Answer::Write { key: WriteKey::Marks(group), outcome }
            }
            Effect::PatchGroupMarks { group, version, .. } if version != self.group_version(&group) => {
                let outcome = WriteOutcome::Conflict("it has changed".into());
                Answer::Write { key: WriteKey::Marks(group), outcome }
            }
            Effect::PatchGroupMarks { group, uid, marks, .. } => {
                let exists = self.groups.get(&group).is_some_and(|found| found.uid == uid);
                if exists {
                    let marked = self.marks.entry(group.clone()).or_default();
                    for (mark, value) in &marks {
                        match mark.as_ref() {
                            FULLY_BOUND => marked.fully_bound = value.is_some(),
                            UNWIND_AT => marked.unwind_at = value.as_deref().map(time_of),
                            other => panic!("{other} is no mark"),
                        }
                    }
                    self.notify_group(&group.name.clone());
                }
                written(WriteKey::Marks(group), exists)
            }
            Effect::MarkDisrupted { pod, uid, condition } => {
                let exists = self.pods.get(&pod).is_some_and(|found| found.uid == uid);
                if exists {
                    self.disrupted.insert(pod.clone(), *condition);
                }
                written(WriteKey::Eviction(pod), exists)
            }
            Effect::DeletePod { pod, uid } if self.slow_deletions => {
                self.late.push(Effect::DeletePod { pod: pod.clone(), uid });
                let outcome = WriteOutcome::Failed("no answer in time".into());
                Answer::Write { key: WriteKey::Eviction(pod), outcome }
            }
            Effect::DeletePod { pod, uid } => {
                let exists = self.pods.get(&pod).is_some_and(|found| found.uid == uid);
                if exists {
                    self.evicted.push((pod.name.to_string(), self.disrupted.remove(&pod)));
                    self.delete_pod(&pod.name.clone());
                }
                written(WriteKey::Eviction(pod), exists)
            }
            Effect::SelectNode { claim, uid, node } => self.select_node(&claim, &uid, node),
            Effect::KeepVolume { volume, claim, uid, .. } => self.keep_volume(&volume, claim, uid),
            Effect::Report(_) => panic!("{request:?} is no request"),
        }
    }

    /// What was slow arrives after all; nobody listens to the answers.
    pub(super) fn deliver_late(&mut self) {
        for request in std::mem::take(&mut self.late) {
            self.serve(request);
        }
        self.run();
    }

    fn serve_bind(&mut self, seat: &Seat) -> BindOutcome {
        self.binds.push(format!("{}@{}", seat.pod.name, seat.node));
        let fault = self.faults.get_mut(seat.pod.name.as_ref()).and_then(VecDeque::pop_front);
        match fault {
            Some(Fault::LoseAnswer) | None => {}
            Some(fault) => return fault.outcome(),
        }
        let Some(pod) = self.pods.get_mut(&seat.pod).filter(|pod| pod.uid == seat.uid) else {
            return BindOutcome::Disputed("not found".into());
        };
        if pod.node.is_some() {
            return BindOutcome::Disputed("already assigned".into());
        }
        pod.node = Some(seat.node.clone());
        self.written.push(format!("{}@{}", seat.pod.name, seat.node));
        self.notify_pod(&seat.pod.name.clone());
        self.check_room(&seat.node);
        fault.map_or(BindOutcome::Done, Fault::outcome)
    }

    /// No node is promised more than it has.
    fn check_room(&self, name: &Text) {
        let Some(node) = self.nodes.get(name) else {
            return;
        };
        let sits = |pod: &&Pod| pod.node.as_ref() == Some(name);
        let used: i64 = self.pods.values().filter(sits).map(|pod| pod.requests.get("cpu")).sum();
        assert!(used <= node.allocatable.get("cpu"), "{name} is over-committed");
    }
}

fn reading_of(group: &Group) -> GroupReading {
    GroupReading {
        key: group.key.clone(),
        uid: group.uid.clone(),
        generation: group.generation,
        version: "0".into(),
        scheduled: None,
        priority_class: None,
        marks: GroupMarks::default(),
        job: None,
        group: Some(group.clone()),
        errors: vec![],
    }
}

fn time_of(text: &str) -> Time {
    Time(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

pub(super) fn written(key: WriteKey, exists: bool) -> Answer {
    let outcome = match exists {
        true => WriteOutcome::Done,
        false => WriteOutcome::Rejected("not found".into()),
    };
    Answer::Write { key, outcome }
}
