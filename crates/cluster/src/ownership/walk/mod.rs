//! Walks through values along their types: which paths a value has, how two values differ, what one becomes
//! when another is laid over it, and what is left of it without some paths.
//!
//! A type that is not known is `None` throughout.

mod compare;
mod merge;
mod remove;

pub(super) use compare::{Comparison, compare};
pub(super) use merge::merge;
pub(super) use remove::remove;

use super::field_set::{FieldSet, Node, Step};
use super::field_type::{FieldType, Relation};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a value is to be treated, given its type and what it is.
enum View<'a> {
    Whole,
    Fields,
    List(Relation<'a>),
}

fn view<'a, T: FieldType>(of: Option<&'a T>, value: Option<&Value>) -> View<'a> {
    let is = |test: fn(&Value) -> bool| value.is_none_or(|value| value.is_null() || test(value));
    match of.map_or(Relation::Unknown, FieldType::relation) {
        Relation::Unknown if value.is_some_and(Value::is_object) => View::Fields,
        Relation::Fields if is(Value::is_object) => View::Fields,
        list @ (Relation::Set | Relation::Keyed(_)) if is(Value::is_array) => View::List(list),
        _ => View::Whole,
    }
}

/// The type of a field, and whether the schema names it.
fn field_type<T: FieldType>(of: Option<T>, name: &str) -> (Option<T>, bool) {
    match of.and_then(|of| of.field(name)) {
        Some(named) => (Some(named), true),
        None => (of.and_then(|of| of.element()), false),
    }
}

/// How an entry of a list is told from the others; an error if it cannot be.
fn entry_step<T: FieldType>(list: Relation<'_>, element: Option<T>, entry: &Value) -> Result<Step, String> {
    let Relation::Keyed(keys) = list else {
        return match entry {
            Value::Object(_) | Value::Array(_) | Value::Null => {
                Err("an entry of a set must be a plain value".to_owned())
            }
            plain => Ok(Step::value(plain)),
        };
    };
    let Value::Object(entry) = entry else {
        return Err("an entry of a list with keys must be an object".to_owned());
    };
    let mut found = Map::new();
    for key in keys {
        let default = || element.and_then(|element| element.key_default(key));
        if let Some(value) = entry.get(&**key).cloned().or_else(default) {
            found.insert(key.to_string(), value);
        }
    }
    if found.is_empty() {
        return Err(format!("an entry of a list has none of its keys {keys:?}"));
    }
    Ok(Step::keys(found))
}

fn entries(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// The paths of a value.
pub(super) fn set_of<T: FieldType>(of: T, value: &Value) -> FieldSet {
    node_of(Some(of), value).below
}

fn node_of<T: FieldType>(of: Option<T>, value: &Value) -> Node {
    let mut out = Node::default();
    match view(of.as_ref(), Some(value)) {
        View::Whole => out.member = true,
        View::Fields => {
            for (name, value) in fields(Some(value)).into_iter().flatten() {
                let (of, named) = field_type(of, name);
                let mut node = node_of(of, value);
                node.member |= !named || value.is_null() || is_empty_object(value);
                out.below.put(Step::field(name), node);
            }
        }
        View::List(list) => {
            let element = of.and_then(|of| of.element());
            let mut seen = BTreeMap::new();
            for entry in entries(Some(value)) {
                let Ok(step) = entry_step(list, element, entry) else { continue };
                // Of several entries that cannot be told apart only the fact that they are there is known.
                seen.entry(step).and_modify(|first| *first = None).or_insert(Some(entry));
            }
            for (step, entry) in seen {
                let below = entry.map(|entry| node_of(element, entry).below).unwrap_or_default();
                out.below.put(step, Node { member: true, below });
            }
        }
    }
    out
}

/// The set with the paths of all named fields on the way to its own: whoever has `a.b` has `a` too, if that is
/// a field and not the key of a map.
pub(super) fn with_named<T: FieldType>(of: Option<T>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::default();
    for (step, node) in set.nodes() {
        let (below_type, named) = match step.name() {
            Some(name) => field_type(of, name),
            None => (of.and_then(|of| of.element()), false),
        };
        let below = with_named(below_type, &node.below);
        out.put(step.clone(), Node { member: node.member || named, below });
    }
    out
}
