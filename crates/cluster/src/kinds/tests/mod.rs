//! Claims about whole kinds, through the functions that the server calls.

mod controllers;
mod conversion;
mod groups;
mod pods;
mod small_kinds;
mod stored;

use super::*;
use crate::registry::RESOURCES;

fn resource(kind: &str) -> &'static Resource {
    RESOURCES.iter().find(|r| r.kind == kind).unwrap()
}

fn lines(causes: Vec<Cause>) -> Vec<String> {
    causes.into_iter().map(|c| format!("{}: {}", c.field, c.message)).collect()
}

/// `base` with the value at a JSON pointer replaced; its parent must exist.
fn with(base: &Value, pointer: &str, value: Value) -> Value {
    let mut object = base.clone();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Object(map) => {
            map.insert(field.to_owned(), value);
        }
        Value::Array(list) => list[field.parse::<usize>().unwrap()] = value,
        other => panic!("{parent} is {other}"),
    }
    object
}

/// Every case changes one value of a good object; the single finding must start with the text, and an empty
/// text means that there is none.
fn check_each(find: impl Fn(&Value) -> Vec<Cause>, base: &Value, cases: Vec<(&str, Value, &str)>) {
    assert_eq!(lines(find(base)), [""; 0], "the base must be good");
    for (pointer, value, want) in cases {
        let object = with(base, pointer, value);
        let found = lines(find(&object));
        let right =
            if want.is_empty() { found.is_empty() } else { found.len() == 1 && found[0].starts_with(want) };
        assert!(right, "{pointer} of {object}\nwanted {want:?}\nfound  {found:#?}");
    }
}
