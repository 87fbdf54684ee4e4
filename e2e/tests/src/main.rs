//! Tutti against the real Kubernetes. `e2e/run` builds what this needs and calls it.

mod api;
mod certificates;
mod control_plane;
mod differential;
mod kube_scheduler;
mod kubectl;
mod process;
mod random;
mod release;
mod rights;
mod runner;
mod stories;
mod tutti;
mod variables;
mod wait;
mod world;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use control_plane::Purpose;
use release::Release;
use std::path::PathBuf;
use std::process::ExitCode;

/// Tests of Tutti against the real Kubernetes.
#[derive(Debug, Parser)]
struct Cli {
    /// A release and the control plane binary of it, such as `1.37=path/to/controlplane`. May be given several times.
    #[arg(long = "controlplane", value_name = "RELEASE=FILE", value_parser = binary, required = true)]
    binaries: Vec<Binary>,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tell stories of workloads from creation to running, on every release.
    Stories(StoriesArgs),
    /// Compare the engine with kube-scheduler's own plugins on random clusters, for every release.
    Differential(DifferentialArgs),
    /// Send the same requests to the real API server and to the embedded one, for every release.
    Api(ApiArgs),
    /// Start control planes, print where their kubeconfigs are, and keep them until Ctrl-C.
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// What for.
    #[arg(long, value_enum, default_value_t = Purpose::Stories)]
    purpose: Purpose,
}

#[derive(Debug, Args)]
struct ApiArgs {
    /// Send only scripts with one of these texts in their names.
    filters: Vec<String>,
    /// Use the API server of this kubeconfig in place of our own; $TUTTI_E2E_KUBECONFIG says the same.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DifferentialArgs {
    /// How many random clusters, with one pod each.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    cases: u64,
    /// Where randomness starts. The same seed gives the same cases.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Look at this one case only.
    #[arg(long, value_name = "C")]
    case: Option<u64>,
}

#[derive(Debug, Args)]
struct StoriesArgs {
    /// Tell only stories with one of these texts in their names.
    filters: Vec<String>,
    /// The `tutti` command.
    #[arg(long, value_name = "FILE")]
    tutti: PathBuf,
    /// The `helm` command, for the story that renders the chart.
    #[arg(long, value_name = "FILE")]
    helm: Option<PathBuf>,
    /// Use the cluster of this kubeconfig in place of control planes of our own; $TUTTI_E2E_KUBECONFIG says the same. It
    /// must serve pod groups, run kube-controller-manager and have no nodes that pods could go to.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// A control plane binary and the release that it is of.
#[derive(Debug, Clone)]
struct Binary {
    release: Release,
    file: PathBuf,
}

fn binary(text: &str) -> anyhow::Result<Binary> {
    let (release, file) = text.split_once('=').context("want RELEASE=FILE")?;
    Ok(Binary { release: release.parse()?, file: file.into() })
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let cli = Cli::parse();
    let result = match &cli.what {
        What::Stories(args) => runner::stories(&cli.binaries, args).await,
        What::Api(args) => api::run(&cli.binaries, args).await,
        What::Serve(args) => runner::serve(&cli.binaries, args).await,
        What::Differential(args) => differential::run(&cli.binaries, args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            runner::say(&format!("e2e: error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
