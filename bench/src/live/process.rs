//! The scheduler as a process, and what the system says about it.

use anyhow::Context as _;
use clap::Args;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;
use tutti_cluster::cluster::Cluster;
use tutti_k8s::connect::connect;
use tutti_lease::Place;
use tutti_scheduler::Settings;
use tutti_scheduler::config::{HttpSettings, LeaseSettings};

/// Clock ticks of a second in what Linux says about processes.
const TICKS_PER_SECOND: f64 = 100.0;

/// Arguments of the process.
#[derive(Debug, Args)]
pub(crate) struct SchedulerArguments {
    /// The cluster.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Where metrics are served.
    #[arg(long)]
    http: SocketAddr,
    /// Whether it asks for the lease before it acts.
    #[arg(long)]
    elect: bool,
}

/// Schedules as `tutti scheduler` does, and logs as much, until it is killed.
pub(crate) fn schedule(arguments: SchedulerArguments) -> anyhow::Result<()> {
    let SchedulerArguments { kubeconfig, http, elect } = arguments;
    let filter = EnvFilter::new("info,kube_runtime::watcher=off");
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let connection = connect(Some(&kubeconfig)).await?;
        let settings = Settings {
            elects: elect,
            http: HttpSettings { address: Some(http), ..HttpSettings::default() },
            ..Settings::default()
        };
        let place = elect.then(|| Place {
            namespace: "kube-system".to_owned(),
            name: LeaseSettings::default().name,
            identity: format!("bench-{}", std::process::id()),
        });
        let (_keep, settings) = watch::channel(settings);
        Ok(tutti_scheduler::serve(connection, settings, place, std::future::pending()).await?)
    })
}

/// A scheduler that runs. Dropped, it is killed.
pub(super) struct Scheduler {
    child: Child,
    http: SocketAddr,
    _kubeconfig: Kubeconfig,
    log: PathBuf,
}

impl Scheduler {
    /// Starts one; nothing is waited for.
    pub(super) async fn start(cluster: &Cluster, elect: bool) -> anyhow::Result<Self> {
        let http = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let kubeconfig = Kubeconfig::write(cluster, &http.port().to_string())?;
        let log = kubeconfig.path().with_extension("log");
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("scheduler").arg("--kubeconfig").arg(kubeconfig.path());
        command.arg("--http").arg(http.to_string());
        if elect {
            command.arg("--elect");
        }
        command.stderr(std::fs::File::create(&log)?);
        let child = command.spawn().context("cannot start the scheduler")?;
        Ok(Self { child, http, _kubeconfig: kubeconfig, log })
    }

    /// Processor time that it has used so far, in seconds.
    pub(super) fn processor_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name comes second, in brackets, and may have blanks in it.
        let fields: Vec<&str> = stat.rsplit_once(')').context("no name")?.1.split_whitespace().collect();
        let ticks = |index: usize| -> anyhow::Result<f64> {
            Ok(fields.get(index).context("too short")?.parse::<f64>()?)
        };
        Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }

    /// One of its metrics; `None` while it does not tell.
    pub(super) async fn metric(&self, name: &str) -> Option<f64> {
        let text = tokio::time::timeout(Duration::from_secs(5), self.metrics()).await.ok()?.ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.trim().parse().ok()
    }

    /// How many requests it has sent so far, by kind.
    pub(super) async fn requests(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let text = self.metrics().await?;
        let lines = text.lines().filter_map(|line| line.strip_prefix("tutti_requests_total{kind=\""));
        let counts = lines.filter_map(|line| line.split_once("\"} "));
        counts.map(|(kind, count)| Ok((kind.to_owned(), count.trim().parse()?))).collect()
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(self.http).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            eprintln!("the scheduler has ended by itself, {status}; see {}", self.log.display());
        } else {
            let _ = std::fs::remove_file(&self.log);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that tells a process where the cluster is. Dropped, it is removed.
pub(super) struct Kubeconfig(PathBuf);

impl Kubeconfig {
    /// It holds a key: nobody else may read it.
    pub(super) fn write(cluster: &Cluster, name: &str) -> anyhow::Result<Self> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = std::env::temp_dir().join(format!("tutti-bench-{}-{name}.kubeconfig", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let kubeconfig = Self(path);
        file.write_all(cluster.kubeconfig().as_bytes())?;
        Ok(kubeconfig)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
