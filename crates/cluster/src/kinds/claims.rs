//! Claims of devices, and templates of such claims.

use super::defaults::{child, each, existing, first_status, set};
use serde_json::{Map, Value, json};

/// Defaults of a ResourceClaim.
pub(super) fn claim_defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({}));
    if let Some(spec) = child(object, "spec") {
        claim_spec(spec);
    }
}

/// Defaults of a ResourceClaimTemplate.
pub(super) fn template_defaults(object: &mut Map<String, Value>) {
    if let Some(spec) = existing(object, "spec").and_then(|template| child(template, "spec")) {
        claim_spec(spec);
    }
}

fn claim_spec(spec: &mut Map<String, Value>) {
    let Some(devices) = existing(spec, "devices") else { return };
    for request in each(devices, "requests") {
        if let Some(exactly) = existing(request, "exactly") {
            count(exactly);
        }
        each(request, "firstAvailable").for_each(count);
    }
}

fn count(request: &mut Map<String, Value>) {
    set(request, "allocationMode", json!("ExactCount"));
    if request.get("allocationMode").and_then(Value::as_str) == Some("ExactCount") {
        set(request, "count", json!(1));
    }
    for toleration in each(request, "tolerations") {
        set(toleration, "operator", json!("Equal"));
    }
}
