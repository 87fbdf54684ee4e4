//! Answers.

use super::accept::Form;
use super::path::Target;
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::Object;
use crate::table::{self, IncludeObject};
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

const WARNING: HeaderName = HeaderName::from_static("warning");

/// Longest text of one warning header.
const WARNING_CHARS_MAX: usize = 256;

pub(super) const JSON: &str = "application/json";

/// An answer with a body.
pub(super) fn body(code: u16, content_type: &str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

pub(super) fn json(code: u16, value: &Value) -> Response {
    body(code, JSON, value.to_string())
}

/// A refusal.
pub(super) fn error(error: &ApiError) -> Response {
    let mut response = json(error.code, &error.to_status());
    if let Some(seconds) = error.details.as_ref().and_then(|d| d.retry_after_seconds) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// `Status` that says that all went well.
pub(super) fn success(code: u16, resource: &Resource, name: &str, uid: Option<&Value>) -> Response {
    let mut details = json!({"name": name, "kind": resource.plural});
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    if let Some(uid) = uid {
        details["uid"] = uid.clone();
    }
    json(
        code,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        }),
    )
}

/// One object, in the form that the client asked for.
pub(super) fn object(
    code: u16,
    target: &Target,
    object: &Object,
    form: Form,
    now: jiff::Timestamp,
) -> Response {
    body(code, JSON, object_json(target, object, form, now, true))
}

/// The JSON of one object in some form.
pub(super) fn object_json(
    target: &Target,
    object: &Object,
    form: Form,
    now: jiff::Timestamp,
    headers: bool,
) -> Bytes {
    let value = match form {
        Form::Plain => return object.json(target.version),
        Form::Metadata => partial_metadata(object),
        Form::Table(include) => {
            let metadata = json!({"resourceVersion": object.value().pointer("/metadata/resourceVersion")});
            let objects = [object.complete_in_version(target.version)];
            table(target, &objects, include, now, metadata, headers)
        }
    };
    value.to_string().into()
}

/// A table of some objects. The headers are left out of all but the first event of a watch.
pub(super) fn table(
    target: &Target,
    objects: &[Arc<Value>],
    include: IncludeObject,
    now: jiff::Timestamp,
    metadata: Value,
    headers: bool,
) -> Value {
    let resource = target.id.resource();
    let columns = if headers { table::column_definitions(resource, target.version) } else { Value::Null };
    let mut table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": columns});
    table["metadata"] = metadata;
    table["rows"] = Value::Array(table::rows(resource, target.version, objects, include, now));
    table
}

/// Metadata of an object, as `PartialObjectMetadata`.
pub(super) fn partial_metadata(object: &Object) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.complete_in_version(object.id().resource().hub).get("metadata"),
    })
}

/// Adds warnings to an answer.
pub(super) fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        // A header holds visible ASCII only, and quotes and backslashes must be escaped within quotes.
        let mut text = String::new();
        for c in warning.chars().take(WARNING_CHARS_MAX) {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                ' '..='~' => text.push(c),
                _ => text.push('?'),
            }
        }
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(WARNING, value);
        }
    }
}
