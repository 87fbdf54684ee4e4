//! Rules for the small kinds: Node, Namespace, PriorityClass and Lease.

use super::conditions;
use super::containers::check_amounts;
use super::field::Field;
use super::placement::check_taint;
use crate::error::Cause;
use std::collections::BTreeSet;

/// Highest priority that users may define.
const PRIORITY_MAX: i64 = 1_000_000_000;
/// Classes that Kubernetes itself defines, and that may be higher.
const SYSTEM_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// What is wrong with a node.
pub(super) fn validate_node(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let mut seen = BTreeSet::new();
    for taint in spec.get("taints").items() {
        check_taint(&taint, out);
        let key = (taint.get("key").text(), taint.get("effect").text());
        // A node may have two taints of one key, as long as their effects differ.
        if !seen.insert(key) {
            out.push(taint.duplicate());
        }
    }
    validate_node_status(root, root, out);
}

/// What is wrong with the status of a node.
pub(super) fn validate_node_status(_: &Field<'_, '_>, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let status = root.get("status");
    check_amounts(&status.get("capacity"), out);
    check_amounts(&status.get("allocatable"), out);
    conditions::validate_plain(&status.get("conditions"), out);
}

/// What is wrong with replacing a node.
pub(super) fn validate_node_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    // Who the node is may be said late, but not twice.
    for field in ["podCIDR", "providerID"] {
        if !old.get(field).text().is_empty() {
            new.get(field).check_unchanged(&old.get(field), out);
        }
    }
}

/// What is wrong with a priority class.
pub(super) fn validate_priority_class(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let metadata = root.get("metadata");
    let (name, value) = (metadata.get("name"), root.get("value"));
    if name.text().starts_with("system-") {
        if !SYSTEM_CLASSES.contains(&name.text()) {
            out.push(name.forbidden(&format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a known \
                 system priority class",
                name.text()
            )));
        }
    } else if value.int().is_some_and(|v| v > PRIORITY_MAX) {
        out.push(
            value.forbidden(&format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}")),
        );
    }
    root.get("preemptionPolicy").check_enum(&["PreemptLowerPriority", "Never"], out);
}

/// What is wrong with replacing a priority class: pods have taken its value and would not follow.
pub(super) fn validate_priority_class_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    if old.get("value").int().unwrap_or(0) != new.get("value").int().unwrap_or(0) {
        out.push(new.get("value").forbidden("may not be changed in an update."));
    }
    new.get("preemptionPolicy").check_unchanged(&old.get("preemptionPolicy"), out);
}

/// What is wrong with a lease.
pub(super) fn validate_lease(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.int().is_some_and(|seconds| seconds < 1) {
        out.push(duration.invalid("must be greater than 0"));
    }
    spec.get("leaseTransitions").check_range(0, i64::from(i32::MAX), out);
}
