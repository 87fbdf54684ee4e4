//! What pods require and prefer of each other, made part of their shapes as pods and namespaces come and go.
//!
//! A term names its selector. A new selector looks once at the pods that it could select; from then on every pod that
//! comes looks at the live selectors that could select it. The selectors that match a pod are part of its shape.

use super::State;
use super::changes::Change;
use super::counts::SelectorId;
use super::relations::Relations;
use super::shape::{InterPodTerms, PreferredSpread, PreferredTerms, SpreadTerm};
use super::topology::KeyId;
use std::collections::BTreeSet;
use tutti_model::{LabelSelector, Labels, ObjectKey, Pod, PodSelector, PodTerm, Text};

/// The label that kubelets give every node with its own name.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// How pods are spread that do not say how: kube-scheduler's own default, as key and allowed skew.
const DEFAULT_SPREAD: [(&str, u32); 2] = [(HOSTNAME, 3), ("topology.kubernetes.io/zone", 5)];

impl State {
    /// Makes the selectors of a pod's terms live.
    pub(crate) fn acquire_terms(&mut self, pod: &Pod) -> InterPodTerms {
        let mut inter_pod =
            InterPodTerms { preferred: self.acquire_preferred(pod), ..InterPodTerms::default() };
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
            inter_pod.affinity = Some((self.acquire_selector(&selectors, true), keys));
        }
        for term in &pod.inter_pod.anti_affinity {
            let key = key(self, &term.topology_key);
            inter_pod
                .anti_affinity
                .push((self.acquire_selector(std::slice::from_ref(&term.pods), true), key));
        }
        for spread in &pod.inter_pod.spread {
            let key = key(self, &spread.topology_key);
            let selector = PodSelector::in_namespace(&pod.key.namespace, spread.labels.clone());
            inter_pod.spread.push(SpreadTerm {
                selector: self.acquire_selector(&[selector], true),
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

    /// The same for terms that are only preferred.
    fn acquire_preferred(&mut self, pod: &Pod) -> PreferredTerms {
        let mut preferred = PreferredTerms::default();
        if pod.preferences.ignores_pods() && pod.inter_pod.affinity.is_empty() {
            return preferred;
        }
        let term = |state: &mut Self, term: &PodTerm| {
            let key = state.acquire_key(&term.topology_key);
            (state.acquire_selector(std::slice::from_ref(&term.pods), false), key)
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
                selector: self.acquire_selector(&[selector], false),
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
                    selector: self.acquire_selector(&[selector], false),
                    key,
                    max_skew,
                    is_hostname: name == HOSTNAME,
                    honors_affinity: true,
                    honors_taints: false,
                });
            }
        }
        // In one order, so that pods that prefer the same share a shape.
        preferred.pulls.sort_unstable();
        preferred.required.sort_unstable();
        preferred.spread.sort_unstable();
        preferred
    }

    /// Which pods a pod is to be spread with although it does not say so. Members of groups are not: groups fill nodes
    /// up.
    fn spread_by_default<'a>(&self, pod: &'a Pod) -> Option<&'a LabelSelector> {
        let says_how = !pod.inter_pod.spread.is_empty() || !pod.preferences.spread.is_empty();
        let (_, profile) = self.profiles.of(&pod.scheduler_name);
        if says_how || pod.group.is_some() || !profile.is_some_and(|profile| profile.spreads_by_default) {
            return None;
        }
        pod.preferences.like.as_deref().filter(|labels| !labels.is_empty())
    }

    fn acquire_key(&mut self, name: &Text) -> KeyId {
        self.relations.topology.acquire(name, &self.nodes)
    }

    /// Lets go of the selectors of a pod's terms.
    pub(crate) fn release_terms(&mut self, inter_pod: &InterPodTerms) {
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
                    self.rematch(&pod, selector, false);
                }
            }
        }
    }

    /// Takes in the labels of a namespace.
    pub(crate) fn set_namespace(&mut self, name: &Text, labels: Labels) {
        if !self.relations.set_namespace(name, labels) || !self.relations.counts.looks_at_namespaces() {
            return;
        }
        for pod in self.pods.by_labels().in_namespace(name) {
            let Some(row) = self.pods.pod(&pod) else { continue };
            let before = self.shapes.get(row.shape).matches.clone();
            let after = self.relations.matching(&pod, &row.labels);
            for &selector in before.iter().filter(|selector| !after.contains(selector)) {
                self.rematch(&pod, selector, false);
            }
            for &selector in after.iter().filter(|selector| !before.contains(selector)) {
                self.rematch(&pod, selector, true);
            }
        }
    }

    /// Pods that a selector selects.
    fn selected_by(&self, selectors: &[PodSelector]) -> BTreeSet<ObjectKey> {
        self.pods.by_labels().selected(selectors, |namespace| self.relations.namespace_labels(namespace))
    }

    fn acquire_selector(&mut self, selectors: &[PodSelector], is_binding: bool) -> SelectorId {
        let (id, is_new) = self.relations.counts.acquire(selectors, is_binding);
        if is_new {
            for pod in self.selected_by(selectors) {
                self.rematch(&pod, id, true);
            }
        }
        id
    }

    /// Takes in that a pod is matched by one more selector, or one less: another shape, other counts.
    fn rematch(&mut self, pod: &ObjectKey, selector: SelectorId, matches: bool) {
        let Some(row) = self.pods.pod(pod).cloned() else { return };
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
        }
        self.pods.reshape(pod, shape);
        if row.node().is_some() {
            self.changes.push(Change::Selector(selector));
        }
        if row.wants_seat() {
            self.note_unit(&self.pods.unit_of(pod, &row));
        }
        self.release_shape(row.shape);
    }
}
