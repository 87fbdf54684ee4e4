//! The live scheduler: a process of its own that knows nothing but a kubeconfig, against the embedded cluster over HTTPS.
//!
//! Nodes are not simulated and no controllers run, so that only the API server and the scheduler share the machine with
//! whoever makes the load.

mod bare;
mod binding;
mod idle;
mod process;
mod requests_per_gang;
mod restart;
mod waiting;
mod world;

pub(crate) use bare::{BareArguments, bind};
pub(crate) use process::{SchedulerArguments, schedule};

use crate::report::Report;
use clap::Args;

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct Sizes {
    /// Nodes of the clusters of `restart`, `idle` and `waiting`.
    #[arg(long, default_value_t = 5_000)]
    nodes: u32,
    /// Pods that are there when a scheduler starts.
    #[arg(long, default_value_t = 140_000)]
    pods: usize,
    /// Pods that are bound in one run of `throughput` and `blocked`; with fewer, a run is over within a second and says
    /// little.
    #[arg(long, default_value_t = 30_000)]
    binds: usize,
    /// Pods of the gang that blocks nobody.
    #[arg(long, default_value_t = 10_000)]
    blocked: usize,
    /// The bare loop does not watch pods. A further client does so beside it, and beside the scheduler, too.
    #[arg(long)]
    beside: bool,
    /// Runs of which the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Gangs that wait for ever.
    #[arg(long, default_value_t = 1_000)]
    gangs: usize,
    /// Gangs of eight that wait in `waiting`, and that start in `gang-8`.
    #[arg(long, default_value_t = 12_500)]
    gangs_of_8: usize,
    /// How long a scheduler that has nothing to do is looked at.
    #[arg(long, default_value_t = 30)]
    idle_seconds: u64,
}

/// Measures and reports.
pub(crate) fn run(sizes: &Sizes, only: &str, report: &mut Report) -> anyhow::Result<()> {
    let wanted = |case: &str| case.contains(only);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        if wanted("restart") {
            restart::run(sizes, report).await?;
        }
        if wanted("throughput") {
            binding::throughput(sizes, report).await?;
        }
        if wanted("blocked") {
            binding::blocked(sizes, report).await?;
        }
        if wanted("gang-8") {
            requests_per_gang::run(sizes, report).await?;
        }
        if wanted("idle") {
            idle::run(sizes, report).await?;
        }
        if wanted("waiting") {
            waiting::run(sizes, report).await?;
        }
        Ok(())
    })
}

/// The one in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
