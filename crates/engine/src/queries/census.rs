//! How many wait, and for what.

use crate::decision::{Seat, UnitKey};
use crate::engine::Engine;
use crate::state::pods::Sits;
use tutti_model::{ObjectKey, ResourceList, Time};

/// Units and the pods in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiters {
    /// Groups; a composite with all its groups counts as one.
    pub groups: u64,
    /// Pods that are units of their own.
    pub single_pods: u64,
    /// All pods, of groups and single ones.
    pub pods: u64,
}

/// Who waits, by what they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// For their turn.
    pub active: Waiters,
    /// For the end of a pause after a failure.
    pub backoff: Waiters,
    /// For room.
    pub unschedulable: Waiters,
    /// For their group, for more members of it, or for somebody to change something.
    pub incomplete: Waiters,
    /// Pods that gates hold back.
    pub gated: u64,
}

/// Where somebody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the queue, to be decided.
    Ready,
    /// In the queue, after a pause.
    Paused(Time),
    /// Asleep, until something happens that could help.
    Asleep,
}

impl Place {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Paused(_) => "paused",
            Self::Asleep => "asleep",
        }
    }

    /// When a pause ends.
    pub fn until(self) -> Option<Time> {
        match self {
            Self::Paused(until) => Some(until),
            Self::Ready | Self::Asleep => None,
        }
    }
}

impl Engine {
    /// Everybody who waits, and where; those who are next first.
    pub fn waiters(&self) -> Vec<(UnitKey, Place)> {
        let mut asleep: Vec<(UnitKey, Place)> =
            self.sleepers.units().map(|unit| (unit.clone(), Place::Asleep)).collect();
        asleep.sort_unstable();
        let queued = self.queue.in_order().filter(|(unit, _)| !self.touched.contains(unit));
        let about_to = self.about_to_queue().map(|unit| (unit.clone(), Place::Ready));
        queued.chain(about_to).chain(asleep).collect()
    }

    /// Seats that were decided and that the API server has not confirmed, by pod.
    pub fn assumed(&self) -> Vec<Seat> {
        let mut seats: Vec<Seat> = self
            .pods
            .iter()
            .filter_map(|(key, row)| match row.sits {
                Sits::Assumed(node) => {
                    let (uid, node) = (row.uid.clone(), self.nodes.name(node).clone());
                    Some(Seat { pod: key.clone(), uid, node })
                }
                Sits::Nowhere | Sits::Bound(_) => None,
            })
            .collect();
        seats.sort_unstable_by(|a, b| a.pod.cmp(&b.pod));
        seats
    }

    /// Units that are not to be tried, in order.
    pub fn suspended(&self) -> Vec<UnitKey> {
        let mut units: Vec<UnitKey> = self.suspended.iter().cloned().collect();
        units.sort_unstable();
        units
    }

    /// Counts who waits. Goes through all pods.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        let mut counted = std::collections::BTreeSet::new();
        for (key, row) in self.pods.iter() {
            if !self.serves(&row.scheduler_name) {
                continue;
            }
            if row.gated && row.is_live() && row.node().is_none() {
                census.gated += 1;
            }
            if !row.wants_seat() {
                continue;
            }
            let unit = self.pods.unit_of(key, row);
            let waiters = match self.queue.is_paused(&unit) {
                _ if self.touched.contains(&unit) => &mut census.active,
                Some(false) => &mut census.active,
                Some(true) => &mut census.backoff,
                None if self.sleepers.contains(&unit) => &mut census.unschedulable,
                None => &mut census.incomplete,
            };
            waiters.pods += 1;
            match &unit {
                UnitKey::Pod(_) => waiters.single_pods += 1,
                UnitKey::Group(_) | UnitKey::Composite(_) => {
                    waiters.groups += u64::from(counted.insert(unit));
                }
            }
        }
        census
    }

    /// What a pod takes from its node; nothing if it is not known.
    pub fn requests_of(&self, pod: &ObjectKey) -> ResourceList {
        let Some(row) = self.pods.pod(pod) else {
            return ResourceList::new();
        };
        let requests = &self.shapes.get(row.shape).requests;
        requests.iter().map(|&(id, amount)| (self.resources.name(id).clone(), amount)).collect()
    }
}
