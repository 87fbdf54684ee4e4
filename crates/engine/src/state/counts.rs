//! Who is matched by whose wishes, and how many of them are where.
//!
//! A *matcher* is the "which pods" of a wish. It lives while some pod carries the wish. For every live matcher the
//! engine knows which pods match, how many of them sit on each node and, for the topology keys it is used with, in
//! each domain. A second tally counts the owners of anti-affinity wishes, because those keep others away.

use crate::state::nodes::NodeId;
use crate::state::topology::{DomainId, KeyId, Topology};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tutti_model::{ObjectKey, PodSelector, Text};

/// A matcher, as the engine numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SelectorId(u32);

/// How many pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Pods that sit there and match.
    pub(crate) seated: u32,
    /// Those of them that are not being deleted; only they count for spreading.
    pub(crate) lasting: u32,
}

impl Tally {
    fn shift(&mut self, other: Self, add: bool) {
        if add {
            self.add(other);
        } else {
            self.subtract(other);
        }
    }

    fn add(&mut self, other: Self) {
        self.seated += other.seated;
        self.lasting += other.lasting;
    }

    fn subtract(&mut self, other: Self) {
        self.seated -= other.seated;
        self.lasting -= other.lasting;
    }
}

/// What pods on a node that wish for matching pods add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pull {
    /// InterPodTerms, of whatever weight.
    owners: u32,
    /// Sum of the weights of preferences, below zero for those that want matching pods away.
    pub(crate) weight: i64,
    /// Required wishes to have matching pods near.
    pub(crate) required: u32,
}

/// How much a wish pulls matching pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    Preferred(i64),
    Required,
}

/// Pods by node, and by domain of one key.
#[derive(Debug, Clone, Default)]
struct Spots {
    by_node: FxHashMap<NodeId, Tally>,
    by_key: FxHashMap<KeyId, (u32, Vec<Tally>)>,
}

impl Spots {
    fn shift(&mut self, node: NodeId, tally: Tally, add: bool, topology: &Topology) {
        let entry = self.by_node.entry(node).or_default();
        entry.shift(tally, add);
        if *entry == Tally::default() {
            self.by_node.remove(&node);
        }
        for (&key, (_, domains)) in &mut self.by_key {
            if let Some(domain) = topology.domain(key, node) {
                let entry = slot(domains, domain);
                entry.shift(tally, add);
            }
        }
    }

    fn use_key(&mut self, key: KeyId, topology: &Topology) {
        let by_node = &self.by_node;
        let (uses, _) = self.by_key.entry(key).or_insert_with(|| {
            let mut domains = Vec::new();
            for (&node, &tally) in by_node {
                if let Some(domain) = topology.domain(key, node) {
                    slot(&mut domains, domain).add(tally);
                }
            }
            (0, domains)
        });
        *uses += 1;
    }

    fn drop_key(&mut self, key: KeyId) {
        if let Some((uses, _)) = self.by_key.get_mut(&key) {
            *uses -= 1;
            if *uses == 0 {
                self.by_key.remove(&key);
            }
        }
    }

    fn move_node(&mut self, node: NodeId, key: KeyId, from: Option<DomainId>, to: Option<DomainId>) {
        let Some(&tally) = self.by_node.get(&node) else {
            return;
        };
        let Some((_, domains)) = self.by_key.get_mut(&key) else {
            return;
        };
        if let Some(from) = from {
            slot(domains, from).subtract(tally);
        }
        if let Some(to) = to {
            slot(domains, to).add(tally);
        }
    }

    fn in_domain(&self, key: KeyId, domain: DomainId) -> Tally {
        self.by_key
            .get(&key)
            .and_then(|(_, domains)| domains.get(domain.index()))
            .copied()
            .unwrap_or_default()
    }
}

fn slot(domains: &mut Vec<Tally>, domain: DomainId) -> &mut Tally {
    if domains.len() <= domain.index() {
        domains.resize(domain.index() + 1, Tally::default());
    }
    &mut domains[domain.index()]
}

#[derive(Debug, Clone)]
struct Selector {
    /// All must match. Kubernetes counts a pod for affinity only if it matches every term.
    selectors: Vec<PodSelector>,
    uses: u32,
    members: BTreeSet<ObjectKey>,
    matched: Spots,
    /// Pods that keep matching pods away from their domain; the key belongs to the wish.
    owners: FxHashMap<KeyId, Spots>,
    /// Pods that would like matching pods near or away; they never decide whether a placement is valid.
    pulls: FxHashMap<KeyId, FxHashMap<NodeId, Pull>>,
    /// Uses that decide whether a placement is valid.
    binding_uses: u32,
}

/// All live matchers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    selectors: Vec<Option<Selector>>,
    ids: FxHashMap<Vec<PodSelector>, SelectorId>,
}

/// What decides whether a pod matches.
pub(crate) struct Candidate<'a> {
    pub(crate) namespace: &'a Text,
    pub(crate) namespace_labels: &'a tutti_model::Labels,
    pub(crate) labels: &'a tutti_model::Labels,
}

impl Counts {
    /// The number of a matcher, counted as used once more, and whether it is new and knows no pods yet. A use is
    /// binding if it decides whether a placement is valid.
    pub(crate) fn acquire(&mut self, selectors: &[PodSelector], is_binding: bool) -> (SelectorId, bool) {
        if let Some(&id) = self.ids.get(selectors) {
            if let Some(selector) = &mut self.selectors[id.0 as usize] {
                selector.uses += 1;
                selector.binding_uses += u32::from(is_binding);
            }
            return (id, false);
        }
        let at = self.selectors.iter().position(Option::is_none).unwrap_or(self.selectors.len());
        if at == self.selectors.len() {
            self.selectors.push(None);
        }
        self.selectors[at] = Some(Selector {
            selectors: selectors.to_vec(),
            uses: 1,
            members: BTreeSet::new(),
            matched: Spots::default(),
            owners: FxHashMap::default(),
            pulls: FxHashMap::default(),
            binding_uses: u32::from(is_binding),
        });
        let id = SelectorId(at as u32);
        self.ids.insert(selectors.to_vec(), id);
        (id, true)
    }

    /// Gives back one use. After the last one the pods that matched are returned: they no longer do.
    pub(crate) fn release(&mut self, id: SelectorId, is_binding: bool) -> Option<BTreeSet<ObjectKey>> {
        let slot = &mut self.selectors[id.0 as usize];
        let selector = slot.as_mut()?;
        selector.uses -= 1;
        selector.binding_uses -= u32::from(is_binding);
        if selector.uses > 0 {
            return None;
        }
        let selector = slot.take()?;
        self.ids.remove(&selector.selectors);
        Some(selector.members)
    }

    /// Has this matcher count by domains of this key.
    pub(crate) fn use_key(&mut self, id: SelectorId, key: KeyId, topology: &Topology) {
        if let Some(selector) = self.get_mut(id) {
            selector.matched.use_key(key, topology);
        }
    }

    /// The reverse of [`Counts::use_key`].
    pub(crate) fn drop_key(&mut self, id: SelectorId, key: KeyId) {
        if let Some(selector) = self.get_mut(id) {
            selector.matched.drop_key(key);
        }
    }

    /// True if a pod matches.
    pub(crate) fn matches(&self, id: SelectorId, pod: &Candidate<'_>) -> bool {
        self.get(id).is_some_and(|selector| {
            selector.selectors.iter().all(|s| s.matches(pod.namespace, pod.namespace_labels, pod.labels))
        })
    }

    /// All matchers that a pod matches, by number.
    pub(crate) fn matching(&self, pod: &Candidate<'_>) -> Vec<SelectorId> {
        (0..self.selectors.len() as u32).map(SelectorId).filter(|&id| self.matches(id, pod)).collect()
    }

    /// Remembers that a pod matches, or no longer does.
    pub(crate) fn set_member(&mut self, id: SelectorId, pod: &ObjectKey, matches: bool) {
        if let Some(selector) = self.get_mut(id) {
            if matches {
                selector.members.insert(pod.clone());
            } else {
                selector.members.remove(pod);
            }
        }
    }

    /// Adds or takes away a matching pod on a node.
    pub(crate) fn shift_matched(
        &mut self,
        id: SelectorId,
        node: NodeId,
        lasting: bool,
        add: bool,
        topology: &Topology,
    ) {
        if let Some(selector) = self.get_mut(id) {
            selector.matched.shift(node, Tally { seated: 1, lasting: u32::from(lasting) }, add, topology);
        }
    }

    /// Adds or takes away the owner of an anti-affinity wish on a node.
    pub(crate) fn shift_owner(
        &mut self,
        id: SelectorId,
        key: KeyId,
        node: NodeId,
        add: bool,
        topology: &Topology,
    ) {
        if let Some(selector) = self.get_mut(id) {
            let spots = selector.owners.entry(key).or_insert_with(|| {
                let mut spots = Spots::default();
                spots.use_key(key, topology);
                spots
            });
            spots.shift(node, Tally { seated: 1, lasting: 1 }, add, topology);
            if spots.by_node.is_empty() {
                selector.owners.remove(&key);
            }
        }
    }

    /// Adds or takes away the owner of a wish that only pulls.
    pub(crate) fn shift_pull(
        &mut self,
        id: SelectorId,
        key: KeyId,
        node: NodeId,
        strength: Strength,
        add: bool,
    ) {
        let Some(selector) = self.get_mut(id) else { return };
        let by_node = selector.pulls.entry(key).or_default();
        let pull = by_node.entry(node).or_default();
        let sign = if add { 1 } else { -1 };
        pull.owners = pull.owners.wrapping_add_signed(sign);
        match strength {
            Strength::Preferred(weight) => pull.weight += weight * i64::from(sign),
            Strength::Required => pull.required = pull.required.wrapping_add_signed(sign),
        }
        if pull.owners == 0 {
            by_node.remove(&node);
            if by_node.is_empty() {
                selector.pulls.remove(&key);
            }
        }
    }

    /// Takes in that a node moved between domains.
    pub(crate) fn move_node(
        &mut self,
        node: NodeId,
        key: KeyId,
        from: Option<DomainId>,
        to: Option<DomainId>,
    ) {
        for selector in self.selectors.iter_mut().flatten() {
            selector.matched.move_node(node, key, from, to);
            if let Some(spots) = selector.owners.get_mut(&key) {
                spots.move_node(node, key, from, to);
            }
        }
    }

    /// Matching pods in a domain. The key must be in use with the matcher.
    pub(crate) fn matched_in(&self, id: SelectorId, key: KeyId, domain: DomainId) -> Tally {
        self.get(id).map_or(Tally::default(), |selector| selector.matched.in_domain(key, domain))
    }

    /// Nodes with matching pods, in no meaningful order.
    pub(crate) fn matched_by_node(&self, id: SelectorId) -> impl Iterator<Item = (NodeId, Tally)> {
        self.get(id).into_iter().flat_map(|selector| selector.matched.by_node.iter().map(|(&n, &t)| (n, t)))
    }

    /// Matching pods on a node.
    pub(crate) fn matched_on(&self, id: SelectorId, node: NodeId) -> Tally {
        self.get(id).and_then(|selector| selector.matched.by_node.get(&node)).copied().unwrap_or_default()
    }

    /// True if some pod would like matching pods near or away.
    pub(crate) fn has_pulls(&self, id: SelectorId) -> bool {
        self.get(id).is_some_and(|selector| !selector.pulls.is_empty())
    }

    /// Nodes with pods that would like matching pods near or away, in no meaningful order.
    pub(crate) fn pulls(&self, id: SelectorId) -> impl Iterator<Item = (KeyId, NodeId, Pull)> {
        let by_key = self.get(id).into_iter().flat_map(|selector| &selector.pulls);
        by_key.flat_map(|(&key, by_node)| by_node.iter().map(move |(&node, &pull)| (key, node, pull)))
    }

    /// True if some wish with this matcher decides whether a placement is valid.
    pub(crate) fn is_binding(&self, id: SelectorId) -> bool {
        self.get(id).is_some_and(|selector| selector.binding_uses > 0)
    }

    /// Owners of anti-affinity wishes with this matcher and key in a domain.
    pub(crate) fn owners_in(&self, id: SelectorId, key: KeyId, domain: DomainId) -> u32 {
        let spots = self.get(id).and_then(|selector| selector.owners.get(&key));
        spots.map_or(0, |spots| spots.in_domain(key, domain).seated)
    }

    /// Keys under which seated pods keep matching pods away, in order.
    pub(crate) fn guarded_keys(&self, id: SelectorId) -> Vec<KeyId> {
        let mut keys: Vec<KeyId> =
            self.get(id).into_iter().flat_map(|selector| selector.owners.keys().copied()).collect();
        keys.sort_unstable();
        keys
    }

    /// True if a pod's namespace decides about any live matcher.
    pub(crate) fn looks_at_namespaces(&self) -> bool {
        let by_label =
            |selector: &Selector| selector.selectors.iter().any(|s| s.namespace_selector.is_some());
        self.selectors.iter().flatten().any(by_label)
    }

    /// Every live selector, in no meaningful order.
    pub(super) fn ids(&self) -> impl Iterator<Item = SelectorId> {
        let live = self.selectors.iter().enumerate().filter(|(_, selector)| selector.is_some());
        live.map(|(at, _)| SelectorId(at as u32))
    }

    /// What a live selector says.
    pub(super) fn selectors(&self, id: SelectorId) -> &[PodSelector] {
        self.get(id).map_or(&[], |selector| &selector.selectors)
    }

    /// Nodes with pods that keep matching pods away, in no meaningful order.
    pub(super) fn owners_by_node(&self, id: SelectorId, key: KeyId) -> impl Iterator<Item = (NodeId, Tally)> {
        let spots = self.get(id).and_then(|selector| selector.owners.get(&key));
        spots.into_iter().flat_map(|spots| spots.by_node.iter().map(|(&node, &tally)| (node, tally)))
    }

    fn get(&self, id: SelectorId) -> Option<&Selector> {
        self.selectors.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: SelectorId) -> Option<&mut Selector> {
        self.selectors.get_mut(id.0 as usize)?.as_mut()
    }
}
