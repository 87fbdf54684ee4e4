//! What an object wants, by the rules of its cluster.

use super::api::{Api, template};
use super::kinds::{Asks, Role};
use super::names;
use serde_json::{Value, json};

impl Asks {
    /// A template for every role of an object of this name if it is to have groups; `None` if it is left alone.
    pub fn templates(&self, name: &str, api: &Api, serves: impl Fn(&str) -> bool) -> Option<Vec<Value>> {
        if !self.is_ours(serves) || self.is_delegated {
            return None;
        }
        let templates = self.roles.iter().enumerate().map(|(index, role)| {
            let policy = policy(role, self.is_annotated, api)?;
            let scheduling = role.scheduling.as_ref().filter(|_| api.has_scheduling_of_jobs());
            let name = names::template(name, index);
            Some(template(&name, policy, scheduling, role.priority_class.as_deref()))
        });
        templates.collect()
    }

    /// True if groups are to be there before the first pod starts. Once a pod ran, nothing is made any more: a gang that
    /// began in parts is none.
    pub fn awaits_groups(&self, api: &Api, serves: impl Fn(&str) -> bool) -> bool {
        // A group out of a template of a Workload that somebody else makes is waited for just as well.
        let is_stamped = self.names_template && api.workloads.is_some() && self.is_ours(&serves);
        // Whether it is wanted does not depend on the name.
        !self.has_run && (is_stamped || self.templates("", api, serves).is_some())
    }

    /// True if all its pods are of schedulers that understand groups, and name none themselves.
    fn is_ours(&self, serves: impl Fn(&str) -> bool) -> bool {
        let is_ours = |role: &Role| serves(&role.scheduler_name) && !role.has_group;
        !self.roles.is_empty() && self.roles.iter().all(is_ours)
    }
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
    // A gang that waits for more pods than there will be would wait for ever.
    asks.then(|| gang_of(u64::from(role.at_a_time.max(1))))
}

fn gang_of(minimum: u64) -> Value {
    json!({"gang": {"minCount": minimum}})
}
