//! Carries the plan out: the Secret that replicas share, the bundles in the configurations, the certificate that is
//! served.

use super::identity::{Identity, IdentityError};
use super::plan::{Shared, Step, Timing, step};
use super::secret;
use super::served::Served;
use crate::view::Key;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The pause after a change, whose effect is looked at sooner than others' changes.
const SOON: Duration = Duration::from_millis(500);
/// Who writes, as managed fields tell.
const MANAGER: &str = "tutti-webhooks";

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The Secret that replicas share; it is made if it is not there.
    pub secret: Key,
    /// The name of both configurations; those that are there get the bundle, none is made.
    pub configurations: String,
    /// Names and addresses by which API servers call.
    pub names: Vec<String>,
}

/// Why a round failed. Another one is tried later.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The API server did not do as asked.
    #[error("{what}: {source}")]
    Api {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// A certificate could not be made or used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

fn api(what: &'static str) -> impl Fn(kube::Error) -> KeeperError {
    move |source| KeeperError::Api { what, source: Box::new(source) }
}

/// Keeps certificates fresh. Every replica has one; they agree by the version of the Secret.
pub struct Keeper {
    client: Client,
    places: Places,
    timing: Timing,
    served: Arc<Served>,
    /// What was last seen with its bundle in place, and since when.
    trusted: Option<(Shared, Timestamp)>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Keeper {
    /// One that has seen nothing yet.
    pub fn new(client: Client, places: Places, timing: Timing, served: Arc<Served>) -> Self {
        Self { client, places, timing, served, trusted: None }
    }

    /// Looks again and again. Errors are told and outlived: what is served stays as it is.
    pub async fn run(mut self) {
        loop {
            let pause = match self.round(Timestamp::now()).await {
                Ok(true) => SOON.min(self.timing.poll),
                Ok(false) => self.timing.poll,
                Err(error) => {
                    tracing::warn!(%error, "certificates of the webhooks");
                    self.timing.poll
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Brings everything one step further, and says whether the Secret was changed.
    pub async fn round(&mut self, now: Timestamp) -> Result<bool, KeeperError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.places.secret.namespace);
        let stored =
            secrets.get_opt(&self.places.secret.name).await.map_err(api("cannot read the Secret"))?;
        let shared = stored.as_ref().and_then(secret::read);
        if let Some(shared) = &shared {
            self.served.set(shared.current.certified()?);
            self.publish(&shared.bundle()).await?;
            if self.trusted.as_ref().is_none_or(|(seen, _)| seen != shared) {
                self.trusted = Some((shared.clone(), now));
            }
        }
        let since =
            self.trusted.as_ref().filter(|(seen, _)| Some(seen) == shared.as_ref()).map(|(_, at)| *at);
        let fresh = || Identity::generate(&self.places.names, now, self.timing.valid_for);
        let next = match (step(shared.as_ref(), since, &self.places.names, now, &self.timing), shared) {
            (Step::Rest, _) => return Ok(false),
            (Step::Store(next), _) => *next,
            (Step::Introduce, Some(shared)) => Shared { next: Some(fresh()?), ..shared },
            (Step::Replace | Step::Introduce, _) => Shared::new(fresh()?),
        };
        let written = self.store(&secrets, stored.as_ref(), &next).await?;
        if written {
            tracing::info!(expires = %next.current.expires, rotating = next.next.is_some(),
                "certificates of the webhooks were changed");
        }
        Ok(written)
    }

    /// Writes what all are to share, unless somebody else wrote meanwhile; the next look tells.
    async fn store(
        &self,
        secrets: &Api<Secret>,
        stored: Option<&Secret>,
        next: &Shared,
    ) -> Result<bool, KeeperError> {
        let result = match stored {
            None => {
                let mut data = secret::data(next);
                if let Value::Object(data) = &mut data {
                    data.retain(|_, part| !part.is_null());
                }
                let new = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                    "metadata": {"name": self.places.secret.name}, "data": data,
                });
                let new = serde_json::from_value(new).map_err(kube::Error::SerdeError);
                match new {
                    Ok(new) => secrets.create(&post(), &new).await,
                    Err(error) => Err(error),
                }
            }
            Some(stored) => {
                let patch = json!({
                    "metadata": {
                        "uid": stored.metadata.uid, "resourceVersion": stored.metadata.resource_version,
                    },
                    "data": secret::data(next),
                });
                secrets.patch(&self.places.secret.name, &patch_params(), &Patch::Merge(patch)).await
            }
        };
        match result {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(api("cannot write the Secret")(error)),
        }
    }

    /// Has both configurations trust the bundle.
    async fn publish(&self, bundle: &str) -> Result<(), KeeperError> {
        let kinds = [
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ];
        for kind in kinds {
            let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
            let name = &self.places.configurations;
            let found = all.get_opt(name).await.map_err(api("cannot read a webhook configuration"))?;
            let Some(patch) = found.as_ref().and_then(|found| bundle_patch(found, bundle)) else { continue };
            all.patch(name, &patch_params(), &Patch::Strategic(patch))
                .await
                .map_err(api("cannot write the bundle into a webhook configuration"))?;
        }
        Ok(())
    }
}

/// The change by which a configuration trusts a bundle; `None` if it does.
fn bundle_patch(configuration: &DynamicObject, bundle: &str) -> Option<Value> {
    let bundle = json!(ByteString(bundle.as_bytes().to_vec()));
    let webhooks = configuration.data.get("webhooks").and_then(Value::as_array);
    let lacking: Vec<Value> = webhooks
        .into_iter()
        .flatten()
        .filter(|webhook| webhook.pointer("/clientConfig/caBundle") != Some(&bundle))
        .filter_map(|webhook| webhook.get("name"))
        .map(|name| json!({"name": name, "clientConfig": {"caBundle": bundle}}))
        .collect();
    let metadata = &configuration.metadata;
    (!lacking.is_empty()).then(|| {
        json!({
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "webhooks": lacking,
        })
    })
}

fn post() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_webhooks_that_trust_something_else_are_changed() {
        let configuration = |bundles: [&str; 2]| -> DynamicObject {
            let hook = |name: &str, bundle: &str| json!({"name": name, "clientConfig": {"caBundle": ByteString(bundle.as_bytes().to_vec())}});
            serde_json::from_value(json!({
                "metadata": {"name": "tutti", "uid": "u", "resourceVersion": "7"},
                "webhooks": [hook("one", bundles[0]), hook("two", bundles[1])],
            }))
            .unwrap()
        };
        assert_eq!(bundle_patch(&configuration(["new", "new"]), "new"), None);
        let patch = bundle_patch(&configuration(["new", "old"]), "new").unwrap();
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        assert_eq!(patch["webhooks"], json!([{"name": "two", "clientConfig": {"caBundle": "bmV3"}}]));
    }
}
