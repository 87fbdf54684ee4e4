//! What a deletion means for the objects that the deleted one owns.

use super::{metadata, rules};
use crate::error::{ApiError, Cause, CauseReason};
use crate::registry::Resource;
use serde_json::{Value, json};

/// Waits until all dependents that block are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Waits until all dependents are free.
pub(super) const ORPHAN: &str = "orphan";

/// When and whether dependents go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    /// After the owner.
    Background,
    /// Before the owner.
    Foreground,
    /// Not at all.
    Orphan,
}

impl Propagation {
    /// Reads a policy; nothing for an empty one.
    pub(super) fn parse(policy: &str) -> Result<Option<Self>, ApiError> {
        match policy {
            "" => Ok(None),
            "Background" => Ok(Some(Self::Background)),
            "Foreground" => Ok(Some(Self::Foreground)),
            "Orphan" => Ok(Some(Self::Orphan)),
            other => {
                let message = format!(
                    "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                );
                let cause = Cause::new(CauseReason::NotSupported, "propagationPolicy", message);
                Err(ApiError::invalid_options("DeleteOptions", vec![cause]))
            }
        }
    }

    fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        }
    }
}

/// The finalizers of an object that is being deleted: those that it has, and the one that the policy needs. An
/// object that already says what to do needs no policy, and some kinds have one of their own.
pub(super) fn finalizers(resource: &Resource, object: &Value, asked: Option<Propagation>) -> Vec<String> {
    let has = |name: &str| metadata::finalizers(object).any(|f| f == name);
    let policy = asked.unwrap_or_else(|| {
        if has(FOREGROUND) {
            Propagation::Foreground
        } else if has(ORPHAN) || rules::orphans_by_default(resource) && !metadata::is_terminating(object) {
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    });
    let others = metadata::finalizers(object).filter(|f| !matches!(*f, FOREGROUND | ORPHAN));
    others.chain(policy.finalizer()).map(str::to_owned).collect()
}

/// Writes the finalizers into an object.
pub(super) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if !finalizers.is_empty() {
        metadata::set(object, "finalizers", json!(finalizers));
    } else if let Some(metadata) = metadata::of_mut(object) {
        metadata.remove("finalizers");
    }
}
