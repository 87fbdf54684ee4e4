//! The table of what each kind does on its own. A kind without a row is stored as it comes, once its metadata
//! and types are right.

use super::field::Field;
use super::{
    claims, config, defaults, events, groups, jobs, others, pod, pod_defaults, pod_update, replicas,
    services, storage, workload,
};
use crate::custom;
use crate::error::Cause;
use crate::registry::Resource;
use serde_json::{Map, Value};

type Change = fn(&mut Map<String, Value>);
type Check = fn(&Field<'_, '_>, &mut Vec<Cause>);
type CheckChange = fn(&Field<'_, '_>, &Field<'_, '_>, &mut Vec<Cause>);

/// What one kind does.
pub(super) struct KindRules {
    group: &'static str,
    kind: &'static str,
    /// Fills in what a write left out; done again on every write.
    pub(super) defaults: Change,
    /// What is wrong with an object, new or not.
    pub(super) validate: Check,
    /// What else is wrong with a new object.
    pub(super) validate_new: Check,
    /// What is wrong with replacing an object by another.
    pub(super) validate_update: CheckChange,
    /// What else is wrong with it for a cluster that is like an older release.
    pub(super) validate_update_before_1_37: CheckChange,
    /// What is wrong with a new status.
    pub(super) validate_status: CheckChange,
}

impl KindRules {
    const fn defaults(self, defaults: Change) -> Self {
        Self { defaults, ..self }
    }

    const fn valid(self, validate: Check) -> Self {
        Self { validate, ..self }
    }

    const fn new_valid(self, validate_new: Check) -> Self {
        Self { validate_new, ..self }
    }

    const fn update_valid(self, validate_update: CheckChange) -> Self {
        Self { validate_update, ..self }
    }

    const fn update_valid_before_1_37(self, validate_update_before_1_37: CheckChange) -> Self {
        Self { validate_update_before_1_37, ..self }
    }

    const fn status_valid(self, validate_status: CheckChange) -> Self {
        Self { validate_status, ..self }
    }
}

const fn rules(group: &'static str, kind: &'static str) -> KindRules {
    KindRules {
        group,
        kind,
        defaults: |_| {},
        validate: |_, _| {},
        validate_new: |_, _| {},
        validate_update: |_, _, _| {},
        validate_update_before_1_37: |_, _, _| {},
        validate_status: |_, _, _| {},
    }
}

static PLAIN: KindRules = rules("", "");

static RULES: &[KindRules] = &[
    rules("", "Pod")
        .defaults(pod_defaults::pod)
        .valid(pod::validate_spec)
        .new_valid(pod::validate_new)
        .update_valid(pod_update::validate)
        .status_valid(pod::validate_status),
    rules("", "Event").valid(events::validate),
    rules("coordination.k8s.io", "Lease").valid(others::validate_lease),
    rules("", "Node")
        .defaults(defaults::node)
        .valid(others::validate_node)
        .update_valid(others::validate_node_update)
        .status_valid(others::validate_node_status),
    rules("", "Namespace").defaults(defaults::namespace),
    rules("", "Secret").defaults(config::secret_defaults),
    rules("", "Service").defaults(services::defaults),
    rules("", "PersistentVolume").defaults(storage::volume_defaults),
    rules("", "PersistentVolumeClaim").defaults(storage::claim_defaults),
    rules("", "ReplicationController").defaults(replicas::controller_defaults),
    rules(custom::GROUP, custom::KIND)
        .defaults(custom::defaults)
        .valid(custom::validate)
        .new_valid(custom::validate_new)
        .update_valid(custom::validate_update),
    rules("apps", "Deployment").defaults(replicas::deployment_defaults),
    rules("apps", "ReplicaSet").defaults(replicas::replica_set_defaults),
    rules("apps", "StatefulSet").defaults(replicas::stateful_set_defaults),
    rules("apps", "DaemonSet").defaults(replicas::daemon_set_defaults),
    rules("batch", "Job").defaults(jobs::job_defaults),
    rules("batch", "CronJob").defaults(jobs::cron_job_defaults),
    rules("policy", "PodDisruptionBudget").defaults(defaults::disruption_budget),
    rules("resource.k8s.io", "ResourceClaim").defaults(claims::claim_defaults),
    rules("resource.k8s.io", "ResourceClaimTemplate").defaults(claims::template_defaults),
    rules("scheduling.k8s.io", "PriorityClass")
        .defaults(defaults::priority_class)
        .valid(others::validate_priority_class)
        .update_valid(others::validate_priority_class_update),
    rules("scheduling.k8s.io", "PodGroup")
        .defaults(defaults::pod_group)
        .valid(groups::validate_pod_group)
        .update_valid(groups::validate_pod_group_update)
        .update_valid_before_1_37(groups::check_policy_unchanged)
        .status_valid(groups::validate_pod_group_status),
    rules("scheduling.k8s.io", "CompositePodGroup")
        .defaults(defaults::pod_group)
        .valid(groups::validate_composite)
        .update_valid(groups::validate_composite_update)
        .status_valid(groups::validate_composite_status),
    // Templates in a Workload are deliberately not defaulted: controllers copy them, and the copy is.
    rules("scheduling.k8s.io", "Workload")
        .valid(workload::validate)
        .update_valid(workload::validate_update)
        .update_valid_before_1_37(workload::check_templates_unchanged),
    rules("storage.k8s.io", "StorageClass").defaults(storage::class_defaults),
    rules("storage.k8s.io", "CSIDriver").defaults(storage::driver_defaults),
];

/// The rules of a resource.
pub(super) fn of(resource: &Resource) -> &'static KindRules {
    RULES.iter().find(|r| r.kind == resource.kind && r.group == resource.group).unwrap_or(&PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;

    #[test]
    fn every_row_is_of_a_kind_that_is_served() {
        for row in RULES {
            let served = RESOURCES.iter().any(|r| r.group == row.group && r.kind == row.kind);
            assert!(served, "nobody serves {}/{}", row.group, row.kind);
        }
    }
}
