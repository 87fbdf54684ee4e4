//! Numbers of pods that may also be a share of all: `3` or `25%`.

use super::field::Field;
use crate::error::Cause;
use serde_json::Value;

const WHOLE_PERCENT: i64 = 100;

/// The share in percent, if the value is one.
fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Reports what is neither a number of pods nor a share of them; absence is fine.
pub(super) fn check(field: &Field<'_, '_>, out: &mut Vec<Cause>) {
    match field.value() {
        Some(Value::Number(_)) => field.check_range(0, i64::from(i32::MAX), out),
        Some(value) if percent(value).is_none() => {
            out.push(field.invalid(
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%', or '93%', regex \
                 used for validation is '[0-9]+%')",
            ));
        }
        Some(_) | None => {}
    }
}

/// As [`check`], and no more than all of them.
pub(super) fn check_share(field: &Field<'_, '_>, out: &mut Vec<Cause>) {
    check(field, out);
    if field.value().and_then(percent).is_some_and(|share| share > WHOLE_PERCENT) {
        out.push(field.invalid("must not be greater than 100%"));
    }
}

/// True if the value is none at all, of whatever number.
pub(super) fn is_zero(field: &Field<'_, '_>) -> bool {
    field.value().is_some_and(|value| value.as_i64() == Some(0) || percent(value) == Some(0))
}
