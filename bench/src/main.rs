//! Benchmarks: `cargo run --release -p tutti-bench -- engine|cluster|live|jobs [--json]`. See bench/RESULTS.md.

mod cluster;
mod engine;
mod fleet;
mod jobs;
mod live;
mod packing;
mod report;
mod requests;
mod selectors;
mod topology;
mod waiting;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Measures Tutti. Machines are noisy: compare figures of one run only.")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Decisions only, one core, no IO.
    Engine {
        /// One JSON object a line: {"case":…,"nodes":…,"value":…,"unit":…}.
        #[arg(long)]
        json: bool,
        /// Only cases whose name contains this.
        #[arg(long, default_value = "")]
        only: String,
        /// Sizes of the cluster, in nodes.
        #[arg(long, value_delimiter = ',', default_values_t = [500, 5_000, 50_000])]
        nodes: Vec<u32>,
        /// How long each case is repeated.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
    },
    /// The embedded cluster over HTTPS, clients on the same machine.
    Cluster {
        /// One JSON object a line: {"case":…,"nodes":…,"value":…,"unit":…}.
        #[arg(long)]
        json: bool,
        /// Only cases whose name contains this: nodes-up, pod-creates, bindings, watchers, list.
        #[arg(long, default_value = "")]
        only: String,
        /// Pods that are created and bound.
        #[arg(long, default_value_t = 10_000)]
        pods: usize,
        /// Pods in the longest list.
        #[arg(long, default_value_t = 100_000)]
        listed: usize,
        /// Nodes that a cluster starts with.
        #[arg(long, default_value_t = 5_000)]
        nodes: u32,
        /// Watchers of all pods.
        #[arg(long, default_value_t = 50)]
        watchers: usize,
    },
    /// Many Jobs at once on the embedded cluster, until every pod has a node.
    Jobs {
        /// One JSON object a line: {"case":…,"nodes":…,"value":…,"unit":…}.
        #[arg(long)]
        json: bool,
        /// Jobs that are created.
        #[arg(long, default_value_t = 1_000)]
        jobs: usize,
        /// Pods of each of them.
        #[arg(long, default_value_t = 8)]
        pods: usize,
    },
    /// The scheduler as a process of its own, against the embedded cluster over HTTPS.
    Live {
        /// One JSON object a line: {"case":…,"nodes":…,"value":…,"unit":…}.
        #[arg(long)]
        json: bool,
        /// Only cases whose name contains this: restart, throughput, blocked, gang-8, idle, waiting.
        #[arg(long, default_value = "")]
        only: String,
        #[command(flatten)]
        sizes: live::Sizes,
    },
    /// The process that `live` measures.
    #[command(hide = true)]
    Scheduler(live::SchedulerArguments),
    /// The process that `live` holds it against.
    #[command(hide = true)]
    Bare(live::BareArguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().what {
        What::Engine { json, only, nodes, seconds } => {
            engine::run(&nodes, &only, seconds, &mut report::Report::new(json))
        }
        What::Cluster { json, only, pods, listed, nodes, watchers } => {
            let sizes = cluster::Sizes { pods, listed, nodes, watchers };
            cluster::run(&sizes, &only, &mut report::Report::new(json))
        }
        What::Jobs { json, jobs, pods } => {
            jobs::run(&jobs::Sizes { jobs, pods }, &mut report::Report::new(json))
        }
        What::Live { json, only, sizes } => live::run(&sizes, &only, &mut report::Report::new(json)),
        What::Scheduler(arguments) => live::schedule(arguments),
        What::Bare(arguments) => live::bind(arguments),
    }
}
