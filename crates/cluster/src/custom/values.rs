//! Values of custom kinds against their schema: what is missing is filled in, what is wrong is named.

use super::schema::{ListType, Schema, Type};
use crate::error::{Cause, CauseReason};
use crate::kinds::field::same;
use serde_json::{Map, Value};

/// Findings after which a value is not looked at any further.
const CAUSES_MAX: usize = 64;

/// Fills in what the schema has a default for.
pub(super) fn set_defaults(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    let absent = map.get(name).is_none_or(|v| v.is_null() && !property.nullable);
                    if absent {
                        map.insert(name.clone(), default.clone());
                    }
                }
                if let Some(child) = map.get_mut(name) {
                    set_defaults(property, child);
                }
            }
            if let Some(additional) = &schema.additional {
                map.values_mut().for_each(|child| set_defaults(additional, child));
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| set_defaults(schema, item));
            }
        }
        _ => {}
    }
}

/// What is wrong with a value. `path` is where it stands in its object, empty for the object itself.
pub(super) fn validate(schema: &Schema, value: &Value, path: &str, out: &mut Vec<Cause>) {
    if out.len() >= CAUSES_MAX || (value.is_null() && schema.nullable) {
        return;
    }
    if !has_type(schema, value) {
        let expected = schema.kind.map_or("integer or string", Type::name);
        let found = type_of(value);
        out.push(cause(
            CauseReason::TypeInvalid,
            path,
            format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}"),
        ));
        return;
    }
    check_limits(schema, value, path, out);
    match value {
        Value::Object(map) => check_object(schema, map, path, out),
        Value::Array(items) => check_list(schema, items, path, out),
        _ => {}
    }
    check_alternatives(schema, value, path, out);
}

fn cause(reason: CauseReason, path: &str, message: String) -> Cause {
    Cause { reason, field: path.to_owned(), message }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(schema: &Schema, value: &Value) -> bool {
    if schema.int_or_string {
        return value.is_string() || is_whole(value);
    }
    match schema.kind {
        None => true,
        Some(Type::Object) => value.is_object(),
        Some(Type::Array) => value.is_array(),
        Some(Type::String) => value.is_string(),
        Some(Type::Integer) => is_whole(value),
        Some(Type::Number) => value.is_number(),
        Some(Type::Boolean) => value.is_boolean(),
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn child_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn check_object(schema: &Schema, map: &Map<String, Value>, path: &str, out: &mut Vec<Cause>) {
    for name in &schema.limits.required {
        // Null is as good as nothing, unless the schema says that it is a value.
        let nullable = schema.properties.get(name).is_some_and(|property| property.nullable);
        if map.get(name).is_none_or(|v| v.is_null() && !nullable) {
            out.push(cause(CauseReason::Required, &child_path(path, name), "Required value".to_owned()));
        }
    }
    for (name, value) in map {
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) if value.is_null() && !property.nullable => {}
            (Some(property), _) => validate(property, value, &child_path(path, name), out),
            (None, Some(additional)) => validate(additional, value, &format!("{path}[{name}]"), out),
            (None, None) => {}
        }
    }
    let count = map.len() as u64;
    let (least, most) = schema.limits.properties;
    if least.is_some_and(|least| count < least) {
        let why = format!("{path} in body should have at least {} properties", least.unwrap_or(0));
        out.push(cause(CauseReason::Invalid, path, format!("Invalid value: {count}: {why}")));
    }
    if most.is_some_and(|most| count > most) {
        let message = format!("Too many: {count}: must have at most {} items", most.unwrap_or(0));
        out.push(cause(CauseReason::TooMany, path, message));
    }
}

fn check_list(schema: &Schema, items: &[Value], path: &str, out: &mut Vec<Cause>) {
    if let Some(schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            validate(schema, item, &format!("{path}[{index}]"), out);
        }
    }
    let count = items.len() as u64;
    let (least, most) = schema.limits.items;
    if least.is_some_and(|least| count < least) {
        let why = format!("{path} in body should have at least {} items", least.unwrap_or(0));
        out.push(cause(CauseReason::Invalid, path, format!("Invalid value: {count}: {why}")));
    }
    if most.is_some_and(|most| count > most) {
        let message = format!("Too many: {count}: must have at most {} items", most.unwrap_or(0));
        out.push(cause(CauseReason::TooMany, path, message));
    }
    check_unique(schema, items, path, out);
}

fn check_unique(schema: &Schema, items: &[Value], path: &str, out: &mut Vec<Cause>) {
    let mut seen = std::collections::HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = match &schema.list_type {
            ListType::Atomic => return,
            ListType::Set => item.to_string(),
            ListType::Map(keys) => {
                let values: Vec<String> =
                    keys.iter().map(|key| item.get(key).unwrap_or(&Value::Null).to_string()).collect();
                values.join(",")
            }
        };
        if !seen.insert(key) {
            let place = format!("{path}[{index}]");
            out.push(cause(CauseReason::Duplicate, &place, format!("Duplicate value: {item}")));
        }
    }
}

fn check_limits(schema: &Schema, value: &Value, path: &str, out: &mut Vec<Cause>) {
    let limits = &schema.limits;
    let mut should = |why: String| {
        let message = format!("Invalid value: {value}: {path} in body should {why}");
        out.push(cause(CauseReason::Invalid, path, message));
    };
    if let Some(number) = value.as_f64() {
        match limits.minimum {
            Some((least, true)) if number <= least => should(format!("be greater than {least}")),
            Some((least, false)) if number < least => should(format!("be greater than or equal to {least}")),
            _ => {}
        }
        match limits.maximum {
            Some((most, true)) if number >= most => should(format!("be less than {most}")),
            Some((most, false)) if number > most => should(format!("be less than or equal to {most}")),
            _ => {}
        }
        if let Some(step) = limits.multiple_of.filter(|step| (number / step).fract() != 0.0) {
            should(format!("be a multiple of {step}"));
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        if let Some(least) = limits.length.0.filter(|least| length < *least) {
            should(format!("be at least {least} chars long"));
        }
        if let Some(most) = limits.length.1.filter(|most| length > *most) {
            out.push(cause(
                CauseReason::TooLong,
                path,
                format!("Too long: may not be more than {most} bytes"),
            ));
        } else if let Some(pattern) = limits.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            should(format!("match '{}'", pattern.as_str()));
        }
        if limits.format.as_deref() == Some("date-time") && text.parse::<jiff::Timestamp>().is_err() {
            out.push(cause(
                CauseReason::Invalid,
                path,
                format!("Invalid value: {value}: {path} in body must be of type date-time: {value}"),
            ));
        }
    }
    if !limits.allowed.is_empty() && !limits.allowed.iter().any(|allowed| same(Some(allowed), Some(value))) {
        let list: Vec<String> = limits.allowed.iter().map(ToString::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", list.join(", "));
        out.push(cause(CauseReason::NotSupported, path, message));
    }
}

fn check_alternatives(schema: &Schema, value: &Value, path: &str, out: &mut Vec<Cause>) {
    for part in &schema.all_of {
        validate(part, value, path, out);
    }
    let fits = |part: &Schema| {
        let mut found = Vec::new();
        validate(part, value, path, &mut found);
        found.is_empty()
    };
    let mut must = |what: &str| {
        let shown =
            if value.is_object() || value.is_array() { type_of(value).to_owned() } else { value.to_string() };
        let message = format!("Invalid value: {shown:?}: {path:?} must validate {what}");
        out.push(cause(CauseReason::Invalid, path, message));
    };
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(fits) {
        must("at least one schema (anyOf)");
    }
    if !schema.one_of.is_empty() && schema.one_of.iter().filter(|part| fits(part)).count() != 1 {
        must("one and only one schema (oneOf)");
    }
    if schema.not.as_ref().is_some_and(|part| fits(part)) {
        must("not the schema (not)");
    }
}
