//! Disagreements that are explained, each with its reason. `docs/differences.md` tells people.

use super::generate::Question;
use crate::release::Release;
use serde_json::Value;

/// Why kube-scheduler of this release may answer otherwise, if a reason is known.
pub(super) fn explanation(release: Release, question: &Question) -> Option<&'static str> {
    let affinity = &question.pod["spec"]["affinity"];
    let mut terms = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|field| {
        let terms = &affinity[field]["requiredDuringSchedulingIgnoredDuringExecution"];
        terms.as_array().into_iter().flatten()
    });
    let excludes = |term: &Value| {
        let expressions = term["namespaceSelector"]["matchExpressions"].as_array();
        let negative =
            |expression: &Value| matches!(expression["operator"].as_str(), Some("NotIn" | "DoesNotExist"));
        expressions.is_some_and(|expressions| expressions.iter().all(negative))
    };
    (release == Release::V1_36 && terms.any(excludes))
        .then_some("a namespaceSelector that only excludes selects every namespace in 1.36")
}
