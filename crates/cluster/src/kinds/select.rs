//! Fields that a field selector may name, with the values they have.

use crate::registry::Resource;
use serde_json::Value;

/// The value of a selectable field, empty if the object does not set it; `None` if the label is not supported.
pub(super) fn selectable_field(resource: &Resource, label: &str, object: &Value) -> Option<String> {
    let at = |path: &[&str]| text_at(object, path);
    match label {
        "metadata.name" => return Some(at(&["metadata", "name"])),
        "metadata.namespace" if resource.namespaced => return Some(at(&["metadata", "namespace"])),
        _ => {}
    }
    if let Some(definition) = resource.custom {
        let version = definition.version(resource.hub)?;
        let (_, path) = version.selectable.iter().find(|(name, _)| name == label)?;
        let found = path.first(object).filter(|value| !value.is_null());
        return Some(
            found.map_or_else(String::new, |v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)),
        );
    }
    Some(match (resource.group, resource.kind, label) {
        ("", "Pod", "spec.nodeName") => at(&["spec", "nodeName"]),
        ("", "Pod", "spec.restartPolicy") => at(&["spec", "restartPolicy"]),
        ("", "Pod", "spec.schedulerName") => at(&["spec", "schedulerName"]),
        ("", "Pod", "spec.serviceAccountName") => at(&["spec", "serviceAccountName"]),
        ("", "Pod", "spec.hostNetwork") => flag_at(object, &["spec", "hostNetwork"]),
        ("", "Pod", "status.phase") => at(&["status", "phase"]),
        ("", "Pod", "status.podIP") => at(&["status", "podIP"]),
        ("", "Pod", "status.podIPs") => pod_ips(object),
        ("", "Pod", "status.nominatedNodeName") => at(&["status", "nominatedNodeName"]),
        ("", "Node", "spec.unschedulable") => flag_at(object, &["spec", "unschedulable"]),
        ("", "Namespace", "status.phase") => at(&["status", "phase"]),
        ("", "Event", "regarding.kind") => at(&["involvedObject", "kind"]),
        ("", "Event", "regarding.namespace") => at(&["involvedObject", "namespace"]),
        ("", "Event", "regarding.name") => at(&["involvedObject", "name"]),
        ("", "Event", "regarding.uid") => at(&["involvedObject", "uid"]),
        ("", "Event", "reportingController") => at(&["reportingComponent"]),
        ("", "Event", "involvedObject.kind") => at(&["involvedObject", "kind"]),
        ("", "Event", "involvedObject.namespace") => at(&["involvedObject", "namespace"]),
        ("", "Event", "involvedObject.name") => at(&["involvedObject", "name"]),
        ("", "Event", "involvedObject.uid") => at(&["involvedObject", "uid"]),
        ("", "Event", "involvedObject.apiVersion") => at(&["involvedObject", "apiVersion"]),
        ("", "Event", "involvedObject.resourceVersion") => at(&["involvedObject", "resourceVersion"]),
        ("", "Event", "involvedObject.fieldPath") => at(&["involvedObject", "fieldPath"]),
        ("", "Event", "reason") => at(&["reason"]),
        ("", "Event", "reportingComponent") => at(&["reportingComponent"]),
        ("", "Event", "source") => {
            // Writers of the newer event API leave `source` empty and say who they are elsewhere.
            let source = at(&["source", "component"]);
            if source.is_empty() { at(&["reportingComponent"]) } else { source }
        }
        ("", "Event" | "Secret", "type") => at(&["type"]),
        ("", "Service", "spec.clusterIP") => at(&["spec", "clusterIP"]),
        ("", "Service", "spec.type") => at(&["spec", "type"]),
        ("", "ReplicationController", "status.replicas") => count_at(object, &["status", "replicas"]),
        ("batch", "Job", "status.successful") => count_at(object, &["status", "succeeded"]),
        ("resource.k8s.io", "ResourceSlice", "spec.nodeName") => at(&["spec", "nodeName"]),
        ("resource.k8s.io", "ResourceSlice", "spec.driver") => at(&["spec", "driver"]),
        _ => return None,
    })
}

fn value_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

fn text_at(object: &Value, path: &[&str]) -> String {
    value_at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn flag_at(object: &Value, path: &[&str]) -> String {
    value_at(object, path).and_then(Value::as_bool).unwrap_or(false).to_string()
}

fn count_at(object: &Value, path: &[&str]) -> String {
    value_at(object, path).and_then(Value::as_i64).unwrap_or(0).to_string()
}

fn pod_ips(object: &Value) -> String {
    let list = value_at(object, &["status", "podIPs"]).and_then(Value::as_array);
    let ips: Vec<&str> =
        list.into_iter().flatten().filter_map(|entry| entry.get("ip").and_then(Value::as_str)).collect();
    ips.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;
    use serde_json::json;

    #[test]
    fn each_kind_has_its_selectable_fields_and_refuses_others() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"nodeName": "n1", "hostNetwork": true},
            "status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
        });
        let event = json!({"reportingComponent": "tutti", "involvedObject": {"uid": "u"}});
        let node = json!({"metadata": {"name": "n1"}});
        let cases = [
            ("pods", &pod, "metadata.name", Some("p")),
            ("pods", &pod, "metadata.namespace", Some("n")),
            ("pods", &pod, "spec.nodeName", Some("n1")),
            ("pods", &pod, "spec.hostNetwork", Some("true")),
            ("pods", &pod, "status.phase", Some("")),
            ("pods", &pod, "status.podIPs", Some("10.0.0.1,fd00::1")),
            ("pods", &pod, "spec.priority", None),
            ("nodes", &node, "spec.unschedulable", Some("false")),
            ("nodes", &node, "metadata.namespace", None),
            ("events", &event, "source", Some("tutti")),
            ("events", &event, "involvedObject.uid", Some("u")),
            ("events", &event, "spec.nodeName", None),
        ];
        for (plural, object, label, want) in cases {
            let resource = find("", "v1", plural).unwrap();
            assert_eq!(selectable_field(resource, label, object).as_deref(), want, "{plural} {label}");
        }
    }

    #[test]
    fn malformed_objects_read_as_empty() {
        let pods = find("", "v1", "pods").unwrap();
        for object in [json!(null), json!("x"), json!({"spec": 3, "status": {"podIPs": "x"}})] {
            assert_eq!(selectable_field(pods, "spec.nodeName", &object).as_deref(), Some(""));
            assert_eq!(selectable_field(pods, "status.podIPs", &object).as_deref(), Some(""));
        }
    }
}
