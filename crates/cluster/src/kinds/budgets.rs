//! Rules for PodDisruptionBudget.

use super::amounts;
use super::conditions;
use super::field::Field;
use super::placement::check_label_selector;
use crate::error::Cause;

/// What is wrong with a budget.
pub(super) fn validate(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        out.push(spec.invalid("minAvailable and maxUnavailable cannot be both set"));
    }
    amounts::check_share(&least, out);
    amounts::check_share(&most, out);
    check_label_selector(&spec.get("selector"), out);
    spec.get("unhealthyPodEvictionPolicy").check_enum(&["AlwaysAllow", "IfHealthyBudget"], out);
}

/// What is wrong with the status of a budget.
pub(super) fn validate_status(_: &Field<'_, '_>, root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let status = root.get("status");
    conditions::validate(&status.get("conditions"), out);
    for field in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
        status.get(field).check_range(0, i64::from(i32::MAX), out);
    }
}
