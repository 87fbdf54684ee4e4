//! Strategic merge patch: a partial object in which lists are merged by key where the schema says so, and in
//! which directives say what a partial object cannot.
//!
//! | directive | where | meaning |
//! |---|---|---|
//! | `$patch: replace` | in an object | the object is replaced by the rest of this one |
//! | `$patch: delete` | in an object | the object is emptied |
//! | `$patch: delete` | in an entry of a merged list | the entry with this key is removed |
//! | `$patch: replace` | as an entry of a merged list | the list is replaced by the other entries |
//! | `$retainKeys: […]` | in an object | all other keys are removed |
//! | `$deleteFromPrimitiveList/F: […]` | beside list `F` | these values are removed from it |
//! | `$setElementOrder/F: […]` | beside list `F` | the order of its entries |

use crate::error::ApiError;
use crate::schema::ListMerge;
use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Tells how the list at a path is merged.
type Lists<'a> = &'a dyn Fn(&[&str]) -> ListMerge;

/// Applies a patch to an object.
pub(super) fn apply(object: &mut Value, patch: &Value, lists: Lists<'_>) -> Result<(), ApiError> {
    let Some(patch) = patch.as_object() else {
        return Err(malformed("a patch must be an object"));
    };
    merge_value(object, patch, &mut Vec::new(), lists)
}

fn malformed(why: &str) -> ApiError {
    ApiError::bad_request(format!("the strategic merge patch is malformed: {why}"))
}

/// Merges a patch into a value. A value that is no object becomes one, as the patch says that it is one.
fn merge_value<'p>(
    value: &mut Value,
    patch: &'p Map<String, Value>,
    path: &mut Vec<&'p str>,
    lists: Lists<'_>,
) -> Result<(), ApiError> {
    let mut map = match value.take() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    merge_map(&mut map, patch, path, lists)?;
    *value = Value::Object(map);
    Ok(())
}

/// What `$patch` says, if it is there.
fn directive(patch: &Map<String, Value>) -> Result<Option<&str>, ApiError> {
    match patch.get(PATCH) {
        None => Ok(None),
        Some(Value::String(word)) if matches!(word.as_str(), "replace" | "delete" | "merge") => {
            Ok(Some(word.as_str()))
        }
        Some(other) => Err(malformed(&format!("$patch is {other}; replace, delete and merge are supported"))),
    }
}

fn merge_map<'p>(
    target: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    path: &mut Vec<&'p str>,
    lists: Lists<'_>,
) -> Result<(), ApiError> {
    match directive(patch)? {
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some("replace") => target.clear(),
        _ => {}
    }
    retain_keys(target, patch)?;
    for (key, new) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
        path.push(key);
        match new {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(new) => {
                merge_value(target.entry(key.as_str()).or_insert(Value::Null), new, path, lists)?;
            }
            Value::Array(new) => {
                let value = target.entry(key.as_str()).or_insert(Value::Null);
                let mut list = match value.take() {
                    Value::Array(list) => list,
                    _ => Vec::new(),
                };
                merge_list(&mut list, new, path, lists)?;
                *value = Value::Array(list);
            }
            plain => {
                target.insert(key.clone(), plain.clone());
            }
        }
        path.pop();
    }
    delete_values(target, patch)?;
    set_orders(target, patch, path, lists)
}

fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), ApiError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = keys.as_array().ok_or_else(|| malformed("$retainKeys must be a list"))?;
    let keeps = |key: &str| keys.iter().any(|k| k.as_str() == Some(key));
    if let Some(stray) = patch.iter().find(|(k, v)| !k.starts_with('$') && !v.is_null() && !keeps(k)) {
        return Err(malformed(&format!("{:?} is set but not named in $retainKeys", stray.0)));
    }
    target.retain(|key, _| keeps(key));
    Ok(())
}

fn merge_list<'p>(
    target: &mut Vec<Value>,
    patch: &'p [Value],
    path: &mut Vec<&'p str>,
    lists: Lists<'_>,
) -> Result<(), ApiError> {
    match lists(path) {
        ListMerge::Atomic => *target = stripped_list(patch)?,
        ListMerge::Set => {
            let before = target.clone();
            for value in patch {
                if !target.contains(value) {
                    target.push(value.clone());
                }
            }
            order_merged(target, &before, patch, |value| Some(value));
        }
        ListMerge::ByKey(key) => {
            let before = target.clone();
            merge_by_key(target, patch, key, path, lists)?;
            order_merged(target, &before, patch, |entry| entry.get(key));
        }
    }
    Ok(())
}

/// Orders a merged list: what the patch names comes in the order of the patch, all else in the order that it had, and
/// between the two the order that was there before decides where it can.
fn order_merged(
    list: &mut Vec<Value>,
    before: &[Value],
    patch: &[Value],
    id: impl Fn(&Value) -> Option<&Value>,
) {
    let place = |within: &[Value], entry: &Value| within.iter().position(|other| id(other) == id(entry));
    let (mut named, others): (Vec<Value>, Vec<Value>) =
        std::mem::take(list).into_iter().partition(|entry| place(patch, entry).is_some());
    named.sort_by_key(|entry| place(patch, entry));
    let mut others = others.into_iter().peekable();
    for entry in named {
        let limit = place(before, &entry);
        while let Some(other) = others.next_if(|other| limit.is_some() && place(before, other) < limit) {
            list.push(other);
        }
        list.push(entry);
    }
    list.extend(others);
}

fn merge_by_key<'p>(
    target: &mut Vec<Value>,
    patch: &'p [Value],
    key: &str,
    path: &mut Vec<&'p str>,
    lists: Lists<'_>,
) -> Result<(), ApiError> {
    let is_replace = |entry: &Value| entry.get(PATCH).is_some_and(|d| d == "replace");
    if patch.iter().any(is_replace) {
        // The entry with the directive says what becomes of the list and is no entry itself.
        let rest: Vec<Value> = patch.iter().filter(|entry| !is_replace(entry)).cloned().collect();
        *target = stripped_list(&rest)?;
        return Ok(());
    }
    for entry in patch {
        let Some(new) = entry.as_object() else {
            return Err(malformed(&format!("an entry of {} is not an object", path.join("."))));
        };
        let Some(id) = new.get(key).filter(|id| !id.is_null()) else {
            return Err(malformed(&format!(
                "an entry of {} does not contain its merge key {key:?}",
                path.join(".")
            )));
        };
        if directive(new)? == Some("delete") {
            target.retain(|old| old.get(key) != Some(id));
            continue;
        }
        match target.iter_mut().find(|old| old.get(key) == Some(id)) {
            Some(old) => merge_value(old, new, path, lists)?,
            None => {
                let mut made = Map::new();
                merge_map(&mut made, new, path, lists)?;
                target.push(Value::Object(made));
            }
        }
    }
    Ok(())
}

/// Entries of a list that is taken as it is, without directives and nulls in its objects.
fn stripped_list(list: &[Value]) -> Result<Vec<Value>, ApiError> {
    list.iter()
        .map(|entry| match entry {
            Value::Object(entry) => {
                let mut made = Map::new();
                merge_map(&mut made, entry, &mut Vec::new(), &|_: &[&str]| ListMerge::Atomic)?;
                Ok(Value::Object(made))
            }
            plain => Ok(plain.clone()),
        })
        .collect()
}

fn delete_values(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), ApiError> {
    for (key, values) in patch {
        let Some(field) = key.strip_prefix(DELETE_FROM) else {
            continue;
        };
        let values = values.as_array().ok_or_else(|| malformed(&format!("{key} must be a list")))?;
        if let Some(list) = target.get_mut(field).and_then(Value::as_array_mut) {
            // What the same patch adds stays, even if it is also named here.
            let added = patch.get(field).and_then(Value::as_array);
            let is_added = |value: &Value| added.is_some_and(|added| added.contains(value));
            list.retain(|value| !values.contains(value) || is_added(value));
        }
    }
    Ok(())
}

fn set_orders<'p>(
    target: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    path: &mut Vec<&'p str>,
    lists: Lists<'_>,
) -> Result<(), ApiError> {
    for (key, order) in patch {
        let Some(field) = key.strip_prefix(SET_ORDER) else {
            continue;
        };
        let order = order.as_array().ok_or_else(|| malformed(&format!("{key} must be a list")))?;
        let Some(list) = target.get_mut(field).and_then(Value::as_array_mut) else {
            continue;
        };
        path.push(field);
        match lists(path) {
            ListMerge::Atomic => {}
            ListMerge::Set => set_order(list, |entry| order.iter().position(|o| o == entry)),
            ListMerge::ByKey(merge_key) => {
                set_order(list, |entry| order.iter().position(|o| o.get(merge_key) == entry.get(merge_key)));
            }
        }
        path.pop();
    }
    Ok(())
}

/// Puts the entries that have a rank into the order of their ranks. The others, which the author of the patch
/// did not know, stay where they are relative to the known ones that they stood behind.
fn set_order(list: &mut Vec<Value>, rank: impl Fn(&Value) -> Option<usize>) {
    let mut known: Vec<(usize, usize, Value)> = Vec::new();
    let mut others: Vec<(usize, Value)> = Vec::new();
    for (at, entry) in std::mem::take(list).into_iter().enumerate() {
        match rank(&entry) {
            Some(rank) => known.push((rank, at, entry)),
            None => others.push((at, entry)),
        }
    }
    known.sort_by_key(|(rank, ..)| *rank);
    let mut others = others.into_iter().peekable();
    for (_, at, entry) in known {
        while let Some((_, other)) = others.next_if(|(other_at, _)| *other_at < at) {
            list.push(other);
        }
        list.push(entry);
    }
    list.extend(others.map(|(_, other)| other));
}

#[cfg(test)]
mod tests;
