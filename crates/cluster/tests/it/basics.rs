//! Create, read, replace, list, bind.

use crate::harness::{Cluster, PODS, names, pod, pod_with, version};
use serde_json::json;

#[tokio::test]
async fn a_new_pod_gets_what_the_server_decides() {
    let cluster = Cluster::new();
    let created = cluster
        .create_pod(pod_with("p", |p| {
            p["metadata"]["uid"] = json!("mine");
            p["status"] = json!({"phase": "Running"});
        }))
        .await;
    let metadata = &created["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_eq!(metadata["generation"], 1);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert!(version(&created).parse::<u64>().unwrap() > 0);
    assert_eq!(created["status"]["phase"], "Pending");
    assert_eq!(cluster.get(&format!("{PODS}/p")).await.expect(200), created);
}

#[tokio::test]
async fn creating_twice_is_a_conflict() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let message = cluster.post(PODS, pod("p")).await.refusal(409, "AlreadyExists");
    assert_eq!(message, "pods \"p\" already exists");
}

#[tokio::test]
async fn names_are_generated_on_request() {
    let cluster = Cluster::new();
    let nameless = pod_with("x", |p| p["metadata"] = json!({"generateName": "job-"}));
    let first = cluster.create_pod(nameless.clone()).await;
    let second = cluster.create_pod(nameless).await;
    let (first, second) =
        (first["metadata"]["name"].as_str().unwrap(), second["metadata"]["name"].as_str().unwrap());
    assert_ne!(first, second);
    assert!(first.starts_with("job-") && first.len() == "job-".len() + 5);
    let none = pod_with("x", |p| p["metadata"] = json!({}));
    cluster.post(PODS, none).await.refusal(422, "Invalid");
}

#[tokio::test]
async fn objects_need_a_namespace_that_exists_and_is_that_of_the_path() {
    let cluster = Cluster::new();
    let message = cluster.post("/api/v1/namespaces/nope/pods", pod("p")).await.refusal(404, "NotFound");
    assert_eq!(message, "namespaces \"nope\" not found");
    let elsewhere = pod_with("p", |p| p["metadata"]["namespace"] = json!("kube-system"));
    cluster.post(PODS, elsewhere).await.refusal(400, "BadRequest");
    cluster.post("/api/v1/pods", pod("p")).await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn a_write_from_a_stale_read_is_a_conflict() {
    let cluster = Cluster::new();
    let mut stale = cluster.create_pod(pod("p")).await;
    let path = format!("{PODS}/p");
    cluster.patch(&path, "merge", json!({"metadata": {"labels": {"x": "1"}}})).await.expect(200);
    stale["metadata"]["labels"]["x"] = json!("2");
    let message = cluster.put(&path, stale.clone()).await.refusal(409, "Conflict");
    assert_eq!(
        message,
        "Operation cannot be fulfilled on pods \"p\": the object has been modified; please apply your changes \
         to the latest version and try again"
    );
    // Without a version the write is unconditional.
    stale["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(cluster.put(&path, stale).await.expect(200)["metadata"]["labels"]["x"], "2");
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_write() {
    let cluster = Cluster::new();
    let created = cluster.create_pod(pod("p")).await;
    let path = format!("{PODS}/p");
    let before = cluster.server.store().revision();
    for answer in [
        cluster.put(&path, created.clone()).await,
        cluster.patch(&path, "merge", json!({"metadata": {"labels": {"app": "p"}}})).await,
        cluster.patch(&path, "strategic-merge", json!({})).await,
        cluster.patch(&path, "json", json!([])).await,
        cluster.put(&format!("{path}/status"), created.clone()).await,
    ] {
        assert_eq!(answer.expect(200), created);
    }
    assert_eq!(cluster.server.store().revision(), before);
}

#[tokio::test]
async fn another_uid_is_another_object() {
    let cluster = Cluster::new();
    let mut object = cluster.create_pod(pod("p")).await;
    object["metadata"]["uid"] = json!("other");
    cluster.put(&format!("{PODS}/p"), object).await.refusal(409, "Conflict");
}

#[tokio::test]
async fn the_main_endpoint_keeps_the_status_and_the_status_endpoint_the_spec() {
    let cluster = Cluster::new();
    let mut object = cluster.create_pod(pod("p")).await;
    object["status"]["phase"] = json!("Running");
    object["metadata"]["labels"]["x"] = json!("1");
    let path = format!("{PODS}/p");
    let main = cluster.put(&path, object.clone()).await.expect(200);
    assert_eq!(
        (&main["status"]["phase"], &main["metadata"]["labels"]["x"]),
        (&json!("Pending"), &json!("1"))
    );
    object["metadata"]["resourceVersion"] = main["metadata"]["resourceVersion"].clone();
    object["metadata"]["labels"]["x"] = json!("2");
    object["spec"]["containers"][0]["image"] = json!("other");
    let status = cluster.put(&format!("{path}/status"), object).await.expect(200);
    assert_eq!(status["status"]["phase"], "Running");
    // Labels and annotations of pods and nodes are written either way.
    assert_eq!(status["metadata"]["labels"]["x"], "2");
    assert_eq!(status["spec"], main["spec"]);
    assert_eq!(status["metadata"]["generation"], 1);
}

#[tokio::test]
async fn generations_count_changes_of_the_spec() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let path = format!("{PODS}/p");
    let labelled =
        cluster.patch(&path, "merge", json!({"metadata": {"labels": {"x": "1"}}})).await.expect(200);
    assert_eq!(labelled["metadata"]["generation"], 1);
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "j"}]);
    let changed = cluster.patch(&path, "json", image).await.expect(200);
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[tokio::test]
async fn lists_are_sorted_and_carry_a_version() {
    let cluster = Cluster::new();
    for name in ["b", "c", "a"] {
        cluster.create_pod(pod(name)).await;
    }
    cluster.post("/api/v1/namespaces/kube-system/pods", pod("0")).await.expect(201);
    let list = cluster.get(PODS).await.expect(200);
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PodList"), &json!("v1")));
    assert_eq!(version(&list), cluster.server.store().revision().to_string());
    assert_eq!(names(&cluster.get("/api/v1/pods").await.expect(200)), ["a", "b", "c", "0"]);
    let empty = cluster.get("/apis/scheduling.k8s.io/v1beta1/podgroups").await.expect(200);
    assert_eq!(empty["kind"], "PodGroupList");
    assert_eq!(names(&empty), [""; 0]);
}

#[tokio::test]
async fn chunks_of_a_list_are_all_of_the_same_moment() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c", "d", "e"] {
        cluster.create_pod(pod(name)).await;
    }
    let first = cluster.get(&format!("{PODS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    // What happens now belongs to the future of this list.
    cluster.delete(&format!("{PODS}/d"), json!(null)).await.expect(200);
    cluster.create_pod(pod("cc")).await;
    cluster
        .patch(&format!("{PODS}/e"), "merge", json!({"metadata": {"labels": {"x": "1"}}}))
        .await
        .expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = cluster.get(&format!("{PODS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version(&second), version(&first));
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = cluster.get(&format!("{PODS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&third), ["e"]);
    assert!(third["items"][0]["metadata"]["labels"].get("x").is_none());
    assert!(third["metadata"].get("continue").is_none());
    let exact = format!("{PODS}?resourceVersion={}&resourceVersionMatch=Exact", version(&first));
    assert_eq!(names(&cluster.get(&exact).await.expect(200)), ["a", "b", "c", "d", "e"]);
    cluster.get(&format!("{PODS}?continue=nonsense")).await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn selectors_select() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.create_pod(pod(name)).await;
    }
    for (query, expected) in [
        ("labelSelector=app%3Da", vec!["a"]),
        ("labelSelector=app%20in%20(a,c)", vec!["a", "c"]),
        ("labelSelector=!app", vec![]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name!%3Db&limit=1", vec!["a"]),
        ("fieldSelector=metadata.namespace%3Ddefault&labelSelector=app%21%3Da", vec!["b", "c"]),
    ] {
        let list = cluster.get(&format!("{PODS}?{query}")).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
    }
    let message = cluster.get(&format!("{PODS}?fieldSelector=spec.x%3D1")).await.refusal(400, "BadRequest");
    assert_eq!(message, "field label not supported: spec.x");
    cluster.get(&format!("{PODS}?labelSelector=a%20b")).await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn binding_assigns_a_pod() {
    let cluster = Cluster::new();
    cluster.create_pod(pod("p")).await;
    let status = cluster.bind("p", "n1").await.expect(201);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    let bound = cluster.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(bound["status"]["conditions"][0]["status"], "True");
}

#[tokio::test]
async fn clients_discover_what_is_served() {
    let cluster = Cluster::new();
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = cluster.get_as("/apis", &format!("{v2},application/json")).await;
    assert_eq!(answer.headers["content-type"], v2);
    assert_eq!(answer.expect(200)["kind"], "APIGroupDiscoveryList");
    assert_eq!(cluster.get("/apis").await.expect(200)["kind"], "APIGroupList");
    assert_eq!(cluster.get("/api").await.expect(200)["versions"], json!(["v1"]));
    assert_eq!(cluster.get("/api/v1").await.expect(200)["kind"], "APIResourceList");
    assert_eq!(cluster.get("/apis/scheduling.k8s.io").await.expect(200)["kind"], "APIGroup");
    let beta = cluster.get("/apis/scheduling.k8s.io/v1beta1").await.expect(200);
    assert_eq!(beta["groupVersion"], "scheduling.k8s.io/v1beta1");
    assert_eq!(cluster.get("/version").await.expect(200)["gitVersion"], "v1.37.0+tutti");
    for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose"] {
        assert_eq!(cluster.get(path).await.code, 200);
    }
    assert!(cluster.get("/openapi/v3").await.expect(200)["paths"].is_object());
    for path in ["/apis/nope", "/api/v2", "/openapi/v3/nope", "/api/v1/nothings", "/nope"] {
        cluster.get(path).await.refusal(404, "NotFound");
    }
}
