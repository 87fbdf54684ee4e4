//! `tutti scheduler`: the scheduler of a cluster that somebody else runs.

use crate::console::{Console, Style};
use crate::replica::{self, HttpAddress, ReplicaArgs, http_address};
use crate::signals;
use anyhow::Context as _;
use clap::Args;
use std::path::PathBuf;
use tokio::sync::watch;
use tutti_k8s::gangs::Integration;
use tutti_scheduler::config;
use tutti_scheduler::{ConfigError, Followed, Settings};

/// Schedule the pods and pod groups of a cluster.
///
/// Pods ask for it by `spec.schedulerName`; it leaves all others alone, so that it can run beside kube-scheduler. With
/// `--scheduler-name default-scheduler` it runs instead of it. Several replicas elect a leader.
///
/// The cluster is the one of --kubeconfig; without it, the one that this is a pod of; else the one of $KUBECONFIG or
/// ~/.kube/config.
///
/// Options win over the configuration file. The file is read again when it changes: profiles, limits, timeouts,
/// jobIntegration and gangs take effect within seconds, `leaderElection` and `http` need a restart.
#[derive(Debug, Args)]
pub(crate) struct SchedulerArgs {
    #[command(flatten)]
    replica: ReplicaArgs,
    /// Configuration file. `--print-config` shows what can be in it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address for health and metrics, as IP:PORT; `off` serves nothing. Default: 127.0.0.1:10270.
    #[arg(long, value_name = "ADDRESS", value_parser = http_address)]
    http_address: Option<HttpAddress>,
    /// Print the configuration with all defaults and options applied, as a file, and end.
    #[arg(long)]
    print_config: bool,
}

/// What options say on top of the configuration file.
#[derive(Debug, Clone)]
struct Overrides {
    scheduler_names: Vec<String>,
    job_integration: Option<Integration>,
    leader_elect: Option<bool>,
    http_address: Option<HttpAddress>,
}

impl Overrides {
    fn apply(&self, mut settings: Settings) -> Result<Settings, ConfigError> {
        settings.config.rename(&self.scheduler_names)?;
        settings.config.job_integration = self.job_integration.unwrap_or(settings.config.job_integration);
        settings.elects = self.leader_elect.unwrap_or(settings.elects);
        if let Some(HttpAddress(address)) = self.http_address {
            settings.http.address = address;
        }
        settings.validate()?;
        Ok(settings)
    }
}

/// Runs until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: SchedulerArgs, console: Console) -> anyhow::Result<()> {
    let overrides = Overrides {
        scheduler_names: args.replica.scheduler_names,
        job_integration: args.replica.job_integration.map(Integration::from),
        leader_elect: args.replica.leader_elect,
        http_address: args.http_address,
    };
    let followed = settings(args.config, overrides)?;
    let settings = followed.settings.borrow().clone();
    if args.print_config {
        let text = config::render(&settings)?;
        Console::new().line(text.trim_end());
        return Ok(());
    }
    let connection = tutti_k8s::connect::connect(args.replica.kubeconfig.as_deref()).await?;
    let end = signals::end_asked()?;
    say_what_runs(console, &settings, &connection.url);
    let place = settings.election().map(|lease| {
        replica::place(&lease.name, lease.namespace.as_deref(), connection.own_namespace.as_deref())
    });
    tutti_scheduler::serve(connection, followed, place, end).await?;
    Ok(())
}

fn say_what_runs(console: Console, settings: &Settings, server: &str) {
    let name = console.paint(Style::Strong, "tutti");
    console.line(&format!("{name} {} schedules in {server}", env!("CARGO_PKG_VERSION")));
    console.line(&format!("  for         {}", settings.config.names_in_words()));
    let lease = settings.election().map_or("no: this must be the only one", |lease| &lease.name);
    console.line(&format!("  election    {lease}"));
    if let Some(address) = settings.http.address {
        console.line(&format!("  health      http://{address}/readyz, /livez, /metrics"));
    }
    console.line(&console.paint(Style::Faint, "Ctrl-C ends it."));
}

/// The settings now, and whenever the file changes.
fn settings(file: Option<PathBuf>, overrides: Overrides) -> anyhow::Result<Followed> {
    let Some(file) = file else {
        let settings = overrides.apply(Settings::of_a_cluster())?;
        return Ok(watch::channel(settings).1.into());
    };
    let adjust = Box::new(move |settings| overrides.apply(settings));
    tutti_scheduler::follow(file, adjust).context("the configuration cannot be used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_win_over_the_file() {
        let overrides = Overrides {
            scheduler_names: vec!["default-scheduler".to_owned()],
            job_integration: Some(Integration::Off),
            leader_elect: Some(false),
            http_address: Some(HttpAddress(None)),
        };
        let settings = overrides.apply(Settings::of_a_cluster()).unwrap();
        assert_eq!(settings.config.names_in_words(), "default-scheduler");
        assert_eq!(settings.config.job_integration, Integration::Off);
        assert_eq!((settings.election(), settings.http.address), (None, None));

        let profiles = "profiles: [{}, {schedulerNames: [packer]}]";
        let header = "apiVersion: tutti.dev/v1alpha1\nkind: SchedulerConfiguration\n";
        let several = config::parse(&format!("{header}{profiles}\n")).unwrap();
        let error = overrides.apply(several).unwrap_err().to_string();
        assert!(error.starts_with("--scheduler-name: the configuration has several profiles"), "{error}");

        let none = Overrides {
            scheduler_names: Vec::new(),
            job_integration: None,
            leader_elect: None,
            http_address: None,
        };
        assert_eq!(none.apply(Settings::of_a_cluster()).unwrap(), Settings::of_a_cluster());

        let named = Overrides { scheduler_names: vec!["a".to_owned(), "B".to_owned()], ..none };
        let error = named.apply(Settings::of_a_cluster()).unwrap_err().to_string();
        assert!(error.starts_with("--scheduler-name[1]: \"B\" is no name"), "{error}");
    }

    #[test]
    fn an_option_that_asks_for_an_election_asks_for_that_of_the_file() {
        let overrides = Overrides {
            scheduler_names: Vec::new(),
            job_integration: None,
            leader_elect: Some(true),
            http_address: None,
        };
        let election = "leaderElection: {enabled: false, leaseName: ours, leaseDuration: 30s}";
        let header = "apiVersion: tutti.dev/v1alpha1\nkind: SchedulerConfiguration\n";
        let settings = overrides.apply(config::parse(&format!("{header}{election}\n")).unwrap()).unwrap();
        let lease = settings.election().expect("the option says so");
        assert_eq!((lease.name.as_str(), lease.timing.lease_duration.as_secs()), ("ours", 30));
    }
}
