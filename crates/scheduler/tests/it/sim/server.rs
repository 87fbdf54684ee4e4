//! The API server: objects, versions, and what requests do to them.

use super::volumes_and_claims::Storage;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::UnitKey;
use tutti_k8s::gangs::{JobReading, JobRef, JobView, group_of_job};
use tutti_k8s::marks::{FULLY_BOUND, UNWIND_AT};
use tutti_k8s::{
    Condition, ConditionStatus, GroupMarks, GroupReading, NodeReading, ObjectKind, PodReading,
    PriorityClassReading, WhenBroken,
};
use tutti_model::{Group, Labels, Node, ObjectKey, Phase, Pod, Policy, Resource, ResourceList, Text, Time};
use tutti_scheduler::core::message::{Input, WriteOutcome};

/// Who bound a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binder {
    /// The scheduler that led when it was written.
    Leader,
    /// A scheduler that did not lead any more.
    Late,
    /// Somebody else.
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct SimPod {
    pub(super) pod: Pod,
    pub(super) controlled: bool,
    pub(super) condition: Option<Condition>,
    pub(super) disrupted: bool,
    pub(super) binder: Option<Binder>,
    /// The kubelet has taken it in.
    pub(super) admitted: bool,
    /// A gate held it back for a while.
    pub(super) was_gated: bool,
    version: u64,
}

impl SimPod {
    pub(super) fn cpu(&self) -> i64 {
        self.pod.requests.get("cpu")
    }

    pub(super) fn is_over(&self) -> bool {
        self.pod.phase.is_terminal()
    }

    /// On a node and doing its work.
    pub(super) fn is_bound(&self) -> bool {
        self.pod.node.is_some() && !self.is_over() && !self.pod.terminating
    }
}

#[derive(Debug, Clone)]
pub(super) struct SimGroup {
    pub(super) group: Group,
    pub(super) marks: GroupMarks,
    pub(super) condition: Option<Condition>,
    /// It names a priority class instead of a priority.
    pub(super) by_class: bool,
    version: u64,
}

impl SimGroup {
    pub(super) fn minimum(&self) -> u32 {
        self.group.policy.minimum()
    }
}

/// A group or composite as somebody wants it.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) parent: Option<ObjectKey>,
    pub(super) policy: Policy,
    pub(super) priority: i32,
    pub(super) when_broken: Option<WhenBroken>,
    pub(super) by_class: bool,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) pods: BTreeMap<ObjectKey, SimPod>,
    pub(super) groups: BTreeMap<ObjectKey, SimGroup>,
    pub(super) composites: BTreeMap<ObjectKey, SimGroup>,
    pub(super) nodes: BTreeMap<Text, Node>,
    /// The most that nodes have ever had to give.
    most: BTreeMap<Text, i64>,
    pub(super) storage: Storage,
    pub(super) jobs: BTreeMap<ObjectKey, JobReading>,
    /// Jobs that groups are made for.
    pub(super) job_of_group: BTreeMap<ObjectKey, JobRef>,
    /// Priority classes by what they stand for.
    classes: BTreeSet<i32>,
    version: u64,
    /// What watches are to be told.
    news: Vec<(ObjectKind, Input)>,
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// Labels of what is in a zone.
pub(super) fn zone_labels(zone: &str) -> Labels {
    [("zone", zone)].into_iter().collect()
}

pub(super) fn cpu(amount: i64) -> ResourceList {
    [(Resource::new("cpu"), amount * 1000), (Resource::new("pods"), 1)].into_iter().collect()
}

fn class_name(priority: i32) -> Text {
    format!("class-{priority}").into()
}

fn class_set(priority: i32) -> Input {
    let name = class_name(priority);
    let reading = PriorityClassReading { uid: name.clone(), name, value: Some(priority), errors: vec![] };
    Input::PriorityClassSet(Box::new(reading))
}

impl Server {
    pub(super) fn new() -> Self {
        Self { classes: BTreeSet::from([0, 1]), ..Self::default() }
    }

    /// True if what a group names as its priority class is there.
    pub(super) fn has_class_of(&self, group: &SimGroup) -> bool {
        !group.by_class || self.classes.contains(&group.group.priority.unwrap_or(0))
    }

    /// A priority class goes, or comes back. True if it goes.
    pub(super) fn toggle_class(&mut self, priority: i32) -> bool {
        let goes = self.classes.remove(&priority);
        if goes {
            self.tell(ObjectKind::PriorityClass, Input::PriorityClassGone(class_name(priority)));
        } else {
            self.restore_class(priority);
        }
        goes
    }

    fn restore_class(&mut self, priority: i32) {
        if self.classes.insert(priority) {
            self.tell(ObjectKind::PriorityClass, class_set(priority));
        }
    }

    pub(super) fn restore_classes(&mut self) {
        (0..2).for_each(|priority| self.restore_class(priority));
    }

    /// Makes a Job that wants a gang of all its pods. Gives the name of the group that is to be made for it.
    pub(super) fn add_job(&mut self, name: &str, members: u32) -> ObjectKey {
        let uid = format!("uid-{name}");
        let view = serde_json::from_value::<JobView>(serde_json::json!({
            "metadata": {"name": name, "namespace": "default", "uid": uid, "annotations": {"tutti.dev/gang": "true"}},
            "spec": {"parallelism": members, "template": {"spec": {"schedulerName": "tutti"}}},
        }));
        let group = key(&group_of_job(name, &uid));
        self.job_of_group.insert(group.clone(), JobRef { uid: uid.into(), name: name.into() });
        if let Ok(view) = view {
            let job = view.read();
            self.jobs.insert(job.key.clone(), job.clone());
            self.tell(ObjectKind::Job, Input::JobSet(Box::new(job)));
        }
        group
    }

    pub(super) fn delete_job(&mut self, job: &ObjectKey) {
        self.jobs.remove(job);
        self.tell(ObjectKind::Job, Input::JobGone(job.clone()));
    }

    /// Moves a group. False if it was there already.
    pub(super) fn set_parent(&mut self, group: &ObjectKey, parent: Option<ObjectKey>) -> bool {
        let Some(found) = self.groups.get_mut(group).filter(|found| found.group.parent != parent) else {
            return false;
        };
        found.group.parent = parent;
        self.tell_group(group);
        true
    }

    pub(super) fn take_news(&mut self) -> Vec<(ObjectKind, Input)> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub(super) fn tell(&mut self, kind: ObjectKind, input: Input) {
        self.news.push((kind, input));
    }

    /// Makes a node, or makes it anew.
    pub(super) fn set_node(&mut self, name: &str, cpus: i64, zone: &str) {
        let mut allocatable = cpu(cpus);
        allocatable.set(Resource::new("pods"), 110);
        let labels = zone_labels(zone);
        let node = Node { name: name.into(), allocatable, labels, ..Node::default() };
        self.tell_node(node);
    }

    pub(super) fn change_node(&mut self, name: &Text, change: impl FnOnce(&mut Node)) {
        if let Some(mut node) = self.nodes.get(name).cloned() {
            change(&mut node);
            self.tell_node(node);
        }
    }

    fn tell_node(&mut self, node: Node) {
        self.next_version();
        let input = self.node_set(&node);
        let most = self.most.entry(node.name.clone()).or_default();
        *most = node.allocatable.get("cpu").max(*most);
        self.nodes.insert(node.name.clone(), node);
        self.tell(ObjectKind::Node, input);
    }

    /// True if a node had more to give once: it may have more on it than fits, and nobody is to blame.
    pub(super) fn has_shrunk(&self, node: &Node) -> bool {
        self.most.get(&node.name).is_some_and(|most| *most > node.allocatable.get("cpu"))
    }

    pub(super) fn delete_node(&mut self, name: &Text) {
        self.nodes.remove(name);
        self.news.push((ObjectKind::Node, Input::NodeGone(name.clone())));
    }

    pub(super) fn set_group(&mut self, draft: Draft, now: Time) {
        let group = self.fresh_group(draft, now);
        let key = group.group.key.clone();
        self.groups.insert(key.clone(), group);
        self.tell_group(&key);
    }

    fn fresh_group(&mut self, draft: Draft, now: Time) -> SimGroup {
        let version = self.next_version();
        let Draft { name, parent, policy, priority, when_broken, by_class } = draft;
        let group = Group {
            created: now,
            parent,
            policy,
            priority: Some(priority),
            ..Group::new(key(&name), format!("{name}-{version}"))
        };
        let marks = GroupMarks { when_broken, ..GroupMarks::default() };
        SimGroup { group, marks, condition: None, by_class, version }
    }

    pub(super) fn set_composite(&mut self, draft: Draft, now: Time) {
        let composite = self.fresh_group(draft, now);
        let key = composite.group.key.clone();
        self.composites.insert(key.clone(), composite);
        self.tell_composite(&key);
    }

    pub(super) fn delete_composite(&mut self, composite: &ObjectKey) {
        self.composites.remove(composite);
        self.news.push((ObjectKind::Composite, Input::CompositeGone(composite.clone())));
    }

    pub(super) fn set_policy(&mut self, group: &ObjectKey, policy: Policy) {
        if let Some(found) = self.groups.get_mut(group) {
            found.group.policy = policy;
            self.tell_group(group);
        }
    }

    pub(super) fn delete_group(&mut self, group: &ObjectKey) {
        self.groups.remove(group);
        self.news.push((ObjectKind::PodGroup, Input::GroupGone(group.clone())));
    }

    /// Makes a pod like this one, under a name.
    pub(super) fn add_pod(&mut self, name: &str, like: &Pod, controlled: bool, now: Time) {
        let version = self.next_version();
        let pod = Pod {
            key: key(name),
            uid: format!("{name}-{version}").into(),
            created: now,
            scheduler_name: "tutti".into(),
            node: None,
            phase: Phase::Pending,
            terminating: false,
            ..like.clone()
        };
        let pod = SimPod {
            controlled,
            condition: None,
            disrupted: false,
            binder: None,
            admitted: false,
            was_gated: !pod.gates.is_empty(),
            version,
            pod,
        };
        self.pods.insert(key(name), pod);
        self.tell_pod(&key(name));
    }

    /// Changes a pod, if it is still the same, and tells of it.
    pub(super) fn change_pod(
        &mut self,
        pod: &ObjectKey,
        uid: &Text,
        change: impl FnOnce(&mut SimPod),
    ) -> bool {
        let Some(found) = self.pods.get_mut(pod).filter(|found| found.pod.uid == *uid) else {
            return false;
        };
        change(found);
        self.tell_pod(pod);
        true
    }

    pub(super) fn delete_pod(&mut self, pod: &ObjectKey) -> Option<SimPod> {
        let gone = self.pods.remove(pod)?;
        self.news.push((ObjectKind::Pod, Input::PodGone(pod.clone())));
        Some(gone)
    }

    pub(super) fn set_marks(
        &mut self,
        group: &ObjectKey,
        uid: &Text,
        version: &Text,
        marks: &[(Text, Option<Text>)],
    ) -> WriteOutcome {
        let Some(found) = self.groups.get_mut(group) else {
            return WriteOutcome::Rejected("not found".into());
        };
        if found.group.uid != *uid || found.version.to_string() != **version {
            return WriteOutcome::Conflict("it has changed".into());
        }
        for (mark, value) in marks {
            let time = value.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
            match mark.as_ref() {
                FULLY_BOUND => found.marks.fully_bound = value.is_some(),
                UNWIND_AT => found.marks.unwind_at = time.map(|time| Time(time.as_millisecond())),
                _ => return WriteOutcome::Rejected("no such mark".into()),
            }
        }
        self.tell_group(group);
        WriteOutcome::Done
    }

    /// Says on a group whether it was scheduled. That it was is final.
    pub(super) fn set_group_condition(
        &mut self,
        unit: &UnitKey,
        uid: &Text,
        version: Option<Text>,
        condition: Condition,
    ) -> Result<WriteOutcome, String> {
        let is_composite = matches!(unit, UnitKey::Composite(_));
        let groups = if is_composite { &mut self.composites } else { &mut self.groups };
        let Some(found) = groups.get_mut(unit.object()).filter(|found| found.group.uid == *uid) else {
            return Ok(WriteOutcome::Rejected("not found".into()));
        };
        if version.is_some_and(|version| *found.version.to_string() != *version) {
            return Ok(WriteOutcome::Conflict("it has changed".into()));
        }
        let was_scheduled = found.condition.as_ref().is_some_and(|was| was.status == ConditionStatus::True);
        if was_scheduled && condition.status == ConditionStatus::False {
            return Err(format!("{} was scheduled, and is said not to be", unit.object()));
        }
        found.condition = Some(condition);
        if is_composite {
            self.tell_composite(unit.object());
        } else {
            self.tell_group(unit.object());
        }
        Ok(WriteOutcome::Done)
    }

    /// Members that count to the minimum of a group, and those of them that are bound, for every group that has any.
    pub(super) fn counted_by_group(&self) -> BTreeMap<&ObjectKey, (u32, u32)> {
        let mut members: BTreeMap<&ObjectKey, (u32, u32)> = BTreeMap::new();
        for pod in self.pods.values() {
            let (is_bound, succeeded) = (pod.is_bound(), pod.pod.phase == Phase::Succeeded);
            if let Some(group) = pod.pod.group.as_ref().filter(|_| is_bound || succeeded) {
                let (counted, bound) = members.entry(group).or_default();
                *counted += 1;
                *bound += u32::from(is_bound);
            }
        }
        members
    }

    fn tell_pod(&mut self, pod: &ObjectKey) {
        let version = self.next_version();
        if let Some(found) = self.pods.get_mut(pod) {
            found.version = version;
            let input = Input::PodSet(Box::new(reading_of_pod(found, &self.job_of_group)));
            self.news.push((ObjectKind::Pod, input));
        }
    }

    fn tell_group(&mut self, group: &ObjectKey) {
        let version = self.next_version();
        if let Some(found) = self.groups.get_mut(group) {
            found.version = version;
            let input = Input::GroupSet(Box::new(reading_of_group(found, &self.job_of_group)));
            self.news.push((ObjectKind::PodGroup, input));
        }
    }

    fn tell_composite(&mut self, composite: &ObjectKey) {
        let version = self.next_version();
        if let Some(found) = self.composites.get_mut(composite) {
            found.version = version;
            let input = Input::CompositeSet(Box::new(reading_of_group(found, &BTreeMap::new())));
            self.news.push((ObjectKind::Composite, input));
        }
    }

    fn node_set(&self, node: &Node) -> Input {
        let version = self.version.to_string().into();
        Input::NodeSet(Box::new(NodeReading {
            uid: node.name.clone(),
            version,
            errors: vec![],
            node: node.clone(),
        }))
    }

    /// A list of a kind, as it is now.
    pub(super) fn list(&self, kind: ObjectKind) -> Vec<Input> {
        let mut inputs = vec![Input::ListStarted(kind)];
        match kind {
            ObjectKind::Pod => {
                let jobs = &self.job_of_group;
                inputs
                    .extend(self.pods.values().map(|pod| Input::PodSet(Box::new(reading_of_pod(pod, jobs)))));
            }
            ObjectKind::Node => inputs.extend(self.nodes.values().map(|node| self.node_set(node))),
            ObjectKind::PodGroup => {
                let jobs = &self.job_of_group;
                let groups = self.groups.values();
                inputs.extend(groups.map(|group| Input::GroupSet(Box::new(reading_of_group(group, jobs)))));
            }
            ObjectKind::Composite => {
                let composites = self.composites.values();
                let none = BTreeMap::new();
                inputs.extend(composites.map(|c| Input::CompositeSet(Box::new(reading_of_group(c, &none)))));
            }
            ObjectKind::Namespace => {
                inputs.push(Input::NamespaceSet { name: "default".into(), labels: Labels::default() });
            }
            ObjectKind::Job => {
                inputs.extend(self.jobs.values().map(|job| Input::JobSet(Box::new(job.clone()))));
            }
            ObjectKind::PriorityClass => inputs.extend(self.classes.iter().map(|class| class_set(*class))),
            _ => inputs.extend(self.storage.list(kind)),
        }
        inputs.push(Input::ListDone(kind));
        inputs
    }
}

fn reading_of_pod(pod: &SimPod, jobs: &BTreeMap<ObjectKey, JobRef>) -> PodReading {
    // Pods of Jobs name no group themselves.
    let job = pod.pod.group.as_ref().and_then(|group| jobs.get(group)).cloned();
    let group = pod.pod.group.clone().filter(|_| job.is_none());
    PodReading {
        version: pod.version.to_string().into(),
        scheduled: pod.condition.clone(),
        controlled: pod.controlled,
        job,
        replicator: None,
        errors: vec![],
        pod: Pod { group, ..pod.pod.clone() },
    }
}

fn reading_of_group(group: &SimGroup, jobs: &BTreeMap<ObjectKey, JobRef>) -> GroupReading {
    let priority = group.group.priority;
    let shown = Group { priority: priority.filter(|_| !group.by_class), ..group.group.clone() };
    GroupReading {
        key: group.group.key.clone(),
        uid: group.group.uid.clone(),
        generation: group.group.generation,
        version: group.version.to_string().into(),
        scheduled: group.condition.clone(),
        priority_class: priority.filter(|_| group.by_class).map(class_name),
        marks: group.marks.clone(),
        job: jobs.get(&group.group.key).map(|job| job.uid.clone()),
        group: Some(shown),
        errors: vec![],
    }
}

/// A group or composite as it is now.
pub(super) fn reading_of(server: &Server, unit: &UnitKey) -> Option<GroupReading> {
    let groups = if matches!(unit, UnitKey::Composite(_)) { &server.composites } else { &server.groups };
    groups.get(unit.object()).map(|group| reading_of_group(group, &server.job_of_group))
}
