//! What every process of ours answers over HTTP, and how: health in words, metrics for Prometheus. [`tls`] serves what
//! is not for everybody.

mod leading;
mod stall;
pub mod tls;

pub use leading::Leading;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The content type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether this is a good or a bad answer to a question about health, and its words.
pub type Verdict = Result<String, String>;

/// Nobody can listen there.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve health and metrics at {address}: {source}")]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens. Fails at once if it cannot. Handlers may ask for the address of whoever asks.
    pub async fn start(address: SocketAddr, router: Router) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, service).await {
                tracing::error!(%error, "health and metrics are not served any more");
            }
        });
        tracing::info!(%address, "serving health and metrics");
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Somebody who can say how it is.
pub trait Health: Send + Sync + 'static {
    /// A process that should be killed and started again is not live.
    fn live(&self) -> Verdict;
    /// A process is ready if it does its work, or stands by and could.
    fn ready(&self) -> Verdict;
}

/// What Kubernetes and load balancers ask a process for.
pub fn health_routes<S: Health>() -> Router<Arc<S>> {
    let live = |State(state): State<Arc<S>>| async move { health(state.live()) };
    let ready = |State(state): State<Arc<S>>| async move { health(state.ready()) };
    Router::new()
        // Kubernetes components answer to all three; the first is the oldest.
        .route("/healthz", get(live))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
}

fn health(verdict: Verdict) -> Response {
    match verdict {
        Ok(text) => (StatusCode::OK, text + "\n").into_response(),
        Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text + "\n").into_response(),
    }
}

/// All metrics, as Prometheus reads them.
pub fn metrics(registry: &Registry) -> Response {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
