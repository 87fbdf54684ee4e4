//! One number for all facts. Two states that were told the same have the same number, in whatever order and in how many
//! batches they were told; internal numbering does not count.
//!
//! Only what was told and what is assumed or held is looked at, not what follows from it, except for the tables that
//! trials change (what is free, counts, ports, who sits where): a trial that was taken back must leave no trace there.

use super::State;
use super::counts::SelectorId;
use super::nodes::NodeId;
use super::pods::{Life, PodFacts, PodRow, Sits};
use super::shape::{Shape, ShapeId};
use super::topology::KeyId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use tutti_model::{ObjectKey, PodSelector, Text};

impl State {
    /// A number that differs if anything differs that a decision depends on.
    pub(crate) fn digest(&self) -> u64 {
        let mut sum = 0_u64;
        let mut add = |part: u64| sum = sum.wrapping_add(part);
        add(self.nodes.digest(&self.resources));
        let mut shapes: FxHashMap<ShapeId, u64> = FxHashMap::default();
        for (key, row) in self.pods.iter() {
            // What a pod that has ended once asked for decides nothing, and does not follow its claims any more.
            let shape = match row.life {
                Life::Active => {
                    *shapes.entry(row.shape).or_insert_with(|| self.digest_shape(self.shapes.get(row.shape)))
                }
                Life::Succeeded | Life::Failed => 0,
            };
            add(self.digest_pod(key, row, shape));
        }
        for (key, group) in self.pods.groups() {
            // The debug form names every field, also those that will be added.
            add(hash(("group", key, format!("{:?}", group.object))));
        }
        for (key, composite) in self.pods.composites() {
            add(hash(("composite", key, format!("{:?}", composite.object))));
        }
        for (name, labels) in &self.relations.namespaces {
            add(hash(("namespace", name, labels)));
        }
        for unit in &self.suspended {
            add(hash(("is suspended", unit)));
        }
        add(self.digest_relations());
        add(self.volumes.digest());
        add(self.digest_holds());
        sum
    }

    fn digest_pod(&self, key: &ObjectKey, row: &PodRow, shape: u64) -> u64 {
        let PodFacts {
            uid,
            created,
            scheduler_name,
            priority,
            group,
            rank,
            leader,
            labels,
            gated,
            claims,
            unsupported,
            nominated,
            life,
            terminating,
        } = &**row;
        let seat = match &row.sits {
            Sits::Nowhere => (0, None),
            Sits::Assumed(node) => (1, Some(self.nodes.name(*node))),
            Sits::Bound(node) => (2, Some(self.nodes.name(*node))),
        };
        let state = (seat, format!("{life:?}"), terminating, gated, nominated, format!("{unsupported:?}"));
        let belongs = (scheduler_name, priority, group, rank, leader, created, labels, claims);
        hash((key, uid, belongs, shape, state))
    }

    /// What a pod requires, without numbers that depend on history.
    fn digest_shape(&self, shape: &Shape) -> u64 {
        let mut requests: Vec<(&str, i64)> =
            shape.requests.iter().map(|&(id, amount)| (self.resources.name(id).name(), amount)).collect();
        requests.sort_unstable();
        let mut images: Vec<&Text> =
            shape.images.iter().filter_map(|&id| self.nodes.images().name(id)).collect();
        images.sort_unstable();
        let mut shared: Vec<&Text> = shape.volumes.shared.iter().map(|(_, volume)| volume).collect();
        shared.sort_unstable();
        let needs = &shape.volumes;
        let volumes = (&needs.places, shared, &needs.asks, &needs.exclusive, &needs.guesses, needs.is_guess);
        let terms = &shape.inter_pod;
        let term = |&(selector, key): &(SelectorId, KeyId)| (self.selector(selector), self.key(key));
        let affinity = terms.affinity.as_ref().map(|(selector, keys)| {
            let mut keys: Vec<Option<&Text>> = keys.iter().map(|&key| self.key(key)).collect();
            keys.sort_unstable();
            (self.selector(*selector), keys)
        });
        let mut sum = 0_u64;
        let mut add = |part: u64| sum = sum.wrapping_add(part);
        terms.anti_affinity.iter().for_each(|pair| add(hash(("anti-affinity", term(pair)))));
        terms.spread.iter().for_each(|spread| {
            let how = (spread.max_skew, spread.min_domains, spread.honors_affinity, spread.honors_taints);
            add(hash(("spread", term(&(spread.selector, spread.key)), how)));
        });
        terms.preferred.pulls.iter().for_each(|&(selector, key, weight)| {
            add(hash(("prefers", term(&(selector, key)), weight)));
        });
        terms.preferred.spread.iter().for_each(|spread| {
            let how = (spread.max_skew, spread.honors_affinity, spread.honors_taints);
            add(hash(("prefers spread", term(&(spread.selector, spread.key)), how)));
        });
        shape.matches.iter().for_each(|&selector| add(hash(("is matched", self.selector(selector)))));
        let nodes = (&shape.affinity, &shape.tolerations, &shape.features, &shape.ports);
        let nodes = (nodes, &shape.prefers, shape.profile);
        hash((requests, shape.padding, nodes, images, volumes, affinity, sum))
    }

    /// Counts and ports, which trials change.
    fn digest_relations(&self) -> u64 {
        let mut sum = 0_u64;
        let mut add = |part: u64| sum = sum.wrapping_add(part);
        for (node, ports) in &self.relations.ports {
            let mut ports = ports.clone();
            ports.sort_unstable();
            add(hash(("ports", self.nodes.name(*node), ports)));
        }
        for id in self.relations.counts.ids() {
            let selector = self.selector(id);
            for (node, tally) in self.relations.counts.matched_by_node(id) {
                add(hash(("matched", &selector, self.nodes.name(node), tally.seated, tally.lasting)));
            }
            for (key, node, pull) in self.relations.counts.pulls(id) {
                let place = (self.key(key), self.nodes.name(node));
                add(hash(("pull", &selector, place, pull.weight, pull.required)));
            }
            for key in self.relations.counts.guarded_keys(id) {
                for (node, owners) in self.relations.counts.owners_by_node(id, key) {
                    add(hash(("owner", &selector, self.key(key), self.nodes.name(node), owners.seated)));
                }
            }
        }
        for node in self.nodes.ids() {
            for pod in self.pods.on_node(node) {
                add(hash(("on node", self.nodes.name(node), pod)));
            }
        }
        sum
    }

    fn digest_holds(&self) -> u64 {
        let mut sum = 0_u64;
        for (key, held) in self.holds.iter() {
            for (node, requests, count) in &held.seats {
                let mut amounts: Vec<(&str, i64)> =
                    requests.iter().map(|&(id, amount)| (self.resources.name(id).name(), amount)).collect();
                amounts.sort_unstable();
                let seat = (self.node_name(*node), amounts, count);
                let holder = held.holder.as_ref().map(|holder| (holder.starves, holder.created));
                sum = sum.wrapping_add(hash((key, &held.unit, held.priority, held.expires, holder, seat)));
            }
        }
        sum
    }

    fn node_name(&self, node: NodeId) -> &Text {
        self.nodes.name(node)
    }

    fn selector(&self, id: SelectorId) -> &[PodSelector] {
        self.relations.counts.selectors(id)
    }

    fn key(&self, id: KeyId) -> Option<&Text> {
        self.relations.topology.name(id)
    }
}

/// A number for a value.
pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
