//! Columns and cells of custom kinds, as their definitions ask for them.

use super::age;
use super::columns::{AGE, NAME};
use crate::custom::{Column, Definition};
use crate::kinds::field::Field;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Column headers of a version. A definition that names no columns has the age of the object, as everything does.
pub(super) fn column_definitions(definition: &Definition, version: &str) -> Value {
    let columns = columns(definition, version);
    let mut out = vec![NAME.to_json()];
    if columns.is_empty() {
        let mut age = AGE.to_json();
        age["type"] = json!("date");
        out.push(age);
    }
    out.extend(columns.iter().map(|column| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    }));
    Value::Array(out)
}

/// The cells of an object.
pub(super) fn cells(definition: &Definition, version: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let root = Field::root(object);
    let columns = columns(definition, version);
    let mut out = vec![json!(super::cells::name(&root))];
    if columns.is_empty() {
        out.push(json!(super::cells::age(&root, now)));
    }
    out.extend(columns.iter().map(|column| cell(column, object, now)));
    out
}

fn columns<'d>(definition: &'d Definition, version: &str) -> &'d [Column] {
    definition.version(version).map_or(&[], |version| version.columns.as_slice())
}

/// The value of a column; null if the object has none of the column's type.
fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let Some(value) = column.path.first(object) else {
        return Value::Null;
    };
    let fits = match column.kind.as_str() {
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "date" => return json!(age::or_unknown(&Field::root(value), now)),
        _ => return Value::String(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    };
    if fits { value.clone() } else { Value::Null }
}
