//! What an API server asks, and what it is told: always yes, sometimes with a patch or a warning.

use super::knowledge::Knowledge;
use super::{advice, membership};
use crate::view::{Unread, View};
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation};
use kube::core::dynamic::DynamicObject;
use serde_json::Value;

/// Warnings of one answer; more tell nobody anything.
const WARNINGS_MAX: usize = 8;
/// Longer ones are cut by API servers.
const WARNING_CHARS_MAX: usize = 256;

/// The object that a review is about.
pub(super) type Object = View<Value, Unread>;

/// Which of the two webhooks is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Webhook {
    /// Pods become members of their groups.
    Membership,
    /// Groups that can never run are warned of.
    Advice,
}

/// Why a body is no review.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    /// It cannot be read.
    #[error("the body is not an AdmissionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is of another version, or asks nothing.
    #[error("want an AdmissionReview of admission.k8s.io/v1 with a request, found {kind} of {api_version}")]
    NoRequest { kind: String, api_version: String },
    /// A patch of ours could not be written.
    #[error("cannot write the patch: {0}")]
    Patch(String),
}

/// Reads a review and answers it.
pub(super) fn answer(
    webhook: Webhook,
    body: &[u8],
    knowledge: &Knowledge,
) -> Result<AdmissionReview<DynamicObject>, ReviewError> {
    let review: AdmissionReview<Object> = serde_json::from_slice(body)?;
    let (kind, api_version) = (review.types.kind.clone(), review.types.api_version.clone());
    let is_known = kind == "AdmissionReview" && api_version == "admission.k8s.io/v1";
    let request: AdmissionRequest<Object> = match review.try_into() {
        Ok(request) if is_known => request,
        _ => return Err(ReviewError::NoRequest { kind: short(&kind), api_version: short(&api_version) }),
    };
    let mut answer = AdmissionResponse::from(&request);
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if let Some(object) = &request.object
        && matches!(request.operation, Operation::Create | Operation::Update)
    {
        match webhook {
            Webhook::Membership => {
                let is_new_pod = request.kind.kind == "Pod" && request.operation == Operation::Create;
                if let Some(patch) =
                    is_new_pod.then(|| membership::patch(object, namespace, knowledge)).flatten()
                {
                    answer =
                        answer.with_patch(patch).map_err(|error| ReviewError::Patch(error.to_string()))?;
                }
            }
            Webhook::Advice => {
                let mut warnings = advice::warnings(&request.kind.kind, object, namespace, knowledge);
                warnings.truncate(WARNINGS_MAX);
                let warnings: Vec<String> = warnings.iter().map(|warning| printable(warning)).collect();
                answer.warnings = Some(warnings).filter(|warnings| !warnings.is_empty());
            }
        }
    }
    Ok(answer.into_review())
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A warning travels in a header: one line of a limited length.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WARNING_CHARS_MAX).collect()
}
