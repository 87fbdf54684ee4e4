//! What is left in a namespace that is being deleted, said in its status: people look there when it does not go.

use super::metadata;
use crate::store::{Object, rfc3339_seconds};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Objects that were asked to go and are still there.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// How many of each resource.
    resources: BTreeMap<String, usize>,
    /// How many wait for each finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Remains {
    /// Counts an object.
    pub(super) fn note(&mut self, object: &Object) {
        let resource = object.id().resource();
        let name = if resource.group.is_empty() {
            resource.plural.to_owned()
        } else {
            format!("{}.{}", resource.plural, resource.group)
        };
        *self.resources.entry(name).or_default() += 1;
        for finalizer in metadata::finalizers(&object.value()) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// The namespace with conditions that say what is left; `None` if it says so already.
    pub(super) fn said_in(&self, namespace: &Value, now: Timestamp) -> Option<Value> {
        if self.resources.is_empty() {
            return None;
        }
        let list = |counts: &BTreeMap<String, usize>, has: &str| {
            let all: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name}{has}{count} resource instances")).collect();
            all.join(", ")
        };
        let remaining = format!("Some resources are remaining: {}", list(&self.resources, ". has "));
        let waiting = if self.finalizers.is_empty() {
            ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
        } else {
            let finalizers = list(&self.finalizers, " in ");
            let message = format!("Some content in the namespace has finalizers remaining: {finalizers}");
            ("True", "SomeFinalizersRemain", message)
        };
        let discovered = "All resources successfully discovered".to_owned();
        let deleted = "All content successfully deleted, may be waiting on finalization".to_owned();
        let wanted = [
            ("NamespaceDeletionDiscoveryFailure", ("False", "ResourcesDiscovered", discovered)),
            ("NamespaceDeletionContentFailure", ("False", "ContentDeleted", deleted)),
            ("NamespaceContentRemaining", ("True", "SomeResourcesRemain", remaining)),
            ("NamespaceFinalizersRemaining", waiting),
        ];
        let old = namespace.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = old.cloned().unwrap_or_default();
        let mut changed = false;
        for (kind, (status, reason, message)) in wanted {
            let place = conditions.iter().position(|c| c.get("type").and_then(Value::as_str) == Some(kind));
            let known = place.and_then(|place| conditions.get(place));
            let same_status = known.filter(|c| c.get("status").and_then(Value::as_str) == Some(status));
            if same_status.is_some_and(|c| c.get("message").and_then(Value::as_str) == Some(&message)) {
                continue;
            }
            changed = true;
            let since = same_status.and_then(|c| c.get("lastTransitionTime")).cloned();
            let condition = json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": since.unwrap_or_else(|| json!(rfc3339_seconds(now))),
            });
            match place.and_then(|place| conditions.get_mut(place)) {
                Some(known) => *known = condition,
                None => conditions.push(condition),
            }
        }
        let mut namespace = namespace.clone();
        let status = namespace.as_object_mut()?.entry("status").or_insert_with(|| json!({}));
        status.as_object_mut()?.insert("conditions".to_owned(), Value::Array(conditions));
        changed.then_some(namespace)
    }
}
