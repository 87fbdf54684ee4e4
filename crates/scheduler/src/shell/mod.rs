//! The thin shell around the core: watches in, requests out, one owner of the state between them.

mod connections;
mod dumper;
mod groups;
mod http;
mod log;
mod metrics;
mod numbers;
mod owner;
mod paced_watch;
mod pulse;
mod reload;
mod repeats;
mod requests;
mod send;
mod serve;
mod state;
mod status;
mod stopwatch;
mod term;
mod watch;
mod watches;
mod workloads;

pub use connections::Clients;
pub use reload::{Adjust, Followed, follow};
pub use serve::serve;
pub use state::{Dump, DumpError};

use crate::config::Config;
use crate::error::Error;
use connections::Connections;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use owner::Interrupt;
use std::future::Future;
use std::sync::Arc;
use tutti_k8s::Capabilities;

/// How often the cluster is asked what it serves before giving up.
const DISCOVERY_TRIES_MAX: u32 = 6;

/// Schedules until `shutdown` is ready, and nothing else: without leader election, health and reload.
///
/// Then nothing new is decided, and bindings under way may finish within the configured time. Anything that is
/// not finished is found in the cluster by whoever runs next.
pub async fn run(
    client: Client,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    config.validate()?;
    let end = futures::FutureExt::boxed(shutdown).shared();
    match serve::discover(&client, &end, Some(DISCOVERY_TRIES_MAX)).await? {
        Some(capabilities) => run_with(client, config, capabilities, end).await,
        None => Ok(()),
    }
}

/// As [`run`], for a cluster whose APIs are known: nothing is discovered.
pub async fn run_with(
    client: Client,
    config: Config,
    capabilities: Capabilities,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    config.validate()?;
    let stop = shutdown.map(|()| Interrupt::Stop).into_stream().boxed();
    let status = Arc::default();
    let connections = Connections::new(client, None)?;
    serve::start(&connections, config, capabilities, None, &status).run(stop).await?;
    Ok(())
}
