//! What the logs say.

use crate::config::Config;
use crate::core::groups::GangState;
use crate::core::message::Fact;
use tutti_engine::UnitKey;
use tutti_k8s::{Capabilities, ObjectKind};

pub(super) fn started(config: &Config, capabilities: &Capabilities) {
    let names = config.names_in_words();
    for (field, message) in config.warnings() {
        tracing::warn!(field, "{message}");
    }
    if !capabilities.storage {
        tracing::warn!("the cluster serves no volumes: pods with claims wait");
    }
    let Some(resource) = &capabilities.pod_group else {
        tracing::warn!(names, "the cluster serves no pod groups: scheduling single pods only");
        return;
    };
    let (api, kind) = (&resource.api_version, &resource.kind);
    let by = capabilities.link.field();
    let status = if capabilities.link.has_group_objects() { "conditions and events" } else { "events" };
    let trees = if capabilities.composite.is_some() { "CompositePodGroup" } else { "none" };
    tracing::info!(
        names,
        api,
        kind,
        trees,
        pods_say_it_by = by,
        answers = status,
        "scheduling pods and pod groups"
    );
}

pub(super) fn fact(fact: &Fact) {
    match fact {
        // Members that end one after the other look like this for a moment.
        Fact::Gang { group, state: GangState::Completing, counted, minimum, why } => {
            tracing::info!(%group, counted, minimum, reason = %why, "gang below its minimum");
        }
        Fact::Gang { group, state, counted, minimum, why } => {
            tracing::warn!(%group, ?state, counted, minimum, reason = %why, "gang below its minimum");
        }
        Fact::StaleGroup { group } => {
            tracing::warn!(%group, "the group has changed; what was decided about it is taken back");
        }
        Fact::Unavailable { kind, why } => unavailable(*kind, why),
        Fact::Synced { pods, nodes, groups } => {
            tracing::info!(pods, nodes, groups, "the cluster is known; decisions begin");
        }
        // Single pods come by the thousand, and each has an event that says so.
        Fact::Placed { unit: unit @ UnitKey::Pod(_), .. } => tracing::debug!(%unit, "placed"),
        Fact::Placed { unit, pods, nodes, left_out } => {
            tracing::info!(%unit, pods, nodes, left_out, "placed");
        }
        Fact::WaitsForVolumes { unit, claims } => {
            tracing::info!(%unit, claims, "has a place; waits for its volume claims to be bound");
        }
        Fact::Waiting { unit, message, gathering: true } => {
            tracing::debug!(%unit, reason = %message, "incomplete");
        }
        Fact::Waiting { unit, message, .. } => tracing::info!(%unit, reason = %message, "waiting"),
        Fact::SetAside { unit, why } => {
            tracing::error!(%unit, error = %why, "the scheduler broke over this unit and sets it aside; please report this");
        }
        Fact::BindFailed { pod, node, why } => {
            tracing::warn!(%pod, %node, error = %why, "binding failed; the rest of its group is placed around it");
        }
        Fact::BindUnknown { pod, node, why } => {
            tracing::warn!(%pod, %node, error = %why, "binding has an unknown outcome; its seat is kept until it is known");
        }
        Fact::BoundElsewhere { pod, wanted, found } => {
            tracing::warn!(%pod, %wanted, %found, "another scheduler bound the pod");
        }
        Fact::BadObject(error) => tracing::warn!(%error, "not understood"),
        Fact::WriteGivenUp { key, why } => tracing::warn!(?key, error = %why, "write given up"),
        Fact::WritesDropped { what, total } => {
            tracing::warn!(total, "too many {what} wait to be written; dropping");
        }
    }
}

fn unavailable(kind: ObjectKind, why: &str) {
    match without(kind) {
        Some(without) => {
            tracing::warn!(%kind, error = why, without, "cannot be listed; scheduling goes on without");
        }
        None => tracing::error!(%kind, error = why, "cannot be listed; nothing is decided until it can be"),
    }
}

/// What it means that a kind cannot be listed; `None` if it is needed.
fn without(kind: ObjectKind) -> Option<&'static str> {
    match kind {
        ObjectKind::Pod
        | ObjectKind::Node
        | ObjectKind::PodGroup
        | ObjectKind::Composite
        | ObjectKind::Namespace
        | ObjectKind::Claim
        | ObjectKind::Volume
        | ObjectKind::StorageClass
        | ObjectKind::CsiNode => None,
        ObjectKind::Service
        | ObjectKind::ReplicationController
        | ObjectKind::ReplicaSet
        | ObjectKind::StatefulSet => Some("pods are spread by default without looking at these"),
        ObjectKind::PriorityClass => {
            Some("a pod group that names only a priority class has the priority of its members")
        }
        ObjectKind::Budget => Some("disruption budgets are not known"),
        ObjectKind::Job => Some("pods of Jobs do not wait for a group that is to come"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_of_every_kind_that_can_be_done_without_what_that_means() {
        for kind in ObjectKind::OPTIONAL {
            assert!(without(kind).is_some(), "{kind}");
        }
        assert_eq!(without(ObjectKind::Pod), None);
    }
}
