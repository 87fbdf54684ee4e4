//! Environment variables that make stories longer, shorter, or the same again.

use anyhow::Context as _;

/// Says where randomness starts, instead of anywhere.
pub(crate) const SEED_VARIABLE: &str = "TUTTI_E2E_SEED";

/// Where randomness starts.
pub(crate) fn seed() -> anyhow::Result<u64> {
    Ok(number(SEED_VARIABLE)?.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0))
}

/// The number that a variable holds, if it is set.
pub(crate) fn number(variable: &str) -> anyhow::Result<Option<u64>> {
    let text = std::env::var(variable).ok();
    text.map(|text| text.parse().with_context(|| format!("{variable}={text:?} is no number"))).transpose()
}
