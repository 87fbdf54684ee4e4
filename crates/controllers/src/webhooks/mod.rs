//! Webhooks that API servers call: pods of Jobs become members of their groups for all to see, and what can never run
//! is warned of. Nothing depends on them: they refuse nothing, and API servers go on without them.
//!
//! [`review`] reads and answers without IO, from what [`knowledge`] holds; [`server`] is HTTPS around it;
//! [`certificates`] see to themselves.

mod advice;
pub mod certificates;
pub mod knowledge;
mod membership;
mod review;
pub mod server;
#[cfg(test)]
mod tests;

pub use self::certificates::{Places, Timing};

use self::certificates::{Keeper, Served};
use self::knowledge::{Event, Knowledge, Shared};
use crate::shell::{self, Watches};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::core::ApiResource;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tutti_k8s::Capabilities;

/// Settings.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub address: SocketAddr,
    /// Names of the schedulers that understand groups; pods of others are left alone.
    pub scheduler_names: Vec<String>,
    /// Where certificates are kept, and who has to trust them.
    pub places: Places,
    /// How long certificates last.
    pub timing: Timing,
}

/// Why the webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not to be had.
    #[error("the webhooks cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// TLS could not be set up.
    #[error("the webhooks cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Serves the webhooks until `shutdown` completes. Every replica does, also one that does not lead.
pub async fn run(
    client: Client,
    capabilities: &Capabilities,
    options: Options,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let address = options.address;
    let listener = TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })?;
    let served = Arc::new(Served::default());
    let tls = served.config()?;
    let knowledge = Shared::new(Knowledge::new(capabilities.link, options.scheduler_names));
    let router = server::router(knowledge.clone());
    let keeper = Keeper::new(client.clone(), options.places, options.timing, served);
    let (end, ended) = watch::channel(false);
    let follow = shell::run(knowledge, watches(client, capabilities), MANAGER, async {
        shutdown.await;
        // The server may have ended first, and then nobody listens.
        let _ = end.send(true);
    });
    let serve = tutti_http::tls::serve(listener, tls, router, ended);
    tokio::select! {
        _ = async { tokio::join!(follow, serve) } => Ok(()),
        () = keeper.run() => Ok(()),
    }
}

/// Who writes, where something is written by a follower of watches. Nothing is.
const MANAGER: &str = "tutti-webhooks";

fn watches(client: Client, capabilities: &Capabilities) -> Watches<Event> {
    let jobs = ApiResource::erase::<Job>(&());
    let nodes = ApiResource::erase::<Node>(&());
    let watches = Watches::new(client).add(&jobs, Event::Job).add(&nodes, Event::Node);
    match &capabilities.pod_group {
        Some(groups) => watches.add(groups, Event::Group),
        None => watches,
    }
}
