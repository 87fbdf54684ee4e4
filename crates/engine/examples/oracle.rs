//! Holds the engine against the oracle on as many small random instances as you like:
//!
//! ```text
//! cargo run --release -p tutti-engine --example oracle -- --instances 1000000 --seed 1
//! ```
//!
//! A sixth of the instances each are plain, have wishes about other pods, have volumes, are groups that ask for domains,
//! the same with wishes, and composites. The most members that can be placed are asked for, and of those without wishes
//! that ask for domains the best placement. With `--tier NAME` only one tier of the solver answers; it may leave open
//! what it does not decide, and has to be right. Without it, the engine may leave open only what depends on an unbound
//! volume claim that pods share. Exit code 1 if the engine was wrong or left anything else open.

#[path = "../tests/it/random.rs"]
#[allow(clippy::unwrap_used, reason = "shared with the tests; writing to a string does not fail")]
mod random;
#[path = "../tests/it/random_storage.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "shared with the tests; writing to a string does not fail")]
mod random_storage;
#[path = "../tests/it/random_trees.rs"]
#[allow(clippy::unwrap_used, reason = "shared with the tests; writing to a string does not fail")]
mod random_trees;
#[path = "../tests/it/storage.rs"]
mod storage;
#[path = "../tests/it/tree_verdict.rs"]
mod tree_verdict;
#[path = "../tests/it/verdict.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod verdict;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tree_verdict::judge_tree;
use tutti_engine::Limits;
use tutti_model::scenario::Scenario;
use verdict::{Tier, Verdict, judge, promises_the_best, shares_an_unbound_claim};

const USAGE: &str = "usage: oracle [--instances N] [--seed N] [--tier NAME]";
/// Instances between two updates of the progress line.
const PROGRESS_EVERY: u32 = 1_000;
/// Wrong answers that are shown in full.
const SHOWN_MAX: u64 = 10;

/// What was asked for on the command line.
struct Arguments {
    instances: u32,
    seed: u32,
    tier: Option<String>,
}

#[derive(Default)]
struct Tally {
    placed: u64,
    refused: u64,
    undecided: u64,
    /// Undecided ones in which no two pods share an unbound claim.
    left_open: u64,
    wrong: u64,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("oracle: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut tally = Tally::default();
    let shows_progress = std::io::stderr().is_terminal();
    for done in 0..arguments.instances {
        if shows_progress && done % PROGRESS_EVERY == 0 {
            show_progress(done, arguments.instances);
        }
        count(&arguments, done, &mut tally);
    }
    if shows_progress {
        show_progress(arguments.instances, arguments.instances);
        eprintln!();
    }
    let Tally { placed, refused, undecided, left_open, wrong } = tally;
    println!("placed: {placed}\nrefused: {refused}\nundecided: {undecided}");
    println!("undecided without a shared unbound volume claim: {left_open}\nwrong: {wrong}");
    if wrong > 0 || left_open > 0 && arguments.tier.is_none() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Judges one instance, of all sorts in turn.
fn count(arguments: &Arguments, number: u32, tally: &mut Tally) {
    let seed = u64::from(arguments.seed) + u64::from(number / 6);
    let (text, judge): (String, fn(&Scenario, Tier) -> Verdict) = match number % 6 {
        0 => (random::instance(seed), judge),
        1 => (random::instance_with_wishes(seed), judge),
        2 => (random_storage::instance_with_volumes(seed), judge),
        3 => (random_trees::group_instance(seed), judge_tree),
        4 => (random_trees::wishing_instance(seed), judge_tree),
        _ => (random_trees::composite_instance(seed), judge_tree),
    };
    let forced = arguments.tier.as_deref().and_then(|name| Some((name, Limits::forced(name)?)));
    let tier = forced.map_or_else(Tier::default, |(name, limits)| Tier {
        limits,
        is_best: promises_the_best(name, number % 6 > 2),
    });
    let scenario = Scenario::parse(&text);
    let verdict = match &scenario {
        Ok(scenario) => judge(scenario, tier),
        Err(error) => Verdict::Wrong(format!("the generator is wrong: {error}")),
    };
    match verdict {
        Verdict::Placed => tally.placed += 1,
        Verdict::Refused => tally.refused += 1,
        Verdict::Undecided => {
            tally.undecided += 1;
            if !scenario.is_ok_and(|scenario| shares_an_unbound_claim(&scenario)) {
                tally.left_open += 1;
            }
        }
        Verdict::Wrong(what) => {
            tally.wrong += 1;
            if tally.wrong <= SHOWN_MAX {
                eprintln!("\nseed {seed}: {what}\n{text}");
            }
        }
    }
}

fn show_progress(done: u32, of: u32) {
    let percent = u64::from(done) * 100 / u64::from(of.max(1));
    eprint!("\r{done} of {of} instances ({percent} %)");
    // A progress line that cannot be shown is no reason to stop.
    let _ = std::io::stderr().flush();
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { instances: 100_000, seed: 1, tier: None };
    while let Some(flag) = words.next() {
        let target = match flag.as_str() {
            "--instances" => &mut arguments.instances,
            "--seed" => &mut arguments.seed,
            "--tier" => {
                let name = words.next().filter(|name| Limits::forced(name).is_some());
                let names = Limits::TIERS.join(", ");
                arguments.tier = Some(name.ok_or_else(|| format!("--tier wants one of {names}"))?);
                continue;
            }
            other => return Err(format!("{other} is not known")),
        };
        let value = words.next().ok_or_else(|| format!("{flag} wants a number"))?;
        *target = value
            .parse()
            .map_err(|_| format!("{flag} wants a number from 0 to {}, not {value}", u32::MAX))?;
    }
    Ok(arguments)
}
