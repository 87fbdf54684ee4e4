//! `tutti nodes`: simulated nodes in a cluster that somebody else runs.

use crate::console::{Console, Style, count};
use crate::{kubeconfig_path, signals};
use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tutti_cluster::kubeconfig;
use tutti_cluster::kubelet::{self, NodeTemplate};

/// Nodes that are created at the same time.
const CREATES_MAX: usize = 32;

/// Simulate nodes in any cluster, so that pods run there with no machine behind them; or let simulated ones fail.
///
/// Nodes that nobody has ever reported as ready are adopted: create one with `kubectl create`, and it runs pods. Nodes
/// with a kubelet of their own are left alone, and so are their pods. At the end the nodes stay in the cluster, and
/// the cluster will find them not ready.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    simulate: Option<SimulateArgs>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let simulated nodes fall silent, as machines do that lose their power: their pods stay as they are, and the
    /// cluster finds the nodes not ready after a while.
    Fail(NamesArgs),
    /// Let failed nodes come back.
    Restore(NamesArgs),
}

#[derive(Debug, Args)]
struct NamesArgs {
    /// Names of the nodes.
    #[arg(value_name = "NODE", required = true)]
    names: Vec<String>,
    /// Kubeconfig of the cluster. Default: $KUBECONFIG, or else the file that `tutti up` writes.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct SimulateArgs {
    /// Kubeconfig of the cluster.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Nodes to create, 0 to 20000. Those that are there already stay as they are.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=20000))]
    nodes: u32,
    /// GPUs of each of these nodes, 0 to 1024.
    #[arg(long, value_name = "G", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1024))]
    gpus: u32,
    /// Seconds between two signs of life of a node, 1 to 300. The cluster gives up on a node that is silent for its
    /// `--node-monitor-grace-period`.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    heartbeat_seconds: u64,
}

/// Fails or restores nodes, or simulates some until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: NodesArgs) -> anyhow::Result<()> {
    match (args.action, args.simulate) {
        (Some(Action::Fail(args)), _) => mark(args, Some("true"), "failed").await,
        (Some(Action::Restore(args)), _) => mark(args, None, "restored").await,
        (None, Some(args)) => simulate(args).await,
        (None, None) => anyhow::bail!("want --kubeconfig FILE, or fail or restore with names of nodes"),
    }
}

/// Sets or removes the annotation that silences the kubelets of nodes.
async fn mark(args: NamesArgs, value: Option<&str>, done: &str) -> anyhow::Result<()> {
    let path = kubeconfig_path::chosen(args.kubeconfig)?;
    let client = kubeconfig::client_of_file(&path).await.with_context(|| format!("{}", path.display()))?;
    let nodes: Api<Node> = Api::all(client);
    let patch = Patch::Merge(json!({"metadata": {"annotations": {kubelet::FAILED: value}}}));
    for name in &args.names {
        let node = nodes.get(name).await.with_context(|| format!("node {name}"))?;
        let version = node.status.and_then(|status| status.node_info).map(|info| info.kubelet_version);
        ensure!(
            version.as_deref() == Some(kubelet::KUBELET_VERSION),
            "node {name} is not simulated: it has a kubelet of its own"
        );
        nodes.patch(name, &PatchParams::default(), &patch).await.with_context(|| format!("node {name}"))?;
        Console::new().line(&format!("node/{name} {done}"));
    }
    Ok(())
}

async fn simulate(args: SimulateArgs) -> anyhow::Result<()> {
    let client = kubeconfig::client_of_file(&args.kubeconfig)
        .await
        .with_context(|| format!("{}", args.kubeconfig.display()))?;
    let version = client.apiserver_version().await.context("the cluster does not answer")?;
    let created = create_nodes(&client, args.nodes, args.gpus).await?;
    let end = signals::end_asked()?;
    let console = Console::new();
    console.line(&format!(
        "{} simulates nodes in a cluster of version {}",
        console.paint(Style::Strong, "tutti"),
        version.git_version
    ));
    console.line(&format!("  created     {}", count(created, "node")));
    console.line("  adopts      nodes that were never ready");
    console.line(&console.paint(Style::Faint, "Ctrl-C ends it."));
    let options = kubelet::Options {
        lease_interval: Duration::from_secs(args.heartbeat_seconds),
        ..kubelet::Options::default()
    };
    kubelet::run(client, options, end).await;
    Ok(())
}

/// Creates nodes and says how many were not there yet.
async fn create_nodes(client: &Client, count: u32, gpus: u32) -> anyhow::Result<u64> {
    futures::stream::iter(0..count)
        .map(|index| async move {
            let node = NodeTemplate::numbered(index, count, gpus);
            match kubelet::create(client, &node).await {
                Ok(()) => Ok(1),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(0),
                Err(error) => Err(error).with_context(|| format!("cannot create node {}", node.name)),
            }
        })
        .buffer_unordered(CREATES_MAX)
        .try_fold(0, |sum, created: u64| async move { Ok(sum + created) })
        .await
}
