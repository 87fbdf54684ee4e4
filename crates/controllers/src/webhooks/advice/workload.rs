//! Workloads: their templates, and in 1.35 their parts.

use super::super::knowledge::{JobView, Knowledge};
use super::super::review::Object;
use super::{about_group, read, too_many};
use serde_json::Value;

/// Levels of templates that a Workload may have; what is deeper is refused by the API server.
const DEPTH_MAX: usize = 4;
/// Templates that are looked at, which is more than a valid Workload has that somebody wrote by hand.
const TEMPLATES_MAX: usize = 64;

pub(super) fn warnings(object: &Object, namespace: &str, knowledge: &Knowledge) -> Vec<String> {
    let job = knowledge.job_of(namespace, object);
    let mut warnings = Vec::new();
    let mut left = TEMPLATES_MAX;
    templates(&object.spec, "spec", DEPTH_MAX, &mut left, &mut |place, template, is_composite| {
        let reading = read(is_composite, None, template);
        warnings.extend(about_group(reading, place, job, knowledge));
    });
    warnings.extend(parts(&object.spec, job));
    warnings
}

/// Visits the templates below an object, with where each is and whether it is one of groups.
fn templates(
    parent: &Value,
    place: &str,
    depth_left: usize,
    left: &mut usize,
    visit: &mut dyn FnMut(&str, &Value, bool),
) {
    if depth_left == 0 {
        return;
    }
    for (field, is_composite) in [("podGroupTemplates", false), ("compositePodGroupTemplates", true)] {
        let list = parent.get(field).and_then(Value::as_array).into_iter().flatten();
        for (index, template) in list.enumerate() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let place = format!("{place}.{field}[{index}]");
            visit(&place, template, is_composite);
            if is_composite {
                templates(template, &place, depth_left - 1, left, visit);
            }
        }
    }
}

/// The same of the parts that 1.35 has instead of templates.
fn parts(spec: &Value, job: Option<&JobView>) -> Vec<String> {
    let Some(job) = job else { return Vec::new() };
    let parts = spec.get("podGroups").and_then(Value::as_array).into_iter().flatten();
    let warnings = parts.take(TEMPLATES_MAX).enumerate().filter_map(|(index, part)| {
        let minimum = part.pointer("/policy/gang/minCount")?.as_u64()?;
        let field = format!("spec.podGroups[{index}].policy.gang.minCount");
        too_many(&field, u32::try_from(minimum).unwrap_or(u32::MAX), job)
    });
    warnings.collect()
}
