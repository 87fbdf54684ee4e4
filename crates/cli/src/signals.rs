//! The end, as users and process managers ask for it.

/// Completes at Ctrl-C or SIGTERM.
pub(crate) async fn end_asked() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// The same for those who have nobody to tell that they cannot wait for it.
pub(crate) async fn end() {
    if let Err(error) = end_asked().await {
        tracing::error!(%error, "cannot wait for Ctrl-C");
    }
}
