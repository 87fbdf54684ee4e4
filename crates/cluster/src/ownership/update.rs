//! Who manages what after a write that is not an apply.

use super::field_set::FieldSet;
use super::field_type::FieldType;
use super::intern;
use super::managed::{Entry, Managed, Operation, Writer};
use super::walk::{Comparison, compare};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// Writers by other means than apply that are told apart. The oldest of more become one. As in Kubernetes.
const UPDATERS_MAX: usize = 10;

/// The writer that stands for the oldest ones.
const ANCIENT: &str = "ancient-changes";

/// Fields that nobody manages: the server alone decides them, or they say which object this is.
static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// The versions of one kind: every writer manages fields of the version that it speaks.
pub trait Versions {
    /// Type of the objects.
    type Type: FieldType;

    /// The type in a version, as `apiVersion` spells it; `None` if it is not served.
    fn type_of(&self, api_version: &str) -> Option<Self::Type>;

    /// An object of one version in another one.
    fn convert(&self, object: &Value, from: &str, to: &str) -> Option<Value>;
}

/// The set without fields that nobody manages.
pub(super) fn manageable(set: &FieldSet) -> FieldSet {
    set.difference(&NOBODYS)
}

/// Two states of an object, and how they differ in each version that somebody speaks.
pub(super) struct Change<'a, V> {
    versions: &'a V,
    /// The version in which both states are given.
    api_version: &'a str,
    old: &'a Value,
    new: &'a Value,
    /// What counts of the differences.
    scope: &'a dyn Fn(FieldSet) -> FieldSet,
    known: Vec<(Box<str>, Option<Arc<Comparison>>)>,
}

impl<'a, V: Versions> Change<'a, V> {
    pub(super) fn new(
        versions: &'a V,
        api_version: &'a str,
        old: &'a Value,
        new: &'a Value,
        scope: &'a dyn Fn(FieldSet) -> FieldSet,
    ) -> Self {
        Self { versions, api_version, old, new, scope, known: Vec::new() }
    }

    /// The differences as a version sees them; `None` if it is not served.
    pub(super) fn seen_in(&mut self, api_version: &str) -> Option<Arc<Comparison>> {
        if let Some((_, known)) = self.known.iter().find(|(version, _)| **version == *api_version) {
            return known.clone();
        }
        let found = self.compare_in(api_version).map(Arc::new);
        self.known.push((api_version.into(), found.clone()));
        found
    }

    fn compare_in(&self, api_version: &str) -> Option<Comparison> {
        let of = self.versions.type_of(api_version)?;
        let found = if api_version == self.api_version {
            compare(of, self.old, self.new)
        } else {
            let convert = |object| self.versions.convert(object, self.api_version, api_version);
            compare(of, &convert(self.old)?, &convert(self.new)?)
        };
        Some(Comparison {
            added: (self.scope)(found.added),
            modified: (self.scope)(found.modified),
            removed: (self.scope)(found.removed),
        })
    }
}

/// Who manages what in a new object: everything in scope belongs to its creator, but for what an empty object of
/// this kind has already.
pub fn created<T: FieldType>(
    of: T,
    empty: &Value,
    object: &Value,
    writer: Writer,
    scope: &dyn Fn(FieldSet) -> FieldSet,
    now: i64,
) -> Managed {
    let fields = intern::share(scope(manageable(&compare(of, empty, object).written())));
    Managed::new(vec![Entry { writer: Arc::new(writer), time: Some(now), fields }])
}

/// Who manages what after an update: whoever changes a field manages it alone.
///
/// `old` and `new` are in the version of the writer. Objects that nobody manages stay so until they are applied.
pub fn updated<V: Versions>(
    versions: &V,
    old: &Value,
    new: &Value,
    managed: &Managed,
    writer: &Writer,
    now: i64,
) -> Managed {
    if managed.is_empty() {
        return Managed::default();
    }
    let all = |set| set;
    let mut change = Change::new(versions, &writer.api_version, old, new, &all);
    let Some(own) = change.seen_in(&writer.api_version) else {
        return managed.clone();
    };
    let mut taken = manageable(&own.written());
    if taken.is_empty() && own.removed.is_empty() {
        return managed.clone();
    }
    let mut entries = Vec::with_capacity(managed.entries().len() + 1);
    for entry in managed.entries() {
        // A version that is no longer served has no fields that anybody could manage.
        let Some(seen) = change.seen_in(&entry.writer.api_version) else { continue };
        let rest = without(entry, &seen);
        if rest.writer.is_same(writer) && !taken.is_empty() {
            taken = taken.union(rest.fields.set().clone());
        } else {
            entries.push(rest);
        }
    }
    if !taken.is_empty() {
        let fields = intern::share(taken);
        entries.push(Entry { writer: Arc::new(writer.clone()), time: Some(now), fields });
    }
    cap(&mut entries);
    Managed::new(entries)
}

/// The entry without what was written by others or is gone.
pub(super) fn without(entry: &Entry, seen: &Comparison) -> Entry {
    let set = entry.fields.set();
    let lost = set.intersection(&seen.written()).union(set.intersection(&seen.removed));
    if lost.is_empty() {
        return entry.clone();
    }
    Entry { fields: intern::share(set.difference(&lost)), ..entry.clone() }
}

/// Makes one entry of the oldest ones if there are too many that were not applied.
fn cap(entries: &mut Vec<Entry>) {
    let is_updater = |entry: &Entry| entry.writer.operation == Operation::Update;
    let mut excess = entries.iter().filter(|entry| is_updater(entry)).count().saturating_sub(UPDATERS_MAX);
    if excess == 0 {
        return;
    }
    entries.sort_by_key(|entry| entry.time.unwrap_or(0));
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    // By version, the first entry that others are merged into.
    for entry in std::mem::take(entries) {
        let bucket = kept
            .iter()
            .position(|first| is_updater(first) && first.writer.api_version == entry.writer.api_version);
        match bucket.filter(|_| excess > 0 && is_updater(&entry)) {
            Some(bucket) => {
                let first = &kept[bucket];
                let set = first.fields.set().clone().union(entry.fields.set().clone());
                let writer = Writer {
                    manager: ANCIENT.into(),
                    subresource: Box::default(),
                    ..Writer::clone(&first.writer)
                };
                kept[bucket] =
                    Entry { writer: Arc::new(writer), time: entry.time, fields: intern::share(set) };
                excess -= 1;
            }
            None => kept.push(entry),
        }
    }
    *entries = kept;
}
