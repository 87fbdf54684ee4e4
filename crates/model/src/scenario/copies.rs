//! Labels of copies: `{i}` stands for the number of the copy, `{i/4}` for that number divided by 4, rounded down.

use crate::Labels;
use crate::error::ModelError;
use std::num::NonZeroUsize;

/// The labels of one copy, or of a line without copies.
pub(super) fn labels(written: &Labels, copy: Option<usize>) -> Result<Labels, ModelError> {
    let mut numbered = Vec::new();
    for (key, value) in written.iter() {
        let value = with_number(value, copy).map_err(|error| error.within(&format!("label:{key}")))?;
        numbered.push((key, value));
    }
    Ok(numbered.iter().map(|(key, value)| (*key, value.as_str())).collect())
}

fn with_number(value: &str, copy: Option<usize>) -> Result<String, ModelError> {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('{') {
        let wrong =
            || ModelError::new(value, "want {i}, or {i/N} with N of at least 1, in a line with copies");
        let (inside, after) = behind.split_once('}').ok_or_else(wrong)?;
        let divisor: NonZeroUsize = match inside.strip_prefix('i').ok_or_else(wrong)? {
            "" => NonZeroUsize::MIN,
            divisor => divisor.strip_prefix('/').and_then(|d| d.parse().ok()).ok_or_else(wrong)?,
        };
        text.push_str(before);
        text.push_str(&(copy.ok_or_else(wrong)? / divisor).to_string());
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}
