//! What is counted and measured. Names are kube-scheduler's where the meaning is the same.

use crate::core::message::{Answer, BindOutcome, Effect, Fact, Input, WriteOutcome};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;
use tutti_engine::UnitKey;

/// A counter with one label.
type ByResult = Family<ResultLabel, Counter>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Everything that is counted and measured.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    attempts: ByResult,
    group_attempts: ByResult,
    decisions: Histogram,
    steps: Histogram,
    inputs: Counter,
    cache: Family<TypeLabel, Gauge>,
    binds: ByResult,
    writes: ByResult,
    bad_objects: Family<KindLabel, Counter>,
    dropped_writes: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        // From 10 µs to about 5 s.
        let times = || Histogram::new(exponential_buckets(0.000_01, 2.5, 15));
        let metrics = Self {
            registry: Registry::default(),
            attempts: ByResult::default(),
            group_attempts: ByResult::default(),
            decisions: times(),
            steps: times(),
            inputs: Counter::default(),
            cache: Family::default(),
            binds: ByResult::default(),
            writes: ByResult::default(),
            bad_objects: Family::default(),
            dropped_writes: Counter::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    /// Names and explanations. Counters get `_total` at the end of their names.
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register(
            "scheduler_schedule_attempts",
            "Decisions about pods, by result",
            self.attempts.clone(),
        );
        registry.register(
            "scheduler_podgroup_schedule_attempts",
            "Decisions about pod groups, by result",
            self.group_attempts.clone(),
        );
        registry.register(
            "scheduler_cache_size",
            "Objects that scheduling knows, by type, when it last read all of them",
            self.cache.clone(),
        );
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
        registry.register("tutti_binds", "Bindings that were answered, by result", self.binds.clone());
        registry.register(
            "tutti_writes",
            "Conditions and events that were answered, by result",
            self.writes.clone(),
        );
        registry.register(
            "tutti_bad_objects",
            "Objects that were not understood, by kind",
            self.bad_objects.clone(),
        );
        registry.register(
            "tutti_write_queue_overflows",
            "Times that a queue of conditions or events was full",
            self.dropped_writes.clone(),
        );
        self
    }

    /// The text that Prometheus reads.
    pub(crate) fn render(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// What is about to be taken in.
    pub(crate) fn took_in(&self, inputs: &[Input]) {
        self.inputs.inc_by(inputs.len() as u64);
        for input in inputs {
            match input {
                Input::Answer(Answer::Bind { outcome, .. }) => {
                    self.binds.get_or_create(&ResultLabel { result: bind_result(outcome) }).inc();
                }
                Input::Answer(Answer::Write { outcome, .. }) => {
                    self.writes.get_or_create(&ResultLabel { result: write_result(outcome) }).inc();
                }
                _ => {}
            }
        }
    }

    /// What a step has decided, and how long it took.
    pub(crate) fn stepped(&self, effects: &[Effect], time: Duration) {
        self.steps.observe(time.as_secs_f64());
        let facts = || {
            effects.iter().filter_map(|effect| match effect {
                Effect::Report(fact) => Some(fact),
                _ => None,
            })
        };
        facts().for_each(|fact| self.happened(fact));
        let is_decision = |fact: &&Fact| matches!(fact, Fact::Placed { .. } | Fact::Waiting { .. });
        let decisions = facts().filter(is_decision).count();
        for _ in 0..decisions {
            self.decisions.observe(time.as_secs_f64() / decisions as f64);
        }
    }

    fn happened(&self, fact: &Fact) {
        match fact {
            Fact::Synced { pods, nodes, groups } => {
                for (r#type, count) in [("pods", pods), ("nodes", nodes), ("podgroups", groups)] {
                    let count = i64::try_from(*count).unwrap_or(i64::MAX);
                    self.cache.get_or_create(&TypeLabel { r#type }).set(count);
                }
            }
            Fact::Placed { unit, .. } => self.attempted(unit, "scheduled"),
            Fact::Waiting { gathering: true, .. } => {}
            Fact::Waiting { unit, .. } => self.attempted(unit, "unschedulable"),
            Fact::BadObject(error) => {
                self.bad_objects.get_or_create(&KindLabel { kind: error.kind.as_str() }).inc();
            }
            Fact::WritesDropped { .. } => {
                self.dropped_writes.inc();
            }
            _ => {}
        }
    }

    fn attempted(&self, unit: &UnitKey, result: &'static str) {
        let family = match unit {
            UnitKey::Pod(_) => &self.attempts,
            UnitKey::Group(_) => &self.group_attempts,
        };
        family.get_or_create(&ResultLabel { result }).inc();
    }
}

fn bind_result(outcome: &BindOutcome) -> &'static str {
    match outcome {
        BindOutcome::Done => "done",
        BindOutcome::Refused(_) => "refused",
        BindOutcome::Throttled { .. } => "throttled",
        BindOutcome::Disputed(_) => "disputed",
        BindOutcome::Unknown(_) => "unknown",
    }
}

fn write_result(outcome: &WriteOutcome) -> &'static str {
    match outcome {
        WriteOutcome::Done => "done",
        WriteOutcome::Rejected(_) => "rejected",
        WriteOutcome::Failed(_) => "failed",
        WriteOutcome::Throttled { .. } => "throttled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::ObjectKey;

    #[test]
    fn decisions_are_counted_by_unit_and_result() {
        let metrics = Metrics::default();
        let placed = |unit| Effect::Report(Fact::Placed { unit, pods: 2, nodes: 1, left_out: 0 });
        let waits =
            |unit, gathering| Effect::Report(Fact::Waiting { unit, message: "no room".into(), gathering });
        let (pod, group) = (ObjectKey::new("a", "p"), ObjectKey::new("a", "g"));
        metrics.stepped(
            &[
                placed(UnitKey::Pod(pod)),
                placed(UnitKey::Group(group.clone())),
                waits(UnitKey::Group(group.clone()), false),
                waits(UnitKey::Group(group), true),
            ],
            Duration::from_millis(4),
        );
        let text = metrics.render().unwrap();
        for line in [
            "scheduler_schedule_attempts_total{result=\"scheduled\"} 1",
            "scheduler_podgroup_schedule_attempts_total{result=\"scheduled\"} 1",
            "scheduler_podgroup_schedule_attempts_total{result=\"unschedulable\"} 1",
            "tutti_decision_duration_seconds_count 4",
            "tutti_step_duration_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
