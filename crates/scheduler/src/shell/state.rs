//! Dumps: the objects of the cluster as the API server has them, and what the core knows beyond them. A dump replays to
//! the decisions that the scheduler would take.
//!
//! The core keeps no objects, so they are read for the dump (`dumper`).

use super::workloads::{Seen, Workloads};
use crate::config::{self, ConfigError};
use crate::core::dump::{self, Extras};
use crate::core::message::Input;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tutti_engine::Decision;
use tutti_k8s::gangs::JobView;
use tutti_k8s::kin::{self, SelectingKind};
use tutti_k8s::view::View;
use tutti_k8s::{
    BudgetView, Capabilities, ClaimView, ClassView, CompositeView, CsiNodeView, NamespaceView, NodeView,
    ObjectKind, PodGroupView, PodView, PriorityClassView, VolumeView, WorkloadView,
};
use tutti_model::{Node, Pod};

/// `kind` of a dump.
pub(super) const KIND: &str = "SchedulerState";

/// Everything that a decision depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Dump {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The configuration, as a file.
    pub(super) configuration: String,
    /// How groups are served: `apiVersion/Kind`; nothing if they are not.
    pub(super) groups_api: Option<String>,
    /// What is not in objects.
    pub(super) extras: Extras,
    pub(super) pods: Vec<Value>,
    pub(super) nodes: Vec<Value>,
    pub(super) namespaces: Vec<Value>,
    pub(super) groups: Vec<Value>,
    /// Nothing if the cluster has no composites.
    #[serde(default)]
    pub(super) composites: Option<Vec<Value>>,
    /// Nothing if the cluster has no storage.
    #[serde(default)]
    pub(super) storage: Option<StorageObjects>,
    /// Nothing if they are not watched.
    #[serde(default)]
    pub(super) optional: Option<OptionalObjects>,
}

/// Objects of storage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StorageObjects {
    pub(super) claims: Vec<Value>,
    pub(super) volumes: Vec<Value>,
    pub(super) classes: Vec<Value>,
    pub(super) csi_nodes: Vec<Value>,
}

/// Objects that scheduling can do without. A kind that cannot be read is absent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct OptionalObjects {
    pub(super) services: Option<Vec<Value>>,
    pub(super) replication_controllers: Option<Vec<Value>>,
    pub(super) replica_sets: Option<Vec<Value>>,
    pub(super) stateful_sets: Option<Vec<Value>>,
    pub(super) priority_classes: Option<Vec<Value>>,
    pub(super) disruption_budgets: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) jobs: Option<Vec<Value>>,
}

/// Why a dump cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It is not a dump.
    #[error("want apiVersion {} and kind {KIND}, found {api_version:?} and {kind:?}", config::API_VERSION)]
    NoDump {
        /// What it says that it is.
        api_version: String,
        /// What it says that it is.
        kind: String,
    },
    /// Its configuration cannot be used.
    #[error("configuration: {0}")]
    Configuration(#[from] ConfigError),
    /// It comes from a cluster whose groups are not understood.
    #[error("groupsApi: {0:?} is not known")]
    GroupsApi(String),
    /// An object is not JSON that could be one.
    #[error("{what}[{index}]: {source}")]
    Object {
        /// The list.
        what: &'static str,
        /// Which of it.
        index: usize,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

impl Dump {
    /// What a scheduler that knows this would decide.
    pub fn replay(self) -> Result<Vec<Decision>, DumpError> {
        let capabilities = self.capabilities()?;
        let config = config::parse(&self.configuration)?.config;
        let (link, condition) = (capabilities.link, capabilities.group_condition);
        // First what says something about groups and pods, so that each of these is understood at once.
        let mut inputs = Vec::new();
        if let Some(optional) = self.optional {
            optional.tell(&mut inputs)?;
        }
        if let Some(storage) = self.storage {
            storage.tell(&mut inputs)?;
        }
        let mut seen: Vec<Seen> = inputs.into_iter().map(Seen::Input).collect();
        for namespace in views::<NamespaceView>("namespaces", self.namespaces)? {
            let name = namespace.key().name;
            seen.push(Seen::Input(Input::NamespaceSet { name, labels: namespace.read_labels() }));
        }
        for node in views::<NodeView>("nodes", self.nodes)? {
            seen.push(Seen::Input(Input::NodeSet(Box::new(node.read()))));
        }
        for composite in views::<CompositeView>("composites", self.composites.unwrap_or_default())? {
            seen.push(Seen::Input(Input::CompositeSet(Box::new(composite.read()))));
        }
        if link.has_group_objects() {
            for group in views::<PodGroupView>("groups", self.groups)? {
                seen.push(Seen::Input(Input::GroupSet(Box::new(group.read(condition)))));
            }
        } else {
            for workload in views::<WorkloadView>("groups", self.groups)? {
                seen.push(Seen::WorkloadSet(Box::new(workload.read())));
            }
        }
        for pod in views::<PodView>("pods", self.pods)? {
            seen.push(Seen::Input(Input::PodSet(Box::new(pod.read_linked(link)))));
        }
        let mut workloads = Workloads::default();
        let inputs: Vec<Input> =
            seen.into_iter().flat_map(|seen| workloads.translate_for(link, seen)).collect();
        Ok(dump::replay(config, capabilities, inputs, &self.extras))
    }
}

impl Dump {
    /// Its nodes, and its pods with their seats as the API server knew them.
    pub fn nodes_and_pods(self) -> Result<(Vec<Node>, Vec<Pod>), DumpError> {
        let link = self.capabilities()?.link;
        let nodes = views::<NodeView>("nodes", self.nodes)?;
        let pods = views::<PodView>("pods", self.pods)?;
        Ok((
            nodes.iter().map(|node| node.read().node).collect(),
            pods.iter().map(|pod| pod.read_linked(link).pod).collect(),
        ))
    }

    /// What the cluster served; an error if this is no dump of one.
    fn capabilities(&self) -> Result<Capabilities, DumpError> {
        if self.api_version != config::API_VERSION || self.kind != KIND {
            let (api_version, kind) = (self.api_version.clone(), self.kind.clone());
            return Err(DumpError::NoDump { api_version, kind });
        }
        let capabilities = match &self.groups_api {
            None => Capabilities::plain(),
            Some(api) => Capabilities::of_api(api).ok_or_else(|| DumpError::GroupsApi(api.clone()))?,
        };
        let capabilities =
            if self.composites.is_some() { capabilities.with_composites() } else { capabilities };
        let capabilities = if self.storage.is_some() { capabilities.with_storage() } else { capabilities };
        Ok(if self.optional.is_some() { capabilities.with_optional() } else { capabilities })
    }
}

impl StorageObjects {
    fn tell(self, inputs: &mut Vec<Input>) -> Result<(), DumpError> {
        let classes = views::<ClassView>("storage.classes", self.classes)?;
        inputs.extend(classes.iter().map(|class| Input::ClassSet(Box::new(class.read()))));
        let volumes = views::<VolumeView>("storage.volumes", self.volumes)?;
        inputs.extend(volumes.iter().map(|volume| Input::VolumeSet(Box::new(volume.read()))));
        let claims = views::<ClaimView>("storage.claims", self.claims)?;
        inputs.extend(claims.iter().map(|claim| Input::ClaimSet(Box::new(claim.read()))));
        let limits = views::<CsiNodeView>("storage.csiNodes", self.csi_nodes)?;
        inputs.extend(limits.iter().map(|node| Input::LimitsSet(Box::new(node.read()))));
        Ok(())
    }
}

impl OptionalObjects {
    fn tell(self, inputs: &mut Vec<Input>) -> Result<(), DumpError> {
        tell_kin::<kin::ServiceKind>("optional.services", self.services, inputs)?;
        tell_kin::<kin::ReplicationControllerKind>(
            "optional.replicationControllers",
            self.replication_controllers,
            inputs,
        )?;
        tell_kin::<kin::ReplicaSetKind>("optional.replicaSets", self.replica_sets, inputs)?;
        tell_kin::<kin::StatefulSetKind>("optional.statefulSets", self.stateful_sets, inputs)?;
        let class = |class: PriorityClassView| Input::PriorityClassSet(Box::new(class.read()));
        let classes = self.priority_classes;
        tell_list("optional.priorityClasses", ObjectKind::PriorityClass, classes, class, inputs)?;
        let budget = |budget: BudgetView| Input::BudgetSet(Box::new(budget.read()));
        let budgets = self.disruption_budgets;
        tell_list("optional.disruptionBudgets", ObjectKind::Budget, budgets, budget, inputs)?;
        let job = |job: JobView| Input::JobSet(Box::new(job.read()));
        tell_list("optional.jobs", ObjectKind::Job, self.jobs, job, inputs)
    }
}

fn tell_kin<K: SelectingKind>(
    what: &'static str,
    objects: Option<Vec<Value>>,
    inputs: &mut Vec<Input>,
) -> Result<(), DumpError> {
    let tell = |object: View<K>| Input::SelectorSet(Box::new(object.read_selected()));
    tell_list(what, K::KIND, objects, tell, inputs)
}

/// A kind that scheduling can do without, whole or not at all: it makes a difference whether an object is missing or
/// cannot be read.
fn tell_list<V: DeserializeOwned>(
    what: &'static str,
    kind: ObjectKind,
    objects: Option<Vec<Value>>,
    tell: impl Fn(V) -> Input,
    inputs: &mut Vec<Input>,
) -> Result<(), DumpError> {
    let Some(objects) = objects else {
        inputs.push(Input::ListRefused { kind, why: "it was not readable when the dump was made".into() });
        return Ok(());
    };
    inputs.push(Input::ListStarted(kind));
    inputs.extend(views::<V>(what, objects)?.into_iter().map(tell));
    inputs.push(Input::ListDone(kind));
    Ok(())
}

fn views<T: DeserializeOwned>(what: &'static str, objects: Vec<Value>) -> Result<Vec<T>, DumpError> {
    let view = |(index, object)| {
        serde_json::from_value(object).map_err(|source| DumpError::Object { what, index, source })
    };
    objects.into_iter().enumerate().map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A pod of the app `web` that waits; node `a` is emptier than node `b`, but has two others of the app.
    fn dump(configuration: &str, more: &Value) -> Value {
        let header = "apiVersion: tutti.dev/v1alpha1\nkind: SchedulerConfiguration\n";
        let node = |name: &str| {
            json!({"metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
                   "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}})
        };
        let pod = |name: &str, app: &str, cpu: &str, spec: Value| {
            let mut pod = json!({"metadata": {"name": name, "namespace": "d", "uid": name, "labels": {"app": app}},
                                 "spec": spec});
            pod["spec"]["schedulerName"] = json!("tutti");
            pod["spec"]["containers"] = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
            pod
        };
        let mut dump = json!({
            "apiVersion": config::API_VERSION, "kind": KIND, "configuration": format!("{header}{configuration}"),
            "groupsApi": null,
            "extras": {"nowMs": 0, "acting": true, "assumed": [], "holds": [], "suspended": [], "queue": [], "gangs": []},
            "pods": [
                pod("new", "web", "1", json!({"volumes": more["volumes"]})),
                pod("old-0", "web", "1", json!({"nodeName": "a"})),
                pod("old-1", "web", "1", json!({"nodeName": "a"})),
                pod("other", "db", "4", json!({"nodeName": "b"})),
            ],
            "nodes": [node("a"), node("b")], "namespaces": [], "groups": [],
        });
        for field in ["storage", "optional"] {
            dump[field] = more[field].clone();
        }
        dump
    }

    /// What is decided about the pod, in words.
    fn replayed(dump: Value) -> String {
        let dump: Dump = serde_json::from_value(dump).expect("it is a dump");
        let decisions = dump.replay().expect("it can be replayed");
        match &decisions[..] {
            [Decision::Place(placement)] => placement.seats[0].node.to_string(),
            [Decision::Wait(waiting)] => waiting.refusal.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_replay_decides_by_services_and_profiles() {
        let lists = json!({"services": [{"metadata": {"name": "s", "namespace": "d", "uid": "s"},
                                         "spec": {"selector": {"app": "web"}}}],
                           "replicationControllers": null, "replicaSets": [], "statefulSets": [],
                           "priorityClasses": [], "disruptionBudgets": []});
        assert_eq!(replayed(dump("", &json!({"optional": lists}))), "b");
        assert_eq!(replayed(dump("", &json!({}))), "a");
        let packs = "profiles: [{scoring: {strategy: {type: MostAllocated}}}]";
        assert_eq!(replayed(dump(packs, &json!({}))), "b");
    }

    #[test]
    fn a_replay_decides_by_storage() {
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]);
        let claim = json!({"metadata": {"name": "c", "namespace": "d", "uid": "c",
                                        "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                           "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}}}});
        let volume = json!({"metadata": {"name": "v", "uid": "v"},
                            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                                     "claimRef": {"namespace": "d", "name": "c", "uid": "c"},
                                     "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                                         {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}]}}}});
        let storage = json!({"claims": [claim], "volumes": [volume], "classes": [], "csiNodes": []});
        assert_eq!(replayed(dump("", &json!({"volumes": volumes, "storage": storage}))), "b");
        let missing = replayed(dump("", &json!({"volumes": volumes})));
        assert!(missing.contains("claim c"), "{missing}");
    }
}
