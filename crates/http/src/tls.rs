//! HTTPS for a router: the accept loop, and the limits that keep peers from using up what others need.
//!
//! TCP, then TLS by whatever the configuration demands, then HTTP/1.1 or HTTP/2.

use crate::stall::StallGuard;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Connections served at once; further ones wait in the backlog of the system. A client needs one or two, so
/// this is far above what is seen, and far below the usual limit of open files.
pub const CONNECTIONS_MAX: usize = 512;
/// A peer that has not finished the TLS handshake by then is dropped, so that silent peers cannot use up
/// the connections.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for the headers of a request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// A peer that has taken nothing of an answer for so long is dropped.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long requests may go on after the end was asked for. Watches never end by themselves, so this is also
/// how long a shutdown takes while somebody watches.
pub const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);
/// Pause after an accept that failed for want of resources: trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Streams within one HTTP/2 connection: one a watch or request in flight.
const STREAMS_MAX: u32 = 1024;

/// Serves `router` until `shutdown` turns true (or its sender is gone), then ends all connections within a
/// short grace time.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    shutdown: watch::Receiver<bool>,
) {
    serve_at_most(CONNECTIONS_MAX, listener, tls, router, shutdown).await;
}

/// The same with a limit of connections of its own.
pub async fn serve_at_most(
    connections_max: usize,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    mut shutdown: watch::Receiver<bool>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let places = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    loop {
        // A place first: a connection that nobody can serve had better not be accepted.
        let accepted = tokio::select! {
            () = ended(&mut shutdown) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let (acceptor, router, shutdown) = (acceptor.clone(), router.clone(), shutdown.clone());
                connections.spawn(async move {
                    serve_connection(stream, acceptor, router, shutdown).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // The port is free from here on, while the last requests end.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Completes when the end is asked for, also by the loss of whoever could ask.
async fn ended(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which is the end too.
    let _ = shutdown.wait_for(|&end| end).await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn serve_connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: Router,
    mut shutdown: watch::Receiver<bool>,
) {
    // Watch events are small; without this each could wait for the acknowledgement of the one before it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch off Nagle's algorithm");
    }
    let stream = tokio::select! {
        () = ended(&mut shutdown) => return,
        done = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(StallGuard::new(stream, STALL_TIMEOUT))) => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                return;
            }
            Err(_) => {
                tracing::debug!("TLS handshake timed out");
                return;
            }
        },
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);

    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = ended(&mut shutdown) => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(SHUTDOWN_GRACE, connection).await {
                Ok(result) => result,
                // Somebody still watches; dropping the connection is all that is left.
                Err(_) => return,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = &*error, "connection ended with an error");
    }
}
