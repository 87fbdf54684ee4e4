//! Answers in YAML: what was going to be sent as JSON, written once more. Nobody asks for it often.

use super::reply::JSON;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt as _;
use serde_json::Value;

/// The media type of YAML.
pub(super) const YAML: &str = "application/yaml";

/// The same answer in YAML, if it is JSON.
pub(super) async fn of_json(response: Response) -> Response {
    if response.headers().get(CONTENT_TYPE).is_none_or(|found| found != JSON) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // Bodies of ours are in memory or made from what is; reading them cannot fail.
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    match encode(&bytes) {
        Some(text) => {
            head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(YAML));
            Response::from_parts(head, Body::from(text))
        }
        None => Response::from_parts(head, Body::from(bytes)),
    }
}

fn encode(json: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(json).ok()?;
    // Which words are no texts unless they are in quotes depends on the version of YAML that the reader knows.
    let options = serde_saphyr::ser_options! { quote_all: true };
    serde_saphyr::to_string_with_options(&value, options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_read_back_is_what_was_written() {
        let texts = [
            "",
            "yes",
            "n",
            "on",
            "~",
            "null",
            "1",
            "1e3",
            "0x1f",
            "012",
            "1:30",
            "2026-01-01",
            "a: b",
            "#c",
            "- d",
            " e ",
            "f\ng\n",
            "\"h\"",
            "'i'",
            "{j}",
            "[k]",
            "&l",
            "*m",
            "!n",
            "|",
            ">",
            "%",
            "@",
            "`",
            "é\u{0}\t",
        ];
        let value = json!({"texts": texts, "empty": {}, "none": [], "deep": [[{"a": [1, -2, 3.5, true, null]}]], "big": u64::MAX});
        let text = encode(value.to_string().as_bytes()).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text}");
    }
}
