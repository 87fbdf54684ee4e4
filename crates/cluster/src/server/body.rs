//! Request bodies: reading, decoding, and the checks that every object passes before anything looks at it.

use super::path::Target;
use super::query::FieldValidation;
use super::{duplicates, protobuf};
use crate::error::{ApiError, Cause};
use crate::registry::api_version;
use crate::schema;
use axum::body::{Body, Bytes};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value};

/// Largest body of a request. The same as in Kubernetes, where the database sets it.
pub(super) const BODY_BYTES_MAX: usize = 3 << 20;

/// Deepest nesting of an object. Lists and watch events wrap objects, and clients stop at a depth of 128.
pub(crate) const DEPTH_MAX: usize = 100;

/// The media type of an object to apply, which is YAML.
pub(super) const APPLIED: &str = "application/apply-patch+yaml";

/// Unknown and repeated fields that are named in an answer.
const FINDINGS_NAMED_MAX: usize = 32;

/// Reads a body to its end.
pub(super) async fn read(body: Body) -> Result<Bytes, ApiError> {
    let collected = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|error| {
        if error.downcast_ref::<LengthLimitError>().is_some() {
            let message = format!("the request body is larger than {BODY_BYTES_MAX} bytes");
            ApiError::new(413, "RequestEntityTooLarge", message)
        } else {
            ApiError::bad_request(format!("the request body could not be read: {error}"))
        }
    })?;
    Ok(collected.to_bytes())
}

/// The media type of a request without its parameters, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Decodes an object of any kind.
pub(super) fn decode(media_type: &str, body: &[u8]) -> Result<Value, ApiError> {
    decode_noting(media_type, body).map(|(value, _)| value)
}

/// Decodes an object of any kind, and names the fields that come twice. YAML with such fields is not accepted anyway.
pub(super) fn decode_noting(media_type: &str, body: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let mut repeated = Vec::new();
    let value = match media_type {
        "" | "*/*" | "application/json" => {
            let (value, duplicates) = duplicates::read(body).map_err(|error| not_json(&error))?;
            check_depth(&value)?;
            repeated = duplicates;
            value
        }
        "application/yaml" | "application/x-yaml" | "text/yaml" | APPLIED => decode_yaml(body)?,
        protobuf::MEDIA_TYPE => protobuf::decode(body)?,
        other => {
            return Err(unsupported(&format!(
                "the body of the request is of type {other:?}; application/json, application/yaml and \
                 application/vnd.kubernetes.protobuf are supported"
            )));
        }
    };
    if !value.is_object() {
        return Err(ApiError::bad_request("the body of the request must be an object"));
    }
    Ok((value, repeated))
}

pub(super) fn unsupported(message: &str) -> ApiError {
    ApiError::new(415, "UnsupportedMediaType", message)
}

fn not_json(error: &serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("the body of the request is not valid JSON: {error}"))
}

fn decode_yaml(body: &[u8]) -> Result<Value, ApiError> {
    // JSON is YAML too, and most of what comes as YAML; it is far quicker to read as what it is.
    if body.trim_ascii_start().starts_with(b"{")
        && let Ok(value) = serde_json::from_slice(body)
    {
        check_depth(&value)?;
        return Ok(value);
    }
    let value = serde_saphyr::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("the body of the request is not valid YAML: {error}"))
    })?;
    check_depth(&value)?;
    Ok(value)
}

fn check_depth(value: &Value) -> Result<(), ApiError> {
    if crate::patch::depth(value) <= DEPTH_MAX {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("the object is nested deeper than {DEPTH_MAX} levels")))
}

/// Checks that an object is what the path says, fills in what it leaves out, and sees to unknown fields and to those
/// that came twice. Returns warnings.
pub(super) fn admit(
    target: &Target,
    object: &mut Value,
    repeated: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, ApiError> {
    let resource = target.id.resource();
    let Some(map) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the object must be a JSON object"));
    };
    expect_string(map, "apiVersion", &api_version(resource.group, target.version))?;
    expect_string(map, "kind", resource.kind)?;
    check_metadata(map)?;
    let unreadable = |why: &str| {
        let (kind, version) = (resource.kind, target.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    if let Some(Cause { field, message, .. }) = schema::wrong_types(resource, target.version, object).first()
    {
        return Err(unreadable(&format!("{field}: {message}")));
    }

    let unknown = schema::unknown_fields(resource, target.version, object);
    if unknown.is_empty() && repeated.is_empty() {
        return Ok(Vec::new());
    }
    let findings = || {
        let repeated = repeated.iter().map(|field| format!("duplicate field {field:?}"));
        let unknown = unknown.iter().map(|field| format!("unknown field {field:?}"));
        repeated.chain(unknown).take(FINDINGS_NAMED_MAX).collect::<Vec<_>>()
    };
    if validation == FieldValidation::Strict {
        let list = findings();
        return Err(unreadable(&format!("strict decoding error: {}", list.join(", "))));
    }
    for path in &unknown {
        prune(object, path);
    }
    if validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    Ok(findings())
}

fn expect_string(map: &mut Map<String, Value>, field: &str, expected: &str) -> Result<(), ApiError> {
    match map.get(field) {
        Some(Value::String(found)) if found == expected => Ok(()),
        Some(Value::String(found)) if !found.is_empty() => Err(ApiError::bad_request(format!(
            "the {field} in the object ({found}) does not match the one that the path expects ({expected})"
        ))),
        None | Some(Value::Null | Value::String(_)) => {
            map.insert(field.to_owned(), Value::String(expected.to_owned()));
            Ok(())
        }
        Some(_) => Err(ApiError::bad_request(format!("{field} must be a string"))),
    }
}

/// The parts of metadata that the server itself works with must have their types, before any rule is asked.
fn check_metadata(map: &mut Map<String, Value>) -> Result<(), ApiError> {
    let metadata = match map.get_mut("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => {
            map.insert("metadata".to_owned(), Value::Object(Map::new()));
            return Ok(());
        }
        Some(_) => return Err(ApiError::bad_request("metadata must be an object")),
    };
    // An explicit null is the same as nothing.
    metadata.retain(|_, value| !value.is_null());
    for field in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
        if metadata.get(field).is_some_and(|v| !v.is_string()) {
            return Err(ApiError::bad_request(format!("metadata.{field} must be a string")));
        }
    }
    for field in ["labels", "annotations"] {
        let strings = |v: &Value| v.as_object().is_some_and(|m| m.values().all(Value::is_string));
        if metadata.get(field).is_some_and(|v| !strings(v)) {
            return Err(ApiError::bad_request(format!("metadata.{field} must be a map of strings")));
        }
    }
    let strings = |v: &Value| v.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    if metadata.get("finalizers").is_some_and(|v| !strings(v)) {
        return Err(ApiError::bad_request("metadata.finalizers must be a list of strings"));
    }
    let objects = |v: &Value| v.as_array().is_some_and(|list| list.iter().all(Value::is_object));
    if metadata.get("ownerReferences").is_some_and(|v| !objects(v)) {
        return Err(ApiError::bad_request("metadata.ownerReferences must be a list of objects"));
    }
    Ok(())
}

/// Removes the field at a path such as `spec.containers[0].imge`. Field names may themselves contain dots and
/// brackets; an unknown field is always the longest name that fits, because known names contain neither.
pub(super) fn prune(value: &mut Value, path: &str) -> bool {
    match value {
        Value::Object(map) => {
            if map.remove(path).is_some() {
                return true;
            }
            let fits = |key: &String| {
                let rest = path.strip_prefix(key.as_str())?;
                if rest.starts_with('[') { Some(rest) } else { rest.strip_prefix('.') }
            };
            let mut candidates: Vec<(usize, &str, &mut Value)> =
                map.iter_mut().filter_map(|(key, v)| fits(key).map(|rest| (key.len(), rest, v))).collect();
            candidates.sort_by_key(|(length, ..)| std::cmp::Reverse(*length));
            candidates.into_iter().any(|(_, rest, child)| prune(child, rest))
        }
        Value::Array(items) => {
            let Some((index, rest)) = path.strip_prefix('[').and_then(|p| p.split_once(']')) else {
                return false;
            };
            let rest = rest.strip_prefix('.').unwrap_or(rest);
            let item = index.parse().ok().and_then(|index: usize| items.get_mut(index));
            item.is_some_and(|item| prune(item, rest))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_pruned_by_path() {
        for (path, expected) in [
            ("spec.x", json!({"spec": {"list": [{"a": 1}, {"b": {"c.d": 1}}]}, "spec.y": 1})),
            ("spec.y", json!({"spec": {"x": 1, "list": [{"a": 1}, {"b": {"c.d": 1}}]}})),
            ("spec.list[0].a", json!({"spec": {"x": 1, "list": [{}, {"b": {"c.d": 1}}]}, "spec.y": 1})),
            ("spec.list[1].b.c.d", json!({"spec": {"x": 1, "list": [{"a": 1}, {"b": {}}]}, "spec.y": 1})),
            ("spec.list[7].b", json!({"spec": {"x": 1, "list": [{"a": 1}, {"b": {"c.d": 1}}]}, "spec.y": 1})),
            ("", json!({"spec": {"x": 1, "list": [{"a": 1}, {"b": {"c.d": 1}}]}, "spec.y": 1})),
        ] {
            let mut object = json!({"spec": {"x": 1, "list": [{"a": 1}, {"b": {"c.d": 1}}]}, "spec.y": 1});
            prune(&mut object, path);
            assert_eq!(object, expected, "{path:?}");
        }
    }

    #[test]
    fn bodies_are_json_or_yaml_objects() {
        assert_eq!(decode("application/json", br#"{"a":1}"#).unwrap(), json!({"a": 1}));
        assert_eq!(decode("application/yaml", b"a: 1\nb: [x]\n").unwrap(), json!({"a": 1, "b": ["x"]}));
        for (media_type, body, code) in [
            ("application/json", "{", 400),
            ("application/json", "[]", 400),
            ("application/json", "", 400),
            ("application/yaml", "a: [", 400),
            ("application/vnd.kubernetes.protobuf", "k8s", 400),
            ("text/plain", "x", 415),
        ] {
            assert_eq!(decode(media_type, body.as_bytes()).unwrap_err().code, code, "{media_type} {body:?}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(110), "]".repeat(110));
        assert_eq!(decode("application/json", deep.as_bytes()).unwrap_err().code, 400);
        let absurd = format!("{{\"a\":{}", "[".repeat(100_000));
        assert_eq!(decode("application/json", absurd.as_bytes()).unwrap_err().code, 400);
        assert_eq!(decode("application/yaml", absurd.as_bytes()).unwrap_err().code, 400);
    }
}
