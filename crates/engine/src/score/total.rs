//! The whole score of nodes: how each stands, and what only a comparison of all nodes that will do can tell.

use super::rating::{Class, Rating, Scoring};
use super::{inter_pod, topology_spread};
use crate::rules::{node_affinity, taints};
use crate::state::counts::{Pull, SelectorId};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::relations::Relations;
use crate::state::shape::{PreferredSpread, Shape};
use crate::state::topology::{DomainId, KeyId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use topology_spread::PodWeight;

/// A node that will do, and how it stands.
pub(crate) type Candidate = (NodeId, Rating);

/// True if other pods make a difference to how welcome nodes are to a shape.
pub(crate) fn looks_at_pods(shape: &Shape, relations: &Relations) -> bool {
    let is_wanted = |&selector: &SelectorId| relations.counts.has_pulls(selector);
    !shape.inter_pod.preferred.is_empty() || shape.matches.iter().any(is_wanted)
}

/// The total score of every candidate for one more pod of a shape.
pub(crate) fn totals(
    candidates: &[Candidate],
    shape: &Shape,
    scoring: &Scoring,
    nodes: &NodeTable,
    relations: &Relations,
) -> Vec<i64> {
    let worst = candidates.iter().fold(Class::default(), |worst, (_, rating)| worst.max(rating.class));
    let mut totals: Vec<i64> =
        candidates.iter().map(|(_, rating)| rating.local + scoring.of_class(rating.class, worst)).collect();
    if !looks_at_pods(shape, relations) {
        return totals;
    }
    let scene = Scene { candidates, shape, nodes, relations };
    let (spread_weight, affinity_weight) =
        (i64::from(scoring.weights().topology_spread), i64::from(scoring.weights().inter_pod_affinity));
    let spread = if spread_weight > 0 { scene.spread() } else { Vec::new() };
    let affinity =
        if affinity_weight > 0 { scene.affinity(scoring.required_affinity_weight) } else { Vec::new() };
    for (total, score) in totals.iter_mut().zip(spread) {
        *total += spread_weight * score;
    }
    for (total, score) in totals.iter_mut().zip(affinity) {
        *total += affinity_weight * score;
    }
    totals
}

/// The candidate with the highest total; ties go by name.
pub(crate) fn best(
    candidates: &[Candidate],
    shape: &Shape,
    scoring: &Scoring,
    nodes: &NodeTable,
    relations: &Relations,
) -> Option<NodeId> {
    let totals = totals(candidates, shape, scoring, nodes, relations);
    let ranked =
        candidates.iter().zip(totals).map(|(&(node, _), total)| (Reverse(total), nodes.name(node), node));
    ranked.min().map(|(_, _, node)| node)
}

struct Scene<'a> {
    candidates: &'a [Candidate],
    shape: &'a Shape,
    nodes: &'a NodeTable,
    relations: &'a Relations,
}

impl Scene<'_> {
    /// Scores of topology spread; none if there is no constraint.
    fn spread(&self) -> Vec<i64> {
        let constraints = &self.shape.inter_pod.preferred.spread;
        if constraints.is_empty() {
            return Vec::new();
        }
        // Nodes without all the labels that somebody asks for are not compared and get nothing.
        let is_compared: Vec<bool> = self.candidates.iter().map(|&(node, _)| self.takes_part(node)).collect();
        let compared_count = is_compared.iter().filter(|compared| **compared).count();
        let rules: Vec<Rule<'_>> =
            constraints.iter().map(|spread| self.rule(spread, &is_compared, compared_count)).collect();
        let unevenness = |&(node, _): &Candidate| {
            // What a node lacks the label of says nothing about it.
            let rules = rules.iter().filter(|rule| self.has_label(rule.spread, node));
            topology_spread::unevenness(
                rules.map(|rule| (self.pods_beside(rule, node), rule.spread.max_skew, rule.weight)),
            )
        };
        let compared = self.candidates.iter().zip(&is_compared);
        let values: Vec<Option<i64>> =
            compared.map(|(candidate, compared)| compared.then(|| unevenness(candidate))).collect();
        let least = values.iter().flatten().min().copied().unwrap_or(0);
        let most = values.iter().flatten().max().copied().unwrap_or(0);
        values
            .iter()
            .map(|value| value.map_or(0, |value| topology_spread::score(value, least, most)))
            .collect()
    }

    fn takes_part(&self, node: NodeId) -> bool {
        let preferred = &self.shape.inter_pod.preferred;
        preferred.spread_by_default || preferred.spread.iter().all(|spread| self.has_label(spread, node))
    }

    fn has_label(&self, spread: &PreferredSpread, node: NodeId) -> bool {
        self.relations.topology.domain(spread.key, node).is_some()
    }

    /// The domain of a node. A node without the label is in that of the empty value, as upstream has it; `None` if no
    /// node has that value, either.
    fn domain_or_empty(&self, spread: &PreferredSpread, node: NodeId) -> Option<DomainId> {
        let topology = &self.relations.topology;
        topology.domain(spread.key, node).or_else(|| topology.domain_of_value(spread.key, ""))
    }

    fn rule<'a>(&self, spread: &'a PreferredSpread, is_compared: &[bool], compared_count: usize) -> Rule<'a> {
        if spread.is_hostname {
            // Every node is taken for a domain of its own.
            return Rule { spread, weight: PodWeight::of_domains(compared_count), by_domain: Vec::new() };
        }
        let topology = &self.relations.topology;
        let mut takes_part = vec![false; topology.domains_count(spread.key)];
        let mut unlabelled = false;
        for (&(node, _), _) in self.candidates.iter().zip(is_compared).filter(|(_, compared)| **compared) {
            match self.domain_or_empty(spread, node) {
                Some(domain) => takes_part[domain.index()] = true,
                None => unlabelled = true,
            }
        }
        let domains_count =
            takes_part.iter().filter(|takes_part| **takes_part).count() + usize::from(unlabelled);
        let mut by_domain = vec![0; takes_part.len()];
        for (node, tally) in self.relations.counts.matched_by_node(spread.selector) {
            let Some(object) = self.nodes.node(node) else { continue };
            let counts = self.takes_part(node)
                && (!spread.honors_affinity || node_affinity::selects(self.shape, object))
                && (!spread.honors_taints || taints::tolerates(self.shape, object));
            if let Some(domain) = self.domain_or_empty(spread, node).filter(|_| counts) {
                by_domain[domain.index()] += u64::from(tally.lasting);
            }
        }
        Rule { spread, weight: PodWeight::of_domains(domains_count), by_domain }
    }

    /// Pods that count in a node's domain.
    fn pods_beside(&self, rule: &Rule<'_>, node: NodeId) -> u64 {
        if rule.spread.is_hostname {
            return u64::from(self.relations.counts.matched_on(rule.spread.selector, node).lasting);
        }
        let domain = self.relations.topology.domain(rule.spread.key, node);
        domain.and_then(|domain| rule.by_domain.get(domain.index())).copied().unwrap_or(0)
    }

    /// Scores of affinity between pods.
    fn affinity(&self, required_weight: i64) -> Vec<i64> {
        let counts = &self.relations.counts;
        let mut sums = Sums { relations: self.relations, by_key: FxHashMap::default() };
        for &(selector, key, weight) in &self.shape.inter_pod.preferred.pulls {
            for (node, tally) in counts.matched_by_node(selector) {
                sums.add(key, node, weight * i64::from(tally.seated));
            }
        }
        for &selector in &self.shape.matches {
            for (key, node, Pull { weight, required, .. }) in counts.pulls(selector) {
                sums.add(key, node, weight + required_weight * i64::from(required));
            }
        }
        let values: Vec<i64> = self.candidates.iter().map(|&(node, _)| sums.of(node)).collect();
        let lowest = values.iter().min().copied().unwrap_or(0);
        let highest = values.iter().max().copied().unwrap_or(0);
        values.iter().map(|&value| inter_pod::score(value, lowest, highest)).collect()
    }
}

/// A constraint and what is known about it.
struct Rule<'a> {
    spread: &'a PreferredSpread,
    weight: PodWeight,
    /// Pods that count, by domain; empty if nodes are the domains.
    by_domain: Vec<u64>,
}

/// Weights by topology key and domain.
struct Sums<'a> {
    relations: &'a Relations,
    by_key: FxHashMap<KeyId, Vec<i64>>,
}

impl Sums<'_> {
    fn add(&mut self, key: KeyId, node: NodeId, weight: i64) {
        let topology = &self.relations.topology;
        if let Some(domain) = topology.domain(key, node) {
            let sums = self.by_key.entry(key).or_insert_with(|| vec![0; topology.domains_count(key)]);
            sums[domain.index()] += weight;
        }
    }

    fn of(&self, node: NodeId) -> i64 {
        let of_key = |(&key, sums): (&KeyId, &Vec<i64>)| {
            self.relations.topology.domain(key, node).map_or(0, |domain| sums[domain.index()])
        };
        self.by_key.iter().map(of_key).sum()
    }
}
