//! Conversion between `scheduling.k8s.io/v1alpha1` of Kubernetes 1.35, where pod groups are parts of a Workload,
//! and the stored `v1beta1`, where they are templates.

use super::stash::{objects_of, put_stash, restore, set_aside, take_stash, wrong_type};
use crate::error::{ApiError, Cause};
use serde_json::{Map, Value};

const GROUPS: &str = "podGroups";
const TEMPLATES: &str = "podGroupTemplates";
const COMPOSITES: &str = "compositePodGroupTemplates";
const POLICY: &str = "policy";
const HUB_POLICY: &str = "schedulingPolicy";

/// Fields of a template that v1alpha1 has no place for.
const TEMPLATE_HUB_FIELDS: [&str; 6] = [
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
];

/// v1alpha1 to v1beta1.
pub(super) fn to_hub(object: &mut Map<String, Value>) -> Result<Vec<Cause>, ApiError> {
    let stash = take_stash(object)?;
    let mut causes = Vec::new();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(causes);
    };
    restore(spec, COMPOSITES, stash.get(COMPOSITES));
    spec.remove(TEMPLATES);
    if let Some(groups) = spec.remove(GROUPS).filter(|groups| !groups.is_null()) {
        if !groups.is_array() {
            causes.push(wrong_type("spec.podGroups", "array"));
            return Ok(causes);
        }
        spec.insert(TEMPLATES.to_owned(), groups);
    }
    for (_, template) in objects_of(spec, TEMPLATES) {
        let name = template.get("name").and_then(Value::as_str);
        let kept = name.and_then(|name| stash.get(TEMPLATES)?.get(name)).cloned();
        for field in TEMPLATE_HUB_FIELDS {
            restore(template, field, kept.as_ref().and_then(|kept| kept.get(field)));
        }
        let policy = template.remove(POLICY);
        restore(template, HUB_POLICY, policy.as_ref());
    }
    Ok(causes)
}

/// v1beta1 to v1alpha1.
pub(super) fn from_hub(object: &mut Map<String, Value>) {
    let mut stash = Map::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        set_aside(spec, COMPOSITES, &mut stash);
        let mut kept_by_name = Map::new();
        for (_, template) in objects_of(spec, TEMPLATES) {
            let mut kept = Map::new();
            for field in TEMPLATE_HUB_FIELDS {
                set_aside(template, field, &mut kept);
            }
            if let Some(name) = template.get("name").and_then(Value::as_str)
                && !kept.is_empty()
            {
                kept_by_name.insert(name.to_owned(), Value::Object(kept));
            }
            if let Some(policy) = template.remove(HUB_POLICY) {
                template.insert(POLICY.to_owned(), policy);
            }
        }
        if !kept_by_name.is_empty() {
            stash.insert(TEMPLATES.to_owned(), Value::Object(kept_by_name));
        }
        let groups = spec.remove(TEMPLATES).unwrap_or_else(|| Value::Array(Vec::new()));
        spec.insert(GROUPS.to_owned(), groups);
    }
    put_stash(object, stash);
}

/// The path of a field as v1alpha1 spells it.
pub(super) fn path(path: &str) -> String {
    match path.strip_prefix("spec.podGroupTemplates") {
        Some(rest) => format!("spec.podGroups{}", rest.replacen(".schedulingPolicy", ".policy", 1)),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn groups_of_a_workload_are_its_templates() {
        let old = json!({
            "metadata": {"name": "w"},
            "spec": {
                "controllerRef": {"kind": "Job", "name": "j"},
                "podGroups": [
                    {"name": "a", "policy": {"gang": {"minCount": 4}}},
                    {"name": "b", "policy": {"basic": {}}},
                ],
            },
        });
        let mut object = old.as_object().unwrap().clone();
        assert_eq!(to_hub(&mut object).unwrap(), []);
        assert_eq!(
            object["spec"]["podGroupTemplates"],
            json!([
                {"name": "a", "schedulingPolicy": {"gang": {"minCount": 4}}},
                {"name": "b", "schedulingPolicy": {"basic": {}}},
            ])
        );
        assert!(object["spec"].get("podGroups").is_none());
        from_hub(&mut object);
        assert_eq!(Value::Object(object), old);
    }

    #[test]
    fn what_the_old_version_cannot_say_survives_a_round_trip() {
        let hub = json!({
            "metadata": {"name": "w", "annotations": {"mine": "x"}},
            "spec": {"podGroupTemplates": [{
                "name": "a", "schedulingPolicy": {"basic": {}}, "priority": 7,
                "disruptionMode": {"all": {}},
            }]},
        });
        let mut object = hub.as_object().unwrap().clone();
        from_hub(&mut object);
        assert_eq!(object["spec"]["podGroups"], json!([{"name": "a", "policy": {"basic": {}}}]));
        to_hub(&mut object).unwrap();
        assert_eq!(Value::Object(object), hub);
        let composite = json!({"metadata": {}, "spec": {"compositePodGroupTemplates": [{"name": "c"}]}});
        let mut object = composite.as_object().unwrap().clone();
        from_hub(&mut object);
        assert_eq!(object["spec"]["podGroups"], json!([]));
    }

    #[test]
    fn findings_name_fields_of_the_old_version() {
        let cases = [
            ("spec.podGroupTemplates[0].schedulingPolicy.gang", "spec.podGroups[0].policy.gang"),
            ("spec.podGroupTemplates", "spec.podGroups"),
            ("spec.controllerRef", "spec.controllerRef"),
        ];
        for (hub, old) in cases {
            assert_eq!(path(hub), old);
        }
        let mut wrong = json!({"spec": {"podGroups": 3}}).as_object().unwrap().clone();
        assert_eq!(to_hub(&mut wrong).unwrap()[0].field, "spec.podGroups");
    }
}
