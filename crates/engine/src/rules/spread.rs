//! Spread: the number of selected pods in the pod's domain exceeds that of the emptiest domain by at most `maxSkew`.
//!
//! Kubernetes' `PodTopologySpread` with `whenUnsatisfiable: DoNotSchedule`. Only nodes with all the labels that the pod is
//! spread by take part, and by default only those that the pod's node affinity selects; with fewer domains than
//! `minDomains` the emptiest counts as empty. Members that are added can mend it (they raise the emptiest domain), so it is
//! checked at the end, with a bound on the way. The score of `ScheduleAnyway` is in [`crate::score::topology_spread`].

use super::{Cost, NO_DOMAIN, Scope, Triggers, node_affinity, pick, seen, taints};
use crate::refusal::NodeReason;
use crate::state::nodes::NodeId;
use crate::state::shape::{Shape, SpreadTerm};

/// The words of a refusal.
pub(crate) const WORDS: &str = "topology spread not satisfied";

/// One constraint of a kind.
#[derive(Debug, Clone)]
pub(crate) struct SpreadRule {
    /// Domain of a bin; none if pods there do not count.
    pub(crate) domain: Vec<u32>,
    /// Selected pods that exist and count, by domain.
    pub(crate) existing: Vec<u32>,
    /// Domains that take part.
    pub(crate) takes_part: Vec<bool>,
    /// Kinds that the constraint selects.
    pub(crate) counted: Vec<bool>,
    pub(crate) max_skew: u32,
    /// True if there are too few domains: the emptiest one counts as empty.
    pub(crate) floor_is_zero: bool,
}

impl SpreadRule {
    fn new(scope: &Scope<'_>, shape: &Shape, term: &SpreadTerm) -> Self {
        let relations = scope.relations;
        let counts_at = |node: NodeId| {
            let Some(object) = scope.nodes.node(node) else { return false };
            let mut keys = shape.inter_pod.spread.iter().map(|term| term.key);
            keys.all(|key| relations.topology.domain(key, node).is_some())
                && (!term.honors_affinity || node_affinity::selects(shape, object))
                && (!term.honors_taints || taints::tolerates(shape, object))
        };
        let domains_count = relations.topology.domains_count(term.key);
        let mut takes_part = vec![false; domains_count];
        for node in scope.nodes.ids().filter(|&node| counts_at(node)) {
            if let Some(domain) = relations.topology.domain(term.key, node) {
                takes_part[domain.index()] = true;
            }
        }
        let mut existing = vec![0; domains_count];
        for (node, tally) in relations.counts.matched_by_node(term.selector) {
            if let Some(domain) = relations.topology.domain(term.key, node)
                && counts_at(node)
            {
                existing[domain.index()] += tally.lasting;
            }
        }
        let mut domain = scope.domains(term.key);
        for (domain, &node) in domain.iter_mut().zip(scope.bins) {
            if !counts_at(node) {
                *domain = NO_DOMAIN;
            }
        }
        let parts = takes_part.iter().filter(|takes_part| **takes_part).count();
        Self {
            domain,
            existing,
            takes_part,
            counted: scope.matched(term.selector),
            max_skew: term.max_skew,
            floor_is_zero: parts < term.min_domains as usize,
        }
    }

    /// The lowest count over all domains that take part.
    fn floor(&self, placed: &[u32]) -> u32 {
        if self.floor_is_zero {
            return 0;
        }
        let counts = self.takes_part.iter().enumerate().filter(|(_, takes_part)| **takes_part);
        counts.map(|(domain, _)| self.existing[domain] + placed[domain]).min().unwrap_or(0)
    }

    /// The highest floor that so many more members can lead to.
    fn highest_floor(&self, placed: &[u32], more: u32) -> u32 {
        if self.floor_is_zero {
            return 0;
        }
        let taking_part = self.takes_part.iter().enumerate().filter(|(_, takes_part)| **takes_part);
        let mut counts: Vec<u32> = taking_part.map(|(d, _)| self.existing[d] + placed[d]).collect();
        counts.sort_unstable();
        let mut left = u64::from(more);
        let mut floor = counts.first().copied().unwrap_or(0);
        for (index, &count) in counts.iter().enumerate() {
            let step = u64::from(count - floor) * index as u64;
            if step > left {
                return floor + (left / index as u64) as u32;
            }
            left -= step;
            floor = count;
        }
        floor + (left / counts.len().max(1) as u64) as u32
    }
}

/// The constraints of all kinds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread(Vec<Vec<SpreadRule>>);

impl Spread {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        let rules = |shape: &std::sync::Arc<Shape>| {
            shape.inter_pod.spread.iter().map(|term| SpreadRule::new(scope, shape, term)).collect()
        };
        Self(scope.shapes.iter().map(rules).collect())
    }

    pub(super) fn narrowed(&self, bins: &[usize]) -> Self {
        let mut narrow = self.clone();
        for rule in narrow.0.iter_mut().flatten() {
            rule.domain = pick(&rule.domain, bins);
        }
        narrow
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// The constraints of a kind.
    pub(crate) fn of(&self, kind: usize) -> &[SpreadRule] {
        self.0.get(kind).map_or(&[], Vec::as_slice)
    }

    pub(super) fn cost(&self) -> Cost {
        let rules = self.0.iter().flatten().count();
        // To tell the highest floor, domains are sorted.
        let domains: usize = self.0.iter().flatten().map(|rule| 8 * rule.existing.len()).sum();
        Cost { look: 0, hold: 8 * rules + domains, hold_per_member: 2 * rules }
    }

    /// What the rule sees of every bin.
    pub(super) fn seen(&self) -> impl Iterator<Item = Vec<u32>> {
        self.0.iter().flatten().map(|rule| seen(&rule.domain, |domain| rule.existing[domain]))
    }

    /// A pod that must be spread by a label needs a node with that label.
    pub(super) fn ruled_out(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        let lacks_label = self.of(kind).iter().any(|rule| rule.domain[bin] == NO_DOMAIN);
        lacks_label.then_some(NodeReason::Spread)
    }
}

/// Selected members by domain, in a partial placement.
#[derive(Debug, Clone)]
pub(crate) struct Load<'a> {
    rules: &'a [Vec<SpreadRule>],
    /// By kind and constraint.
    placed: Vec<Vec<Placed>>,
}

#[derive(Debug, Clone)]
struct Placed {
    by_domain: Vec<u32>,
    /// The floor, kept because every candidate is compared with it.
    floor: u32,
}

impl<'a> Load<'a> {
    pub(crate) fn new(rules: &'a Spread) -> Self {
        let empty = |rule: &SpreadRule| {
            let by_domain = vec![0; rule.existing.len()];
            Placed { floor: rule.floor(&by_domain), by_domain }
        };
        Self {
            rules: &rules.0,
            placed: rules.0.iter().map(|rules| rules.iter().map(empty).collect()).collect(),
        }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, |count| *count += 1);
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, |count| *count -= 1);
    }

    fn shift(&mut self, kind: usize, bin: usize, change: impl Fn(&mut u32)) {
        for (rules, placed) in self.rules.iter().zip(&mut self.placed) {
            for (rule, placed) in rules.iter().zip(placed) {
                if rule.counted[kind] && rule.domain[bin] != NO_DOMAIN {
                    change(&mut placed.by_domain[rule.domain[bin] as usize]);
                    placed.floor = rule.floor(&placed.by_domain);
                }
            }
        }
    }

    /// True if the rule would hold at once for a member that is added now. If the member's own domain is the only
    /// emptiest one the floor rises with it; but a skew of 1 is always allowed, so that the floor without the member
    /// gives the same answer.
    pub(crate) fn admits(&self, kind: usize, bin: usize) -> bool {
        self.rules[kind].iter().zip(&self.placed[kind]).all(|(rule, placed)| {
            let domain = rule.domain[bin] as usize;
            let own = u32::from(rule.counted[kind]);
            rule.existing[domain] + placed.by_domain[domain] + own <= placed.floor + rule.max_skew
        })
    }

    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (!self.admits(kind, bin)).then_some(NodeReason::Spread)
    }

    /// False if the rule is broken for a kind with these seats (bins and members), and so many more members of each kind
    /// cannot mend it.
    pub(super) fn can_hold(&self, kind: usize, seats: &[(usize, u32)], remaining: &[u32]) -> bool {
        self.rules[kind].iter().zip(&self.placed[kind]).all(|(rule, placed)| {
            let counted = rule.counted.iter().zip(remaining).filter(|(counted, _)| **counted);
            let more = counted.map(|(_, remaining)| remaining).sum();
            let floor = rule.highest_floor(&placed.by_domain, more);
            seats.iter().all(|&(bin, _)| {
                let domain = rule.domain[bin] as usize;
                rule.existing[domain] + placed.by_domain[domain] <= floor + rule.max_skew
            })
        })
    }
}

/// True if the rule never concerns the shape.
pub(super) fn ignores(shape: &Shape) -> bool {
    shape.inter_pod.spread.is_empty()
}

/// A selected pod that came (to the emptiest domain) or went can unblock; so can a node that changed domains, and one
/// that takes part or no longer does.
pub(super) fn add_triggers(shape: &Shape, triggers: &mut Triggers) {
    for term in &shape.inter_pod.spread {
        triggers.domains = true;
        triggers.selectors.insert(term.selector);
    }
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Spread)
}
