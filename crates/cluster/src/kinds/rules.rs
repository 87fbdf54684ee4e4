//! The table of what each kind does on its own. A kind without a row is stored as it comes, once its metadata
//! and types are right.

use super::field::Field;
use super::{
    budgets, claims, config, defaults, events, groups, job_rules, jobs, others, pod, pod_defaults,
    pod_update, replicas, services, storage, workload,
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
    /// Gives a new object what only its first moment decides; its name and identity are known.
    pub(super) prepare_new: Change,
    /// Fills in what a write left out; done again on every write.
    pub(super) defaults: Change,
    /// What is wrong with an object, new or not.
    pub(super) validate: Check,
    /// What else is wrong with it since 1.37.
    pub(super) validate_since_1_37: Check,
    /// What else is wrong with a new object.
    pub(super) validate_new: Check,
    /// What is wrong with replacing an object by another.
    pub(super) validate_update: CheckChange,
    /// The same for a cluster that is like an older release, where that had other rules.
    pub(super) validate_update_before_1_37: Option<CheckChange>,
    /// What is wrong with a new status.
    pub(super) validate_status: CheckChange,
}

impl KindRules {
    const fn prepared(self, prepare_new: Change) -> Self {
        Self { prepare_new, ..self }
    }

    const fn defaults(self, defaults: Change) -> Self {
        Self { defaults, ..self }
    }

    const fn valid(self, validate: Check) -> Self {
        Self { validate, ..self }
    }

    const fn valid_since_1_37(self, validate_since_1_37: Check) -> Self {
        Self { validate_since_1_37, ..self }
    }

    const fn new_valid(self, validate_new: Check) -> Self {
        Self { validate_new, ..self }
    }

    const fn update_valid(self, validate_update: CheckChange) -> Self {
        Self { validate_update, ..self }
    }

    const fn update_valid_before_1_37(self, validate_update_before_1_37: CheckChange) -> Self {
        Self { validate_update_before_1_37: Some(validate_update_before_1_37), ..self }
    }

    const fn status_valid(self, validate_status: CheckChange) -> Self {
        Self { validate_status, ..self }
    }
}

const fn rules(group: &'static str, kind: &'static str) -> KindRules {
    KindRules {
        group,
        kind,
        prepare_new: |_| {},
        defaults: |_| {},
        validate: |_, _| {},
        validate_since_1_37: |_, _| {},
        validate_new: |_, _| {},
        validate_update: |_, _, _| {},
        validate_update_before_1_37: None,
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
    rules("", "ConfigMap")
        .valid(config::validate_config_map)
        .update_valid(config::validate_config_map_update),
    rules("", "Secret")
        .defaults(config::secret_defaults)
        .valid(config::validate_secret)
        .update_valid(config::validate_secret_update),
    rules("", "Service")
        .defaults(services::defaults)
        .valid(services::validate)
        .update_valid(services::validate_update),
    rules("", "PersistentVolume")
        .defaults(storage::volume_defaults)
        .valid(storage::validate_volume)
        .update_valid(storage::validate_volume_update),
    rules("", "PersistentVolumeClaim")
        .defaults(storage::claim_defaults)
        .valid(storage::validate_claim)
        .update_valid(storage::validate_claim_update),
    rules("", "ReplicationController")
        .defaults(replicas::controller_defaults)
        .valid(replicas::validate_controller),
    rules(custom::GROUP, custom::KIND)
        .defaults(custom::defaults)
        .valid(custom::validate)
        .new_valid(custom::validate_new)
        .update_valid(custom::validate_update),
    rules("apps", "Deployment")
        .defaults(replicas::deployment_defaults)
        .valid(replicas::validate_deployment)
        .update_valid(replicas::validate_selector_update)
        .status_valid(replicas::validate_deployment_status),
    rules("apps", "ReplicaSet")
        .defaults(replicas::replica_set_defaults)
        .valid(replicas::validate_replica_set)
        .update_valid(replicas::validate_selector_update)
        .status_valid(replicas::validate_replica_set_status),
    rules("apps", "StatefulSet")
        .defaults(replicas::stateful_set_defaults)
        .valid(replicas::validate_stateful_set)
        .update_valid(replicas::validate_stateful_set_update),
    rules("apps", "DaemonSet")
        .defaults(replicas::daemon_set_defaults)
        .valid(replicas::validate_daemon_set)
        .update_valid(replicas::validate_selector_update),
    rules("batch", "Job")
        .prepared(jobs::prepare_new)
        .defaults(jobs::job_defaults)
        .valid(job_rules::validate_job)
        .new_valid(job_rules::validate_new_job)
        .update_valid(job_rules::validate_job_update),
    rules("batch", "CronJob").defaults(jobs::cron_job_defaults).valid(job_rules::validate_cron_job),
    rules("policy", "PodDisruptionBudget")
        .defaults(defaults::disruption_budget)
        .valid(budgets::validate)
        .status_valid(budgets::validate_status),
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
        .update_valid_before_1_37(groups::validate_pod_group_update_before_1_37)
        .status_valid(groups::validate_pod_group_status),
    rules("scheduling.k8s.io", "CompositePodGroup")
        .defaults(defaults::pod_group)
        .valid(groups::validate_composite)
        .update_valid(groups::validate_composite_update)
        .status_valid(groups::validate_composite_status),
    // Templates in a Workload are deliberately not defaulted: controllers copy them, and the copy is.
    rules("scheduling.k8s.io", "Workload")
        .valid(workload::validate)
        .valid_since_1_37(workload::validate_priorities)
        .update_valid(workload::validate_update)
        .update_valid_before_1_37(workload::validate_update_before_1_37),
    rules("storage.k8s.io", "StorageClass")
        .defaults(storage::class_defaults)
        .valid(storage::validate_class)
        .update_valid(storage::validate_class_update),
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
