//! The rights that `deploy/` gives to the scheduler. In every story it has these and no others, so that whatever it has to
//! do anywhere is something that it may do in a real cluster.

use crate::kubectl::Kubectl;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Where the manifests put things.
pub(crate) const NAMESPACE: &str = "tutti-system";
/// Under this name the API server knows the scheduler.
pub(crate) const SCHEDULER: &str = "system:serviceaccount:tutti-system:tutti-scheduler";

/// Longer than all stories of a release take.
const TOKEN_DURATION: &str = "4h";

/// Something under `deploy/`.
pub(crate) fn deploy(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path).display().to_string()
}

/// Gives an account of `deploy/` its rights, and gives a token of it.
pub(crate) async fn grant(kubectl: &Kubectl, manifest: &str, account: &str) -> anyhow::Result<String> {
    kubectl.run(NAMESPACE, &["apply", "-f", &deploy("base/namespace.yaml")], "").await?;
    kubectl.run(NAMESPACE, &["apply", "-f", &deploy(manifest)], "").await?;
    let duration = format!("--duration={TOKEN_DURATION}");
    let token = kubectl.run(NAMESPACE, &["create", "token", account, &duration], "").await?;
    Ok(token.trim().to_owned())
}

/// Gives the scheduler its rights, and gives a token of it.
pub(crate) async fn grant_scheduler(kubectl: &Kubectl) -> anyhow::Result<String> {
    grant(kubectl, "base/rbac.yaml", "tutti-scheduler").await
}

/// Takes away what [`grant_scheduler`] made.
pub(crate) async fn revoke_scheduler(kubectl: &Kubectl) -> anyhow::Result<()> {
    kubectl.run(NAMESPACE, &["delete", "-f", &deploy("base/rbac.yaml")], "").await?;
    kubectl.run(NAMESPACE, &["delete", "namespace", NAMESPACE, "--wait=false"], "").await?;
    Ok(())
}

/// Writes a kubeconfig as another one, but with a token.
pub(crate) fn kubeconfig_with(kubeconfig: &Path, token: &str, path: PathBuf) -> anyhow::Result<PathBuf> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let mut config: Value = serde_saphyr::from_str(&text).context("the kubeconfig is not YAML")?;
    let users = config["users"].as_array_mut().context("the kubeconfig has no users")?;
    for user in users {
        user["user"] = json!({"token": token});
    }
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}
