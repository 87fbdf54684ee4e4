//! What is served over HTTP: health and metrics.

use super::status::Status;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use std::sync::Arc;

pub(super) fn router(status: Arc<Status>) -> Router {
    Router::new()
        // Kubernetes components answer to all three; the first is the oldest.
        .route("/healthz", get(live))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(status)
}

async fn live(State(status): State<Arc<Status>>) -> Response {
    tutti_http::health(status.live())
}

async fn ready(State(status): State<Arc<Status>>) -> Response {
    tutti_http::health(status.ready())
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    tutti_http::metrics(&status.registry)
}
