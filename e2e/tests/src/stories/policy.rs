//! Admission policies: how a cluster refuses what its API would take.

use crate::wait::eventually;
use crate::world::World;
use kube::Error;
use serde_json::{Value, json};
use std::future::Future;

/// A policy about requests in the namespace of the story. It belongs to no namespace itself.
pub(super) struct Policy<'a> {
    world: &'a World<'a>,
    name: String,
}

impl<'a> Policy<'a> {
    /// Refuses what does not satisfy an expression. `operation` and `resource` are what it is about, and `user` who.
    pub(super) async fn create(
        world: &'a World<'a>,
        (operation, resource): (&str, &str),
        user: Option<&str>,
        expression: &str,
    ) -> anyhow::Result<Self> {
        let name = format!("{}-{}", world.namespace, operation.to_lowercase());
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]});
        let here = json!({"matchLabels": {"kubernetes.io/metadata.name": world.namespace}});
        let conditions: Vec<Value> = user
            .iter()
            .map(|user| json!({"name": "user", "expression": format!("request.userInfo.username == '{user}'")}))
            .collect();
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"failurePolicy": "Fail", "matchConditions": conditions,
                     "matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]},
                     "validations": [{"expression": expression, "message": "refused by the story"}]},
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        for object in [policy, binding] {
            world.kubectl(&["create", "-f", "-"], &object.to_string()).await?;
        }
        Ok(Self { world, name })
    }

    /// API servers take a moment to heed a policy: waits until one refuses a request that changes nothing.
    pub(super) async fn wait_heeded<F>(&self, request: impl Fn() -> F) -> anyhow::Result<()>
    where
        F: Future<Output = Result<(), Error>>,
    {
        eventually(&format!("policy {} is heeded", self.name), || async {
            Ok(match request().await {
                Err(Error::Api(status)) if status.message.contains("refused by the story") => Ok(()),
                other => Err(format!("{other:?}")),
            })
        })
        .await
    }

    pub(super) async fn remove(&self) -> anyhow::Result<()> {
        for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
            self.world.kubectl(&["delete", kind, &self.name, "--ignore-not-found"], "").await?;
        }
        Ok(())
    }
}
