//! The example Jobs on `tutti up` as users run it: the manifest, and in the end pods that run as one gang.

use crate::process::{Folder, Running, tutti};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    client: Client,
    _process: Running,
    _folder: Folder,
}

impl World {
    async fn up(release: &str) -> Self {
        let folder = Folder::new();
        let file = folder.file("kubeconfig");
        let arguments = ["up", "--port", "0", "--kubeconfig", &file, "--nodes", "2", "--gpus", "2"];
        let mut process = Running::start(tutti(&[&arguments[..], &["--kubernetes", release]].concat()));
        process.wait_for_line("Ctrl-C");
        let text = std::fs::read_to_string(&file).unwrap();
        let client = tutti_cluster::kubeconfig::client(&text).await.unwrap();
        Self { client, _process: process, _folder: folder }
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    async fn create(&self, object: Value) -> DynamicObject {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let object = serde_json::from_value(object).unwrap();
        self.api("batch", "v1", &kind).create(&PostParams::default(), &object).await.unwrap()
    }

    /// Waits until all pods of a Job run, and says how many must start together.
    async fn wait_gang(&self, job: &str, pods: usize, version: &str) -> u64 {
        let of_job = ListParams::default().labels(&format!("job-name={job}"));
        let all: Api<Pod> = Api::default_namespaced(self.client.clone());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = all.list(&of_job).await.unwrap().items;
            let phase = |pod: &&Pod| {
                pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
            };
            if found.iter().filter(phase).count() == pods {
                break;
            }
            assert!(Instant::now() < deadline, "pods of {job} do not run: {found:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let groups = self.api("scheduling.k8s.io", version, "PodGroup");
        let groups = groups.list(&ListParams::default()).await.unwrap().items;
        assert_eq!(groups.len(), 1, "{groups:?}");
        groups[0].data["spec"]["schedulingPolicy"]["gang"]["minCount"].as_u64().unwrap()
    }
}

fn example(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test]
async fn example_jobs_run_as_gangs() {
    for (file, release, version, minimum) in [
        ("job-indexed", "1.36", "v1alpha2", 4),
        ("job-gang", "1.37", "v1beta1", 4),
        ("job-scheduling", "1.37", "v1beta1", 3),
    ] {
        let world = World::up(release).await;
        world.create(example(&format!("{file}.yaml"))).await;
        assert_eq!(world.wait_gang(file, 4, version).await, minimum, "{file}");
    }
}

#[tokio::test]
async fn a_job_of_the_example_cron_job_runs_as_a_gang() {
    let world = World::up("1.37").await;
    let template = example("cron-job.yaml");
    let cron = world.create(template.clone()).await;
    // What kubectl makes of it.
    let mut job = template["spec"]["jobTemplate"].clone();
    job["kind"] = json!("Job");
    job["apiVersion"] = json!("batch/v1");
    job["metadata"]["name"] = json!("tonight");
    job["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly",
        "uid": cron.metadata.uid, "controller": true}]);
    world.create(job).await;
    assert_eq!(world.wait_gang("tonight", 4, "v1beta1").await, 4);
}
