//! Kinds that scheduling can do without, through the API: services and controllers spread pods, priority classes are
//! looked up, and what may not be read stops nobody.

use crate::harness::{World, eventually};
use crate::shape::Shape;
use http::{Request, Response, StatusCode};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tower::BoxError;

async fn create(world: &World, group: &str, version: &str, object: &Value) {
    let kind = object["kind"].as_str().expect("objects say what they are").to_owned();
    let object = serde_json::from_value(object.clone()).expect("it is an object");
    let objects = world.objects(group, version, &kind);
    objects.create(&PostParams::default(), &object).await.expect("the object is taken");
}

/// Node `a` has more room, but two pods of the app `web`.
async fn two_workers_on_a(world: &World) {
    world.node("a", "8").await;
    world.node("b", "8").await;
    for (name, app, cpus, node) in
        [("old-0", "web", "1", "a"), ("old-1", "web", "1", "a"), ("other", "db", "4", "b")]
    {
        world.labelled_pod(name, &json!({"app": app}), &json!({"nodeName": node}), cpus).await;
    }
    world.wait_running(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_a_service_are_spread_over_nodes_by_default() {
    let world = World::start().await;
    two_workers_on_a(&world).await;
    world.labelled_pod("alone", &json!({"app": "web"}), &json!({}), "1").await;
    world.wait_running(4).await;
    assert_eq!(world.node_of("alone").await.as_deref(), Some("a"), "nobody says that it is like the others");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                         "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    create(&world, "", "v1", &service).await;
    // Watches are not ordered among each other, so the first pods may come before the service is known.
    let mut placed = Vec::new();
    eventually("a pod is spread", || {
        let name = format!("served-{}", placed.len());
        placed.push(name.clone());
        let world = &world;
        async move {
            world.labelled_pod(&name, &json!({"app": "web"}), &json!({}), "100m").await;
            eventually("it has a node", || async { world.node_of(&name).await }).await;
            (world.node_of(&name).await.as_deref() == Some("b")).then_some(())
        }
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_our_own_has_the_priority_of_its_class_once_there_is_one() {
    let mut world = World::of_shape(Shape::Custom).await;
    world.start_scheduler(world.client.clone());
    world.gang_with("g", 1, &json!({}), &json!({"priorityClassName": "high"})).await;
    let message = world.wait_event("g", "NotUnderstood").await;
    assert_eq!(
        message,
        "spec.priorityClassName: there is no priority class \"high\"; the group waits for it"
    );
    let class = json!({"metadata": {"name": "high"}, "value": 700});
    let class: PriorityClass = serde_json::from_value(class).expect("it is a class");
    let classes = Api::<PriorityClass>::all(world.client.clone());
    classes.create(&PostParams::default(), &class).await.expect("the class is taken");
    world.node("n", "2").await;
    let (labels, _) = world.shape.membership("g");
    world.labelled_pod("g-0", &labels, &json!({"priorityClassName": "high"}), "1").await;
    world.wait_running(1).await;
    world.end().await;
}

/// A client that is refused some lists, and is asked once to leave the server alone.
fn refused_client(inner: Client, calls: Arc<Mutex<Vec<Instant>>>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, calls) = (inner.clone(), Arc::clone(&calls));
        async move {
            let path = request.uri().path().to_owned();
            if ["/services", "/replicasets", "/poddisruptionbudgets"].iter().any(|kind| path.ends_with(kind))
            {
                return refusal(StatusCode::FORBIDDEN, &json!({"message": format!("{path} is forbidden")}));
            }
            if path.ends_with("/v1/nodes") {
                let earlier = {
                    let mut calls = calls.lock().expect("nobody panics with it");
                    calls.push(Instant::now());
                    calls.len() - 1
                };
                if earlier == 0 {
                    let details = json!({"details": {"retryAfterSeconds": RETRY_AFTER.as_secs()}});
                    return refusal(StatusCode::TOO_MANY_REQUESTS, &details);
                }
            }
            Ok(inner.send(request).await?)
        }
    });
    Client::new(service, "default")
}

/// Longer than the scheduler would wait by itself.
const RETRY_AFTER: Duration = Duration::from_secs(3);

fn refusal(code: StatusCode, fields: &Value) -> Result<Response<Body>, BoxError> {
    let mut status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16()});
    for (field, value) in fields.as_object().into_iter().flatten() {
        status[field] = value.clone();
    }
    Ok(Response::builder().status(code).body(Body::from(serde_json::to_vec(&status)?))?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_read_stops_nobody_and_a_busy_server_is_left_alone() {
    let mut world = World::empty().await;
    world.node("n", "2").await;
    world.gang("g", 2).await;
    world.members("g", 0..2, "1").await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    world.start_scheduler(refused_client(world.client.clone(), Arc::clone(&calls)));
    world.wait_running(2).await;
    let calls = calls.lock().expect("nobody panics with it").clone();
    let [first, second, ..] = calls[..] else { panic!("nodes were listed once: {calls:?}") };
    assert!(second - first >= RETRY_AFTER, "{:?}", second - first);
    world.end().await;
}
