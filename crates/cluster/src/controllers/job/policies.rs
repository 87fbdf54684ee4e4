//! What a Job says about failures that are special, and about successes that are enough.

use super::indexes::Indexes;
use super::view::{ExitCodes, FailurePolicy, FailureRule, SuccessPolicy};
use tutti_controllers::PodView;

/// What a failure policy makes of a failed pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts towards the backoff limit.
    Counts,
    /// It does not.
    Ignored,
    /// The Job has failed, for this reason.
    FailsJob(String),
}

/// Judges a failed pod.
pub(super) fn judge(policy: Option<&FailurePolicy>, pod: &PodView) -> Verdict {
    if pod.status.phase.0 != "Failed" {
        return Verdict::Counts;
    }
    for (position, rule) in policy.iter().flat_map(|policy| &policy.rules).enumerate() {
        let Some(what) = matching(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignored,
            "FailJob" => Verdict::FailsJob(format!(
                "{what} for pod {} matching FailJob rule at index {position}",
                pod.key()
            )),
            _ => Verdict::Counts,
        };
    }
    Verdict::Counts
}

/// What of the pod a rule is about, if it is.
fn matching(rule: &FailureRule, pod: &PodView) -> Option<String> {
    if let Some(codes) = &rule.on_exit_codes {
        return matching_exit_code(codes, pod);
    }
    rule.on_pod_conditions.iter().find_map(|pattern| {
        let status = pattern.status.as_deref().unwrap_or("True");
        let conditions = &pod.status.conditions.0;
        conditions
            .iter()
            .any(|condition| condition.kind == pattern.kind && condition.status == status)
            .then(|| format!("Condition {}", pattern.kind))
    })
}

fn matching_exit_code(codes: &ExitCodes, pod: &PodView) -> Option<String> {
    let containers = pod.status.container_statuses.0.iter().chain(&pod.status.init_container_statuses.0);
    containers
        .filter(|container| codes.container_name.as_ref().is_none_or(|name| *name == container.name))
        .find_map(|container| {
            let code = container.state.terminated.as_ref()?.exit_code;
            let listed = codes.values.contains(&code);
            // A container that ended well is no reason for anything.
            let matches = code != 0 && if codes.operator == "NotIn" { !listed } else { listed };
            matches.then(|| format!("Container {} failed with exit code {code}", container.name))
        })
}

/// Why the successes so far are enough, if they are.
pub(super) fn enough(
    policy: Option<&SuccessPolicy>,
    succeeded: &Indexes,
    completions: u32,
) -> Option<String> {
    for (position, rule) in policy?.rules.iter().enumerate() {
        let wanted = rule.succeeded_indexes.as_ref().map(|text| Indexes::parse(text, completions));
        let counted = match &wanted {
            Some(wanted) => wanted.common(succeeded),
            None => succeeded.len(),
        };
        let needed = rule.succeeded_count.or(wanted.as_ref().map(Indexes::len));
        if needed.is_some_and(|needed| counted >= needed) {
            return Some(format!("Matched rules at index {position}"));
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // Values that are written in place read better without ampersands.
mod tests {
    use super::*;
    use serde_json::json;

    fn failed(code: i32) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a"},
            "status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}]},
        }))
        .unwrap()
    }

    fn policy(rules: serde_json::Value) -> FailurePolicy {
        serde_json::from_value(json!({"rules": rules})).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = policy(json!([
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        ]));
        assert_eq!(
            judge(Some(&rules), &failed(42)),
            Verdict::FailsJob(
                "Container main failed with exit code 42 for pod a/p matching FailJob rule at index 0"
                    .to_owned()
            )
        );
        assert_eq!(judge(Some(&rules), &failed(1)), Verdict::Ignored);
        assert_eq!(judge(None, &failed(1)), Verdict::Counts);
        let others =
            policy(json!([{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1]}}]));
        assert_eq!(judge(Some(&others), &failed(1)), Verdict::Counts);
        assert!(matches!(judge(Some(&others), &failed(2)), Verdict::FailsJob(_)));
        assert_eq!(judge(Some(&others), &failed(0)), Verdict::Counts, "a container that ended well");
    }

    #[test]
    fn some_successes_can_be_enough() {
        let done = Indexes::parse("0,2-4", 10);
        let policy = |rules| serde_json::from_value::<SuccessPolicy>(json!({"rules": rules})).unwrap();
        for (rule, met) in [
            (json!({"succeededIndexes": "2-4"}), true),
            (json!({"succeededIndexes": "1-4"}), false),
            (json!({"succeededIndexes": "1-4", "succeededCount": 3}), true),
            (json!({"succeededCount": 4}), true),
            (json!({"succeededCount": 5}), false),
        ] {
            assert_eq!(enough(Some(&policy(json!([rule]))), &done, 10).is_some(), met, "{rule}");
        }
        assert_eq!(enough(None, &done, 10), None);
    }
}
