//! Pods.

use crate::claims::{read_device_claims, read_preemption, read_volume_claims};
use crate::condition::{self, Condition};
use crate::discovery::GroupLink;
use crate::error::{ObjectError, ObjectKind, Problems};
use crate::features::needed_features;
use crate::gangs::JobRef;
use crate::images::read_pod_images;
use crate::inter_pod::{InterPodFields, PodAffinityView, read_inter_pod};
use crate::lenient::Lenient;
use crate::pod_spec::{ContainerStatusView, ContainerView, PodSpecView, PodStatusView, PortView};
use crate::resources::{read_amounts, read_requests};
use crate::selector::{preferred_terms, read_affinity, read_each, read_toleration, text};
use crate::topology::{read_leader, read_rank};
use crate::view::{Kind, Names, View};
use crate::workload::WorkloadRefView;
use kube::core::NamespaceResourceScope;
use tutti_model::port::HostPort;
use tutti_model::requests::{ContainerRequests, PodResources};
use tutti_model::{Labels, ModelError, ObjectKey, Phase, Pod, ResourceList, Text};

/// A pod, as far as scheduling reads it.
pub type PodView = View<PodKind>;

/// Marks views of pods.
#[derive(Debug, Clone)]
pub struct PodKind;

impl Kind for PodKind {
    type Spec = PodSpecView;
    type Status = PodStatusView;
    type Dynamic = ();
    type Scope = NamespaceResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: "", version: "v1", kind: "Pod", plural: "pods" }
    }
}

/// The condition that says that a pod is about to be deleted for the sake of others.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// The label by which a pod says to which group it belongs, where Kubernetes has no field for it.
pub const POD_GROUP_LABEL: &str = "tutti.dev/pod-group";
/// The condition that says whether a pod has a node.
pub const POD_SCHEDULED: &str = "PodScheduled";

/// What was understood of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodReading {
    /// The pod. With errors it is what could be read: good enough to count a pod that runs, not to place one.
    pub pod: Pod,
    /// Resource version.
    pub version: Text,
    /// Its `PodScheduled` condition while it has no node; nobody has to be told that it has one.
    pub scheduled: Option<Condition>,
    /// True if a controller makes it again when it is deleted.
    pub controlled: bool,
    /// The Job that it belongs to.
    pub job: Option<JobRef>,
    /// The controller that keeps pods like it.
    pub replicator: Option<(ObjectKind, ObjectKey)>,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl PodReading {
    /// The pod, if everything was understood.
    pub fn complete(self) -> Result<Pod, ObjectError> {
        match self.errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(self.pod),
        }
    }
}

impl PodView {
    /// The pod in our terms, in a group as Kubernetes has them since 1.36.
    pub fn read(&self) -> PodReading {
        self.read_linked(GroupLink::SchedulingGroup)
    }

    /// The pod in our terms, in a group as this cluster has them.
    pub fn read_linked(&self, link: GroupLink) -> PodReading {
        let mut problems = self.problems();
        let key = self.key();
        let no_spec = PodSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let no_status = PodStatusView::default();
        let status = problems.or_default(self.status.at("status")).unwrap_or(&no_status);

        let mut pod = Pod::new(key.clone(), self.uid());
        pod.created = self.created();
        pod.terminating = self.metadata.deletion_timestamp.is_some();
        pod.scheduler_name = problems.or_default(text(&spec.scheduler_name, "spec.schedulerName")).into();
        pod.priority = problems.or_default(spec.priority.at("spec.priority")).copied().unwrap_or(0);
        let resources = read_resources(spec, status, &mut problems);
        pod.requests = resources.total();
        pod.padding = resources.padding();
        pod.labels = self.labels();
        let group = problems.or_default(read_group(spec, &pod.labels, link));
        pod.group = group.map(|name| ObjectKey::new(key.namespace.clone(), name));
        let job = self.job();
        // A pod of a Job may turn out to be a member of the group that its Job has.
        if pod.group.is_some() || job.is_some() {
            let annotations = self.metadata.annotations.as_ref();
            pod.rank = problems.or_default(read_rank(&pod.labels, annotations));
            pod.leader = problems.or_default(read_leader(&pod.labels, annotations));
        }
        pod.ports = read_ports(spec, &mut problems);
        pod.features = problems.or_default(needed_features(spec));
        (pod.inter_pod, pod.preferences) =
            read_inter_pod(&fields(spec), &key.namespace, &pod.labels, &mut problems);
        pod.affinity = read_affinity(&spec.node_selector, &spec.affinity, &mut problems);
        pod.preferences.nodes = problems.or_default(preferred_terms(&spec.affinity));
        pod.images = read_pod_images(spec);
        pod.tolerations =
            problems.or_default(read_list(&spec.tolerations, "spec.tolerations", read_toleration));
        pod.gates = problems.or_default(read_list(&spec.scheduling_gates, "spec.schedulingGates", |gate| {
            text(&gate.name, "name").map(Text::from)
        }));
        pod.preemption =
            problems.or_default(read_preemption(&spec.preemption_policy, "spec.preemptionPolicy"));
        pod.device_claims = problems.or_default(read_device_claims(spec));
        pod.volume_claims = problems.or_default(read_volume_claims(spec, &key));
        let nominated = problems.or_default(text(&status.nominated_node_name, "status.nominatedNodeName"));
        pod.nominated = (!nominated.is_empty()).then(|| nominated.into());
        let node = problems.or_default(text(&spec.node_name, "spec.nodeName"));
        pod.node = (!node.is_empty()).then(|| node.into());
        pod.phase = read_phase(problems.or_default(text(&status.phase, "status.phase")));
        let waits = pod.node.is_none();
        let scheduled = waits.then(|| condition::find(&status.conditions, POD_SCHEDULED)).flatten();
        PodReading {
            pod,
            version: self.version(),
            scheduled,
            controlled: self.is_controlled(),
            job,
            replicator: self.replicator(),
            errors: problems.into_errors(ObjectKind::Pod, &key),
        }
    }
}

/// An affinity that has no readable shape is reported once, by who reads node affinity.
fn fields(spec: &PodSpecView) -> InterPodFields<'_> {
    const NONE: &Lenient<PodAffinityView> = &Lenient::Absent;
    let affinity = spec.affinity.get().ok().flatten();
    InterPodFields {
        affinity: affinity.map_or(NONE, |affinity| &affinity.pod_affinity),
        anti_affinity: affinity.map_or(NONE, |affinity| &affinity.pod_anti_affinity),
        spread: &spec.topology_spread_constraints,
    }
}

/// Ports of the node that containers ask for. Ordinary init containers end before the others begin, and are not
/// asked for theirs.
fn read_ports(spec: &PodSpecView, problems: &mut Problems) -> Vec<HostPort> {
    let mut found = Vec::new();
    for (list, field) in
        [(&spec.containers, "spec.containers"), (&spec.init_containers, "spec.initContainers")]
    {
        // Shapes that are wrong further out were reported where requests are read.
        let containers = list.get().ok().flatten().map_or(&[][..], Vec::as_slice);
        for (index, container) in containers.iter().enumerate() {
            let Some(container) = container.get().ok().flatten() else {
                continue;
            };
            let runs_on = text(&container.restart_policy, "").is_ok_and(|policy| policy == "Always");
            if field == "spec.containers" || runs_on {
                let ports = problems.within(
                    || format!("{field}[{index}]"),
                    |problems| problems.or_default(read_list(&container.ports, "ports", read_port)),
                );
                found.extend(ports.into_iter().flatten());
            }
        }
    }
    found
}

/// The port, or `None` if it is the container's own affair.
fn read_port(view: &PortView) -> Result<Option<HostPort>, ModelError> {
    let port = view.host_port.at("hostPort")?.copied().unwrap_or(0);
    if port == 0 {
        return Ok(None);
    }
    let wrong = || ModelError::new("hostPort", format!("{port} is not a port"));
    let number = u16::try_from(port).map_err(|_| wrong())?;
    let protocol = text(&view.protocol, "protocol")?;
    Ok(Some(HostPort::new(protocol, number, text(&view.host_ip, "hostIP")?)))
}

fn read_list<T, M>(
    list: &Lenient<Vec<Lenient<T>>>,
    field: &str,
    read: impl Fn(&T) -> Result<M, ModelError>,
) -> Result<Vec<M>, ModelError> {
    let list = list.at(field)?.map_or(&[][..], Vec::as_slice);
    read_each(list, read).map_err(|error| error.within(field))
}

/// The name of the group that a pod belongs to.
fn read_group(spec: &PodSpecView, labels: &Labels, link: GroupLink) -> Result<Option<String>, ModelError> {
    let name = read_link(spec, labels, link)?;
    // What sits already is as it is.
    if name.is_some() || !text(&spec.node_name, "spec.nodeName")?.is_empty() {
        return Ok(name);
    }
    // Placed alone it would break the gang that it was meant for.
    let others = GroupLink::ALL.into_iter().filter(|other| *other != link);
    for other in others {
        if !matches!(read_link(spec, labels, other), Ok(None)) {
            let why = format!("names a group, but the groups of this cluster are named by {}", link.field());
            return Err(ModelError::new(other.field(), why));
        }
    }
    Ok(None)
}

/// The name of the group that a pod names in one of the ways there are.
fn read_link(spec: &PodSpecView, labels: &Labels, link: GroupLink) -> Result<Option<String>, ModelError> {
    let name = match link {
        GroupLink::SchedulingGroup => match spec.scheduling_group.at("spec.schedulingGroup")? {
            Some(group) => text(&group.pod_group_name, link.field())?,
            None => return Ok(None),
        },
        GroupLink::Label => match labels.get(POD_GROUP_LABEL) {
            Some(name) => name,
            None => return Ok(None),
        },
        GroupLink::WorkloadRef => {
            let reference = spec.workload_ref.at(link.field())?;
            return reference.map(WorkloadRefView::group_name).transpose();
        }
    };
    match name {
        // Placed alone it would break the gang that it was meant for.
        "" => Err(ModelError::new(link.field(), "is missing")),
        name => Ok(Some(name.to_owned())),
    }
}

/// Every phase that is not known to be an end or a beginning counts as running.
fn read_phase(phase: &str) -> Phase {
    match phase {
        "" | "Pending" => Phase::Pending,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        _ => Phase::Running,
    }
}

fn read_resources(spec: &PodSpecView, status: &PodStatusView, problems: &mut Problems) -> PodResources {
    let mut pod_level = read_requests(&spec.resources, "spec.resources", problems);
    let allocated = read_amounts(&status.allocated_resources, "status.allocatedResources", problems);
    let larger: Vec<_> = pod_level
        .iter()
        .map(|(resource, amount)| (resource.clone(), amount.max(allocated.get(resource.name()))))
        .collect();
    pod_level = larger.into_iter().collect();
    PodResources {
        containers: read_containers(
            (&spec.containers, "spec.containers"),
            (&status.container_statuses, "status.containerStatuses"),
            problems,
        ),
        init_containers: read_containers(
            (&spec.init_containers, "spec.initContainers"),
            (&status.init_container_statuses, "status.initContainerStatuses"),
            problems,
        ),
        pod_level,
        overhead: read_amounts(&spec.overhead, "spec.overhead", problems),
    }
}

type Field<'a, T> = (&'a Lenient<Vec<Lenient<T>>>, &'a str);

fn read_containers(
    (containers, field): Field<'_, ContainerView>,
    (statuses, status_field): Field<'_, ContainerStatusView>,
    problems: &mut Problems,
) -> Vec<ContainerRequests> {
    let containers = problems.or_default(containers.at(field)).map_or(&[][..], Vec::as_slice);
    let statuses = problems.or_default(statuses.at(status_field)).map_or(&[][..], Vec::as_slice);
    let mut found = Vec::with_capacity(containers.len());
    for (index, container) in containers.iter().enumerate() {
        let container = problems.within(
            || format!("{field}[{index}]"),
            |problems| {
                let container = problems.or_default(container.get())?;
                let restart = problems.or_default(text(&container.restart_policy, "restartPolicy"));
                let name = problems.or_default(text(&container.name, "name"));
                let requests = read_requests(&container.resources, "resources", problems);
                Some((name, requests, restart == "Always"))
            },
        );
        if let Some((name, requests, restartable)) = container {
            let allocated = read_allocated(statuses, name, status_field, problems);
            found.push(ContainerRequests { requests, allocated, restartable });
        }
    }
    found
}

/// What the kubelet has given to the container of a name: the larger of what it promised and what is in effect.
fn read_allocated(
    statuses: &[Lenient<ContainerStatusView>],
    name: &str,
    field: &str,
    problems: &mut Problems,
) -> ResourceList {
    let mut list = ResourceList::new();
    for (index, status) in statuses.iter().enumerate() {
        // A status without a readable name belongs to nobody; the spec alone counts then.
        let Some(status) = status.get().ok().flatten() else {
            continue;
        };
        if text(&status.name, "name").is_ok_and(|found| found == name && !name.is_empty()) {
            problems.within(
                || format!("{field}[{index}]"),
                |problems| {
                    let allocated = &status.allocated_resources;
                    list.raise_to(&read_amounts(allocated, "allocatedResources", problems));
                    list.raise_to(&read_requests(&status.resources, "resources", problems));
                },
            );
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tutti_model::{Effect, Operator, TolerationOperator};

    fn view(json: Value) -> PodView {
        serde_json::from_value(json).unwrap()
    }

    #[expect(clippy::needless_pass_by_value)] // reads better in the calls
    fn pod(spec: Value, status: Value) -> PodReading {
        view(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "x", "namespace": "default", "uid": "u1", "resourceVersion": "7",
                         "creationTimestamp": "2026-01-01T00:00:01Z", "managedFields": [{"manager": "m"}]},
            "spec": spec, "status": status,
        }))
        .read()
    }

    fn errors(reading: &PodReading) -> Vec<String> {
        reading.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pod_is_made_again_if_it_has_a_controller_other_than_its_node() {
        for (owners, controlled) in [
            (json!([{"kind": "Job", "controller": true}]), true),
            (json!([{"kind": "Job"}, {"kind": "ReplicaSet", "controller": true}]), true),
            (json!([{"kind": "Job", "controller": false}]), false),
            (json!([{"kind": "Node", "controller": true}]), false),
            (json!([5, {"kind": 7}]), false),
            (json!("what"), false),
            (Value::Null, false),
        ] {
            let reading = view(json!({
                "metadata": {"name": "x", "namespace": "a", "uid": "u", "ownerReferences": owners},
            }))
            .read();
            assert_eq!(reading.controlled, controlled, "{owners}");
        }
    }

    #[test]
    fn a_pod_is_read_with_all_that_scheduling_needs() {
        let reading = pod(
            json!({
                "schedulerName": "tutti", "priority": 7, "nodeName": "n1",
                "schedulingGroup": {"podGroupName": "g"},
                "schedulingGates": [{"name": "wait"}],
                "nodeSelector": {"zone": "a"},
                "affinity": {"nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}],
                         "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]}]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 7, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}},
                        {"weight": 9, "preference": {}}]}},
                "tolerations": [{"operator": "Exists"}, {"key": "sla", "operator": "Gt", "value": "95", "effect": "NoSchedule"}],
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m", "nvidia.com/gpu": 8}}}],
            }),
            json!({"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True", "reason": "r"}]}),
        );
        assert_eq!(errors(&reading), Vec::<String>::new());
        assert_eq!(reading.version.as_ref(), "7");
        let pod = reading.pod;
        assert_eq!((pod.key.to_string().as_str(), pod.uid.as_ref()), ("default/x", "u1"));
        assert_eq!(pod.created.0, 1_767_225_601_000);
        assert_eq!((pod.scheduler_name.as_ref(), pod.priority), ("tutti", 7));
        assert_eq!(pod.group, Some(ObjectKey::new("default", "g")));
        assert_eq!(pod.gates, [Text::from("wait")]);
        assert_eq!(pod.node.as_deref(), Some("n1"));
        assert_eq!(pod.phase, Phase::Running);
        assert_eq!((pod.requests.get("cpu"), pod.requests.get("nvidia.com/gpu")), (1500, 8));
        assert_eq!(pod.affinity.selector.get("zone"), Some("a"));
        let term = &pod.affinity.required.unwrap()[0];
        assert_eq!((term.labels[0].operator, term.fields[0].operator), (Operator::In, Operator::NotIn));
        let [preferred] = &pod.preferences.nodes[..] else {
            panic!("a preference that matches nothing is none")
        };
        assert_eq!((preferred.weight.get(), preferred.term.labels[0].operator), (7, Operator::Exists));
        assert_eq!((pod.padding.cpu, pod.padding.memory), (0, 200 << 20), "it states no memory");
        assert_eq!(pod.tolerations[0].operator, TolerationOperator::Exists);
        assert_eq!(pod.tolerations[1].effect, Some(Effect::NoSchedule));
        assert!(!pod.terminating);
    }

    #[test]
    fn whether_a_pod_is_scheduled_is_read_while_it_has_no_node() {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        let status = json!({"conditions": [{"type": "Ready", "status": "False"}, condition]});
        let waits = pod(json!({}), status.clone());
        assert_eq!(waits.scheduled.map(|condition| condition.reason), Some("Unschedulable".into()));
        assert_eq!(pod(json!({"nodeName": "n"}), status).scheduled, None);
    }

    #[test]
    fn labels_and_ports_of_the_node_are_read() {
        let port = |port: i64| json!({"containerPort": 80, "hostPort": port});
        let reading = view(json!({
            "metadata": {"name": "x", "namespace": "a", "uid": "u", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "ports": [port(8080), {"containerPort": 1}]}],
                     "initContainers": [{"name": "i", "ports": [port(1)]},
                                        {"name": "s", "restartPolicy": "Always",
                                         "ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]}]},
        }))
        .read();
        assert_eq!(errors(&reading), Vec::<String>::new());
        assert_eq!(reading.pod.labels.get("app"), Some("web"));
        let expected = [HostPort::new("", 8080, ""), HostPort::new("UDP", 53, "10.0.0.1")];
        assert_eq!(reading.pod.ports, expected);
        let wrong = pod(json!({"containers": [{"name": "c", "ports": [port(70_000)]}]}), Value::Null);
        assert_eq!(
            errors(&wrong),
            ["pod default/x: spec.containers[0].ports[0].hostPort: 70000 is not a port"]
        );
    }

    #[test]
    fn init_containers_pod_level_requests_and_overhead_count() {
        let container = |cpu: &str| json!({"name": cpu, "resources": {"requests": {"cpu": cpu}}});
        let cpu = |spec| pod(spec, Value::Null).complete().unwrap().requests.get("cpu");
        assert_eq!(cpu(json!({"containers": [container("1")], "initContainers": [container("3")]})), 3000);
        let sidecar =
            json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}});
        assert_eq!(
            cpu(
                json!({"containers": [container("1")], "initContainers": [sidecar], "overhead": {"cpu": "100m"}})
            ),
            1600
        );
        assert_eq!(
            cpu(json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}})),
            4000
        );
    }

    #[test]
    fn a_resized_container_counts_with_what_the_kubelet_gave_it() {
        let reading = pod(
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}},
                                  {"name": "d", "resources": {"requests": {"cpu": "1"}}}]}),
            json!({"containerStatuses": [
                {"name": "d", "resources": {"requests": {"cpu": "500m"}}},
                {"name": "c", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}]}),
        );
        assert_eq!(reading.complete().unwrap().requests.get("cpu"), 4000);
    }

    #[test]
    fn every_error_names_the_object_and_the_field() {
        let reading = pod(
            json!({
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "lots", "memory": "1Gi", "x/y": -1}}}, 5],
                "priority": "high",
                "schedulingGroup": {},
                "tolerations": [{"operator": "Maybe"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]}},
            }),
            json!("gone"),
        );
        let errors = errors(&reading);
        for expected in [
            "pod default/x: status: want an object, found \"gone\"",
            "pod default/x: spec.priority: want a whole number, found \"high\"",
            "pod default/x: spec.schedulingGroup.podGroupName: is missing",
            "pod default/x: spec.containers[0].resources.requests.x/y: -1 is below zero",
            "pod default/x: spec.containers[1]: want an object, found 5",
            "pod default/x: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
             nodeSelectorTerms[1].matchExpressions[0].operator: \"Near\" is not known",
            "pod default/x: spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: \
             101 is not a weight from 1 to 100",
            "pod default/x: spec.tolerations[0].operator: \"Maybe\" is not known",
        ] {
            assert!(errors.iter().any(|e| e == expected), "{expected} not in {errors:#?}");
        }
        assert!(
            errors.iter().any(|e| e.starts_with(
                "pod default/x: spec.containers[0].resources.requests.cpu: \"lots\" is not a quantity"
            )),
            "{errors:#?}"
        );
        // What could be read is there: a pod that runs is counted with it.
        assert_eq!(reading.pod.requests.get("memory"), 1 << 30);
    }

    #[test]
    fn one_malformed_pod_does_not_spoil_a_list_or_a_watch() {
        let good =
            json!({"metadata": {"name": "good", "namespace": "a", "uid": "1"}, "spec": {"containers": []}});
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
            "items": [{"metadata": {"name": 5}}, good, "what", {"spec": [1], "metadata": {"name": "bad"}}]});
        let list: kube::api::ObjectList<PodView> = serde_json::from_value(list).unwrap();
        let names: Vec<_> = list.items.iter().map(|pod| pod.key().name.to_string()).collect();
        assert_eq!(names, ["", "good", "", "bad"]);
        let broken: Vec<_> = list.items.iter().map(|pod| !pod.read().errors.is_empty()).collect();
        assert_eq!(broken, [true, false, true, true]);

        let event =
            r#"{"type":"ADDED","object":{"metadata":{"name":"b"},"spec":{"containers":{"no":"list"}}}}"#;
        let event: kube::api::WatchEvent<PodView> = serde_json::from_str(event).unwrap();
        assert!(matches!(event, kube::api::WatchEvent::Added(pod) if &*pod.key().name == "b"));
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_terminating_even_if_the_time_is_unreadable() {
        let reading =
            view(json!({"metadata": {"name": "x", "uid": "u", "deletionTimestamp": "soon"}})).read();
        assert!(reading.pod.terminating);
        assert_eq!(errors(&reading), ["pod x: metadata.deletionTimestamp: \"soon\" is not a time"]);
    }

    #[test]
    fn views_have_the_paths_of_the_api() {
        use kube::Resource;
        assert_eq!(PodView::url_path(&(), Some("a")), "/api/v1/namespaces/a/pods");
        assert_eq!(PodView::api_version(&()), "v1");
    }
}
