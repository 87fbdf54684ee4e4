//! Groups of Kubernetes 1.35, which have no objects: pods name parts of workloads, and each name makes a group.
//!
//! Between watches and the core: groups appear when a pod names them and their workload is known, and vanish with the
//! last pod that names them or with the workload.

use crate::core::message::Input;
use std::collections::{BTreeMap, BTreeSet};
use tutti_k8s::workload::workload_of;
use tutti_k8s::{GroupLink, ObjectKind, WorkloadReading};
use tutti_model::ObjectKey;

/// What watches tell.
#[derive(Debug)]
pub(super) enum Seen {
    /// Something that the core understands.
    Input(Input),
    /// A list of workloads begins.
    WorkloadsStarted,
    /// The list is complete.
    WorkloadsDone,
    /// A workload was seen.
    WorkloadSet(Box<WorkloadReading>),
    /// A workload is gone.
    WorkloadGone(ObjectKey),
}

/// Turns workloads and the pods that name their parts into groups.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    known: BTreeMap<ObjectKey, WorkloadReading>,
    /// Groups by the pods that name them.
    group_of_pod: BTreeMap<ObjectKey, ObjectKey>,
    /// How many pods name a group.
    pods_of_group: BTreeMap<ObjectKey, usize>,
    /// Names in the lists that are under way.
    listed_workloads: Option<BTreeSet<ObjectKey>>,
    listed_pods: Option<BTreeSet<ObjectKey>>,
}

impl Workloads {
    /// What the core has to be told in a cluster where pods name their groups in this way.
    pub(super) fn translate_for(&mut self, link: GroupLink, seen: Seen) -> Vec<Input> {
        match seen {
            Seen::Input(input) if link.has_group_objects() => vec![input],
            seen => self.translate(seen),
        }
    }

    /// What the core has to be told.
    pub(super) fn translate(&mut self, seen: Seen) -> Vec<Input> {
        match seen {
            Seen::Input(input) => {
                let mut inputs = self.follow_pods(&input);
                inputs.push(input);
                inputs
            }
            Seen::WorkloadsStarted => {
                self.listed_workloads = Some(BTreeSet::new());
                vec![Input::ListStarted(ObjectKind::PodGroup)]
            }
            Seen::WorkloadsDone => {
                let listed = self.listed_workloads.take().unwrap_or_default();
                self.known.retain(|key, _| listed.contains(key));
                vec![Input::ListDone(ObjectKind::PodGroup)]
            }
            Seen::WorkloadSet(workload) => self.workload_set(*workload),
            Seen::WorkloadGone(key) => {
                self.known.remove(&key);
                self.groups_of(&key).into_iter().map(Input::GroupGone).collect()
            }
        }
    }

    fn workload_set(&mut self, workload: WorkloadReading) -> Vec<Input> {
        if let Some(listed) = &mut self.listed_workloads {
            listed.insert(workload.key.clone());
        }
        let key = workload.key.clone();
        let told = |group: ObjectKey| match workload.group(&group) {
            Some(reading) => Input::GroupSet(Box::new(reading)),
            None => Input::GroupGone(group),
        };
        let inputs = self.groups_of(&key).into_iter().map(told).collect();
        self.known.insert(key, workload);
        inputs
    }

    /// Keeps account of which groups pods name.
    fn follow_pods(&mut self, input: &Input) -> Vec<Input> {
        match input {
            Input::PodSet(reading) => {
                let key = &reading.pod.key;
                if let Some(listed) = &mut self.listed_pods {
                    listed.insert(key.clone());
                }
                if self.group_of_pod.get(key) == reading.pod.group.as_ref() {
                    return Vec::new();
                }
                let mut inputs = self.pod_gone(key);
                if let Some(group) = &reading.pod.group {
                    inputs.extend(self.pod_names(key, group));
                }
                inputs
            }
            Input::PodGone(key) => self.pod_gone(key),
            Input::ListStarted(ObjectKind::Pod) => {
                self.listed_pods = Some(BTreeSet::new());
                Vec::new()
            }
            Input::ListDone(ObjectKind::Pod) => {
                let listed = self.listed_pods.take().unwrap_or_default();
                let vanished: Vec<ObjectKey> =
                    self.group_of_pod.keys().filter(|key| !listed.contains(key)).cloned().collect();
                vanished.iter().flat_map(|key| self.pod_gone(key)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn pod_names(&mut self, pod: &ObjectKey, group: &ObjectKey) -> Option<Input> {
        self.group_of_pod.insert(pod.clone(), group.clone());
        let count = self.pods_of_group.entry(group.clone()).or_default();
        *count += 1;
        if *count > 1 {
            return None;
        }
        let reading = self.known.get(&workload_of(group))?.group(group)?;
        Some(Input::GroupSet(Box::new(reading)))
    }

    fn pod_gone(&mut self, pod: &ObjectKey) -> Vec<Input> {
        let Some(group) = self.group_of_pod.remove(pod) else {
            return Vec::new();
        };
        let count = self.pods_of_group.entry(group.clone()).or_default();
        *count = count.saturating_sub(1);
        if *count > 0 {
            return Vec::new();
        }
        self.pods_of_group.remove(&group);
        vec![Input::GroupGone(group)]
    }

    /// Groups of a workload that pods name.
    fn groups_of(&self, workload: &ObjectKey) -> Vec<ObjectKey> {
        // Names of groups begin with that of their workload, so they are together.
        let names = self.pods_of_group.range(workload.clone()..).map(|(key, _)| key);
        let near = names
            .take_while(|key| key.namespace == workload.namespace && key.name.starts_with(&*workload.name));
        near.filter(|key| workload_of(key) == *workload).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tutti_k8s::{PodView, WorkloadView};

    fn workload(name: &str, parts: &[&str]) -> Seen {
        let part = |name: &&str| json!({"name": name, "policy": {"gang": {"minCount": 2}}});
        let view: WorkloadView = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a", "uid": format!("uid-{name}")},
            "spec": {"podGroups": parts.iter().map(part).collect::<Vec<_>>()},
        }))
        .unwrap();
        Seen::WorkloadSet(Box::new(view.read()))
    }

    fn pod(name: &str, workload: &str, part: &str, replica: &str) -> Seen {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a", "uid": name},
            "spec": {"workloadRef": {"name": workload, "podGroup": part, "podGroupReplicaKey": replica}},
        }))
        .unwrap();
        Seen::Input(Input::PodSet(Box::new(view.read_linked(GroupLink::WorkloadRef))))
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    /// What the core is told, in words.
    fn told(workloads: &mut Workloads, seen: Seen) -> Vec<String> {
        let word = |input: Input| match input {
            Input::GroupSet(reading) => format!("+{}", reading.key.name),
            Input::GroupGone(key) => format!("-{}", key.name),
            Input::PodSet(reading) => reading.pod.key.name.to_string(),
            Input::PodGone(key) => format!("gone {}", key.name),
            Input::ListStarted(kind) => format!("{kind}s:"),
            Input::ListDone(kind) => format!("all {kind}s"),
            other => format!("{other:?}"),
        };
        workloads.translate(seen).into_iter().map(word).collect()
    }

    #[test]
    fn a_group_is_there_while_a_pod_names_it_and_its_workload_is_known() {
        let mut workloads = Workloads::default();
        assert_eq!(told(&mut workloads, pod("p0", "w", "x", "")), ["p0"], "its workload is not known");
        assert_eq!(told(&mut workloads, workload("w", &["x", "y"])), ["+w/x"], "nobody names the other part");
        assert_eq!(told(&mut workloads, pod("p1", "w", "y", "7")), ["+w/y/7", "p1"]);
        assert_eq!(told(&mut workloads, pod("p2", "w", "y", "7")), ["p2"], "it is there already");
        assert_eq!(told(&mut workloads, pod("p2", "w", "y", "7")), ["p2"], "the same again");
        assert_eq!(told(&mut workloads, pod("p3", "w", "z", "")), ["p3"], "there is no such part");
        let gone = |name| Seen::Input(Input::PodGone(key(name)));
        assert_eq!(told(&mut workloads, gone("p1")), ["gone p1"]);
        assert_eq!(told(&mut workloads, gone("p2")), ["-w/y/7", "gone p2"]);
        assert_eq!(told(&mut workloads, Seen::WorkloadGone(key("w"))), ["-w/x", "-w/z"]);
        assert_eq!(told(&mut workloads, workload("w", &["z"])), ["-w/x", "+w/z"]);
    }

    #[test]
    fn workloads_with_names_that_begin_alike_are_not_mixed_up() {
        let mut workloads = Workloads::default();
        for name in ["w", "w-2", "w0"] {
            told(&mut workloads, pod(&format!("p-{name}"), name, "x", ""));
        }
        assert_eq!(told(&mut workloads, workload("w", &["x"])), ["+w/x"]);
        assert_eq!(told(&mut workloads, workload("w-2", &["x"])), ["+w-2/x"]);
    }

    #[test]
    fn what_vanished_while_nobody_watched_is_found_by_the_next_list() {
        let mut workloads = Workloads::default();
        told(&mut workloads, workload("w", &["x"]));
        told(&mut workloads, pod("p0", "w", "x", ""));
        told(&mut workloads, Seen::Input(Input::ListStarted(ObjectKind::Pod)));
        let done = Seen::Input(Input::ListDone(ObjectKind::Pod));
        assert_eq!(told(&mut workloads, done), ["-w/x", "all pods"]);
        assert_eq!(told(&mut workloads, Seen::WorkloadsStarted), ["pod groups:"]);
        assert_eq!(told(&mut workloads, Seen::WorkloadsDone), ["all pod groups"]);
        assert_eq!(told(&mut workloads, pod("p1", "w", "x", "")), ["p1"], "the workload is gone");
    }
}
