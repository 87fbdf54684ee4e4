//! Service.

use super::defaults::{child, each, first_status, set};
use serde_json::{Map, Value, json};

/// Defaults of a Service.
pub(super) fn defaults(object: &mut Map<String, Value>) {
    first_status(object, || json!({"loadBalancer": {}}));
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "sessionAffinity", json!("None"));
    set(spec, "type", json!("ClusterIP"));
    for port in each(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        if let Some(number) = port.get("port").cloned() {
            set(port, "targetPort", number);
        }
    }
    if spec.get("type").and_then(Value::as_str) != Some("ExternalName") {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
        set(spec, "ipFamilyPolicy", json!("SingleStack"));
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
}
