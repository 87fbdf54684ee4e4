//! A client of the cluster: by kubeconfig, or from inside.
//!
//! One HTTP/2 connection carries all requests and watches, but for those that ask for one of their own; a server that is
//! gone without a word is noticed by pings.
//! Nothing is retried here: whether a request may be repeated is known to whoever sends it.

use crate::throttle;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tower::{BoxError, ServiceBuilder};

/// Pause between two pings, and how long the answer to one may take.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Where HTTP/2 cannot be spoken, an idle connection is probed this often.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// How much may be on its way to us, for one watch and for all together. The default of 64 KiB would make the list of a
/// large cluster wait for its own acknowledgements.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// The variable by which a pod knows that it is one.
const IN_CLUSTER_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// A cluster that can be talked to.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The same, over a connection of its own.
    pub apart: Client,
    /// Where the API server is.
    pub url: String,
    /// The namespace that we are in, if we run in the cluster.
    pub own_namespace: Option<String>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig that was named cannot be used.
    #[error("{}: {source}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// Nothing was named, and nothing was found.
    #[error("no cluster to talk to: {0}; name one with --kubeconfig FILE")]
    Nowhere(#[source] Box<kube::config::InferConfigError>),
    /// This is a pod, but what a pod is given to talk to the cluster is not there.
    #[error("this is a pod, but it cannot talk to its cluster: {0}")]
    InCluster(#[source] Box<kube::config::InClusterError>),
    /// What was found does not make a client.
    #[error("{url}: {source}")]
    Client {
        /// Where the API server is.
        url: String,
        /// What is wrong.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Connects to the cluster of a kubeconfig; without one, to the cluster that this is a pod of, and else to the one
/// that `$KUBECONFIG` or `~/.kube/config` names.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Connection, ConnectError> {
    // Several TLS providers may be compiled in. If somebody has chosen already, that choice stands.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let in_cluster = kubeconfig.is_none() && std::env::var_os(IN_CLUSTER_VARIABLE).is_some();
    let config = match kubeconfig {
        Some(path) => of_file(path).await.map_err(|source| {
            let path = path.to_owned();
            ConnectError::Kubeconfig { path, source: Box::new(source) }
        })?,
        None if in_cluster => {
            Config::incluster().map_err(|error| ConnectError::InCluster(Box::new(error)))?
        }
        None => Config::infer().await.map_err(|error| ConnectError::Nowhere(Box::new(error)))?,
    };
    let url = config.cluster_url.to_string();
    let own_namespace = in_cluster.then(|| config.default_namespace.clone());
    let [client, apart] = clients(config)
        .map_err(|source| ConnectError::Client { url: url.clone(), source: Box::new(source) })?;
    Ok(Connection { client, apart, url, own_namespace })
}

async fn of_file(path: &Path) -> Result<Config, KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
}

/// Two clients with connections of their own. Without a proxy they share what they know of who we are: nobody is asked for
/// it twice.
fn clients(mut config: Config) -> Result<[Client; 2], kube::Error> {
    if config.proxy_url.is_some() {
        config.default_retry = false;
        return Ok([Client::try_from(config.clone())?, Client::try_from(config)?]);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(config.connect_timeout.unwrap_or(CONNECT_TIMEOUT)));
    connector.set_keepalive(Some(TCP_KEEPALIVE));
    connector.set_nodelay(true);
    let mut https = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        https = https.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    let https = https.enable_http1().enable_http2().wrap_connector(connector);
    let mut http = legacy::Builder::new(TokioExecutor::new());
    http.pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let services = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .map_response(throttle::readable);
    let client = |https| {
        let service = services.service(http.build::<_, Body>(https));
        Client::new(service, config.default_namespace.clone())
    };
    Ok([client(https.clone()), client(https)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_is_named() {
        let error =
            connect(Some(Path::new("/nowhere/kubeconfig"))).await.err().expect("there is no such file");
        assert!(error.to_string().starts_with("/nowhere/kubeconfig: "), "{error}");
    }
}
