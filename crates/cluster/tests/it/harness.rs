//! A server and the shortest way to talk to it.

use axum::Router;
use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt as _;
use tutti_cluster::server::{ApiServer, Janitor, Options, router};

/// Longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Cluster {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) router: Router,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    /// The body, after a look at the code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.body
    }

    /// The message of a refusal.
    #[track_caller]
    pub(crate) fn refusal(self, code: u16, reason: &str) -> String {
        assert_eq!(self.code, code, "{}", self.text);
        assert_eq!(self.body["kind"], "Status");
        assert_eq!(self.body["status"], "Failure");
        assert_eq!(self.body["reason"], reason, "{}", self.text);
        assert_eq!(self.body["code"], code);
        self.body["message"].as_str().unwrap().to_owned()
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let server = ApiServer::new(options);
        Self { router: router(Arc::clone(&server)), server }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { code, headers, text, body }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, media_type: &str, body: String) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "", String::new()).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::builder().uri(path).header("accept", accept);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, "application/json", body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, "application/json", body.to_string()).await
    }

    /// `kind` is `json`, `merge` or `strategic-merge`.
    pub(crate) async fn patch(&self, path: &str, kind: &str, body: Value) -> Answer {
        self.call("PATCH", path, &format!("application/{kind}-patch+json"), body.to_string()).await
    }

    /// Server-side apply by a manager; `force` or another option may follow its name: `a&force=true`.
    pub(crate) async fn apply(&self, path: &str, manager: &str, body: Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}");
        self.call("PATCH", &path, "application/apply-patch+yaml", body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> Answer {
        let body = if options.is_null() { String::new() } else { options.to_string() };
        self.call("DELETE", path, "application/json", body).await
    }

    pub(crate) async fn create_pod(&self, pod: Value) -> Value {
        self.post(PODS, pod).await.expect(201)
    }

    pub(crate) async fn bind(&self, name: &str, node: &str) -> Answer {
        self.post(&format!("{PODS}/{name}/binding"), binding(name, node)).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Events { stream: response.into_body().into_data_stream(), buffer: Vec::new() }
    }

    /// Lets the janitor do all that it has to do now.
    pub(crate) fn tidy(&self, janitor: &mut Janitor) {
        for _ in 0..100 {
            if !janitor.step(&self.server) {
                return;
            }
        }
        panic!("the janitor does not come to rest");
    }
}

/// Lines of a watch.
pub(crate) struct Events {
    stream: BodyDataStream,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event; `None` when the server ended the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let piece = tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("no event came");
            self.buffer.extend_from_slice(&piece?.unwrap());
        }
    }

    /// Type and name of the next event.
    pub(crate) async fn next_brief(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch ended");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    /// True if nothing comes for a short while.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        self.buffer.is_empty()
            && tokio::time::timeout(Duration::from_millis(50), self.stream.next()).await.is_err()
    }
}

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

pub(crate) fn pod_with(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut pod = pod(name);
    change(&mut pod);
    pod
}

pub(crate) fn binding(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name}, "target": {"kind": "Node", "name": node},
    })
}

/// What a manager manages of an object: the `fieldsV1` of its entry.
pub(crate) fn managed<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| entry["manager"] == manager).map(|entry| &entry["fieldsV1"])
}

/// The names of all managers of an object, sorted.
pub(crate) fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut all: Vec<&str> = entries.into_iter().flatten().filter_map(|e| e["manager"].as_str()).collect();
    all.sort_unstable();
    all
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect()
}

pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}
