//! The status of disruption budgets: how many pods may be evicted now.

use super::conditions::{self, Says};
use super::share::{Round, share};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{ApiResource, Selector, SelectorExt as _};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tutti_controllers::{Action, Checked, Edit, Loose, Plan, PodView, View, is_ready};

/// A pod that was to be evicted and is still there after this time is counted again.
const EVICTION_TAKES_MAX: SignedDuration = SignedDuration::from_secs(120);

/// A PodDisruptionBudget.
pub(crate) type BudgetView = View<Checked<BudgetSpec>, Loose<BudgetStatus>>;

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct BudgetSpec {
    selector: Option<LabelSelector>,
    min_available: Option<Value>,
    max_unavailable: Option<Value>,
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct BudgetStatus {
    observed_generation: i64,
    current_healthy: u32,
    desired_healthy: u32,
    expected_pods: u32,
    disruptions_allowed: u32,
    disrupted_pods: BTreeMap<String, String>,
    conditions: Vec<Value>,
}

/// The resource of budgets.
pub(super) fn budgets() -> Arc<ApiResource> {
    Arc::new(ApiResource::erase::<PodDisruptionBudget>(&()))
}

/// True if a budget is about a pod of its namespace.
pub(super) fn covers(budget: &BudgetView, pod: &PodView) -> bool {
    let selector = budget.spec.0.as_ref().ok().and_then(|spec| spec.selector.clone());
    let Some(Ok(selector)) = selector.map(Selector::try_from) else {
        return false;
    };
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    selector.matches(pod.metadata.labels.as_ref().unwrap_or(&NO_LABELS))
}

/// What is to be done about a budget, given the pods that it [covers] and, for each of them, its controller and how
/// many pods that wants.
pub(super) fn plan(
    budget: &BudgetView,
    pods: &[&PodView],
    controller_of: impl Fn(&PodView) -> Result<Option<(String, u32)>, String>,
    resource: &Arc<ApiResource>,
    now: Timestamp,
) -> Plan {
    let Ok(spec) = &budget.spec.0 else {
        return Plan::nothing();
    };
    let mut plan = Plan::nothing();
    let before = &budget.status.0;
    let mut status = before.clone();
    status.observed_generation = budget.metadata.generation.unwrap_or(0);
    match expectation(spec, pods, controller_of) {
        Ok((expected, desired)) => {
            status.disrupted_pods = still_leaving(before, pods, now, &mut plan);
            let healthy = pods.iter().filter(|pod| {
                !pod.is_terminating() && is_ready(pod) && !status.disrupted_pods.contains_key(pod.name())
            });
            status.current_healthy = u32::try_from(healthy.count()).unwrap_or(u32::MAX);
            status.expected_pods = expected;
            status.desired_healthy = desired;
            let spare = status.current_healthy.saturating_sub(desired);
            status.disruptions_allowed = if expected == 0 { 0 } else { spare };
            let (state, reason) = if spare > 0 && expected > 0 {
                ("True", "SufficientPods")
            } else {
                ("False", "InsufficientPods")
            };
            note(&mut status, state, reason, "", now);
        }
        Err(message) => {
            status.disruptions_allowed = 0;
            note(&mut status, "False", "SyncFailed", &message, now);
        }
    }
    if status != *before {
        plan.actions.push(Action::patch(resource, budget.key(), Edit::status(patch(budget, &status))));
    }
    plan
}

fn note(status: &mut BudgetStatus, state: &str, reason: &str, message: &str, now: Timestamp) {
    let says = Says { kind: "DisruptionAllowed", status: state, reason, message };
    conditions::set(&mut status.conditions, says, &[], now);
    let generation = status.observed_generation;
    for condition in status.conditions.iter_mut().filter_map(Value::as_object_mut) {
        condition.insert("observedGeneration".to_owned(), json!(generation));
    }
}

/// How many pods there should be, and how many of them healthy.
fn expectation(
    spec: &BudgetSpec,
    pods: &[&PodView],
    controller_of: impl Fn(&PodView) -> Result<Option<(String, u32)>, String>,
) -> Result<(u32, u32), String> {
    if let (None, Some(number)) = (&spec.max_unavailable, spec.min_available.as_ref().and_then(Value::as_u64))
    {
        let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        return Ok((count, u32::try_from(number).unwrap_or(u32::MAX)));
    }
    let mut sizes: BTreeMap<String, u32> = BTreeMap::new();
    for pod in pods {
        sizes.extend(controller_of(pod)?);
    }
    let expected = sizes.values().fold(0_u32, |sum, size| sum.saturating_add(*size));
    let desired = match (&spec.max_unavailable, &spec.min_available) {
        (Some(rule), _) => expected.saturating_sub(share(rule, expected, Round::Up)),
        (None, Some(rule)) => share(rule, expected, Round::Up),
        (None, None) => 0,
    };
    Ok((expected, desired))
}

/// Pods whose eviction was granted and that have not gone yet.
fn still_leaving(
    before: &BudgetStatus,
    pods: &[&PodView],
    now: Timestamp,
    plan: &mut Plan,
) -> BTreeMap<String, String> {
    let mut leaving = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
        let Some(since) = before.disrupted_pods.get(pod.name()) else { continue };
        let granted: Timestamp = since.parse().unwrap_or(Timestamp::MIN);
        let due = granted.checked_add(EVICTION_TAKES_MAX).unwrap_or(Timestamp::MAX);
        if now < due {
            plan.again_at(due);
            leaving.insert(pod.name().to_owned(), since.clone());
        }
    }
    leaving
}

fn patch(budget: &BudgetView, status: &BudgetStatus) -> Value {
    // A merge keeps what it does not mention, so pods that are no longer leaving are taken out by name.
    let gone =
        budget.status.0.disrupted_pods.keys().filter(|name| !status.disrupted_pods.contains_key(*name));
    let mut disrupted: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    disrupted.extend(status.disrupted_pods.iter().map(|(name, since)| (name.clone(), json!(since))));
    let mut fields = json!({
        "observedGeneration": status.observed_generation,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "disruptionsAllowed": status.disruptions_allowed,
        "conditions": status.conditions,
    });
    if !disrupted.is_empty() {
        fields["disruptedPods"] = disrupted.into();
    }
    json!({"metadata": {"uid": budget.uid(), "resourceVersion": budget.version()}, "status": fields})
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // Values that are written in place read better without ampersands.
mod tests {
    use super::*;

    fn budget(spec: Value, status: Value) -> BudgetView {
        serde_json::from_value(json!({
            "metadata": {"name": "b", "namespace": "a", "uid": "u", "resourceVersion": "1", "generation": 2},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn pod(name: &str, ready: bool) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a", "labels": {"app": "web"}},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": if ready { "True" } else { "False" }}
            ]},
        }))
        .unwrap()
    }

    /// What is written about four pods, three of them ready, of a controller that wants five.
    fn written(spec: Value, status: Value) -> Value {
        let pods: Vec<PodView> = (0..4).map(|i| pod(&format!("p{i}"), i > 0)).collect();
        let pods: Vec<&PodView> = pods.iter().collect();
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let plan = plan(&budget(spec, status), &pods, |_| Ok(Some(("c".to_owned(), 5))), &budgets(), now);
        match plan.actions.first() {
            Some(Action::Patch { edit, .. }) => edit.body["status"].clone(),
            _ => Value::Null,
        }
    }

    fn numbers(status: &Value) -> [u64; 4] {
        ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"]
            .map(|field| status[field].as_u64().unwrap())
    }

    #[test]
    fn a_budget_says_how_many_pods_may_go() {
        for (spec, expected) in [
            (json!({"minAvailable": 2}), [3, 2, 4, 1]),
            (json!({"minAvailable": 3}), [3, 3, 4, 0]),
            (json!({"minAvailable": "50%"}), [3, 3, 5, 0]),
            (json!({"maxUnavailable": 3}), [3, 2, 5, 1]),
            (json!({"maxUnavailable": "100%"}), [3, 0, 5, 3]),
        ] {
            assert_eq!(numbers(&written(spec.clone(), json!({}))), expected, "{spec}");
        }
    }

    #[test]
    fn a_pod_whose_eviction_was_granted_is_gone_already_but_not_for_ever() {
        let granted = |at: &str| json!({"disruptedPods": {"p1": at, "elsewhere": at}});
        let status = written(json!({"minAvailable": 2}), granted("2026-11-15T11:59:00Z"));
        assert_eq!(numbers(&status), [2, 2, 4, 0]);
        assert_eq!(status["disruptedPods"]["elsewhere"], Value::Null);
        let status = written(json!({"minAvailable": 2}), granted("2026-11-15T11:50:00Z"));
        assert_eq!(numbers(&status), [3, 2, 4, 1]);
        assert_eq!(status["disruptedPods"], json!({"p1": null, "elsewhere": null}));
    }

    #[test]
    fn a_share_of_pods_that_nobody_counts_is_an_error_that_is_said() {
        let pods = [pod("p", true)];
        let plan = plan(
            &budget(json!({"maxUnavailable": "10%"}), json!({})),
            &pods.iter().collect::<Vec<_>>(),
            |pod| Err(format!("found no controllers for pod {:?}", pod.name())),
            &budgets(),
            Timestamp::UNIX_EPOCH,
        );
        let Some(Action::Patch { edit, .. }) = plan.actions.first() else { panic!("{plan:?}") };
        let condition = &edit.body["status"]["conditions"][0];
        assert_eq!((&condition["reason"], &condition["status"]), (&json!("SyncFailed"), &json!("False")));
        assert_eq!(edit.body["status"]["disruptionsAllowed"], 0);
    }

    #[test]
    fn a_selector_that_is_empty_covers_all_pods_and_a_missing_one_none() {
        let covered = |spec| covers(&budget(spec, json!({})), &pod("p", true));
        assert!(covered(json!({"selector": {}})));
        assert!(covered(json!({"selector": {"matchLabels": {"app": "web"}}})));
        assert!(!covered(json!({"selector": {"matchLabels": {"app": "db"}}})));
        assert!(covered(json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}})));
        assert!(!covered(json!({})));
    }
}
