//! `tutti up --no-scheduler` and schedulers of its own beside it: processes, as beside any cluster.

use crate::process::{Folder, Running, tutti};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Requests of a test that are under way at once.
const REQUESTS_MAX: usize = 16;

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) folder: Folder,
    _cluster: Running,
}

impl World {
    /// A cluster with these further options.
    pub(crate) async fn up(more: &[&str]) -> Self {
        let folder = Folder::new();
        let file = folder.file("kubeconfig");
        let arguments = ["up", "--no-scheduler", "--port", "0", "--kubeconfig", &file];
        let mut cluster = Running::start(tutti(&[&arguments, more].concat()));
        cluster.wait_for_line("Ctrl-C");
        let text = std::fs::read_to_string(&file).unwrap();
        let client = tutti_cluster::kubeconfig::client(&text).await.unwrap();
        Self { client, folder, _cluster: cluster }
    }

    pub(crate) fn scheduler(&self, more: &[&str]) -> Running {
        let kubeconfig = self.folder.file("kubeconfig");
        let mut running =
            Running::start(tutti(&[&["scheduler", "--kubeconfig", &kubeconfig], more].concat()));
        running.wait_for_line("Ctrl-C");
        running
    }

    /// Writes a configuration file, and gives its path.
    pub(crate) fn config(&self, settings: &Value) -> String {
        let mut file = json!({"apiVersion": "tutti.dev/v1alpha1", "kind": "SchedulerConfiguration"});
        for (field, value) in settings.as_object().into_iter().flatten() {
            file[field] = value.clone();
        }
        let path = self.folder.file("scheduler.yaml");
        std::fs::write(&path, file.to_string()).unwrap();
        path
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn list_pods(&self) -> Vec<Pod> {
        self.pods().list(&ListParams::default()).await.unwrap().items
    }

    fn objects(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if kind == "Node" {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::default_namespaced_with(self.client.clone(), &resource)
        }
    }

    async fn create(&self, object: Value) {
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let objects = self.objects(api_version, kind);
        let object = serde_json::from_value(object).unwrap();
        objects.create(&PostParams::default(), &object).await.unwrap();
    }

    /// A simulated node.
    pub(crate) async fn node(&self, name: &str, cpus: usize) {
        let capacity = json!({"cpu": cpus.to_string(), "memory": "64Gi", "pods": "110"});
        let status = json!({"capacity": capacity});
        self.create(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}),
        )
        .await;
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        self.objects("v1", "Node").delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) fn groups(&self) -> Api<DynamicObject> {
        self.objects("scheduling.k8s.io/v1beta1", "PodGroup")
    }

    pub(crate) async fn gang(&self, name: &str, minimum: usize, annotations: &Value) {
        self.create(json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
        }))
        .await;
    }

    /// A member of a gang that nobody makes again.
    pub(crate) async fn member(&self, gang: &str, index: usize) {
        self.create(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{gang}-{index}"), "labels": {"of": gang}}, "spec": member_spec(gang),
        }))
        .await;
    }

    /// A gang with all of its members, of which nobody is made again.
    pub(crate) async fn whole_gang(&self, name: &str, members: usize) {
        self.gang(name, members, &json!({})).await;
        let members = stream::iter(0..members).map(|index| self.member(name, index));
        members.buffer_unordered(REQUESTS_MAX).collect::<()>().await;
    }

    /// Members of a gang that are made again.
    pub(crate) async fn controlled_members(&self, gang: &str, count: usize) {
        let labels = json!({"of": gang});
        self.create(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": gang},
            "spec": {"replicas": count, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": member_spec(gang)}},
        }))
        .await;
    }

    /// Waits until so many pods run, and no other has a node.
    pub(crate) async fn wait_running(&self, count: usize) {
        eventually(&format!("{count} pods run"), || async {
            let pods = self.list_pods().await;
            let running = pods.iter().filter(|pod| phase_of(pod) == "Running").count();
            let bound = pods.iter().filter(|pod| node_of(pod).is_some()).count();
            (running == count && bound == count).then_some(())
        })
        .await;
    }

    /// Waits until a gang has not started for this reason.
    pub(crate) async fn wait_refused(&self, gang: &str, words: &str) {
        eventually(&format!("{gang} waits: {words}"), || async {
            let group = self.groups().get(gang).await.unwrap();
            let conditions = group.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.into_iter().find(|condition| {
                let message = condition["message"].as_str().unwrap_or_default();
                condition["status"] == "False" && message.contains(words)
            })
        })
        .await;
    }
}

/// The members of a gang.
pub(crate) fn of_gang(gang: &str) -> ListParams {
    ListParams::default().labels(&format!("of={gang}"))
}

/// A pod that wants one processor.
fn member_spec(gang: &str) -> Value {
    json!({
        "schedulerName": "tutti", "schedulingGroup": {"podGroupName": gang},
        "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}],
    })
}

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

pub(crate) fn uid_of(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap()
}

pub(crate) fn phase_of(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
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
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
