//! Sets by key, where an empty set is none.

use std::collections::{BTreeMap, BTreeSet};

/// Takes a value out of the set of a key.
pub(crate) fn remove_from<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}
