//! Lists of conditions that controllers keep up to date.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tutti_controllers::stamp;

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Says<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// The condition of a type.
pub(super) fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// A text in the condition of a type; empty without one.
pub(super) fn text<'a>(conditions: &'a [Value], kind: &str, field: &str) -> &'a str {
    find(conditions, kind).and_then(|condition| condition.get(field)?.as_str()).unwrap_or_default()
}

/// True if the condition of a type is there and holds.
pub(super) fn holds(conditions: &[Value], kind: &str) -> bool {
    text(conditions, kind, "status") == "True"
}

/// Sets a condition. Its transition keeps its time while its status stays; `moments` are the further times that
/// this kind of object notes on every change. True if anything changed.
pub(super) fn set(conditions: &mut Vec<Value>, says: Says<'_>, moments: &[&str], now: Timestamp) -> bool {
    let same = |field, value| text(conditions, says.kind, field) == value;
    let same_status = same("status", says.status);
    if same_status && same("reason", says.reason) && same("message", says.message) {
        return false;
    }
    let since = find(conditions, says.kind).and_then(|c| c.get("lastTransitionTime")).filter(|_| same_status);
    let since = since.cloned().unwrap_or_else(|| json!(stamp(now)));
    let mut condition = Map::new();
    for (field, value) in
        [("type", says.kind), ("status", says.status), ("reason", says.reason), ("message", says.message)]
    {
        condition.insert(field.to_owned(), json!(value));
    }
    condition.insert("lastTransitionTime".to_owned(), since);
    for moment in moments {
        condition.insert((*moment).to_owned(), json!(stamp(now)));
    }
    let condition = Value::Object(condition);
    match conditions.iter_mut().find(|c| c.get("type").and_then(Value::as_str) == Some(says.kind)) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    true
}

/// Notes in the condition of a type that something moved at this moment.
pub(super) fn touch(conditions: &mut [Value], kind: &str, moment: &str, now: Timestamp) {
    let found = conditions.iter_mut().find(|c| c.get("type").and_then(Value::as_str) == Some(kind));
    if let Some(condition) = found.and_then(Value::as_object_mut) {
        condition.insert(moment.to_owned(), json!(stamp(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAYS: Says<'_> = Says { kind: "Ready", status: "True", reason: "Because", message: "so" };

    #[test]
    fn a_transition_keeps_its_time_while_the_status_stays() {
        let (first, second) = (Timestamp::UNIX_EPOCH, "2026-11-15T12:00:00Z".parse().unwrap());
        let mut conditions = vec![json!({"type": "Other", "status": "False"})];
        assert!(set(&mut conditions, SAYS, &[], first));
        assert!(!set(&mut conditions, SAYS, &[], second), "nothing new");
        assert!(set(&mut conditions, Says { reason: "Else", ..SAYS }, &["lastUpdateTime"], second));
        assert_eq!(text(&conditions, "Ready", "lastTransitionTime"), stamp(first));
        assert_eq!(text(&conditions, "Ready", "lastUpdateTime"), stamp(second));
        assert!(holds(&conditions, "Ready") && !holds(&conditions, "Other") && !holds(&conditions, "None"));
        assert!(set(&mut conditions, Says { status: "False", ..SAYS }, &[], second));
        assert_eq!(text(&conditions, "Ready", "lastTransitionTime"), stamp(second));
        assert_eq!(conditions.len(), 2);
    }
}
