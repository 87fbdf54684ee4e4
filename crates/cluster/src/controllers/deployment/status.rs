//! What a Deployment says about itself.

use super::super::replica_set::{ReplicaSetSpec, ReplicaSetView};
use super::view::{DeploymentSpec, DeploymentStatus, DeploymentView};
use crate::controllers::conditions::{self, Says};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tutti_controllers::Plan;

/// Times that a condition of a Deployment notes besides its transition.
const MOMENTS: [&str; 1] = ["lastUpdateTime"];
const PROGRESSING: &str = "Progressing";

/// News about the set of the present template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing.
    None,
    /// It is being made, with this name.
    Created(String),
}

/// The status to be.
pub(super) fn status(
    deployment: &DeploymentView,
    spec: &DeploymentSpec,
    sets: &[&ReplicaSetView],
    new: Option<&ReplicaSetView>,
    news: &News,
    now: Timestamp,
    plan: &mut Plan,
) -> DeploymentStatus {
    let before = &deployment.status.0;
    let sum = |of: fn(&ReplicaSetView) -> u32| sets.iter().map(|set| of(set)).sum::<u32>();
    let asked = sum(|set| set.spec.0.as_ref().map_or(0, ReplicaSetSpec::wanted));
    let available = sum(|set| set.status.0.available_replicas);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation.unwrap_or(0),
        replicas: sum(|set| set.status.0.replicas),
        updated_replicas: new.map_or(0, |set| set.status.0.replicas),
        ready_replicas: sum(|set| set.status.0.ready_replicas),
        available_replicas: available,
        unavailable_replicas: asked.saturating_sub(available),
        collision_count: before.collision_count,
        conditions: before.conditions.clone(),
    };
    let enough = available >= spec.wanted().saturating_sub(spec.max_unavailable());
    let says = if enough {
        says("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        says(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    conditions::set(&mut status.conditions, says, &MOMENTS, now);
    note_progress(deployment, spec, new, news, &mut status, now, plan);
    status
}

fn says<'a>(kind: &'a str, status: &'a str, reason: &'a str, message: &'a str) -> Says<'a> {
    Says { kind, status, reason, message }
}

fn note_progress(
    deployment: &DeploymentView,
    spec: &DeploymentSpec,
    new: Option<&ReplicaSetView>,
    news: &News,
    status: &mut DeploymentStatus,
    now: Timestamp,
    plan: &mut Plan,
) {
    let Some(deadline) = spec.progress_deadline() else {
        status.conditions.retain(|c| c.get("type").and_then(Value::as_str) != Some(PROGRESSING));
        return;
    };
    let reason = conditions::text(&status.conditions, PROGRESSING, "reason").to_owned();
    let set = |state: &str, reason: &str, message: &str, status: &mut DeploymentStatus| {
        conditions::set(&mut status.conditions, says(PROGRESSING, state, reason, message), &MOMENTS, now)
    };
    if spec.paused {
        set("Unknown", "DeploymentPaused", "Deployment is paused", status);
        return;
    }
    if reason == "DeploymentPaused" {
        set("Unknown", "DeploymentResumed", "Deployment is resumed", status);
        return;
    }
    if let News::Created(name) = news {
        set("True", "NewReplicaSetCreated", &format!("Created new replica set {name:?}"), status);
        return;
    }
    if reason == "NewReplicaSetAvailable" && status.replicas == status.updated_replicas {
        return;
    }
    let who = match new {
        Some(set) => format!("ReplicaSet {:?}", set.name()),
        None => format!("Deployment {:?}", deployment.name()),
    };
    let wanted = spec.wanted();
    let complete = [status.replicas, status.updated_replicas, status.available_replicas] == [wanted; 3];
    if complete {
        set("True", "NewReplicaSetAvailable", &format!("{who} has successfully progressed."), status);
        return;
    }
    if has_progressed(&deployment.status.0, status) {
        set("True", "ReplicaSetUpdated", &format!("{who} is progressing."), status);
        conditions::touch(&mut status.conditions, PROGRESSING, MOMENTS[0], now);
        return;
    }
    if matches!(reason.as_str(), "" | "ProgressDeadlineExceeded" | "NewReplicaSetAvailable") {
        return;
    }
    let since = conditions::text(&status.conditions, PROGRESSING, MOMENTS[0]).parse().unwrap_or(now);
    let due = since.checked_add(SignedDuration::from_secs(deadline.into())).unwrap_or(Timestamp::MAX);
    if now < due {
        plan.again_at(due);
    } else {
        set("False", "ProgressDeadlineExceeded", &format!("{who} has timed out progressing."), status);
    }
}

fn has_progressed(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| status.replicas.saturating_sub(status.updated_replicas);
    now.updated_replicas > before.updated_replicas
        || old(now) < old(before)
        || now.ready_replicas > before.ready_replicas
        || now.available_replicas > before.available_replicas
}

/// The merge patch that writes a status.
pub(super) fn patch(deployment: &DeploymentView, status: &DeploymentStatus) -> Value {
    // Nobody else writes these fields, and the revision in the annotations is written beside them: no version guards
    // this patch, or one of the two would always lose.
    json!({
        "metadata": {"uid": deployment.uid()},
        "status": {
            "observedGeneration": status.observed_generation,
            "replicas": status.replicas,
            "updatedReplicas": status.updated_replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
            "unavailableReplicas": status.unavailable_replicas,
            "collisionCount": status.collision_count,
            "conditions": status.conditions,
        },
    })
}
