//! One value laid over another.

use super::{FieldType, Relation, Step, View, entries, entry_step, field_type, fields, view};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The live object with an applied one laid over it. Fails if the applied one has entries in a list that cannot
/// be told apart; the message names the place.
pub(in crate::ownership) fn merge<T: FieldType>(
    of: T,
    live: &Value,
    applied: &Value,
) -> Result<Value, String> {
    let merged = merge_values(Some(of), Some(live), Some(applied))?;
    Ok(merged.unwrap_or_else(|| Value::Object(Map::new())))
}

fn merge_values<T: FieldType>(
    of: Option<T>,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Result<Option<Value>, String> {
    let Some(applied) = applied else {
        return Ok(live.cloned());
    };
    let shown = if applied.is_null() { live.unwrap_or(applied) } else { applied };
    match view(of.as_ref(), Some(shown)) {
        View::Fields if fields(live).is_some() || fields(Some(applied)).is_some_and(|m| !m.is_empty()) => {
            merge_fields(of, fields(live), fields(Some(applied)))
        }
        View::List(list) if !(entries(live).is_empty() && entries(Some(applied)).is_empty()) => {
            merge_lists(list, of.and_then(|of| of.element()), entries(live), entries(Some(applied)))
        }
        _ => Ok(Some(applied.clone())),
    }
}

fn merge_fields<T: FieldType>(
    of: Option<T>,
    live: Option<&Map<String, Value>>,
    applied: Option<&Map<String, Value>>,
) -> Result<Option<Value>, String> {
    let mut out = live.cloned().unwrap_or_default();
    for (name, applied) in applied.into_iter().flatten() {
        let (of, _) = field_type(of, name);
        let merged = merge_values(of, live.and_then(|live| live.get(name)), Some(applied));
        match merged.map_err(|why| format!(".{name}{why}"))? {
            Some(value) => out.insert(name.clone(), value),
            None => out.remove(name),
        };
    }
    Ok(Some(Value::Object(out)))
}

/// Entries by what tells them apart. Of live entries that are alike all stay, but none is merged with.
struct Indexed<'v> {
    order: Vec<(Step, &'v Value)>,
    by_step: BTreeMap<Step, Option<&'v Value>>,
}

impl<'v> Indexed<'v> {
    fn new<T: FieldType>(
        list: Relation<'_>,
        element: Option<T>,
        entries: &'v [Value],
        allow_alike: bool,
    ) -> Result<Self, String> {
        let mut out = Self { order: Vec::new(), by_step: BTreeMap::new() };
        for (index, entry) in entries.iter().enumerate() {
            let step = match entry_step(list, element, entry) {
                Ok(step) => step,
                Err(_) if allow_alike => continue,
                Err(why) => return Err(format!("[{index}]: {why}")),
            };
            let alike = out.by_step.contains_key(&step);
            if alike && !allow_alike {
                return Err(format!(": duplicate entries for key {}", step.to_path()));
            }
            out.by_step.insert(step.clone(), (!alike).then_some(entry));
            out.order.push((step, entry));
        }
        Ok(out)
    }
}

/// Entries of both lists. The applied order wins where both lists have a say; entries of nobody but the live
/// object stay where they are relative to those before them.
fn merge_lists<T: FieldType>(
    list: Relation<'_>,
    element: Option<T>,
    live: &[Value],
    applied: &[Value],
) -> Result<Option<Value>, String> {
    let left = Indexed::new(list, element, live, true)?;
    let right = Indexed::new(list, element, applied, false)?;
    let mut shared = right.order.iter().map(|(step, _)| step).filter(|step| left.by_step.contains_key(step));
    let mut next_shared = shared.next();
    let mut out = Vec::new();
    let (mut l, mut r) = (left.order.iter().peekable(), right.order.iter().peekable());
    loop {
        let here = l.peek().copied().map(|(step, _)| step);
        let take_right = match (here, r.peek().copied().map(|(step, _)| step)) {
            (None, None) => break,
            (None, Some(_)) => true,
            (Some(step), None) | (Some(step), Some(_)) if !right.by_step.contains_key(step) => false,
            (Some(_), None) => {
                // Already placed together with its applied counterpart.
                l.next();
                continue;
            }
            (Some(here), Some(there)) => {
                if here != there && next_shared.is_some_and(|next| next != here) {
                    // Shared, but its turn comes later in the applied order, or was before.
                    l.next();
                    continue;
                }
                true
            }
        };
        if !take_right {
            out.extend(l.next().map(|(_, entry)| (*entry).clone()));
            continue;
        }
        let Some((step, entry)) = r.next() else { break };
        let live = left.by_step.get(step).copied().flatten();
        let merged = merge_values(element, live, Some(entry));
        out.extend(merged.map_err(|why| format!("{}{why}", step.to_path()))?);
        if next_shared == Some(step) {
            next_shared = shared.next();
        }
        if here == Some(step) {
            l.next();
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}
