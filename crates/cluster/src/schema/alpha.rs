//! Schemas of `scheduling.k8s.io/v1alpha2` and `v1alpha1`, made from those of v1beta1: they differ in a few fields,
//! and their types are no longer part of the library that has the others.

use super::components::{Components, reference, referenced};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const BETA: &str = "io.k8s.api.scheduling.v1beta1.";
const ALPHA: &str = "io.k8s.api.scheduling.v1alpha2.";
const OLDEST: &str = "io.k8s.api.scheduling.v1alpha1.";

/// Schemas of v1alpha1 from those of v1beta1; all others stay.
pub(super) fn v1alpha1(beta: Components) -> Components {
    let mut components = renamed_all(beta, OLDEST);
    edit(&mut components, OLDEST, "WorkloadSpec", |properties| {
        properties.remove("compositePodGroupTemplates");
        properties.remove("podGroupTemplates");
        properties.insert(
            "podGroups".to_owned(),
            json!({
                "description": "The groups of pods that the workload consists of. Immutable.",
                "type": "array", "maxItems": 8, "items": reference(&format!("{OLDEST}PodGroup")),
            }),
        );
    });
    require(&mut components, OLDEST, "podGroups");
    let mut policy = reference(&format!("{OLDEST}PodGroupPolicy"));
    policy["description"] = json!("How the pods of the group are scheduled.");
    components.insert(
        format!("{OLDEST}PodGroup"),
        json!({
            "description": "Pods that are scheduled by one policy.",
            "type": "object",
            "required": ["name", "policy"],
            "properties": {
                "name": {"type": "string", "description": "Name of the group, unique within the workload."},
                "policy": policy,
            },
        }),
    );
    components.insert(
        format!("{OLDEST}PodGroupPolicy"),
        json!({
            "description": "Exactly one member must be set.",
            "type": "object",
            "properties": {
                "basic": reference(&format!("{OLDEST}BasicSchedulingPolicy")),
                "gang": reference(&format!("{OLDEST}GangSchedulingPolicy")),
            },
        }),
    );
    drop_unreachable(&mut components, OLDEST, &["Workload"]);
    components
}

/// Schemas of v1alpha2 from those of v1beta1; all others stay.
pub(super) fn v1alpha2(beta: Components) -> Components {
    let mut components = renamed_all(beta, ALPHA);
    edit(&mut components, ALPHA, "PodGroupSpec", |properties| {
        for field in ["workloadRef", "parentCompositePodGroupName", "preemptionPolicy"] {
            properties.remove(field);
        }
        properties.insert("disruptionMode".to_owned(), disruption_mode());
        let mut link = reference(&format!("{ALPHA}PodGroupTemplateReference"));
        link["description"] = json!("The template that this group was made from. Immutable.");
        properties.insert("podGroupTemplateRef".to_owned(), link);
    });
    edit(&mut components, ALPHA, "PodGroupTemplate", |properties| {
        properties.remove("preemptionPolicy");
        properties.insert("disruptionMode".to_owned(), disruption_mode());
    });
    edit(&mut components, ALPHA, "WorkloadSpec", |properties| {
        properties.remove("compositePodGroupTemplates");
    });
    require(&mut components, ALPHA, "podGroupTemplates");
    add_template_references(&mut components);
    drop_unreachable(&mut components, ALPHA, &["Workload", "PodGroup"]);
    components
}

/// The only field that the spec of a Workload must have.
fn require(components: &mut Components, prefix: &str, field: &str) {
    if let Some(Value::Object(spec)) = components.get_mut(&format!("{prefix}WorkloadSpec")) {
        spec.insert("required".to_owned(), json!([field]));
    }
}

fn renamed_all(beta: Components, prefix: &str) -> Components {
    let renamed = |name: &str| {
        name.strip_prefix(BETA).map_or_else(|| name.to_owned(), |rest| format!("{prefix}{rest}"))
    };
    beta.into_iter()
        .map(|(name, mut schema)| {
            rename_references(&mut schema, prefix);
            (renamed(&name), schema)
        })
        .collect()
}

fn rename_references(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(target) if key == "$ref" => *target = target.replace(BETA, prefix),
                    _ => rename_references(value, prefix),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| rename_references(value, prefix)),
        _ => {}
    }
}

fn edit(components: &mut Components, prefix: &str, kind: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let schema = components.get_mut(&format!("{prefix}{kind}"));
    if let Some(properties) = schema.and_then(|s| s.get_mut("properties")).and_then(Value::as_object_mut) {
        change(properties);
    }
}

fn disruption_mode() -> Value {
    json!({
        "description": "Whether the pods of the group may be disrupted one by one (Pod, the default) or only all \
            together (PodGroup). Immutable.",
        "type": "string",
        "enum": ["Pod", "PodGroup"],
    })
}

fn add_template_references(components: &mut Components) {
    let mut workload = reference(&format!("{ALPHA}WorkloadPodGroupTemplateReference"));
    workload["description"] = json!("A template of a Workload in the same namespace.");
    components.insert(
        format!("{ALPHA}PodGroupTemplateReference"),
        json!({
            "description": "Names the template of a PodGroup. Exactly one member must be set.",
            "type": "object",
            "properties": {"workload": workload},
        }),
    );
    components.insert(
        format!("{ALPHA}WorkloadPodGroupTemplateReference"),
        json!({
            "description": "Names a template within a Workload.",
            "type": "object",
            "required": ["workloadName", "podGroupTemplateName"],
            "properties": {
                "workloadName": {"type": "string", "description": "Name of the Workload."},
                "podGroupTemplateName": {"type": "string", "description": "Name of the template in it."},
            },
        }),
    );
}

/// Types that only removed fields had.
fn drop_unreachable(components: &mut Components, prefix: &str, kinds: &[&str]) {
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut waiting: Vec<String> = kinds.iter().map(|kind| format!("{prefix}{kind}")).collect();
    while let Some(name) = waiting.pop() {
        let Some(schema) = components.get(&name) else {
            continue;
        };
        if reached.insert(name) {
            collect_references(schema, &mut waiting);
        }
    }
    components.retain(|name, _| !name.starts_with(prefix) || reached.contains(name));
}

fn collect_references(schema: &Value, out: &mut Vec<String>) {
    out.extend(referenced(schema).map(str::to_owned));
    match schema {
        Value::Object(map) => map.values().for_each(|value| collect_references(value, out)),
        Value::Array(list) => list.iter().for_each(|value| collect_references(value, out)),
        _ => {}
    }
}
