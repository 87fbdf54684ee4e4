//! What the scheduler is held against: a process that talks to the API server as it does, and only posts bindings while it
//! watches pods, of which it looks at nothing.

use super::process::Kubeconfig;
use super::world::{Watcher, node_name};
use crate::requests::{PODS, Requests};
use anyhow::{Context as _, ensure};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Child, Command};
use tutti_cluster::cluster::Cluster;
use tutti_k8s::connect::connect;

/// Bindings that are under way: as many as the scheduler may have.
const IN_FLIGHT: usize = 100;

/// Arguments of the process.
#[derive(Debug, Args)]
pub(crate) struct BareArguments {
    /// The cluster.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Pods are called PREFIX-0, PREFIX-1, …
    #[arg(long)]
    prefix: String,
    /// How many there are.
    #[arg(long)]
    count: usize,
    /// How many nodes they are spread over.
    #[arg(long)]
    nodes: u32,
    /// Whether it watches pods, too.
    #[arg(long)]
    watch: bool,
}

/// Posts a binding of every pod.
pub(crate) fn bind(arguments: BareArguments) -> anyhow::Result<()> {
    let BareArguments { kubeconfig, prefix, count, nodes, watch } = arguments;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Requests::new(connect(Some(&kubeconfig)).await?.client);
        let watch = if watch { Some(Watcher::start(&client).await?) } else { None };
        let bindings = futures::stream::iter(0..count).map(|index| {
            let (client, name) = (client.clone(), format!("{prefix}-{index}"));
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node_name(nodes, index)},
            });
            async move { client.post(&format!("{PODS}/{name}/binding"), &binding).await }
        });
        bindings.buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
        ensure!(watch.is_none_or(Watcher::still_works), "the watch ended");
        Ok(())
    })
}

/// The process. Dropped, it is killed.
pub(super) struct Bare {
    child: Child,
    _kubeconfig: Kubeconfig,
}

impl Bare {
    /// Starts to bind; nothing is waited for.
    pub(super) fn start(
        cluster: &Cluster,
        prefix: &str,
        count: usize,
        nodes: u32,
        watch: bool,
    ) -> anyhow::Result<Self> {
        let kubeconfig = Kubeconfig::write(cluster, prefix)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare").arg("--kubeconfig").arg(kubeconfig.path()).args(["--prefix", prefix]);
        command.arg("--count").arg(count.to_string()).arg("--nodes").arg(nodes.to_string());
        if watch {
            command.arg("--watch");
        }
        let child = command.spawn().context("cannot start the bare loop")?;
        Ok(Self { child, _kubeconfig: kubeconfig })
    }

    /// All is bound, so it ends.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the bare loop has failed: {status}");
        Ok(())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
