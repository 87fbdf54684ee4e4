//! Tells as many stories of a misbehaving cluster as you like, and says which seed breaks a promise:
//!
//! ```text
//! cargo run --release -p tutti-scheduler --example soak -- --seeds 1000000
//! cargo run --release -p tutti-scheduler --example soak -- --seed 4711 --trace
//! ```
//!
//! With `--seed` alone one story is told; with both, so many from that seed on. Exit code 1 if a promise was broken.

#[path = "../tests/it/sim/mod.rs"]
mod sim;

use sim::{Tally, story};
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: soak [--seeds N] [--seed S] [--trace]";
/// Stories between two updates of the progress line.
const PROGRESS_EVERY: u64 = 500;
/// Broken promises after which it is enough.
const BROKEN_MAX: u64 = 10;

/// What was asked for on the command line.
struct Arguments {
    first: u64,
    seeds: u64,
    trace: bool,
}

fn arguments() -> Option<Arguments> {
    let (mut first, mut seeds, mut trace) = (None, None, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seed" => first = Some(words.next()?.parse().ok()?),
            "--seeds" => seeds = Some(words.next()?.parse().ok()?),
            "--trace" => trace = true,
            _ => return None,
        }
    }
    let one_or_many = if first.is_some() { 1 } else { 10_000 };
    Some(Arguments { first: first.unwrap_or(0), seeds: seeds.unwrap_or(one_or_many), trace })
}

/// A story in which the scheduler does not panic either.
fn tell(seed: u64, trace: bool) -> Result<Tally, String> {
    let told = catch_unwind(AssertUnwindSafe(|| story(seed, trace)));
    told.unwrap_or_else(|_| Err(format!("seed {seed}: the scheduler panics")))
}

fn main() -> ExitCode {
    let Some(Arguments { first, seeds, trace }) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (start, is_terminal) = (Instant::now(), std::io::stderr().is_terminal());
    let (mut tally, mut broken) = (Tally::default(), 0);
    for told in 0..seeds {
        match tell(first.wrapping_add(told), trace) {
            Ok(story) => tally += story,
            Err(why) => {
                println!("{why}");
                broken += 1;
                if broken == BROKEN_MAX {
                    break;
                }
            }
        }
        if is_terminal && (told + 1) % PROGRESS_EVERY == 0 {
            let rate = (told + 1) as f64 / start.elapsed().as_secs_f64();
            eprint!("\r{} of {seeds} stories, {rate:.0} per second, {broken} broken", told + 1);
            // Progress is worth nothing if it cannot be shown.
            let _ = std::io::stderr().flush();
        }
    }
    if is_terminal {
        eprintln!();
    }
    println!("{seeds} stories from seed {first} in {:.1} s: {broken} broken", start.elapsed().as_secs_f64());
    println!("{tally:?}");
    if broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
