//! Numbers that may be written as a share of another: `3` or `25%`.

use serde_json::Value;

/// Which way a share is rounded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Round {
    Up,
    Down,
}

/// A number, or a share of a total. What is neither is 0.
pub(super) fn share(rule: &Value, total: u32, round: Round) -> u32 {
    if let Some(number) = rule.as_u64() {
        return u32::try_from(number).unwrap_or(u32::MAX);
    }
    let digits = rule.as_str().and_then(|text| text.strip_suffix('%'));
    let percent: u64 = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let product = u64::from(total).saturating_mul(percent);
    let share = match round {
        Round::Up => product.div_ceil(100),
        Round::Down => product / 100,
    };
    u32::try_from(share).unwrap_or(u32::MAX)
}
