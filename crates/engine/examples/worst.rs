//! How long one decision takes at worst, over random and hostile instances:
//!
//! ```text
//! cargo run --release -p tutti-engine --example worst -- --instances 100000 --seed 1
//! ```
//!
//! `--scenario FILE` does the same for one scenario. Times are of the wall clock, but not
//! much more than the CPU time of the thread where the system tells it (Linux).

#[path = "../tests/it/hostile.rs"]
#[allow(clippy::unwrap_used, reason = "shared with the tests; writing to a string does not fail")]
mod hostile;
#[path = "../tests/it/random.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "shared with the tests; writing to a string does not fail")]
mod random;
#[path = "../tests/it/random_trees.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "shared with the tests; writing to a string does not fail")]
mod random_trees;

use std::process::ExitCode;
use std::time::{Duration, Instant};
use tutti_engine::{Config, Decision, Engine, Event};
use tutti_model::Time;
use tutti_model::scenario::Scenario;

const USAGE: &str = "usage: worst [--instances N] [--seed N], or worst --scenario FILE";
/// Instances that are shown.
const SHOWN: usize = 5;
/// Decisions after which an instance must have come to rest.
const DECISIONS_MAX: u32 = 10_000;
/// How often time moves on to the next retry, which may use more steps than the first attempt.
const RETRIES: u32 = 4;

/// One instance and its slowest decision.
struct Slow {
    time: Duration,
    steps: u64,
    sort: &'static str,
    seed: u64,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if let (Some("--scenario"), Some(path)) = (words.next().as_deref(), words.next()) {
        return of_file(&path);
    }
    let (instances, seed) = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("worst: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut slowest: Vec<Slow> = Vec::new();
    let mut steps_max = 0;
    for number in 0..instances {
        let seed = seed + number / 4;
        let (sort, text) = match number % 4 {
            0 => ("wishes", random::instance_with_wishes(seed)),
            1 => ("composite", random_trees::composite_instance(seed)),
            _ => ("hostile", hostile::hostile_instance(2 * seed + number % 2)),
        };
        let Ok(scenario) = Scenario::parse(&text) else {
            eprintln!("worst: seed {seed} is no scenario\n{text}");
            return ExitCode::FAILURE;
        };
        let (time, (steps, most)) = slowest_decision(&scenario);
        steps_max = most;
        let seed = if sort == "hostile" { 2 * seed + number % 2 } else { seed };
        slowest.push(Slow { time, steps, sort, seed });
        slowest.sort_by_key(|slow| std::cmp::Reverse(slow.time));
        slowest.truncate(SHOWN);
    }
    for Slow { time, steps, sort, seed } in &slowest {
        println!("{:.1} ms: {sort} {seed}, {steps} of {steps_max} steps", time.as_secs_f64() * 1e3);
    }
    ExitCode::SUCCESS
}

/// Tells how long the slowest decision about one scenario takes.
fn of_file(path: &str) -> ExitCode {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let scenario = text.and_then(|text| Scenario::parse(&text).map_err(|error| error.to_string()));
    match scenario {
        Ok(scenario) => {
            let (time, (steps, most)) = slowest_decision(&scenario);
            println!("{:.2} ms, {steps} of {most} steps", time.as_secs_f64() * 1e3);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("worst: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The slowest decision of an instance, and the steps of its costliest attempt.
fn slowest_decision(scenario: &Scenario) -> (Duration, (u64, u64)) {
    let mut now = Time(0);
    let mut engine = Engine::new(Config::default());
    for node in &scenario.nodes {
        engine.apply(Event::NodeSet(Box::new(node.clone())), now);
    }
    for group in &scenario.groups {
        engine.apply(Event::GroupSet(Box::new(group.clone())), now);
    }
    for composite in &scenario.composites {
        engine.apply(Event::CompositeSet(Box::new(composite.clone())), now);
    }
    for pod in &scenario.pods {
        engine.apply(Event::PodSet(Box::new(pod.clone())), now);
    }
    let mut worst = Duration::ZERO;
    let mut retries = 0;
    for _ in 0..DECISIONS_MAX {
        let start = Moment::now();
        let decision = engine.decide(now);
        worst = worst.max(start.elapsed());
        if let Decision::Idle { wake_at } = decision {
            let Some(next) = wake_at.filter(|_| retries < RETRIES) else { break };
            retries += 1;
            now = next;
        }
    }
    (worst, engine.steps_max())
}

/// Time on the CPU is told in steps of this.
const TICK: Duration = Duration::from_millis(4);

/// A moment: on the wall clock, and how long the thread has been on the CPU.
struct Moment(Instant, Option<Duration>);

impl Moment {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let nanos = stat.and_then(|stat| stat.split_whitespace().next()?.parse().ok());
        Self(Instant::now(), nanos.map(Duration::from_nanos))
    }

    /// Time since then; not much more than the thread was on the CPU.
    fn elapsed(&self) -> Duration {
        let wall = self.0.elapsed();
        match (self.1, Self::now().1) {
            (Some(before), Some(now)) => wall.min(now.saturating_sub(before) + TICK),
            _ => wall,
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<(u64, u64), String> {
    let (mut instances, mut seed) = (10_000, 1);
    while let Some(flag) = words.next() {
        let target = match flag.as_str() {
            "--instances" => &mut instances,
            "--seed" => &mut seed,
            other => return Err(format!("{other} is not known")),
        };
        let value = words.next().ok_or_else(|| format!("{flag} wants a number"))?;
        *target = value.parse().map_err(|_| format!("{flag} wants a number, not {value}"))?;
    }
    Ok((instances, seed))
}
