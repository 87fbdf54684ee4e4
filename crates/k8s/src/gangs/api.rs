//! How Workloads and groups are written in the versions that clusters serve.

use crate::discovery::NATIVE_GROUP;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The first version with groups.
const VERSION_1_36: &str = "v1alpha2";
/// What a template may say that groups by our own definition do not know.
const NATIVE_FIELDS: [&str; 2] = ["priorityClassName", "resourceClaims"];

/// The kinds to write, and by which rules.
#[derive(Debug, Clone)]
pub struct Api {
    /// Workloads; `None` where only our own definition of groups is served.
    pub workloads: Option<Arc<ApiResource>>,
    /// Groups.
    pub groups: Arc<ApiResource>,
}

impl Api {
    /// For a cluster that serves groups by this resource. `None` if it has no objects for groups: in 1.35, pods name
    /// parts of Workloads instead.
    pub fn of(groups: &ApiResource) -> Option<Self> {
        if groups.kind != "PodGroup" {
            return None;
        }
        let workloads = (groups.group == NATIVE_GROUP).then(|| {
            Arc::new(ApiResource {
                kind: "Workload".to_owned(),
                plural: "workloads".to_owned(),
                ..groups.clone()
            })
        });
        Some(Self { workloads, groups: Arc::new(groups.clone()) })
    }

    /// True where Jobs say by `spec.scheduling` what they want; elsewhere their shape decides.
    pub(super) fn has_scheduling_of_jobs(&self) -> bool {
        self.workloads.is_some() && self.groups.version != VERSION_1_36
    }

    /// True if the minimum of a gang may change.
    pub fn can_resize(&self) -> bool {
        self.groups.version != VERSION_1_36
    }

    /// The spec of a group made of a template of this Workload.
    pub fn group_spec(&self, template: &Value, workload: &str) -> Value {
        let mut spec = template.as_object().cloned().unwrap_or_default();
        let name = spec.remove("name").unwrap_or_default();
        if self.workloads.is_none() {
            for field in NATIVE_FIELDS {
                spec.remove(field);
            }
        } else if self.groups.version == VERSION_1_36 {
            let reference = json!({"workload": {"workloadName": workload, "podGroupTemplateName": name}});
            spec.insert("podGroupTemplateRef".to_owned(), reference);
        } else {
            spec.insert("workloadRef".to_owned(), json!({"workloadName": workload, "templateName": name}));
        }
        Value::Object(spec)
    }
}

/// The Workload that the spec of a group names, in any version.
pub fn workload_of(group_spec: &Value) -> Option<&str> {
    let places = ["/workloadRef/workloadName", "/podGroupTemplateRef/workload/workloadName"];
    places.into_iter().find_map(|place| group_spec.pointer(place)).and_then(Value::as_str)
}

/// The template of a role: its policy, and what else it says of scheduling.
pub(super) fn template(name: &str, policy: Value, scheduling: Option<&Value>, class: Option<&str>) -> Value {
    let mut template = Map::new();
    template.insert("name".to_owned(), json!(name));
    template.insert("schedulingPolicy".to_owned(), policy);
    for field in ["schedulingConstraints", "disruptionMode", "resourceClaims"] {
        if let Some(value) = scheduling.and_then(|scheduling| scheduling.get(field)).filter(|v| !v.is_null())
        {
            template.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(class) = class {
        template.insert("priorityClassName".to_owned(), json!(class));
    }
    Value::Object(template)
}
