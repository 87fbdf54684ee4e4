//! What members and existing pods demand of each other, cut down to the bins of one problem.
//!
//! Validity is about the final state: a rule holds if it holds with everybody in place. Rules that can only get
//! worse as members are added (apart, ports) are checked at every step; the others (near, even) at the end, with
//! a bound on the way that tells when they cannot come right any more.

use super::Tables;
use super::problem::Problem;
use super::volumes::{VolumeLoads, VolumeRules};
use crate::refusal::NodeReason;
use crate::state::counts::SelectorId;
use crate::state::nodes::NodeId;
use crate::state::shape::{Shape, SpreadTerm};
use crate::state::topology::KeyId;
use crate::state::volumes::Needs;
use std::sync::Arc;
use tutti_model::ObjectKey;

/// A bin that is in no domain.
pub(super) const NO_DOMAIN: u32 = u32::MAX;

/// All rules of a problem.
#[derive(Debug, Clone, Default)]
pub(super) struct Constraints {
    pub(super) anti_affinity: Vec<AntiAffinityRule>,
    /// By kind.
    pub(super) affinity: Vec<Option<AffinityRule>>,
    /// By kind.
    pub(super) spread: Vec<Vec<SpreadRule>>,
    /// `ports[a * kinds + b]`: kinds a and b cannot share a bin. Empty if nobody has ports.
    pub(super) ports: Vec<bool>,
    /// What volumes demand.
    pub(super) volumes: VolumeRules,
    /// Limits of how many members share a domain.
    pub(super) quotas: Vec<Quota>,
}

/// At most so many members of some kinds in a domain.
#[derive(Debug, Clone)]
pub(super) struct Quota {
    pub(super) kinds: Vec<bool>,
    pub(super) domain: Vec<u32>,
    /// By domain.
    pub(super) most: Vec<u32>,
}

/// Owners and matching members may not share a domain.
#[derive(Debug, Clone)]
pub(super) struct AntiAffinityRule {
    pub(super) domain: Vec<u32>,
    pub(super) domains_count: usize,
    /// Kinds that have the wish.
    pub(super) owns: Vec<bool>,
    /// Kinds that the wish speaks of.
    pub(super) matched: Vec<bool>,
    /// True if it is about a volume claim for one pod only.
    pub(super) is_claim: bool,
}

/// A kind must have matching pods in its domain of every key.
#[derive(Debug, Clone)]
pub(super) struct AffinityRule {
    pub(super) keys: Vec<AffinityKey>,
    /// Kinds that match.
    pub(super) matched: Vec<bool>,
    /// True if a matching pod exists already, anywhere; then nobody may be the first.
    pub(super) exists: bool,
}

/// One topology key of a [`Near`].
#[derive(Debug, Clone)]
pub(super) struct AffinityKey {
    pub(super) domain: Vec<u32>,
    /// Matching pods that exist, by domain.
    pub(super) existing: Vec<u32>,
}

/// A spread constraint of a kind.
#[derive(Debug, Clone)]
pub(super) struct SpreadRule {
    /// Domain of a bin; none if pods there do not count.
    pub(super) domain: Vec<u32>,
    /// Pods that exist and count, by domain.
    pub(super) existing: Vec<u32>,
    /// Domains that take part.
    pub(super) takes_part: Vec<bool>,
    /// Kinds that count.
    pub(super) counted: Vec<bool>,
    pub(super) max_skew: u32,
    /// Too few domains: the emptiest one counts as empty.
    pub(super) floor_is_zero: bool,
}

impl SpreadRule {
    /// The lowest count over all domains that take part.
    pub(super) fn floor(&self, placed: &[u32]) -> u32 {
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

impl Constraints {
    /// True if nobody demands anything of anybody.
    pub(super) fn is_empty(&self) -> bool {
        self.anti_affinity.is_empty()
            && self.ports.is_empty()
            && self.volumes.is_empty()
            && self.quotas.is_empty()
            && self.affinity.iter().all(Option::is_none)
            && self.spread.iter().all(Vec::is_empty)
    }

    /// Reads the rules of a problem and forbids bins that existing pods rule out for good.
    pub(super) fn new(problem: &mut Problem, tables: &Tables<'_>) -> Self {
        let shapes: Vec<Arc<Shape>> =
            problem.kinds.iter().map(|kind| Arc::clone(tables.shapes.get(kind.shape))).collect();
        let reader = Reader { tables, shapes: &shapes };
        let constraints = Self {
            anti_affinity: reader.anti_affinity(problem),
            affinity: shapes.iter().map(|shape| reader.affinity(problem, shape)).collect(),
            spread: reader.spread(problem),
            ports: reader.ports(problem),
            volumes: VolumeRules::new(problem, &shapes, tables),
            quotas: Vec::new(),
        };
        reader.forbid(problem, &constraints);
        constraints
    }

    /// The same rules for some of the bins, with quotas.
    pub(super) fn narrowed(&self, bins: &[usize], quotas: &[Quota]) -> Self {
        let pick = |domain: &mut Vec<u32>| *domain = bins.iter().map(|&bin| domain[bin]).collect();
        let mut narrow = Self { quotas: quotas.to_vec(), ..self.clone() };
        narrow.anti_affinity.iter_mut().for_each(|rule| pick(&mut rule.domain));
        narrow
            .affinity
            .iter_mut()
            .flatten()
            .flat_map(|affinity| &mut affinity.keys)
            .for_each(|key| pick(&mut key.domain));
        narrow.spread.iter_mut().flatten().for_each(|rule| pick(&mut rule.domain));
        narrow.quotas.iter_mut().for_each(|quota| pick(&mut quota.domain));
        narrow.volumes = self.volumes.narrowed(bins);
        narrow
    }

    /// True if two kinds cannot share a bin because of ports.
    pub(super) fn ports_conflict(&self, a: usize, b: usize, kinds: usize) -> bool {
        !self.ports.is_empty() && self.ports[a * kinds + b]
    }
}

struct Reader<'a, 'b> {
    tables: &'a Tables<'b>,
    shapes: &'a [Arc<Shape>],
}

impl Reader<'_, '_> {
    fn matched(&self, selector: SelectorId) -> Vec<bool> {
        self.shapes.iter().map(|shape| shape.matches.binary_search(&selector).is_ok()).collect()
    }

    fn domains(&self, problem: &Problem, key: KeyId) -> Vec<u32> {
        let topology = &self.tables.relations.topology;
        problem.bins.iter().map(|&node| topology.domain(key, node).map_or(NO_DOMAIN, |d| d.0)).collect()
    }

    /// InterPodTerms of members, and wishes of existing pods that speak of members.
    fn anti_affinity(&self, problem: &Problem) -> Vec<AntiAffinityRule> {
        let counts = &self.tables.relations.counts;
        let mut pairs: Vec<(SelectorId, KeyId)> =
            self.shapes.iter().flat_map(|shape| shape.inter_pod.anti_affinity.iter().copied()).collect();
        for shape in self.shapes {
            for &selector in &shape.matches {
                pairs.extend(counts.guarded_keys(selector).into_iter().map(|key| (selector, key)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let rule = |&(selector, key): &(SelectorId, KeyId)| AntiAffinityRule {
            domain: self.domains(problem, key),
            domains_count: self.tables.relations.topology.domains_count(key),
            owns: self
                .shapes
                .iter()
                .map(|shape| shape.inter_pod.anti_affinity.contains(&(selector, key)))
                .collect(),
            matched: self.matched(selector),
            is_claim: false,
        };
        pairs.iter().map(rule).chain(self.exclusive(problem)).collect()
    }

    /// Claims for one pod only: wherever one of those who need it is, no other may be anywhere.
    fn exclusive(&self, problem: &Problem) -> Vec<AntiAffinityRule> {
        let mut claims: Vec<&ObjectKey> =
            self.shapes.iter().flat_map(|shape| &shape.volumes.exclusive).collect();
        claims.sort_unstable();
        claims.dedup();
        let rule = |claim: &ObjectKey| {
            let users: Vec<bool> =
                self.shapes.iter().map(|shape| shape.volumes.exclusive.contains(claim)).collect();
            let domain = vec![0; problem.bins.len()];
            AntiAffinityRule { domain, domains_count: 1, owns: users.clone(), matched: users, is_claim: true }
        };
        claims.into_iter().map(rule).collect()
    }

    fn affinity(&self, problem: &Problem, shape: &Shape) -> Option<AffinityRule> {
        let (selector, keys) = shape.inter_pod.affinity.as_ref()?;
        let relations = self.tables.relations;
        let key = |&key: &KeyId| {
            let mut existing = vec![0; relations.topology.domains_count(key)];
            for (domain, tally) in relations.counts.matched_by_domain(*selector, key) {
                existing[domain.index()] = tally.seated;
            }
            AffinityKey { domain: self.domains(problem, key), existing }
        };
        let keys: Vec<AffinityKey> = keys.iter().map(key).collect();
        let exists = keys.iter().any(|key| key.existing.iter().any(|&count| count > 0));
        Some(AffinityRule { keys, matched: self.matched(*selector), exists })
    }

    fn spread(&self, problem: &Problem) -> Vec<Vec<SpreadRule>> {
        let rules = |shape: &Arc<Shape>| {
            let rule = |spread: &SpreadTerm| self.spread_rule(problem, shape, spread);
            shape.inter_pod.spread.iter().map(rule).collect()
        };
        self.shapes.iter().map(rules).collect()
    }

    fn spread_rule(&self, problem: &Problem, shape: &Shape, spread: &SpreadTerm) -> SpreadRule {
        let relations = self.tables.relations;
        let keys: Vec<KeyId> = shape.inter_pod.spread.iter().map(|spread| spread.key).collect();
        let counts_at = |node: NodeId| {
            let Some(object) = self.tables.nodes.node(node) else {
                return false;
            };
            keys.iter().all(|&key| relations.topology.domain(key, node).is_some())
                && (!spread.honors_affinity || shape.selects(object))
                && (!spread.honors_taints || shape.tolerates(object))
        };
        let domains_count = relations.topology.domains_count(spread.key);
        let mut takes_part = vec![false; domains_count];
        for node in self.tables.nodes.ids().filter(|&node| counts_at(node)) {
            if let Some(domain) = relations.topology.domain(spread.key, node) {
                takes_part[domain.index()] = true;
            }
        }
        let mut existing = vec![0; domains_count];
        for (node, tally) in relations.counts.matched_by_node(spread.selector) {
            if let Some(domain) = relations.topology.domain(spread.key, node)
                && counts_at(node)
            {
                existing[domain.index()] += tally.lasting;
            }
        }
        let mut domain = self.domains(problem, spread.key);
        for (domain, &node) in domain.iter_mut().zip(&problem.bins) {
            if !counts_at(node) {
                *domain = NO_DOMAIN;
            }
        }
        let parts = takes_part.iter().filter(|takes_part| **takes_part).count();
        SpreadRule {
            domain,
            existing,
            takes_part,
            counted: self.matched(spread.selector),
            max_skew: spread.max_skew,
            floor_is_zero: parts < spread.min_domains as usize,
        }
    }

    fn ports(&self, problem: &Problem) -> Vec<bool> {
        if self.shapes.iter().all(|shape| shape.ports.is_empty()) {
            return Vec::new();
        }
        let kinds = 0..problem.kinds.len();
        let pairs = kinds.clone().flat_map(|a| kinds.clone().map(move |b| (a, b)));
        pairs.map(|(a, b)| self.shapes[a].ports_conflict(&self.shapes[b].ports)).collect()
    }

    /// Rules that existing pods alone decide become part of "may this kind use this bin".
    fn forbid(&self, problem: &mut Problem, constraints: &Constraints) {
        let kinds = problem.kinds.len();
        let is_concerned = |&kind: &usize| {
            let shape = &self.shapes[kind];
            let has_wishes = !shape.inter_pod.is_empty() || !shape.matches.is_empty();
            has_wishes || !shape.ports.is_empty() || shape.volumes != Needs::default()
        };
        for kind in (0..kinds).filter(is_concerned) {
            for bin in 0..problem.bins.len() {
                let at = bin * kinds + kind;
                if problem.allowed[at] && constraints.ruled_out(problem, kind, bin, self.tables).is_some() {
                    problem.allowed[at] = false;
                }
            }
        }
    }
}

impl Constraints {
    /// Why existing pods keep a kind out of a bin, whoever of the request comes along.
    pub(super) fn ruled_out(
        &self,
        problem: &Problem,
        kind: usize,
        bin: usize,
        tables: &Tables<'_>,
    ) -> Option<NodeReason> {
        let (node, relations) = (problem.bins[bin], tables.relations);
        let shape = tables.shapes.get(problem.kinds[kind].shape);
        if relations.ports.get(&node).is_some_and(|used| shape.ports_conflict(used)) {
            return Some(NodeReason::Ports);
        }
        let matched = |&(selector, key): &(SelectorId, KeyId)| {
            let domain = relations.topology.domain(key, node);
            domain.is_some_and(|domain| relations.counts.matched_in(selector, key, domain).seated > 0)
        };
        let guarded = |&selector: &SelectorId| {
            relations.counts.guarded_keys(selector).into_iter().any(|key| {
                let domain = relations.topology.domain(key, node);
                domain.is_some_and(|domain| relations.counts.owners_in(selector, key, domain) > 0)
            })
        };
        if shape.inter_pod.anti_affinity.iter().any(matched) || shape.matches.iter().any(guarded) {
            return Some(NodeReason::PodAntiAffinity);
        }
        if self.affinity[kind].as_ref().is_some_and(|affinity| affinity.rules_out(bin)) {
            return Some(NodeReason::PodAffinity);
        }
        // A pod that must be spread by a label needs a node with that label.
        let lacks_label = self.spread[kind].iter().any(|rule| rule.domain[bin] == NO_DOMAIN);
        if lacks_label {
            return Some(NodeReason::Spread);
        }
        (self.volumes.most(kind, bin) == 0).then_some(NodeReason::NoVolume)
    }
}

impl AffinityRule {
    /// True if nobody in the request can make this bin acceptable.
    fn rules_out(&self, bin: usize) -> bool {
        let no_help = !self.matched.iter().any(|matched| *matched);
        self.keys.iter().any(|key| {
            let domain = key.domain[bin];
            domain == NO_DOMAIN || (no_help && key.existing[domain as usize] == 0)
        })
    }
}

/// Members that were put into bins, as far as rules look at them.
#[derive(Debug, Clone)]
pub(super) struct Loads<'a> {
    constraints: &'a Constraints,
    kinds: usize,
    /// By rule and domain: owners and matching members.
    anti_affinity: Vec<Vec<(u32, u32)>>,
    /// By kind and key and domain: matching members; and how many there are in all.
    affinity: Vec<Vec<Vec<u32>>>,
    affinity_total: Vec<u32>,
    /// By kind and rule and domain: counted members.
    spread: Vec<Vec<Vec<u32>>>,
    /// By kind and rule: the floor, kept because every candidate is compared with it.
    floors: Vec<Vec<u32>>,
    /// By bin and kind: members, if ports matter.
    in_bin: Vec<u32>,
    /// By quota and domain: members that count.
    quotas: Vec<Vec<u32>>,
    /// By kind: bins and members.
    seats: Vec<Vec<(usize, u32)>>,
    volumes: VolumeLoads<'a>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(problem: &Problem, constraints: &'a Constraints) -> Self {
        let kinds = problem.kinds.len();
        let affinity = constraints.affinity.iter().map(|affinity| {
            affinity
                .iter()
                .flat_map(|affinity| affinity.keys.iter().map(|key| vec![0; key.existing.len()]))
                .collect()
        });
        let spread = constraints
            .spread
            .iter()
            .map(|rules| rules.iter().map(|rule| vec![0; rule.existing.len()]).collect());
        let spread: Vec<Vec<Vec<u32>>> = spread.collect();
        let floors = constraints.spread.iter().zip(&spread);
        let floors =
            floors.map(|(rules, placed)| rules.iter().zip(placed).map(|(r, p)| r.floor(p)).collect());
        Self {
            constraints,
            kinds,
            floors: floors.collect(),
            anti_affinity: constraints
                .anti_affinity
                .iter()
                .map(|rule| vec![(0, 0); rule.domains_count])
                .collect(),
            affinity: affinity.collect(),
            affinity_total: vec![0; kinds],
            spread,
            in_bin: if constraints.ports.is_empty() { vec![] } else { vec![0; problem.bins.len() * kinds] },
            quotas: constraints.quotas.iter().map(|quota| vec![0; quota.most.len()]).collect(),
            seats: vec![Vec::new(); kinds],
            volumes: VolumeLoads::new(&constraints.volumes),
        }
    }

    /// True if a member may be added as far as rules that only get worse are concerned.
    pub(super) fn admits(&self, kind: usize, bin: usize) -> bool {
        self.keeps_anti_affinity(kind, bin)
            && self.has_ports(kind, bin)
            && self.is_within_quotas(kind, bin)
            && self.volumes.why_not(kind, bin).is_none()
    }

    fn is_within_quotas(&self, kind: usize, bin: usize) -> bool {
        self.constraints.quotas.iter().zip(&self.quotas).all(|(quota, placed)| {
            let domain = quota.domain[bin] as usize;
            !quota.kinds[kind] || placed.get(domain).is_some_and(|placed| *placed < quota.most[domain])
        })
    }

    /// Why one more member is not welcome in a bin, beside these.
    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        if !self.has_ports(kind, bin) {
            Some(NodeReason::Ports)
        } else if let Some(rule) = self.violated(kind, bin) {
            Some(if rule.is_claim { NodeReason::ExclusiveClaim } else { NodeReason::PodAntiAffinity })
        } else if !self.has_affinity(kind, bin) {
            Some(NodeReason::PodAffinity)
        } else if !self.is_spread(kind, bin) {
            Some(NodeReason::Spread)
        } else {
            self.volumes.why_not(kind, bin)
        }
    }

    fn keeps_anti_affinity(&self, kind: usize, bin: usize) -> bool {
        self.violated(kind, bin).is_none()
    }

    /// A rule about being apart that one more member would break.
    fn violated(&self, kind: usize, bin: usize) -> Option<&'a AntiAffinityRule> {
        let mut rules = self.constraints.anti_affinity.iter().zip(&self.anti_affinity);
        let broken = rules.find(|(rule, loads)| {
            let Some(&(owners, matched)) = loads.get(rule.domain[bin] as usize) else { return false };
            (rule.owns[kind] && matched > 0) || (rule.matched[kind] && owners > 0)
        });
        broken.map(|(rule, _)| rule)
    }

    fn has_ports(&self, kind: usize, bin: usize) -> bool {
        self.in_bin.is_empty()
            || !(0..self.kinds).any(|other| {
                self.in_bin[bin * self.kinds + other] > 0
                    && self.constraints.ports_conflict(kind, other, self.kinds)
            })
    }

    /// True if a member that were added now would have all its wishes fulfilled at once.
    pub(super) fn pleases(&self, kind: usize, bin: usize) -> bool {
        self.has_affinity(kind, bin) && self.is_spread(kind, bin)
    }

    fn has_affinity(&self, kind: usize, bin: usize) -> bool {
        let Some(affinity) = &self.constraints.affinity[kind] else {
            return true;
        };
        let first = affinity.matched[kind] && !affinity.exists && self.affinity_total[kind] == 0;
        first
            || affinity.keys.iter().zip(&self.affinity[kind]).all(|(key, placed)| {
                let domain = key.domain[bin] as usize;
                key.existing[domain] + placed[domain] > 0
            })
    }

    fn is_spread(&self, kind: usize, bin: usize) -> bool {
        let rules = self.constraints.spread[kind].iter().zip(&self.spread[kind]).zip(&self.floors[kind]);
        rules.into_iter().all(|((rule, placed), floor)| {
            let domain = rule.domain[bin] as usize;
            let own = u32::from(rule.counted[kind]);
            rule.existing[domain] + placed[domain] + own <= floor + rule.max_skew
        })
    }

    /// Adds a member.
    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, true);
    }

    /// Takes a member away.
    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        self.shift(kind, bin, false);
    }

    /// True if all rules hold for all members, with nobody else to come.
    pub(super) fn holds(&self) -> bool {
        self.can_hold(&vec![0; self.kinds])
    }

    /// False if rules are broken that so many more members of each kind cannot mend.
    pub(super) fn can_hold(&self, remaining: &[u32]) -> bool {
        (0..self.kinds)
            .filter(|&kind| !self.seats[kind].is_empty())
            .all(|kind| self.affinity_can_hold(kind, remaining) && self.spread_can_hold(kind, remaining))
    }

    fn affinity_can_hold(&self, kind: usize, remaining: &[u32]) -> bool {
        let Some(affinity) = &self.constraints.affinity[kind] else {
            return true;
        };
        if affinity.matched.iter().zip(remaining).any(|(matched, remaining)| *matched && *remaining > 0) {
            return true;
        }
        let own = u32::from(affinity.matched[kind]);
        // Alone of its kind in the whole cluster: whoever matches itself may be the first.
        if own == 1 && !affinity.exists && self.affinity_total[kind] == 1 {
            return true;
        }
        self.seats[kind].iter().all(|&(bin, _)| {
            affinity.keys.iter().zip(&self.affinity[kind]).all(|(key, placed)| {
                let domain = key.domain[bin] as usize;
                key.existing[domain] + placed[domain] > own
            })
        })
    }

    fn spread_can_hold(&self, kind: usize, remaining: &[u32]) -> bool {
        self.constraints.spread[kind].iter().zip(&self.spread[kind]).all(|(rule, placed)| {
            let more =
                rule.counted.iter().zip(remaining).filter(|(counted, _)| **counted).map(|(_, n)| n).sum();
            let floor = rule.highest_floor(placed, more);
            self.seats[kind].iter().all(|&(bin, _)| {
                let domain = rule.domain[bin] as usize;
                rule.existing[domain] + placed[domain] <= floor + rule.max_skew
            })
        })
    }

    fn shift(&mut self, kind: usize, bin: usize, add: bool) {
        let change = |count: &mut u32| if add { *count += 1 } else { *count -= 1 };
        if add {
            self.volumes.put(kind, bin);
        } else {
            self.volumes.take(kind, bin);
        }
        for (rule, loads) in self.constraints.anti_affinity.iter().zip(&mut self.anti_affinity) {
            if rule.domain[bin] != NO_DOMAIN {
                let (owners, matched) = &mut loads[rule.domain[bin] as usize];
                if rule.owns[kind] {
                    change(owners);
                }
                if rule.matched[kind] {
                    change(matched);
                }
            }
        }
        for (owner, affinity) in self.constraints.affinity.iter().enumerate() {
            let Some(affinity) = affinity.as_ref().filter(|affinity| affinity.matched[kind]) else {
                continue;
            };
            let mut is_somewhere = false;
            for (key, placed) in affinity.keys.iter().zip(&mut self.affinity[owner]) {
                if key.domain[bin] != NO_DOMAIN {
                    is_somewhere = true;
                    change(&mut placed[key.domain[bin] as usize]);
                }
            }
            if is_somewhere {
                change(&mut self.affinity_total[owner]);
            }
        }
        for ((rules, placed), floors) in
            self.constraints.spread.iter().zip(&mut self.spread).zip(&mut self.floors)
        {
            for ((rule, placed), floor) in rules.iter().zip(placed).zip(floors) {
                if rule.counted[kind] && rule.domain[bin] != NO_DOMAIN {
                    change(&mut placed[rule.domain[bin] as usize]);
                    *floor = rule.floor(placed);
                }
            }
        }
        for (quota, placed) in self.constraints.quotas.iter().zip(&mut self.quotas) {
            if quota.kinds[kind]
                && let Some(placed) = placed.get_mut(quota.domain[bin] as usize)
            {
                change(placed);
            }
        }
        if !self.in_bin.is_empty() {
            change(&mut self.in_bin[bin * self.kinds + kind]);
        }
        let seats = &mut self.seats[kind];
        match (seats.iter_mut().position(|(used, _)| *used == bin), add) {
            (Some(at), true) => seats[at].1 += 1,
            (Some(at), false) if seats[at].1 > 1 => seats[at].1 -= 1,
            (Some(at), false) => {
                seats.remove(at);
            }
            (None, true) => seats.push((bin, 1)),
            (None, false) => {}
        }
    }
}
