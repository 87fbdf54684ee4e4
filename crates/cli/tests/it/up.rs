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
        assert!(running.said[0].contains("2 simulated nodes, 8 GPUs"), "{:?}", running.said);
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
