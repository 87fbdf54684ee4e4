//! The end, as users and process managers ask for it.

use anyhow::Context as _;

/// Listens for Ctrl-C and SIGTERM from now on, and not only once the future is waited for: whoever listens before it says
/// that it runs is never ended halfway by somebody who has read that.
pub(crate) fn end_asked() -> anyhow::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    {
        let mut interrupt = tokio::signal::windows::ctrl_c().context("cannot listen for Ctrl-C")?;
        Ok(async move {
            interrupt.recv().await;
        })
    }
}
