//! A value without some of its paths.

use super::{FieldSet, FieldType, Step, View, entries, entry_step, field_type, fields, view};
use serde_json::{Map, Value};

/// The object without the paths of a set. Objects and lists that lose everything are gone themselves.
pub(in crate::ownership) fn remove<T: FieldType>(of: T, object: &Value, paths: &FieldSet) -> Value {
    remove_from(Some(of), object, paths).unwrap_or_else(|| Value::Object(Map::new()))
}

fn remove_from<T: FieldType>(of: Option<T>, value: &Value, paths: &FieldSet) -> Option<Value> {
    match view(of.as_ref(), Some(value)) {
        View::Fields => {
            let mut out = Map::new();
            for (name, value) in fields(Some(value)).into_iter().flatten() {
                let (of, _) = field_type(of, name);
                if let Some(kept) = keep(of, value, paths, &Step::field(name)) {
                    out.insert(name.clone(), kept);
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        View::List(list) => {
            let element = of.and_then(|of| of.element());
            let kept =
                entries(Some(value)).iter().filter_map(|entry| match entry_step(list, element, entry) {
                    Ok(step) => keep(element, entry, paths, &step),
                    Err(_) => Some(entry.clone()),
                });
            let kept: Vec<Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        // A plain value has no parts; what is replaced as a whole goes as a whole.
        View::Whole => (!value.is_object() && !value.is_array()).then(|| value.clone()),
    }
}

/// What is left of the value at a step.
fn keep<T: FieldType>(of: Option<T>, value: &Value, paths: &FieldSet, step: &Step) -> Option<Value> {
    match paths.get(step) {
        None => Some(value.clone()),
        Some(node) if node.member => None,
        Some(node) => remove_from(of, value, &node.below),
    }
}
