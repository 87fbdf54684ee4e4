//! Where objects that run several pods together say so: one row a kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

/// Most roles of one object, as a Workload takes no more templates.
pub(super) const ROLES_MAX: usize = 8;

/// The annotation by which an object asks for a gang, whatever the rules of its kind say.
pub const GANG_ANNOTATION: &str = "tutti.dev/gang";
/// The annotation of objects whose groups somebody above them makes.
pub(crate) const DELEGATED_ANNOTATION: &str = "scheduling.k8s.io/group-template-name";
/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Where one kind says what. Places are JSON pointers; the empty one is the whole.
#[derive(Debug)]
pub struct Row {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
    /// In `spec`: the roles. A list has a role an entry; anything else is the only role.
    roles: &'static str,
    /// In a role: how many pods run at a time; one where it is absent.
    replicas: &'static str,
    /// In a role: how many pods it needs in all, which may be fewer than could run at a time.
    total: &'static str,
    /// In a role: the template of its pods.
    template: &'static str,
    /// In a role: how its pods are to be scheduled, and with it the minimum of a gang.
    scheduling: &'static str,
    /// Whether a role of so many pods runs all of them at once or makes no sense.
    runs_at_once: fn(role: &Value, replicas: u32) -> bool,
    /// In `status`: numbers that are above zero once a pod ran.
    progress: &'static [&'static str],
    /// Conditions that say that it has ended.
    ends: &'static [&'static str],
    /// Kinds that own such objects without having groups of their own.
    plain_owners: &'static [&'static str],
}

/// Jobs.
pub const JOB: Row = Row {
    group: "batch",
    version: "v1",
    kind: "Job",
    plural: "jobs",
    roles: "",
    replicas: "/parallelism",
    total: "/completions",
    template: "/template",
    scheduling: "/scheduling",
    runs_at_once: |role, replicas| {
        role.pointer("/completionMode").and_then(Value::as_str) == Some("Indexed")
            && role.pointer("/completions").and_then(Value::as_u64) == Some(u64::from(replicas))
            && replicas > 1
    },
    progress: &["/ready", "/succeeded", "/failed"],
    ends: &["Complete", "Failed"],
    plain_owners: &["CronJob"],
};

/// What an object asks for, and how far it is: all that is read of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asks {
    /// By their order. More than the limit are as good as none.
    pub(super) roles: Vec<Role>,
    /// It asks for a gang by annotation.
    pub(super) is_annotated: bool,
    /// Somebody above it sees to its groups.
    pub(super) is_delegated: bool,
    /// It names the template that its group is made of.
    pub(super) names_template: bool,
    /// A pod runs or ran.
    pub has_run: bool,
    /// It is over.
    pub has_ended: bool,
}

/// One role.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Role {
    pub(super) replicas: u32,
    /// How many pods it has at a time: no more than it needs in all.
    pub(super) at_a_time: u32,
    pub(super) runs_at_once: bool,
    pub(super) scheduling: Option<Value>,
    pub(super) scheduler_name: String,
    pub(super) priority_class: Option<String>,
    /// Its pods name a group themselves.
    pub(super) has_group: bool,
}

impl Row {
    /// What matters of an object; the rest of it is not kept.
    pub fn read(&self, metadata: &ObjectMeta, spec: &Value, status: &Value) -> Asks {
        let roles = match spec.pointer(self.roles) {
            Some(Value::Array(roles)) if roles.len() > ROLES_MAX => Vec::new(),
            Some(Value::Array(roles)) => roles.iter().map(|role| self.role(role)).collect(),
            Some(Value::Null) | None => Vec::new(),
            Some(role) => vec![self.role(role)],
        };
        let counts = |place: &&str| status.pointer(place).and_then(Value::as_u64).is_some_and(|n| n > 0);
        let mut conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
        let ends = |condition: &Value| {
            let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
            text("status") == "True" && self.ends.contains(&text("type"))
        };
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).map(String::as_str);
        let has_groups = |parent: &OwnerReference| {
            parent.controller == Some(true) && !self.plain_owners.contains(&&*parent.kind)
        };
        Asks {
            roles,
            is_annotated: annotation(GANG_ANNOTATION) == Some("true"),
            names_template: annotation(DELEGATED_ANNOTATION).is_some(),
            is_delegated: annotation(DELEGATED_ANNOTATION).is_some()
                || metadata.owner_references.iter().flatten().any(has_groups),
            has_run: self.progress.iter().any(counts),
            has_ended: conditions.any(ends),
        }
    }

    fn role(&self, role: &Value) -> Role {
        let replicas = role.pointer(self.replicas).and_then(Value::as_u64).unwrap_or(1);
        let replicas = u32::try_from(replicas).unwrap_or(u32::MAX);
        let total = role.pointer(self.total).and_then(Value::as_u64);
        let total = total.map_or(u32::MAX, |total| u32::try_from(total).unwrap_or(u32::MAX));
        let pod = role.pointer(self.template).and_then(|template| template.get("spec"));
        let text = |field: &str| pod?.get(field)?.as_str().filter(|text| !text.is_empty());
        Role {
            replicas,
            at_a_time: replicas.min(total),
            runs_at_once: (self.runs_at_once)(role, replicas),
            scheduling: role.pointer(self.scheduling).filter(|value| value.is_object()).cloned(),
            scheduler_name: text("schedulerName").unwrap_or(DEFAULT_SCHEDULER).to_owned(),
            priority_class: text("priorityClassName").map(str::to_owned),
            has_group: pod.and_then(|pod| pod.get("schedulingGroup")).is_some_and(|group| !group.is_null()),
        }
    }
}
