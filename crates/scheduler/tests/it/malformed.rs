//! Objects that no strict server would store. The embedded one is strict, so they are slipped into its answers.

use crate::harness::{World, metric};
use axum::body::Body;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tower::BoxError;
use tutti_scheduler::Config;

/// Pods and pod groups that cannot be understood, as of this version.
fn intruders(path: &str, version: &str) -> Vec<Value> {
    let meta =
        |name: &str| json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": version});
    if path.ends_with("/pods") {
        let quantity = json!({"requests": {"cpu": "lots"}});
        vec![
            json!({"metadata": meta("bad-quantity"),
                   "spec": {"schedulerName": "tutti", "containers": [{"name": "c", "resources": quantity}]}}),
            json!({"metadata": meta("bad-shape"), "spec": {"schedulerName": "tutti", "containers": 5}}),
        ]
    } else if path.ends_with("/podgroups") {
        vec![
            json!({"metadata": meta("bad-group"), "spec": {"schedulingPolicy": {"gang": {"minCount": "many"}}}}),
        ]
    } else {
        vec![]
    }
}

/// What is not even an object, or has no name. Only lists have such: a watch without versions would end.
fn strangers(path: &str) -> Vec<Value> {
    if path.ends_with("/pods") {
        vec![json!({"metadata": {"name": ["no", "name"]}}), json!("no object")]
    } else {
        vec![]
    }
}

/// Where intruders are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Lists,
    Watches,
}

/// A client whose lists or watches hold objects that nobody can understand.
fn corrupting_client(inner: Client, place: Place) -> Client {
    let garbled = Arc::new(AtomicBool::new(false));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (inner, garbled) = (inner.clone(), Arc::clone(&garbled));
        async move {
            let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default());
            let here = if query.contains("watch=true") { Place::Watches } else { Place::Lists };
            let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
            let intruders = intruders(&path, version.unwrap_or("1"));
            let response = inner.send(request).await?;
            if intruders.is_empty() || here != place {
                return Ok(response.map(Body::new));
            }
            match place {
                Place::Lists => listed([strangers(&path), intruders].concat(), response).await,
                // Every watch begins with them, and the first one with something that is no event.
                Place::Watches => watched(&intruders, !garbled.swap(true, Ordering::Relaxed), response),
            }
        }
    });
    Client::new(service, "default")
}

async fn listed(
    intruders: Vec<Value>,
    response: Response<kube::client::Body>,
) -> Result<Response<Body>, BoxError> {
    let (mut head, body) = response.into_parts();
    let mut list: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
    if let Some(items) = list["items"].as_array_mut() {
        items.splice(0..0, intruders);
    }
    head.headers.remove("content-length");
    Ok(Response::from_parts(head, Body::from(serde_json::to_vec(&list)?)))
}

fn watched(
    intruders: &[Value],
    garbled: bool,
    response: Response<kube::client::Body>,
) -> Result<Response<Body>, BoxError> {
    let mut first = String::new();
    if garbled {
        first.push_str("{\"type\": \"ADDED\", \"object\"\n{\"type\": \"SURPRISING\", \"object\": {}}\n");
    }
    for object in intruders {
        first.push_str(&format!("{}\n", json!({"type": "ADDED", "object": object})));
    }
    let first = futures::stream::once(async move { Ok(first.into()) });
    Ok(response.map(|body| Body::from_stream(first.chain(Body::new(body).into_data_stream()))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_objects_in_lists_stop_nobody_else() {
    malformed_objects_stop_nobody_else(Place::Lists).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_objects_and_events_in_watches_stop_nobody_else() {
    malformed_objects_stop_nobody_else(Place::Watches).await;
}

async fn malformed_objects_stop_nobody_else(place: Place) {
    let mut world = World::empty().await;
    let client = corrupting_client(world.client.clone(), place);
    let process = world.start_process(client, Config::default());
    let message = world.wait_event("bad-quantity", "NotUnderstood").await;
    assert!(message.starts_with("spec.containers[0].resources.requests.cpu: \"lots\""), "{message}");
    let message = world.wait_event("bad-shape", "NotUnderstood").await;
    assert_eq!(message, "spec.containers: want a list, found 5");
    let message = world.wait_event("bad-group", "NotUnderstood").await;
    assert!(message.starts_with("spec.schedulingPolicy.gang.minCount: want a whole number"), "{message}");
    for (kind, least) in [("kind=\"pod\"", 2.0), ("kind=\"pod group\"", 1.0)] {
        let found = metric(&process, "tutti_bad_objects_total", kind).await;
        assert!(found >= least, "{kind}: {found}");
    }
    world.node("n1", "8").await;
    world.gang("g", 2).await;
    world.members("g", 0..2, "1").await;
    world.wait_running(2).await;
    world.end().await;
}
