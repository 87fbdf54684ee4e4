//! The process around the controllers: replicas elect a leader, settings are taken over when they change, it is
//! noticed when the cluster begins to serve other APIs, and health and metrics are served.
//!
//! Unlike a scheduler, a new leader does not wait for what the one before may still have under way: everything here
//! is made under a name that follows from what it is for, or changed under the version that was read, so two leaders
//! could at worst try the same thing twice.

mod http;
mod status;

use crate::gangs::{self, Integration};
use crate::meter::Meters;
use crate::protection;
use crate::stamp;
use crate::webhooks;
use kube::Client;
use status::{Phase, Status};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tutti_http::{ListenError, Server};
use tutti_k8s::{Capabilities, discovery};
use tutti_lease::{Election, Place, Standing, Timing};

/// Who writes, as managed fields and events tell.
const MANAGER: &str = "tutti-controller";

/// Settings of the controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names of the schedulers that understand groups; pods of others are left alone.
    pub scheduler_names: Vec<String>,
    /// Whether groups are made for Jobs.
    pub integration: Integration,
}

/// Where a process serves health and metrics, and how it becomes the leader.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Where health and metrics are served; nowhere without.
    pub http: Option<SocketAddr>,
    /// Where webhooks are served; nowhere without.
    pub webhooks: Option<webhooks::Options>,
    /// Where the lease is and how it is kept; without it there should not be two processes for long.
    pub lease: Option<(Place, Timing)>,
}

/// Why a process cannot do what it is for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody can ask how it is.
    #[error(transparent)]
    Http(#[from] ListenError),
    /// Nobody can call it.
    #[error(transparent)]
    Webhooks(#[from] webhooks::Error),
}

/// Runs the controllers of a cluster until `shutdown` completes.
pub async fn serve(
    client: Client,
    settings: watch::Receiver<Settings>,
    surroundings: Surroundings,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let lease = surroundings.lease.as_ref().map_or("", |(place, _)| &place.name);
    let status = Arc::new(Status::new(lease));
    let _server = match surroundings.http {
        Some(address) => Some(Server::start(address, http::router(Arc::clone(&status))).await?),
        None => None,
    };
    let election = surroundings.lease.map(|(place, timing)| Election::start(client.clone(), place, timing));
    let (end, ended) = watch::channel(false);
    let process = Process { client, status, settings, ended };
    let standing = election.as_ref().map(Election::standing);
    let work = process.run(standing);
    let webhooks = async {
        let served = process.serve_webhooks(surroundings.webhooks).await;
        if served.is_err() {
            end.send_replace(true);
        }
        served
    };
    let asked = async {
        tokio::select! {
            () = shutdown => {}
            () = until(process.ended.clone()) => {}
        }
        process.status.enter(Phase::Stopping);
        end.send_replace(true);
    };
    // The work ends once it has seen that the end was asked for.
    let ((), served, ()) = tokio::join!(work, webhooks, asked);
    if let Some(election) = election {
        // Only now, because nothing is under way any more.
        election.release().await;
    }
    Ok(served?)
}

struct Process {
    client: Client,
    status: Arc<Status>,
    settings: watch::Receiver<Settings>,
    ended: watch::Receiver<bool>,
}

impl Process {
    /// From one term, API or setting to the next, until the end.
    async fn run(&self, mut standing: Option<watch::Receiver<Standing>>) {
        let mut settings = self.settings.clone();
        while !*self.ended.borrow() {
            tokio::select! {
                () = until(self.ended.clone()) => return,
                () = self.leads(standing.as_mut()) => {}
            }
            self.status.enter(Phase::Discovering);
            let capabilities = tokio::select! {
                () = until(self.ended.clone()) => return,
                // Asked for ever, so there is no error.
                Ok(found) = discovery::discover_patiently(&self.client, None) => found,
            };
            let wanted = settings.borrow_and_update().clone();
            tell(&capabilities, &wanted);
            self.status.enter(Phase::Acting);
            let over = async {
                tokio::select! {
                    () = until(self.ended.clone()) => {}
                    () = deposed(standing.clone()) => {}
                    () = discovery::changed(&self.client, &capabilities) => {}
                    () = changed(&mut settings) => tracing::info!("the configuration has changed and is taken over"),
                }
            };
            run(self.client.clone(), &capabilities, wanted, &self.status.meters, over).await;
        }
    }

    /// Serves webhooks, whoever leads.
    async fn serve_webhooks(&self, options: Option<webhooks::Options>) -> Result<(), webhooks::Error> {
        let Some(options) = options else { return Ok(()) };
        let (client, settings) = (self.client.clone(), self.settings.clone());
        webhooks::run(client, settings, options, &self.status.meters, until(self.ended.clone())).await
    }

    /// Completes when this process may act.
    async fn leads(&self, standing: Option<&mut watch::Receiver<Standing>>) {
        let Some(standing) = standing else { return };
        loop {
            match standing.borrow_and_update().clone() {
                Standing::Leading { .. } => return,
                Standing::Following { leader } => self.status.enter(Phase::Following(leader)),
            }
            changed(standing).await;
        }
    }
}

/// Runs all controllers that a cluster needs until `shutdown` completes: nothing is elected or discovered here.
pub async fn run(
    client: Client,
    capabilities: &Capabilities,
    settings: Settings,
    meters: &Meters,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (end, ended) = watch::channel(false);
    let asked = async {
        shutdown.await;
        end.send_replace(true);
    };
    let groups = capabilities.pod_group.as_ref();
    let gangs = async {
        let Some(api) = groups.and_then(gangs::Api::of) else { return };
        let options = gangs::Options {
            integration: settings.integration,
            scheduler_names: settings.scheduler_names.clone(),
        };
        gangs::run(client.clone(), api, options, MANAGER, meters.of("gangs"), until(ended.clone())).await;
    };
    let stamps = async {
        let Some(api) = groups.and_then(gangs::Api::of) else { return };
        let options = stamp::Options {
            integration: settings.integration,
            scheduler_names: settings.scheduler_names.clone(),
        };
        let composites = capabilities.composite.as_ref();
        let meter = meters.of("stamps");
        stamp::run(client.clone(), api, composites, options, MANAGER, meter, until(ended.clone())).await;
    };
    let protection = async {
        let Some(guard) = groups.and_then(protection::Guard::for_cluster) else { return };
        protection::run(client.clone(), guard, MANAGER, meters.of("protection"), until(ended.clone())).await;
    };
    tokio::join!(asked, gangs, stamps, protection);
}

/// What was found, and what is done about it.
fn tell(capabilities: &Capabilities, settings: &Settings) {
    let served = match &capabilities.pod_group {
        Some(resource) => format!("{}/{}", resource.api_version, resource.kind),
        None => "none".to_owned(),
    };
    let jobs = match (settings.integration, capabilities.pod_group.as_ref().and_then(gangs::Api::of)) {
        (Integration::Off, _) => "left alone: the integration is off",
        (_, None) => "left alone: the cluster has no objects for groups",
        (Integration::Auto, _) => "get groups if the cluster's own controller makes none",
        (Integration::On, _) => "get groups",
    };
    let schedulers = settings.scheduler_names.join(", ");
    tracing::info!(groups = served, jobs, schedulers, "controllers start");
}

/// Completes when another replica leads.
async fn deposed(standing: Option<watch::Receiver<Standing>>) {
    let lost = async {
        let mut standing = standing?;
        standing.wait_for(|now| matches!(now, Standing::Following { .. })).await.ok().map(drop)
    };
    if lost.await.is_none() {
        // There is no election, or it has ended: nothing changes any more.
        std::future::pending::<()>().await;
    }
}

/// Completes when there is another value, or never.
pub(crate) async fn changed<T>(value: &mut watch::Receiver<T>) {
    if value.changed().await.is_err() {
        // Nobody can change it any more.
        std::future::pending::<()>().await;
    }
}

/// Completes when the end is asked for.
pub(crate) async fn until(mut ended: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is the end too.
    let _ = ended.wait_for(|&end| end).await;
}
