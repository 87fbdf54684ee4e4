//! A real client library, directly on the router.

use crate::harness::{Cluster, pod};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::{from_value, json};

#[tokio::test]
async fn kube_works_on_the_router_itself() {
    let cluster = Cluster::new();
    let client = Client::new(cluster.router.clone(), "default");
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let created = pods.create(&PostParams::default(), &from_value(pod("p")).unwrap()).await.unwrap();
    assert!(created.metadata.uid.is_some());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}}));
    pods.patch("p", &PatchParams::default(), &patch).await.unwrap();
    let list = pods.list(&ListParams::default().labels("x=1")).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let binding = crate::harness::binding("p", "n1");
    let status: kube::core::Status =
        pods.create_subresource("binding", "p", &PostParams::default(), &binding).await.unwrap();
    assert!(status.is_success());
    assert_eq!(pods.get_status("p").await.unwrap().spec.unwrap().node_name.as_deref(), Some("n1"));
    let pending = pods.delete("p", &DeleteParams::default()).await.unwrap();
    assert!(pending.left().unwrap().metadata.deletion_timestamp.is_some());
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("p").await.unwrap().is_none());

    let nodes: Api<Node> = Api::all(client.clone());
    let node = from_value(json!({"metadata": {"name": "n1"}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let gone = nodes.delete("n1", &DeleteParams::default()).await.unwrap();
    assert!(gone.right().unwrap().is_success());
    assert_eq!(client.apiserver_version().await.unwrap().minor, "37");
    let discovered = kube::discovery::group(&client, "scheduling.k8s.io").await.unwrap();
    assert!(discovered.versioned_resources("v1beta1").iter().any(|(r, _)| r.kind == "PodGroup"));
}

#[tokio::test]
async fn watchers_of_kube_see_everything_either_way() {
    let cluster = Cluster::new();
    let client = Client::new(cluster.router.clone(), "default");
    for i in 0..7 {
        cluster.create_pod(pod(&format!("p{i}"))).await;
    }
    for config in [watcher::Config::default().page_size(3), watcher::Config::default().streaming_lists()] {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut events = watcher::watcher(pods, config).boxed();
        let mut seen = 0;
        loop {
            match events.try_next().await.unwrap().unwrap() {
                Event::Init => {}
                Event::InitApply(_) => seen += 1,
                Event::InitDone => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, 7);
        cluster.create_pod(pod("new")).await;
        assert!(matches!(events.try_next().await.unwrap(), Some(Event::Apply(_))));
        cluster.delete(&format!("{}/new", crate::harness::PODS), json!(null)).await.expect(200);
        // A pod says that it goes before it is gone.
        assert!(matches!(events.try_next().await.unwrap(), Some(Event::Apply(_))));
        assert!(matches!(events.try_next().await.unwrap(), Some(Event::Delete(_))));
    }
}
