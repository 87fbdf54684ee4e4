//! What the shell measures itself, together with what the core has counted.

use super::numbers::Numbers;
use crate::core::message::{Effect, Fact};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Everything that is counted and measured.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    decisions: Histogram,
    steps: Histogram,
    inputs: Counter,
    /// Changes that were seen and say nothing new.
    pub(crate) unchanged: Counter,
    bad_objects: Family<KindLabel, Counter>,
    leading: Gauge,
    /// The core's numbers, as of the last time that it was asked.
    pub(crate) numbers: Arc<Numbers>,
}

impl Default for Metrics {
    fn default() -> Self {
        // From 10 µs to about 5 s.
        let times = || Histogram::new(exponential_buckets(0.000_01, 2.5, 15));
        let mut metrics = Self {
            registry: Registry::default(),
            decisions: times(),
            steps: times(),
            inputs: Counter::default(),
            unchanged: Counter::default(),
            bad_objects: Family::default(),
            leading: Gauge::default(),
            numbers: Arc::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    /// Names and explanations. Counters get `_total` at the end of their names.
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "tutti_decision_duration_seconds",
            "Time of one decision: that of a step divided by its decisions",
            self.decisions.clone(),
        );
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
            "leader_election_master_status",
            "1 if this process schedules, 0 if it stands by",
            self.leading.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&self.numbers)));
    }

    /// All of them, by name.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn lead(&self, leads: bool) {
        self.leading.set(i64::from(leads));
    }

    /// What a step took in and decided, and how long it took.
    pub(crate) fn stepped(&self, inputs_count: usize, effects: &[Effect], time: Duration) {
        self.inputs.inc_by(inputs_count as u64);
        self.steps.observe(time.as_secs_f64());
        let mut decisions: u32 = 0;
        for effect in effects {
            match effect {
                Effect::Report(Fact::Placed { .. } | Fact::Waiting { .. }) => decisions += 1,
                Effect::Report(Fact::BadObject(error)) => {
                    self.bad_objects.get_or_create(&KindLabel { kind: error.kind.as_str() }).inc();
                }
                _ => {}
            }
        }
        for _ in 0..decisions {
            self.decisions.observe(time.as_secs_f64() / f64::from(decisions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Snapshot;
    use super::*;
    use crate::core::counters::{Counters, Gauges};
    use crate::core::gangs::GangState;
    use prometheus_client::encoding::text::encode;
    use tutti_engine::UnitKey;
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
    fn steps_and_decisions_are_timed() {
        let metrics = Metrics::default();
        let unit = UnitKey::Pod(ObjectKey::new("a", "p"));
        let placed = Effect::Report(Fact::Placed { unit: unit.clone(), pods: 1, nodes: 1, left_out: 0 });
        let waits = Effect::Report(Fact::Waiting { unit, message: "no room".into(), gathering: false });
        metrics.stepped(7, &[placed, waits], Duration::from_millis(4));
        let lines = [
            "tutti_decision_duration_seconds_count 2",
            "tutti_step_duration_seconds_count 1",
            "tutti_inputs_total 7",
        ];
        assert_has(&render(&metrics), &lines);
    }

    #[test]
    fn numbers_of_the_core_have_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
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
