//! Events as the API wants them.

use crate::action::{Note, Severity};
use crate::view::stamp;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Characters of the object's name that the name of an event repeats, so that it stays within its limit.
const NAME_CHARS_MAX: usize = 200;
/// Longest message that the API takes.
const MESSAGE_CHARS_MAX: usize = 1024;

/// Namespace that events about objects without one go to.
const DEFAULT_NAMESPACE: &str = "default";

/// The namespace that an event lives in.
pub(crate) fn namespace_of(note: &Note) -> &str {
    note.about.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(DEFAULT_NAMESPACE)
}

/// The event of a note.
pub(crate) fn event(note: &Note, manager: &str, now: Timestamp) -> Value {
    let name = note.about.name.as_deref().unwrap_or_default();
    let prefix: String = name.chars().take(NAME_CHARS_MAX).collect();
    let message: String = note.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let time = stamp(now);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{prefix}.{}", uuid::Uuid::new_v4().simple()),
            "namespace": namespace_of(note),
        },
        "involvedObject": note.about.as_ref(),
        "type": match note.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        },
        "reason": note.reason,
        "message": message,
        "source": {"component": manager},
        "reportingComponent": manager,
        "reportingInstance": manager,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    })
}
