//! One number for everything that decisions depend on. Two engines that were told the same facts have the same
//! number, in whatever order and in how many batches they were told; internal numbering does not count.

use crate::engine::Engine;
use crate::state::pods::{Life, PodRow, Sits};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use tutti_model::ObjectKey;

impl Engine {
    /// A number that differs if anything differs that a decision depends on. For tests and for comparing replicas.
    pub fn digest(&self) -> u64 {
        let mut sum = self.nodes.digest(&self.resources);
        for (key, row) in self.pods.iter() {
            sum = sum.wrapping_add(self.digest_pod(key, row));
        }
        for (key, group) in self.pods.groups() {
            // The debug form names every field, also those that will be added.
            sum = sum.wrapping_add(hash(("group", key, format!("{:?}", group.object))));
        }
        for (key, composite) in self.pods.composites() {
            sum = sum.wrapping_add(hash(("composite", key, format!("{:?}", composite.object))));
        }
        let queued = self.queue.units().filter(|unit| !self.touched.contains(unit));
        for unit in queued.chain(self.about_to_queue()) {
            sum = sum.wrapping_add(hash(("waits for its turn", unit)));
        }
        for unit in self.sleepers.units() {
            sum = sum.wrapping_add(hash(("sleeps", unit)));
        }
        for unit in &self.suspended {
            sum = sum.wrapping_add(hash(("is suspended", unit)));
        }
        sum = sum.wrapping_add(self.volumes.digest());
        sum.wrapping_add(self.holds.digest(&self.nodes, &self.resources))
    }

    fn digest_pod(&self, key: &ObjectKey, row: &PodRow) -> u64 {
        let shape = self.shapes.get(row.shape);
        // What a pod that has ended once asked for decides nothing, and does not follow its claims any more.
        let asked = shape.requests.iter().filter(|_| row.life == Life::Active);
        let mut requests: Vec<(&str, i64)> =
            asked.map(|&(id, amount)| (self.resources.name(id).name(), amount)).collect();
        requests.sort_unstable();
        let (is_bound, node) = match row.sits {
            Sits::Nowhere => (false, None),
            Sits::Assumed(node) => (false, Some(self.nodes.name(node))),
            Sits::Bound(node) => (true, Some(self.nodes.name(node))),
        };
        let place = (is_bound, node, format!("{:?}", row.life), row.terminating, row.gated, &row.nominated);
        let group = (&row.group, row.rank, row.leader);
        let belongs = (&row.scheduler_name, row.priority, group, row.created, &row.labels);
        hash((key, &row.uid, belongs, requests, shape.ports.len(), shape.matches.len(), place))
    }
}

pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
