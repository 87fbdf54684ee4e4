//! `tutti replay`: what a scheduler would decide that knows what a dump says.

use crate::console::{Console, Style, count};
use anyhow::Context as _;
use clap::Args;
use std::path::PathBuf;
use tutti_engine::Decision;
use tutti_scheduler::Dump;

/// Decide again what a scheduler decided, from a dump of its state, with no cluster.
///
/// `curl http://127.0.0.1:10270/debug/state > FILE` where the scheduler runs, or through `kubectl port-forward`, makes a dump.
/// It is replayed with the configuration that is in it. Every placement and every reason to wait is printed; nothing is sent
/// anywhere.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The dump.
    file: PathBuf,
}

/// Prints all decisions.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let shown = || args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file).with_context(shown)?;
    let dump: Dump = serde_json::from_str(&text).context("it is not a dump").with_context(shown)?;
    let decisions = dump.replay().with_context(shown)?;
    let console = Console::new();
    for decision in &decisions {
        match decision {
            Decision::Place(placement) => {
                let pods = count(placement.seats.len() as u64, "pod");
                let word = console.paint(Style::Good, "place");
                console.line(&format!("{word} {}: {pods}", placement.unit));
                for seat in &placement.seats {
                    console.line(&format!("  {} on {}", seat.pod, seat.node));
                }
            }
            Decision::Wait(waiting) => {
                let word = console.paint(Style::Waiting, "wait");
                console.line(&format!("{word} {}: {}", waiting.unit, waiting.refusal));
            }
            Decision::More | Decision::Idle { .. } => {}
        }
    }
    console.line(&console.paint(Style::Faint, &count(decisions.len() as u64, "decision")));
    Ok(())
}
