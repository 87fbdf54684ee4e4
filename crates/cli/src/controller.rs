//! `tutti controller`: the controllers of a cluster that somebody else runs.

use crate::console::{Console, Style};
use crate::replica::{self, HttpAddress, ReplicaArgs, http_address};
use crate::signals;
use crate::webhook_args::WebhookArgs;
use anyhow::Context as _;
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::sync::watch;
use tutti_controllers::gangs::Integration;
use tutti_controllers::process::{self, Settings, Surroundings};

/// The Lease by which replicas agree on a leader: not that of the scheduler, which may be another process.
const LEASE: &str = "tutti-controller";
/// Where health and metrics are served unless told otherwise; the scheduler has the port before.
const DEFAULT_HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10271);

/// Make groups for the Jobs of a cluster that want their pods to start together.
///
/// A Job whose pods use one of the scheduler names gets a Workload and a PodGroup if it asks for a gang; docs/jobs.md
/// says which do. Several replicas elect a leader.
///
/// The cluster is the one of --kubeconfig; without it, the one that this is a pod of; else the one of $KUBECONFIG or
/// ~/.kube/config.
#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    replica: ReplicaArgs,
    /// The scheduler's configuration file: its names, whether Jobs get groups, and how leaders are elected. It is read again when it
    /// changes. Options win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address for health and metrics, as IP:PORT; `off` serves nothing. Default: 127.0.0.1:10271.
    #[arg(long, value_name = "ADDRESS", value_parser = http_address)]
    http_address: Option<HttpAddress>,
    #[command(flatten)]
    webhooks: WebhookArgs,
}

/// Runs until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: ControllerArgs, console: Console) -> anyhow::Result<()> {
    let integration = args.replica.job_integration.map(Integration::from);
    let shared = shared_settings(args.config.clone(), args.replica.scheduler_names.clone(), integration)?;
    let connection = tutti_k8s::connect::connect(args.replica.kubeconfig.as_deref()).await?;
    let elects = args.replica.leader_elect.unwrap_or(shared.borrow().elects);
    let lease = elects.then(|| shared.borrow().lease.clone()).map(|lease| {
        let own_namespace = connection.own_namespace.as_deref();
        (replica::place(LEASE, lease.namespace.as_deref(), own_namespace), lease.timing)
    });
    let http = args.http_address.map_or(Some(DEFAULT_HTTP), |HttpAddress(address)| address);
    let end = signals::end_asked()?;
    say_what_runs(console, &shared.borrow(), http, lease.is_some(), &connection.url);
    let settings = settings_of(shared);
    let namespace = lease.as_ref().map(|(place, _)| place.namespace.as_str());
    let webhooks = args.webhooks.options(namespace.or(connection.own_namespace.as_deref()));
    let surroundings = Surroundings { http, webhooks, lease };
    process::serve(connection.client, settings, surroundings, end).await?;
    Ok(())
}

/// What the scheduler is told too, now and whenever the file changes.
fn shared_settings(
    file: Option<PathBuf>,
    scheduler_names: Vec<String>,
    integration: Option<Integration>,
) -> anyhow::Result<watch::Receiver<tutti_scheduler::Settings>> {
    let adjust = move |mut settings: tutti_scheduler::Settings| {
        settings.config.rename(&scheduler_names)?;
        settings.config.job_integration = integration.unwrap_or(settings.config.job_integration);
        settings.validate()?;
        Ok(settings)
    };
    let Some(file) = file else {
        return Ok(watch::channel(adjust(tutti_scheduler::Settings::of_a_cluster())?).1);
    };
    let followed = tutti_scheduler::follow(file, Box::new(adjust));
    Ok(followed.context("the configuration cannot be used")?.settings)
}

/// What of that matters here, as long as somebody listens.
fn settings_of(mut shared: watch::Receiver<tutti_scheduler::Settings>) -> watch::Receiver<Settings> {
    let read = |shared: &tutti_scheduler::Settings| Settings {
        scheduler_names: shared.config.scheduler_names().map(ToString::to_string).collect(),
        integration: shared.config.job_integration,
    };
    let (tell, settings) = watch::channel(read(&shared.borrow_and_update()));
    tokio::spawn(async move {
        while !tell.is_closed() && shared.changed().await.is_ok() {
            let next = read(&shared.borrow_and_update());
            tell.send_if_modified(|now| {
                let differs = *now != next;
                *now = next;
                differs
            });
        }
    });
    settings
}

fn say_what_runs(
    console: Console,
    settings: &tutti_scheduler::Settings,
    http: Option<SocketAddr>,
    has_lease: bool,
    server: &str,
) {
    let name = console.paint(Style::Strong, "tutti");
    console.line(&format!("{name} {} sees to Jobs in {server}", env!("CARGO_PKG_VERSION")));
    console.line(&format!("  for         {}", settings.config.names_in_words()));
    console.line(&format!("  election    {}", if has_lease { LEASE } else { "no" }));
    if let Some(address) = http {
        console.line(&format!("  health      http://{address}/readyz, /livez, /metrics"));
    }
    console.line(&console.paint(Style::Faint, "Ctrl-C ends it."));
}
