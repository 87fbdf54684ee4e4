//! Which changes of a pod are allowed. Nearly none: a pod is what was scheduled, and other fields would
//! change what the decision was based on.

use super::field::{Field, same};
use crate::error::Cause;
use serde_json::{Map, Value};

const REFUSAL: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const NODE_REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with replacing the spec of a pod.
pub(super) fn validate(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    for list in ["containers", "initContainers"] {
        if old.get(list).len() != new.get(list).len() {
            out.push(new.get(list).forbidden("pod updates may not add or remove containers"));
            return;
        }
    }
    check_deadline(&old, &new, out);
    check_tolerations(&old, &new, out);
    let gated = old.get("schedulingGates").len() > 0;
    check_gates(&old, &new, out);
    if gated {
        check_node_selector(&old, &new, out);
        check_node_affinity(&old, &new, out);
    }
    let (before, after) = (frozen_part(&old, gated), frozen_part(&new, gated));
    let changed: Vec<&str> = before
        .keys()
        .chain(after.keys().filter(|key| !before.contains_key(*key)))
        .filter(|key| !same(before.get(*key), after.get(*key)))
        .filter(|key| *key != "terminationGracePeriodSeconds" || !grace_is_repaired(&old, &new))
        .map(String::as_str)
        .collect();
    if !changed.is_empty() {
        out.push(new.forbidden(&format!("{REFUSAL}; changed: {}", changed.join(", "))));
    }
}

/// The spec without what may change or is checked on its own.
fn frozen_part(spec: &Field<'_, '_>, gated: bool) -> Map<String, Value> {
    let mut spec = spec.object().cloned().unwrap_or_default();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        spec.remove(field);
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    if gated {
        spec.remove("nodeSelector");
        if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
            affinity.remove("nodeAffinity");
            // Adding node affinity to a pod that had no affinity at all makes this object, empty now.
            if affinity.is_empty() {
                spec.remove("affinity");
            }
        }
    }
    spec
}

fn grace_is_repaired(old: &Field<'_, '_>, new: &Field<'_, '_>) -> bool {
    let field = "terminationGracePeriodSeconds";
    old.get(field).int().is_some_and(|seconds| seconds < 0) && new.get(field).int() == Some(1)
}

fn check_deadline(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (before, after) = (old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds"));
    match (before.int(), after.int()) {
        (Some(before), Some(now)) if now > before => {
            out.push(after.invalid("must be less than or equal to previous value"));
        }
        (Some(_), None) => out.push(after.invalid("must not update from a positive integer to nil value")),
        _ => {}
    }
}

/// Every old toleration must still be there; only the seconds of one for NoExecute may have changed.
fn check_tolerations(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (before, after) = (old.get("tolerations"), new.get("tolerations"));
    let seconds_may_change = |toleration: &Field<'_, '_>| toleration.get("effect").text() == "NoExecute";
    for toleration in before.items() {
        let mut fields = vec!["key", "operator", "value", "effect"];
        if !seconds_may_change(&toleration) {
            fields.push("tolerationSeconds");
        }
        let kept = after
            .items()
            .any(|other| fields.iter().all(|f| same(toleration.get(f).value(), other.get(f).value())));
        if !kept {
            out.push(after.forbidden("existing toleration can not be modified except its tolerationSeconds"));
            return;
        }
    }
}

fn check_gates(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (before, after) = (old.get("schedulingGates"), new.get("schedulingGates"));
    for gate in after.items() {
        let name = gate.get("name").text();
        if !before.items().any(|g| g.get("name").text() == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            out.push(gate.get("name").forbidden(&why));
        }
    }
}

/// While nobody has looked at the pod yet, it may become more demanding, but not less.
fn check_node_selector(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let after = new.get("nodeSelector");
    let kept = old
        .get("nodeSelector")
        .entries()
        .all(|(key, value)| after.value().and_then(|s| s.get(key)) == value.value());
    if !kept {
        out.push(after.invalid("only additions are allowed (no mutations or deletions)"));
    }
}

fn check_node_affinity(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("affinity"), new.get("affinity"));
    let (old, new) = (old.get("nodeAffinity"), new.get("nodeAffinity"));
    let (before, after) = (old.get(NODE_REQUIRED), new.get(NODE_REQUIRED));
    // Only what is required is looked at: preferences refuse no node, so they are free to change.
    let (before, after) = (before.get("nodeSelectorTerms"), after.get("nodeSelectorTerms"));
    if before.len() == 0 {
        return;
    }
    if before.len() != after.len() {
        out.push(
            after.invalid("no additions or deletions of terms are allowed, since terms are alternatives"),
        );
        return;
    }
    for (before, after) in before.items().zip(after.items()) {
        let empty = before.get("matchExpressions").len() + before.get("matchFields").len() == 0;
        // An empty term matches no node; anything added would make it match some.
        let extended = ["matchExpressions", "matchFields"].iter().all(|list| {
            let (before, after) = (before.get(list), after.get(list));
            before.len() <= after.len()
                && before.items().zip(after.items()).all(|(b, a)| same(b.value(), a.value()))
        });
        if !extended || (empty && !same(before.value(), after.value())) {
            out.push(after.invalid("only additions to expressions are allowed"));
        }
    }
}
