//! A cluster, a scheduler, and questions that are asked until they are answered.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::Instrument as _;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::kubelet::{self, NodeTemplate};
use tutti_cluster::listener::Port;
use tutti_cluster::registry::Release;
use tutti_k8s::Capabilities;
use tutti_scheduler::{Config, Error};

/// Long enough for a loaded machine; what works takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Dropping the first part asks it to end.
type Scheduler = (oneshot::Sender<()>, JoinHandle<Result<(), Error>>);

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    /// Version of the API through which groups are made and read.
    pub(crate) version: &'static str,
    scheduler: Option<Scheduler>,
}

impl World {
    /// A cluster without nodes and without a scheduler.
    pub(crate) async fn empty() -> Self {
        Self::of_release(Release::default()).await
    }

    /// A cluster like this release of Kubernetes, without nodes and without a scheduler.
    pub(crate) async fn of_release(release: Release) -> Self {
        Self::with(ClusterOptions { release, ..ClusterOptions::default() }).await
    }

    /// The same with nobody but the kubelets, for tests that are many.
    pub(crate) async fn without_controllers() -> Self {
        Self::with(ClusterOptions { controllers: None, ..ClusterOptions::default() }).await
    }

    async fn with(options: ClusterOptions) -> Self {
        let options = ClusterOptions {
            port: Port::Exactly(0),
            kubelets: kubelet::Options {
                start_delay: Duration::from_millis(20),
                stop_delay: Duration::from_millis(20),
                ..kubelet::Options::default()
            },
            ..options
        };
        let cluster = Cluster::start(options).await.expect("the cluster starts");
        Self { client: cluster.client(), cluster, version: "v1beta1", scheduler: None }
    }

    /// A cluster with a scheduler that finds out for itself what is served.
    pub(crate) async fn start() -> Self {
        let mut world = Self::empty().await;
        world.start_scheduler(world.client.clone());
        world
    }

    /// A cluster whose scheduler and users speak one version of the API.
    pub(crate) async fn start_with(version: &'static str) -> Self {
        let mut world = Self::empty().await;
        world.version = version;
        world.start_scheduler_with(Capabilities::of_versions(&[version]));
        world
    }

    /// A scheduler that believes that the cluster serves just this.
    pub(crate) fn start_scheduler_with(&mut self, capabilities: Capabilities) {
        let (stop, stopped) = oneshot::channel();
        let client = self.client.clone();
        let task = tutti_scheduler::run_with(client, Config::default(), capabilities, ended(stopped));
        self.scheduler = Some((stop, tokio::spawn(task)));
    }

    pub(crate) fn start_scheduler(&mut self, client: Client) {
        self.start_scheduler_as(client, Config::default());
    }

    /// A scheduler with settings of its own.
    pub(crate) fn start_scheduler_as(&mut self, client: Client, config: Config) {
        let (stop, stopped) = oneshot::channel();
        let task = tutti_scheduler::run(client, config, ended(stopped));
        self.scheduler = Some((stop, tokio::spawn(task)));
    }

    /// The same over a way that may be bad from the start: what the cluster serves is known beforehand.
    pub(crate) fn start_scheduler_through(&mut self, client: Client, config: Config) {
        let (stop, stopped) = oneshot::channel();
        let capabilities = Capabilities::of_versions(&[self.version]);
        let task = tutti_scheduler::run_with(client, config, capabilities, ended(stopped));
        self.scheduler = Some((stop, tokio::spawn(task.in_current_span())));
    }

    /// Ends the scheduler at once, in the middle of whatever it does.
    pub(crate) async fn kill_scheduler(&mut self) {
        let (_stop, task) = self.scheduler.take().expect("a scheduler runs");
        task.abort();
        assert!(task.await.is_err(), "it was still running");
    }

    /// Ends the scheduler, which must end well.
    pub(crate) async fn stop_scheduler(&mut self) {
        let (stop, task) = self.scheduler.take().expect("a scheduler runs");
        drop(stop);
        let ended = tokio::time::timeout(PATIENCE, task).await.expect("it ends in time");
        ended.expect("it does not panic").expect("it ends well");
    }

    pub(crate) async fn end(mut self) {
        self.stop_scheduler().await;
        self.cluster.shutdown().await;
    }

    pub(crate) async fn node(&self, name: &str, cpus: &str) {
        let node = NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi"), ("pods", "110")]);
        self.cluster.add_node(&node).await.expect("the node is taken");
    }

    /// A node with a label for every level of a topology.
    pub(crate) async fn node_at(&self, name: &str, cpus: &str, labels: &[(&str, &str)]) {
        let node = NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi"), ("pods", "110")]);
        let node = labels.iter().fold(node, |node, (key, value)| node.label(*key, *value));
        self.cluster.add_node(&node).await.expect("the node is taken");
    }

    fn groups(&self) -> Api<DynamicObject> {
        self.scheduling(self.version, "PodGroup")
    }

    /// Objects of a kind of `scheduling.k8s.io`.
    pub(crate) fn scheduling(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("scheduling.k8s.io", version, kind);
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn gang(&self, name: &str, min_count: u32) {
        self.gang_with(name, min_count, &json!({}), &json!({})).await;
    }

    /// A group of the basic policy.
    pub(crate) async fn basic_group(&self, name: &str) {
        self.gang_with(name, 1, &json!({}), &json!({"schedulingPolicy": {"basic": {}}})).await;
    }

    pub(crate) async fn set_minimum(&self, group: &str, min_count: u32) {
        let body = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}}});
        let patched = self.groups().patch(group, &PatchParams::default(), &Patch::Merge(body)).await;
        patched.expect("the minimum is taken");
    }

    pub(crate) async fn delete_pod(&self, pod: &str) {
        self.pods().delete(pod, &DeleteParams::default()).await.expect("the pod is there");
    }

    /// A gang with these annotations, and with these fields in its spec besides its policy.
    pub(crate) async fn gang_with(&self, name: &str, min_count: u32, annotations: &Value, fields: &Value) {
        let mut group = json!({
            "apiVersion": format!("scheduling.k8s.io/{}", self.version), "kind": "PodGroup",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            group["spec"][field] = value.clone();
        }
        let group = serde_json::from_value(group).expect("it is a group");
        self.groups().create(&PostParams::default(), &group).await.expect("the group is taken");
    }

    pub(crate) async fn pod(&self, name: &str, group: Option<&str>, cpus: &str) {
        let fields = group.map_or(json!({}), |group| json!({"schedulingGroup": {"podGroupName": group}}));
        self.pod_with(name, &fields, cpus).await;
    }

    /// A pod with these fields in its spec besides the usual ones.
    pub(crate) async fn pod_with(&self, name: &str, fields: &Value, cpus: &str) {
        self.labelled_pod(name, &json!({}), fields, cpus).await;
    }

    /// The same with labels.
    pub(crate) async fn labelled_pod(&self, name: &str, labels: &Value, fields: &Value, cpus: &str) {
        let mut spec = json!({
            "schedulerName": "tutti",
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": cpus}}}],
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let metadata = json!({"name": name, "labels": labels});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        // Of no type, because types know one release and would lose fields of another.
        let pod = serde_json::from_value(pod).expect("it is a pod");
        let resource = ApiResource::erase::<Pod>(&());
        let pods = Api::<DynamicObject>::default_namespaced_with(self.client.clone(), &resource);
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
        let kind = match self.version {
            "v1alpha2" => "PodGroupScheduled",
            _ => "PodGroupInitiallyScheduled",
        };
        let groups = self.groups();
        eventually(&format!("{kind} of {group} is {status}"), || async {
            let group = groups.get(group).await.expect("the group is there");
            let conditions = group.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.into_iter().find(|c| c["type"] == kind && c["status"] == status)
        })
        .await
    }

    /// The message of an event on an object, once it is there.
    pub(crate) async fn wait_event(&self, object: &str, reason: &str) -> String {
        let events = Api::<Event>::default_namespaced(self.client.clone());
        eventually(&format!("event {reason} on {object}"), || async {
            let events = events.list(&ListParams::default()).await.expect("events are listed");
            let found = events.into_iter().find(|event| {
                event.involved_object.name.as_deref() == Some(object)
                    && event.reason.as_deref() == Some(reason)
            });
            found.and_then(|event| event.message)
        })
        .await
    }

    pub(crate) async fn pod_condition(&self, pod: &str) -> Option<(String, String)> {
        let status = self.pods().get(pod).await.expect("the pod is there").status?;
        let conditions = status.conditions.unwrap_or_default();
        let scheduled = conditions.into_iter().find(|c| c.type_ == "PodScheduled")?;
        Some((scheduled.status, scheduled.message.unwrap_or_default()))
    }
}

async fn ended(stopped: oneshot::Receiver<()>) {
    // An error means that the sender was dropped, which is how it is told to stop.
    let _ = stopped.await;
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
