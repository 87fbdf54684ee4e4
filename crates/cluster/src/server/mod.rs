//! The API server: Kubernetes' HTTP interface over the store.
//!
//! A request passes these layers: `route` finds out what it is about; `resources` takes HTTP apart – verbs,
//! media types, options; `create`, `update`, `delete` and `pods` hold the rules of writes, `list` and `watch`
//! those of reads; and what a kind decides for itself is asked of [`crate::kinds`]. No kind has a handler of
//! its own. The janitor does what nobody asks for: it collects what lost its owners, its namespace or its
//! time.

mod accept;
mod addresses;
mod admission;
mod apply;
mod body;
mod collector;
mod commit;
mod create;
mod definitions;
mod delete;
mod duplicates;
mod endpoints;
mod eviction;
mod expiry;
mod janitor;
mod list;
mod managers;
mod metadata;
mod path;
mod pods;
mod propagation;
mod protobuf;
mod query;
mod remains;
mod reply;
mod resources;
mod rules;
mod scale;
mod service_accounts;
mod update;
mod watch;
mod yaml;

pub use janitor::{Janitor, run_janitor};

pub(crate) use body::DEPTH_MAX;

use crate::error::ApiError;
use crate::registry::{Catalog, Release};
use crate::store::{Environment, Limits, MemoryStore, Store, SystemEnvironment};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::FutureExt as _;
use http::{Method, Uri};
use path::Target;
use query::FieldValidation;
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Settings of an API server.
#[derive(Clone)]
pub struct Options {
    /// How much of the past watchers can ask for.
    pub limits: Limits,
    /// How often a watch that allows it tells a client how far it is.
    pub bookmark_interval: Duration,
    /// Clock, identities and chance.
    pub environment: Arc<dyn Environment>,
    /// The Kubernetes that is served.
    pub release: Release,
    /// Whether pod groups are served, and what they are made of.
    pub workload_apis: bool,
    /// Whether namespaces have a service account, and pods run as one.
    pub service_accounts: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            bookmark_interval: Duration::from_secs(60),
            environment: Arc::new(SystemEnvironment),
            release: Release::default(),
            workload_apis: true,
            service_accounts: true,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("bookmark_interval", &self.bookmark_interval)
            .field("release", &self.release)
            .finish_non_exhaustive()
    }
}

/// How a write is to be done.
#[derive(Debug, Clone, Copy)]
struct WriteOptions<'a> {
    /// Do everything but the write.
    dry_run: bool,
    validation: FieldValidation,
    /// Who writes, as managed fields name it.
    manager: &'a str,
}

impl WriteOptions<'static> {
    /// Of a write that the cluster does on its own.
    fn of_the_cluster() -> Self {
        Self { dry_run: false, validation: FieldValidation::Ignore, manager: managers::SYSTEM }
    }
}

/// The API server.
#[derive(Debug)]
pub struct ApiServer {
    store: Arc<dyn Store>,
    options: Options,
    catalog: Catalog,
    /// Held while a write of a definition takes effect.
    serving_definitions: std::sync::Mutex<()>,
    closing: tokio::sync::watch::Sender<bool>,
}

impl ApiServer {
    /// A server over a new store that holds nothing but the namespaces and priority classes that every
    /// cluster has.
    pub fn new(options: Options) -> Arc<Self> {
        let catalog = Catalog::new(options.release);
        let server = Arc::new(Self {
            store: Arc::new(MemoryStore::new(options.limits, Arc::clone(&options.environment))),
            catalog: if options.workload_apis { catalog } else { catalog.without_workload_apis() },
            serving_definitions: std::sync::Mutex::default(),
            options,
            closing: tokio::sync::watch::Sender::new(false),
        });
        server.create_namespaces();
        server.create_system_classes();
        server
    }

    /// The objects.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Ends all watches, and those to come at once. Lets a listener shut down that waits for its connections.
    pub fn close_watches(&self) {
        self.closing.send_replace(true);
    }

    fn create_namespaces(&self) {
        let Some(id) = rules::namespaces() else { return };
        let options = WriteOptions::of_the_cluster();
        for name in rules::BOOTSTRAP_NAMESPACES {
            let target =
                Target { id, version: id.resource().hub, namespace: String::new(), name: None, sub: None };
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            });
            if let Err(error) = self.create(&target, namespace, options, None) {
                tracing::error!(namespace = name, %error, "a namespace of the cluster could not be made");
            }
        }
    }
}

/// The whole HTTP interface. It is a tower service: serve it on a socket, or give it to a client directly.
pub fn router(server: Arc<ApiServer>) -> Router {
    Router::new().fallback(dispatch).with_state(server)
}

async fn dispatch(State(server): State<Arc<ApiServer>>, request: Request) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let in_yaml = accept::prefers_yaml(request.headers());
    let response = match survived(&method, &uri, route(&server, request)).await {
        Ok(response) => response,
        Err(error) => reply::error(&error),
    };
    if in_yaml { yaml::of_json(response).await } else { response }
}

/// Lets no defect of ours end more than the request that met it: others share its connection.
async fn survived<T>(
    method: &Method,
    uri: &Uri,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    // The store writes as a whole or not at all, so that nothing half-done can be seen after a panic.
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(%method, %uri, "a request met a defect of the server");
        Err(ApiError::new(
            500,
            "InternalError",
            "the server has a defect that this request has met; see its log",
        ))
    })
}

async fn route(server: &Arc<ApiServer>, request: Request) -> Result<Response, ApiError> {
    let segments = path::segments(request.uri().path())?;
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, _, ..] => ("", *version, segments.get(2..)),
        ["apis", group, version, _, ..] if !group.is_empty() => (*group, *version, segments.get(3..)),
        other => return endpoints::answer(server, &request, other),
    };
    let rest = rest.unwrap_or_default();
    // The older way to ask for a watch, and the only one that names a single object.
    let watched = rest.first().filter(|first| *first == "watch").and_then(|_| rest.get(1..));
    let target = Target::parse(&server.catalog, group, version, watched.unwrap_or(rest));
    let target = target.ok_or_else(ApiError::no_such_path)?;
    if watched.is_some() {
        return resources::watch(server, target, &request);
    }
    resources::answer(server, target, request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_only_the_request_that_met_it() {
        let defect = async { if true { panic!("on purpose") } else { Ok(()) } };
        let (method, uri) = (Method::GET, Uri::from_static("/x"));
        let error = survived(&method, &uri, defect).await.unwrap_err();
        assert_eq!((error.code, error.reason), (500, "InternalError"));
        assert_eq!(survived(&method, &uri, async { Ok(7) }).await, Ok(7));
    }
}
