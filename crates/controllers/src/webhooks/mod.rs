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
use crate::meter::Meters;
use crate::process::{Settings, changed, until};
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
use tutti_k8s::{Capabilities, discovery};

/// Who writes, where something is written by a follower of watches. Nothing is.
const MANAGER: &str = "tutti-webhooks";

/// Where the webhooks are served, and with which certificates.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub address: SocketAddr,
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

/// Serves the webhooks until `shutdown` completes. Every replica does, also one that does not lead. New settings and
/// APIs are taken over without a pause.
pub async fn run(
    client: Client,
    settings: watch::Receiver<Settings>,
    options: Options,
    meters: &Meters,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let address = options.address;
    let listener = TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })?;
    let served = Arc::new(Served::default());
    let tls = served.config()?;
    let knowledge = Shared::new(Knowledge::default());
    let router = server::router(knowledge.clone());
    let keeper = Keeper::new(client.clone(), options.places, options.timing, served);
    let (end, ended) = watch::channel(false);
    let work = async {
        tokio::select! {
            () = until(ended.clone()) => {}
            () = keeper.run() => {}
            () = follow(client, knowledge, settings, meters) => {}
        }
    };
    let asked = async {
        shutdown.await;
        end.send_replace(true);
    };
    tokio::join!(work, asked, tutti_http::tls::serve(listener, tls, router, ended.clone()));
    Ok(())
}

/// Keeps what is known up to date, for ever.
async fn follow(client: Client, knowledge: Shared, mut settings: watch::Receiver<Settings>, meters: &Meters) {
    // Asked for ever, so there is no error.
    while let Ok(capabilities) = discovery::discover_patiently(&client, None).await {
        let names = settings.borrow_and_update().scheduler_names.clone();
        knowledge.serve(capabilities.link, names);
        let over = async {
            tokio::select! {
                () = discovery::changed(&client, &capabilities) => {}
                () = changed(&mut settings) => {}
            }
        };
        let watches = watches(client.clone(), &capabilities);
        shell::run(knowledge.clone(), watches, MANAGER, meters.of("webhooks"), over).await;
    }
}

fn watches(client: Client, capabilities: &Capabilities) -> Watches<Event> {
    let jobs = ApiResource::erase::<Job>(&());
    let nodes = ApiResource::erase::<Node>(&());
    let watches = Watches::new(client).add(&jobs, Event::Job).add(&nodes, Event::Node);
    match &capabilities.pod_group {
        Some(groups) => watches.add(groups, Event::Group),
        None => watches,
    }
}
