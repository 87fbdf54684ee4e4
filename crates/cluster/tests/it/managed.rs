//! Managed fields of writes that are not applies.

use crate::harness::{Cluster, PODS, managed, managers, pod};
use serde_json::{Value, json};

fn as_manager(path: &str, manager: &str) -> String {
    format!("{path}?fieldManager={manager}")
}

#[tokio::test]
async fn a_creator_manages_what_it_sent_and_its_defaults_but_not_what_the_cluster_decides() {
    let cluster = Cluster::new();
    let created = cluster.post(&as_manager(PODS, "maker"), pod("p")).await.expect(201);
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("maker"), &json!("Update")));
    let fields = managed(&created, "maker").unwrap();
    assert_eq!(fields["f:metadata"], json!({"f:labels": {".": {}, "f:app": {}}}), "no name, no uid");
    let container = &fields["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    assert_eq!(fields["f:spec"]["f:containers"].get("."), None, "every pod has containers");
    assert_eq!(container["."], json!({}));
    assert!(container.get("f:image").is_some() && container.get("f:imagePullPolicy").is_some());
    assert!(fields["f:spec"].get("f:restartPolicy").is_some(), "a default");
    for admitted in ["f:priority", "f:tolerations"] {
        assert_eq!(fields["f:spec"].get(admitted), None, "set by admission");
    }
    assert_eq!(fields.get("f:status"), None);
}

#[tokio::test]
async fn a_writer_without_a_name_is_known_by_its_program() {
    let cluster = Cluster::new();
    for (agent, expected) in [("kubectl/v1.37.1 (linux/amd64)", "kubectl"), ("curl", "curl"), ("", "unknown")]
    {
        let request = http::Request::builder().method("POST").uri(format!("{PODS}?dryRun=All"));
        let request = request.header("user-agent", agent).body(pod("p").to_string().into()).unwrap();
        assert_eq!(managers(&cluster.send(request).await.expect(201)), [expected]);
    }
}

#[tokio::test]
async fn whoever_changes_a_field_manages_it_alone() {
    let cluster = Cluster::new();
    cluster.post(&as_manager(PODS, "maker"), pod("p")).await.expect(201);
    let path = format!("{PODS}/p");
    for kind in ["merge", "strategic-merge"] {
        let patch = json!({"metadata": {"labels": {"app": kind, "new": kind}}});
        let patched = cluster.patch(&as_manager(&path, kind), kind, patch).await.expect(200);
        let labels = json!({"f:labels": {"f:app": {}, "f:new": {}}});
        assert_eq!(managed(&patched, kind).unwrap(), &json!({"f:metadata": labels}));
        assert_eq!(managed(&patched, "maker").unwrap()["f:metadata"], json!({"f:labels": {}}));
    }
    let mut object = cluster.get(&path).await.expect(200);
    object["metadata"]["labels"] = json!({"app": "put"});
    let put = cluster.put(&as_manager(&path, "putter"), object).await.expect(200);
    assert_eq!(managed(&put, "putter").unwrap(), &json!({"f:metadata": {"f:labels": {"f:app": {}}}}));
    assert_eq!(managers(&put), ["maker", "putter"], "whoever manages nothing any longer is not named");
}

#[tokio::test]
async fn a_write_that_changes_nothing_manages_nothing() {
    let cluster = Cluster::new();
    let created = cluster.post(&as_manager(PODS, "maker"), pod("p")).await.expect(201);
    let patch = json!({"metadata": {"labels": {"app": "p"}}});
    let same = cluster.patch(&as_manager(&format!("{PODS}/p"), "other"), "merge", patch).await.expect(200);
    assert_eq!(same, created);
}

#[tokio::test]
async fn a_binding_changes_no_managers_and_a_status_is_managed_as_a_subresource() {
    let cluster = Cluster::new();
    cluster.post(&as_manager(PODS, "maker"), pod("p")).await.expect(201);
    cluster.bind("p", "n").await.expect(201);
    let bound = cluster.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(managers(&bound), ["maker"]);
    let patch = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let status = as_manager(&format!("{PODS}/p/status"), "kubelet");
    let running = cluster.patch(&status, "strategic-merge", patch).await.expect(200);
    let entries = running["metadata"]["managedFields"].as_array().unwrap();
    let kubelet = entries.iter().find(|e| e["manager"] == "kubelet").unwrap();
    assert_eq!(kubelet["subresource"], "status");
    let conditions = &kubelet["fieldsV1"]["f:status"]["f:conditions"];
    assert!(conditions.get("k:{\"type\":\"Ready\"}").is_some(), "{conditions}");
    assert_eq!(conditions.get("k:{\"type\":\"PodScheduled\"}"), None, "the binding set it");
}

#[tokio::test]
async fn clients_can_rewrite_managed_fields_and_cannot_break_them() {
    let cluster = Cluster::new();
    cluster.post(&as_manager(PODS, "before"), pod("p")).await.expect(201);
    let path = format!("{PODS}/p");
    let rename = json!([
        {"op": "test", "path": "/metadata/managedFields/0/manager", "value": "before"},
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "after"},
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
    ]);
    let renamed = cluster.patch(&path, "json", rename).await.expect(200);
    assert_eq!(managers(&renamed), ["after"]);
    assert_eq!(renamed["metadata"]["managedFields"][0]["operation"], "Apply");
    for nonsense in
        [json!("x"), json!([1]), json!([{"manager": "m"}]), json!([{"operation": "Fly"}]), json!(null)]
    {
        let patch = json!({"metadata": {"managedFields": nonsense}});
        let answer = cluster.patch(&path, "merge", patch).await;
        if answer.code == 200 {
            assert_eq!(managers(&answer.body), ["after"], "{nonsense}");
        }
    }
    let reset = cluster.patch(&path, "merge", json!({"metadata": {"managedFields": []}})).await.expect(200);
    assert!(managers(&reset).is_empty());
}

#[tokio::test]
async fn the_oldest_of_many_updaters_become_one() {
    let cluster = Cluster::new();
    cluster.post(&as_manager(PODS, "maker"), pod("p")).await.expect(201);
    let path = format!("{PODS}/p");
    let mut last = Value::Null;
    for i in 0..20 {
        let patch = json!({"metadata": {"labels": {format!("l{i}"): "x"}}});
        last = cluster.patch(&as_manager(&path, &format!("m{i:02}")), "merge", patch).await.expect(200);
    }
    let all = managers(&last);
    assert_eq!(all.len(), 10, "{all:?}");
    assert!(all.contains(&"ancient-changes") && all.contains(&"m19"), "{all:?}");
}

#[tokio::test]
async fn managed_fields_come_with_tables_and_metadata_too() {
    let cluster = Cluster::new();
    cluster.post(&as_manager(PODS, "maker"), pod("p")).await.expect(201);
    let table = cluster.get_as(PODS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.expect(200);
    assert_eq!(managers(&table["rows"][0]["object"]), ["maker"]);
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    assert_eq!(managers(&cluster.get_as(PODS, partial).await.expect(200)["items"][0]), ["maker"]);
    assert_eq!(managers(&cluster.get(PODS).await.expect(200)["items"][0]), ["maker"]);
}
