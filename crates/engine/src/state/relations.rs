//! What pods have to do with each other: domains, selectors and their counts, host ports, labels of namespaces.

use crate::state::counts::{Candidate, Counts, SelectorId, Strength};
use crate::state::hierarchy::Hierarchies;
use crate::state::nodes::NodeId;
use crate::state::shape::Shape;
use crate::state::topology::Topology;
use rustc_hash::FxHashMap;
use tutti_model::{HostPort, Labels, Node, ObjectKey, Text};

/// The tables behind terms about other pods.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relations {
    pub(crate) topology: Topology,
    /// Domains that groups and composites ask for.
    pub(crate) hierarchies: Hierarchies,
    pub(crate) counts: Counts,
    /// Ports in use by node; only nodes where a pod uses one.
    pub(crate) ports: FxHashMap<NodeId, Vec<HostPort>>,
    pub(super) namespaces: FxHashMap<Text, Labels>,
    no_labels: Labels,
}

impl Relations {
    fn candidate<'a>(&'a self, key: &'a ObjectKey, labels: &'a Labels) -> Candidate<'a> {
        let namespace_labels = self.namespace_labels(&key.namespace);
        Candidate { namespace: &key.namespace, namespace_labels, labels }
    }

    /// The labels of a namespace; none if it was not seen.
    pub(super) fn namespace_labels(&self, name: &Text) -> &Labels {
        self.namespaces.get(name).unwrap_or(&self.no_labels)
    }

    /// Takes in the labels of a namespace; tells whether they are news.
    pub(super) fn set_namespace(&mut self, name: &Text, labels: Labels) -> bool {
        if *self.namespace_labels(name) == labels {
            return false;
        }
        // An unseen namespace has no labels, so one that has none need not be remembered.
        if labels.is_empty() {
            self.namespaces.remove(name);
        } else {
            self.namespaces.insert(name.clone(), labels);
        }
        true
    }

    /// All selectors that match a pod.
    pub(crate) fn matching(&self, key: &ObjectKey, labels: &Labels) -> Vec<SelectorId> {
        self.counts.matching(&self.candidate(key, labels))
    }

    /// Counts a pod on a node, or no longer. `lasting` is false for a pod that is being deleted.
    pub(super) fn shift(&mut self, shape: &Shape, node: NodeId, lasting: bool, add: bool) {
        for &selector in &shape.matches {
            self.counts.shift_matched(selector, node, lasting, add, &self.topology);
        }
        for &(selector, key) in &shape.inter_pod.anti_affinity {
            self.counts.shift_owner(selector, key, node, add, &self.topology);
        }
        for &(selector, key, weight) in &shape.inter_pod.preferred.pulls {
            self.counts.shift_pull(selector, key, node, Strength::Preferred(weight), add);
        }
        for &(selector, key) in &shape.inter_pod.preferred.required {
            self.counts.shift_pull(selector, key, node, Strength::Required, add);
        }
        if shape.ports.is_empty() {
            return;
        }
        let used = self.ports.entry(node).or_default();
        for port in &shape.ports {
            if add {
                used.push(port.clone());
            } else if let Some(at) = used.iter().position(|other| other == port) {
                used.swap_remove(at);
            }
        }
        if used.is_empty() {
            self.ports.remove(&node);
        }
    }

    /// Takes in the labels of a node.
    pub(super) fn set_node(&mut self, id: NodeId, node: Option<&Node>) {
        for (key, from, to) in self.topology.set_node(id, node) {
            self.counts.move_node(id, key, from, to);
        }
        self.hierarchies.set_node(id, node);
    }
}
