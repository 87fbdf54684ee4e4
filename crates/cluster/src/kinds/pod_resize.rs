//! Changing what the containers of a running pod have: the one part of its resources that needs no other node.

use super::containers;
use super::field::{Field, same};
use super::pod_defaults::qos_class;
use crate::error::Cause;
use serde_json::{Map, Value};

/// Resources that can change while a container runs.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// The stored pod with the resources that a resize asks for; everything else in the request is left aside.
pub(crate) fn resized(stored: &Value, asked: &Value) -> Value {
    let mut pod = stored.clone();
    for list in LISTS {
        let wanted = asked.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let same_name = |other: &&Value| other.get("name") == container.get("name");
            let Some(other) = wanted.into_iter().flatten().find(same_name) else { continue };
            for field in ["resources", "resizePolicy"] {
                match other.get(field) {
                    Some(value) => container.insert(field.to_owned(), value.clone()),
                    None => container.remove(field),
                };
            }
        }
    }
    pod
}

/// What is wrong with a resize; `new` is what [`resized`] made of it.
pub(crate) fn validate(old: &Value, new: &Value) -> Vec<Cause> {
    let mut out = Vec::new();
    let (before, after) = (Field::root(old), Field::root(new));
    let (before, after) = (before.get("spec"), after.get("spec"));
    containers::validate(&after, &mut out);
    if qos_class(old.get("spec")) != qos_class(new.get("spec")) {
        out.push(after.invalid_value(
            &format!("{:?}", qos_class(new.get("spec"))),
            "Pod QOS Class may not change as a result of resizing",
        ));
    }
    for list in LISTS {
        let (before, after) = (before.get(list), after.get(list));
        for (before, after) in before.items().zip(after.items()) {
            check_container(&before.get("resources"), &after.get("resources"), &mut out);
        }
    }
    out
}

fn check_container(before: &Field<'_, '_>, after: &Field<'_, '_>, out: &mut Vec<Cause>) {
    for kind in ["requests", "limits"] {
        let (old, new) = (before.get(kind), after.get(kind));
        let empty = Map::new();
        let (old_map, new_map) = (old.object().unwrap_or(&empty), new.object().unwrap_or(&empty));
        for name in old_map.keys().filter(|name| RESIZABLE.contains(&name.as_str())) {
            if !new_map.contains_key(name) {
                out.push(new.forbidden(&format!("resource {kind} cannot be removed")));
            }
        }
        let fixed = |map: &Map<String, Value>| {
            let others = map.iter().filter(|(name, _)| !RESIZABLE.contains(&name.as_str()));
            Value::Object(others.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        if !same(Some(&fixed(old_map)), Some(&fixed(new_map))) {
            out.push(new.forbidden("only cpu and memory resources are mutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(resources: &Value) -> Value {
        json!({"spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": resources}]}})
    }

    #[test]
    fn a_resize_takes_resources_and_nothing_else() {
        let stored = pod(&json!({"requests": {"cpu": "1"}}));
        let mut asked = pod(&json!({"requests": {"cpu": "2"}}));
        asked["spec"]["nodeName"] = json!("n2");
        asked["spec"]["containers"][0]["image"] = json!("other");
        assert_eq!(resized(&stored, &asked), pod(&json!({"requests": {"cpu": "2"}})));
        assert_eq!(validate(&stored, &resized(&stored, &asked)), []);
        assert_eq!(resized(&stored, &json!({})), stored);
    }

    #[test]
    fn each_rule_of_a_resize_is_named() {
        let old = pod(
            &json!({"requests": {"cpu": "1", "example.com/gpu": "1"}, "limits": {"cpu": "2", "example.com/gpu": "1"}}),
        );
        let cases = [
            (
                json!({"requests": {"cpu": "3", "example.com/gpu": "1"}, "limits": {"cpu": "2", "example.com/gpu": "1"}}),
                "requests: Invalid value",
            ),
            (
                json!({"requests": {"cpu": "1", "example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}),
                "limits: Forbidden: resource limits cannot be removed",
            ),
        ];
        for (resources, want) in cases {
            let found = validate(&old, &pod(&resources));
            let found: Vec<String> = found.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
            let want = format!("spec.containers[0].resources.{want}");
            assert!(found.len() == 1 && found[0].starts_with(&want), "wanted {want}, found {found:?}");
        }
        let gpus = json!({"requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"cpu": "2", "example.com/gpu": "2"}});
        assert!(validate(&old, &pod(&gpus)).iter().any(|c| c.message.contains("only cpu and memory")));
        let equal =
            json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        let less =
            json!({"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        let found = validate(&pod(&equal), &pod(&less));
        assert!(found.len() == 1 && found[0].message.contains("QOS Class"), "{found:?}");
    }
}
