//! Whether a definition gets the names that it asks for, and what its status says about it.

use super::definition;
use crate::registry::{Release, Resource, built_in};
use serde_json::{Value, json};

/// Why a definition does not get its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    reason: &'static str,
    message: String,
}

/// What becomes of a definition.
#[derive(Debug)]
pub(crate) struct Judged {
    /// What it serves, if it gets its names.
    pub(crate) resource: Result<&'static Resource, Conflict>,
    /// Its objects go, and new ones are refused.
    pub(crate) terminating: bool,
}

/// True if a definition has got its names.
pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// Judges definitions in their order: who comes first gets the names.
pub(crate) fn judge<'v>(definitions: impl Iterator<Item = &'v Value>) -> Vec<Judged> {
    let mut judged: Vec<Judged> = Vec::new();
    for definition in definitions {
        let terminating = definition.pointer("/metadata/deletionTimestamp").is_some();
        let resource = match definition::read(definition) {
            Ok(resource) => {
                let taken = judged.iter().filter_map(|other| other.resource.as_ref().ok().copied());
                match conflict(resource, built_in(Release::All).iter().chain(taken)) {
                    Some(conflict) => Err(conflict),
                    None => Ok(resource),
                }
            }
            // Validation refuses what cannot be read, so this is one that an older program let pass.
            Err(causes) => Err(Conflict {
                reason: "Unreadable",
                message: causes.first().map(|c| format!("{}: {}", c.field, c.message)).unwrap_or_default(),
            }),
        };
        judged.push(Judged { resource, terminating });
    }
    judged
}

fn names(resource: &Resource) -> impl Iterator<Item = &'static str> {
    [resource.plural, resource.singular].into_iter().chain(resource.short_names.iter().copied())
}

fn conflict<'a>(wanted: &Resource, taken: impl Iterator<Item = &'a Resource>) -> Option<Conflict> {
    let of_group = taken.filter(|other| other.places().any(|place| place.group == wanted.group));
    for other in of_group {
        if other.kind == wanted.kind {
            let message = format!("{:?} is already in use", wanted.kind);
            return Some(Conflict { reason: "KindConflict", message });
        }
        for (name, reason) in [(wanted.plural, "PluralConflict"), (wanted.singular, "SingularConflict")]
            .into_iter()
            .chain(wanted.short_names.iter().map(|name| (*name, "ShortNamesConflict")))
        {
            if names(other).any(|used| used == name) {
                return Some(Conflict { reason, message: format!("{name:?} is already in use") });
            }
        }
    }
    None
}

impl Judged {
    /// The status of the definition, from the one that it has. Nothing if that is right already.
    pub(crate) fn status(&self, definition: &Value, now: &str) -> Option<Value> {
        let before = definition.get("status").cloned().unwrap_or_else(|| json!({}));
        let mut status = before.clone();
        let (accepted, established) = match &self.resource {
            Ok(_) => (
                ("True", "NoConflicts", "no conflicts found".to_owned()),
                ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned()),
            ),
            Err(conflict) => (
                ("False", conflict.reason, conflict.message.clone()),
                ("False", "NotAccepted", "not all names are accepted".to_owned()),
            ),
        };
        set_condition(&mut status, "NamesAccepted", accepted, now);
        set_condition(&mut status, "Established", established, now);
        if self.terminating {
            let why =
                ("True", "InstanceDeletionInProgress", "objects of the kind are being deleted".to_owned());
            set_condition(&mut status, "Terminating", why, now);
        }
        if let Ok(resource) = self.resource {
            status["acceptedNames"] = definition.pointer("/spec/names").cloned().unwrap_or_default();
            let mut stored = status["storedVersions"].as_array().cloned().unwrap_or_default();
            if !stored.iter().any(|version| version == resource.hub) {
                stored.push(json!(resource.hub));
            }
            status["storedVersions"] = Value::Array(stored);
        }
        (status != before).then_some(status)
    }
}

fn set_condition(status: &mut Value, kind: &str, (value, reason, message): (&str, &str, String), now: &str) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let new = json!({"type": kind, "status": value, "reason": reason, "message": message});
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(condition) => {
            let since = if condition["status"] == value {
                condition["lastTransitionTime"].clone()
            } else {
                json!(now)
            };
            *condition = new;
            condition["lastTransitionTime"] = since;
        }
        None => {
            let mut condition = new;
            condition["lastTransitionTime"] = json!(now);
            conditions.push(condition);
        }
    }
}

/// The order of versions in discovery: stable ones before betas before alphas, newer before older, and names that
/// are no versions last, by the alphabet.
pub(super) fn preference(version: &str) -> (u8, std::cmp::Reverse<(u64, u64)>, String) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at_checked(digits)?;
        let major: u64 = major.parse().ok()?;
        if stage.is_empty() {
            return Some((0, major, 0));
        }
        let (rank, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (_, Some(minor)) => (2, minor),
            _ => return None,
        };
        Some((rank, major, minor.parse().ok()?))
    };
    match parsed() {
        Some((rank, major, minor)) => (rank, std::cmp::Reverse((major, minor)), String::new()),
        None => (u8::MAX, std::cmp::Reverse((0, 0)), version.to_owned()),
    }
}
