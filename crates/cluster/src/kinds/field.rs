//! A read-only view of an object in which every value knows its path, and the wording of what is wrong with it.
//!
//! Paths are chains on the stack and become text only when there is something to report: nearly all writes
//! are valid and should not pay for messages.

use crate::error::{Cause, CauseReason};
use serde_json::{Map, Value};

/// A place in an object; the value may be absent.
#[derive(Clone, Copy)]
pub(crate) struct Field<'p, 'v> {
    parent: Option<&'p Field<'p, 'v>>,
    step: Step<'v>,
    value: Option<&'v Value>,
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Root,
    Name(&'static str),
    Index(usize),
    Key(&'v str),
}

impl<'p, 'v> Field<'p, 'v> {
    /// The whole object.
    pub(crate) fn root(object: &'v Value) -> Self {
        Self { parent: None, step: Step::Root, value: Some(object) }
    }

    /// A field of this object. An explicit null counts as absent, as it does for Kubernetes' own decoder.
    pub(crate) fn get<'q>(&'q self, name: &'static str) -> Field<'q, 'v> {
        let value = self.value.and_then(|v| v.get(name)).filter(|v| !v.is_null());
        Field { parent: Some(self), step: Step::Name(name), value }
    }

    /// The value, if there is one.
    pub(crate) fn value(&self) -> Option<&'v Value> {
        self.value
    }

    /// True if there is a value.
    pub(crate) fn is_set(&self) -> bool {
        self.value.is_some()
    }

    /// The text; `None` also for values of other types, which the schema check reports.
    pub(crate) fn str(&self) -> Option<&'v str> {
        self.value.and_then(Value::as_str)
    }

    /// The text, empty if absent: in Go's types the two are the same.
    pub(crate) fn text(&self) -> &'v str {
        self.str().unwrap_or_default()
    }

    /// The whole number.
    pub(crate) fn int(&self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    /// True only if the value is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value.and_then(Value::as_bool).unwrap_or(false)
    }

    /// The object.
    pub(crate) fn object(&self) -> Option<&'v Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    /// Number of entries of a list; 0 if it is none.
    pub(crate) fn len(&self) -> usize {
        self.value.and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// Entries of a list; none if it is no list.
    pub(crate) fn items<'q>(&'q self) -> impl Iterator<Item = Field<'q, 'v>> {
        self.value.and_then(Value::as_array).into_iter().flatten().enumerate().map(move |(index, value)| {
            Field {
                parent: Some(self),
                step: Step::Index(index),
                value: Some(value).filter(|v| !v.is_null()),
            }
        })
    }

    /// Entries of a map; none if it is no map.
    pub(crate) fn entries<'q>(&'q self) -> impl Iterator<Item = (&'v str, Field<'q, 'v>)> {
        self.object().into_iter().flatten().map(move |(key, value)| {
            let entry = Field { parent: Some(self), step: Step::Key(key), value: Some(value) };
            (key.as_str(), entry)
        })
    }

    /// `spec.containers[0].resources.limits[cpu]`
    pub(crate) fn path(&self) -> String {
        let mut out = self.parent.map_or_else(String::new, Field::path);
        match self.step {
            Step::Root => {}
            Step::Name(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(index) => out.push_str(&format!("[{index}]")),
            Step::Key(key) => out.push_str(&format!("[{key}]")),
        }
        out
    }

    fn cause(&self, reason: CauseReason, message: String) -> Cause {
        Cause { reason, field: self.path(), message }
    }

    /// The field must be there.
    pub(crate) fn required(&self, detail: &str) -> Cause {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        self.cause(CauseReason::Required, message)
    }

    /// The value is wrong.
    pub(crate) fn invalid(&self, detail: &str) -> Cause {
        self.invalid_value(&self.value.map_or_else(|| "null".to_owned(), ToString::to_string), detail)
    }

    /// As [`Field::invalid`], where the wrong value is only part of the field, such as one key of a map.
    pub(crate) fn invalid_value(&self, shown: &str, detail: &str) -> Cause {
        self.cause(CauseReason::Invalid, format!("Invalid value: {shown}: {detail}"))
    }

    /// The field may not be set or changed.
    pub(crate) fn forbidden(&self, detail: &str) -> Cause {
        self.cause(CauseReason::Forbidden, format!("Forbidden: {detail}"))
    }

    /// Another entry has the same key.
    pub(crate) fn duplicate(&self) -> Cause {
        let shown = self.value.map_or_else(|| "\"\"".to_owned(), ToString::to_string);
        self.cause(CauseReason::Duplicate, format!("Duplicate value: {shown}"))
    }

    /// The value names something that is not there.
    pub(crate) fn not_found(&self) -> Cause {
        let shown = self.value.map_or_else(|| "\"\"".to_owned(), ToString::to_string);
        self.cause(CauseReason::NotFound, format!("Not found: {shown}"))
    }

    /// Another entry has the same value of what is not one field only.
    pub(crate) fn duplicate_value(&self, shown: &str) -> Cause {
        self.cause(CauseReason::Duplicate, format!("Duplicate value: {shown}"))
    }

    /// The value is none of these.
    pub(crate) fn not_supported(&self, supported: &[&str]) -> Cause {
        let shown = self.value.map_or_else(|| "\"\"".to_owned(), ToString::to_string);
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        self.cause(
            CauseReason::NotSupported,
            format!("Unsupported value: {shown}: supported values: {}", list.join(", ")),
        )
    }

    /// The list is too long.
    pub(crate) fn too_many(&self, most: usize) -> Cause {
        let items = if most == 1 { "item" } else { "items" };
        self.cause(
            CauseReason::TooMany,
            format!("Too many: {}: must have at most {most} {items}", self.len()),
        )
    }

    /// The value is too long.
    pub(crate) fn too_long(&self, most: usize) -> Cause {
        self.cause(CauseReason::TooLong, format!("Too long: may not be more than {most} bytes"))
    }

    // --- checks that several kinds share ---

    /// Reports a value that is none of the supported ones; absence is fine.
    pub(crate) fn check_enum(&self, supported: &[&str], out: &mut Vec<Cause>) {
        if self.is_set() && !supported.contains(&self.text()) {
            out.push(self.not_supported(supported));
        }
    }

    /// Reports a text that breaks a rule; absence is fine.
    pub(crate) fn check_text(&self, rule: fn(&str) -> Result<(), String>, out: &mut Vec<Cause>) {
        if let Some(Err(why)) = self.str().map(rule) {
            out.push(self.invalid(&why));
        }
    }

    /// Reports absence, emptiness, or a text that breaks a rule.
    pub(crate) fn check_required_text(&self, rule: fn(&str) -> Result<(), String>, out: &mut Vec<Cause>) {
        if self.text().is_empty() {
            out.push(self.required(""));
        } else {
            self.check_text(rule, out);
        }
    }

    /// Reports a whole number outside of the bounds; absence is fine.
    pub(crate) fn check_range(&self, least: i64, most: i64, out: &mut Vec<Cause>) {
        let Some(number) = self.int() else { return };
        if number < least {
            out.push(self.invalid(&format!("must be greater than or equal to {least}")));
        } else if number > most {
            out.push(self.invalid(&format!("must be less than or equal to {most}")));
        }
    }

    /// Reports a list with more than so many entries.
    pub(crate) fn check_len(&self, most: usize, out: &mut Vec<Cause>) {
        if self.len() > most {
            out.push(self.too_many(most));
        }
    }

    /// Reports entries of a list whose key field repeats that of an earlier entry.
    pub(crate) fn check_unique(&self, key: &'static str, out: &mut Vec<Cause>) {
        let mut seen = std::collections::BTreeSet::new();
        for item in self.items() {
            let field = item.get(key);
            if let Some(text) = field.str()
                && !seen.insert(text)
            {
                out.push(field.duplicate());
            }
        }
    }

    /// As [`Field::check_unique`], for lists whose entries are known by their keys: the entry is at fault, not the key.
    pub(crate) fn check_unique_entries(&self, key: &'static str, out: &mut Vec<Cause>) {
        let mut seen = std::collections::BTreeSet::new();
        for item in self.items() {
            if let Some(text) = item.get(key).str()
                && !seen.insert(text)
            {
                out.push(item.duplicate());
            }
        }
    }

    /// As [`Field::check_unique_entries`], and only the key is shown.
    pub(crate) fn check_unique_keys(&self, key: &'static str, out: &mut Vec<Cause>) {
        let mut seen = std::collections::BTreeSet::new();
        for item in self.items() {
            if let Some(text) = item.get(key).str()
                && !seen.insert(text)
            {
                out.push(item.duplicate_value(&format!("{text:?}")));
            }
        }
    }

    /// Reports a change of this field between two objects. Kinds that are validated by their declarations do not show
    /// what the change was.
    pub(crate) fn check_frozen(&self, old: &Field<'_, '_>, out: &mut Vec<Cause>) {
        if !same(self.value, old.value) {
            out.push(self.invalid_value("null", "field is immutable"));
        }
    }

    /// Reports a change of this field between two objects.
    pub(crate) fn check_unchanged(&self, old: &Field<'_, '_>, out: &mut Vec<Cause>) {
        if !same(self.value, old.value) {
            out.push(self.invalid("field is immutable"));
        }
    }
}

/// Equality as Kubernetes means it: null, absent and the empty list are the same. The empty *object* is not
/// absence, since in unions such as `{single: {}}` its presence is the information.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(v), None) | (None, Some(v)) => v.is_null() || v.as_array().is_some_and(Vec::is_empty),
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(k, v)| same(Some(v), b.get(k)))
                && b.iter().all(|(k, v)| a.contains_key(k) || same(None, Some(v)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b || (same(Some(a), None) && same(None, Some(b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_name_fields_indices_and_keys() {
        let object = json!({"spec": {"containers": [{"limits": {"cpu": "x"}}]}});
        let root = Field::root(&object);
        let spec = root.get("spec");
        let containers = spec.get("containers");
        let container = containers.items().next().unwrap();
        let limits = container.get("limits");
        let (_, cpu) = limits.entries().next().unwrap();
        assert_eq!(cpu.path(), "spec.containers[0].limits[cpu]");
        assert_eq!(cpu.invalid("no").message, "Invalid value: \"x\": no");
        assert_eq!(containers.path(), "spec.containers");
    }

    #[test]
    fn wrong_types_read_as_absent_and_never_panic() {
        let object = json!({"spec": "text", "list": 3, "n": null});
        let root = Field::root(&object);
        let spec = root.get("spec");
        assert!(!spec.get("x").is_set());
        assert_eq!(root.get("list").items().count(), 0);
        assert!(!root.get("n").is_set());
    }

    #[test]
    fn null_absent_and_empty_list_are_the_same_but_an_empty_object_is_not() {
        let pairs = [
            (json!({"a": null}), json!({}), true),
            (json!({"a": []}), json!({}), true),
            (json!({"a": []}), json!({"a": null}), true),
            (json!({"a": {}}), json!({}), false),
            (json!({"a": [1]}), json!({"a": [2]}), false),
            (json!({"a": {"b": [{"c": null}]}}), json!({"a": {"b": [{}]}}), true),
        ];
        for (a, b, want) in pairs {
            assert_eq!(same(Some(&a), Some(&b)), want, "{a} and {b}");
            assert_eq!(same(Some(&b), Some(&a)), want, "{b} and {a}");
        }
    }
}
