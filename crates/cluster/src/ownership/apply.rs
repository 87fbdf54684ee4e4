//! Server-side apply: the applied object is laid over the live one, what its manager no longer applies goes, and
//! whoever else manages a field that would change has a say.

use super::conflict::{Conflict, refusal};
use super::field_set::FieldSet;
use super::intern;
use super::managed::{Entry, Managed, Operation, Writer};
use super::update::{Change, Versions, created, manageable, without};
use super::walk::{compare, merge, remove, set_of, with_named};
use crate::error::ApiError;
use serde_json::Value;
use std::sync::Arc;

/// Stands for whoever wrote an object before anybody was noted.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// An apply.
#[derive(Clone, Copy)]
pub struct Apply<'a, V> {
    /// Versions of the kind.
    pub versions: &'a V,
    /// The applied object, in the version of the writer.
    pub applied: &'a Value,
    /// Who applies it.
    pub writer: &'a Writer,
    /// Take fields from others.
    pub force: bool,
    /// Which fields this endpoint writes at all.
    pub scope: &'a dyn Fn(FieldSet) -> FieldSet,
    /// An object of this kind without any content.
    pub empty: &'a Value,
    /// Seconds since 1970.
    pub now: i64,
}

/// What an apply makes of an object.
#[derive(Debug)]
pub struct Applied {
    /// The new object; `None` if it stays as it is.
    pub object: Option<Value>,
    /// Who manages what.
    pub managed: Managed,
}

impl<V: Versions> Apply<'_, V> {
    /// Applies to a live object, which is in the version of the writer.
    ///
    /// Fields that others manage are taken without asking if they are in `yielded`.
    pub fn to(&self, live: &Value, managed: &Managed, yielded: &FieldSet) -> Result<Applied, ApiError> {
        let version = &*self.writer.api_version;
        let of = self.versions.type_of(version).ok_or_else(ApiError::no_such_path)?;
        let first;
        let managed = if managed.is_empty() {
            let writer = Writer {
                manager: BEFORE_FIRST_APPLY.into(),
                operation: Operation::Update,
                ..self.writer.clone()
            };
            first = created(of, self.empty, live, writer, self.scope, self.now);
            &first
        } else {
            managed
        };
        let merged = merge(of, live, self.applied)
            .map_err(|why| ApiError::bad_request(format!("failed to merge the applied object: {why}")))?;
        let last = managed.entries().iter().find(|entry| entry.writer.is_same(self.writer));
        let own = (self.scope)(set_of(of, self.applied));
        let others = || managed.entries().iter().filter(|entry| !entry.writer.is_same(self.writer));
        let new = match last {
            Some(last) => self.prune(merged, last, &own, others()),
            None => merged,
        };
        let mut change = Change::new(self.versions, version, live, &new, self.scope);
        let mut entries = Vec::with_capacity(managed.entries().len() + 1);
        let mut conflicts = Vec::new();
        for entry in others() {
            let Some(seen) = change.seen_in(&entry.writer.api_version) else { continue };
            let fields = entry.fields.set().intersection(&seen.written()).difference(yielded);
            if !fields.is_empty() {
                conflicts.push(Conflict { writer: Arc::clone(&entry.writer), fields });
            }
            entries.push(without(entry, &seen));
        }
        if !self.force && !conflicts.is_empty() {
            return Err(refusal(conflicts));
        }
        let changed = new != *live;
        let time = if changed { Some(self.now) } else { last.and_then(|last| last.time) };
        let fields = intern::share(manageable(&own));
        entries.push(Entry { writer: Arc::new(self.writer.clone()), time, fields });
        Ok(Applied { object: changed.then_some(new), managed: Managed::new(entries) })
    }

    /// The merged object without what the writer applied last time, does not apply now, and nobody else manages.
    fn prune<'e>(
        &self,
        merged: Value,
        last: &Entry,
        own: &FieldSet,
        others: impl Iterator<Item = &'e Entry>,
    ) -> Value {
        let version = &*self.writer.api_version;
        let mut managed: Vec<(&str, FieldSet)> = vec![(version, own.clone())];
        for entry in others {
            let set = entry.fields.set().clone();
            match managed.iter_mut().find(|(version, _)| **version == *entry.writer.api_version) {
                Some((_, all)) => *all = std::mem::take(all).union(set),
                None => managed.push((&entry.writer.api_version, set)),
            }
        }
        self.pruned(&merged, last, managed).unwrap_or(merged)
    }

    /// `None` if a version that matters is not served any longer: then nothing is removed.
    fn pruned(&self, merged: &Value, last: &Entry, mut managed: Vec<(&str, FieldSet)>) -> Option<Value> {
        let (version, old) = (&*self.writer.api_version, &*last.writer.api_version);
        let to = |object: &Value, from: &str, to: &str| {
            if from == to { Some(object.clone()) } else { self.versions.convert(object, from, to) }
        };
        let of_old = self.versions.type_of(old)?;
        let merged = to(merged, version, old)?;
        let owned = with_named(Some(of_old), last.fields.set());
        let mut pruned = remove(of_old, &merged, &owned);
        // The version of the removed fields first: others may not be able to express what is left without them.
        managed.sort_by_key(|(version, _)| *version != old);
        for (version, set) in managed {
            let Some(of) = self.versions.type_of(version) else { continue };
            let (all, left) = (to(&merged, old, version)?, to(&pruned, old, version)?);
            let named = |set: &FieldSet| with_named(Some(of), set);
            let kept = named(&set_of(of, &left)).union(named(&set));
            pruned = to(&remove(of, &all, &named(&set_of(of, &all)).difference(&kept)), version, old)?;
        }
        let named = |object: &Value| with_named(Some(of_old), &set_of(of_old, object));
        let gone = named(&merged).difference(&named(&pruned)).intersection(&owned);
        to(&remove(of_old, &merged, &gone), old, version)
    }

    /// The fields of a former client-side apply that are still as they were applied then: whoever applies on
    /// the server now may have them.
    pub fn unchanged_since(&self, last_applied: &Value, live: &Value) -> FieldSet {
        let Some(of) = self.versions.type_of(&self.writer.api_version) else {
            return FieldSet::default();
        };
        let found = compare(of, last_applied, live);
        set_of(of, last_applied)
            .difference(&found.modified)
            .difference(&found.added)
            .difference(&found.removed)
    }
}
