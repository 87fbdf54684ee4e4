//! Workloads of Kubernetes 1.35, whose pod groups are parts of them.
//!
//! There, a group is named by a pod: workload, part, and a replica key that makes independent groups of one part. It
//! has no object of its own and no status. Here it becomes a group like any other, whose name joins the three.

use crate::error::{ObjectError, ObjectKind, Problems};
use crate::group::{GroupReading, PolicyView, read_policy};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::marks::{self, GroupMarks};
use crate::selector::{read_each, text};
use crate::topology::{self, Asker};
use crate::view::{Kind, Names, View};
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use std::collections::BTreeMap;
use tutti_model::{Group, ModelError, ObjectKey, Policy, Text, Time, Topology, WhenGated};

/// Between workload, part and replica key. No name can have it.
const SEPARATOR: char = '/';

/// A workload of 1.35, as far as scheduling reads it.
pub type WorkloadView = View<WorkloadKind>;

/// Marks views of workloads.
#[derive(Debug, Clone)]
pub struct WorkloadKind;

impl Kind for WorkloadKind {
    type Spec = WorkloadSpecView;
    type Status = crate::namespace::Nothing;
    type Dynamic = ApiResource;
    type Scope = DynamicResourceScope;

    fn names(resource: &ApiResource) -> Names<'_> {
        Names {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            plural: &resource.plural,
        }
    }
}

/// `spec`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadSpecView {
    pod_groups: Lenient<Vec<Lenient<PartView>>>,
}

/// One of `spec.podGroups`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct PartView {
    name: Lenient<String>,
    policy: Lenient<PolicyView>,
}

impl Shaped for WorkloadSpecView {
    const SHAPE: Shape = Shape::Object;
}

impl Shaped for PartView {
    const SHAPE: Shape = Shape::Object;
}

/// `spec.workloadRef` of a pod.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WorkloadRefView {
    name: Lenient<String>,
    pod_group: Lenient<String>,
    pod_group_replica_key: Lenient<String>,
}

impl Shaped for WorkloadRefView {
    const SHAPE: Shape = Shape::Object;
}

impl WorkloadRefView {
    /// The name of the group that the pod belongs to.
    pub(crate) fn group_name(&self) -> Result<String, ModelError> {
        const FIELD: &str = "spec.workloadRef";
        let part = |value, field: &str| {
            let field = format!("{FIELD}.{field}");
            match text(value, &field)? {
                // Placed alone it would break the gang that it was meant for.
                "" => Err(ModelError::new(field, "is missing")),
                name => Ok(name),
            }
        };
        let name = part(&self.name, "name")?;
        let group = part(&self.pod_group, "podGroup")?;
        let key = text(&self.pod_group_replica_key, &format!("{FIELD}.podGroupReplicaKey"))?;
        let mut whole = format!("{name}{SEPARATOR}{group}");
        if !key.is_empty() {
            whole.push(SEPARATOR);
            whole.push_str(key);
        }
        Ok(whole)
    }
}

/// The workload that a group is part of.
pub fn workload_of(group: &ObjectKey) -> ObjectKey {
    let name = group.name.split(SEPARATOR).next().unwrap_or_default();
    ObjectKey::new(group.namespace.clone(), name)
}

/// The workload itself, from its identity or that of one of its groups.
pub fn workload_uid(group_uid: &str) -> &str {
    group_uid.split(SEPARATOR).next().unwrap_or_default()
}

/// The annotation of the workload that says what `mark` would say on a group of its own. Names of parts and keys
/// together are longer than the name of an annotation may be, so a hash stands for them.
pub fn mark_of(mark: &str, group: &ObjectKey) -> Text {
    // FNV-1a: the same on every machine and in every version.
    let hash = group.name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Text::from(format!("{mark}.{hash:016x}"))
}

/// What was understood of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadReading {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Text,
    generation: i64,
    version: Text,
    created: Time,
    /// Annotations of ours.
    annotations: BTreeMap<String, String>,
    /// Parts by name; empty if the workload was not understood.
    parts: Vec<(Text, Policy)>,
    /// Asked for by annotations of the workload, for each of its groups.
    topology: Topology,
    /// So is what gated members mean for the others.
    when_gated: WhenGated,
    errors: Vec<ObjectError>,
}

impl WorkloadView {
    /// The workload in our terms.
    pub fn read(&self) -> WorkloadReading {
        let mut problems = self.problems();
        let key = self.key();
        let no_spec = WorkloadSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let parts = problems.or_default(read_parts(spec));
        let annotations = self.metadata.annotations.as_ref();
        let topology = topology::read(Topology::default(), annotations, Asker::Group, &mut problems);
        let when_gated = problems.or_default(marks::read_when_gated(annotations, Asker::Group));
        WorkloadReading {
            uid: self.uid(),
            generation: self.metadata.generation.unwrap_or(0),
            version: self.version(),
            created: self.created(),
            annotations: self.metadata.annotations.clone().unwrap_or_default(),
            // A guess at one part could start a gang without the rest.
            topology,
            when_gated,
            parts: if problems.is_empty() { parts } else { Vec::new() },
            errors: problems.into_errors(ObjectKind::PodGroup, &key),
            key,
        }
    }
}

fn read_parts(spec: &WorkloadSpecView) -> Result<Vec<(Text, Policy)>, ModelError> {
    const FIELD: &str = "spec.podGroups";
    let list = spec.pod_groups.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    let read = |part: &PartView| match text(&part.name, "name")? {
        "" => Err(ModelError::new("name", "is missing")),
        name => Ok((Text::from(name), read_policy(&part.policy, Asker::Group, "policy")?)),
    };
    read_each(list, read).map_err(|error| error.within(FIELD))
}

impl WorkloadReading {
    /// One group of the workload, by the name that pods give it; `None` if the workload has no such part. A workload
    /// that was not understood gives a group that was not.
    pub fn group(&self, key: &ObjectKey) -> Option<GroupReading> {
        let rest = key.name.strip_prefix(&*self.key.name)?.strip_prefix(SEPARATOR)?;
        let part = rest.split(SEPARATOR).next()?;
        let policy = self.parts.iter().find(|(name, _)| name.as_ref() == part).map(|(_, policy)| *policy);
        if policy.is_none() && self.errors.is_empty() {
            return None;
        }
        // A workload that is made anew makes new groups.
        let uid = Text::from(format!("{}{SEPARATOR}{rest}", self.uid));
        let group = policy.map(|policy| Group {
            generation: self.generation,
            created: self.created,
            policy,
            topology: self.topology.clone(),
            when_gated: self.when_gated,
            ..Group::new(key.clone(), uid.clone())
        });
        Some(GroupReading {
            key: key.clone(),
            uid,
            generation: self.generation,
            version: self.version.clone(),
            group,
            scheduled: None,
            // Parts of workloads have no priority of their own.
            priority_class: None,
            marks: self.marks(key),
            // Pods name parts of workloads themselves.
            job: None,
            errors: self.errors.clone(),
        })
    }

    /// What annotations of the workload say of one of its groups.
    fn marks(&self, group: &ObjectKey) -> GroupMarks {
        let own = marks::WRITTEN.iter().map(|mark| (*mark, mark_of(mark, group)));
        // What people ask for, they ask for the whole workload.
        let asked = std::iter::once((marks::WHEN_BROKEN, Text::from(marks::WHEN_BROKEN)));
        let of_group = own.chain(asked).filter_map(|(mark, written_as)| {
            Some((mark.to_owned(), self.annotations.get(&*written_as)?.clone()))
        });
        // What cannot be understood of them is as good as absent; there is no group to report it on.
        GroupMarks::read(Some(&of_group.collect()), &mut Problems::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupLink, PodView};
    use serde_json::{Value, json};
    use std::num::NonZeroU32;

    fn workload(spec: &Value) -> WorkloadReading {
        let view: WorkloadView = serde_json::from_value(json!({
            "metadata": {"name": "w", "namespace": "a", "uid": "u", "generation": 2}, "spec": spec,
        }))
        .unwrap();
        view.read()
    }

    fn group_of_pod(reference: &Value) -> Result<ObjectKey, String> {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"workloadRef": reference},
        }))
        .unwrap();
        let reading = view.read_linked(GroupLink::WorkloadRef);
        match reading.errors.first() {
            Some(error) => Err(error.to_string()),
            None => Ok(reading.pod.group.expect("it has a group")),
        }
    }

    #[test]
    fn every_part_and_replica_of_a_workload_is_a_group() {
        let workload = workload(&json!({"podGroups": [
            {"name": "workers", "policy": {"gang": {"minCount": 4}}}, {"name": "rest", "policy": {"basic": {}}},
        ]}));
        let workers = group_of_pod(&json!({"name": "w", "podGroup": "workers"})).unwrap();
        let replica =
            group_of_pod(&json!({"name": "w", "podGroup": "workers", "podGroupReplicaKey": "1"})).unwrap();
        let rest = group_of_pod(&json!({"name": "w", "podGroup": "rest"})).unwrap();
        let group = |key: &ObjectKey| workload.group(key).unwrap().group.unwrap();
        assert_eq!(group(&workers).policy, Policy::Gang { min_count: NonZeroU32::new(4).unwrap() });
        assert_eq!(group(&replica).policy, group(&workers).policy);
        assert_ne!(group(&replica).uid, group(&workers).uid, "replicas are independent");
        assert_eq!(group(&rest).policy, Policy::Basic);
        assert_eq!(workload_of(&replica), ObjectKey::new("a", "w"));
        assert_eq!(workload_uid(&group(&replica).uid), "u");

        let unknown = group_of_pod(&json!({"name": "w", "podGroup": "other"})).unwrap();
        assert_eq!(workload.group(&unknown), None);
        let longer = group_of_pod(&json!({"name": "w2", "podGroup": "workers"})).unwrap();
        assert_eq!(workload.group(&longer), None, "a workload whose name begins alike is another one");
    }

    #[test]
    fn a_pod_is_in_the_group_that_its_cluster_knows_of_and_in_no_other() {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u", "labels": {"tutti.dev/pod-group": "by-label"}},
            "spec": {"schedulingGroup": {"podGroupName": "by-field"},
                     "workloadRef": {"name": "w", "podGroup": "by-reference"}},
        }))
        .unwrap();
        for (link, name) in [
            (GroupLink::SchedulingGroup, "by-field"),
            (GroupLink::WorkloadRef, "w/by-reference"),
            (GroupLink::Label, "by-label"),
        ] {
            let pod = view.read_linked(link).complete().unwrap();
            assert_eq!(pod.group, Some(ObjectKey::new("a", name)));
        }
    }

    #[test]
    fn a_pod_that_names_a_group_in_another_way_than_its_cluster_is_not_placed_alone() {
        let label = json!({"metadata": {"name": "p", "namespace": "a", "uid": "u", "labels": {"tutti.dev/pod-group": "g"}}});
        let field = json!({"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"schedulingGroup": {"podGroupName": "g"}}});
        let half =
            json!({"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"schedulingGroup": {}}});
        let reference = json!({"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"workloadRef": {"name": "w", "podGroup": "g"}}});
        for (mut pod, named_by, link) in [
            (label, GroupLink::Label, GroupLink::SchedulingGroup),
            (reference, GroupLink::WorkloadRef, GroupLink::SchedulingGroup),
            (field, GroupLink::SchedulingGroup, GroupLink::WorkloadRef),
            (half, GroupLink::SchedulingGroup, GroupLink::Label),
        ] {
            let read = |pod: &serde_json::Value| {
                let view: PodView = serde_json::from_value(pod.clone()).unwrap();
                view.read_linked(link).complete()
            };
            let why = read(&pod).unwrap_err().to_string();
            let wanted = format!("named by {}", link.field());
            assert!(why.contains(named_by.field()) && why.contains(&wanted), "{why}");
            pod["spec"]["nodeName"] = json!("n");
            assert_eq!(read(&pod).unwrap().group, None, "what sits already is as it is");
        }
    }

    #[test]
    fn a_pod_that_names_half_a_group_is_not_placed() {
        let error = group_of_pod(&json!({"name": "w"})).unwrap_err();
        assert_eq!(error, "pod a/p: spec.workloadRef.podGroup: is missing");
    }

    #[test]
    fn what_is_remembered_of_a_group_is_on_its_workload_and_of_no_other_group() {
        let (group, other) = (ObjectKey::new("a", "w/x"), ObjectKey::new("a", "w/x/2"));
        let mark = mark_of(marks::FULLY_BOUND, &group);
        let view: WorkloadView = serde_json::from_value(json!({
            "metadata": {"name": "w", "namespace": "a", "uid": "u",
                         "annotations": {&*mark: "2026-01-01T00:00:00Z", "tutti.dev/when-broken": "Unwind"}},
            "spec": {"podGroups": [{"name": "x", "policy": {"basic": {}}}]},
        }))
        .unwrap();
        let marks = |key: &ObjectKey| view.read().group(key).unwrap().marks;
        assert!(marks(&group).fully_bound && !marks(&other).fully_bound);
        assert_eq!(marks(&other).when_broken, Some(crate::WhenBroken::Unwind), "that is asked for all");
        assert!(mark.len() < 63, "it fits into the name of an annotation");
    }

    #[test]
    fn a_workload_that_is_not_understood_gives_groups_that_are_not() {
        let workload = workload(&json!({"podGroups": [
            {"name": "workers", "policy": {"gang": {"minCount": 0}}}, {"name": "rest", "policy": {"basic": {}}},
        ]}));
        let reading = workload.group(&ObjectKey::new("a", "w/rest")).unwrap();
        assert_eq!(reading.group, None);
        let error = reading.errors[0].to_string();
        assert!(error.contains("spec.podGroups[0].policy.gang.minCount: 0 is not a count"), "{error}");
    }
}
