//! What the shell measures itself, together with what the core has counted.

use super::numbers::Numbers;
use super::stopwatch::{Stopwatch, Times};
use crate::core::message::{Effect, Fact};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;
use tutti_http::Leading;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Everything that is counted and measured.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    times: Times,
    steps: Histogram,
    inputs: Counter,
    /// Changes that were seen and say nothing new.
    pub(crate) unchanged: Counter,
    bad_objects: Family<KindLabel, Counter>,
    requests: Family<KindLabel, Counter>,
    leading: Leading,
    /// The core's numbers, as of the last time that it was asked.
    pub(crate) numbers: Arc<Numbers>,
}

impl Metrics {
    /// Metrics of a process that asks for this lease; the name is empty if it needs none. `unused_file` is 1 while its
    /// configuration file says something that is not in use.
    pub(crate) fn new(lease: &str, unused_file: Gauge) -> Self {
        let mut registry = Registry::default();
        registry.register(
            "tutti_configuration_unused",
            "1 if the configuration file says something that is not in use: it was refused, or needs a restart",
            unused_file,
        );
        let mut metrics = Self {
            leading: Leading::register(&mut registry, lease),
            registry,
            times: Times::default(),
            steps: super::stopwatch::histogram(),
            inputs: Counter::default(),
            unchanged: Counter::default(),
            bad_objects: Family::default(),
            requests: Family::default(),
            numbers: Arc::default(),
        };
        metrics.register();
        metrics
    }

    /// Names and explanations. Counters get `_total` at the end of their names.
    fn register(&mut self) {
        let registry = &mut self.registry;
        self.times.register(registry);
        registry.register(
            "tutti_step_duration_seconds",
            "Time of one step: taking in what happened, and deciding",
            self.steps.clone(),
        );
        registry.register(
            "tutti_inputs",
            "Watch events, answers and ticks that were taken in",
            self.inputs.clone(),
        );
        registry.register(
            "tutti_unchanged",
            "Changes of pods and nodes that no decision depends on, and that were left out",
            self.unchanged.clone(),
        );
        registry.register(
            "tutti_bad_objects",
            "Objects that were not understood, by kind",
            self.bad_objects.clone(),
        );
        registry.register(
            "tutti_requests",
            "Requests to the API server besides watches and the lease, by kind",
            self.requests.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&self.numbers)));
    }

    /// All of them, by name.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn lead(&self, leads: bool) {
        self.leading.set(leads);
    }

    /// Watches the core decide, and measures it.
    pub(super) fn stopwatch(&self) -> Stopwatch<'_> {
        Stopwatch::new(&self.times)
    }

    /// What a step took in and told, and how long it took.
    pub(crate) fn stepped(&self, inputs_count: usize, effects: &[Effect], time: Duration) {
        self.inputs.inc_by(inputs_count as u64);
        self.steps.observe(time.as_secs_f64());
        for effect in effects {
            if let Effect::Report(Fact::BadObject(error)) = effect {
                self.bad_objects.get_or_create(&KindLabel { kind: error.kind.as_str() }).inc();
            }
            if let Some(kind) = effect.request_kind() {
                self.requests.get_or_create(&KindLabel { kind }).inc();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Snapshot;
    use super::*;
    use crate::core::counters::{Attempt, Counters, Gauges, Outcome};
    use crate::core::groups::GangState;
    use crate::core::observer::Observer as _;
    use prometheus_client::encoding::text::encode;
    use tutti_model::ObjectKey;

    fn render(metrics: &Metrics) -> String {
        let mut text = String::new();
        encode(&mut text, metrics.registry()).unwrap();
        text
    }

    fn assert_has(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn requests_are_counted_by_kind_and_log_lines_are_none() {
        let metrics = Metrics::new("tutti", Gauge::default());
        let pod = || ObjectKey::new("default", "a");
        let effects = [
            Effect::GetPod { pod: pod(), uid: "1".into() },
            Effect::DeletePod { pod: pod(), uid: "1".into() },
            Effect::GetPod { pod: pod(), uid: "1".into() },
            Effect::Report(Fact::Synced { pods: 1, nodes: 1, groups: 1 }),
        ];
        metrics.stepped(1, &effects, Duration::ZERO);
        let text = render(&metrics);
        assert_has(
            &text,
            &["tutti_requests_total{kind=\"get-pod\"} 2", "tutti_requests_total{kind=\"delete-pod\"} 1"],
        );
        assert_eq!(text.matches("tutti_requests_total{").count(), 2, "{text}");
    }

    #[test]
    fn steps_and_decisions_are_timed_each_by_itself() {
        let metrics = Metrics::new("tutti", Gauge::default());
        metrics.stepped(7, &[], Duration::from_millis(4));
        assert_has(&render(&metrics), &["tutti_decision_duration_seconds_count 0"]);
        let mut stopwatch = metrics.stopwatch();
        let attempt = |is_group, outcome| Attempt { profile: "tutti".into(), is_group, outcome };
        for attempt in [
            Some(attempt(false, Outcome::Scheduled)),
            Some(attempt(true, Outcome::Scheduled)),
            Some(attempt(true, Outcome::Unschedulable)),
            None,
        ] {
            stopwatch.asks();
            stopwatch.decides();
            stopwatch.done(attempt.as_ref());
        }
        // It has nothing more to say.
        stopwatch.asks();
        stopwatch.decides();
        let attempts = "scheduler_podgroup_scheduling_attempt_duration_seconds_count";
        let lines = [
            "tutti_decision_duration_seconds_count 4",
            "tutti_step_duration_seconds_count 1",
            "tutti_inputs_total 7",
            "scheduler_scheduling_algorithm_duration_seconds_count 1",
            "scheduler_podgroup_scheduling_algorithm_duration_seconds_count 2",
            &format!("{attempts}{{profile=\"tutti\",result=\"scheduled\"}} 1"),
            &format!("{attempts}{{profile=\"tutti\",result=\"unschedulable\"}} 1"),
        ];
        assert_has(&render(&metrics), &lines);
    }

    #[test]
    fn numbers_of_the_core_have_the_names_that_dashboards_know() {
        let metrics = Metrics::new("tutti", Gauge::default());
        let mut snapshot = Snapshot { counters: Counters::default(), gauges: Gauges::default() };
        snapshot.counters.group_attempts.entry("tutti".into()).or_default().unschedulable = 3;
        snapshot.counters.pod_seconds.observe(3);
        snapshot.gauges.queue.unschedulable.groups = 2;
        snapshot.gauges.queue.unschedulable.pods = 16;
        snapshot.gauges.gangs.insert(GangState::Kept, 1);
        snapshot.gauges.held_by_incomplete.insert("nvidia.com/gpu".into(), 6);
        assert!(!render(&metrics).contains("scheduler_pending_pods"), "nobody was asked yet");
        metrics.numbers.set(Some(snapshot));
        let lines = [
            "scheduler_podgroup_schedule_attempts_total{profile=\"tutti\",result=\"unschedulable\"} 3",
            "scheduler_pod_scheduling_sli_duration_seconds_bucket{le=\"0.002\"} 0",
            "scheduler_pod_scheduling_sli_duration_seconds_bucket{le=\"0.004\"} 1",
            "scheduler_pod_scheduling_sli_duration_seconds_bucket{le=\"+Inf\"} 1",
            "scheduler_pending_pods{queue=\"unschedulable\"} 16",
            "scheduler_queued_entities{queue=\"unschedulable\",type=\"podgroup\"} 2",
            "tutti_gangs_waiting 2",
            "tutti_incomplete_gangs{state=\"kept\"} 1",
            "tutti_held_by_incomplete_gangs{resource=\"nvidia.com/gpu\"} 6",
            "scheduler_pod_scheduled_after_flush_total 0",
            "tutti_unwinds_total 0",
        ];
        assert_has(&render(&metrics), &lines);
    }
}
