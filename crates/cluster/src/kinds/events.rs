//! Events: stored as the core group has them, served in `events.k8s.io/v1` too, where some fields have other
//! names.

use super::field::Field;
use crate::error::Cause;
use serde_json::{Map, Value};

/// How the registry spells the version of the newer group.
pub(super) const NEWER: &str = "events.k8s.io/v1";

/// Fields that the two groups name differently: `events.k8s.io` first, the core group second.
const RENAMED: [(&str, &str); 7] = [
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

/// `events.k8s.io/v1` to the core group.
pub(super) fn to_core(object: &mut Map<String, Value>) {
    for (newer, core) in RENAMED {
        rename(object, newer, core);
    }
}

/// The core group to `events.k8s.io/v1`.
pub(super) fn from_core(object: &mut Map<String, Value>) {
    for (newer, core) in RENAMED {
        rename(object, core, newer);
    }
}

fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// The path of a field as `events.k8s.io/v1` spells it.
pub(super) fn newer_path(path: &str) -> String {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (first, rest) = path.split_at(end);
    let newer = RENAMED.iter().find(|(_, core)| *core == first).map_or(first, |(newer, _)| newer);
    format!("{newer}{rest}")
}

/// What is wrong with an event: it must be found beside the object that it is about.
pub(super) fn validate(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (metadata, involved) = (root.get("metadata"), root.get("involvedObject"));
    let (own, about) = (metadata.get("namespace"), involved.get("namespace"));
    // Events about cluster-wide objects are kept in the namespace `default`, or in that of the system.
    let homeless = about.text().is_empty() && ["default", "kube-system"].contains(&own.text());
    if about.text() != own.text() && !homeless {
        out.push(about.invalid("does not match event.namespace"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_comes_back_from_the_other_group_as_it_was() {
        let core = json!({
            "metadata": {"name": "e"}, "involvedObject": {"name": "p"}, "message": "m", "count": 2,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01Z",
            "source": {"component": "tutti"}, "reportingComponent": "tutti", "type": "Normal", "reason": "R",
        });
        let mut object = core.as_object().unwrap().clone();
        from_core(&mut object);
        assert_eq!(object["regarding"]["name"], "p");
        assert_eq!(object["note"], "m");
        assert_eq!(object["reportingController"], "tutti");
        assert!(!object.contains_key("message"));
        to_core(&mut object);
        assert_eq!(Value::Object(object), core);
    }

    #[test]
    fn findings_name_fields_as_the_client_does() {
        assert_eq!(newer_path("involvedObject.namespace"), "regarding.namespace");
        assert_eq!(newer_path("metadata.name"), "metadata.name");
        assert_eq!(newer_path("message"), "note");
    }
}
