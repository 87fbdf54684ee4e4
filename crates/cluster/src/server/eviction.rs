//! Evictions: deletions of pods that ask whether the pod can be spared. Disruption budgets answer.

use super::delete::{DeleteOptions, Deleted};
use super::path::Target;
use super::update::MODIFIED;
use super::{ApiServer, metadata};
use crate::error::{ApiError, Cause, CauseReason, Details};
use crate::kinds::label_selector;
use crate::registry::ResourceId;
use crate::store::{Change, Commit, CommitError, Content, Object, Range, rfc3339_seconds};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How often a budget or pod is written anew because somebody else was faster.
const ATTEMPTS_MAX: usize = 5;
/// Pods of one budget that may be on their way out before its controller has to catch up.
const DISRUPTED_PODS_MAX: usize = 2000;
/// When to ask again if a budget does not allow an eviction.
const RETRY_SECONDS: u32 = 10;
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What a budget says to the eviction of one pod.
enum Verdict {
    /// It goes, and the budget does not count it.
    Free,
    /// It goes, and the budget has one less to give.
    Spent(Value),
}

impl ApiServer {
    /// Deletes a pod on behalf of an eviction, if its disruption budget allows.
    pub(super) fn evict(&self, target: &Target, eviction: &Value, dry_run: bool) -> Result<(), ApiError> {
        let name = metadata::text(eviction, "name");
        let expected = target.name.as_deref().unwrap_or_default();
        if !name.is_empty() && name != expected {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = DeleteOptions::from_body(eviction.get("deleteOptions").unwrap_or(&Value::Null))?;
        options.dry_run |= dry_run;
        self.ask_budget(target, options.dry_run)?;
        if !options.dry_run {
            self.announce_eviction(target)?;
        }
        let (Deleted::Gone(_) | Deleted::Pending(_)) = self.delete(target, &options)?;
        Ok(())
    }

    /// Refuses if the budget of the pod does not allow its eviction; else the budget pays for it.
    fn ask_budget(&self, target: &Target, dry_run: bool) -> Result<(), ApiError> {
        let (resource, key) = (target.id.resource(), target.key()?);
        for _ in 0..ATTEMPTS_MAX {
            let pod = self.store.get(target.id, &key);
            let pod = pod.ok_or_else(|| ApiError::not_found(resource, &key.name))?.value();
            if needs_no_budget(&pod) {
                return Ok(());
            }
            let budgets = self.budgets_of(&key.namespace, &pod);
            let budget = match budgets.as_slice() {
                [] => return Ok(()),
                [budget] => budget,
                _ => {
                    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                                   does not support.";
                    return Err(ApiError::new(500, "InternalError", message));
                }
            };
            let now = rfc3339_seconds(self.store.environment().now());
            let value = match verdict(&pod, budget, &now)? {
                Verdict::Free => return Ok(()),
                Verdict::Spent(_) if dry_run => return Ok(()),
                Verdict::Spent(value) => value,
            };
            let content = Content { value, managed: budget.managed().clone() };
            let change = Change::Replace { expected: budget.revision(), content };
            let commit = Commit { id: budget.id(), key: budget.key().clone(), change, guard: None };
            if self.commit(commit).is_ok() {
                return Ok(());
            }
        }
        Err(refused("the disruption budget is written too often; try again"))
    }

    fn budgets_of(&self, namespace: &str, pod: &Value) -> Vec<Arc<Object>> {
        let Some(id) = ResourceId::of_kind("policy", "PodDisruptionBudget") else {
            return Vec::new();
        };
        let labels = metadata::of(pod).and_then(|m| m.get("labels")).and_then(Value::as_object);
        let mut budgets =
            self.store.list(id, Range { namespace: Some(namespace), ..Range::default() }).objects;
        budgets.retain(|budget| label_selector::matches(budget.value().pointer("/spec/selector"), labels));
        budgets
    }

    /// Says on the pod why it goes, so that whoever counts failures of its owner can leave this one out.
    fn announce_eviction(&self, target: &Target) -> Result<(), ApiError> {
        let (resource, key) = (target.id.resource(), target.key()?);
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.store.get(target.id, &key);
            let stored = stored.ok_or_else(|| ApiError::not_found(resource, &key.name))?;
            let mut pod = Value::clone(&stored.value());
            super::pods::set_condition(
                &mut pod,
                json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting", "lastProbeTime": null,
                    "lastTransitionTime": rfc3339_seconds(self.store.environment().now()),
                }),
            );
            let content = Content { value: pod, managed: stored.managed().clone() };
            let change = Change::Replace { expected: stored.revision(), content };
            match self.commit(Commit { id: target.id, key: key.clone(), change, guard: None }) {
                Ok(_) => return Ok(()),
                Err(CommitError::Missing) => return Err(ApiError::not_found(resource, &key.name)),
                Err(_) => {}
            }
        }
        Err(ApiError::conflict(resource, &key.name, MODIFIED))
    }
}

/// Pods that do nothing yet, nothing any more, or are going anyway disrupt nobody.
fn needs_no_budget(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    metadata::is_terminating(pod) || matches!(phase, "" | "Pending" | "Succeeded" | "Failed")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn verdict(pod: &Value, budget: &Object, now: &str) -> Result<Verdict, ApiError> {
    let mut value = Value::clone(&budget.value());
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let (healthy, desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
    if !is_ready(pod) {
        // A pod that is not well does not count as healthy, so its end takes nothing away.
        let always = value.pointer("/spec/unhealthyPodEvictionPolicy") == Some(&json!("AlwaysAllow"));
        if always || (desired > 0 && healthy >= desired) {
            return Ok(Verdict::Free);
        }
    }
    let name = &budget.key().name;
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Err(refused(&format!(
            "The disruption budget {name} is still being processed by the server."
        )));
    }
    let allowed = number("/status/disruptionsAllowed");
    if allowed <= 0 {
        return Err(refused(&format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )));
    }
    let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) else {
        return Err(refused(&format!(
            "The disruption budget {name} is still being processed by the server."
        )));
    };
    status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
    let disrupted = status.entry("disruptedPods").or_insert_with(|| Value::Object(Map::new()));
    if let Some(disrupted) = disrupted.as_object_mut() {
        if disrupted.len() >= DISRUPTED_PODS_MAX {
            return Err(refused(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            ));
        }
        disrupted.insert(metadata::text(pod, "name").to_owned(), json!(now));
    }
    Ok(Verdict::Spent(value))
}

/// 429 with the reason that `kubectl drain` waits for.
fn refused(why: &str) -> ApiError {
    let mut error = ApiError::new(429, "TooManyRequests", REFUSAL);
    let cause =
        Cause { reason: CauseReason::DisruptionBudget, field: String::new(), message: why.to_owned() };
    error.details = Some(Box::new(Details {
        causes: vec![cause],
        retry_after_seconds: Some(RETRY_SECONDS),
        ..Details::default()
    }));
    error
}
