//! What is served over HTTP: health, metrics, and the state for people who look into a decision.

use super::status::{Question, Status};
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) fn router(status: Arc<Status>, debug_from_anywhere: bool) -> Router {
    let state = move |State(status): State<Arc<Status>>, ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
        if debug_from_anywhere || peer.ip().to_canonical().is_loopback() {
            state(&status).await
        } else {
            let message = "the state is shown to this machine only; http.debugFromAnywhere changes that\n";
            (StatusCode::FORBIDDEN, message).into_response()
        }
    };
    tutti_http::health_routes()
        .route("/metrics", get(metrics))
        .route("/debug/state", get(state))
        .with_state(status)
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    // Numbers of a core that does not answer are not shown rather than shown as they were.
    status.metrics.numbers.set(status.ask(Question::Numbers).await);
    tutti_http::metrics(status.metrics.registry())
}

async fn state(status: &Status) -> Response {
    match status.dump().await {
        Some(Ok(dump)) => Json(dump).into_response(),
        Some(Err(error)) => (StatusCode::BAD_GATEWAY, error + "\n").into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "this replica does not schedule\n").into_response(),
    }
}
