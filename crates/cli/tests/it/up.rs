//! `tutti up`.

use crate::process::{Folder, Running, run, tutti};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use std::path::Path;

/// The nodes that a kubeconfig file leads to.
async fn nodes(kubeconfig: &str) -> Vec<String> {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let client = tutti_cluster::kubeconfig::client(&text).await.unwrap();
    let nodes = Api::<Node>::all(client).list(&ListParams::default()).await.unwrap();
    nodes.items.into_iter().filter_map(|node| node.metadata.name).collect()
}

fn up(kubeconfig: &str, more: &[&str]) -> Running {
    let arguments = [&["up", "--no-scheduler", "--kubeconfig", kubeconfig], more].concat();
    Running::start(tutti(&arguments))
}

#[tokio::test]
async fn up_serves_until_it_is_asked_to_end_and_leaves_nothing_behind() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let file = folder.file("kubeconfig");
        let mut running = up(&file, &["--port", "0", "--nodes", "2", "--gpus", "4"]);
        let export = running.wait_for_line("export KUBECONFIG=");
        assert!(export.contains(&file), "{export}");
        running.wait_for_line("Ctrl-C");
        let is_up = |line: &String| line.contains("2 simulated nodes, 8 GPUs");
        assert!(running.said.iter().any(is_up), "{:?}", running.said);
        assert_eq!(nodes(&file).await, ["node-0", "node-1"]);
        running.signal(signal);
        let ended = running.wait();
        assert!(ended.status.success(), "{signal}: {:?}", ended.status);
        assert_eq!(ended.stderr, "", "nothing to warn of");
        assert!(!ended.stdout.contains('\x1b'), "no colours where there is no terminal");
        assert!(!Path::new(&file).exists(), "the kubeconfig of an ended cluster is of no use");
    }
}

#[tokio::test]
async fn an_empty_cluster_has_no_nodes() {
    let folder = Folder::new();
    let file = folder.file("kubeconfig");
    let mut running = up(&file, &["--port", "0", "--nodes", "0"]);
    running.wait_for_line("Ctrl-C");
    assert!(nodes(&file).await.is_empty());
}

#[tokio::test]
async fn a_file_can_describe_the_nodes() {
    let folder = Folder::new();
    let file = folder.file("kubeconfig");
    let pools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pools.txt").display().to_string();
    let mut running = up(&file, &["--port", "0", "--cluster", &pools]);
    running.wait_for_line("Ctrl-C");
    assert!(running.said[0].contains("22 simulated nodes, 144 GPUs"), "{:?}", running.said);
    let text = std::fs::read_to_string(&file).unwrap();
    let client = tutti_cluster::kubeconfig::client(&text).await.unwrap();
    let node = Api::<Node>::all(client).get("train-9").await.unwrap();
    let labels = node.metadata.labels.unwrap();
    assert_eq!(
        (labels["tutti.dev/rack"].as_str(), labels["topology.kubernetes.io/zone"].as_str()),
        ("rack-2", "zone-1")
    );
}

#[test]
fn a_mistake_in_a_cluster_file_is_told_with_file_line_and_word() {
    let folder = Folder::new();
    let file = folder.file("pools.txt");
    for (text, words) in [
        ("# a comment\nnode a x3 cpu=lots", "pools.txt: line 2.cpu: \"lots\" is not a quantity"),
        ("node a\ngroup g gang=2", "pools.txt: line 2.group: only nodes"),
        ("node a x20001 cpu=1", "20001 nodes; at most 20000"),
    ] {
        std::fs::write(&file, text).unwrap();
        let ended = up(&folder.file("kubeconfig"), &["--port", "0", "--cluster", &file]).wait();
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let ended = up(&folder.file("kubeconfig"), &["--cluster", &folder.file("missing.txt")]).wait();
    assert!(ended.stderr.contains("cannot read") && ended.stderr.contains("missing.txt"), "{}", ended.stderr);
}

#[tokio::test]
async fn simulated_nodes_can_fail_and_come_back() {
    let folder = Folder::new();
    let file = folder.file("kubeconfig");
    let mut running = up(&file, &["--port", "0", "--nodes", "2", "--node-grace", "2"]);
    running.wait_for_line("Ctrl-C");
    let text = std::fs::read_to_string(&file).unwrap();
    let nodes = Api::<Node>::all(tutti_cluster::kubeconfig::client(&text).await.unwrap());
    for (action, expected) in [("fail", "Unknown"), ("restore", "True")] {
        let ended = run(&["nodes", action, "node-1", "--kubeconfig", &file]);
        assert!(ended.status.success(), "{}", ended.stderr);
        assert!(ended.stdout.contains("node/node-1"), "{}", ended.stdout);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let status = nodes.get("node-1").await.unwrap().status.unwrap_or_default();
            let ready = status.conditions.into_iter().flatten().find(|c| c.type_ == "Ready");
            if ready.is_some_and(|ready| ready.status == expected) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{action}: node-1 is never {expected}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    let ended = run(&["nodes", "fail", "nobody", "--kubeconfig", &file]);
    assert!(!ended.status.success() && ended.stderr.contains("nobody"), "{}", ended.stderr);
}

#[test]
fn a_taken_port_is_an_error_that_says_what_to_do() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = up(&folder.file("kubeconfig"), &["--port", &port]).wait();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains(&port) && ended.stderr.contains("--port 0"), "{}", ended.stderr);
}

#[test]
fn a_kubeconfig_of_somebody_else_stays() {
    let folder = Folder::new();
    let file = folder.file("config");
    std::fs::write(&file, "of my production cluster").unwrap();
    let ended = up(&file, &["--port", "0"]).wait();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains(&file), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "of my production cluster");
}

#[test]
fn without_a_home_the_kubeconfig_has_to_be_given() {
    let ended = run(&["up", "--no-scheduler", "--port", "0"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("--kubeconfig"), "{}", ended.stderr);
}

#[test]
fn the_default_kubeconfig_is_in_the_state_folder() {
    let folder = Folder::new();
    let mut command = tutti(&["up", "--no-scheduler", "--port", "0", "--nodes", "0"]);
    command.env("HOME", &folder.0);
    let mut running = Running::start(command);
    let export = running.wait_for_line("export KUBECONFIG=");
    assert!(export.contains(&folder.file(".local/state/tutti/kubeconfig-")), "{export}");
}

#[test]
fn logs_are_json_if_asked_for() {
    let folder = Folder::new();
    let file = folder.file("kubeconfig");
    let mut running = up(&file, &["--port", "0", "-vvv", "--log-format", "json"]);
    running.wait_for_line("Ctrl-C");
    running.signal("TERM");
    let ended = running.wait();
    assert!(!ended.stderr.is_empty());
    for line in ended.stderr.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(entry["level"].is_string(), "{line}");
    }
}

#[test]
fn the_version_is_told() {
    let ended = run(&["--version"]);
    assert!(ended.status.success());
    assert_eq!(ended.stdout, format!("tutti {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_arguments_are_refused_before_anything_starts() {
    for wrong in
        [&["up", "--nodes", "20001"][..], &["up", "--gpus", "-1"], &["up", "--port", "x"], &["down"], &[]]
    {
        let ended = run(wrong);
        assert_eq!(ended.status.code(), Some(2), "{wrong:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty());
    }
}
