//! Rules for Pod.

use super::conditions;
use super::containers;
use super::field::{Field, same};
use super::names::{dns_label, dns_subdomain, qualified_name};
use super::placement;
use crate::error::Cause;
use serde_json::Value;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
const PREEMPTION_POLICIES: [&str; 2] = ["Never", "PreemptLowerPriority"];

/// What else is wrong with the spec of a new pod.
pub(super) fn validate_new(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let node = spec.get("nodeName");
    if spec.get("schedulingGates").len() > 0 && !node.text().is_empty() {
        out.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
}

/// What is wrong with the spec of a pod, new or not.
pub(super) fn validate_spec(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    containers::validate(&spec, out);
    containers::check_resources(&spec.get("resources"), out);
    containers::check_amounts(&spec.get("overhead"), out);
    placement::validate(&spec, out);
    spec.get("restartPolicy").check_enum(&RESTART_POLICIES, out);
    spec.get("dnsPolicy").check_enum(&DNS_POLICIES, out);
    spec.get("preemptionPolicy").check_enum(&PREEMPTION_POLICIES, out);
    spec.get("activeDeadlineSeconds").check_range(1, i64::from(i32::MAX), out);
    for (field, rule) in [
        ("nodeName", dns_subdomain as fn(&str) -> Result<(), String>),
        ("schedulerName", dns_subdomain),
        ("priorityClassName", dns_subdomain),
        ("serviceAccountName", dns_subdomain),
        ("hostname", dns_label),
        ("subdomain", dns_label),
    ] {
        let field = spec.get(field);
        if !field.text().is_empty() {
            field.check_text(rule, out);
        }
    }
    check_group_link(&spec, out);
    let gates = spec.get("schedulingGates");
    gates.check_unique_keys("name", out);
    for gate in gates.items() {
        gate.get("name").check_required_text(qualified_name, out);
    }
    let claims = spec.get("resourceClaims");
    claims.check_unique("name", out);
    for claim in claims.items() {
        claim.get("name").check_required_text(dns_label, out);
    }
}

fn check_group_link(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let group = spec.get("schedulingGroup");
    let workload = spec.get("workloadRef");
    if workload.is_set() {
        workload.get("name").check_required_text(dns_subdomain, out);
        workload.get("podGroup").check_required_text(dns_label, out);
        let key = workload.get("podGroupReplicaKey");
        if key.is_set() {
            key.check_required_text(dns_label, out);
        }
        // No single release has both; a pod of two groups would be scheduled by neither.
        if group.is_set() {
            out.push(workload.forbidden("may not be set together with `schedulingGroup`"));
        }
    }
    if !group.is_set() {
        return;
    }
    let name = group.get("podGroupName");
    if name.is_set() {
        name.check_required_text(dns_subdomain, out);
    } else {
        out.push(name.invalid("must specify one of: `podGroupName`"));
    }
    if spec.get("evictionResponders").len() > 0 {
        out.push(group.forbidden("may not be set together with `evictionResponders`"));
    }
}

/// What is wrong with a new status of a pod. Its conditions are older than the standard ones: reason and
/// time are optional.
pub(super) fn validate_status(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = new.get("spec");
    let (old, new) = (old.get("status"), new.get("status"));
    conditions::validate_plain(&new.get("conditions"), out);
    if old.get("qosClass").is_set() {
        new.get("qosClass").check_unchanged(&old.get("qosClass"), out);
    }
    let nominated = new.get("nominatedNodeName");
    if !nominated.text().is_empty() {
        nominated.check_text(dns_subdomain, out);
        if !spec.get("nodeName").text().is_empty()
            && !same(nominated.value(), old.get("nominatedNodeName").value())
        {
            out.push(nominated.forbidden("may not be set on pods that are already bound to a node"));
        }
    }
}

/// A status that does not say what class of service the pod is in does not change it.
pub(super) fn complete_status(old: &Value, new: &mut Value) {
    let class = old.pointer("/status/qosClass");
    if let (Some(class), Some(status)) = (class, new.get_mut("status").and_then(Value::as_object_mut)) {
        status.entry("qosClass").or_insert_with(|| class.clone());
    }
}
