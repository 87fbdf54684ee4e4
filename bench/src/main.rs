//! Benchmarks: `cargo run --release -p tutti-bench -- engine [--json]`. See bench/RESULTS.md.

mod engine;
mod fleet;
mod packing;
mod report;

use clap::{Parser, Subcommand};

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().what {
        What::Engine { json, only, nodes, seconds } => {
            engine::run(&nodes, &only, seconds, &mut report::Report::new(json))
        }
    }
}
