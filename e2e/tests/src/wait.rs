//! Waiting, never for ever.

use anyhow::bail;
use std::future::Future;
use std::time::{Duration, Instant};

/// Long enough for what takes a second on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Long enough for a control plane to start on a loaded machine.
pub(crate) const PATIENCE_START: Duration = Duration::from_secs(180);

/// The pause between two looks at the same thing.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Asks until there is an answer. `Err` is what was seen instead, for the message when patience ends.
pub(crate) async fn eventually<T, F>(what: &str, mut ask: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Result<T, String>>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = match ask().await? {
            Ok(answer) => return Ok(answer),
            Err(seen) => seen,
        };
        if Instant::now() >= deadline {
            bail!("did not happen within {} s: {what}; last seen: {seen}", PATIENCE.as_secs());
        }
        pause().await;
    }
}
