//! A whole embedded cluster in one value: API server on TLS, controllers, simulated kubelets, nodes.

use crate::controllers;
use crate::kubeconfig;
use crate::kubelet::{self, GPU, NodeTemplate};
use crate::listener::{self, ListenError, Port};
use crate::registry::Release;
use crate::server::{self, ApiServer};
use crate::tls::{Identities, TlsError};
use axum::Router;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::Client;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Nodes that are created at the same time.
const CREATES_MAX: usize = 32;
/// A shutdown that takes longer is cut off.
const SHUTDOWN_MAX: Duration = Duration::from_secs(5);

/// What cluster to start. The default is an empty one on loopback.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Address to listen on.
    pub bind: IpAddr,
    /// Port to listen on.
    pub port: Port,
    /// Nodes at the start, as [`NodeTemplate::numbered`] makes them.
    pub nodes: u32,
    /// GPUs of each of these nodes.
    pub gpus_per_node: u32,
    /// Further nodes at the start.
    pub further_nodes: Vec<NodeTemplate>,
    /// How fast simulated pods start and stop.
    pub kubelets: kubelet::Options,
    /// False leaves nodes and the pods on them to whoever writes their status.
    pub simulate_nodes: bool,
    /// How patient controllers are; none run without.
    pub controllers: Option<controllers::Options>,
    /// The Kubernetes that the API server is like.
    pub release: Release,
    /// Whether pod groups are served, and what they are made of. Kubernetes does so only where it is told to.
    pub workload_apis: bool,
    /// Whether namespaces have a service account, and pods run as one.
    pub service_accounts: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: Port::default(),
            nodes: 0,
            gpus_per_node: 0,
            further_nodes: Vec::new(),
            kubelets: kubelet::Options::default(),
            simulate_nodes: true,
            controllers: Some(controllers::Options::default()),
            release: Release::default(),
            workload_apis: true,
            service_accounts: true,
        }
    }
}

impl ClusterOptions {
    /// All nodes at the start.
    fn templates(&self) -> impl Iterator<Item = NodeTemplate> {
        let (count, gpus) = (self.nodes, self.gpus_per_node);
        (0..count)
            .map(move |index| NodeTemplate::numbered(index, count, gpus))
            .chain(self.further_nodes.iter().cloned())
    }

    /// How many nodes there are at the start.
    pub fn node_count(&self) -> u64 {
        u64::from(self.nodes) + self.further_nodes.len() as u64
    }

    /// All GPUs of the nodes at the start.
    pub fn gpus(&self) -> u64 {
        let further =
            self.further_nodes.iter().filter_map(|node| node.capacity.get(GPU)?.parse::<u64>().ok());
        u64::from(self.nodes) * u64::from(self.gpus_per_node) + further.sum::<u64>()
    }
}

/// Why a cluster did not start or did not take a node.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The port could not be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Certificates could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The own kubeconfig gives no client.
    #[error(transparent)]
    Client(#[from] kubeconfig::ClientError),
    /// The system does not say where it listens.
    #[error("cannot learn the address of the API server: {0}")]
    Address(#[source] std::io::Error),
    /// A node could not be created.
    #[error("cannot create node {name}: {source}")]
    Node {
        /// Its name.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// A running cluster. It ends with [`Cluster::shutdown`], or abruptly when it is dropped.
pub struct Cluster {
    address: SocketAddr,
    kubeconfig: String,
    client: Client,
    in_process: Client,
    server: std::sync::Arc<ApiServer>,
    end: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts a cluster. When this returns, clients are served and all nodes are there and Ready.
    pub async fn start(options: ClusterOptions) -> Result<Self, ClusterError> {
        Self::start_telling(options, |_| {}).await
    }

    /// As [`Cluster::start`], and tells how many nodes there are every time there is one more.
    pub async fn start_telling(options: ClusterOptions, tell: impl FnMut(u64)) -> Result<Self, ClusterError> {
        let listener = listener::bind(options.bind, options.port).await?;
        let address = listener.local_addr().map_err(ClusterError::Address)?;
        let identities = Identities::generate(options.bind, Timestamp::now())?;
        let kubeconfig = kubeconfig::render(&url_of(address), &identities);
        let client = kubeconfig::client(&kubeconfig).await?;

        let server = ApiServer::new(server::Options {
            release: options.release,
            workload_apis: options.workload_apis,
            service_accounts: options.service_accounts,
            ..server::Options::default()
        });
        let router = server::router(server.clone());
        let in_process = in_process_client(router.clone());
        let nodes = options.node_count();
        create_nodes(&in_process, options.templates(), tell).await?;

        let (end, shutdown) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(tutti_http::tls::serve(listener, identities.server, router, shutdown.clone()));
        tasks.spawn(until(shutdown.clone(), server::run_janitor(server.clone())));
        if let Some(controllers) = options.controllers {
            tasks.spawn(controllers::run(in_process.clone(), controllers, ended(shutdown.clone())));
        }
        // Part of the API rather than a convenience: what the API server protects, somebody has to let go.
        if options.workload_apis {
            let protection =
                controllers::protect_groups(in_process.clone(), options.release, ended(shutdown.clone()));
            tasks.spawn(protection);
        }
        if options.simulate_nodes {
            tasks.spawn(kubelet::run(in_process.clone(), options.kubelets, ended(shutdown)));
        }
        tracing::info!(url = url_of(address), nodes, "embedded cluster is up");
        Ok(Self { address, kubeconfig, client, in_process, server, end, tasks })
    }

    /// Where the API server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://…`, as clients call it.
    pub fn url(&self) -> String {
        url_of(self.address)
    }

    /// The text of a kubeconfig with everything that a client needs. It holds a private key.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A client over TLS and HTTP, as every program outside of this process would use.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client that calls the API server directly, without a socket.
    pub fn in_process_client(&self) -> Client {
        self.in_process.clone()
    }

    /// Adds a node, Ready.
    pub async fn add_node(&self, node: &NodeTemplate) -> Result<(), ClusterError> {
        create_node(&self.in_process, node).await
    }

    /// Ends the cluster: open requests are given a moment, then everything is gone.
    pub async fn shutdown(mut self) {
        self.end.send_replace(true);
        self.server.close_watches();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_MAX, all).await.is_err() {
            tracing::warn!("the cluster did not end in time and was cut off");
        }
    }
}

fn url_of(address: SocketAddr) -> String {
    // "All addresses" is nowhere that a client could connect to.
    let host = match address.ip() {
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(host, address.port()))
}

fn in_process_client(router: Router) -> Client {
    Client::new(router.into_service::<kube::client::Body>(), "default")
}

async fn create_nodes(
    client: &Client,
    nodes: impl Iterator<Item = NodeTemplate>,
    mut tell: impl FnMut(u64),
) -> Result<(), ClusterError> {
    let mut created = futures::stream::iter(nodes)
        .map(|node| async move { create_node(client, &node).await })
        .buffer_unordered(CREATES_MAX);
    let mut count = 0;
    while created.try_next().await?.is_some() {
        count += 1;
        tell(count);
    }
    Ok(())
}

async fn create_node(client: &Client, node: &NodeTemplate) -> Result<(), ClusterError> {
    kubelet::create(client, node)
        .await
        .map_err(|source| ClusterError::Node { name: node.name.clone(), source: Box::new(source) })
}

/// Completes when the end is asked for.
async fn ended(mut shutdown: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is the end too.
    let _ = shutdown.wait_for(|&end| end).await;
}

async fn until(shutdown: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = ended(shutdown) => {}
        () = work => {}
    }
}
