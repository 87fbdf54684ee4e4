//! What controllers do, in numbers.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    controller: &'static str,
    verb: &'static str,
    result: &'static str,
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It was done.
    Done,
    /// Somebody else was there first; the next look decides anew.
    Conflict,
    /// It was refused, or there was no answer.
    Failed,
}

/// The numbers of all controllers of a process. Clones count together.
#[derive(Debug, Clone)]
pub struct Meters {
    queue: Family<Labels, Gauge>,
    retrying: Family<Labels, Gauge>,
    news: Family<Labels, Counter>,
    looks: Family<Labels, Counter>,
    requests: Family<RequestLabels, Counter>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    /// Those that run now.
    running: Arc<Mutex<BTreeMap<&'static str, Signs>>>,
}

/// Signs of life of one controller.
#[derive(Debug)]
struct Signs {
    /// Everything that it watches was listed.
    is_ready: bool,
    alive_at: Instant,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            queue: Family::default(),
            retrying: Family::default(),
            news: Family::default(),
            looks: Family::default(),
            requests: Family::default(),
            // From 1 ms to about 16 s.
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15))),
            running: Arc::default(),
        }
    }
}

impl Meters {
    /// Names and explanations. Counters get `_total` at the end of their names.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "tutti_controller_queue_depth",
            "Objects that wait to be looked at or are being worked on; one entry an object",
            self.queue.clone(),
        );
        registry.register(
            "tutti_controller_queue_retrying",
            "Objects whose last requests failed and that wait for their next try",
            self.retrying.clone(),
        );
        registry.register(
            "tutti_controller_news",
            "Lists and changes that watches told of",
            self.news.clone(),
        );
        registry.register("tutti_controller_looks", "How often an object was looked at", self.looks.clone());
        registry.register(
            "tutti_controller_requests",
            "Requests that were sent, by verb and what came of them",
            self.requests.clone(),
        );
        registry.register(
            "tutti_controller_work_duration_seconds",
            "How long it took to carry out what one look asked for",
            self.durations.clone(),
        );
    }

    /// A controller that has not seen yet all that it watches.
    pub(crate) fn unready(&self) -> Option<&'static str> {
        self.running().iter().find(|(_, signs)| !signs.is_ready).map(|(controller, _)| *controller)
    }

    /// Who gave no sign of life for the longest time, and for how long.
    pub(crate) fn longest_silence(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let running = self.running();
        let silences =
            running.iter().map(|(name, signs)| (*name, now.saturating_duration_since(signs.alive_at)));
        silences.max_by_key(|(_, silence)| *silence)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<&'static str, Signs>> {
        // Nothing that is held while it is locked can panic.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of one controller.
    pub fn of(&self, controller: &'static str) -> Meter {
        Meter { all: self.clone(), labels: Labels { controller } }
    }
}

/// The numbers of one controller.
#[derive(Debug, Clone)]
pub struct Meter {
    all: Meters,
    labels: Labels,
}

impl Default for Meter {
    /// For those whose numbers nobody reads.
    fn default() -> Self {
        Meters::default().of("")
    }
}

impl Meter {
    pub(crate) fn queue(&self, depth: usize, retrying: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.all.queue.get_or_create(&self.labels).set(number(depth));
        self.all.retrying.get_or_create(&self.labels).set(number(retrying));
    }

    /// The controller came by, and has or has not yet seen all that it watches.
    pub(crate) fn ready(&self, is_ready: bool) {
        let signs = Signs { is_ready, alive_at: Instant::now() };
        self.all.running().insert(self.labels.controller, signs);
    }

    /// The controller has ended, as it was asked to.
    pub(crate) fn end(&self) {
        self.all.running().remove(self.labels.controller);
        self.queue(0, 0);
    }

    #[cfg(test)]
    pub(crate) fn alive_at(&self, alive_at: Instant) {
        self.all.running().insert(self.labels.controller, Signs { is_ready: true, alive_at });
    }

    pub(crate) fn news(&self, count: usize) {
        self.all.news.get_or_create(&self.labels).inc_by(count as u64);
    }

    pub(crate) fn looked(&self) {
        self.all.looks.get_or_create(&self.labels).inc();
    }

    pub(crate) fn sent(&self, verb: &'static str, sent: Sent) {
        let result = match sent {
            Sent::Done => "done",
            Sent::Conflict => "conflict",
            Sent::Failed => "failed",
        };
        let labels = RequestLabels { controller: self.labels.controller, verb, result };
        self.all.requests.get_or_create(&labels).inc();
    }

    pub(crate) fn worked(&self, time: Duration) {
        self.all.durations.get_or_create(&self.labels).observe(time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[test]
    fn numbers_are_told_apart_by_controller_and_result() {
        let meters = Meters::default();
        let mut registry = Registry::default();
        meters.register(&mut registry);
        let gangs = meters.of("gangs");
        gangs.queue(3, 1);
        gangs.sent("create", Sent::Done);
        gangs.sent("create", Sent::Conflict);
        meters.of("protection").sent("create", Sent::Done);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "tutti_controller_queue_depth{controller=\"gangs\"} 3",
            "tutti_controller_queue_retrying{controller=\"gangs\"} 1",
            "tutti_controller_requests_total{controller=\"gangs\",verb=\"create\",result=\"done\"} 1",
            "tutti_controller_requests_total{controller=\"gangs\",verb=\"create\",result=\"conflict\"} 1",
            "tutti_controller_requests_total{controller=\"protection\",verb=\"create\",result=\"done\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
