//! What users do in one namespace of a cluster, and what they see there.

use crate::shape::{Change, Shape};
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::future::Future;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; what works takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct User {
    /// Speaks to the namespace by default.
    pub(crate) client: Client,
    /// How groups are made and read.
    pub(crate) shape: Shape,
    /// Fields in the specs of all pods.
    pod_fields: Value,
}

impl User {
    /// Somebody whose pods ask for the scheduler, in the namespace of the client.
    pub(crate) fn new(client: Client, shape: Shape) -> Self {
        Self { client, shape, pod_fields: json!({"schedulerName": "tutti"}) }
    }

    /// Somebody else, in a namespace of that name, whose pods have these fields.
    pub(crate) async fn in_namespace(&self, name: &str, pod_fields: Value) -> Self {
        let namespace = json!({"metadata": {"name": name}});
        let namespace = serde_json::from_value(namespace).expect("it is a namespace");
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.expect("the namespace is taken");
        let inner = self.client.clone();
        let service = tower::service_fn(move |request| {
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        Self { client: Client::new(service, name), shape: self.shape, pod_fields }
    }

    /// Objects of any kind.
    pub(crate) fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    /// Objects of a kind of `scheduling.k8s.io`.
    pub(crate) fn scheduling(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        self.objects("scheduling.k8s.io", version, kind)
    }

    /// The kind that says what a group wants.
    pub(crate) fn groups(&self) -> Api<DynamicObject> {
        Api::default_namespaced_with(self.client.clone(), &self.shape.resource())
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn gang(&self, name: &str, min_count: u32) {
        self.gang_with(name, min_count, &json!({}), &json!({})).await;
    }

    /// A gang with these annotations, and with these fields in its spec besides its policy.
    pub(crate) async fn gang_with(&self, name: &str, min_count: u32, annotations: &Value, fields: &Value) {
        self.group(name, annotations, &gang(min_count), fields).await;
    }

    /// A group of the basic policy.
    pub(crate) async fn basic_group(&self, name: &str) {
        self.group(name, &json!({}), &json!({"basic": {}}), &json!({})).await;
    }

    async fn group(&self, name: &str, annotations: &Value, policy: &Value, fields: &Value) {
        let mut group = self.shape.group(name, annotations, policy);
        for (field, value) in fields.as_object().into_iter().flatten() {
            group["spec"][field] = value.clone();
        }
        let group = serde_json::from_value(group).expect("it is a group");
        self.groups().create(&PostParams::default(), &group).await.expect("the group is taken");
    }

    /// Changes the minimum of a gang. False if that cannot be, and was refused.
    pub(crate) async fn set_minimum(&self, group: &str, min_count: u32) -> bool {
        let changed = self.shape.group(group, &json!({}), &gang(min_count));
        let patch = Patch::Merge(json!({"spec": changed["spec"]}));
        let patched = self.groups().patch(group, &PatchParams::default(), &patch).await;
        match (self.shape.change(), patched) {
            (Change::InPlace, patched) => {
                patched.expect("the minimum is taken");
                true
            }
            (change, Err(kube::Error::Api(status))) if status.code == 422 => {
                if change == Change::Anew {
                    let deleted = self.groups().delete(group, &DeleteParams::default()).await;
                    deleted.expect("the group is there");
                    self.gang(group, min_count).await;
                }
                change == Change::Anew
            }
            (change, patched) => panic!("{change:?}: {patched:?}"),
        }
    }

    pub(crate) async fn delete_pod(&self, pod: &str) {
        self.pods().delete(pod, &DeleteParams::default()).await.expect("the pod is there");
    }

    /// Deletes a pod without asking its kubelet.
    pub(crate) async fn remove_pod(&self, pod: &str) {
        let now = DeleteParams::default().grace_period(0);
        self.pods().delete(pod, &now).await.expect("the pod is there");
    }

    /// A pod, perhaps of a group.
    pub(crate) async fn pod(&self, name: &str, group: Option<&str>, cpus: &str) {
        let (labels, fields) = group.map_or((json!({}), json!({})), |group| self.shape.membership(group));
        self.labelled_pod(name, &labels, &fields, cpus).await;
    }

    /// A pod with these fields in its spec besides the usual ones.
    pub(crate) async fn pod_with(&self, name: &str, fields: &Value, cpus: &str) {
        self.labelled_pod(name, &json!({}), fields, cpus).await;
    }

    /// The same with labels.
    pub(crate) async fn labelled_pod(&self, name: &str, labels: &Value, fields: &Value, cpus: &str) {
        let mut spec = json!({
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": cpus}}}],
        });
        for (field, value) in [&self.pod_fields, fields].into_iter().filter_map(Value::as_object).flatten() {
            spec[field] = value.clone();
        }
        let metadata = json!({"name": name, "labels": labels});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        // Of no type, because types know one release and would lose fields of another.
        let pod = serde_json::from_value(pod).expect("it is a pod");
        let pods = self.objects("", "v1", "Pod");
        pods.create(&PostParams::default(), &pod).await.expect("the pod is taken");
    }

    pub(crate) async fn members(&self, group: &str, range: std::ops::Range<usize>, cpus: &str) {
        for index in range {
            self.pod(&format!("{group}-{index}"), Some(group), cpus).await;
        }
    }

    /// How many pods have a node, and how many run.
    pub(crate) async fn counts(&self) -> (usize, usize) {
        let pods = self.pods().list(&ListParams::default()).await.expect("pods are listed");
        let bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running")
        };
        (pods.iter().filter(bound).count(), pods.iter().filter(runs).count())
    }

    pub(crate) async fn wait_running(&self, count: usize) {
        eventually(&format!("{count} pods run"), || async {
            (self.counts().await == (count, count)).then_some(())
        })
        .await;
    }

    pub(crate) async fn node_of(&self, pod: &str) -> Option<String> {
        self.pods().get(pod).await.expect("the pod is there").spec?.node_name
    }

    /// The condition that the scheduler writes on a group, once it has this status.
    pub(crate) async fn wait_condition(&self, group: &str, status: &str) -> Value {
        self.wait_condition_saying(group, status, "").await
    }

    /// The same, once its message has these words in it.
    pub(crate) async fn wait_condition_saying(&self, group: &str, status: &str, words: &str) -> Value {
        let kind = self.shape.condition().expect("groups have conditions");
        let groups = self.groups();
        eventually(&format!("{kind} of {group} is {status}: {words}"), || async {
            let group = groups.get(group).await.expect("the group is there");
            let conditions = group.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.into_iter().find(|c| {
                let message = c["message"].as_str().unwrap_or_default();
                c["type"] == kind && c["status"] == status && message.contains(words)
            })
        })
        .await
    }

    /// The message of an event on an object, once it is there.
    pub(crate) async fn wait_event(&self, object: &str, reason: &str) -> String {
        self.wait_event_saying(object, reason, "").await
    }

    /// The same for an event with these words in its message.
    pub(crate) async fn wait_event_saying(&self, object: &str, reason: &str, words: &str) -> String {
        let events = Api::<Event>::default_namespaced(self.client.clone());
        eventually(&format!("event {reason} on {object}: {words}"), || async {
            let events = events.list(&ListParams::default()).await.expect("events are listed");
            let about = events.into_iter().filter(|event| {
                event.involved_object.name.as_deref() == Some(object)
                    && event.reason.as_deref() == Some(reason)
            });
            about.filter_map(|event| event.message).find(|message| message.contains(words))
        })
        .await
    }

    pub(crate) async fn pod_condition(&self, pod: &str) -> Option<(String, String)> {
        let status = self.pods().get(pod).await.expect("the pod is there").status?;
        let conditions = status.conditions.unwrap_or_default();
        let scheduled = conditions.into_iter().find(|c| c.type_ == "PodScheduled")?;
        Some((scheduled.status, scheduled.message.unwrap_or_default()))
    }

    /// Waits until a pod says that it waits, with these words.
    pub(crate) async fn wait_waiting(&self, pod: &str, words: &str) -> String {
        eventually(&format!("{pod} waits: {words}"), || async {
            let (status, message) = self.pod_condition(pod).await?;
            (status == "False" && message.contains(words)).then_some(message)
        })
        .await
    }
}

fn gang(min_count: u32) -> Value {
    json!({"gang": {"minCount": min_count}})
}

/// Asks until there is an answer.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
