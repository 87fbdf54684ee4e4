//! Watches.

use crate::harness::{Cluster, PODS, pod, version};
use serde_json::{Value, json};
use std::time::Duration;
use tutti_cluster::server::Options;
use tutti_cluster::store::Limits;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn brief(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

async fn label(cluster: &Cluster, name: &str, app: &str) {
    let patch = json!({"metadata": {"labels": {"app": app}}});
    let path = format!("{PODS}/{name}");
    cluster.patch(&path, "merge", patch).await.expect(200);
}

#[tokio::test]
async fn a_watch_from_a_version_sees_all_that_comes_after_it() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("before")).await;
    let list = cluster.get(PODS).await.expect(200);
    let missed = cluster.create_pod(pod("missed")).await;
    let mut events = cluster.watch(&format!("{PODS}?watch=true&resourceVersion={}", version(&list))).await;
    let event = events.next().await.unwrap();
    assert_eq!(event, json!({"type": "ADDED", "object": missed}));
    let path = format!("{PODS}/missed");
    let patch = json!({"metadata": {"labels": {"x": "1"}}});
    let changed = cluster.patch(&path, "merge", patch).await.expect(200);
    assert_eq!(events.next().await.unwrap(), json!({"type": "MODIFIED", "object": changed}));
    let deleted = cluster.delete(&path, Value::Null).await.expect(200);
    assert_eq!(events.next_brief().await, brief("MODIFIED", "missed"));
    let event = events.next().await.unwrap();
    assert_eq!(event, json!({"type": "DELETED", "object": deleted}));
    // The revision of the deletion, not that of the last write before it.
    assert_eq!(version(&deleted), cluster.server.store().revision().to_string());
    assert!(events.is_quiet().await);
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_the_present() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("a")).await;
    cluster.create_pod(pod("b")).await;
    for version in ["", "&resourceVersion=0"] {
        let mut events = cluster.watch(&format!("{PODS}?watch=1{version}")).await;
        assert_eq!(events.next_brief().await, brief("ADDED", "a"));
        assert_eq!(events.next_brief().await, brief("ADDED", "b"));
        assert!(events.is_quiet().await);
    }
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("a")).await;
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for version in ["", "&resourceVersion=0"] {
        let mut events = cluster.watch(&format!("{PODS}?{query}{version}")).await;
        assert_eq!(events.next_brief().await, brief("ADDED", "a"));
        let bookmark = events.next().await.unwrap();
        assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Pod")));
        let metadata = &bookmark["object"]["metadata"];
        assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
        let revision = cluster.server.store().revision().to_string();
        assert_eq!(metadata["resourceVersion"], revision.as_str());
        assert!(events.is_quiet().await);
    }
    for wrong in ["watch=true&sendInitialEvents=true", "watch=true&resourceVersionMatch=NotOlderThan"] {
        cluster.get(&format!("{PODS}?{wrong}")).await.refusal(422, "Invalid");
    }
    for wrong in ["watch=true&resourceVersion=x", "watch=true&timeoutSeconds=x"] {
        cluster.get(&format!("{PODS}?{wrong}")).await.refusal(400, "BadRequest");
    }
}

#[tokio::test]
async fn bookmarks_come_to_those_who_allow_them() {
    let options = Options { bookmark_interval: Duration::from_millis(20), ..Options::default() };
    let cluster = Cluster::with(options);
    let now = cluster.server.store().revision();
    let watch = format!("{PODS}?watch=true&resourceVersion={now}");
    let mut without = cluster.watch(&watch).await;
    let mut events = cluster.watch(&format!("{watch}&allowWatchBookmarks=true")).await;
    // Something that this watch does not show moves the bookmark on.
    cluster.post("/api/v1/nodes", json!({"metadata": {"name": "x"}})).await.expect(201);
    for _ in 0..50 {
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        if event["object"]["metadata"]["resourceVersion"] == (now + 1).to_string().as_str() {
            assert!(without.is_quiet().await);
            return;
        }
    }
    panic!("bookmarks do not move");
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_up() {
    let cluster = Cluster::new();
    let mut events = cluster.watch(&format!("{PODS}?watch=true&timeoutSeconds=1")).await;
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn closing_the_server_ends_watches() {
    let cluster = Cluster::new();
    let mut events = cluster.watch(&format!("{PODS}?watch=true")).await;
    assert!(events.is_quiet().await);
    cluster.server.close_watches();
    assert!(events.next().await.is_none());
}

fn forgetful() -> Cluster {
    let limits = Limits { events_max: 10, bytes_max: usize::MAX };
    Cluster::with(Options { limits, ..Options::default() })
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_refused() {
    let cluster = forgetful();
    let old = cluster.server.store().revision();
    for i in 0..20 {
        cluster.create_pod(pod(&format!("p{i}"))).await;
    }
    let message =
        cluster.get(&format!("{PODS}?watch=true&resourceVersion={old}")).await.refusal(410, "Expired");
    assert!(message.starts_with(&format!("too old resource version: {old} (")), "{message}");
    let exact = format!("{PODS}?resourceVersionMatch=Exact&resourceVersion={old}");
    cluster.get(&exact).await.refusal(410, "Expired");
    // A version that does not exist yet is of another life of the cluster.
    cluster.get(&format!("{PODS}?watch=true&resourceVersion=99999")).await.refusal(410, "Expired");
    cluster.get(&format!("{PODS}?resourceVersion=99999")).await.refusal(504, "Timeout");
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_is_told_so() {
    let cluster = forgetful();
    let now = cluster.server.store().revision();
    let mut events = cluster.watch(&format!("{PODS}?watch=true&resourceVersion={now}")).await;
    for i in 0..20 {
        cluster.create_pod(pod(&format!("p{i}"))).await;
    }
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!((&event["object"]["code"], &event["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let cluster = Cluster::new();
    let mut events = cluster.watch(&format!("{PODS}?watch=true&labelSelector=app%3Da")).await;
    let mut rest = cluster.watch(&format!("{PODS}?watch=true&labelSelector=app%21%3Da")).await;
    cluster.create_pod(pod("a")).await;
    assert_eq!(events.next_brief().await, brief("ADDED", "a"));
    cluster.create_pod(pod("other")).await;
    assert_eq!(rest.next_brief().await, brief("ADDED", "other"));
    label(&cluster, "a", "b").await;
    let left = events.next().await.unwrap();
    assert_eq!(left["type"], "DELETED");
    // The last state that was selected, with the version of the write that ended it.
    assert_eq!(left["object"]["metadata"]["labels"]["app"], "a");
    assert_eq!(version(&left["object"]), cluster.server.store().revision().to_string());
    assert_eq!(rest.next_brief().await, brief("ADDED", "a"));
    label(&cluster, "a", "a").await;
    assert_eq!(events.next_brief().await, brief("ADDED", "a"));
    assert_eq!(rest.next_brief().await, brief("DELETED", "a"));
    label(&cluster, "other", "x").await;
    assert_eq!(rest.next_brief().await, brief("MODIFIED", "other"));
    assert!(events.is_quiet().await);
}

#[tokio::test]
async fn a_kubelet_sees_the_pods_of_its_node_only() {
    let cluster = Cluster::new();
    let mut events = cluster.watch("/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1").await;
    for (name, node) in [("p1", "n1"), ("p2", "n2")] {
        cluster.create_pod(pod(name)).await;
        cluster.bind(name, node).await.expect(201);
    }
    assert_eq!(events.next_brief().await, brief("ADDED", "p1"));
    assert!(events.is_quiet().await);
}

#[tokio::test]
async fn a_watch_of_a_namespace_sees_no_other() {
    let cluster = Cluster::new();
    let mut events = cluster.watch(&format!("{PODS}?watch=true")).await;
    let mut all = cluster.watch("/api/v1/pods?watch=true").await;
    cluster.post("/api/v1/namespaces/kube-system/pods", pod("k")).await.expect(201);
    cluster.create_pod(pod("d")).await;
    assert_eq!(events.next_brief().await, brief("ADDED", "d"));
    assert_eq!(all.next_brief().await, brief("ADDED", "k"));
    assert_eq!(all.next_brief().await, brief("ADDED", "d"));
}

#[tokio::test]
async fn a_watch_of_tables_has_headers_once() {
    let cluster = Cluster::new();
    let mut events = cluster.watch_as(&format!("{PODS}?watch=true"), TABLE).await;
    cluster.create_pod(pod("a")).await;
    cluster.create_pod(pod("b")).await;
    let (first, second) = (events.next().await.unwrap(), events.next().await.unwrap());
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["rows"][0]["object"]["metadata"]["name"], "a");
    assert!(!first["object"]["columnDefinitions"].as_array().unwrap().is_empty());
    assert!(second["object"]["columnDefinitions"].is_null());
}

#[tokio::test]
async fn a_watch_of_metadata_has_nothing_else() {
    let cluster = Cluster::new();
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut events = cluster.watch_as(&format!("{PODS}?watch=true"), accept).await;
    let created = cluster.create_pod(pod("a")).await;
    let event = events.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(event["object"]["metadata"], created["metadata"]);
    assert!(event["object"].get("spec").is_none());
}

#[tokio::test]
async fn many_events_arrive_complete_and_in_order() {
    let cluster = Cluster::new();
    let mut events = cluster.watch(&format!("{PODS}?watch=true")).await;
    for i in 0..1000 {
        cluster.create_pod(pod(&format!("p{i}"))).await;
    }
    let mut last = 0;
    for i in 0..1000 {
        let event = events.next().await.unwrap();
        assert_eq!(event["object"]["metadata"]["name"], format!("p{i}").as_str());
        let revision: u64 = version(&event["object"]).parse().unwrap();
        assert!(revision > last);
        last = revision;
    }
    assert!(events.is_quiet().await);
}

#[tokio::test]
async fn one_object_is_watched_by_its_path_or_by_its_name() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.create_pod(pod(name)).await;
    }
    for path in [
        "/api/v1/watch/namespaces/default/pods/b",
        "/api/v1/namespaces/default/pods?watch=true&fieldSelector=metadata.name%3Db",
    ] {
        let mut events = cluster.watch(path).await;
        assert_eq!(events.next_brief().await, brief("ADDED", "b"));
        for name in ["a", "b"] {
            let patch = json!({"metadata": {"labels": {"seen": path.len().to_string()}}});
            cluster.patch(&format!("{PODS}/{name}"), "merge", patch).await.expect(200);
        }
        assert_eq!(events.next_brief().await, brief("MODIFIED", "b"));
        assert!(events.is_quiet().await);
    }
    let mut all = cluster.watch("/api/v1/watch/pods").await;
    assert_eq!(all.next_brief().await, brief("ADDED", "a"));
    cluster.get("/api/v1/watch/namespaces/default/pods/b/status").await.refusal(405, "MethodNotAllowed");
}
