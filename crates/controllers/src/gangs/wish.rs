//! What an object wants, by the rules of its cluster.

use super::api::{Api, template};
use super::kinds::{Owner, Role, Row, is_annotated};
use super::names;
use serde_json::{Value, json};

/// A template for every role of an object that is to have groups; `None` if it is left alone.
pub(super) fn templates(
    row: &Row,
    owner: &Owner,
    api: &Api,
    serves: impl Fn(&str) -> bool,
) -> Option<Vec<Value>> {
    let roles = &owner.spec.roles;
    let is_ours = |role: &Role| serves(&role.scheduler_name) && !role.has_group;
    if roles.is_empty() || !roles.iter().all(is_ours) || row.is_delegated(owner) {
        return None;
    }
    let templates = roles.iter().enumerate().map(|(index, role)| {
        let policy = policy(role, is_annotated(owner), api)?;
        let name = names::template(owner.name(), index);
        let scheduling = role.scheduling.as_ref().filter(|_| api.has_scheduling_of_jobs());
        Some(template(&name, policy, scheduling, role.priority_class.as_deref()))
    });
    templates.collect()
}

/// How the pods of a role start; `None` if nobody asked.
fn policy(role: &Role, is_annotated: bool, api: &Api) -> Option<Value> {
    let all = role.replicas.max(1);
    if api.has_scheduling_of_jobs()
        && let Some(scheduling) = &role.scheduling
    {
        let policy = scheduling.get("schedulingPolicy").filter(|policy| policy.is_object());
        let Some(gang) = policy.and_then(|policy| policy.get("gang")).filter(|gang| !gang.is_null()) else {
            return Some(json!({"basic": {}}));
        };
        let minimum = gang.get("minCount").and_then(Value::as_u64).filter(|count| *count > 0);
        return Some(gang_of(minimum.unwrap_or(u64::from(all))));
    }
    let asks = is_annotated || (role.runs_at_once && !api.has_scheduling_of_jobs());
    asks.then(|| gang_of(u64::from(all)))
}

fn gang_of(minimum: u64) -> Value {
    json!({"gang": {"minCount": minimum}})
}
