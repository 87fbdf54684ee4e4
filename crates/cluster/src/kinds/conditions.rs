//! Rules for standard conditions (`metav1.Condition`).

use super::field::Field;
use super::names::{condition_reason, qualified_name};
use crate::error::Cause;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
/// Longest message of a condition.
const MESSAGE_MAX: usize = 32768;

/// What is wrong with a list of conditions; their types must be unique.
pub(super) fn validate(conditions: &Field<'_, '_>, out: &mut Vec<Cause>) {
    validate_plain(conditions, out);
    for condition in conditions.items() {
        let since = condition.get("lastTransitionTime");
        if !since.is_set() {
            out.push(since.required(""));
        }
        condition.get("reason").check_required_text(condition_reason, out);
        condition.get("observedGeneration").check_range(0, i64::MAX, out);
        let message = condition.get("message");
        if message.text().len() > MESSAGE_MAX {
            out.push(message.too_long(MESSAGE_MAX));
        }
    }
}

/// What is wrong with conditions of Pods and Nodes, of which only type and status are required.
pub(super) fn validate_plain(conditions: &Field<'_, '_>, out: &mut Vec<Cause>) {
    conditions.check_unique_keys("type", out);
    for condition in conditions.items() {
        condition.get("type").check_required_text(qualified_name, out);
        let status = condition.get("status");
        if status.is_set() {
            status.check_enum(&STATUSES, out);
        } else {
            out.push(status.required(""));
        }
    }
}
