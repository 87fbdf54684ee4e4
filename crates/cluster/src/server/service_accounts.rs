//! Service accounts: every namespace has one, and every pod runs as one.

use super::path::Target;
use super::{ApiServer, WriteOptions, metadata};
use crate::error::ApiError;
use crate::registry::{Resource, ResourceId};
use crate::store::Key;
use serde_json::{Value, json};

/// The account of pods that name none.
const DEFAULT: &str = "default";

fn accounts() -> Option<ResourceId> {
    ResourceId::of_kind("", "ServiceAccount")
}

impl ApiServer {
    /// Gives a new namespace its account.
    pub(super) fn create_default_account(&self, namespace: &str) {
        let Some(id) = accounts().filter(|_| self.options.service_accounts) else { return };
        let target =
            Target { id, version: id.resource().hub, namespace: namespace.to_owned(), name: None, sub: None };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT}});
        let options = WriteOptions::of_the_cluster();
        if let Err(error) = self.create(&target, account, options, None) {
            tracing::debug!(namespace, %error, "the namespace did not get its service account");
        }
    }

    /// Gives a new pod its account, which must exist.
    pub(super) fn admit_account(&self, resource: &Resource, pod: &mut Value) -> Result<(), ApiError> {
        let Some(id) = accounts().filter(|_| self.options.service_accounts) else { return Ok(()) };
        let (name, namespace) =
            (metadata::text(pod, "name").to_owned(), metadata::text(pod, "namespace").to_owned());
        let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
        let asked = spec.get("serviceAccountName").and_then(Value::as_str).filter(|name| !name.is_empty());
        let account = asked.unwrap_or(DEFAULT).to_owned();
        if self.store.get(id, &Key::new(&namespace, &account)).is_none() {
            let why = format!(
                "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
            );
            return Err(ApiError::forbidden(resource, &name, &why));
        }
        for field in ["serviceAccountName", "serviceAccount"] {
            spec.insert(field.to_owned(), json!(account));
        }
        Ok(())
    }
}
