//! HTTPS in front of the webhooks, and what it takes from whom.

use super::knowledge::Shared;
use super::review::{self, ReviewError, Webhook};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Where the mutating webhook is.
pub const MEMBERSHIP_PATH: &str = "/mutate-pods";
/// Where the validating webhook is.
pub const ADVICE_PATH: &str = "/advise";

/// Largest body. API servers take 3 MiB from clients; a review has an object twice, but no object of use here is half
/// as large.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Reviews that are read or answered at once, each with a body of its own. Others wait, or give up.
const REVIEWS_MAX: usize = 32;
/// A body that is not there by then never comes. API servers give up long before.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
struct Desk {
    knowledge: Shared,
    places: Arc<Semaphore>,
}

/// Both webhooks.
pub fn router(knowledge: Shared) -> Router {
    let desk = Desk { knowledge, places: Arc::new(Semaphore::new(REVIEWS_MAX)) };
    let serve =
        |webhook| post(move |State(desk): State<Desk>, request: Request| desk.answer(webhook, request));
    Router::new()
        .route(MEMBERSHIP_PATH, serve(Webhook::Membership))
        .route(ADVICE_PATH, serve(Webhook::Advice))
        .with_state(desk)
}

impl Desk {
    async fn answer(self, webhook: Webhook, request: Request) -> Response {
        // Nobody closes the semaphore.
        let _place = self.places.acquire().await;
        let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.to_str()
                .is_ok_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "application/json")
        });
        if !is_json {
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "want application/json");
        }
        let body = to_bytes(request.into_body(), BODY_BYTES_MAX);
        let body = match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => {
                let message = format!("want a body of at most {BODY_BYTES_MAX} bytes: {error}");
                return refusal(StatusCode::PAYLOAD_TOO_LARGE, &message);
            }
            Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        };
        let answer = review::answer(webhook, &body, &self.knowledge.read());
        match answer {
            Ok(review) => axum::Json(review).into_response(),
            Err(error @ ReviewError::Patch(_)) => {
                refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
            }
            Err(error) => refusal(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

fn refusal(status: StatusCode, message: &str) -> Response {
    tracing::debug!(%status, message, "a review was not answered");
    (status, format!("{message}\n")).into_response()
}
