//! A webhook that is asked about every binding of a story, and has something done before it lets one pass.

use crate::certificates::Certificates;
use crate::world::World;
use anyhow::Context as _;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use futures::future::BoxFuture;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What is done before a pod is bound to a node, by the names of both.
pub(super) type BeforeBinding =
    Arc<dyn Fn(String, String) -> BoxFuture<'static, anyhow::Result<()>> + Send + Sync>;

/// How the story calls what runs beside it.
const TASK: &str = "hook";

/// Has something done before every binding in the namespace of the story, until [`remove`].
pub(super) async fn install(world: &World<'_>, before: BeforeBinding) -> anyhow::Result<()> {
    let certificates = Certificates::generate(world.folder.join("hook"))?;
    let (certificate, key) = certificates.server();
    let chain = CertificateDer::pem_file_iter(&certificate)?.collect::<Result<Vec<_>, _>>()?;
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&key)?)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("https://{}/", listener.local_addr()?);
    let router = Router::new().route("/", post(review)).with_state(before);
    world.spawn(TASK, |ended| async move {
        let (end, shutdown) = watch::channel(false);
        let serving = tutti_http::tls::serve(listener, Arc::new(tls), router, shutdown);
        let ending = async {
            ended.await;
            drop(end);
        };
        tokio::join!(serving, ending);
        Ok(())
    })?;
    let authority = std::fs::read(certificates.authority())?;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": world.namespace},
        "webhooks": [{
            "name": "bindings.e2e.tutti.dev", "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun",
            "clientConfig": {"url": url, "caBundle": k8s_openapi::ByteString(authority)},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                       "resources": ["pods/binding"]}],
        }],
    });
    world.kubectl(&["create", "-f", "-"], &configuration.to_string()).await?;
    Ok(())
}

/// Nobody is asked any more.
pub(super) async fn remove(world: &World<'_>) -> anyhow::Result<()> {
    let arguments = ["delete", "validatingwebhookconfiguration", &world.namespace, "--ignore-not-found"];
    world.kubectl(&arguments, "").await?;
    world.stop(TASK).await
}

async fn review(
    State(before): State<BeforeBinding>,
    Json(review): Json<Value>,
) -> Result<Json<Value>, (StatusCode, String)> {
    let bad = |error: anyhow::Error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"));
    let text = |path: &str| {
        let found = review.pointer(path).and_then(Value::as_str).map(str::to_owned);
        found.with_context(|| format!("{path} is missing in {review}")).map_err(bad)
    };
    let (uid, pod, node) =
        (text("/request/uid")?, text("/request/name")?, text("/request/object/target/name")?);
    before(pod, node).await.map_err(bad)?;
    Ok(Json(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true},
    })))
}
