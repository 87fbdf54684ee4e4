//! How two values differ.

use super::{FieldSet, FieldType, Node, Relation, Step, View, entries, entry_step, field_type, fields, view};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How one object differs from another.
#[derive(Debug, Default)]
pub(in crate::ownership) struct Comparison {
    pub(in crate::ownership) added: FieldSet,
    pub(in crate::ownership) modified: FieldSet,
    pub(in crate::ownership) removed: FieldSet,
}

impl Comparison {
    /// The paths whose values are new.
    pub(in crate::ownership) fn written(&self) -> FieldSet {
        self.modified.clone().union(self.added.clone())
    }
}

/// Compares two states of an object.
pub(in crate::ownership) fn compare<T: FieldType>(of: T, old: &Value, new: &Value) -> Comparison {
    let found = differences(Some(of), Some(old), Some(new));
    Comparison { added: found.added.below, modified: found.modified.below, removed: found.removed.below }
}

/// What became of one path.
#[derive(Debug, Default)]
struct Differences {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Differences {
    /// Takes in the differences at a step below.
    fn put(&mut self, step: Step, below: Self) {
        let Self { added, modified, removed } = below;
        if modified.is_empty() && removed.is_empty() {
            self.added.below.put(step, added);
            return;
        }
        self.added.below.put(step.clone(), added);
        self.modified.below.put(step.clone(), modified);
        self.removed.below.put(step, removed);
    }

    fn put_field(&mut self, name: &str, below: Self) {
        if !(below.added.is_empty() && below.modified.is_empty() && below.removed.is_empty()) {
            self.put(Step::field(name), below);
        }
    }

    /// Notes that the path itself came or went.
    fn note_presence(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.added.member |= old.is_none();
        self.removed.member |= new.is_none();
    }
}

fn differences<T: FieldType>(of: Option<T>, old: Option<&Value>, new: Option<&Value>) -> Differences {
    let mut out = Differences::default();
    let has_fields = |value| fields(value).is_some_and(|map| !map.is_empty());
    match view(of.as_ref(), new.filter(|new| !new.is_null()).or(old)) {
        View::Fields if has_fields(old) || has_fields(new) => {
            compare_fields(of, fields(old), fields(new), &mut out);
        }
        View::List(list) if !(entries(old).is_empty() && entries(new).is_empty()) => {
            // Most lists stay as they are; no need to take them apart.
            if old != new {
                compare_entries(list, of.and_then(|of| of.element()), entries(old), entries(new), &mut out);
            }
        }
        // What is empty on both sides is a thing of its own: empty and null are not the same.
        _ => out.modified.member = old.is_some() && new.is_some() && old != new,
    }
    out.note_presence(old, new);
    out
}

fn compare_fields<T: FieldType>(
    of: Option<T>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    out: &mut Differences,
) {
    for (name, new) in new.into_iter().flatten() {
        let (of, _) = field_type(of, name);
        out.put_field(name, differences(of, old.and_then(|old| old.get(name)), Some(new)));
    }
    for (name, old) in old.into_iter().flatten() {
        if !new.is_some_and(|new| new.contains_key(name)) {
            let (of, _) = field_type(of, name);
            out.put_field(name, differences(of, Some(old), None));
        }
    }
}

fn compare_entries<T: FieldType>(
    list: Relation<'_>,
    element: Option<T>,
    old: &[Value],
    new: &[Value],
    out: &mut Differences,
) {
    let mut pairs: BTreeMap<Step, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for entry in old {
        if let Ok(step) = entry_step(list, element, entry) {
            pairs.entry(step).or_default().0.push(entry);
        }
    }
    for entry in new {
        if let Ok(step) = entry_step(list, element, entry) {
            pairs.entry(step).or_default().1.push(entry);
        }
    }
    for (step, (old, new)) in pairs {
        let found = match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => differences(element, old.first().copied(), new.first().copied()),
            // Entries that cannot be told apart are one thing together.
            (before, after) => {
                let mut found = Differences::default();
                if before.len() > 1 && after.len() > 1 {
                    found.modified.member = before != after;
                } else if before.len() > 1 {
                    if let Some(after) = after.first() {
                        found = differences(element, None, Some(after));
                    }
                    found.removed.member = true;
                } else {
                    if let Some(before) = before.first() {
                        found = differences(element, Some(before), None);
                    }
                    found.added.member = true;
                }
                found
            }
        };
        out.put(step, found);
    }
}
