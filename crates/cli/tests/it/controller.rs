//! `tutti controller` beside `tutti up --no-controller`: two processes, as beside any cluster.

use crate::health::{free_address, get, metrics_of_the_living, wait_ready};
use crate::process::{Folder, Running, run, tutti};
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    client: Client,
    folder: Folder,
    _cluster: Running,
}

impl World {
    async fn up() -> Self {
        let folder = Folder::new();
        let file = folder.file("kubeconfig");
        let arguments = ["up", "--no-scheduler", "--no-controller", "--kubernetes", "1.36"];
        let more = ["--port", "0", "--nodes", "1", "--kubeconfig", &file];
        let mut cluster = Running::start(tutti(&[&arguments[..], &more].concat()));
        cluster.wait_for_line("Ctrl-C");
        let text = std::fs::read_to_string(&file).unwrap();
        let client = tutti_cluster::kubeconfig::client(&text).await.unwrap();
        Self { client, folder, _cluster: cluster }
    }

    fn controller(&self, more: &[&str]) -> Running {
        let kubeconfig = self.folder.file("kubeconfig");
        let arguments = ["controller", "--kubeconfig", &kubeconfig, "--job-integration", "on"];
        let mut running = Running::start(tutti(&[&arguments, more].concat()));
        running.wait_for_line("Ctrl-C");
        running
    }

    fn jobs(&self) -> Api<Job> {
        Api::default_namespaced(self.client.clone())
    }

    /// A Job that wants a gang of two.
    async fn job(&self, name: &str, scheduler_name: &str) {
        let job = json!({"metadata": {"name": name}, "spec": {
            "completionMode": "Indexed", "parallelism": 2, "completions": 2,
            "template": {"spec": {"schedulerName": scheduler_name, "restartPolicy": "Never",
                                  "containers": [{"name": "main", "image": "any"}]}},
        }});
        let job = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    async fn names(&self, kind: &str) -> Vec<String> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.k8s.io", "v1alpha2", kind));
        let api = Api::<DynamicObject>::default_namespaced_with(self.client.clone(), &resource);
        let found = api.list(&ListParams::default()).await.unwrap();
        found.into_iter().filter_map(|object| object.metadata.name).collect()
    }

    async fn wait_for_groups(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let groups = self.names("PodGroup").await;
            if groups.len() == count {
                return;
            }
            assert!(Instant::now() < deadline, "there are {groups:?}, not {count} groups");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_controller_of_its_own_makes_groups_and_says_how_it_is() {
    let world = World::up().await;
    world.job("mine", "tutti").await;
    world.job("theirs", "other").await;
    let address = free_address();
    let controller = world.controller(&["--http-address", &address]);
    world.wait_for_groups(1).await;
    let (workloads, groups) = (world.names("Workload").await, world.names("PodGroup").await);
    assert!(workloads.len() == 1 && workloads[0].starts_with("mine-"), "{workloads:?}");
    assert!(groups[0].starts_with(&format!("{}-mine-pgt-0-", workloads[0])), "{groups:?}");
    assert_eq!(wait_ready(&address).await.trim(), "acting");
    let metrics = metrics_of_the_living(&address);
    let made = "tutti_controller_requests_total{controller=\"gangs\",verb=\"create\",result=\"done\"} 2";
    assert!(metrics.contains(made), "{metrics}");
    assert!(metrics.contains(r#"leader_election_master_status{name="tutti-controller"} 1"#), "{metrics}");
    controller.signal("TERM");
    let ended = controller.wait();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("scheduling.k8s.io/v1alpha2/PodGroup"),
        "it says what it found: {}",
        ended.stderr
    );
    world.jobs().delete("mine", &DeleteParams::background()).await.unwrap();
    world.wait_for_groups(0).await;
}

#[tokio::test]
async fn who_has_said_that_it_runs_can_be_ended_at_once() {
    let world = World::up().await;
    for _ in 0..10 {
        let controller = world.controller(&["--http-address", "off"]);
        controller.signal("TERM");
        let ended = controller.wait();
        assert!(ended.status.success(), "{}: {}", ended.status, ended.stderr);
    }
}

#[tokio::test]
async fn of_two_replicas_one_acts_and_the_other_takes_over() {
    let world = World::up().await;
    let (first_address, second_address) = (free_address(), free_address());
    let first = world.controller(&["--http-address", &first_address]);
    assert_eq!(wait_ready(&first_address).await.trim(), "acting");
    let _second = world.controller(&["--http-address", &second_address]);
    let standing_by = wait_ready(&second_address).await;
    assert!(standing_by.starts_with("standing by: "), "{standing_by}");
    let metrics = get(&second_address, "/metrics").unwrap().1;
    assert!(metrics.contains(r#"leader_election_master_status{name="tutti-controller"} 0"#), "{metrics}");
    first.signal("TERM");
    assert!(first.wait().status.success());
    world.job("later", "tutti").await;
    world.wait_for_groups(1).await;
    assert_eq!(wait_ready(&second_address).await.trim(), "acting");
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused_with_file_and_field() {
    let folder = Folder::new();
    let file = folder.file("scheduler.yaml");
    std::fs::write(&file, "apiVersion: tutti.dev/v1alpha1\nkind: Other\n").unwrap();
    let ended = run(&["controller", "--config", &file]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains(&format!("{file}: kind: want")), "{}", ended.stderr);
}
