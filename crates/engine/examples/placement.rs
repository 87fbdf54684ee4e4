//! Decides a scenario, once, and prints what goes where and what has to wait and why:
//!
//! ```text
//! cargo run -p tutti-engine --example placement -- docs/scenarios/mixed-gang.txt
//! ```
//!
//! The format is described in docs/scenario-format.md.

#[path = "../tests/it/expectations.rs"]
mod expectations;

use expectations::disappointments;
use std::process::ExitCode;
use tutti_engine::{ClaimPlan, Config, Decision, Engine, Event};
use tutti_model::Time;
use tutti_model::scenario::Scenario;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file] = &words[..] else {
        eprintln!("usage: placement FILE");
        return ExitCode::from(2);
    };
    match read(file) {
        Ok(scenario) => {
            let failures = disappointments(&scenario.expectations, &decide(&scenario));
            for failure in &failures {
                eprintln!("placement: {file}: {failure}");
            }
            if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("placement: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The scenario in a file; an error names the file and, if it is about a line, the line.
fn read(file: &str) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Scenario::parse(&text).map_err(|error| format!("{file}: {error}"))
}

/// Prints every decision. Seats that were decided count as taken for those who come after.
fn decide(scenario: &Scenario) -> Vec<Decision> {
    let now = Time(0);
    let mut engine = Engine::new(Config::default());
    for event in Event::of_scenario(scenario) {
        engine.apply(event, now);
    }
    let mut decisions = Vec::new();
    loop {
        let decision = engine.decide(now);
        match &decision {
            Decision::Idle { .. } => return decisions,
            Decision::More => {}
            Decision::Place(placement) => {
                println!("{}: placed", placement.unit);
                for seat in &placement.seats {
                    println!("  {} -> {}", seat.pod.name, seat.node);
                }
                for (claim, plan) in &placement.claims {
                    match plan {
                        ClaimPlan::Volume(volume) => println!("  claim {} gets volume {volume}", claim.name),
                        ClaimPlan::Provision(node) => {
                            println!("  claim {} gets a volume made for {node}", claim.name);
                        }
                    }
                }
                for pod in &placement.left_out {
                    println!("  {} has no seat yet", pod.name);
                }
            }
            Decision::Wait(waiting) => println!("{}: waits: {}", waiting.unit, waiting.refusal),
        }
        decisions.push(decision);
    }
}
