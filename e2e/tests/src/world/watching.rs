//! What happens to pods, one thing after the other.

use super::World;
use crate::wait::PATIENCE;
use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};

/// A watch of pods that goes on when the API server ends it, as it does to readers that are slow.
pub(crate) struct PodWatch {
    pods: Api<Pod>,
    params: WatchParams,
    /// What was seen last.
    version: String,
    stream: Option<BoxStream<'static, kube::Result<WatchEvent<Pod>>>>,
}

impl World<'_> {
    /// The present, for looking back at it later.
    pub(crate) async fn version(&self) -> anyhow::Result<String> {
        let pods = self.pods().list(&ListParams::default().limit(1)).await?;
        pods.metadata.resource_version.context("a list without a version")
    }

    /// All that has happened to pods with a label since then, and all that happens from now on.
    pub(crate) fn watch_pods(&self, label: &str, since: &str) -> PodWatch {
        PodWatch {
            pods: self.pods(),
            params: WatchParams::default().labels(label),
            version: since.to_owned(),
            stream: None,
        }
    }
}

impl PodWatch {
    /// What happened next; an error if nothing does for long.
    pub(crate) async fn next(&mut self) -> anyhow::Result<WatchEvent<Pod>> {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.read()).await;
            match event.with_context(|| format!("nothing has happened for {} s", PATIENCE.as_secs()))?? {
                None => self.stream = None,
                Some(WatchEvent::Error(status)) => bail!("a watch has failed: {status:?}"),
                Some(event) => return Ok(event),
            }
        }
    }

    async fn read(&mut self) -> anyhow::Result<Option<WatchEvent<Pod>>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.pods.watch(&self.params, &self.version).await?.boxed()),
        };
        let event = stream.next().await.transpose()?;
        let version = match &event {
            Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod)) => {
                pod.metadata.resource_version.clone()
            }
            _ => None,
        };
        self.version = version.unwrap_or_else(|| std::mem::take(&mut self.version));
        Ok(event)
    }
}
