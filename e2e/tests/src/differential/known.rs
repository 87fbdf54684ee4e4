//! Disagreements that are explained, each with its reason. `docs/differences.md` tells people.

use super::generate::{PREFERRED, Question, REQUIRED};
use super::{Disagreement, Topic};
use crate::release::Release;
use serde_json::Value;
use tutti_engine::score::Aspect;

/// Why kube-scheduler of this release may answer otherwise, if a reason is known.
pub(super) fn explanation(
    release: Release,
    question: &Question,
    found: &Disagreement,
) -> Option<&'static str> {
    if release == Release::V1_36 && excludes_namespaces(question) {
        return Some("a namespaceSelector that only excludes selects every namespace in 1.36");
    }
    if found.about != Topic::Score(Aspect::ResourcesFit.plugin().to_owned()) {
        return None;
    }
    if !question.pod["spec"]["resources"]["requests"].is_null() {
        return Some("the score of NodeResourcesFit overlooks what a pod asks for as a whole");
    }
    let is_resized = |pod: &Value| !pod["status"]["containerStatuses"].is_null();
    (release == Release::V1_36 && question.pods.iter().any(is_resized))
        .then_some("1.36 does not pad a container without requests that a resize has given some")
}

/// True if one of the pod's terms about other pods excludes namespaces and selects none.
fn excludes_namespaces(question: &Question) -> bool {
    let affinity = &question.pod["spec"]["affinity"];
    let rules = ["podAffinity", "podAntiAffinity"].map(|field| &affinity[field]);
    let mut terms = rules.into_iter().flat_map(|rules| {
        let required = rules[REQUIRED].as_array().into_iter().flatten();
        let preferred = rules[PREFERRED].as_array().into_iter().flatten();
        required.chain(preferred.map(|wish| &wish["podAffinityTerm"]))
    });
    terms.any(|term: &Value| {
        let expressions = term["namespaceSelector"]["matchExpressions"].as_array();
        let negative =
            |expression: &Value| matches!(expression["operator"].as_str(), Some("NotIn" | "DoesNotExist"));
        expressions.is_some_and(|expressions| expressions.iter().all(negative))
    })
}
