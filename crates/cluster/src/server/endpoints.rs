//! What is not about objects: health, version, discovery, schemas.

use super::accept::{DiscoveryForm, discovery_form};
use super::{ApiServer, method_not_allowed, reply};
use crate::discovery;
use crate::error::ApiError;
use crate::registry::{RESOURCES, Resource, api_version};
use crate::schema;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The version of Kubernetes whose interface is served.
const MINOR: &str = "37";

/// Schema documents, encoded once. They are generated from types and never change while the server runs.
#[derive(Debug, Default)]
pub(super) struct Documents {
    index: OnceLock<Bytes>,
    by_path: OnceLock<BTreeMap<String, Document>>,
}

#[derive(Debug)]
struct Document {
    body: Bytes,
    hash: String,
}

impl Documents {
    fn by_path(&self) -> &BTreeMap<String, Document> {
        self.by_path.get_or_init(|| {
            let mut documents = BTreeMap::new();
            for place in RESOURCES.iter().flat_map(Resource::places) {
                let root = if place.group.is_empty() { "api" } else { "apis" };
                let path = format!("{root}/{}", api_version(place.group, place.version));
                if !documents.contains_key(&path)
                    && let Some(document) = schema::openapi_document(&path)
                {
                    let body = Bytes::from(document.to_string());
                    let hash = fingerprint(&body);
                    documents.insert(path, Document { body, hash });
                }
            }
            documents
        })
    }

    /// The index, with the hash of each document in its address: clients keep documents as long as it stays.
    fn index(&self) -> Bytes {
        let make = || {
            let mut index = schema::openapi_index();
            if let Some(paths) = index.get_mut("paths").and_then(Value::as_object_mut) {
                for (path, entry) in paths {
                    if let Some(document) = self.by_path().get(path) {
                        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
                        *entry = json!({"serverRelativeURL": url});
                    }
                }
            }
            Bytes::from(index.to_string())
        };
        self.index.get_or_init(make).clone()
    }
}

/// A name for some bytes that changes when they do. Nothing relies on it against malice.
fn fingerprint(bytes: &[u8]) -> String {
    // FNV-1a, 64 bits.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016X}")
}

/// Answers a request whose path names no resource.
pub(super) fn answer(server: &ApiServer, request: &Request, parts: &[&str]) -> Result<Response, ApiError> {
    let known = |response: Response| {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            Ok(response)
        } else {
            Err(method_not_allowed())
        }
    };
    let found = |value: Option<Value>| match value {
        Some(value) => known(reply::json(200, &value)),
        None => Err(ApiError::no_such_path()),
    };
    match parts {
        [] => known(reply::json(200, &root())),
        ["healthz" | "livez" | "readyz"] => known(health(request)),
        ["version"] => known(reply::json(200, &version())),
        ["api"] => known(aggregated_or(request.headers(), true, discovery::core_versions)),
        ["apis"] => known(aggregated_or(request.headers(), false, discovery::group_list)),
        ["api", version] => found(discovery::resource_list("", version)),
        ["apis", group] => found(discovery::group(group)),
        ["apis", group, version] if !group.is_empty() => found(discovery::resource_list(group, version)),
        ["openapi", "v3"] => known(reply::body(200, reply::JSON, server.documents.index())),
        ["openapi", "v3", path @ ..] => known(document(server, request.headers(), &path.join("/"))?),
        _ => Err(ApiError::no_such_path()),
    }
}

fn root() -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for place in RESOURCES.iter().flat_map(Resource::places) {
        let root = if place.group.is_empty() { "/api" } else { "/apis" };
        paths.push(format!("{root}/{}", api_version(place.group, place.version)));
    }
    paths.extend(["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}

fn health(request: &Request) -> Response {
    let verbose =
        request.uri().query().is_some_and(|query| query.split('&').any(|p| p.starts_with("verbose")));
    let name = request.uri().path().trim_matches('/');
    let text = if verbose { format!("[+]store ok\n{name} check passed\n") } else { "ok".to_owned() };
    reply::body(200, "text/plain; charset=utf-8", text)
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.0+tutti"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn aggregated_or(headers: &HeaderMap, core: bool, plain: fn() -> Value) -> Response {
    match discovery_form(headers) {
        DiscoveryForm::Plain => reply::json(200, &plain()),
        DiscoveryForm::Aggregated(version) => {
            let media_type =
                format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
            let document = discovery::aggregated(core, version);
            reply::body(200, &media_type, document.to_string())
        }
    }
}

fn document(server: &ApiServer, headers: &HeaderMap, path: &str) -> Result<Response, ApiError> {
    let document = server.documents.by_path().get(path).ok_or_else(ApiError::no_such_path)?;
    let etag = format!("\"{}\"", document.hash);
    let same = headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes());
    let mut response = if same {
        reply::body(304, reply::JSON, Bytes::new())
    } else {
        reply::body(200, reply::JSON, document.body.clone())
    };
    if let Ok(value) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, value);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Ok(response)
}
