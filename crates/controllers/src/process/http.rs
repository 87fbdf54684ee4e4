//! What is served over HTTP: health and metrics.

use super::status::Status;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use std::sync::Arc;

pub(super) fn router(status: Arc<Status>) -> Router {
    tutti_http::health_routes().route("/metrics", get(metrics)).with_state(status)
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    tutti_http::metrics(&status.registry)
}
