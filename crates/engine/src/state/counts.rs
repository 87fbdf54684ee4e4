//! Which pods are selected by inter-pod terms, and how many of them are where.
//!
//! A *selector* is the "which pods" of a term. It lives while some pod carries the term. For every live selector the
//! engine knows how many of the pods that match sit on each node and, for the topology keys it is used with, in each
//! domain. A second tally counts the owners of anti-affinity terms, because those keep others away.

use crate::state::nodes::NodeId;
use crate::state::selector_index::{Entry, SelectorIndex};
use crate::state::topology::{DomainId, KeyId, Topology};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tutti_model::{PodSelector, Text};

/// A selector, as the engine numbers it.
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

/// What the terms of pods on a node that speak of matching pods add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pull {
    /// Terms, of whatever weight.
    owners: u32,
    /// Sum of the weights of preferences, below zero for those that want matching pods away.
    pub(crate) weight: i64,
    /// Required affinity terms.
    pub(crate) required: u32,
}

/// How much a term pulls matching pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    Preferred(i64),
    Required,
}

/// Pods by node, and by domain of the keys in use. Only what is not zero has an entry.
#[derive(Debug, Clone, Default)]
struct Spots {
    by_node: FxHashMap<NodeId, Tally>,
    by_key: FxHashMap<KeyId, ByDomain>,
}

#[derive(Debug, Clone, Default)]
struct ByDomain {
    uses: u32,
    tallies: FxHashMap<DomainId, Tally>,
}

/// What a change of counts means for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The first pod came.
    Occupied,
    /// The last pod left.
    Vacated,
    /// Neither.
    Same,
}

impl Spots {
    fn shift(&mut self, node: NodeId, tally: Tally, add: bool, topology: &Topology) -> Turn {
        let was_occupied = self.by_node.contains_key(&node);
        shift(&mut self.by_node, node, tally, add);
        for (&key, by_domain) in &mut self.by_key {
            if let Some(domain) = topology.domain(key, node) {
                shift(&mut by_domain.tallies, domain, tally, add);
            }
        }
        match (was_occupied, self.by_node.contains_key(&node)) {
            (false, true) => Turn::Occupied,
            (true, false) => Turn::Vacated,
            _ => Turn::Same,
        }
    }

    fn use_key(&mut self, key: KeyId, topology: &Topology) {
        let by_node = &self.by_node;
        let by_domain = self.by_key.entry(key).or_insert_with(|| {
            let mut by_domain = ByDomain::default();
            for (&node, &tally) in by_node {
                if let Some(domain) = topology.domain(key, node) {
                    shift(&mut by_domain.tallies, domain, tally, true);
                }
            }
            by_domain
        });
        by_domain.uses += 1;
    }

    fn drop_key(&mut self, key: KeyId) {
        if let Some(by_domain) = self.by_key.get_mut(&key) {
            by_domain.uses -= 1;
            if by_domain.uses == 0 {
                self.by_key.remove(&key);
            }
        }
    }

    fn move_node(&mut self, node: NodeId, key: KeyId, from: Option<DomainId>, to: Option<DomainId>) {
        let Some(&tally) = self.by_node.get(&node) else {
            return;
        };
        let Some(by_domain) = self.by_key.get_mut(&key) else {
            return;
        };
        if let Some(from) = from {
            shift(&mut by_domain.tallies, from, tally, false);
        }
        if let Some(to) = to {
            shift(&mut by_domain.tallies, to, tally, true);
        }
    }

    fn in_domain(&self, key: KeyId, domain: DomainId) -> Tally {
        let by_domain = self.by_key.get(&key);
        by_domain.and_then(|by_domain| by_domain.tallies.get(&domain)).copied().unwrap_or_default()
    }
}

/// Changes an entry, which is there only while it is not zero.
fn shift<K: Eq + std::hash::Hash + Copy>(tallies: &mut FxHashMap<K, Tally>, at: K, change: Tally, add: bool) {
    let tally = tallies.entry(at).or_default();
    tally.shift(change, add);
    if *tally == Tally::default() {
        tallies.remove(&at);
    }
}

#[derive(Debug, Clone)]
struct Selector {
    /// All must match. Kubernetes counts a pod for affinity only if it matches every term.
    selectors: Arc<[PodSelector]>,
    uses: u32,
    matched: Spots,
    /// Pods that keep matching pods away from their domain; the key belongs to the term.
    owners: FxHashMap<KeyId, Spots>,
    /// Pods that would like matching pods near or away; they never decide whether a placement is valid.
    pulls: FxHashMap<KeyId, FxHashMap<NodeId, Pull>>,
    /// Uses that decide whether a placement is valid.
    binding_uses: u32,
    /// Where the index has it; nowhere if it selects nothing.
    entry: Option<Entry>,
}

/// All live selectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    selectors: Vec<Option<Selector>>,
    vacant: Vec<SelectorId>,
    ids: FxHashMap<Arc<[PodSelector]>, SelectorId>,
    index: SelectorIndex,
    /// By node, sorted: selectors that count something there, and in how many of their tallies.
    on_node: FxHashMap<NodeId, Vec<(SelectorId, u32)>>,
}

/// What decides whether a pod matches.
pub(crate) struct Candidate<'a> {
    pub(crate) namespace: &'a Text,
    pub(crate) namespace_labels: &'a tutti_model::Labels,
    pub(crate) labels: &'a tutti_model::Labels,
}

impl Counts {
    /// The number of a selector, counted as used once more, and whether it is new and has counted no pods yet. A use
    /// is binding if it decides whether a placement is valid.
    pub(crate) fn acquire(&mut self, selectors: &[PodSelector], is_binding: bool) -> (SelectorId, bool) {
        if let Some(&id) = self.ids.get(selectors) {
            if let Some(selector) = &mut self.selectors[id.0 as usize] {
                selector.uses += 1;
                selector.binding_uses += u32::from(is_binding);
            }
            return (id, false);
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.selectors.push(None);
            SelectorId(self.selectors.len() as u32 - 1)
        });
        let selectors: Arc<[PodSelector]> = selectors.into();
        self.selectors[id.0 as usize] = Some(Selector {
            selectors: Arc::clone(&selectors),
            uses: 1,
            matched: Spots::default(),
            owners: FxHashMap::default(),
            pulls: FxHashMap::default(),
            binding_uses: u32::from(is_binding),
            entry: self.index.insert(id, &selectors),
        });
        self.ids.insert(selectors, id);
        (id, true)
    }

    /// Gives back one use. After the last one the selector is gone and returned: pods that matched no longer do.
    pub(crate) fn release(&mut self, id: SelectorId, is_binding: bool) -> Option<Arc<[PodSelector]>> {
        let slot = &mut self.selectors[id.0 as usize];
        let selector = slot.as_mut()?;
        selector.uses -= 1;
        selector.binding_uses -= u32::from(is_binding);
        if selector.uses > 0 {
            return None;
        }
        let selector = slot.take()?;
        self.vacant.push(id);
        self.ids.remove(&selector.selectors);
        if let Some(entry) = &selector.entry {
            self.index.remove(id, entry);
        }
        for spots in selector.owners.values().chain([&selector.matched]) {
            for &node in spots.by_node.keys() {
                self.note_turn(id, node, Turn::Vacated);
            }
        }
        Some(selector.selectors)
    }

    /// Has this selector count by domains of this key.
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

    /// All selectors that a pod matches, by number.
    pub(crate) fn matching(&self, pod: &Candidate<'_>) -> Vec<SelectorId> {
        let mut matching = Vec::new();
        self.index.candidates(pod.namespace, pod.labels, |id| {
            if self.get(id).is_some_and(|selector| selector.matches(pod)) {
                matching.push(id);
            }
        });
        matching.sort_unstable();
        matching
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
        let Some(selector) = self.get_mut(id) else { return };
        let tally = Tally { seated: 1, lasting: u32::from(lasting) };
        let turn = selector.matched.shift(node, tally, add, topology);
        self.note_turn(id, node, turn);
    }

    /// Adds or takes away the owner of an anti-affinity term on a node.
    pub(crate) fn shift_owner(
        &mut self,
        id: SelectorId,
        key: KeyId,
        node: NodeId,
        add: bool,
        topology: &Topology,
    ) {
        let Some(selector) = self.get_mut(id) else { return };
        let spots = selector.owners.entry(key).or_insert_with(|| {
            let mut spots = Spots::default();
            spots.use_key(key, topology);
            spots
        });
        let turn = spots.shift(node, Tally { seated: 1, lasting: 1 }, add, topology);
        if spots.by_node.is_empty() {
            selector.owners.remove(&key);
        }
        self.note_turn(id, node, turn);
    }

    /// Adds or takes away the owner of a term that only pulls.
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
        let Self { selectors, on_node, .. } = self;
        for &(id, _) in on_node.get(&node).into_iter().flatten() {
            let Some(selector) = &mut selectors[id.0 as usize] else { continue };
            selector.matched.move_node(node, key, from, to);
            if let Some(spots) = selector.owners.get_mut(&key) {
                spots.move_node(node, key, from, to);
            }
        }
    }

    fn note_turn(&mut self, id: SelectorId, node: NodeId, turn: Turn) {
        if turn == Turn::Same {
            return;
        }
        let there = self.on_node.entry(node).or_default();
        match (there.binary_search_by_key(&id, |&(id, _)| id), turn) {
            (Ok(at), Turn::Occupied) => there[at].1 += 1,
            (Ok(at), _) if there[at].1 > 1 => there[at].1 -= 1,
            (Ok(at), _) => {
                there.remove(at);
            }
            (Err(at), Turn::Occupied) => there.insert(at, (id, 1)),
            (Err(_), _) => {}
        }
        if there.is_empty() {
            self.on_node.remove(&node);
        }
    }

    /// Matching pods in a domain. The key must be in use with the selector.
    pub(crate) fn matched_in(&self, id: SelectorId, key: KeyId, domain: DomainId) -> Tally {
        self.get(id).map_or(Tally::default(), |selector| selector.matched.in_domain(key, domain))
    }

    /// Domains with matching pods, in no meaningful order. The key must be in use with the selector.
    pub(crate) fn matched_by_domain(
        &self,
        id: SelectorId,
        key: KeyId,
    ) -> impl Iterator<Item = (DomainId, Tally)> {
        let by_domain = self.get(id).and_then(|selector| selector.matched.by_key.get(&key));
        by_domain.into_iter().flat_map(|by_domain| by_domain.tallies.iter().map(|(&d, &t)| (d, t)))
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

    /// True if some term with this selector decides whether a placement is valid.
    pub(crate) fn is_binding(&self, id: SelectorId) -> bool {
        self.get(id).is_some_and(|selector| selector.binding_uses > 0)
    }

    /// Owners of anti-affinity terms with this selector and key in a domain.
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

    /// True if the labels of namespaces decide about any live selector.
    pub(crate) fn looks_at_namespaces(&self) -> bool {
        self.index.looks_at_namespaces()
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

impl Selector {
    fn matches(&self, pod: &Candidate<'_>) -> bool {
        self.selectors.iter().all(|s| s.matches(pod.namespace, pod.namespace_labels, pod.labels))
    }
}
