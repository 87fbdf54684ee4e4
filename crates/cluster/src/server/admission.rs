//! What a new object gets besides its defaults: pods and pod groups take the priority of their class, and groups
//! are protected.

use super::{ApiServer, metadata};
use crate::error::ApiError;
use crate::kinds;
use crate::registry::{Resource, ResourceId};
use crate::store::{Key, Range};
use serde_json::{Map, Value, json};
use tutti_controllers::protection;

/// Priority of those who name no class while no class is the default.
const PRIORITY_DEFAULT: i64 = 0;

const SCHEDULING: &str = "scheduling.k8s.io";
const POLICY_DEFAULT: &str = "PreemptLowerPriority";

/// Classes that every cluster has. Users can neither make nor unmake names that begin with `system-`.
pub(super) const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// What a class says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Priority {
    /// Name of the class; empty if there is none.
    class: String,
    value: i64,
    policy: String,
}

impl ApiServer {
    /// Sets what is taken from other objects, or refuses what contradicts them. The object is in hub form,
    /// its defaults are set.
    pub(super) fn admit_new(&self, resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
        if (resource.group, resource.kind) == ("scheduling.k8s.io", "PodGroup") {
            protect(object);
        }
        let takes_policy = match (resource.group, resource.kind) {
            ("", "Pod") => {
                self.admit_account(resource, object)?;
                true
            }
            ("", "Service") => return self.admit_service(resource, object),
            (SCHEDULING, "PriorityClass") => return self.admit_class(resource, object),
            // The preemption policy of a group is its own; it is not taken from the class yet.
            (SCHEDULING, "PodGroup" | "CompositePodGroup") => false,
            _ => return Ok(()),
        };
        let name = metadata::text(object, "name").to_owned();
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
            // A missing or malformed spec is for validation to report.
            return Ok(());
        };
        let refuse = |why: String| ApiError::forbidden(resource, &name, &why);
        let class = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default();
        let priority = self
            .priority_of(class)
            .ok_or_else(|| refuse(format!("no PriorityClass with name {class} was found")))?;
        if let Some(asked) = spec.get("priority").filter(|p| !p.is_null())
            && asked.as_i64() != Some(priority.value)
        {
            let value = priority.value;
            return Err(refuse(if resource.group.is_empty() {
                format!(
                    "the integer value of priority ({asked}) must not be provided in pod spec; priority admission \
                     controller computed {value} from the given PriorityClass name"
                )
            } else {
                format!(
                    "priority set in the pod group ({asked}) must match the priority computed ({value}) based on the \
                     priority class set in the spec"
                )
            }));
        }
        if takes_policy {
            let asked = spec.get("preemptionPolicy").filter(|p| !p.is_null());
            if let Some(asked) = asked.filter(|asked| **asked != priority.policy) {
                return Err(refuse(format!(
                    "the string value of PreemptionPolicy ({asked}) must not be provided in the spec; {} was \
                     computed from the given PriorityClass name",
                    priority.policy
                )));
            }
        }
        set_priority(spec, priority, takes_policy);
        Ok(())
    }

    /// What is refused of a new object, valid by itself, because of other objects: the template that a group is made
    /// from must exist. From 1.37 on it need not.
    pub(super) fn check_admitted(&self, resource: &Resource, group: &Value) -> Result<(), ApiError> {
        if (resource.group, resource.kind) != (SCHEDULING, "PodGroup") || !kinds::is_before_1_37(resource) {
            return Ok(());
        }
        let text = |field: &str| {
            let reference = group.pointer("/spec/workloadRef")?;
            reference.get(field).and_then(Value::as_str).filter(|name| !name.is_empty())
        };
        let (Some(workload), Some(template)) = (text("workloadName"), text("templateName")) else {
            return Ok(());
        };
        let key = Key::new(metadata::text(group, "namespace"), workload);
        let found = ResourceId::of_kind(SCHEDULING, "Workload").and_then(|id| self.store.get(id, &key));
        let why = match found {
            None => format!("PodGroup rejected: Workload {workload:?} not found"),
            Some(found) if metadata::is_terminating(&found.value()) => {
                format!("PodGroup rejected: Workload {workload:?} is being deleted")
            }
            Some(found) => {
                let found = found.value();
                let templates = found.pointer("/spec/podGroupTemplates").and_then(Value::as_array);
                let named = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(template);
                if templates.is_some_and(|all| all.iter().any(named)) {
                    return Ok(());
                }
                format!("PodGroup rejected: PodGroupTemplate {template:?} not found in Workload {workload:?}")
            }
        };
        Err(ApiError::forbidden(resource, metadata::text(group, "name"), &why))
    }

    /// Keeps what an update does not say and the pod was once given.
    pub(super) fn admit_update(resource: &Resource, old: &Value, new: &mut Value) {
        if (resource.group, resource.kind) != ("", "Pod") {
            return;
        }
        for field in ["priority", "preemptionPolicy"] {
            let kept = old.get("spec").and_then(|spec| spec.get(field));
            if let (Some(kept), Some(spec)) = (kept, new.get_mut("spec").and_then(Value::as_object_mut)) {
                spec.entry(field).or_insert_with(|| kept.clone());
            }
        }
    }

    /// Only one class may be the default.
    pub(super) fn admit_class(&self, resource: &Resource, class: &Value) -> Result<(), ApiError> {
        let name = metadata::text(class, "name");
        let Some(id) = ResourceId::of_kind(SCHEDULING, "PriorityClass").filter(|_| is_default(class)) else {
            return Ok(());
        };
        let classes = self.store.list(id, Range::default()).objects;
        let other = classes.iter().find(|other| is_default(&other.value()) && *other.key().name != *name);
        match other {
            None => Ok(()),
            Some(other) => {
                let why = format!(
                    "PriorityClass {} is already marked as default. Only one default can exist",
                    other.key().name
                );
                Err(ApiError::forbidden(resource, name, &why))
            }
        }
    }

    /// The priority of a class; the default one for an empty name. `None` if there is no such class.
    fn priority_of(&self, class: &str) -> Option<Priority> {
        let id = ResourceId::of_kind("scheduling.k8s.io", "PriorityClass")?;
        if !class.is_empty() {
            return self.store.get(id, &Key::new("", class)).map(|object| Priority::of(&object.value()));
        }
        // Nothing but good manners keeps two classes from both being the default; the lower one counts.
        let classes = self.store.list(id, Range::default()).objects;
        let defaults = classes.iter().filter(|c| is_default(&c.value()));
        let lowest = defaults.map(|c| Priority::of(&c.value())).min_by_key(|priority| priority.value);
        Some(lowest.unwrap_or_else(|| Priority {
            class: String::new(),
            value: PRIORITY_DEFAULT,
            policy: POLICY_DEFAULT.to_owned(),
        }))
    }

    /// Makes the classes that every cluster has.
    pub(super) fn create_system_classes(&self) {
        let Some(id) = ResourceId::of_kind("scheduling.k8s.io", "PriorityClass") else {
            return;
        };
        for (name, value) in SYSTEM_CLASSES {
            let class = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name},
                "description": "For pods that the cluster itself cannot be without.",
                "value": value, "preemptionPolicy": POLICY_DEFAULT,
            });
            if let Err(error) = self.create_unchecked(id, name, class) {
                tracing::error!(class = name, %error, "a priority class of the cluster could not be made");
            }
        }
    }
}

fn is_default(class: &Value) -> bool {
    class.get("globalDefault") == Some(&Value::Bool(true))
}

impl Priority {
    fn of(class: &Value) -> Self {
        let policy = class.get("preemptionPolicy").and_then(Value::as_str).unwrap_or(POLICY_DEFAULT);
        Self {
            class: metadata::text(class, "name").to_owned(),
            value: class.get("value").and_then(Value::as_i64).unwrap_or(PRIORITY_DEFAULT),
            policy: policy.to_owned(),
        }
    }
}

/// Makes a group stay until none of its members needs it any more.
fn protect(group: &mut Value) {
    let Some(metadata) = metadata::of_mut(group) else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!(protection::FINALIZER))
    {
        finalizers.push(json!(protection::FINALIZER));
    }
}

fn set_priority(spec: &mut Map<String, Value>, priority: Priority, with_policy: bool) {
    spec.insert("priority".to_owned(), json!(priority.value));
    if !priority.class.is_empty() {
        spec.insert("priorityClassName".to_owned(), Value::String(priority.class));
    }
    if with_policy {
        spec.insert("preemptionPolicy".to_owned(), Value::String(priority.policy));
    }
}
