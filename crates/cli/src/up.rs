//! `tutti up`: an embedded cluster with simulated nodes and the scheduler, until somebody ends it.

use crate::console::{Console, Style, count, shell_word};
use crate::embedded_controller::Controller;
use crate::embedded_scheduler::{self, Scheduler};
use crate::{cluster_file, demo, kubeconfig_path, signals};
use anyhow::Context as _;
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::listener::Port;
use tutti_cluster::registry::Release;
use tutti_cluster::{controllers, kubeconfig, kubelet};
use tutti_k8s::gangs::Integration;

/// Start a cluster to try Tutti on: a Kubernetes API server, simulated nodes and the scheduler, in one process.
///
/// Nothing is installed and nothing stays: the cluster lives in memory and ends with Ctrl-C. Pods do not run
/// any program; their nodes only say so. Nodes that you create without a kubelet of their own are simulated too.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Simulated nodes to start with, 0 to 20000.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=20000))]
    nodes: u32,
    /// GPUs of each of these nodes, 0 to 1024.
    #[arg(long, value_name = "G", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1024))]
    gpus: u32,
    /// Nodes to start with as a file describes them, a line for every pool: `node gpu x8 cpu=64 memory=256Gi gpu=8
    /// label:rack=r{i/4}`. docs/scenario-format.md has all words, examples/pools.txt is an example.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "gpus", "demo"])]
    cluster: Option<PathBuf>,
    /// Seconds of silence after which a node is not ready, 1 to 3600. Nodes give five signs of life in that time.
    #[arg(long, value_name = "S", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=3600))]
    node_grace: u64,
    /// Port of the API server on this machine's loopback address; 0 takes any free one. Without this option it is
    /// 6443, or any free one if that is taken.
    #[arg(long, value_name = "P")]
    port: Option<u16>,
    /// File to write the kubeconfig to; it is removed at the end. Default: `tutti/kubeconfig` in $XDG_STATE_HOME or
    /// ~/.local/state (`tutti/kubeconfig-PORT` if the port is not 6443). A file that tutti did not write is never overwritten.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Kubernetes to be like: 1.35, 1.36, 1.37, or all, which serves what any of them does and is otherwise like the
    /// newest. It decides which versions of Workload and PodGroup there are.
    #[arg(long, value_name = "VERSION", default_value_t = Release::All)]
    kubernetes: Release,
    /// Do not run the scheduler: pods stay pending until you bind them or run a scheduler of your own.
    #[arg(long)]
    no_scheduler: bool,
    /// Do not run the controller that makes groups for Jobs; pods of Jobs do not wait for groups then.
    #[arg(long)]
    no_controller: bool,
    /// Tell a story of two gangs on a small cluster of its own, then stay up.
    #[arg(long, conflicts_with_all = ["nodes", "gpus", "no_scheduler", "no_controller"])]
    demo: bool,
    /// End after the demo.
    #[arg(long, requires = "demo")]
    exit_after_demo: bool,
}

impl UpArgs {
    fn cluster(&self) -> anyhow::Result<ClusterOptions> {
        let further_nodes = self.cluster.as_deref().map(cluster_file::read).transpose()?.unwrap_or_default();
        let (nodes, gpus_per_node) = match (&self.cluster, self.demo) {
            (Some(_), _) => (0, 0),
            (None, true) => (demo::NODES, demo::GPUS),
            (None, false) => (self.nodes, self.gpus),
        };
        let grace = Duration::from_secs(self.node_grace);
        Ok(ClusterOptions {
            port: self.port.map_or(Port::Preferred, Port::Exactly),
            nodes,
            gpus_per_node,
            further_nodes,
            release: self.kubernetes,
            kubelets: kubelet::Options { lease_interval: grace / 5, ..kubelet::Options::default() },
            controllers: Some(controllers::Options { node_grace: grace, ..controllers::Options::default() }),
            ..ClusterOptions::default()
        })
    }
}

/// Runs until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    let options = args.cluster()?;
    let (nodes, gpus) = (options.node_count(), options.gpus());
    let console = Console::new();
    let mut progress = Progress::new(console, nodes);
    let cluster = Cluster::start_telling(options, |created| progress.tell(created)).await?;
    let up = Up { args, console, cluster, nodes, gpus };
    let result = up.live().await;
    up.cluster.shutdown().await;
    result
}

/// Says how far the making of nodes is, where that takes more than a moment.
struct Progress {
    console: Console,
    total: u64,
    next: Instant,
}

impl Progress {
    /// From one line to the next.
    const INTERVAL: Duration = Duration::from_secs(1);

    fn new(console: Console, total: u64) -> Self {
        Self { console, total, next: Instant::now() + Self::INTERVAL }
    }

    fn tell(&mut self, created: u64) {
        if Instant::now() >= self.next && created < self.total {
            let line = format!("starting: {created} of {}", count(self.total, "node"));
            self.console.line(&self.console.paint(Style::Faint, &line));
            self.next = Instant::now() + Self::INTERVAL;
        }
    }
}

struct Up {
    args: UpArgs,
    console: Console,
    cluster: Cluster,
    nodes: u64,
    gpus: u64,
}

impl Up {
    async fn live(&self) -> anyhow::Result<()> {
        let path = match &self.args.kubeconfig {
            Some(path) => kubeconfig_path::absolute(path)?,
            None => kubeconfig_path::default(self.cluster.address().port())?,
        };
        let shown = path.display().to_string();
        let end = signals::end_asked()?;
        let _file = KubeconfigFile::write(path, self.cluster.kubeconfig())?;
        // Without the controller nobody makes groups, and nobody should wait for them.
        let jobs = if self.args.no_controller { Integration::Off } else { Integration::On };
        let mut scheduler = (!self.args.no_scheduler).then(|| Scheduler::start(self.cluster.client(), jobs));
        let mut controller = match self.args.no_controller {
            true => None,
            false => Some(Controller::start(self.cluster.client()).await.context("no controllers")?),
        };
        let result = tokio::select! {
            () = end => Ok(()),
            error = failure(scheduler.as_mut()) => return Err(error),
            error = controller_failure(controller.as_mut()) => return Err(error),
            result = self.talk(&shown) => result,
        };
        if let Some(controller) = controller {
            controller.stop().await;
        }
        if let Some(scheduler) = scheduler
            && let Err(error) = scheduler.stop().await
        {
            // The user asked for the end and gets it; that it was not clean is only worth a line.
            tracing::warn!("{error:#}");
        }
        result
    }

    /// Says what there is, and stays.
    async fn talk(&self, kubeconfig: &str) -> anyhow::Result<()> {
        self.say_what_runs();
        if self.args.demo {
            self.console.line("");
            demo::tell(&self.cluster, self.console, demo::PATIENCE).await?;
            if self.args.exit_after_demo {
                return Ok(());
            }
        }
        self.say_what_to_try(kubeconfig);
        std::future::pending().await
    }

    fn say_what_runs(&self) {
        let nodes = count(self.nodes, "simulated node");
        let gpus = count(self.gpus, "GPU");
        self.console.line(&format!("{} is up: {nodes}, {gpus}", self.console.paint(Style::Strong, "tutti")));
        self.console.line(&format!("  API server  {}", self.cluster.url()));
        let scheduler = if self.args.no_scheduler {
            "none (--no-scheduler)".to_owned()
        } else {
            format!("serves the names {}", embedded_scheduler::NAMES.join(" and "))
        };
        self.console.line(&format!("  scheduler   {scheduler}"));
        let controller =
            if self.args.no_controller { "none (--no-controller)" } else { "makes groups for Jobs" };
        self.console.line(&format!("  controller  {controller}"));
    }

    fn say_what_to_try(&self, kubeconfig: &str) {
        let gang = if self.args.demo { "gang-4" } else { "gang-8" };
        let export = format!("export KUBECONFIG={}", shell_word(kubeconfig));
        self.console.line("");
        self.console.line("In another terminal:");
        self.console.line(&format!("  {}", self.console.paint(Style::Strong, &export)));
        for command in [
            "kubectl get nodes".to_owned(),
            format!("kubectl apply -f examples/{gang}.yaml"),
            "kubectl get podgroups,pods -o wide".to_owned(),
            format!("kubectl describe podgroup {gang}"),
        ] {
            self.console.line(&format!("  {command}"));
        }
        self.console.line("");
        self.console.line(&self.console.paint(Style::Faint, "Ctrl-C ends it."));
    }
}

/// Completes when a scheduler that should run does not.
async fn failure(scheduler: Option<&mut Scheduler>) -> anyhow::Error {
    match scheduler {
        Some(scheduler) => scheduler.failed().await,
        None => std::future::pending().await,
    }
}

/// The same for the controllers.
async fn controller_failure(controller: Option<&mut Controller>) -> anyhow::Error {
    match controller {
        Some(controller) => controller.failed().await,
        None => std::future::pending().await,
    }
}

/// The kubeconfig on the disk, for as long as the cluster lives.
struct KubeconfigFile {
    path: PathBuf,
    text: String,
}

impl KubeconfigFile {
    fn write(path: PathBuf, text: &str) -> anyhow::Result<Self> {
        kubeconfig::write(&path, text)?;
        Ok(Self { path, text: text.to_owned() })
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        kubeconfig::remove_if_unchanged(&self.path, &self.text);
    }
}
