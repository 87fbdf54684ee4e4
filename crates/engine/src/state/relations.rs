//! What pods have to do with each other, kept up to date as pods, nodes and namespaces come and go.
//!
//! A term names its selector. A new selector looks once at the pods that it could select; from then on every pod that
//! comes looks at the live selectors that could select it. The selectors that match a pod are part of its shape.

use crate::engine::Engine;
use crate::state::counts::{Candidate, Counts, SelectorId, Strength};
use crate::state::hierarchy::Hierarchies;
use crate::state::nodes::NodeId;
use crate::state::shape::{InterPodTerms, PreferredSpread, PreferredTerms, Shape, SpreadTerm};
use crate::state::topology::{KeyId, Topology};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tutti_model::{HostPort, LabelSelector, Labels, Node, ObjectKey, Pod, PodSelector, PodTerm, Text, Time};

/// The label that kubelets give every node with its own name.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// How pods are spread that do not say how: kube-scheduler's own default, as key and allowed skew.
const DEFAULT_SPREAD: [(&str, u32); 2] = [(HOSTNAME, 3), ("topology.kubernetes.io/zone", 5)];

/// The tables behind inter-pod terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relations {
    pub(crate) topology: Topology,
    /// Domains that groups and composites ask for.
    pub(crate) hierarchies: Hierarchies,
    pub(crate) counts: Counts,
    /// Ports in use by node; only nodes where somebody uses one.
    pub(crate) ports: FxHashMap<NodeId, Vec<HostPort>>,
    namespaces: FxHashMap<Text, Labels>,
    no_labels: Labels,
}

impl Relations {
    fn candidate<'a>(&'a self, key: &'a ObjectKey, labels: &'a Labels) -> Candidate<'a> {
        let namespace_labels = self.namespace_labels(&key.namespace);
        Candidate { namespace: &key.namespace, namespace_labels, labels }
    }

    /// The labels of a namespace; none if it was not seen.
    pub(crate) fn namespace_labels(&self, name: &Text) -> &Labels {
        self.namespaces.get(name).unwrap_or(&self.no_labels)
    }

    /// Takes in the labels of a namespace; tells whether they are news.
    fn set_namespace(&mut self, name: &Text, labels: Labels) -> bool {
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
    pub(crate) fn shift(&mut self, shape: &Shape, node: NodeId, lasting: bool, add: bool) {
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
    pub(crate) fn set_node(&mut self, id: NodeId, node: Option<&Node>) {
        for (key, from, to) in self.topology.set_node(id, node) {
            self.counts.move_node(id, key, from, to);
        }
        self.hierarchies.set_node(id, node);
    }
}

impl Engine {
    /// Makes the selectors of a pod's terms live.
    pub(crate) fn acquire_terms(&mut self, pod: &Pod, now: Time) -> InterPodTerms {
        let mut inter_pod =
            InterPodTerms { preferred: self.acquire_preferred(pod, now), ..InterPodTerms::default() };
        if pod.inter_pod.is_empty() {
            return inter_pod;
        }
        let key = Self::acquire_key;
        if !pod.inter_pod.affinity.is_empty() {
            let mut selectors: Vec<PodSelector> =
                pod.inter_pod.affinity.iter().map(|term| term.pods.clone()).collect();
            selectors.sort_unstable();
            selectors.dedup();
            let mut names: Vec<&Text> =
                pod.inter_pod.affinity.iter().map(|term| &term.topology_key).collect();
            names.sort_unstable();
            names.dedup();
            let keys = names.into_iter().map(|name| key(self, name)).collect();
            inter_pod.affinity = Some((self.acquire_selector(&selectors, true, now), keys));
        }
        for term in &pod.inter_pod.anti_affinity {
            let key = key(self, &term.topology_key);
            inter_pod
                .anti_affinity
                .push((self.acquire_selector(std::slice::from_ref(&term.pods), true, now), key));
        }
        for spread in &pod.inter_pod.spread {
            let key = key(self, &spread.topology_key);
            let selector = PodSelector::in_namespace(&pod.key.namespace, spread.labels.clone());
            inter_pod.spread.push(SpreadTerm {
                selector: self.acquire_selector(&[selector], true, now),
                key,
                max_skew: spread.max_skew.get(),
                min_domains: spread.min_domains.map_or(0, std::num::NonZeroU32::get),
                honors_affinity: spread.honors_affinity,
                honors_taints: spread.honors_taints,
            });
        }
        for (selector, key) in inter_pod.pairs() {
            let Relations { counts, topology, .. } = &mut self.relations;
            counts.use_key(selector, key, topology);
        }
        inter_pod
    }

    /// The same for terms that need not be fulfilled.
    fn acquire_preferred(&mut self, pod: &Pod, now: Time) -> PreferredTerms {
        let mut preferred = PreferredTerms::default();
        if pod.preferences.ignores_pods() && pod.inter_pod.affinity.is_empty() {
            return preferred;
        }
        let term = |engine: &mut Self, term: &PodTerm| {
            let key = engine.acquire_key(&term.topology_key);
            (engine.acquire_selector(std::slice::from_ref(&term.pods), false, now), key)
        };
        for (list, sign) in [(&pod.preferences.affinity, 1), (&pod.preferences.anti_affinity, -1)] {
            for preference in list {
                let (selector, key) = term(self, &preference.term);
                preferred.pulls.push((selector, key, sign * preference.weight.get()));
            }
        }
        for required in &pod.inter_pod.affinity {
            preferred.required.push(term(self, required));
        }
        for spread in &pod.preferences.spread {
            let key = self.acquire_key(&spread.topology_key);
            // As upstream counts: a selector without conditions counts nobody.
            let labels = spread.labels.clone().filter(|labels| !labels.is_empty());
            let selector = PodSelector::in_namespace(&pod.key.namespace, labels);
            preferred.spread.push(PreferredSpread {
                selector: self.acquire_selector(&[selector], false, now),
                key,
                max_skew: spread.max_skew.get(),
                is_hostname: spread.topology_key.as_ref() == HOSTNAME,
                honors_affinity: spread.honors_affinity,
                honors_taints: spread.honors_taints,
            });
        }
        if let Some(labels) = self.spread_by_default(pod) {
            preferred.spread_by_default = true;
            for (name, max_skew) in DEFAULT_SPREAD {
                let key = self.acquire_key(&Text::from(name));
                let selector = PodSelector::in_namespace(&pod.key.namespace, Some(labels.clone()));
                preferred.spread.push(PreferredSpread {
                    selector: self.acquire_selector(&[selector], false, now),
                    key,
                    max_skew,
                    is_hostname: name == HOSTNAME,
                    honors_affinity: true,
                    honors_taints: false,
                });
            }
        }
        // In one order, so that pods that wish the same share a shape.
        preferred.pulls.sort_unstable();
        preferred.required.sort_unstable();
        preferred.spread.sort_unstable();
        preferred
    }

    /// Which pods a pod is to be spread with although it does not say so. Members of groups are not: groups fill nodes
    /// up.
    fn spread_by_default<'a>(&self, pod: &'a Pod) -> Option<&'a LabelSelector> {
        let says_how = !pod.inter_pod.spread.is_empty() || !pod.preferences.spread.is_empty();
        let (_, profile) = self.profile_of(&pod.scheduler_name);
        if says_how || pod.group.is_some() || !profile.is_some_and(|profile| profile.spreads_by_default) {
            return None;
        }
        pod.preferences.like.as_deref().filter(|labels| !labels.is_empty())
    }

    fn acquire_key(&mut self, name: &Text) -> KeyId {
        self.relations.topology.acquire(name, &self.nodes)
    }

    /// Lets go of the selectors of a pod's terms.
    pub(crate) fn release_terms(&mut self, inter_pod: &InterPodTerms, now: Time) {
        for (selector, key) in inter_pod.pairs() {
            self.relations.counts.drop_key(selector, key);
            self.relations.topology.release(key);
        }
        for (_, key) in inter_pod.preferred.pairs() {
            self.relations.topology.release(key);
        }
        let affinity = inter_pod.affinity.iter().map(|(selector, _)| *selector);
        let anti_affinity = inter_pod.anti_affinity.iter().map(|(selector, _)| *selector);
        let spread = inter_pod.spread.iter().map(|spread| spread.selector);
        let binding = affinity.chain(anti_affinity).chain(spread).map(|selector| (selector, true));
        let preferred = inter_pod.preferred.pairs().map(|(selector, _)| (selector, false));
        for (selector, is_binding) in binding.chain(preferred) {
            if let Some(gone) = self.relations.counts.release(selector, is_binding) {
                for pod in self.selected_by(&gone) {
                    self.rematch(&pod, selector, false, now);
                }
            }
        }
    }

    /// Takes in the labels of a namespace.
    pub(crate) fn set_namespace(&mut self, name: &Text, labels: Labels, now: Time) {
        if !self.relations.set_namespace(name, labels) || !self.relations.counts.looks_at_namespaces() {
            return;
        }
        for pod in self.pods.by_labels().in_namespace(name) {
            let Some(row) = self.pods.pod(&pod) else { continue };
            let before = self.shapes.get(row.shape).matches.clone();
            let after = self.relations.matching(&pod, &row.labels);
            for &selector in before.iter().filter(|selector| !after.contains(selector)) {
                self.rematch(&pod, selector, false, now);
            }
            for &selector in after.iter().filter(|selector| !before.contains(selector)) {
                self.rematch(&pod, selector, true, now);
            }
        }
    }

    /// Pods that a selector selects.
    fn selected_by(&self, selectors: &[PodSelector]) -> BTreeSet<ObjectKey> {
        self.pods.by_labels().selected(selectors, |namespace| self.relations.namespace_labels(namespace))
    }

    fn acquire_selector(&mut self, selectors: &[PodSelector], is_binding: bool, now: Time) -> SelectorId {
        let (id, is_new) = self.relations.counts.acquire(selectors, is_binding);
        if is_new {
            for pod in self.selected_by(selectors) {
                self.rematch(&pod, id, true, now);
            }
        }
        id
    }

    /// Takes in that a pod is matched by one more selector, or one less: another shape, other counts.
    fn rematch(&mut self, pod: &ObjectKey, selector: SelectorId, matches: bool, now: Time) {
        let Some(row) = self.pods.pod(pod).cloned() else {
            return;
        };
        let mut all = self.shapes.get(row.shape).matches.clone();
        match (all.binary_search(&selector), matches) {
            (Err(at), true) => all.insert(at, selector),
            (Ok(at), false) => {
                all.remove(at);
            }
            _ => return,
        }
        let (shape, is_new) = self.shapes.acquire_with_matches(row.shape, all);
        if is_new {
            self.nodes.images_mut().retain(&self.shapes.get(shape).images);
        }
        if let Some(node) = row.node() {
            let Relations { counts, topology, .. } = &mut self.relations;
            counts.shift_matched(selector, node, !row.terminating, matches, topology);
            self.wake_by_selector(selector, now);
        }
        self.pods.reshape(pod, shape);
        if row.wants_seat() {
            // Before the old shape goes: the unit may sleep on it.
            self.touch(&self.pods.unit_of(pod, &row), now);
        }
        self.release_shape(row.shape);
    }
}
