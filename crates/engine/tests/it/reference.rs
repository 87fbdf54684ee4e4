//! What kube-scheduler's default profile would choose, said once more and independently: on plain objects and in
//! floating point, as upstream calculates. Tests hold the engine's choices against it.
//!
//! Namespaces have no labels here, and there is only one.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use tutti_engine::check::validator::violations;
use tutti_model::{Effect, Node, Pod, PodTerm, SpreadConstraint, Text};

const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
const MIB: i64 = 1 << 20;

/// The node with the highest score and its score, ties by name; nothing if no node will do.
pub(crate) fn choice(nodes: &[Node], running: &[Pod], pod: &Pod) -> Option<(Text, i64)> {
    let will_do = |node: &&Node| {
        let placed = Pod { node: Some(node.name.clone()), ..pod.clone() };
        violations(nodes, running, &[placed]).is_empty()
    };
    let feasible: Vec<&Node> = nodes.iter().filter(will_do).collect();
    let scene = Scene { nodes, running, pod, feasible: &feasible };
    let (taints, affinity) = (scene.taints(), scene.node_affinity());
    let (spread, inter_pod) = (scene.spread(), scene.inter_pod());
    let total = |at: usize| {
        let node = feasible[at];
        scene.least_allocated(node)
            + scene.balanced(node)
            + scene.images(node)
            + 3 * taints[at]
            + 2 * affinity[at]
            + 2 * spread[at]
            + 2 * inter_pod[at]
    };
    let scores = (0..feasible.len()).map(|at| (feasible[at].name.clone(), total(at)));
    scores.min_by_key(|(name, score)| (std::cmp::Reverse(*score), name.clone()))
}

struct Scene<'a> {
    nodes: &'a [Node],
    running: &'a [Pod],
    pod: &'a Pod,
    feasible: &'a [&'a Node],
}

impl Scene<'_> {
    fn on<'b>(&'b self, node: &'b Node) -> impl Iterator<Item = &'b Pod> {
        self.running.iter().filter(|other| other.node.as_ref() == Some(&node.name))
    }

    fn node_of(&self, pod: &Pod) -> Option<&Node> {
        self.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref())
    }

    fn least_allocated(&self, node: &Node) -> i64 {
        let asked = |pod: &Pod, name: &str| {
            let padding = if name == "cpu" { pod.padding.cpu } else { pod.padding.memory };
            pod.requests.get(name) + padding
        };
        let (mut sum, mut count) = (0, 0);
        for name in ["cpu", "memory"] {
            let capacity = node.allocatable.get(name);
            if capacity > 0 {
                let used: i64 = self.on(node).chain([self.pod]).map(|pod| asked(pod, name)).sum();
                sum += if used > capacity { 0 } else { (capacity - used) * 100 / capacity };
                count += 1;
            }
        }
        if count == 0 { 0 } else { sum / count }
    }

    fn balanced(&self, node: &Node) -> i64 {
        let asked = |name: &str| self.pod.requests.get(name);
        if asked("cpu") == 0 && asked("memory") == 0 {
            return 0;
        }
        let balance = |more: i64| {
            let there = ["cpu", "memory"].into_iter().filter(|name| node.allocatable.get(name) > 0);
            let shares: Vec<f64> = there
                .map(|name| {
                    let used: i64 = self.on(node).map(|pod| pod.requests.get(name)).sum();
                    ((used + more * asked(name)) as f64 / node.allocatable.get(name) as f64).min(1.0)
                })
                .collect();
            let deviation = if let [a, b] = shares[..] { ((a - b) / 2.0).abs() } else { 0.0 };
            ((1.0 - deviation) * 100.0) as i64
        };
        50 + (50 + balance(1) - balance(0)) / 2
    }

    fn images(&self, node: &Node) -> i64 {
        let count = self.pod.images.len() as i64;
        if count == 0 {
            return 0;
        }
        let has = |node: &Node, name: &Text| node.images.iter().any(|image| image.name == *name);
        let mut sum = 0;
        for name in self.pod.images.iter().filter(|name| has(node, name)) {
            let all = self.nodes.iter().flat_map(|node| &node.images);
            let size = all.filter(|image| image.name == *name).map(|image| image.size).max().unwrap_or(0);
            let nodes_with = self.nodes.iter().filter(|node| has(node, name)).count();
            sum += (size as f64 * (nodes_with as f64 / self.nodes.len() as f64)) as i64;
        }
        let most = 1000 * MIB * count;
        100 * (sum.clamp(23 * MIB, most) - 23 * MIB) / (most - 23 * MIB)
    }

    fn taints(&self) -> Vec<i64> {
        let count = |node: &&Node| {
            let soft = node.taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule);
            soft.filter(|taint| !self.pod.tolerations.iter().any(|t| t.tolerates(taint))).count() as i64
        };
        let counts: Vec<i64> = self.feasible.iter().map(count).collect();
        let most = counts.iter().max().copied().unwrap_or(0);
        counts.iter().map(|count| if most == 0 { 100 } else { 100 - 100 * count / most }).collect()
    }

    fn node_affinity(&self) -> Vec<i64> {
        let sum = |node: &&Node| {
            let terms = self.pod.preferences.nodes.iter();
            let matching = terms.filter(|term| term.term.matches(&node.name, &node.labels));
            matching.map(|term| term.weight.get()).sum::<i64>()
        };
        let sums: Vec<i64> = self.feasible.iter().map(sum).collect();
        let most = sums.iter().max().copied().unwrap_or(0);
        sums.iter().map(|sum| if most == 0 { 0 } else { 100 * sum / most }).collect()
    }

    fn spread(&self) -> Vec<i64> {
        let own = &self.pod.preferences.spread;
        if !own.is_empty() || !self.pod.inter_pod.spread.is_empty() {
            return self.spread_by(own, true);
        }
        let Some(like) = self.pod.preferences.like.as_deref() else {
            return self.spread_by(&[], true);
        };
        let default = |key: &str, skew: u32| SpreadConstraint {
            max_skew: NonZeroU32::new(skew).expect("a skew is not 0"),
            topology_key: key.into(),
            labels: Some(like.clone()),
            min_domains: None,
            honors_affinity: true,
            honors_taints: false,
        };
        self.spread_by(&[default(HOSTNAME, 3), default(ZONE, 5)], false)
    }

    /// Nodes without all the labels are left out, unless the constraints are a default.
    fn spread_by(&self, constraints: &[SpreadConstraint], requires_labels: bool) -> Vec<i64> {
        let labelled = |node: &Node| {
            let has = |constraint: &SpreadConstraint| node.labels.get(&constraint.topology_key).is_some();
            !requires_labels || constraints.iter().all(has)
        };
        let compared = self.feasible.iter().filter(|node| labelled(node)).count();
        let raw = |node: &&Node| {
            let mut sum = 0.0;
            for constraint in constraints {
                let key = constraint.topology_key.as_ref();
                if node.labels.get(key).is_none() {
                    continue;
                }
                let (count, size) = if key == HOSTNAME {
                    (self.matching(constraint, node), compared)
                } else {
                    let value = |node: &Node| node.labels.get(key).unwrap_or_default().to_owned();
                    let counted = self.nodes.iter().filter(|other| {
                        labelled(other)
                            && value(other) == value(node)
                            && self.pod.affinity.matches(&other.name, &other.labels)
                    });
                    let labelled = self.feasible.iter().filter(|node| labelled(node));
                    let values: std::collections::BTreeSet<_> = labelled.map(|node| value(node)).collect();
                    (counted.map(|other| self.matching(constraint, other)).sum(), values.len())
                };
                sum += count as f64 * ((size + 2) as f64).ln() + f64::from(constraint.max_skew.get() - 1);
            }
            sum.round() as i64
        };
        if constraints.is_empty() {
            return vec![0; self.feasible.len()];
        }
        let raws: Vec<Option<i64>> =
            self.feasible.iter().map(|node| labelled(node).then(|| raw(node))).collect();
        let least = raws.iter().flatten().min().copied().unwrap_or(0);
        let most = raws.iter().flatten().max().copied().unwrap_or(0);
        let score = |raw: i64| if most == 0 { 100 } else { 100 * (most + least - raw) / most };
        raws.iter().map(|raw| raw.map_or(0, score)).collect()
    }

    fn matching(&self, constraint: &SpreadConstraint, node: &Node) -> usize {
        let Some(selector) = constraint.labels.as_ref().filter(|selector| !selector.is_empty()) else {
            return 0;
        };
        self.on(node).filter(|pod| !pod.terminating && selector.matches(&pod.labels)).count()
    }

    fn inter_pod(&self) -> Vec<i64> {
        let mut sums: BTreeMap<(Text, String), i64> = BTreeMap::new();
        let mut add = |term: &PodTerm, subject: &Pod, seat: &Node, weight: i64| {
            let labels = tutti_model::Labels::default();
            if let Some(value) = seat.labels.get(&term.topology_key)
                && term.pods.matches(&subject.key.namespace, &labels, &subject.labels)
            {
                *sums.entry((term.topology_key.clone(), value.to_owned())).or_default() += weight;
            }
        };
        for other in self.running {
            let Some(seat) = self.node_of(other) else { continue };
            for (owner, subject) in [(self.pod, other), (other, self.pod)] {
                for preference in &owner.preferences.affinity {
                    add(&preference.term, subject, seat, preference.weight.get());
                }
                for preference in &owner.preferences.anti_affinity {
                    add(&preference.term, subject, seat, -preference.weight.get());
                }
            }
            for required in &other.inter_pod.affinity {
                add(required, self.pod, seat, 1);
            }
        }
        let sum = |node: &&Node| {
            let here = |((key, value), weight): (&(Text, String), &i64)| {
                if node.labels.get(key) == Some(value) { *weight } else { 0 }
            };
            sums.iter().map(here).sum::<i64>()
        };
        let values: Vec<i64> = self.feasible.iter().map(sum).collect();
        let lowest = values.iter().min().copied().unwrap_or(0);
        let span = values.iter().max().copied().unwrap_or(0) - lowest;
        let score = |value: &i64| (100.0 * ((value - lowest) as f64 / span as f64)) as i64;
        values.iter().map(|value| if span == 0 { 0 } else { score(value) }).collect()
    }
}
