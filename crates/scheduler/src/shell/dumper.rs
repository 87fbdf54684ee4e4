//! Reads the cluster for a dump. Only what scheduling reads is kept of objects: environment variables and other people's
//! annotations are nobody's business there.

use super::state::{Dump, KIND, OptionalObjects, StorageObjects};
use super::watch::{PAGE_SIZE, REFUSALS};
use crate::config::{self, Config, Settings};
use crate::core::dump::Extras;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tutti_k8s::{Capabilities, ObjectKind};

/// Fields of a container that scheduling reads.
const CONTAINER_FIELDS: [&str; 5] = ["name", "image", "restartPolicy", "ports", "resources"];
/// Fields of `spec` and `status` of objects that select pods. Templates of pods are most of the rest.
const SELECTING_FIELDS: [&str; 2] = ["selector", "disruptionsAllowed"];

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
        let Capabilities { pod_group, composite, storage, optional, .. } = &self.capabilities;
        let groups = match pod_group {
            Some(resource) => self.list(resource).await?,
            None => Vec::new(),
        };
        let composites = match composite {
            Some(resource) => Some(self.list(resource).await?),
            None => None,
        };
        Ok(Dump {
            api_version: config::API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            configuration: config::render(&settings).map_err(|error| error.to_string())?,
            groups_api: pod_group.as_ref().map(|group| format!("{}/{}", group.api_version, group.kind)),
            extras,
            pods: self.known(ObjectKind::Pod).await?,
            nodes: self.known(ObjectKind::Node).await?,
            namespaces: self.known(ObjectKind::Namespace).await?,
            groups,
            composites,
            storage: if *storage { Some(self.storage().await?) } else { None },
            optional: if *optional { Some(self.optional().await?) } else { None },
        })
    }

    async fn storage(&self) -> Result<StorageObjects, String> {
        Ok(StorageObjects {
            claims: self.known(ObjectKind::Claim).await?,
            volumes: self.known(ObjectKind::Volume).await?,
            classes: self.known(ObjectKind::StorageClass).await?,
            csi_nodes: self.known(ObjectKind::CsiNode).await?,
        })
    }

    async fn optional(&self) -> Result<OptionalObjects, String> {
        Ok(OptionalObjects {
            services: self.if_readable(ObjectKind::Service).await?,
            replication_controllers: self.if_readable(ObjectKind::ReplicationController).await?,
            replica_sets: self.if_readable(ObjectKind::ReplicaSet).await?,
            stateful_sets: self.if_readable(ObjectKind::StatefulSet).await?,
            priority_classes: self.if_readable(ObjectKind::PriorityClass).await?,
            disruption_budgets: self.if_readable(ObjectKind::Budget).await?,
            jobs: self.if_readable(ObjectKind::Job).await?,
        })
    }

    /// Objects of a kind that every cluster addresses alike.
    async fn known(&self, kind: ObjectKind) -> Result<Vec<Value>, String> {
        match resource_of(kind) {
            Some(resource) => self.list(&resource).await,
            None => Ok(Vec::new()),
        }
    }

    /// The same for a kind that we may have no right to see.
    async fn if_readable(&self, kind: ObjectKind) -> Result<Option<Vec<Value>>, String> {
        let Some(resource) = resource_of(kind) else { return Ok(None) };
        match self.try_list(&resource).await {
            Ok(objects) => Ok(Some(objects)),
            Err(kube::Error::Api(status)) if REFUSALS.contains(&status.code) => Ok(None),
            Err(error) => Err(named(&resource, &error)),
        }
    }

    async fn list(&self, resource: &ApiResource) -> Result<Vec<Value>, String> {
        self.try_list(resource).await.map_err(|error| named(resource, &error))
    }

    async fn try_list(&self, resource: &ApiResource) -> Result<Vec<Value>, kube::Error> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), resource);
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut objects = Vec::new();
        // Ends, because a list does.
        loop {
            let page = api.list(&params).await?;
            for object in page.items {
                objects.push(projected(object, &resource.kind).map_err(kube::Error::SerdeError)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }
}

fn resource_of(kind: ObjectKind) -> Option<ApiResource> {
    let (api_version, kind) = kind.api()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}

fn named(resource: &ApiResource, error: &kube::Error) -> String {
    format!("{}: {error}", resource.plural)
}

/// The object without what scheduling does not read.
fn projected(mut object: DynamicObject, kind: &str) -> Result<Value, serde_json::Error> {
    object.managed_fields_mut().clear();
    object.annotations_mut().retain(|key, _| tutti_k8s::view::is_read_annotation(key));
    let mut value = serde_json::to_value(object)?;
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = value.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            retain(container, &CONTAINER_FIELDS);
        }
    }
    let is_named_so = |optional: &ObjectKind| optional.api().is_some_and(|(_, name)| name == kind);
    if is_named_so(&ObjectKind::Job) {
        project_job(&mut value);
    } else if ObjectKind::OPTIONAL.iter().any(is_named_so) {
        for part in ["/spec", "/status"] {
            if let Some(fields) = value.pointer_mut(part) {
                retain(fields, &SELECTING_FIELDS);
            }
        }
    }
    Ok(value)
}

/// What decides whether pods of a Job wait for its group.
fn project_job(job: &mut Value) {
    for (part, fields) in [
        ("/spec", &["parallelism", "completions", "completionMode", "scheduling", "template"][..]),
        ("/spec/template", &["spec"]),
        ("/spec/template/spec", &["schedulerName", "schedulingGroup", "priorityClassName"]),
        ("/status", &["ready", "succeeded", "failed", "conditions"]),
    ] {
        if let Some(object) = job.pointer_mut(part) {
            retain(object, fields);
        }
    }
}

fn retain(object: &mut Value, fields: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|field, _| fields.contains(&field.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_container_of_any_kind_keeps_its_environment() {
        let container =
            json!([{"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": "secret"}]}]);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"somebody/else": "secret"}},
            "spec": {"containers": container, "initContainers": container, "ephemeralContainers": container},
        });
        let object: DynamicObject = serde_json::from_value(pod).expect("every object can be read");
        let dumped = projected(object, "Pod").expect("it can be written");
        assert!(!dumped.to_string().contains("secret"), "{dumped}");
        assert_eq!(dumped["spec"]["ephemeralContainers"][0], json!({"name": "c", "image": "i"}));
    }
}
