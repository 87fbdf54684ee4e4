//! Conversion between `scheduling.k8s.io/v1alpha2` and the stored `v1beta1`.

use super::stash::{objects_of, put_stash, rename, restore, set_aside, take_stash, wrong_type};
use crate::error::{ApiError, Cause, CauseReason};
use crate::registry::Resource;
use serde_json::{Map, Value, json};

/// Fields of a PodGroup's spec that only the hub has.
const POD_GROUP_HUB_FIELDS: [&str; 2] = ["preemptionPolicy", "parentCompositePodGroupName"];
/// The field of a Workload's spec that only the hub has.
const COMPOSITES: &str = "compositePodGroupTemplates";
const TEMPLATES: &str = "podGroupTemplates";
/// The field of a template that only the hub has.
const TEMPLATE_HUB_FIELD: &str = "preemptionPolicy";
const OLD_MODES: [&str; 2] = ["Pod", "PodGroup"];

/// Names of fields that the two versions spell differently: v1alpha2 first.
const RENAMED: [(&str, &str); 2] = [
    ("spec.podGroupTemplateRef.workload.podGroupTemplateName", "spec.workloadRef.templateName"),
    ("spec.podGroupTemplateRef.workload", "spec.workloadRef"),
];

/// v1alpha2 to v1beta1, `apiVersion` left alone.
pub(super) fn to_hub(resource: &Resource, object: &mut Map<String, Value>) -> Result<Vec<Cause>, ApiError> {
    let stash = take_stash(object)?;
    let mut causes = Vec::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        match resource.kind {
            "PodGroup" => pod_group_to_hub(spec, &stash, &mut causes),
            "Workload" => workload_to_hub(spec, &stash, &mut causes),
            _ => {}
        }
    }
    swap_condition_types(object);
    Ok(causes)
}

/// v1beta1 to v1alpha2, `apiVersion` left alone.
pub(super) fn from_hub(resource: &Resource, object: &mut Map<String, Value>) {
    let mut stash = Map::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        match resource.kind {
            "PodGroup" => pod_group_to_alpha(spec, &mut stash),
            "Workload" => workload_to_alpha(spec, &mut stash),
            _ => {}
        }
    }
    swap_condition_types(object);
    put_stash(object, stash);
}

/// The path of a field as v1alpha2 spells it.
pub(super) fn path(path: &str) -> String {
    for (alpha, hub) in RENAMED {
        if let Some(rest) = path.strip_prefix(hub)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return format!("{alpha}{rest}");
        }
    }
    path.to_owned()
}

fn pod_group_to_hub(spec: &mut Map<String, Value>, stash: &Map<String, Value>, causes: &mut Vec<Cause>) {
    // v1alpha2 does not know these, so a value in the body is as good as unknown.
    spec.remove("workloadRef");
    for field in POD_GROUP_HUB_FIELDS {
        restore(spec, field, stash.get(field));
    }
    if let Some(reference) = spec.remove("podGroupTemplateRef").filter(|r| !r.is_null()) {
        match template_ref_to_hub(reference) {
            Ok(reference) => {
                spec.insert("workloadRef".to_owned(), reference);
            }
            Err(cause) => causes.push(cause),
        }
    }
    mode_to_hub(spec, "spec", causes);
}

fn pod_group_to_alpha(spec: &mut Map<String, Value>, stash: &mut Map<String, Value>) {
    for field in POD_GROUP_HUB_FIELDS {
        set_aside(spec, field, stash);
    }
    if let Some(mut reference) = spec.remove("workloadRef").filter(|r| !r.is_null()) {
        rename(&mut reference, "templateName", "podGroupTemplateName");
        spec.insert("podGroupTemplateRef".to_owned(), json!({"workload": reference}));
    }
    mode_to_alpha(spec);
}

fn workload_to_hub(spec: &mut Map<String, Value>, stash: &Map<String, Value>, causes: &mut Vec<Cause>) {
    restore(spec, COMPOSITES, stash.get(COMPOSITES));
    let stashed = stash.get(TEMPLATES);
    for (index, template) in objects_of(spec, TEMPLATES) {
        let kept = template
            .get("name")
            .and_then(Value::as_str)
            .and_then(|name| stashed?.get(name)?.get(TEMPLATE_HUB_FIELD))
            .cloned();
        restore(template, TEMPLATE_HUB_FIELD, kept.as_ref());
        mode_to_hub(template, &format!("spec.{TEMPLATES}[{index}]"), causes);
    }
}

fn workload_to_alpha(spec: &mut Map<String, Value>, stash: &mut Map<String, Value>) {
    set_aside(spec, COMPOSITES, stash);
    let mut templates = Map::new();
    for (_, template) in objects_of(spec, TEMPLATES) {
        let mut kept = Map::new();
        set_aside(template, TEMPLATE_HUB_FIELD, &mut kept);
        if let Some(name) = template.get("name").and_then(Value::as_str)
            && !kept.is_empty()
        {
            templates.insert(name.to_owned(), Value::Object(kept));
        }
        mode_to_alpha(template);
    }
    if !templates.is_empty() {
        stash.insert(TEMPLATES.to_owned(), Value::Object(templates));
    }
}

/// `{workload: {workloadName, podGroupTemplateName}}` to `{workloadName, templateName}`.
fn template_ref_to_hub(mut reference: Value) -> Result<Value, Cause> {
    const PATH: &str = "spec.podGroupTemplateRef";
    let Some(union) = reference.as_object_mut() else {
        return Err(wrong_type(PATH, "object"));
    };
    match union.remove("workload") {
        Some(mut workload @ Value::Object(_)) => {
            rename(&mut workload, "podGroupTemplateName", "templateName");
            Ok(workload)
        }
        None | Some(Value::Null) => Err(Cause {
            reason: CauseReason::Required,
            field: format!("{PATH}.workload"),
            message: "Required value: the reference must name a workload".to_owned(),
        }),
        Some(_) => Err(wrong_type(&format!("{PATH}.workload"), "object")),
    }
}

fn mode_to_hub(holder: &mut Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let Some(mode) = holder.get_mut("disruptionMode").filter(|m| !m.is_null()) else {
        return;
    };
    *mode = match mode.as_str() {
        Some("Pod") => json!({"single": {}}),
        Some("PodGroup") => json!({"all": {}}),
        Some(other) => {
            let list = OLD_MODES.map(|m| format!("{m:?}")).join(", ");
            causes.push(Cause {
                reason: CauseReason::NotSupported,
                field: format!("{path}.disruptionMode"),
                message: format!("Unsupported value: {other:?}: supported values: {list}"),
            });
            return;
        }
        None => {
            causes.push(wrong_type(&format!("{path}.disruptionMode"), "string"));
            return;
        }
    };
}

fn mode_to_alpha(holder: &mut Map<String, Value>) {
    let Some(mode) = holder.get("disruptionMode").filter(|m| !m.is_null()) else {
        return;
    };
    let old = if mode.get("single").is_some() {
        Some("Pod")
    } else if mode.get("all").is_some() {
        Some("PodGroup")
    } else {
        None
    };
    match old {
        Some(old) => holder.insert("disruptionMode".to_owned(), json!(old)),
        None => holder.remove("disruptionMode"),
    };
}

/// The condition was renamed. Both names are swapped, not only the current one replaced: a swap is its own
/// inverse, so that even a condition that happens to have the other version's name survives a round trip.
fn swap_condition_types(object: &mut Map<String, Value>) {
    let conditions =
        object.get_mut("status").and_then(|s| s.get_mut("conditions")).and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let Some(kind) = condition.get_mut("type") else {
            continue;
        };
        let swapped = match kind.as_str() {
            Some("PodGroupScheduled") => "PodGroupInitiallyScheduled",
            Some("PodGroupInitiallyScheduled") => "PodGroupScheduled",
            _ => continue,
        };
        *kind = json!(swapped);
    }
}
