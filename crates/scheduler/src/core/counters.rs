//! What is counted. Plain numbers; the metrics page gives them names.
//!
//! Where the meaning is that of kube-scheduler, so is the name: `pod_attempts` is `scheduler_schedule_attempts_total`,
//! `group_attempts` is `scheduler_podgroup_schedule_attempts_total`, `pod_seconds` is
//! `scheduler_pod_scheduling_sli_duration_seconds`, and [`Gauges`] has `scheduler_pending_pods` and
//! `scheduler_queued_entities` by queue.

use super::Core;
use super::groups::GangState;
use super::waits::Constraint;
use std::collections::BTreeMap;
use tutti_engine::{Census, UnitKey};
use tutti_model::{ObjectKey, Text, Time};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Seats were found.
    Scheduled,
    /// None were.
    Unschedulable,
    /// It could not be tried, because objects contradict each other.
    Error,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scheduled, Self::Unschedulable, Self::Error];

    /// As kube-scheduler's metrics call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

/// One attempt at a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The scheduler name that its pods ask for.
    pub profile: Text,
    /// Whether it is a group or a composite, or a pod on its own.
    pub is_group: bool,
    /// How it ended.
    pub outcome: Outcome,
}

/// Attempts by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// As [`Outcome::Scheduled`].
    pub scheduled: u64,
    /// As [`Outcome::Unschedulable`].
    pub unschedulable: u64,
    /// As [`Outcome::Error`].
    pub error: u64,
}

impl Attempts {
    /// How many ended so.
    pub fn of(&self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Scheduled => self.scheduled,
            Outcome::Unschedulable => self.unschedulable,
            Outcome::Error => self.error,
        }
    }

    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Scheduled => &mut self.scheduled,
            Outcome::Unschedulable => &mut self.unschedulable,
            Outcome::Error => &mut self.error,
        } += 1;
    }
}

/// Upper bounds of the buckets of every [`Histogram`], in milliseconds: doubling from one.
pub const BUCKETS_MS: [i64; 20] = {
    let mut bounds = [1; 20];
    let mut index = 1;
    while index < bounds.len() {
        bounds[index] = bounds[index - 1] * 2;
        index += 1;
    }
    bounds
};

/// How long something took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// How many took at most the bound of the same index, and more than the one before it.
    pub counts: [u64; BUCKETS_MS.len()],
    /// How many took longer than the last bound.
    pub beyond: u64,
    /// All of them together, in milliseconds.
    pub sum_ms: i64,
}

impl Histogram {
    /// Counts one.
    pub fn observe(&mut self, ms: i64) {
        let ms = ms.max(0);
        self.sum_ms = self.sum_ms.saturating_add(ms);
        let bucket = BUCKETS_MS.iter().position(|&bound| ms <= bound);
        match bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
            Some(count) => *count += 1,
            None => self.beyond += 1,
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.beyond
    }
}

/// Everything that is counted, since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Attempts at single pods, by the scheduler name that they ask for.
    pub pod_attempts: BTreeMap<Text, Attempts>,
    /// Attempts at groups, by the scheduler name that their members ask for.
    pub group_attempts: BTreeMap<Text, Attempts>,
    /// Bindings that were written.
    pub bindings: u64,
    /// Bindings that were certainly not written.
    pub bind_failures: u64,
    /// Units whose volumes were not bound as planned.
    pub volume_failures: u64,
    /// Bindings whose outcome was unknown for a while.
    pub bind_unknowns: u64,
    /// Pods that another scheduler bound while we were about to.
    pub bound_elsewhere: u64,
    /// Placements that were taken back because the group had changed.
    pub stale_groups: u64,
    /// Units that were set aside because the engine broke over them.
    pub set_aside: u64,
    /// Gangs that were unwound.
    pub unwinds: u64,
    /// Members that were deleted for that.
    pub evictions: u64,
    /// Gangs that were kept although they are not complete.
    pub gangs_kept: u64,
    /// Answers that the server has too much to do.
    pub throttled: u64,
    /// Objects that were not understood, once for every version of them.
    pub bad_objects: u64,
    /// Conditions and events that were given up after their last try.
    pub writes_given_up: u64,
    /// From the moment a pod was seen until it was bound, in this process.
    pub pod_seconds: Histogram,
    /// How long units waited for one thing, counted once they wait no longer or for something else.
    pub waited: BTreeMap<Constraint, Histogram>,
}

/// How things stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Units and pods that wait, by queue.
    pub queue: Census,
    /// Gangs below their minimum, by what is done about them.
    pub gangs: BTreeMap<GangState, u64>,
    /// What bound members of gangs below their minimum hold, by name of the resource; extended resources only, such
    /// as GPUs.
    pub held_by_incomplete: BTreeMap<Text, i64>,
    /// Bindings under way.
    pub binds_under_way: u64,
    /// Writes that wait: conditions of groups, of pods, and events.
    pub writes_waiting: u64,
    /// Units looked at, since the start.
    pub attempts: u64,
    /// Sleeping units that were woken because something happened that could help them, since the start.
    pub wake_ups: u64,
    /// Units that only the safety flush has found to be placeable, since the start. Must stay 0.
    pub safety_flush_finds: u64,
    /// Seats that are kept for a gang that has waited for very long.
    pub seats_kept: u64,
    /// Pods, nodes and groups that are known.
    pub known: [u64; 3],
}

impl Core {
    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How things stand. Goes through everything that waits; not meant for every step.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges {
            queue: self.engine.census(),
            binds_under_way: self.starts.bindings.len() as u64,
            writes_waiting: (self.group_writes.waiting_count()
                + self.pod_writes.waiting_count()
                + self.events.waiting_count()) as u64,
            attempts: self.engine.attempts_count(),
            wake_ups: self.engine.wake_ups_count(),
            safety_flush_finds: self.engine.flush_finds_count(),
            seats_kept: self.engine.seats_kept_count(),
            known: [self.pods.len() as u64, self.nodes.len() as u64, self.groups.groups_count() as u64],
            ..Gauges::default()
        };
        for (_, state, bound) in self.groups.partial() {
            *gauges.gangs.entry(state).or_default() += 1;
            for pod in bound.keys() {
                for (resource, amount) in self.engine.requests_of(pod).iter() {
                    // Extended resources are those with a domain in their name.
                    if resource.name().contains('/') {
                        *gauges.held_by_incomplete.entry(resource.name().into()).or_default() += amount;
                    }
                }
            }
        }
        gauges
    }

    /// Counts an attempt at a unit with this member, or another one: members are all for the same scheduler.
    pub(super) fn count_attempt(
        &mut self,
        unit: &UnitKey,
        member: Option<&ObjectKey>,
        outcome: Outcome,
    ) -> Attempt {
        let pod = member.and_then(|member| self.pods.get(member)?.unbound());
        let profile = pod.map(|pod| pod.scheduler_name.clone()).unwrap_or_default();
        let is_group = !matches!(unit, UnitKey::Pod(_));
        let Counters { group_attempts, pod_attempts, .. } = &mut self.counters;
        let attempts = if is_group { group_attempts } else { pod_attempts };
        attempts.entry(profile.clone()).or_default().count(outcome);
        Attempt { profile, is_group, outcome }
    }

    pub(super) fn count_bound(&mut self, seen: Option<Time>, now: Time) {
        self.counters.bindings += 1;
        if let Some(seen) = seen {
            self.counters.pod_seconds.observe(now.0.saturating_sub(seen.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_puts_everything_into_the_smallest_bucket_that_holds_it() {
        let mut histogram = Histogram::default();
        for ms in [-5, 0, 1, 2, 3, 4, 524_288, 524_289, i64::MAX] {
            histogram.observe(ms);
        }
        assert_eq!(histogram.counts[..3], [3, 1, 2]);
        assert_eq!((histogram.counts[19], histogram.beyond, histogram.count()), (1, 2, 9));
    }
}
