//! What is not about objects: health, version, discovery, schemas.

use super::accept::{DiscoveryForm, discovery_form};
use super::{ApiServer, reply};
use crate::discovery;
use crate::error::ApiError;
use crate::registry::{Catalog, Release, Resource, api_version};
use crate::schema;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

/// Answers a request whose path names no resource.
pub(super) fn answer(server: &ApiServer, request: &Request, parts: &[&str]) -> Result<Response, ApiError> {
    let known = |response: Response| {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            Ok(response)
        } else {
            Err(ApiError::method_not_allowed())
        }
    };
    let found = |value: Option<Value>| match value {
        Some(value) => known(reply::json(200, &value)),
        None => Err(ApiError::no_such_path()),
    };
    let catalog = &server.catalog;
    match parts {
        [] => known(reply::json(200, &root(catalog))),
        ["healthz" | "livez" | "readyz"] => known(health(request)),
        ["version"] => known(reply::json(200, &version(catalog.release()))),
        ["api"] => known(aggregated_or(catalog, request.headers(), true, discovery::core_versions)),
        ["apis"] => known(aggregated_or(catalog, request.headers(), false, discovery::group_list)),
        ["api", version] => found(discovery::resource_list(catalog, "", version)),
        ["apis", group] => found(discovery::group(catalog, group)),
        ["apis", group, version] if !group.is_empty() => {
            found(discovery::resource_list(catalog, group, version))
        }
        ["openapi", "v3"] => known(reply::json(200, &openapi_index(catalog))),
        ["openapi", "v3", path @ ..] => known(document(catalog, request.headers(), &path.join("/"))?),
        _ => Err(ApiError::no_such_path()),
    }
}

/// True if something is served under the path of a document.
fn is_served(catalog: &Catalog, path: &str) -> bool {
    catalog.resources().flat_map(Resource::places).any(|place| match place.group {
        "" => path.strip_prefix("api/") == Some(place.version),
        group => path.strip_prefix("apis/") == Some(&*api_version(group, place.version)),
    })
}

/// The list of all documents, with the hash of each in its address.
fn openapi_index(catalog: &Catalog) -> Value {
    let custom = catalog.custom_documents();
    let paths: Map<String, Value> = schema::openapi_documents(catalog.release())
        .iter()
        .filter(|(path, _)| is_served(catalog, path))
        .chain(&custom)
        .map(|(path, document)| {
            let url = format!("/openapi/v3/{path}?hash={}", document.hash);
            (path.clone(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

fn root(catalog: &Catalog) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for place in catalog.resources().flat_map(Resource::places) {
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

fn version(release: Release) -> Value {
    let minor = release.minor();
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "gitVersion": format!("v1.{minor}.0+tutti"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn aggregated_or(
    catalog: &Catalog,
    headers: &HeaderMap,
    core: bool,
    plain: fn(&Catalog) -> Value,
) -> Response {
    match discovery_form(headers) {
        DiscoveryForm::Plain => reply::json(200, &plain(catalog)),
        DiscoveryForm::Aggregated(version) => {
            let media_type =
                format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
            let document = discovery::aggregated(catalog, core, version);
            reply::body(200, &media_type, document.to_string())
        }
    }
}

fn document(catalog: &Catalog, headers: &HeaderMap, path: &str) -> Result<Response, ApiError> {
    let built_in =
        schema::openapi_documents(catalog.release()).get(path).filter(|_| is_served(catalog, path)).cloned();
    let document = built_in.or_else(|| catalog.custom_documents().remove(path));
    let document = document.ok_or_else(ApiError::no_such_path)?;
    let etag = format!("\"{}\"", document.hash);
    let same = headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes());
    let mut response = if same {
        reply::body(304, reply::JSON, Bytes::new())
    } else {
        reply::body(200, reply::JSON, document.text.clone())
    };
    if let Ok(value) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, value);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Ok(response)
}
