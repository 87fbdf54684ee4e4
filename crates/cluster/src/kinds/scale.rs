//! The scale of an object: its number of replicas, seen and changed without the rest.

use crate::error::{Cause, CauseReason};
use crate::registry::Resource;
use serde_json::{Map, Value, json};

/// JSON pointers to the parts of a scale.
struct Places<'r> {
    replicas: &'r str,
    current: &'r str,
    selector: Option<&'r str>,
}

impl<'r> Places<'r> {
    fn of(resource: &'r Resource) -> Self {
        match resource.custom.and_then(|definition| definition.scale.as_ref()) {
            Some(paths) => Self {
                replicas: &paths.replicas,
                current: &paths.current,
                selector: paths.selector.as_deref(),
            },
            None => Self {
                replicas: "/spec/replicas",
                current: "/status/replicas",
                selector: Some("/spec/selector"),
            },
        }
    }
}

/// The `autoscaling/v1` Scale of an object that has replicas.
pub(crate) fn of(resource: &Resource, object: &Value) -> Value {
    let places = Places::of(resource);
    let at = |pointer: &str| object.pointer(pointer).filter(|v| !v.is_null());
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = at(&format!("/metadata/{field}")) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata,
        "spec": {}, "status": {"replicas": at(places.current).and_then(Value::as_i64).unwrap_or(0)},
    });
    // Zero is left out, as everywhere where Kubernetes' own types say so.
    if let Some(replicas) = at(places.replicas).filter(|r| r.as_i64() != Some(0)) {
        scale["spec"]["replicas"] = replicas.clone();
    }
    let selector = places.selector.and_then(at).map(|selector| match selector {
        // Custom kinds have the text itself.
        Value::String(text) => text.clone(),
        selector => selector_text(selector),
    });
    let selector = selector.unwrap_or_default();
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// Gives an object the number of replicas and the version that a Scale asks for.
pub(crate) fn put(resource: &Resource, scale: &Value, object: &mut Value) -> Result<(), Cause> {
    let replicas = match scale.pointer("/spec/replicas") {
        None | Some(Value::Null) => 0,
        Some(value) => match value.as_i64().filter(|n| (0..=i64::from(i32::MAX)).contains(n)) {
            Some(number) => number,
            None => {
                return Err(Cause {
                    reason: CauseReason::Invalid,
                    field: "spec.replicas".to_owned(),
                    message: format!("Invalid value: {value}: must be greater than or equal to 0"),
                });
            }
        },
    };
    set_at(object, Places::of(resource).replicas, json!(replicas));
    for (place, field, value) in [
        (
            "metadata",
            "resourceVersion",
            scale.pointer("/metadata/resourceVersion").cloned().unwrap_or(json!("")),
        ),
        ("metadata", "uid", scale.pointer("/metadata/uid").cloned().unwrap_or(json!(""))),
    ] {
        if let Some(map) = object.get_mut(place).and_then(Value::as_object_mut) {
            map.insert(field.to_owned(), value);
        }
    }
    Ok(())
}

/// Sets the value at a pointer, with the objects on the way there.
fn set_at(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        if place.is_null() {
            *place = json!({});
        }
        let Some(map) = place.as_object_mut() else { return };
        place = map.entry(name.replace("~1", "/").replace("~0", "~")).or_insert(Value::Null);
    }
    *place = value;
}

/// A selector as a query would spell it. Old kinds have nothing but a map of labels.
pub(crate) fn selector_text(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let old = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let labels = if old { Some(selector) } else { selector.get("matchLabels") };
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parts.push(format!("{key}={}", text(value)));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key").map(text).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array);
        let values: Vec<String> = values.into_iter().flatten().map(text).collect();
        let values = values.join(",");
        parts.push(match expression.get("operator").and_then(Value::as_str).unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key,
        });
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    fn deployments() -> &'static Resource {
        find("apps", "v1", "deployments").unwrap()
    }

    #[test]
    fn a_scale_shows_replicas_and_selector() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        });
        let object = json!({
            "metadata": {"name": "d", "resourceVersion": "7", "labels": {"x": "y"}},
            "spec": {"replicas": 3, "selector": selector}, "status": {"replicas": 2},
        });
        let scale = of(deployments(), &object);
        assert_eq!(scale["metadata"], json!({"name": "d", "resourceVersion": "7"}));
        assert_eq!(scale["spec"], json!({"replicas": 3}));
        assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=web,tier in (a,b),!old"}));
        assert_eq!(
            of(deployments(), &json!({"spec": {"selector": {"a": "b"}}}))["status"]["selector"],
            "a=b"
        );
    }

    #[test]
    fn a_scale_changes_nothing_but_the_replicas() {
        let object =
            json!({"metadata": {"name": "d", "labels": {"x": "y"}}, "spec": {"replicas": 3, "paused": true}});
        let mut changed = object.clone();
        put(
            deployments(),
            &json!({"spec": {"replicas": 5}, "metadata": {"labels": {"no": "no"}}}),
            &mut changed,
        )
        .unwrap();
        assert_eq!(changed["spec"], json!({"replicas": 5, "paused": true}));
        assert_eq!(changed["metadata"]["labels"], json!({"x": "y"}));
        put(deployments(), &json!({"spec": {}}), &mut changed).unwrap();
        assert_eq!(changed["spec"]["replicas"], 0);
        for wrong in [json!(-1), json!("many"), json!(1.5)] {
            assert_eq!(
                put(deployments(), &json!({"spec": {"replicas": wrong}}), &mut object.clone())
                    .unwrap_err()
                    .field,
                "spec.replicas"
            );
        }
    }
}
