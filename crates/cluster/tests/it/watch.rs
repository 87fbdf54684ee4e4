//! Watches.

use crate::harness::{Cluster, PODS, pod, version};
use serde_json::{Value, json};

fn brief(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_from_a_version_sees_all_that_comes_after_it() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("before")).await;
    let list = cluster.get(PODS).await.expect(200);
    let missed = cluster.create_pod(pod("missed")).await;
    let mut events = cluster
        .watch(&format!("{PODS}?watch=true&resourceVersion={}", version(&list)))
        .await;
    let event = events.next().await.unwrap();
    assert_eq!(event, json!({"type": "ADDED", "object": missed}));
    let path = format!("{PODS}/missed");
    let changed = cluster
        .patch(&path, "merge", json!({"metadata": {"labels": {"x": "1"}}}))
        .await
        .expect(200);
    assert_eq!(
        events.next().await.unwrap(),
        json!({"type": "MODIFIED", "object": changed})
    );
    let deleted = cluster.delete(&path, Value::Null).await.expect(200);
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
