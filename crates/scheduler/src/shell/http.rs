//! What is served over HTTP: health, metrics, and the state for whoever looks into a decision.

use super::status::{Question, Status, Verdict};
use crate::error::Error;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The content type of what [`super::metrics::Metrics::render`] gives.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens. Fails at once if it cannot.
    pub(super) async fn start(
        address: SocketAddr,
        debug_from_anywhere: bool,
        status: Arc<Status>,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Http { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let router = router(status, debug_from_anywhere);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, service).await {
                tracing::error!(%error, "health and metrics are not served any more");
            }
        });
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn router(status: Arc<Status>, debug_from_anywhere: bool) -> Router {
    let state = move |State(status): State<Arc<Status>>, ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
        if debug_from_anywhere || peer.ip().is_loopback() {
            state(&status).await
        } else {
            let message = "the state is shown to this machine only; http.debugFromAnywhere changes that\n";
            (StatusCode::FORBIDDEN, message).into_response()
        }
    };
    Router::new()
        // Kubernetes components answer to all three; the first is the oldest.
        .route("/healthz", get(live))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/debug/state", get(state))
        .with_state(status)
}

async fn live(State(status): State<Arc<Status>>) -> Response {
    answer(status.live())
}

async fn ready(State(status): State<Arc<Status>>) -> Response {
    answer(status.ready())
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    // Numbers of a core that does not answer are not shown rather than shown as they were.
    status.metrics.numbers.set(status.ask(Question::Numbers).await);
    match status.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn state(status: &Status) -> Response {
    match status.dump().await {
        Some(Ok(dump)) => Json(dump).into_response(),
        Some(Err(error)) => (StatusCode::BAD_GATEWAY, error + "\n").into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "this replica does not schedule\n").into_response(),
    }
}

fn answer(verdict: Verdict) -> Response {
    match verdict {
        Ok(text) => (StatusCode::OK, text + "\n").into_response(),
        Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text + "\n").into_response(),
    }
}
