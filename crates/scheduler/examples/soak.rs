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
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
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

/// What all stories have come to so far.
#[derive(Default)]
struct Soak {
    told: u64,
    broken: u64,
    tally: Tally,
}

/// A story in which the scheduler does not panic either.
fn tell(seed: u64, trace: bool) -> Result<Tally, String> {
    let told = catch_unwind(AssertUnwindSafe(|| story(seed, trace)));
    told.unwrap_or_else(|_| Err(format!("seed {seed}: the scheduler panics")))
}

/// Tells the stories on all cores. Each is its own world, so that nothing depends on which core tells it.
fn tell_all(Arguments { first, seeds, trace }: Arguments) -> Soak {
    let (start, is_terminal) = (Instant::now(), std::io::stderr().is_terminal());
    let (next, soak) = (AtomicU64::new(0), Mutex::new(Soak::default()));
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    // A poisoned lock only means that a thread died while it printed: the sums are whole.
    let lock = || soak.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while lock().broken < BROKEN_MAX {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= seeds {
                break;
            }
            let story = tell(first.wrapping_add(index), trace);
            let mut soak = lock();
            soak.told += 1;
            match story {
                Ok(story) => soak.tally += story,
                Err(why) => {
                    println!("{why}");
                    soak.broken += 1;
                }
            }
            if is_terminal && soak.told % PROGRESS_EVERY == 0 {
                let rate = soak.told as f64 / start.elapsed().as_secs_f64();
                eprint!("\r{} of {seeds} stories, {rate:.0} per second, {} broken", soak.told, soak.broken);
                // Progress is worth nothing if it cannot be shown.
                let _ = std::io::stderr().flush();
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    if is_terminal {
        eprintln!();
    }
    soak.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (start, first) = (Instant::now(), arguments.first);
    let Soak { told, broken, tally } = tell_all(arguments);
    println!("{told} stories from seed {first} in {:.1} s: {broken} broken", start.elapsed().as_secs_f64());
    let share = |stories: u64| 100.0 * stories as f64 / told.max(1) as f64;
    for (deed, count, stories) in tally.counts() {
        let name = format!("{deed:?}");
        println!("{name:<18} {count:>12} times, in {:>5.1} % of the stories", share(stories));
    }
    let rarest = tally.counts().min_by_key(|(_, _, stories)| *stories);
    if let Some((deed, _, stories)) = rarest {
        println!("the rarest is {deed:?}, in {:.2} % of the stories", share(stories));
    }
    if broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
