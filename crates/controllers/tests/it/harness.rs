//! A cluster with a scheduler and a controller, and questions that are asked until they are answered.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::kubelet::{self, NodeTemplate};
use tutti_cluster::listener::Port;
use tutti_cluster::registry::Release;
use tutti_controllers::Meters;
use tutti_controllers::gangs::Integration;
use tutti_controllers::process::{self, Settings};
use tutti_k8s::Capabilities;

/// Long enough for a loaded machine; what works takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is watched that nothing happens.
pub(crate) const SUSPENSE: Duration = Duration::from_millis(500);

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    release: Release,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl World {
    /// A cluster like this release, with nodes of so many processors each, and a scheduler.
    pub(crate) async fn without_controller(release: Release, nodes: &[&str]) -> Self {
        let moment = Duration::from_millis(20);
        let options = ClusterOptions {
            release,
            port: Port::Exactly(0),
            kubelets: kubelet::Options {
                start_delay: moment,
                stop_delay: moment,
                ..kubelet::Options::default()
            },
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start(options).await.unwrap();
        let mut world = Self { client: cluster.client(), cluster, release, tasks: Vec::new() };
        for (index, cpus) in nodes.iter().enumerate() {
            world.node(&format!("node-{index}"), cpus).await;
        }
        let scheduler = tutti_scheduler::run(
            world.client.clone(),
            tutti_scheduler::Config::default(),
            std::future::pending(),
        );
        world.tasks.push(tokio::spawn(async move {
            let ended = scheduler.await;
            panic!("the scheduler ended: {ended:?}");
        }));
        world
    }

    /// The same with a controller.
    pub(crate) async fn start(release: Release, nodes: &[&str]) -> Self {
        let mut world = Self::without_controller(release, nodes).await;
        world.start_controller(world.client.clone()).await;
        world
    }

    /// Starts a controller, and gives what ends it without a word.
    pub(crate) async fn start_controller(&mut self, client: Client) -> usize {
        let capabilities = Capabilities::discover(&self.client).await.unwrap();
        let settings = Settings { scheduler_names: vec!["tutti".to_owned()], integration: Integration::On };
        self.tasks.push(tokio::spawn(async move {
            process::run(client, &capabilities, settings, &Meters::default(), std::future::pending()).await;
        }));
        self.tasks.len() - 1
    }

    pub(crate) fn kill(&self, task: usize) {
        self.tasks[task].abort();
    }

    pub(crate) async fn node(&self, name: &str, cpus: &str) {
        let node = NodeTemplate::new(name, [("cpu", cpus), ("memory", "64Gi"), ("pods", "1000")]);
        self.cluster.add_node(&node).await.unwrap();
    }

    /// Objects of a kind of `scheduling.k8s.io`, in the version of the release.
    pub(crate) fn scheduling(&self, kind: &str) -> Api<DynamicObject> {
        let version = if self.release == Release::V1_36 { "v1alpha2" } else { "v1beta1" };
        let kind = GroupVersionKind::gvk("scheduling.k8s.io", version, kind);
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    pub(crate) async fn groups(&self) -> Vec<DynamicObject> {
        self.scheduling("PodGroup").list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn workloads(&self) -> Vec<DynamicObject> {
        self.scheduling("Workload").list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::default_namespaced(self.client.clone())
    }

    /// Of no type, because types know one release and would lose fields of another.
    pub(crate) async fn create_job(&self, job: &Value) {
        let resource = ApiResource::erase::<Job>(&());
        let jobs = Api::<DynamicObject>::default_namespaced_with(self.client.clone(), &resource);
        let job = serde_json::from_value(job.clone()).unwrap();
        jobs.create(&PostParams::default(), &job).await.unwrap();
    }

    pub(crate) async fn patch_job(&self, name: &str, patch: Value) {
        self.jobs().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// The Job that this release makes a gang of, with so many pods of one processor each.
    pub(crate) fn gang(&self, name: &str, size: u32) -> Value {
        let mut job = plain(name, size);
        if self.release == Release::V1_36 {
            job["spec"]["completionMode"] = json!("Indexed");
        } else {
            job["spec"]["scheduling"] = json!({"schedulingPolicy": {"gang": {}}});
        }
        job
    }

    pub(crate) async fn pods(&self, job: &str) -> Vec<Pod> {
        let of_job = ListParams::default().labels(&format!("job-name={job}"));
        Api::<Pod>::default_namespaced(self.client.clone()).list(&of_job).await.unwrap().items
    }

    /// Pods of a Job, those with a node, and those that run.
    pub(crate) async fn tally(&self, job: &str) -> (usize, usize, usize) {
        let pods = self.pods(job).await;
        let bound = pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()));
        let phase =
            |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        (pods.len(), bound.count(), pods.iter().filter(phase).count())
    }

    pub(crate) async fn wait_tally(&self, job: &str, want: (usize, usize, usize)) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let tally = self.tally(job).await;
            if tally == want {
                return;
            }
            assert!(Instant::now() < deadline, "{job} has {tally:?}, not {want:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until a pod of a Job, by its uid, is no more: it takes a moment to end, and counts until then.
    pub(crate) async fn wait_gone(&self, job: &str, uid: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.pods(job).await.iter().any(|pod| pod.metadata.uid.as_deref() == Some(uid)) {
            assert!(Instant::now() < deadline, "a pod of {job} does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// All pods of a Job wait, and go on waiting.
    pub(crate) async fn stays_unbound(&self, job: &str, pods: usize) {
        self.wait_tally(job, (pods, 0, 0)).await;
        let deadline = Instant::now() + SUSPENSE;
        while Instant::now() < deadline {
            assert_eq!(self.tally(job).await, (pods, 0, 0));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Why a pod of a Job waits.
    pub(crate) async fn wait_reason(&self, job: &str, words: &str) {
        let reasons = || async {
            let pods = self.pods(job).await;
            let conditions = pods.into_iter().filter_map(|pod| pod.status?.conditions).flatten();
            let messages = conditions.filter(|condition| condition.type_ == "PodScheduled");
            messages.filter_map(|condition| condition.message).collect::<Vec<String>>()
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = reasons().await;
            if said.iter().any(|message| message.contains(words)) {
                return;
            }
            assert!(Instant::now() < deadline, "nobody says {words:?}, only {said:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn wait_made(&self, workloads: usize, groups: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let made = (self.workloads().await.len(), self.groups().await.len());
            if made == (workloads, groups) {
                return;
            }
            assert!(Instant::now() < deadline, "there are {made:?}, not {:?}", (workloads, groups));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn wait_complete(&self, job: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.jobs().get(job).await.unwrap().status.unwrap_or_default();
            let mut conditions = status.conditions.clone().unwrap_or_default().into_iter();
            if conditions.any(|condition| condition.type_ == "Complete" && condition.status == "True") {
                return;
            }
            assert!(Instant::now() < deadline, "{job} does not end: {status:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A Job of so many pods of one processor each that nobody makes a gang of.
pub(crate) fn plain(name: &str, size: u32) -> Value {
    let container = json!({"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "parallelism": size, "completions": size,
        "template": {"spec": {"schedulerName": "tutti", "restartPolicy": "Never", "containers": [container]}},
    }})
}

/// The smallest number that members of a group start with.
pub(crate) fn minimum(group: &DynamicObject) -> Option<u64> {
    group.data.pointer("/spec/schedulingPolicy/gang/minCount")?.as_u64()
}
