//! `tutti scheduler` beside `tutti up --no-scheduler`: two processes, as beside any cluster.

use crate::health::{free_address, get, metrics_of_the_living, wait_ready};
use crate::process::{Ended, Folder, Running, run, tutti};
use crate::world::{World, eventually};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, PostParams};
use serde_json::json;

const HEADER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: SchedulerConfiguration\n";

/// What only these tests ask.
impl World {
    /// A pod that names this scheduler, or none.
    async fn pod<'a>(&self, name: &str, scheduler_name: impl Into<Option<&'a str>>) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"schedulerName": scheduler_name.into(), "containers": [{"name": "main", "image": "any"}]},
        }))
        .unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn is_bound(&self, pod: &str) -> bool {
        self.pods().get(pod).await.unwrap().spec.unwrap().node_name.is_some()
    }

    /// Why a pod waits, once it says so.
    async fn wait_reason(&self, pod: &str) -> String {
        eventually(&format!("{pod} says why it waits"), || async {
            let status = self.pods().get(pod).await.unwrap().status?;
            let scheduled =
                status.conditions?.into_iter().find(|condition| condition.type_ == "PodScheduled");
            scheduled?.message
        })
        .await
    }

    async fn wait_bound(&self, pod: &str) {
        eventually(&format!("{pod} has a node"), || async { self.is_bound(pod).await.then_some(()) }).await;
    }
}

#[tokio::test]
async fn a_scheduler_of_its_own_places_pods_and_says_how_it_is() {
    let world = World::up(&["--nodes", "1"]).await;
    world.pod("mine", "tutti").await;
    world.pod("default", "default-scheduler").await;
    let address = free_address();
    let scheduler = world.scheduler(&["--http-address", &address]);
    world.wait_bound("mine").await;
    wait_ready(&address).await;
    assert_eq!(get(&address, "/nothing").unwrap().0, 404);
    let metrics = metrics_of_the_living(&address);
    let attempts = "scheduler_schedule_attempts_total{profile=\"tutti\",result=\"scheduled\"} 1";
    assert!(metrics.contains(attempts), "{metrics}");
    assert!(!world.is_bound("default").await, "pods of others are left alone");
    scheduler.signal("TERM");
    let ended = scheduler.wait();
    assert!(ended.status.success(), "{}", ended.stderr);
}

#[tokio::test]
async fn a_scheduler_of_the_default_name_places_pods_that_name_none() {
    let world = World::up(&["--nodes", "1"]).await;
    let _scheduler = world.scheduler(&["--scheduler-name", "default-scheduler", "--http-address", "off"]);
    world.pod("other", "tutti").await;
    world.pod("plain", None).await;
    world.wait_bound("plain").await;
    let plain = world.pods().get("plain").await.unwrap();
    assert_eq!(plain.spec.unwrap().scheduler_name.as_deref(), Some("default-scheduler"));
    assert!(!world.is_bound("other").await, "it serves the names that it is told, and no other");
}

#[tokio::test]
async fn a_leader_that_ends_gives_the_lease_back() {
    let world = World::up(&["--nodes", "1"]).await;
    let address = free_address();
    let scheduler = world.scheduler(&["--http-address", &address]);
    assert_eq!(wait_ready(&address).await.trim(), "scheduling");
    let leases = Api::<Lease>::namespaced(world.client.clone(), "kube-system");
    let holder = || async {
        let lease = leases.get("tutti-scheduler").await.unwrap();
        lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    };
    assert_ne!(holder().await, "");
    scheduler.signal("TERM");
    let ended = scheduler.wait();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(holder().await, "", "the next one need not wait until it runs out:\n{}", ended.stderr);
}

#[tokio::test]
async fn a_dump_of_the_state_replays_to_the_same_reasons() {
    let world = World::up(&["--nodes", "1"]).await;
    let address = free_address();
    let _scheduler = world.scheduler(&["--http-address", &address, "--leader-elect=false"]);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "huge"},
        "spec": {"schedulerName": "tutti", "containers": [{"name": "main", "image": "any",
                 "env": [{"name": "PASSWORD", "value": "hush"}],
                 "resources": {"requests": {"cpu": "5000"}}}]},
    }))
    .unwrap();
    world.pods().create(&PostParams::default(), &pod).await.unwrap();
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                 "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    let claims = Api::<PersistentVolumeClaim>::default_namespaced(world.client.clone());
    claims.create(&PostParams::default(), &claim).await.unwrap();
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "unready"},
        "spec": {"schedulerName": "tutti", "containers": [{"name": "main", "image": "any"}],
                 "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
    }))
    .unwrap();
    world.pods().create(&PostParams::default(), &pod).await.unwrap();
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                    {"name": "main", "image": "any", "env": [{"name": "PASSWORD", "value": "hush"}]}]}}},
    }))
    .unwrap();
    let sets = Api::<ReplicaSet>::default_namespaced(world.client.clone());
    sets.create(&PostParams::default(), &set).await.unwrap();
    let reasons = [world.wait_reason("huge").await, world.wait_reason("unready").await];
    let (code, dump) = get(&address, "/debug/state").unwrap();
    assert_eq!(code, 200, "{dump}");
    assert!(!dump.contains("hush"), "what scheduling does not read is not shown");
    assert!(dump.contains("\"app\":\"web\""), "what it reads is");
    let file = world.folder.file("state.json");
    std::fs::write(&file, dump).unwrap();
    let replayed = run(&["replay", &file]);
    assert!(replayed.status.success(), "{}", replayed.stderr);
    for reason in reasons {
        assert!(replayed.stdout.contains(&reason), "{reason} is not in {}", replayed.stdout);
    }

    std::fs::write(&file, "{}").unwrap();
    let refused = run(&["replay", &file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains(&file), "{}", refused.stderr);
}

#[tokio::test]
async fn a_changed_configuration_is_taken_over_and_a_wrong_one_is_not() {
    let world = World::up(&["--nodes", "1"]).await;
    let file = world.folder.file("scheduler.yaml");
    let names = |names: &str| {
        std::fs::write(&file, format!("{HEADER}profiles: [{{schedulerNames: [{names}]}}]\n")).unwrap();
    };
    names("first");
    let address = free_address();
    let scheduler = world.scheduler(&["--config", &file, "--http-address", &address, "--leader-elect=false"]);
    world.pod("a", "first").await;
    world.wait_bound("a").await;
    let wait_unused = async |unused: u8| {
        let line = format!("tutti_configuration_unused {unused}\n");
        let is_shown = || async { get(&address, "/metrics")?.1.contains(&line).then_some(()) };
        eventually(&line, is_shown).await;
    };
    wait_unused(0).await;
    world.pod("b", "second").await;
    names("NO NAME");
    wait_unused(1).await;
    world.pod("c", "first").await;
    world.wait_bound("c").await;
    assert!(!world.is_bound("b").await);
    names("first, second");
    world.wait_bound("b").await;
    wait_unused(0).await;
    scheduler.signal("TERM");
    let ended = scheduler.wait();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stderr.contains("profiles[0].schedulerNames[0]"), "{}", ended.stderr);
}

#[tokio::test]
async fn whoever_reads_json_reads_nothing_else() {
    let world = World::up(&["--nodes", "1"]).await;
    let (kubeconfig, address) = (world.folder.file("kubeconfig"), free_address());
    let cluster = ["--kubeconfig", &kubeconfig, "--http-address", &address, "--log-format=json"];
    for (command, ready) in [("scheduler", "scheduling"), ("controller", "acting")] {
        let running = Running::start(tutti(&[&[command], &cluster[..]].concat()));
        assert_eq!(wait_ready(&address).await.trim(), ready);
        running.signal("TERM");
        let Ended { status, stdout, stderr } = running.wait();
        assert!(status.success() && stdout.is_empty(), "{status} {stdout}");
        assert!(!stderr.is_empty() && stderr.lines().all(|line| line.starts_with('{')), "{stderr}");
    }
}

#[test]
fn a_wrong_configuration_is_refused_with_file_and_field() {
    let folder = Folder::new();
    let file = folder.file("scheduler.yaml");
    std::fs::write(&file, format!("{HEADER}limits: {{bindConcurrency: 0}}\n")).unwrap();
    let ended = run(&["scheduler", "--config", &file]);
    assert_eq!(ended.status.code(), Some(1));
    let said = format!("{file}: limits.bindConcurrency: want 1 to 10000");
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);

    let missing = folder.file("kubeconfig");
    let ended = run(&["scheduler", "--kubeconfig", &missing]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains(&missing), "{}", ended.stderr);
}

#[test]
fn the_configuration_that_is_printed_can_be_used() {
    let options =
        ["--scheduler-name", "a", "--scheduler-name", "b", "--leader-elect=false", "--print-config"];
    let printed = run(&[&["scheduler"][..], &options].concat());
    assert!(printed.status.success(), "{}", printed.stderr);
    assert!(printed.stdout.starts_with("apiVersion: tutti.dev/v1alpha1\n"), "{}", printed.stdout);
    let folder = Folder::new();
    let file = folder.file("scheduler.yaml");
    std::fs::write(&file, &printed.stdout).unwrap();
    let again = run(&["scheduler", "--config", &file, "--print-config"]);
    assert_eq!(again.stdout, printed.stdout);
}
