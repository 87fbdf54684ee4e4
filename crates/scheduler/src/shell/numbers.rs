//! The core's own numbers, in the words of Prometheus. Names are kube-scheduler's where the meaning is the same.

use crate::core::counters::{Attempts, BUCKETS_MS, Counters, Gauges, Histogram, Outcome};
use crate::core::groups::GangState;
use crate::core::waits::Constraint;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::{Mutex, PoisonError};
use tutti_model::Text;

/// What the core has counted, and how things stand.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) counters: Counters,
    pub(crate) gauges: Gauges,
}

/// The newest numbers; none before the core was asked.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Mutex<Option<Snapshot>>);

impl Numbers {
    pub(crate) fn set(&self, snapshot: Option<Snapshot>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

impl Collector for Numbers {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshot = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        snapshot.map_or(Ok(()), |snapshot| Writer(encoder).write(&snapshot))
    }
}

/// A label and its value.
type Label = [(&'static str, &'static str); 1];

struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn write(mut self, Snapshot { counters, gauges }: &Snapshot) -> Result<(), Error> {
        self.attempts("scheduler_schedule_attempts", "Decisions about single pods", &counters.pod_attempts)?;
        self.attempts(
            "scheduler_podgroup_schedule_attempts",
            "Decisions about pod groups",
            &counters.group_attempts,
        )?;
        self.seconds(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the moment a pod was seen until it was bound",
            &counters.pod_seconds,
        )?;
        self.waited(counters)?;
        self.queues(gauges)?;
        self.cache(gauges)?;
        self.gangs(gauges)?;
        for (name, help, value) in [
            (
                "scheduler_pod_scheduled_after_flush",
                "Units that only the safety flush has found to be placeable; must stay 0",
                gauges.safety_flush_finds,
            ),
            ("tutti_attempts", "Units that were looked at", gauges.attempts),
            (
                "tutti_wake_ups",
                "Units that were woken because something happened that could help them",
                gauges.wake_ups,
            ),
            ("tutti_bindings", "Bindings that were written", counters.bindings),
            ("tutti_bind_failures", "Bindings that were certainly not written", counters.bind_failures),
            (
                "tutti_volume_failures",
                "Units whose volumes were not bound as planned",
                counters.volume_failures,
            ),
            ("tutti_bind_unknowns", "Bindings whose outcome was unknown for a while", counters.bind_unknowns),
            (
                "tutti_bound_elsewhere",
                "Pods that another scheduler bound while we were about to",
                counters.bound_elsewhere,
            ),
            (
                "tutti_stale_groups",
                "Placements that were taken back because their group had changed",
                counters.stale_groups,
            ),
            (
                "tutti_units_set_aside",
                "Units that were set aside because the scheduler broke over them; must stay 0",
                counters.set_aside,
            ),
            (
                "tutti_unwinds",
                "Gangs that were taken back because they could not be completed",
                counters.unwinds,
            ),
            ("tutti_evictions", "Members that were deleted for that", counters.evictions),
            ("tutti_gangs_kept", "Gangs that were kept although they are not complete", counters.gangs_kept),
            ("tutti_throttled", "Answers that the API server has too much to do", counters.throttled),
            (
                "tutti_writes_given_up",
                "Conditions and events that were given up after their last try",
                counters.writes_given_up,
            ),
        ] {
            let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        for (name, help, value) in [
            ("tutti_binds_under_way", "Bindings without an answer", gauges.binds_under_way),
            (
                "tutti_seats_kept",
                "Seats that are kept as they become free, for a gang that has waited for very long",
                gauges.seats_kept,
            ),
            ("tutti_writes_waiting", "Conditions and events that wait to be written", gauges.writes_waiting),
            (
                "tutti_gangs_waiting",
                "Groups that wait for their turn, for room or for members",
                gangs_waiting(gauges),
            ),
        ] {
            let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
            metric.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn attempts(
        &mut self,
        name: &str,
        help: &str,
        by_profile: &BTreeMap<Text, Attempts>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (profile, attempts) in by_profile {
            for outcome in Outcome::ALL {
                let labels = [("profile", &**profile), ("result", outcome.as_str())];
                let value = attempts.of(outcome);
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
        }
        Ok(())
    }

    fn seconds(&mut self, name: &str, help: &str, times: &Histogram) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(
            times.sum_ms as f64 / 1000.0,
            times.count(),
            &buckets(times),
            None,
        )
    }

    fn waited(&mut self, counters: &Counters) -> Result<(), Error> {
        let help =
            "How long units waited, by what for; counted once they wait no longer or for something else";
        let mut metric =
            self.0.encode_descriptor("tutti_waited_seconds", help, None, MetricType::Histogram)?;
        let none = Histogram::default();
        for constraint in Constraint::ALL {
            let times = counters.waited.get(&constraint).unwrap_or(&none);
            let label: Label = [("constraint", constraint.as_str())];
            let mut family = metric.encode_family(&label)?;
            family.encode_histogram::<NoLabelSet>(
                times.sum_ms as f64 / 1000.0,
                times.count(),
                &buckets(times),
                None,
            )?;
        }
        Ok(())
    }

    fn queues(&mut self, gauges: &Gauges) -> Result<(), Error> {
        let census = &gauges.queue;
        let queues = [
            ("active", census.active),
            ("backoff", census.backoff),
            ("unschedulable", census.unschedulable),
            ("incomplete", census.incomplete),
        ];
        let help = "Pods that wait, by what they wait for";
        let mut metric = self.0.encode_descriptor("scheduler_pending_pods", help, None, MetricType::Gauge)?;
        let pods = queues.iter().map(|(queue, waiters)| (*queue, waiters.pods));
        for (queue, value) in pods.chain([("gated", census.gated)]) {
            let label: Label = [("queue", queue)];
            metric.encode_family(&label)?.encode_gauge(&value)?;
        }
        let help = "Single pods and pod groups that wait, by what they wait for";
        let mut metric =
            self.0.encode_descriptor("scheduler_queued_entities", help, None, MetricType::Gauge)?;
        for (queue, waiters) in queues {
            for (kind, value) in [("pod", waiters.single_pods), ("podgroup", waiters.groups)] {
                let labels = [("queue", queue), ("type", kind)];
                metric.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn cache(&mut self, gauges: &Gauges) -> Result<(), Error> {
        let help = "Objects that scheduling knows, by type";
        let mut metric = self.0.encode_descriptor("scheduler_cache_size", help, None, MetricType::Gauge)?;
        for (kind, value) in ["pods", "nodes", "podgroups"].into_iter().zip(gauges.known) {
            let label: Label = [("type", kind)];
            metric.encode_family(&label)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn gangs(&mut self, gauges: &Gauges) -> Result<(), Error> {
        let help = "Gangs that run below their minimum, by what is done about them";
        let mut metric = self.0.encode_descriptor("tutti_incomplete_gangs", help, None, MetricType::Gauge)?;
        for (word, state) in [
            ("completing", GangState::Completing),
            ("unwinding", GangState::Unwinding),
            ("kept", GangState::Kept),
        ] {
            let label: Label = [("state", word)];
            let value = gauges.gangs.get(&state).copied().unwrap_or(0);
            metric.encode_family(&label)?.encode_gauge(&value)?;
        }
        let help = "Extended resources, such as GPUs, that members of gangs below their minimum hold";
        let mut metric =
            self.0.encode_descriptor("tutti_held_by_incomplete_gangs", help, None, MetricType::Gauge)?;
        for (resource, value) in &gauges.held_by_incomplete {
            let label = [("resource", &**resource)];
            metric.encode_family(&label)?.encode_gauge(value)?;
        }
        Ok(())
    }
}

/// Upper bounds in seconds, and how many are within each and beyond the one before.
fn buckets(times: &Histogram) -> Vec<(f64, u64)> {
    let bounds = BUCKETS_MS.iter().map(|&ms| ms as f64 / 1000.0).chain([f64::INFINITY]);
    bounds.zip(times.counts.iter().copied().chain([times.beyond])).collect()
}

fn gangs_waiting(gauges: &Gauges) -> u64 {
    let census = &gauges.queue;
    [census.active, census.backoff, census.unschedulable, census.incomplete]
        .iter()
        .map(|waiters| waiters.groups)
        .sum()
}
