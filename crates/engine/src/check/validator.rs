//! What a valid placement is, said once more and independently: on plain objects, with none of the engine's
//! tables. Tests hold every placement against it.
//!
//! *Final state, free of order.* The new pods are all in place; then every rule either holds or does not.
//! Namespaces have no labels here.

pub mod group_rules;
mod volume_rules;

use rustc_hash::FxHashMap;
use tutti_model::taint::untolerated;
use tutti_model::{Labels, Node, Pod, PodTerm, SpreadConstraint};
pub use volume_rules::volume_violations;

/// What is wrong with a final state in which `placed` were put beside `running`; every pod names its node.
///
/// Only what the placed pods are answerable for counts: a node that was overcommitted before is not their fault
/// unless they ask for more of what is short.
pub fn violations(nodes: &[Node], running: &[Pod], placed: &[Pod]) -> Vec<String> {
    let mut wrong = violations_for_good(nodes, running, placed);
    let scene = Scene::new(nodes, running, placed);
    for pod in placed {
        wrong.extend(scene.affinity(pod));
        for constraint in &pod.inter_pod.spread {
            wrong.extend(scene.spread(pod, constraint));
        }
    }
    wrong
}

/// The part of [`violations`] that more pods can never mend.
pub fn violations_for_good(nodes: &[Node], running: &[Pod], placed: &[Pod]) -> Vec<String> {
    let scene = Scene::new(nodes, running, placed);
    let mut wrong = Vec::new();
    for pod in placed {
        let Some(node) = scene.node_of(pod) else {
            wrong.push(format!("{} is on a node that does not exist", pod.key));
            continue;
        };
        if let Some(why) = forbidden(pod, node) {
            wrong.push(format!("{} may not be on {}: {why}", pod.key, node.name));
        }
        wrong.extend(scene.resources(pod, node));
        wrong.extend(scene.ports(pod, node));
        wrong.extend(scene.anti_affinity(pod));
    }
    wrong
}

/// Why a pod may not be on a node whatever else is there.
fn forbidden(pod: &Pod, node: &Node) -> Option<String> {
    let cordon = tutti_model::Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: tutti_model::Effect::NoSchedule,
    };
    if node.unschedulable && !pod.tolerations.iter().any(|t| t.tolerates(&cordon)) {
        return Some("it is cordoned".to_owned());
    }
    if let Some(taint) = untolerated(&node.taints, &pod.tolerations) {
        return Some(format!("taint {} is not tolerated", taint.key));
    }
    if let Some(missing) = pod.features.iter().find(|feature| !node.features.contains(feature)) {
        return Some(format!("it lacks the feature {missing}"));
    }
    (!pod.affinity.matches(&node.name, &node.labels)).then(|| "its labels do not match".to_owned())
}

struct Scene<'a> {
    nodes: &'a [Node],
    by_name: FxHashMap<&'a str, &'a Node>,
    everybody: Vec<&'a Pod>,
    placed: &'a [Pod],
}

impl<'a> Scene<'a> {
    fn new(nodes: &'a [Node], running: &'a [Pod], placed: &'a [Pod]) -> Self {
        let there = |pod: &&Pod| pod.node.is_some() && !pod.phase.is_terminal();
        Self {
            nodes,
            by_name: nodes.iter().map(|node| (node.name.as_ref(), node)).collect(),
            everybody: running.iter().chain(placed).filter(there).collect(),
            placed,
        }
    }

    fn node_of(&self, pod: &Pod) -> Option<&'a Node> {
        self.by_name.get(pod.node.as_deref()?).copied()
    }

    /// The value of a topology key where a pod sits.
    fn domain(&self, pod: &Pod, key: &str) -> Option<&'a str> {
        self.node_of(pod)?.labels.get(key)
    }

    fn resources(&self, pod: &Pod, node: &Node) -> Vec<String> {
        let mut wrong = Vec::new();
        for (resource, amount) in pod.requests.iter().filter(|&(_, amount)| amount > 0) {
            let here = self.everybody.iter().filter(|other| other.node == pod.node);
            let asked: i128 = here.map(|other| i128::from(other.requests.get(resource.name()))).sum();
            let there = node.allocatable.get(resource.name());
            if asked > i128::from(there) {
                wrong.push(format!(
                    "{} has {there} {resource} and {asked} are asked ({amount} by {})",
                    node.name, pod.key
                ));
            }
        }
        wrong
    }

    fn ports(&self, pod: &Pod, node: &Node) -> Option<String> {
        let here = self.everybody.iter().filter(|other| other.node == pod.node && other.key != pod.key);
        let mut taken = here.flat_map(|other| &other.ports);
        let clash = taken.any(|taken| pod.ports.iter().any(|port| port.conflicts(taken)));
        clash.then(|| format!("a port of {} is taken on {}", pod.key, node.name))
    }

    /// The pod's own terms against all other pods, and their terms against the pod.
    fn anti_affinity(&self, pod: &Pod) -> Vec<String> {
        let mut wrong = Vec::new();
        for other in self.everybody.iter().filter(|other| other.key != pod.key) {
            for (owner, subject) in [(pod, *other), (*other, pod)] {
                for term in &owner.inter_pod.anti_affinity {
                    let domain = self.domain(owner, &term.topology_key);
                    if domain.is_some()
                        && domain == self.domain(subject, &term.topology_key)
                        && matches(term, subject)
                    {
                        wrong.push(format!("{} does not want {} near", owner.key, subject.key));
                    }
                }
            }
        }
        wrong
    }

    fn affinity(&self, pod: &Pod) -> Option<String> {
        let terms = &pod.inter_pod.affinity;
        if terms.is_empty() {
            return None;
        }
        if terms.iter().any(|term| self.domain(pod, &term.topology_key).is_none()) {
            return Some(format!("{} needs a node with its topology labels", pod.key));
        }
        // Kubernetes counts a pod only if it matches every term.
        let counts = |other: &&&Pod| other.key != pod.key && terms.iter().all(|term| matches(term, other));
        let others: Vec<&&Pod> = self.everybody.iter().filter(counts).collect();
        let near = |term: &PodTerm| {
            let domain = self.domain(pod, &term.topology_key);
            others.iter().any(|other| self.domain(other, &term.topology_key) == domain)
        };
        if terms.iter().all(near) {
            return None;
        }
        let labelled =
            |other: &&&Pod| terms.iter().any(|term| self.domain(other, &term.topology_key).is_some());
        let is_first = terms.iter().all(|term| matches(term, pod)) && !others.iter().any(labelled);
        (!is_first).then(|| format!("{} has not near what it wants", pod.key))
    }

    fn spread(&self, pod: &Pod, constraint: &SpreadConstraint) -> Option<String> {
        let takes_part = |node: &&Node| {
            let labelled = |other: &SpreadConstraint| node.labels.get(&other.topology_key).is_some();
            pod.inter_pod.spread.iter().all(labelled)
                && (!constraint.honors_affinity || pod.affinity.matches(&node.name, &node.labels))
                && (!constraint.honors_taints || untolerated(&node.taints, &pod.tolerations).is_none())
        };
        let own = self.node_of(pod)?;
        if !takes_part(&own) {
            return Some(format!("{} cannot be spread on {}", pod.key, own.name));
        }
        let mut counts: FxHashMap<&str, u32> = FxHashMap::default();
        for node in self.nodes.iter().filter(takes_part) {
            if let Some(domain) = node.labels.get(&constraint.topology_key) {
                counts.entry(domain).or_default();
            }
        }
        let selected = |other: &&&Pod| {
            let selects = constraint.labels.as_ref().is_some_and(|selector| selector.matches(&other.labels));
            other.key.namespace == pod.key.namespace && !other.terminating && selects
        };
        for other in self.everybody.iter().filter(selected) {
            if let Some(node) = self.node_of(other).filter(takes_part)
                && let Some(domain) = node.labels.get(&constraint.topology_key)
            {
                *counts.entry(domain).or_default() += 1;
            }
        }
        let too_few = constraint.min_domains.is_some_and(|min| counts.len() < min.get() as usize);
        let floor = if too_few { 0 } else { counts.values().copied().min().unwrap_or(0) };
        let here = own.labels.get(&constraint.topology_key).and_then(|domain| counts.get(domain)).copied();
        let skew = here.unwrap_or(0) - floor;
        (skew > constraint.max_skew.get()).then(|| {
            format!("{} is where {skew} more are than elsewhere ({} placed)", pod.key, self.placed.len())
        })
    }
}

fn matches(term: &PodTerm, pod: &Pod) -> bool {
    term.pods.matches(&pod.key.namespace, &Labels::default(), &pod.labels)
}
