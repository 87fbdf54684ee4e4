//! What happens to a pod because of its node: it is evicted by taints, called not ready while nobody can see it,
//! and collected when the node is gone.

use super::node::{NodeView, readiness};
use super::owners;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Toleration;
use kube::core::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;
use tutti_controllers::{Action, Edit, Note, Plan, PodView, Severity, is_ready, stamp};

/// Taint that a person puts on a node that is down for good: its pods need not be waited for.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Where a pod is.
pub(super) enum Place<'a> {
    /// On this node. Taints without a time count from when they were seen.
    Node {
        node: &'a NodeView,
        /// When each taint that evicts was first seen, by key, value and effect.
        seen: &'a dyn Fn(&Value) -> Option<Timestamp>,
    },
    /// On a node that is not there, since this time.
    Nowhere { since: Timestamp, delay: SignedDuration },
}

/// What is to be done about a bound pod.
pub(super) fn plan(pod: &PodView, place: &Place<'_>, pods: &Arc<ApiResource>, now: Timestamp) -> Plan {
    match place {
        Place::Nowhere { since, delay } => {
            let due = since.checked_add(*delay).unwrap_or(Timestamp::MAX);
            if now < due {
                return Plan { actions: Vec::new(), look_again: Some(due) };
            }
            Plan::one(collect(pod, pods, now))
        }
        Place::Node { node, seen } => plan_on(pod, node, seen, pods, now),
    }
}

fn plan_on(
    pod: &PodView,
    node: &NodeView,
    seen: &dyn Fn(&Value) -> Option<Timestamp>,
    pods: &Arc<ApiResource>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::nothing();
    let is_down = readiness(node) != "True";
    let taints = &node.spec.taints.0;
    if pod.is_terminating() {
        if is_down && taints.iter().any(|taint| text(taint, "key") == OUT_OF_SERVICE) {
            plan.actions.push(collect(pod, pods, now));
        }
        return plan;
    }
    match evicted_at(pod, taints, seen, now) {
        Some(due) if due <= now => {
            plan.actions = evict(pod, pods, now);
            return plan;
        }
        Some(due) => plan.again_at(due),
        None => {}
    }
    if readiness(node) == "Unknown" && !pod.has_ended() && is_ready(pod) {
        let body = with_condition(pod, json!({"type": "Ready", "status": "False"}), now);
        plan.actions.push(Action::patch(pods, pod.key(), Edit::conditions(body)));
    }
    plan
}

/// When the taints of its node drive a pod out, if they do.
fn evicted_at(
    pod: &PodView,
    taints: &[Value],
    seen: &dyn Fn(&Value) -> Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut earliest: Option<Timestamp> = None;
    for taint in taints.iter().filter(|taint| text(taint, "effect") == "NoExecute") {
        let tolerations: Vec<&Toleration> =
            pod.spec.tolerations.0.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        if tolerations.is_empty() {
            return Some(now);
        }
        let Some(seconds) = tolerations.iter().filter_map(|toleration| toleration.toleration_seconds).min()
        else {
            continue;
        };
        let added = text(taint, "timeAdded").parse().ok().or_else(|| seen(taint)).unwrap_or(now);
        let due = added.checked_add(SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX);
        earliest = Some(earliest.map_or(due, |other| other.min(due)));
    }
    earliest
}

fn tolerates(toleration: &Toleration, taint: &Value) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect = toleration.effect.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != text(taint, "effect") || !key.is_empty() && key != text(taint, "key") {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        _ => !key.is_empty() && toleration.value.as_deref().unwrap_or_default() == text(taint, "value"),
    }
}

fn evict(pod: &PodView, pods: &Arc<ApiResource>, now: Timestamp) -> Vec<Action> {
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    });
    let delete = Action::Delete {
        resource: Arc::clone(pods),
        key: pod.key(),
        uid: pod.uid().to_owned(),
        now: false,
        first: Some(Edit::conditions(with_condition(pod, target, now))),
        told_on: None,
    };
    let note = Note {
        about: owners::reference(pod, pods),
        severity: Severity::Normal,
        reason: "TaintManagerEviction",
        message: format!("Marking for deletion Pod {}", pod.key()),
    };
    vec![delete, Action::Tell(note)]
}

/// Removes a pod that no kubelet will ever confirm.
fn collect(pod: &PodView, pods: &Arc<ApiResource>, now: Timestamp) -> Action {
    let first = (!pod.has_ended()).then(|| {
        let mut body = with_condition(
            pod,
            json!({
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
            }),
            now,
        );
        body["status"]["phase"] = json!("Failed");
        Edit::conditions(body)
    });
    let (resource, uid) = (Arc::clone(pods), pod.uid().to_owned());
    Action::Delete { resource, key: pod.key(), uid, now: true, first, told_on: None }
}

fn with_condition(pod: &PodView, mut condition: Value, now: Timestamp) -> Value {
    condition["lastTransitionTime"] = json!(stamp(now));
    json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}})
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // Values that are written in place read better without ampersands.
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn node(taints: Value, ready: &str) -> NodeView {
        serde_json::from_value(json!({
            "metadata": {"name": "n"}, "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    fn pod(tolerations: Value) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u"},
            "spec": {"nodeName": "n", "tolerations": tolerations},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .unwrap()
    }

    fn look(pod: &PodView, node: &NodeView) -> Plan {
        let seen = |_: &Value| Some("2026-11-15T11:59:30Z".parse().unwrap());
        plan(pod, &Place::Node { node, seen: &seen }, &tutti_controllers::pods(), now())
    }

    fn is_evicted(plan: &Plan) -> bool {
        matches!(plan.actions.first(), Some(Action::Delete { now: false, first: Some(_), .. }))
    }

    #[test]
    fn a_taint_evicts_who_does_not_tolerate_it_and_others_when_their_patience_ends() {
        let tainted = node(json!([{"key": "k", "value": "v", "effect": "NoExecute"}]), "True");
        let seconds = |seconds| json!([{"key": "k", "operator": "Exists", "tolerationSeconds": seconds}]);
        assert!(is_evicted(&look(&pod(json!([])), &tainted)));
        assert!(is_evicted(&look(&pod(json!([{"key": "other", "operator": "Exists"}])), &tainted)));
        assert!(is_evicted(&look(
            &pod(json!([{"key": "k", "value": "x", "effect": "NoExecute"}])),
            &tainted
        )));
        assert!(is_evicted(&look(&pod(seconds(30)), &tainted)));
        let waiting = look(&pod(seconds(60)), &tainted);
        assert_eq!(
            (waiting.actions, waiting.look_again),
            (vec![], Some("2026-11-15T12:00:30Z".parse().unwrap()))
        );
        for for_ever in [
            json!([{"operator": "Exists"}]),
            json!([{"key": "k", "value": "v"}]),
            json!([{"key": "k", "operator": "Exists", "effect": "NoExecute"}]),
        ] {
            assert_eq!(look(&pod(for_ever), &tainted), Plan::nothing());
        }
        let other = node(json!([{"key": "k", "effect": "NoSchedule"}]), "True");
        assert_eq!(look(&pod(json!([])), &other), Plan::nothing());
    }

    #[test]
    fn a_time_on_the_taint_counts_more_than_when_it_was_seen() {
        let taint = json!([{"key": "k", "effect": "NoExecute", "timeAdded": "2026-11-15T11:00:00Z"}]);
        let pod = pod(json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}]));
        assert!(is_evicted(&look(&pod, &node(taint, "True"))));
    }

    #[test]
    fn a_pod_on_a_silent_node_is_not_ready() {
        let plan = look(&pod(json!([])), &node(json!([]), "Unknown"));
        let [Action::Patch { edit, .. }] = &plan.actions[..] else { panic!("{plan:?}") };
        assert!(edit.of_status && edit.strategic);
        assert_eq!(edit.body["status"]["conditions"][0]["status"], "False");
        assert_eq!(look(&pod(json!([])), &node(json!([]), "False")), Plan::nothing(), "its kubelet lives");
    }

    #[test]
    fn a_pod_without_its_node_fails_and_goes_after_a_while() {
        let nowhere = |since: &str| Place::Nowhere {
            since: since.parse().unwrap(),
            delay: SignedDuration::from_secs(40),
        };
        let pods = tutti_controllers::pods();
        let waiting = plan(&pod(json!([])), &nowhere("2026-11-15T11:59:30Z"), &pods, now());
        assert_eq!(
            (waiting.actions, waiting.look_again),
            (vec![], Some("2026-11-15T12:00:10Z".parse().unwrap()))
        );
        let gone = plan(&pod(json!([])), &nowhere("2026-11-15T11:59:00Z"), &pods, now());
        let [Action::Delete { now: true, first: Some(edit), .. }] = &gone.actions[..] else {
            panic!("{gone:?}")
        };
        assert_eq!(edit.body["status"]["phase"], "Failed");
    }

    #[test]
    fn a_terminating_pod_waits_for_its_kubelet_unless_the_node_is_out_of_service() {
        let mut going = pod(json!([]));
        going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        assert_eq!(
            look(&going, &node(json!([{"key": "k", "effect": "NoExecute"}]), "Unknown")),
            Plan::nothing()
        );
        let dead = node(json!([{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]), "Unknown");
        assert!(matches!(look(&going, &dead).actions[..], [Action::Delete { now: true, .. }]));
    }
}
