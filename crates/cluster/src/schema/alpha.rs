//! Schemas of `scheduling.k8s.io/v1alpha2`, made from those of v1beta1: the two differ in a few fields, and the
//! types of v1alpha2 are no longer part of the library that has the others.

use super::components::{Components, reference, referenced};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const BETA: &str = "io.k8s.api.scheduling.v1beta1.";
const ALPHA: &str = "io.k8s.api.scheduling.v1alpha2.";

/// Schemas of v1alpha2 from those of v1beta1; all others stay.
pub(super) fn from_beta(beta: Components) -> Components {
    let mut components: Components = beta
        .into_iter()
        .map(|(name, mut schema)| {
            rename_references(&mut schema);
            (renamed(&name), schema)
        })
        .collect();
    edit(&mut components, "PodGroupSpec", |properties| {
        for field in ["workloadRef", "parentCompositePodGroupName", "preemptionPolicy"] {
            properties.remove(field);
        }
        properties.insert("disruptionMode".to_owned(), disruption_mode());
        let mut link = reference(&format!("{ALPHA}PodGroupTemplateReference"));
        link["description"] = json!("The template that this group was made from. Immutable.");
        properties.insert("podGroupTemplateRef".to_owned(), link);
    });
    edit(&mut components, "PodGroupTemplate", |properties| {
        properties.remove("preemptionPolicy");
        properties.insert("disruptionMode".to_owned(), disruption_mode());
    });
    edit(&mut components, "WorkloadSpec", |properties| {
        properties.remove("compositePodGroupTemplates");
    });
    if let Some(Value::Object(spec)) = components.get_mut(&format!("{ALPHA}WorkloadSpec")) {
        spec.insert("required".to_owned(), json!(["podGroupTemplates"]));
    }
    add_template_references(&mut components);
    drop_unreachable(&mut components);
    components
}

fn renamed(name: &str) -> String {
    name.strip_prefix(BETA).map_or_else(|| name.to_owned(), |rest| format!("{ALPHA}{rest}"))
}

fn rename_references(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(target) if key == "$ref" => *target = target.replace(BETA, ALPHA),
                    _ => rename_references(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(rename_references),
        _ => {}
    }
}

fn edit(components: &mut Components, kind: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let schema = components.get_mut(&format!("{ALPHA}{kind}"));
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
fn drop_unreachable(components: &mut Components) {
    let roots = ["Workload", "PodGroup"].map(|kind| format!("{ALPHA}{kind}"));
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut waiting: Vec<String> = roots.to_vec();
    while let Some(name) = waiting.pop() {
        let Some(schema) = components.get(&name) else {
            continue;
        };
        if reached.insert(name) {
            collect_references(schema, &mut waiting);
        }
    }
    components.retain(|name, _| !name.starts_with(ALPHA) || reached.contains(name));
}

fn collect_references(schema: &Value, out: &mut Vec<String>) {
    out.extend(referenced(schema).map(str::to_owned));
    match schema {
        Value::Object(map) => map.values().for_each(|value| collect_references(value, out)),
        Value::Array(list) => list.iter().for_each(|value| collect_references(value, out)),
        _ => {}
    }
}
