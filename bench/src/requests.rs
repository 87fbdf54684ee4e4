//! Requests as a client of Kubernetes sends them, without any decoding of answers: the server is measured.

use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Requests that are on their way at the same time.
const IN_FLIGHT: usize = 64;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// A client.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

impl Requests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The answer to a request for something.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<String> {
        Ok(self.client.request_text(Request::get(path).body(Vec::new())?).await?)
    }

    /// The length of an answer, which is not kept.
    pub(crate) async fn count_bytes(&self, path: &str) -> anyhow::Result<usize> {
        let response = self.client.send(Request::get(path).body(Body::empty())?).await?;
        ensure!(response.status().is_success(), "{path}: {}", response.status());
        let mut body = response.into_body();
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame?.data_ref() {
                bytes += data.len();
            }
        }
        Ok(bytes)
    }

    /// The lines of an answer that does not end.
    pub(crate) async fn lines(
        &self,
        path: &str,
    ) -> anyhow::Result<impl futures::Stream<Item = std::io::Result<String>> + Unpin + use<>> {
        let reader = self.client.request_stream(Request::get(path).body(Vec::new())?).await?;
        Ok(Box::pin(futures::AsyncBufReadExt::lines(Box::pin(reader))))
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        self.write(Request::post(path).header("content-type", "application/json"), path, body).await
    }

    /// A merge patch.
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        self.write(Request::patch(path).header("content-type", "application/merge-patch+json"), path, body)
            .await
    }

    async fn write(&self, request: http::request::Builder, path: &str, body: &Value) -> anyhow::Result<()> {
        let response = self.client.send(request.body(Body::from(body.to_string().into_bytes()))?).await?;
        let status = response.status();
        let answer = response.into_body().collect().await.context("the answer broke off")?.to_bytes();
        ensure!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&answer));
        Ok(())
    }

    /// Creates pods `PREFIX-0`, `PREFIX-1`, …; tells how long that took.
    pub(crate) async fn create_pods(&self, prefix: &str, count: usize) -> anyhow::Result<Duration> {
        self.all(count, |index| (PODS.to_owned(), pod(&format!("{prefix}-{index}")))).await
    }

    /// Binds these pods to a node.
    pub(crate) async fn bind_pods(&self, prefix: &str, count: usize) -> anyhow::Result<Duration> {
        self.all(count, |index| {
            let name = format!("{prefix}-{index}");
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
            });
            (format!("{PODS}/{name}/binding"), binding)
        })
        .await
    }

    /// Posts so many, a few at a time; tells how long that took.
    pub(crate) async fn all(
        &self,
        count: usize,
        request: impl Fn(usize) -> (String, Value),
    ) -> anyhow::Result<Duration> {
        let started = Instant::now();
        futures::stream::iter(0..count)
            .map(|index| {
                let (path, body) = request(index);
                async move { self.post(&path, &body).await }
            })
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await?;
        Ok(started.elapsed())
    }
}

/// A pod as a job makes them: labels, resources, a toleration and a group.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench", "batch.kubernetes.io/job-name": "bench"}},
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "nobody",
            "containers": [{
                "name": "worker", "image": "registry.example/worker:1", "command": ["work"],
                "env": [{"name": "RANK", "value": "0"}],
                "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}},
            }],
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    })
}
