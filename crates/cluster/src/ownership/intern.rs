//! Equal sets are one set. Writers of one kind of object tend to write the same fields again and again, and a
//! set takes more memory than all the rest of an object.

use super::field_set::FieldSet;
use super::managed::Fields;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Distinct sets that are shared. When there are more, those that nobody uses any longer make room; if all are
/// in use, further ones are simply not shared.
const SHARED_MAX: usize = 16_384;

static SHARED: LazyLock<Mutex<HashSet<Arc<Fields>>>> = LazyLock::new(Mutex::default);

/// The one copy of a set.
pub fn share(set: FieldSet) -> Arc<Fields> {
    let fields = Fields::new(set);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = shared.get(&fields) {
        return Arc::clone(known);
    }
    let fields = Arc::new(fields);
    if shared.len() >= SHARED_MAX {
        shared.retain(|fields| Arc::strong_count(fields) > 1);
    }
    if shared.len() < SHARED_MAX {
        shared.insert(Arc::clone(&fields));
    }
    fields
}
