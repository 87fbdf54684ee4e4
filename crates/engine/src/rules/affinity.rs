//! Affinity: in the pod's domain of every key there is a pod that its required affinity terms select.
//!
//! The required part of Kubernetes' `InterPodAffinity`. Only pods that all terms select count. A pod that selects itself
//! may be the first of its kind: while no such pod is in any domain, it needs none. Members that are added can mend it,
//! so it is checked at the end, with a bound on the way. The score of preferred terms is in [`crate::score::inter_pod`].

use super::{Cost, NO_DOMAIN, Scope, Triggers, pick, seen};
use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use crate::state::topology::KeyId;

/// The words of a refusal.
pub(crate) const WORDS: &str = "pod affinity not satisfied";

/// The terms of a kind.
#[derive(Debug, Clone)]
pub(crate) struct AffinityRule {
    pub(crate) keys: Vec<AffinityKey>,
    /// Kinds that the terms select.
    pub(crate) matched: Vec<bool>,
    /// True if a pod that the terms select exists already, anywhere; then none may be the first.
    pub(crate) exists: bool,
}

/// One topology key of an [`AffinityRule`].
#[derive(Debug, Clone)]
pub(crate) struct AffinityKey {
    /// Domain of a bin.
    pub(crate) domain: Vec<u32>,
    /// Selected pods that exist, by domain.
    pub(crate) existing: Vec<u32>,
}

impl AffinityRule {
    fn new(scope: &Scope<'_>, shape: &Shape) -> Option<Self> {
        let (selector, keys) = shape.inter_pod.affinity.as_ref()?;
        let relations = scope.relations;
        let key = |&key: &KeyId| {
            let mut existing = vec![0; relations.topology.domains_count(key)];
            for (domain, tally) in relations.counts.matched_by_domain(*selector, key) {
                existing[domain.index()] = tally.seated;
            }
            AffinityKey { domain: scope.domains(key), existing }
        };
        let keys: Vec<AffinityKey> = keys.iter().map(key).collect();
        let exists = keys.iter().any(|key| key.existing.iter().any(|&count| count > 0));
        Some(Self { keys, matched: scope.matched(*selector), exists })
    }

    /// True if no member of the request can make this bin acceptable.
    fn rules_out(&self, bin: usize) -> bool {
        let no_help = !self.matched.contains(&true);
        self.keys.iter().any(|key| {
            let domain = key.domain[bin];
            domain == NO_DOMAIN || (no_help && key.existing[domain as usize] == 0)
        })
    }
}

/// The terms of all kinds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Affinity(Vec<Option<AffinityRule>>);

impl Affinity {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        Self(scope.shapes.iter().map(|shape| AffinityRule::new(scope, shape)).collect())
    }

    pub(super) fn narrowed(&self, bins: &[usize]) -> Self {
        let mut narrow = self.clone();
        for key in narrow.0.iter_mut().flatten().flat_map(|rule| &mut rule.keys) {
            key.domain = pick(&key.domain, bins);
        }
        narrow
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The terms of a kind.
    pub(crate) fn of(&self, kind: usize) -> Option<&AffinityRule> {
        self.0.get(kind)?.as_ref()
    }

    /// The first kind whose terms select a kind of the request.
    pub(crate) fn first_served(&self) -> Option<(usize, &AffinityRule)> {
        let rules = self.0.iter().enumerate().filter_map(|(kind, rule)| Some((kind, rule.as_ref()?)));
        rules.into_iter().find(|(_, rule)| rule.matched.contains(&true))
    }

    fn keys(&self) -> impl Iterator<Item = &AffinityKey> {
        self.0.iter().flatten().flat_map(|rule| &rule.keys)
    }

    pub(super) fn cost(&self) -> Cost {
        let keys = self.keys().count();
        Cost { look: 0, hold: 8 * keys, hold_per_member: 2 * keys }
    }

    /// What the rule sees of every bin.
    pub(super) fn seen(&self) -> impl Iterator<Item = Vec<u32>> {
        self.keys().map(|key| seen(&key.domain, |domain| key.existing[domain]))
    }

    /// Why pods that exist keep a kind out of a bin, whichever members come along.
    pub(super) fn ruled_out(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        self.of(kind)?.rules_out(bin).then_some(NodeReason::PodAffinity)
    }
}

/// Selected members by domain, in a partial placement.
#[derive(Debug, Clone)]
pub(crate) struct Load<'a> {
    rules: &'a [Option<AffinityRule>],
    /// By kind, key and domain.
    placed: Vec<Vec<Vec<u32>>>,
    /// By kind: selected members that are in a domain of any key.
    total: Vec<u32>,
}

impl<'a> Load<'a> {
    pub(crate) fn new(rules: &'a Affinity) -> Self {
        let of_rule = |rule: &Option<AffinityRule>| {
            rule.iter().flat_map(|rule| &rule.keys).map(|key| vec![0; key.existing.len()]).collect()
        };
        let placed = rules.0.iter().map(of_rule).collect();
        Self { rules: &rules.0, placed, total: vec![0; rules.0.len()] }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, |count| *count += 1);
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, |count| *count -= 1);
    }

    fn shift(&mut self, kind: usize, bin: usize, change: impl Fn(&mut u32)) {
        for ((rule, placed), total) in self.rules.iter().zip(&mut self.placed).zip(&mut self.total) {
            let Some(rule) = rule.as_ref().filter(|rule| rule.matched[kind]) else { continue };
            let mut is_in_a_domain = false;
            for (key, placed) in rule.keys.iter().zip(placed) {
                if key.domain[bin] != NO_DOMAIN {
                    is_in_a_domain = true;
                    change(&mut placed[key.domain[bin] as usize]);
                }
            }
            if is_in_a_domain {
                change(total);
            }
        }
    }

    /// True if the rule would hold at once for a member that is added now.
    pub(crate) fn admits(&self, kind: usize, bin: usize) -> bool {
        let Some(rule) = &self.rules[kind] else { return true };
        let is_first = rule.matched[kind] && !rule.exists && self.total[kind] == 0;
        is_first
            || rule.keys.iter().zip(&self.placed[kind]).all(|(key, placed)| {
                let domain = key.domain[bin] as usize;
                key.existing[domain] + placed[domain] > 0
            })
    }

    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (!self.admits(kind, bin)).then_some(NodeReason::PodAffinity)
    }

    /// False if the rule is broken for a kind with these seats (bins and members), and so many more members of each kind
    /// cannot mend it.
    pub(super) fn can_hold(&self, kind: usize, seats: &[(usize, u32)], remaining: &[u32]) -> bool {
        let Some(rule) = &self.rules[kind] else { return true };
        if rule.matched.iter().zip(remaining).any(|(matched, remaining)| *matched && *remaining > 0) {
            return true;
        }
        let own = u32::from(rule.matched[kind]);
        // The only selected pod of the cluster, and it selects itself: it may be the first.
        if own == 1 && !rule.exists && self.total[kind] == 1 {
            return true;
        }
        seats.iter().all(|&(bin, _)| {
            rule.keys.iter().zip(&self.placed[kind]).all(|(key, placed)| {
                let domain = key.domain[bin] as usize;
                key.existing[domain] + placed[domain] > own
            })
        })
    }
}

/// True if the rule never concerns the shape.
pub(super) fn ignores(shape: &Shape) -> bool {
    shape.inter_pod.affinity.is_none()
}

/// A selected pod that came, or one that went (then another may be the first), can unblock; so can a node that changed
/// domains.
pub(super) fn add_triggers(shape: &Shape, triggers: &mut Triggers) {
    if let Some((selector, _)) = &shape.inter_pod.affinity {
        triggers.domains = true;
        triggers.selectors.insert(*selector);
    }
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::PodAffinity)
}
