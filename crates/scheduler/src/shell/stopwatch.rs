//! How long decisions take. The core says when they begin and end; only here is a clock.

use crate::core::counters::Attempt;
use crate::core::observer::Observer;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    profile: String,
    result: &'static str,
}

/// Times from 10 µs to about 5 s.
pub(super) fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 2.5, 15))
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Times {
    decisions: Histogram,
    pod_algorithm: Histogram,
    group_algorithm: Histogram,
    group_attempts: Family<AttemptLabels, Histogram>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            decisions: histogram(),
            pod_algorithm: histogram(),
            group_algorithm: histogram(),
            group_attempts: Family::new_with_constructor(histogram),
        }
    }
}

impl Times {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "tutti_decision_duration_seconds",
            "Time of one decision: searching, and noting all that follows from it",
            self.decisions.clone(),
        );
        registry.register(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time of searching for a place for a pod on its own",
            self.pod_algorithm.clone(),
        );
        registry.register(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Time of searching for places for a pod group",
            self.group_algorithm.clone(),
        );
        registry.register(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Time of one decision about a pod group, without its bindings",
            self.group_attempts.clone(),
        );
    }
}

/// Measures one decision after the other.
pub(super) struct Stopwatch<'a> {
    times: &'a Times,
    /// How long the engine has looked at each unit that is not taken in yet.
    searches: VecDeque<Duration>,
    /// When it began to look at the one that is next, or was done with the last.
    since: Instant,
}

impl<'a> Stopwatch<'a> {
    pub(super) fn new(times: &'a Times) -> Self {
        Self { times, searches: VecDeque::new(), since: Instant::now() }
    }
}

impl Observer for Stopwatch<'_> {
    fn asks(&mut self) {
        self.searches.clear();
        self.since = Instant::now();
    }

    fn decides(&mut self) {
        let now = Instant::now();
        self.searches.push_back(now.saturating_duration_since(self.since));
        self.since = now;
    }

    fn done(&mut self, attempt: Option<&Attempt>) {
        let search = self.searches.pop_front().unwrap_or_default();
        // Of the others there is nothing to take in.
        let is_last = self.searches.is_empty();
        let whole = if is_last { search + self.since.elapsed() } else { search };
        self.times.decisions.observe(whole.as_secs_f64());
        let Some(Attempt { profile, is_group, outcome }) = attempt else { return };
        if *is_group {
            self.times.group_algorithm.observe(search.as_secs_f64());
            let labels = AttemptLabels { profile: profile.to_string(), result: outcome.as_str() };
            self.times.group_attempts.get_or_create(&labels).observe(whole.as_secs_f64());
        } else {
            self.times.pod_algorithm.observe(search.as_secs_f64());
        }
    }
}
