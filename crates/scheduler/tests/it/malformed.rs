//! Objects that no strict server would store. The embedded one is strict, so they are slipped into its answers.

use crate::harness::World;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

/// What is added to the lists of pods and pod groups.
fn intruders(path: &str) -> Vec<Value> {
    let meta =
        |name: &str| json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"});
    if path.ends_with("/pods") {
        let quantity = json!({"requests": {"cpu": "lots"}});
        vec![
            json!({"metadata": meta("bad-quantity"),
                   "spec": {"schedulerName": "tutti", "containers": [{"name": "c", "resources": quantity}]}}),
            json!({"metadata": meta("bad-shape"), "spec": {"schedulerName": "tutti", "containers": 5}}),
            json!({"metadata": {"name": ["no", "name"]}}),
            json!("no object"),
        ]
    } else if path.ends_with("/podgroups") {
        vec![
            json!({"metadata": meta("bad-group"), "spec": {"schedulingPolicy": {"gang": {"minCount": "many"}}}}),
        ]
    } else {
        vec![]
    }
}

/// A client whose lists hold objects that nobody can understand.
fn corrupting_client(inner: Client) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let intruders = if is_watch { vec![] } else { intruders(request.uri().path()) };
            let response = inner.send(request).await?;
            corrupt(intruders, response).await
        }
    });
    Client::new(service, "default")
}

async fn corrupt(intruders: Vec<Value>, response: Response<Body>) -> Result<Response<Body>, BoxError> {
    if intruders.is_empty() {
        return Ok(response);
    }
    let (mut head, body) = response.into_parts();
    let mut list: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
    if let Some(items) = list["items"].as_array_mut() {
        items.splice(0..0, intruders);
    }
    head.headers.remove("content-length");
    Ok(Response::from_parts(head, Body::from(serde_json::to_vec(&list)?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_objects_stop_nobody_else() {
    let mut world = World::empty().await;
    world.node("n1", "8").await;
    world.gang("g", 2).await;
    world.members("g", 0..2, "1").await;
    world.start_scheduler(corrupting_client(world.client.clone()));
    world.wait_running(2).await;
    let message = world.wait_event("bad-quantity", "NotUnderstood").await;
    assert!(message.starts_with("spec.containers[0].resources.requests.cpu: \"lots\""), "{message}");
    let message = world.wait_event("bad-shape", "NotUnderstood").await;
    assert_eq!(message, "spec.containers: want a list, found 5");
    let message = world.wait_event("bad-group", "NotUnderstood").await;
    assert!(message.starts_with("spec.schedulingPolicy.gang.minCount: want a whole number"), "{message}");
    world.end().await;
}
