//! Fields that an apply would take from others.

use super::field_set::FieldSet;
use super::managed::{Operation, Writer};
use crate::error::{ApiError, Cause, CauseReason, Details};
use std::sync::Arc;

/// What an apply would take from one writer.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) writer: Arc<Writer>,
    pub(super) fields: FieldSet,
}

/// The writer in words.
fn shown(writer: &Writer) -> String {
    let mut out = format!("{:?}", writer.manager);
    if !writer.subresource.is_empty() {
        out.push_str(&format!(" with subresource {:?}", writer.subresource));
    }
    if writer.operation == Operation::Update {
        out.push_str(&format!(" using {}", writer.api_version));
    }
    out
}

/// 409 that names every field and who manages it.
pub(super) fn refusal(mut conflicts: Vec<Conflict>) -> ApiError {
    conflicts.sort_by_key(|conflict| shown(&conflict.writer));
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for conflict in &conflicts {
        let who = shown(&conflict.writer);
        lines.push(format!("conflicts with {who}:"));
        for path in conflict.fields.paths() {
            lines.push(format!("- {path}"));
            let message = format!("conflict with {who}");
            causes.push(Cause { reason: CauseReason::FieldManagerConflict, field: path, message });
        }
    }
    let message = match causes.as_slice() {
        [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
        all => format!("Apply failed with {} conflicts: {}", all.len(), lines.join("\n")),
    };
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = Some(Box::new(Details { causes, ..Details::default() }));
    error
}
