//! Dumps: the objects of the cluster as the API server has them, and what the core knows beyond them. A dump replays to
//! the decisions that the scheduler would take.
//!
//! The core keeps no objects, so they are read for the dump. Only what scheduling reads is kept of them: environment
//! variables and other people's annotations are nobody's business here.

use super::watch::PAGE_SIZE;
use super::workloads::{Seen, Workloads};
use crate::config::{self, Config, ConfigError, Settings};
use crate::core::dump::{self, Extras};
use crate::core::message::Input;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tutti_engine::Decision;
use tutti_k8s::{Capabilities, CompositeView, NamespaceView, NodeView, PodGroupView, PodView, WorkloadView};
use tutti_model::{Node, Pod};

/// `kind` of a dump.
const KIND: &str = "SchedulerState";
/// Fields of a container that scheduling reads.
const CONTAINER_FIELDS: [&str; 5] = ["name", "image", "restartPolicy", "ports", "resources"];

/// Everything that a decision depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Dump {
    api_version: String,
    kind: String,
    /// The configuration, as a file.
    configuration: String,
    /// How groups are served: `apiVersion/Kind`; nothing if they are not.
    groups_api: Option<String>,
    /// What is not in objects.
    extras: Extras,
    pods: Vec<Value>,
    nodes: Vec<Value>,
    namespaces: Vec<Value>,
    groups: Vec<Value>,
    /// Nothing if the cluster has no composites.
    #[serde(default)]
    composites: Option<Vec<Value>>,
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

/// Reads the cluster for a dump.
#[derive(Clone)]
pub(super) struct Dumper {
    pub(super) client: Client,
    pub(super) config: Config,
    pub(super) capabilities: Capabilities,
}

impl Dumper {
    /// The dump. `extras` must be from before this is called: what was assumed then may be written by now, and is
    /// found so, but what is written now was known before.
    pub(super) async fn dump(&self, extras: Extras) -> Result<Dump, String> {
        let settings = Settings { config: self.config.clone(), ..Settings::default() };
        let core = |kind| ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        let groups = match &self.capabilities.pod_group {
            Some(resource) => self.list(resource).await?,
            None => Vec::new(),
        };
        let composites = match &self.capabilities.composite {
            Some(resource) => Some(self.list(resource).await?),
            None => None,
        };
        let resource = self.capabilities.pod_group.as_ref();
        Ok(Dump {
            api_version: config::API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            configuration: config::render(&settings).map_err(|error| error.to_string())?,
            groups_api: resource.map(|resource| format!("{}/{}", resource.api_version, resource.kind)),
            extras,
            pods: self.list(&core("Pod")).await?,
            nodes: self.list(&core("Node")).await?,
            namespaces: self.list(&core("Namespace")).await?,
            groups,
            composites,
        })
    }

    async fn list(&self, resource: &ApiResource) -> Result<Vec<Value>, String> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), resource);
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut objects = Vec::new();
        // Ends, because a list does.
        loop {
            let page = api.list(&params).await.map_err(|error| format!("{}: {error}", resource.plural))?;
            for object in page.items {
                objects.push(projected(object)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }
}

/// The object without what scheduling does not read.
fn projected(mut object: DynamicObject) -> Result<Value, String> {
    object.managed_fields_mut().clear();
    object.annotations_mut().retain(|key, _| tutti_k8s::topology::is_read_annotation(key));
    let mut value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    for list in ["containers", "initContainers"] {
        let containers = value.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(fields) = container.as_object_mut() {
                fields.retain(|field, _| CONTAINER_FIELDS.contains(&field.as_str()));
            }
        }
    }
    Ok(value)
}

impl Dump {
    /// What a scheduler that knows this would decide.
    pub fn replay(self) -> Result<Vec<Decision>, DumpError> {
        let capabilities = self.capabilities()?;
        let config = config::parse(&self.configuration)?.config;
        let (link, condition) = (capabilities.link, capabilities.group_condition);
        let mut seen = Vec::new();
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
        Ok(if self.composites.is_some() { capabilities.with_composites() } else { capabilities })
    }
}

fn views<T: DeserializeOwned>(what: &'static str, objects: Vec<Value>) -> Result<Vec<T>, DumpError> {
    let view = |(index, object)| {
        serde_json::from_value(object).map_err(|source| DumpError::Object { what, index, source })
    };
    objects.into_iter().enumerate().map(view).collect()
}
