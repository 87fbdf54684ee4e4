//! What a story happens in: a real API server, simulated nodes, Tutti as the scheduler, and a namespace of its own.

use crate::control_plane::ControlPlane;
use crate::kube_scheduler::KubeScheduler;
use crate::wait::{PATIENCE, eventually};
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tutti_cluster::kubelet::{self, NodeTemplate};
use tutti_k8s::Capabilities;

/// The label by which a story finds its nodes again.
const STORY_LABEL: &str = "tutti.dev/e2e-story";

/// Where stories happen. One after the other, because nodes belong to nobody.
pub(crate) struct World<'a> {
    /// The parts of the control plane, if it is ours.
    pub(crate) control_plane: Option<&'a ControlPlane>,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) kubeconfig: PathBuf,
    /// The `tutti` command.
    pub(crate) tutti: PathBuf,
    /// The `helm` command, if there is one.
    pub(crate) helm: Option<PathBuf>,
    /// The real one, if there is one for this cluster.
    pub(crate) kube_scheduler: Option<KubeScheduler>,
    /// For files of the story; removed at its end.
    pub(crate) folder: PathBuf,
    /// The binary whose first argument `kubectl` makes it that.
    controlplane_binary: PathBuf,
    groups: ApiResource,
    group_condition: &'static str,
    tasks: Mutex<Tasks>,
}

/// What runs beside a story, by name.
type Tasks = Vec<(&'static str, oneshot::Sender<()>, JoinHandle<anyhow::Result<()>>)>;

/// What a world is made of.
#[derive(Clone)]
pub(crate) struct Setting<'a> {
    pub(crate) control_plane: Option<&'a ControlPlane>,
    pub(crate) kubeconfig: &'a Path,
    pub(crate) controlplane_binary: &'a Path,
    pub(crate) tutti: &'a Path,
    pub(crate) helm: Option<&'a Path>,
    pub(crate) kube_scheduler: Option<KubeScheduler>,
    pub(crate) client: Client,
}

impl<'a> World<'a> {
    /// A namespace with nodes that run pods and a scheduler that places them.
    pub(crate) async fn start(setting: Setting<'a>) -> anyhow::Result<Self> {
        let client = setting.client.clone();
        let capabilities = Capabilities::discover(&client).await?;
        let groups = capabilities.pod_group.clone().context("the cluster serves no pod groups")?;
        let world = Self {
            control_plane: setting.control_plane,
            namespace: format!("story-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]),
            kubeconfig: setting.kubeconfig.to_owned(),
            tutti: setting.tutti.to_owned(),
            helm: setting.helm.map(Path::to_owned),
            kube_scheduler: setting.kube_scheduler,
            folder: std::env::temp_dir().join(format!("tutti-story-{}", uuid::Uuid::new_v4().simple())),
            controlplane_binary: setting.controlplane_binary.to_owned(),
            groups,
            group_condition: capabilities.group_condition,
            tasks: Mutex::default(),
            client,
        };
        std::fs::create_dir(&world.folder)
            .with_context(|| format!("cannot make {}", world.folder.display()))?;
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": world.namespace}}))?;
        Api::<Namespace>::all(world.client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .context("cannot create the namespace of the story")?;
        world.start_kubelets()?;
        world.start_scheduler()?;
        Ok(world)
    }

    /// Ends what runs, and takes away what others could stumble over.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.stop("scheduler").await?;
        let now = DeleteParams::default().grace_period(0);
        let everything = ListParams::default();
        // First, or their controller would make the pods again.
        self.replica_sets().delete_collection(&DeleteParams::background(), &everything).await?;
        self.jobs().delete_collection(&DeleteParams::background(), &everything).await?;
        self.pods().delete_collection(&now, &everything).await?;
        self.groups().delete_collection(&now, &everything).await?;
        let own = ListParams::default().labels(&format!("{STORY_LABEL}={}", self.namespace));
        Api::<Node>::all(self.client.clone()).delete_collection(&now, &own).await?;
        eventually("the namespace of the story is empty", || async {
            let pods = self.pods().list(&everything).await?.items.len();
            let groups = self.groups().list(&everything).await?.items.len();
            Ok((pods + groups == 0).then_some(()).ok_or_else(|| format!("{pods} pods, {groups} groups")))
        })
        .await?;
        self.stop("kubelets").await?;
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        // Logs of a story that failed are in its error; files that stay are only untidy.
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(())
    }

    // === what runs ===

    pub(crate) fn start_scheduler(&self) -> anyhow::Result<()> {
        self.start_scheduler_as(tutti_scheduler::Config::default())
    }

    pub(crate) fn start_scheduler_as(&self, config: tutti_scheduler::Config) -> anyhow::Result<()> {
        let client = self.client.clone();
        self.spawn("scheduler", |ended| async move { Ok(tutti_scheduler::run(client, config, ended).await?) })
    }

    /// A scheduler that believes that the cluster serves just this.
    pub(crate) fn start_scheduler_with(&self, capabilities: Capabilities) -> anyhow::Result<()> {
        let client = self.client.clone();
        self.spawn("scheduler", |ended| async move {
            let config = tutti_scheduler::Config::default();
            Ok(tutti_scheduler::run_with(client, config, capabilities, ended).await?)
        })
    }

    /// Simulated kubelets, fast ones, that leave pods without a node to the cluster's garbage collector.
    pub(crate) fn start_kubelets(&self) -> anyhow::Result<()> {
        let client = self.client.clone();
        let options = kubelet::Options {
            start_delay: Duration::from_millis(50),
            stop_delay: Duration::from_millis(50),
            heartbeat_interval: Duration::from_secs(2),
            ..kubelet::Options::default()
        };
        self.spawn("kubelets", |ended| async move {
            kubelet::run(client, options, ended).await;
            Ok(())
        })
    }

    /// Ends a task, which must end well.
    pub(crate) async fn stop(&self, name: &str) -> anyhow::Result<()> {
        let (_, stop, task) = {
            let mut tasks = self.tasks()?;
            let at = tasks.iter().position(|(other, ..)| *other == name);
            tasks.remove(at.with_context(|| format!("{name}: does not run"))?)
        };
        drop(stop);
        let ended = tokio::time::timeout(PATIENCE, task).await;
        ended
            .with_context(|| format!("{name}: does not end"))?
            .with_context(|| format!("{name}: panicked"))?
            .with_context(|| format!("{name}: failed"))
    }

    /// An error if something that should run has ended.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, _, task) in self.tasks()?.iter() {
            ensure!(!task.is_finished(), "{name}: ended unasked");
        }
        self.control_plane.map_or(Ok(()), ControlPlane::check)
    }

    /// Starts a task of the story, which [`Self::stop`] ends.
    pub(crate) fn spawn<F>(
        &self,
        name: &'static str,
        work: impl FnOnce(futures::future::BoxFuture<'static, ()>) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = Box::pin(async move {
            // An error means that the sender was dropped, which is how the end is asked for.
            let _ = stopped.await;
        });
        self.tasks()?.push((name, stop, tokio::spawn(work(ended))));
        Ok(())
    }

    fn tasks(&self) -> anyhow::Result<std::sync::MutexGuard<'_, Tasks>> {
        self.tasks.lock().map_err(|_| anyhow::anyhow!("a story panicked with its tasks in hand"))
    }

    // === making things ===

    pub(crate) async fn node(&self, name: &str, cpus: &str) -> anyhow::Result<()> {
        self.add(NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi")])).await
    }

    /// Adds a node, Ready; it goes at the end of the story.
    pub(crate) async fn add(&self, node: NodeTemplate) -> anyhow::Result<()> {
        let node = node.label(STORY_LABEL, &self.namespace);
        kubelet::create(&self.client, &node)
            .await
            .with_context(|| format!("cannot create node {}", node.name))
    }

    /// Name and label of a node that goes at the end of the story.
    pub(crate) fn node_metadata(&self, name: &str) -> Value {
        json!({"name": name, "labels": {STORY_LABEL: self.namespace}})
    }

    pub(crate) async fn delete_node(&self, name: &str) -> anyhow::Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn gang(&self, name: &str, min_count: u32) -> anyhow::Result<()> {
        self.group(name, &json!({"gang": {"minCount": min_count}})).await
    }

    pub(crate) async fn group(&self, name: &str, policy: &Value) -> anyhow::Result<()> {
        let group = json!({
            "apiVersion": self.groups.api_version, "kind": "PodGroup",
            "metadata": {"name": name}, "spec": {"schedulingPolicy": policy},
        });
        let group = serde_json::from_value(group)?;
        self.groups()
            .create(&PostParams::default(), &group)
            .await
            .with_context(|| format!("cannot create group {name}"))?;
        Ok(())
    }

    pub(crate) async fn delete_group(&self, name: &str) -> anyhow::Result<()> {
        self.groups().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn pod(&self, name: &str, group: Option<&str>, cpus: &str) -> anyhow::Result<()> {
        let mut spec = json!({
            "schedulerName": "tutti",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": cpus}}}],
        });
        if let Some(group) = group {
            spec["schedulingGroup"] = json!({"podGroupName": group});
        }
        self.pod_of(name, &spec).await
    }

    pub(crate) async fn pod_of(&self, name: &str, spec: &Value) -> anyhow::Result<()> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        self.pods()
            .create(&PostParams::default(), &serde_json::from_value(pod)?)
            .await
            .with_context(|| format!("cannot create pod {name}"))?;
        Ok(())
    }

    pub(crate) async fn members(
        &self,
        group: &str,
        range: std::ops::Range<usize>,
        cpus: &str,
    ) -> anyhow::Result<()> {
        for index in range {
            self.pod(&format!("{group}-{index}"), Some(group), cpus).await?;
        }
        Ok(())
    }

    /// Pods of one CPU that are made again when they fail or go, labelled `of` their set.
    pub(crate) async fn replicas(
        &self,
        name: &str,
        scheduler: &str,
        group: Option<&str>,
        count: usize,
    ) -> anyhow::Result<()> {
        let mut pod = json!({
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}],
        });
        if let Some(group) = group {
            pod["schedulingGroup"] = json!({"podGroupName": group});
        }
        let labels = json!({"of": name});
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }});
        // Not as a typed object, which may not know the field that names the group.
        self.kubectl(&["create", "--validate=ignore", "-f", "-"], &set.to_string()).await?;
        Ok(())
    }

    /// A Job of pods of one CPU that becomes a gang: by its shape in 1.36, by annotation elsewhere.
    pub(crate) fn gang_job(&self, name: &str, size: u32) -> Value {
        let by_shape = self.groups.version == "v1alpha2";
        let annotations = if by_shape { json!({}) } else { json!({"tutti.dev/gang": "true"}) };
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations},
            "spec": {"completionMode": "Indexed", "parallelism": size, "completions": size, "template": {"spec": {
                "schedulerName": "tutti", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}]}}},
        })
    }

    /// Not as a typed object, which may not know all fields.
    pub(crate) async fn create_job(&self, job: &Value) -> anyhow::Result<()> {
        let resource = ApiResource::erase::<Job>(&());
        let jobs = Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let job = serde_json::from_value(job.clone())?;
        jobs.create(&PostParams::default(), &job).await.context("cannot create a Job")?;
        Ok(())
    }

    pub(crate) async fn delete_job(&self, name: &str) -> anyhow::Result<()> {
        self.jobs().delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    pub(crate) async fn delete_pod(&self, name: &str) -> anyhow::Result<()> {
        self.pods().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    // === looking at things ===

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn replica_sets(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// How many Workloads and groups there are.
    pub(crate) async fn made(&self) -> anyhow::Result<(usize, usize)> {
        let resource = ApiResource {
            kind: "Workload".to_owned(),
            plural: "workloads".to_owned(),
            ..self.groups.clone()
        };
        let workloads =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let all = ListParams::default();
        Ok((workloads.list(&all).await?.items.len(), self.groups().list(&all).await?.items.len()))
    }

    pub(crate) async fn wait_made(&self, workloads: usize, groups: usize) -> anyhow::Result<()> {
        eventually(&format!("{workloads} Workloads and {groups} groups"), || async {
            self.check()?;
            let made = self.made().await?;
            Ok((made == (workloads, groups)).then_some(()).ok_or_else(|| format!("{made:?}")))
        })
        .await
    }

    pub(crate) fn groups(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &self.groups)
    }

    /// `v1alpha2` or whatever pod groups are called here.
    pub(crate) fn group_api_version(&self) -> &str {
        &self.groups.api_version
    }

    /// How many pods have a node, and how many run.
    pub(crate) async fn counts(&self) -> anyhow::Result<(usize, usize)> {
        let pods = self.pods().list(&ListParams::default()).await?;
        let bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running")
        };
        Ok((pods.iter().filter(bound).count(), pods.iter().filter(runs).count()))
    }

    /// Waits until this many pods of the story are bound and run, no more and no less.
    pub(crate) async fn wait_running(&self, count: usize) -> anyhow::Result<()> {
        eventually(&format!("{count} pods run"), || async {
            self.check()?;
            let (bound, running) = self.counts().await?;
            Ok((bound == count && running == count)
                .then_some(())
                .ok_or_else(|| format!("{bound} bound, {running} running")))
        })
        .await
    }

    pub(crate) async fn node_of(&self, pod: &str) -> anyhow::Result<Option<String>> {
        Ok(self.pods().get(pod).await?.spec.and_then(|spec| spec.node_name))
    }

    /// The condition that the scheduler writes on a group, once it has this status and its message contains a text.
    pub(crate) async fn wait_condition(
        &self,
        group: &str,
        status: &str,
        text: &str,
    ) -> anyhow::Result<Value> {
        let kind = self.group_condition;
        let what = format!("{kind} of {group} is {status} and says {text:?}");
        eventually(&what, || async {
            let group = self.groups().get(group).await?;
            let conditions = group.data["status"]["conditions"].clone();
            let found = conditions.as_array().into_iter().flatten().find(|c| {
                c["type"] == kind
                    && c["status"] == status
                    && c["message"].as_str().unwrap_or_default().contains(text)
            });
            Ok(found.cloned().ok_or_else(|| conditions.to_string()))
        })
        .await
    }

    /// The message of an event on an object, once it is there.
    pub(crate) async fn wait_event(&self, object: &str, reason: &str) -> anyhow::Result<String> {
        let events = Api::<Event>::namespaced(self.client.clone(), &self.namespace);
        eventually(&format!("event {reason} on {object}"), || async {
            let events = events.list(&ListParams::default()).await?;
            let about = |event: &&Event| event.involved_object.name.as_deref() == Some(object);
            let reasons: Vec<&str> =
                events.iter().filter(about).filter_map(|event| event.reason.as_deref()).collect();
            let found = events.iter().filter(about).find(|event| event.reason.as_deref() == Some(reason));
            Ok(found
                .map(|event| event.message.clone().unwrap_or_default())
                .ok_or_else(|| format!("{reasons:?}")))
        })
        .await
    }

    /// The message of a pod's PodScheduled condition, once it is False.
    pub(crate) async fn wait_unscheduled(&self, pod: &str) -> anyhow::Result<String> {
        eventually(&format!("{pod} says why it waits"), || async {
            let status = self.pods().get(pod).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            let found = conditions
                .into_iter()
                .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
            Ok(found.and_then(|condition| condition.message).ok_or_else(|| "nothing".to_owned()))
        })
        .await
    }

    pub(crate) async fn wait_gone(&self, group: &str) -> anyhow::Result<()> {
        eventually(&format!("group {group} is gone"), || async {
            Ok(match self.groups().get_opt(group).await? {
                None => Ok(()),
                Some(group) => Err(format!("finalizers {:?}", group.metadata.finalizers)),
            })
        })
        .await
    }

    // === kubectl ===

    /// What the real kubectl prints, run in the namespace of the story. `input` is what it reads as `-f -`.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.controlplane_binary);
        command
            .arg("kubectl")
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--namespace={}", self.namespace))
            .arg("--request-timeout=60s")
            .args(arguments);
        let shown = format!("kubectl {}", arguments.join(" "));
        let input = input.to_owned();
        let output = tokio::task::spawn_blocking(move || run_with_input(command, &input)).await??;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{shown} failed: {}", error.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The input is small enough for the pipe to take it whole, so writing before reading cannot block.
fn run_with_input(mut command: Command, input: &str) -> anyhow::Result<std::process::Output> {
    use std::io::Write as _;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    Ok(child.wait_with_output()?)
}
