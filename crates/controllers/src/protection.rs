//! A PodGroup that is deleted stays until none of its members needs it any more.
//!
//! The finalizer is put on new groups by the API server; this takes it away from those that nobody uses. A member
//! that has not ended uses its group, also if it was never started.

use crate::action::{Action, Plan};
use crate::pod::PodView;
use crate::view::View;
use kube::core::ApiResource;
use std::sync::Arc;

/// The finalizer that keeps a group.
pub const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// A PodGroup, of which nothing but the metadata matters here.
pub type GroupView = View<()>;

/// The resource of pod groups in the version that a cluster serves.
pub fn pod_groups(version: &str) -> Arc<ApiResource> {
    Arc::new(ApiResource {
        group: "scheduling.k8s.io".to_owned(),
        version: version.to_owned(),
        api_version: format!("scheduling.k8s.io/{version}"),
        kind: "PodGroup".to_owned(),
        plural: "podgroups".to_owned(),
    })
}

/// True if this pod keeps its group.
pub fn holds_its_group(pod: &PodView) -> bool {
    pod.group().is_some() && !pod.has_ended()
}

/// What is to be done about a group, given whether some pod [holds](holds_its_group) it.
pub fn plan(group: &GroupView, is_held: bool, resource: &Arc<ApiResource>) -> Plan {
    if !group.is_terminating() || !group.has_finalizer(FINALIZER) || is_held {
        return Plan::nothing();
    }
    Plan::one(Action::patch(resource, group.key(), group.without_finalizer(FINALIZER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn group(finalizers: &Value, deleted: bool) -> GroupView {
        let mut object = json!({"metadata": {
            "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "3", "finalizers": finalizers,
        }});
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
        }
        serde_json::from_value(object).unwrap()
    }

    fn pod(group: &str, phase: &str) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a"},
            "spec": {"schedulingGroup": {"podGroupName": group}},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn only_a_deleted_group_that_nobody_holds_loses_its_finalizer_and_keeps_those_of_others() {
        let groups = pod_groups("v1beta1");
        let both = json!(["example.com/mine", FINALIZER]);
        assert_eq!(plan(&group(&both, false), false, &groups), Plan::nothing());
        assert_eq!(plan(&group(&both, true), true, &groups), Plan::nothing());
        assert_eq!(plan(&group(&json!(["example.com/mine"]), true), false, &groups), Plan::nothing());
        let freed = plan(&group(&both, true), false, &groups);
        let [Action::Patch { edit, .. }] = &freed.actions[..] else {
            panic!("one patch, not {freed:?}")
        };
        assert!(!edit.of_status);
        assert_eq!(edit.body["metadata"]["finalizers"], json!(["example.com/mine"]));
        assert_eq!(edit.body["metadata"]["resourceVersion"], "3");
    }

    #[test]
    fn a_member_holds_its_group_until_it_has_ended() {
        for (group, phase, holds) in
            [("g", "Pending", true), ("g", "Running", true), ("g", "Succeeded", false), ("g", "Failed", false), ("", "Running", false)]
        {
            assert_eq!(holds_its_group(&pod(group, phase)), holds, "{group} {phase}");
        }
    }
}
