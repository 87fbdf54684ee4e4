//! The embedded cluster as its users see it: over TLS and HTTP, with a client that knows nothing about it.

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::controllers;
use tutti_cluster::kubelet::{self, NodeTemplate};
use tutti_cluster::listener::Port;

/// Long enough for a loaded machine; what works takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn start(nodes: u32) -> Cluster {
    let options = ClusterOptions {
        port: Port::Exactly(0),
        nodes,
        gpus_per_node: 2,
        kubelets: kubelet::Options {
            start_delay: Duration::from_millis(20),
            stop_delay: Duration::from_millis(20),
            ..kubelet::Options::default()
        },
        controllers: Some(controllers::Options {
            orphan_delay: Duration::from_millis(100),
            ..controllers::Options::default()
        }),
        ..ClusterOptions::default()
    };
    Cluster::start(options).await.expect("the cluster starts")
}

pub(crate) fn mk_pod(name: &str, limits: &Value) -> Pod {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "any", "resources": {"limits": limits}}]},
    });
    serde_json::from_value(pod).unwrap()
}

/// Creates a pod and puts it onto a node, as a scheduler does.
pub(crate) async fn bind(client: &Client, pod: &Pod, node: &str) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let name = pod.metadata.name.clone().unwrap();
    pods.create(&PostParams::default(), pod).await.unwrap();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let _: Value = pods.create_subresource("binding", &name, &PostParams::default(), &binding).await.unwrap();
}

/// Asks until the answer is right. Only tests that look from outside have to poll.
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

pub(crate) async fn wait_for_phase(client: &Client, name: &str, phase: &str) -> Pod {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    eventually(&format!("{name} is {phase}"), || async {
        let pod = pods.get_opt(name).await.unwrap()?;
        (pod.status.as_ref()?.phase.as_deref() == Some(phase)).then_some(pod)
    })
    .await
}

pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

#[tokio::test]
async fn a_started_cluster_has_its_nodes_ready_at_once() {
    let began = Instant::now();
    let cluster = start(12).await;
    let took = began.elapsed();
    let nodes = Api::<Node>::all(cluster.client()).list(&ListParams::default()).await.unwrap();
    let names: Vec<&str> = nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    assert_eq!(names.len(), 12);
    assert_eq!((names[0], names[11]), ("node-00", "node-11"));
    assert!(nodes.iter().all(is_ready));
    let status = nodes.items[0].status.as_ref().unwrap();
    assert_eq!(status.allocatable.as_ref().unwrap()["nvidia.com/gpu"].0, "2");
    let labels = nodes.items[5].metadata.labels.as_ref().unwrap();
    assert_eq!(labels["kubernetes.io/hostname"], "node-05");
    assert_eq!(labels["tutti.dev/rack"], "rack-1");
    assert!(took < Duration::from_secs(2), "took {took:?}");
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_bound_pod_runs_and_a_deleted_one_goes() {
    let cluster = start(1).await;
    let client = cluster.client();
    bind(&client, &mk_pod("p", &json!({"nvidia.com/gpu": "1"})), "node-0").await;
    let pod = wait_for_phase(&client, "p", "Running").await;
    let status = pod.status.unwrap();
    assert!(status.pod_ip.is_some() && status.host_ip.is_some() && status.start_time.is_some());
    assert!(status.container_statuses.unwrap()[0].ready);
    let pods = Api::<Pod>::default_namespaced(client);
    pods.delete("p", &DeleteParams::default()).await.unwrap();
    eventually("p is gone", || async { pods.get_opt("p").await.unwrap().is_none().then_some(()) }).await;
}

#[tokio::test]
async fn what_does_not_fit_on_its_node_fails_there() {
    let cluster = start(1).await;
    let client = cluster.client();
    bind(&client, &mk_pod("first", &json!({"nvidia.com/gpu": "2"})), "node-0").await;
    wait_for_phase(&client, "first", "Running").await;
    bind(&client, &mk_pod("second", &json!({"nvidia.com/gpu": "1"})), "node-0").await;
    let failed = wait_for_phase(&client, "second", "Failed").await;
    assert_eq!(failed.status.unwrap().reason.as_deref(), Some("OutOfnvidia.com/gpu"));
}

#[tokio::test]
async fn a_pod_ends_by_the_clock_with_its_exit_code() {
    let cluster = start(1).await;
    let client = cluster.client();
    let mut pod = mk_pod("p", &json!({"cpu": "1"}));
    let annotations = [("tutti.dev/run-seconds", "0"), ("tutti.dev/exit-code", "3")];
    pod.spec.as_mut().unwrap().restart_policy = Some("Never".to_owned());
    pod.metadata.annotations = Some(annotations.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    bind(&client, &pod, "node-0").await;
    let ended = wait_for_phase(&client, "p", "Failed").await;
    let containers = ended.status.unwrap().container_statuses.unwrap();
    assert_eq!(containers[0].state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code, 3);
}

#[tokio::test]
async fn a_wrong_annotation_becomes_a_warning_event() {
    let cluster = start(1).await;
    let client = cluster.client();
    let mut pod = mk_pod("p", &json!({"cpu": "1"}));
    pod.metadata.annotations = Some([("tutti.dev/run-seconds".to_owned(), "soon".to_owned())].into());
    bind(&client, &pod, "node-0").await;
    wait_for_phase(&client, "p", "Running").await;
    let events = Api::<Event>::default_namespaced(client);
    let event = eventually("there is an event", || async {
        let about = ListParams::default().fields("involvedObject.name=p");
        events.list(&about).await.unwrap().items.pop()
    })
    .await;
    assert_eq!(event.reason.as_deref(), Some("InvalidAnnotation"));
    assert!(event.message.unwrap().contains("soon"));
}

#[tokio::test]
async fn a_node_without_a_kubelet_is_adopted_and_one_with_its_own_is_not() {
    let cluster = start(0).await;
    let client = cluster.client();
    let nodes = Api::<Node>::all(client.clone());
    let bare = json!({"metadata": {"name": "bare"}, "status": {"capacity": {"cpu": "4"}}});
    nodes.create(&PostParams::default(), &serde_json::from_value(bare).unwrap()).await.unwrap();
    let owned = json!({"metadata": {"name": "owned"}, "status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
    ]}});
    nodes.create(&PostParams::default(), &serde_json::from_value(owned).unwrap()).await.unwrap();
    let adopted =
        eventually("bare is ready", || async { Some(nodes.get("bare").await.unwrap()).filter(is_ready) })
            .await;
    let allocatable = adopted.status.unwrap().allocatable.unwrap();
    assert_eq!((allocatable["cpu"].0.as_str(), allocatable["pods"].0.as_str()), ("4", "110"));
    bind(&client, &mk_pod("p", &json!({"cpu": "4"})), "bare").await;
    wait_for_phase(&client, "p", "Running").await;
    assert!(!is_ready(&nodes.get("owned").await.unwrap()));
}

#[tokio::test]
async fn a_node_can_join_and_leave_and_its_pods_leave_with_it() {
    let cluster = start(0).await;
    let client = cluster.client();
    cluster.add_node(&NodeTemplate::new("n", [("cpu", "4")]).label("disk", "fast")).await.unwrap();
    let nodes = Api::<Node>::all(client.clone());
    assert!(is_ready(&nodes.get("n").await.unwrap()));
    assert!(cluster.add_node(&NodeTemplate::new("n", [])).await.is_err(), "names are unique");
    bind(&client, &mk_pod("p", &json!({"cpu": "1"})), "n").await;
    wait_for_phase(&client, "p", "Running").await;
    nodes.delete("n", &DeleteParams::default()).await.unwrap();
    let pods = Api::<Pod>::default_namespaced(client);
    eventually("p is gone", || async { pods.get_opt("p").await.unwrap().is_none().then_some(()) }).await;
}

#[tokio::test]
async fn conditions_of_others_survive_the_kubelet() {
    let cluster = start(1).await;
    let client = cluster.client();
    let pods = Api::<Pod>::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &mk_pod("p", &json!({}))).await.unwrap();
    let foreign = json!({"status": {"conditions": [{"type": "example.com/mine", "status": "True"}]}});
    pods.patch_status("p", &PatchParams::default(), &Patch::Merge(foreign)).await.unwrap();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-0"}});
    let _: Value = pods.create_subresource("binding", "p", &PostParams::default(), &binding).await.unwrap();
    let pod = wait_for_phase(&client, "p", "Running").await;
    let conditions = pod.status.unwrap().conditions.unwrap();
    for kind in ["example.com/mine", "PodScheduled", "Ready"] {
        assert!(conditions.iter().any(|c| c.type_ == kind && c.status == "True"), "{kind}: {conditions:?}");
    }
}

#[tokio::test]
async fn clusters_live_side_by_side_and_share_nothing() {
    let (first, second) = (start(1).await, start(2).await);
    assert_ne!(first.address(), second.address());
    for (cluster, count) in [(&first, 1), (&second, 2)] {
        let nodes = Api::<Node>::all(cluster.in_process_client());
        assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), count);
    }
}

#[tokio::test]
async fn shutdown_is_quick_while_clients_watch() {
    let cluster = start(1).await;
    let nodes = Api::<Node>::all(cluster.client());
    let watch = nodes.watch(&kube::api::WatchParams::default(), "0").await.unwrap();
    let began = Instant::now();
    cluster.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(3), "took {:?}", began.elapsed());
    drop(watch);
    assert!(nodes.list(&ListParams::default()).await.is_err(), "nobody answers any more");
}
