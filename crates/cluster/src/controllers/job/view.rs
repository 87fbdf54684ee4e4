//! What is read of a Job.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use tutti_controllers::{Checked, Loose, View};

/// A Job.
pub(crate) type JobView = View<Checked<JobSpec>, Loose<JobStatus>>;

/// What is read of its spec. Numbers are as the API server completed them.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobSpec {
    pub(super) parallelism: Option<u32>,
    pub(super) completions: Option<u32>,
    pub(super) backoff_limit: Option<u32>,
    pub(super) backoff_limit_per_index: Option<u32>,
    pub(super) active_deadline_seconds: Option<i64>,
    pub(super) ttl_seconds_after_finished: Option<i64>,
    pub(super) completion_mode: Option<String>,
    pub(super) suspend: Option<bool>,
    pub(super) pod_replacement_policy: Option<String>,
    pub(super) managed_by: Option<String>,
    pub(super) pod_failure_policy: Option<FailurePolicy>,
    pub(super) success_policy: Option<SuccessPolicy>,
    pub(super) template: Value,
}

impl JobSpec {
    pub(super) fn is_indexed(&self) -> bool {
        self.completion_mode.as_deref() == Some("Indexed")
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspend == Some(true)
    }

    /// Pods are replaced only when they have ended, not as soon as they are being deleted.
    pub(super) fn replaces_failed_only(&self) -> bool {
        self.pod_replacement_policy.as_deref() == Some("Failed")
    }

    pub(super) fn restarts_in_place(&self) -> bool {
        self.template.pointer("/spec/restartPolicy").and_then(Value::as_str) == Some("OnFailure")
    }
}

/// `spec.podFailurePolicy`
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct FailurePolicy {
    pub(super) rules: Vec<FailureRule>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct FailureRule {
    pub(super) action: String,
    pub(super) on_exit_codes: Option<ExitCodes>,
    pub(super) on_pod_conditions: Vec<ConditionPattern>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExitCodes {
    pub(super) container_name: Option<String>,
    pub(super) operator: String,
    pub(super) values: Vec<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct ConditionPattern {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: Option<String>,
}

/// `spec.successPolicy`
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct SuccessPolicy {
    pub(super) rules: Vec<SuccessRule>,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SuccessRule {
    pub(super) succeeded_indexes: Option<String>,
    pub(super) succeeded_count: Option<u32>,
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobStatus {
    pub(super) active: u32,
    pub(super) ready: Option<u32>,
    pub(super) terminating: Option<u32>,
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    pub(super) completed_indexes: Option<String>,
    pub(super) uncounted_terminated_pods: Option<Uncounted>,
    pub(super) start_time: Option<Time>,
    pub(super) completion_time: Option<Time>,
    pub(super) conditions: Vec<Value>,
}

/// Pods that have ended and are not in the counts yet, by uid. They are here before they lose their finalizer and
/// go into the counts after, so that none is lost and none is counted twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(default)]
pub(crate) struct Uncounted {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) succeeded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<String>,
}
