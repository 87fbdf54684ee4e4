//! What pods have to do with each other, kept up to date as pods, nodes and namespaces come and go.
//!
//! A wish names its matcher; a new matcher looks at every pod once, and from then on every pod looks at every
//! live matcher when it comes. The matchers that match a pod are part of its shape.

use crate::counts::{Candidate, Counts, MatcherId, Strength};
use crate::engine::Engine;
use crate::hierarchy::Hierarchies;
use crate::nodes::NodeId;
use crate::pods::PodRow;
use crate::shape::{Even, Shape, ShapeId, Soft, SoftEven, Wishes};
use crate::topology::{KeyId, Topology};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use tutti_model::{HostPort, LabelSelector, Labels, Node, ObjectKey, Pod, PodSelector, PodTerm, Text, Time};

/// The label that kubelets give every node with its own name.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// How pods are spread that do not say how: kube-scheduler's own default, as key and allowed skew.
const DEFAULT_SPREAD: [(&str, u32); 2] = [(HOSTNAME, 3), ("topology.kubernetes.io/zone", 5)];

/// The tables behind wishes.
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
        let namespace_labels = self.namespaces.get(&key.namespace).unwrap_or(&self.no_labels);
        Candidate { namespace: &key.namespace, namespace_labels, labels }
    }

    /// All matchers that match a pod.
    pub(crate) fn matching(&self, key: &ObjectKey, labels: &Labels) -> Vec<MatcherId> {
        self.counts.matching(&self.candidate(key, labels))
    }

    /// Counts a pod on a node, or no longer. `lasting` is false for a pod that is being deleted.
    pub(crate) fn shift(&mut self, shape: &Shape, node: NodeId, lasting: bool, add: bool) {
        for &matcher in &shape.matches {
            self.counts.shift_matched(matcher, node, lasting, add, &self.topology);
        }
        for &(matcher, key) in &shape.wishes.apart {
            self.counts.shift_owner(matcher, key, node, add, &self.topology);
        }
        for &(matcher, key, weight) in &shape.wishes.soft.pulls {
            self.counts.shift_pull(matcher, key, node, Strength::Preferred(weight), add);
        }
        for &(matcher, key) in &shape.wishes.soft.required {
            self.counts.shift_pull(matcher, key, node, Strength::Required, add);
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
    /// Makes the matchers of a pod's wishes live.
    pub(crate) fn acquire_wishes(&mut self, pod: &Pod, now: Time) -> Wishes {
        let mut wishes = Wishes { soft: self.acquire_soft(pod, now), ..Wishes::default() };
        if pod.inter_pod.is_empty() {
            return wishes;
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
            wishes.near = Some((self.acquire_matcher(&selectors, true, now), keys));
        }
        for term in &pod.inter_pod.anti_affinity {
            let key = key(self, &term.topology_key);
            wishes.apart.push((self.acquire_matcher(std::slice::from_ref(&term.pods), true, now), key));
        }
        for spread in &pod.inter_pod.spread {
            let key = key(self, &spread.topology_key);
            let selector = PodSelector::in_namespace(&pod.key.namespace, spread.labels.clone());
            wishes.even.push(Even {
                matcher: self.acquire_matcher(&[selector], true, now),
                key,
                max_skew: spread.max_skew.get(),
                min_domains: spread.min_domains.map_or(0, std::num::NonZeroU32::get),
                honors_affinity: spread.honors_affinity,
                honors_taints: spread.honors_taints,
            });
        }
        for (matcher, key) in wishes.pairs() {
            let Relations { counts, topology, .. } = &mut self.relations;
            counts.use_key(matcher, key, topology);
        }
        wishes
    }

    /// The same for wishes that need not be fulfilled.
    fn acquire_soft(&mut self, pod: &Pod, now: Time) -> Soft {
        let mut soft = Soft::default();
        if pod.preferences.ignores_pods() && pod.inter_pod.affinity.is_empty() {
            return soft;
        }
        let term = |engine: &mut Self, term: &PodTerm| {
            let key = engine.acquire_key(&term.topology_key);
            (engine.acquire_matcher(std::slice::from_ref(&term.pods), false, now), key)
        };
        for (list, sign) in [(&pod.preferences.near, 1), (&pod.preferences.apart, -1)] {
            for preference in list {
                let (matcher, key) = term(self, &preference.wish);
                soft.pulls.push((matcher, key, sign * preference.weight.get()));
            }
        }
        for required in &pod.inter_pod.affinity {
            soft.required.push(term(self, required));
        }
        for spread in &pod.preferences.spread {
            let key = self.acquire_key(&spread.topology_key);
            // As upstream counts: a selector without conditions counts nobody.
            let labels = spread.labels.clone().filter(|labels| !labels.is_empty());
            let selector = PodSelector::in_namespace(&pod.key.namespace, labels);
            soft.even.push(SoftEven {
                matcher: self.acquire_matcher(&[selector], false, now),
                key,
                max_skew: spread.max_skew.get(),
                is_hostname: spread.topology_key.as_ref() == HOSTNAME,
                honors_affinity: spread.honors_affinity,
                honors_taints: spread.honors_taints,
            });
        }
        if let Some(labels) = self.spread_by_default(pod) {
            soft.even_by_default = true;
            for (name, max_skew) in DEFAULT_SPREAD {
                let key = self.acquire_key(&Text::from(name));
                let selector = PodSelector::in_namespace(&pod.key.namespace, Some(labels.clone()));
                soft.even.push(SoftEven {
                    matcher: self.acquire_matcher(&[selector], false, now),
                    key,
                    max_skew,
                    is_hostname: name == HOSTNAME,
                    honors_affinity: true,
                    honors_taints: false,
                });
            }
        }
        // In one order, so that pods that wish the same share a shape.
        soft.pulls.sort_unstable();
        soft.required.sort_unstable();
        soft.even.sort_unstable();
        soft
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

    /// Lets go of the matchers of a pod's wishes.
    pub(crate) fn release_wishes(&mut self, wishes: &Wishes, now: Time) {
        for (matcher, key) in wishes.pairs() {
            self.relations.counts.drop_key(matcher, key);
            self.relations.topology.release(key);
        }
        for (_, key) in wishes.soft.pairs() {
            self.relations.topology.release(key);
        }
        let near = wishes.near.iter().map(|(matcher, _)| *matcher);
        let apart = wishes.apart.iter().map(|(matcher, _)| *matcher);
        let even = wishes.even.iter().map(|even| even.matcher);
        let binding = near.chain(apart).chain(even).map(|matcher| (matcher, true));
        let soft = wishes.soft.pairs().map(|(matcher, _)| (matcher, false));
        for (matcher, is_binding) in binding.chain(soft) {
            for pod in self.relations.counts.release(matcher, is_binding).unwrap_or_default() {
                self.rematch(&pod, matcher, false, now);
            }
        }
    }

    /// Takes in the labels of a namespace.
    pub(crate) fn set_namespace(&mut self, name: &Text, labels: Labels, now: Time) {
        let before = self.relations.namespaces.get(name).unwrap_or(&self.relations.no_labels);
        if *before == labels {
            return;
        }
        self.relations.namespaces.insert(name.clone(), labels);
        if !self.relations.counts.looks_at_namespaces() {
            return;
        }
        let in_namespace = |(key, _): &(&ObjectKey, &PodRow)| key.namespace == *name;
        let pods: BTreeSet<ObjectKey> =
            self.pods.iter().filter(in_namespace).map(|(key, _)| key.clone()).collect();
        for pod in pods {
            let Some(row) = self.pods.pod(&pod) else { continue };
            let before = self.shapes.get(row.shape).matches.clone();
            let after = self.relations.matching(&pod, &row.labels);
            for &matcher in before.iter().filter(|matcher| !after.contains(matcher)) {
                self.rematch(&pod, matcher, false, now);
            }
            for &matcher in after.iter().filter(|matcher| !before.contains(matcher)) {
                self.rematch(&pod, matcher, true, now);
            }
        }
    }

    fn acquire_matcher(&mut self, selectors: &[PodSelector], is_binding: bool, now: Time) -> MatcherId {
        let (id, is_new) = self.relations.counts.acquire(selectors, is_binding);
        if is_new {
            let matches = |(key, row): &(&ObjectKey, &PodRow)| {
                self.relations.counts.matches(id, &self.relations.candidate(key, &row.labels))
            };
            let pods: BTreeSet<ObjectKey> =
                self.pods.iter().filter(matches).map(|(key, _)| key.clone()).collect();
            for pod in pods {
                self.rematch(&pod, id, true, now);
            }
        }
        id
    }

    /// Takes in that a pod is matched by one more matcher, or one less: another shape, other counts.
    fn rematch(&mut self, pod: &ObjectKey, matcher: MatcherId, matches: bool, now: Time) {
        let Some(row) = self.pods.pod(pod).cloned() else {
            return;
        };
        let mut all = self.shapes.get(row.shape).matches.clone();
        match (all.binary_search(&matcher), matches) {
            (Err(at), true) => all.insert(at, matcher),
            (Ok(at), false) => {
                all.remove(at);
            }
            _ => return,
        }
        let (shape, is_new) = self.shapes.acquire_with_matches(row.shape, all);
        if is_new {
            self.nodes.images_mut().retain(&self.shapes.get(shape).images);
        }
        self.relations.counts.set_member(matcher, pod, matches);
        if let Some(node) = row.node() {
            let Relations { counts, topology, .. } = &mut self.relations;
            counts.shift_matched(matcher, node, !row.terminating, matches, topology);
        }
        self.pods.reshape(pod, shape);
        if row.wants_seat() {
            // Before the old shape goes: the unit may sleep on it.
            self.touch(&self.pods.unit_of(pod, &row), now);
        }
        self.release_shape(row.shape);
    }

    /// Remembers who matches what when a pod comes, changes or goes.
    pub(crate) fn set_memberships(
        &mut self,
        pod: &ObjectKey,
        before: Option<ShapeId>,
        after: Option<ShapeId>,
    ) {
        let matches = |shape: Option<ShapeId>| shape.map(|id| Arc::clone(self.shapes.get(id)));
        let (before, after) = (matches(before), matches(after));
        let (before, after) = (
            before.as_ref().map_or(&[][..], |shape| &shape.matches),
            after.as_ref().map_or(&[][..], |shape| &shape.matches),
        );
        for &matcher in before.iter().filter(|matcher| !after.contains(matcher)) {
            self.relations.counts.set_member(matcher, pod, false);
        }
        for &matcher in after.iter().filter(|matcher| !before.contains(matcher)) {
            self.relations.counts.set_member(matcher, pod, true);
        }
    }
}
