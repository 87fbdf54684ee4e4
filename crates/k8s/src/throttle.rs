//! Servers that ask to be left alone for a while.
//!
//! Kubernetes says it in two ways: in the details of a refusal, and, where requests are turned away before they are
//! looked at, in a header beside a line of text. Clients read only the first, so the second is turned into it.

use http::{Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use kube::core::Status;
use serde_json::json;
use std::time::Duration;

/// How long a server that refused asks to be left alone.
pub fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// An answer whose pause is where clients look for it.
pub(crate) fn readable<B>(response: Response<B>) -> Response<Either<B, Full<Bytes>>> {
    let Some(seconds) = pause_beside_text(&response) else {
        return response.map(Either::Left);
    };
    let (mut head, _) = response.into_parts();
    let code = head.status.as_u16();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": "TooManyRequests", "message": "the server has too much to do",
        "details": {"retryAfterSeconds": seconds},
    });
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Response::from_parts(head, Either::Right(Full::from(status.to_string())))
}

/// The pause in the header, if what is beside it is not a refusal with details of its own.
fn pause_beside_text<B>(response: &Response<B>) -> Option<u32> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if text(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json")) {
        return None;
    }
    text(header::RETRY_AFTER)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::{Body, Client};
    use std::convert::Infallible;

    /// What a client makes of an answer.
    async fn read(code: u16, headers: &[(&str, &str)], body: &'static str) -> Status {
        let mut answer = Response::builder().status(code);
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        let answer = answer.body(body).unwrap();
        let (head, body) = answer.into_parts();
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let answer = Response::from_parts(head.clone(), body);
            async move { Ok::<_, Infallible>(readable(answer.map(Full::<Bytes>::from))) }
        });
        match Client::new(service, "default").apiserver_version().await {
            Err(kube::Error::Api(status)) => *status,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_pause_is_found_wherever_the_server_says_it() {
        let text = [("content-type", "text/plain"), ("retry-after", "3")];
        let status = read(429, &text, "Too many requests, please try again later.").await;
        assert_eq!((status.code, retry_after(&status)), (429, Some(Duration::from_secs(3))));
        let json = [("content-type", "application/json"), ("retry-after", "3")];
        let body = r#"{"kind":"Status","code":429,"message":"m","details":{"retryAfterSeconds":5}}"#;
        let status = read(429, &json, body).await;
        assert_eq!((status.message.as_str(), retry_after(&status)), ("m", Some(Duration::from_secs(5))));
        for (code, headers) in [(429, &text[..1]), (503, &text), (429, &[("retry-after", "soon")])] {
            assert_eq!(retry_after(&read(code, headers, "no").await), None, "{code} {headers:?}");
        }
    }
}
