//! Anti-affinity: no pod that a required anti-affinity term selects is in the same domain as the pod with the term.
//!
//! The required part of Kubernetes' `InterPodAffinity`, which works both ways: terms of members against pods that exist
//! and each other, and terms of pods that exist against members. A node without the topology label is in no domain.
//! It can only get worse as members are added. The score of preferred terms is in [`crate::score::inter_pod`].

use super::{Cost, NO_DOMAIN, Scope, Triggers, pick, seen};
use crate::refusal::NodeReason;
use crate::state::counts::{Counts, SelectorId};
use crate::state::nodes::NodeId;
use crate::state::relations::Relations;
use crate::state::shape::Shape;
use crate::state::topology::KeyId;

/// The words of a refusal.
pub(crate) const WORDS: &str = "pod anti-affinity not satisfied";

/// One term: owners and pods that it selects may not share a domain.
#[derive(Debug, Clone)]
pub(crate) struct AntiAffinityRule {
    /// Domain of a bin.
    pub(crate) domain: Vec<u32>,
    pub(crate) domains_count: usize,
    /// Kinds that have the term.
    pub(crate) owns: Vec<bool>,
    /// Kinds that the term selects.
    pub(crate) matched: Vec<bool>,
}

/// The terms of members, and those of existing pods that select members.
#[derive(Debug, Clone, Default)]
pub(crate) struct AntiAffinity(Vec<AntiAffinityRule>);

impl AntiAffinity {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        let counts = &scope.relations.counts;
        let mut pairs: Vec<(SelectorId, KeyId)> =
            scope.shapes.iter().flat_map(|shape| shape.inter_pod.anti_affinity.iter().copied()).collect();
        for shape in &scope.shapes {
            for &selector in &shape.matches {
                pairs.extend(counts.guarded_keys(selector).into_iter().map(|key| (selector, key)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let rule = |&(selector, key): &(SelectorId, KeyId)| {
            let owns =
                |shape: &std::sync::Arc<Shape>| shape.inter_pod.anti_affinity.contains(&(selector, key));
            AntiAffinityRule {
                domain: scope.domains(key),
                domains_count: scope.relations.topology.domains_count(key),
                owns: scope.shapes.iter().map(owns).collect(),
                matched: scope.matched(selector),
            }
        };
        Self(pairs.iter().map(rule).collect())
    }

    pub(super) fn narrowed(&self, bins: &[usize]) -> Self {
        let narrow =
            |rule: &AntiAffinityRule| AntiAffinityRule { domain: pick(&rule.domain, bins), ..rule.clone() };
        Self(self.0.iter().map(narrow).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Terms that keep members of a kind away from each other.
    pub(crate) fn within(&self, kind: usize) -> impl Iterator<Item = &AntiAffinityRule> {
        self.0.iter().filter(move |rule| rule.owns[kind] && rule.matched[kind])
    }

    pub(super) fn cost(&self) -> Cost {
        Cost { look: 2 * self.0.len(), hold: 8 * self.0.len(), hold_per_member: 0 }
    }

    /// What the rule sees of every bin.
    pub(super) fn seen(&self) -> impl Iterator<Item = Vec<u32>> {
        self.0.iter().map(|rule| seen(&rule.domain, |_| 0))
    }
}

/// Why pods that exist keep a shape off a node.
pub(super) fn ruled_out(shape: &Shape, node: NodeId, relations: &Relations) -> Option<NodeReason> {
    let Relations { topology, counts, .. } = relations;
    let is_matched = |&(selector, key): &(SelectorId, KeyId)| {
        let domain = topology.domain(key, node);
        domain.is_some_and(|domain| counts.matched_in(selector, key, domain).seated > 0)
    };
    let is_guarded = |&selector: &SelectorId| {
        counts.guarded_keys(selector).into_iter().any(|key| {
            let domain = topology.domain(key, node);
            domain.is_some_and(|domain| counts.owners_in(selector, key, domain) > 0)
        })
    };
    let is_kept_away =
        shape.inter_pod.anti_affinity.iter().any(is_matched) || shape.matches.iter().any(is_guarded);
    is_kept_away.then_some(NodeReason::PodAntiAffinity)
}

/// Owners and selected members by domain, in a partial placement.
#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    rules: &'a [AntiAffinityRule],
    /// By term and domain.
    placed: Vec<Vec<Placed>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Placed {
    owners: u32,
    matched: u32,
}

impl<'a> Load<'a> {
    pub(super) fn new(rules: &'a AntiAffinity) -> Self {
        let placed = rules.0.iter().map(|rule| vec![Placed::default(); rule.domains_count]);
        Self { rules: &rules.0, placed: placed.collect() }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, |count| *count += 1);
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, |count| *count -= 1);
    }

    fn shift(&mut self, kind: usize, bin: usize, change: impl Fn(&mut u32)) {
        for (rule, placed) in self.rules.iter().zip(&mut self.placed) {
            if rule.domain[bin] == NO_DOMAIN {
                continue;
            }
            let placed = &mut placed[rule.domain[bin] as usize];
            if rule.owns[kind] {
                change(&mut placed.owners);
            }
            if rule.matched[kind] {
                change(&mut placed.matched);
            }
        }
    }

    pub(super) fn admits(&self, kind: usize, bin: usize) -> bool {
        !self.rules.iter().zip(&self.placed).any(|(rule, placed)| {
            let Some(placed) = placed.get(rule.domain[bin] as usize) else { return false };
            (rule.owns[kind] && placed.matched > 0) || (rule.matched[kind] && placed.owners > 0)
        })
    }

    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (!self.admits(kind, bin)).then_some(NodeReason::PodAntiAffinity)
    }
}

/// True if the rule does not concern the shape as things are.
pub(super) fn ignores(shape: &Shape, counts: &Counts) -> bool {
    let is_guarded = |&selector: &SelectorId| !counts.guarded_keys(selector).is_empty();
    shape.inter_pod.anti_affinity.is_empty() && !shape.matches.iter().any(is_guarded)
}

/// A pod of the selector that went can unblock, whether the shape has the term or is selected by it; so can a node that
/// changed domains. Terms that are only preferred block nothing.
pub(super) fn add_triggers(shape: &Shape, counts: &Counts, triggers: &mut Triggers) {
    let own = shape.inter_pod.anti_affinity.iter().map(|&(selector, _)| selector);
    let binding = shape.matches.iter().copied().filter(|&selector| counts.is_binding(selector));
    for selector in own.chain(binding) {
        triggers.domains = true;
        triggers.selectors.insert(selector);
    }
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::PodAntiAffinity)
}
