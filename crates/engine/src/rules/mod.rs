//! Placement rules, one per file: what a rule reads from a pod, what it forbids on a node, how it counts in a partial
//! placement, what could unblock a unit that it blocks, the words of its refusal, and its score or where that is.
//!
//! A rule consists of some of these parts, under the same names in every file:
//!
//! * `forbids(shape, node)`: a node is out of the question whatever else is placed. Part of "which nodes are open to a
//!   shape" ([`forbidden`]).
//! * a type with what the rule reads for one problem (`new`), narrowed to some bins (`narrowed`), with what it costs to
//!   check (`cost`), what it sees of a bin (`seen`: bins that no rule tells apart are interchangeable) and what existing pods
//!   rule out for good (`ruled_out`);
//! * `Load`: members of a partial placement as the rule counts them: `put`, `take`, `admits` (may one more be added?),
//!   `why_not`, and for rules that more members can mend `can_hold`;
//! * `ignores(shape)`: the rule does not concern a shape; `add_triggers`: which changes can unblock it;
//! * `WORDS` or `words`: what a refusal says; `speaks`: which reasons are the rule's.
//!
//! Validity is about the final state: a rule holds if it holds with all members in place. Rules that can only get worse
//! as members are added are checked at every step; the others (affinity, spread) at the end, with a bound on the way that
//! tells when they cannot come right any more.
//!
//! To add a rule, add a file, a row in [`RULES`], a field in [`Constraints`] and [`Loads`] if it counts members, and its
//! independent counterpart in the validator. A test holds every row against the validator.

pub(crate) mod affinity;
pub(crate) mod anti_affinity;
pub(crate) mod attach_limit;
pub(crate) mod cordon;
pub(crate) mod declared_features;
pub(crate) mod exclusive_claim;
pub(crate) mod node_affinity;
pub(crate) mod ports;
pub(crate) mod quota;
pub(crate) mod resources;
pub(crate) mod spread;
pub(crate) mod taints;
pub(crate) mod volume_matching;
pub(crate) mod volume_reach;

use crate::refusal::NodeReason;
use crate::state::counts::{Counts, SelectorId};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::relations::Relations;
use crate::state::shape::{ResourceId, Shape};
use crate::state::topology::KeyId;
use crate::state::volumes::Volumes;
use affinity::Affinity;
use anti_affinity::AntiAffinity;
use attach_limit::AttachLimits;
use exclusive_claim::ExclusiveClaims;
use ports::Ports;
use quota::{Quota, Quotas};
use rustc_hash::FxHashMap;
use spread::Spread;
use std::collections::BTreeSet;
use std::sync::Arc;
use tutti_model::Node;
use volume_matching::VolumeMatching;

/// A bin that is in no domain.
pub(crate) const NO_DOMAIN: u32 = u32::MAX;

/// A placement rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name: that of its file.
    pub name: &'static str,
    /// True if it speaks with this reason.
    pub speaks: fn(&NodeReason) -> bool,
    /// What can unblock a unit that it blocks, beside a node that joins.
    pub unblocked_by: &'static [Change],
}

/// A kind of change that can unblock a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A node offers more to a shape of the unit: more is free there, or it has become open to the shape.
    Offer,
    /// A node came, went, or changed its labels or taints, and with that domains and what volumes reach.
    Domains,
    /// A pod that a selector speaks of, or one with such a term, came or went.
    Pods,
    /// A pod with host ports went.
    Ports,
    /// A pod with volumes that several pods use came or went.
    Attachments,
    /// A claim, a volume or a storage class changed that the unit's claims depend on.
    Storage,
    /// The group or composite itself changed.
    Group,
}

/// All rules.
pub const RULES: &[Rule] = {
    use Change::{Attachments, Domains, Group, Offer, Pods, Ports, Storage};
    &[
        Rule { name: "cordon", speaks: cordon::speaks, unblocked_by: &[Offer] },
        Rule { name: "taints", speaks: taints::speaks, unblocked_by: &[Offer] },
        Rule { name: "node_affinity", speaks: node_affinity::speaks, unblocked_by: &[Offer] },
        Rule { name: "declared_features", speaks: declared_features::speaks, unblocked_by: &[Offer] },
        Rule { name: "resources", speaks: resources::speaks, unblocked_by: &[Offer] },
        Rule { name: "volume_reach", speaks: volume_reach::speaks, unblocked_by: &[Offer, Storage] },
        Rule { name: "volume_matching", speaks: volume_matching::speaks, unblocked_by: &[Domains, Storage] },
        Rule {
            name: "attach_limit",
            speaks: attach_limit::speaks,
            unblocked_by: &[Offer, Attachments, Storage],
        },
        Rule { name: "exclusive_claim", speaks: exclusive_claim::speaks, unblocked_by: &[Storage] },
        Rule { name: "ports", speaks: ports::speaks, unblocked_by: &[Ports] },
        Rule { name: "affinity", speaks: affinity::speaks, unblocked_by: &[Pods, Domains] },
        Rule { name: "anti_affinity", speaks: anti_affinity::speaks, unblocked_by: &[Pods, Domains] },
        Rule { name: "spread", speaks: spread::speaks, unblocked_by: &[Pods, Domains] },
        // What a quota blocks is said by the level that the slices name.
        Rule { name: "quota", speaks: |_| false, unblocked_by: &[Offer, Domains, Group] },
    ]
};

/// Why a pod of a shape may not use a node, whatever is free and whichever pods are there.
pub(crate) fn forbidden(shape: &Shape, node: &Node) -> Option<NodeReason> {
    cordon::forbids(shape, node)
        .or_else(|| taints::forbids(shape, node))
        .or_else(|| node_affinity::forbids(shape, node))
        .or_else(|| declared_features::forbids(shape, node))
        .or_else(|| volume_reach::forbids(shape, node))
}

/// True if a node is open to every shape that [`is_undemanding`].
pub(crate) fn is_open(node: &Node) -> bool {
    cordon::is_open(node) && taints::is_open(node)
}

/// True if a shape may use every node that [`is_open`].
pub(crate) fn is_undemanding(shape: &Shape) -> bool {
    node_affinity::is_undemanding(shape)
        && declared_features::is_undemanding(shape)
        && volume_reach::is_undemanding(shape)
}

/// True if a shape's room on a node by itself tells all: other pods, ports and free volumes do not matter to it. Volumes
/// that several pods use are part of that room.
pub(crate) fn is_independent(shape: &Shape, relations: &Relations) -> bool {
    affinity::ignores(shape)
        && anti_affinity::ignores(shape, &relations.counts)
        && spread::ignores(shape)
        && ports::ignores(shape)
        && exclusive_claim::ignores(shape)
        && volume_matching::ignores(shape)
}

/// Changes that can unblock a shape, beside a node that offers more ([`Change::Offer`]) and changes of storage, which
/// concern pods by their claims ([`Change::Storage`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Triggers {
    /// [`Change::Domains`]
    pub(crate) domains: bool,
    /// [`Change::Ports`]
    pub(crate) ports: bool,
    /// [`Change::Attachments`]
    pub(crate) attachments: bool,
    /// [`Change::Pods`] of these.
    pub(crate) selectors: BTreeSet<SelectorId>,
}

impl Triggers {
    /// Adds what can unblock a shape, as every rule says.
    pub(crate) fn add(&mut self, shape: &Shape, counts: &Counts) {
        ports::add_triggers(shape, self);
        affinity::add_triggers(shape, self);
        anti_affinity::add_triggers(shape, counts, self);
        spread::add_triggers(shape, self);
        attach_limit::add_triggers(shape, self);
        volume_matching::add_triggers(shape, self);
    }
}

/// What rules are read from: the kinds and bins of one problem, and tables.
pub(crate) struct Scope<'a> {
    /// By kind.
    pub(crate) shapes: Vec<Arc<Shape>>,
    /// By kind: members to be placed.
    pub(crate) counts: Vec<u32>,
    pub(crate) bins: &'a [NodeId],
    /// Columns of `free`.
    pub(crate) resources: &'a [ResourceId],
    /// What is free in a bin: `free[bin * resources + resource]`.
    pub(crate) free: &'a [i64],
    pub(crate) nodes: &'a NodeTable,
    pub(crate) relations: &'a Relations,
    pub(crate) volumes: &'a Volumes,
}

impl Scope<'_> {
    /// By kind: whether a selector selects it.
    fn matched(&self, selector: SelectorId) -> Vec<bool> {
        self.shapes.iter().map(|shape| shape.matches.binary_search(&selector).is_ok()).collect()
    }

    /// By bin: its domain.
    fn domains(&self, key: KeyId) -> Vec<u32> {
        let topology = &self.relations.topology;
        self.bins.iter().map(|&node| topology.domain(key, node).map_or(NO_DOMAIN, |d| d.0)).collect()
    }
}

/// Steps of the search budget that checks of rules take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// To see whether one more member is admitted to a bin.
    pub(crate) look: usize,
    /// To see whether the rules can still be kept: once,
    pub(crate) hold: usize,
    /// and for each member that has a seat.
    pub(crate) hold_per_member: usize,
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |sum, cost| Self {
            look: sum.look + cost.look,
            hold: sum.hold + cost.hold,
            hold_per_member: sum.hold_per_member + cost.hold_per_member,
        })
    }
}

/// What all rules that count members demand, cut down to the kinds and bins of one problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constraints {
    kinds: usize,
    bins: usize,
    pub(crate) affinity: Affinity,
    pub(crate) anti_affinity: AntiAffinity,
    pub(crate) spread: Spread,
    pub(crate) ports: Ports,
    pub(crate) exclusive_claims: ExclusiveClaims,
    pub(crate) attach_limits: AttachLimits,
    pub(crate) volume_matching: VolumeMatching,
    pub(crate) quotas: Quotas,
}

impl Constraints {
    /// Reads the rules of a problem.
    pub(crate) fn new(scope: &Scope<'_>) -> Self {
        Self {
            kinds: scope.shapes.len(),
            bins: scope.bins.len(),
            affinity: Affinity::new(scope),
            anti_affinity: AntiAffinity::new(scope),
            spread: Spread::new(scope),
            ports: Ports::new(scope),
            exclusive_claims: ExclusiveClaims::new(scope),
            attach_limits: AttachLimits::new(scope),
            volume_matching: VolumeMatching::new(scope),
            quotas: Quotas::default(),
        }
    }

    /// True if no rule demands anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.spread.is_empty()
            && self.ports.is_empty()
            && self.exclusive_claims.is_empty()
            && self.attach_limits.is_empty()
            && self.volume_matching.is_empty()
            && self.quotas.is_empty()
    }

    /// The same rules for some of the bins, with quotas that speak of the bins as they were.
    pub(crate) fn narrowed(&self, bins: &[usize], quotas: &[Quota]) -> Self {
        Self {
            kinds: self.kinds,
            bins: bins.len(),
            affinity: self.affinity.narrowed(bins),
            anti_affinity: self.anti_affinity.narrowed(bins),
            spread: self.spread.narrowed(bins),
            ports: self.ports.clone(),
            exclusive_claims: self.exclusive_claims.clone(),
            attach_limits: self.attach_limits.narrowed(bins),
            volume_matching: self.volume_matching.narrowed(bins),
            quotas: Quotas::of(quotas, bins),
        }
    }

    /// Why existing pods keep a kind out of a bin, whichever members come along.
    pub(crate) fn ruled_out(&self, scope: &Scope<'_>, kind: usize, bin: usize) -> Option<NodeReason> {
        let (shape, node) = (&scope.shapes[kind], scope.bins[bin]);
        ports::ruled_out(shape, node, scope.relations)
            .or_else(|| anti_affinity::ruled_out(shape, node, scope.relations))
            .or_else(|| self.affinity.ruled_out(kind, bin))
            .or_else(|| self.spread.ruled_out(kind, bin))
            .or_else(|| self.attach_limits.ruled_out(kind, bin))
            .or_else(|| self.volume_matching.ruled_out(kind, bin))
    }

    /// What existing pods rule out becomes part of whether a kind may use a bin: `allowed[bin * kinds + kind]`.
    pub(crate) fn forbid(&self, scope: &Scope<'_>, allowed: &mut [bool]) {
        let is_concerned = |&kind: &usize| {
            let shape = &scope.shapes[kind];
            !is_independent(shape, scope.relations) || !attach_limit::ignores(shape)
        };
        for kind in (0..self.kinds).filter(is_concerned) {
            for bin in 0..self.bins {
                let allowed = &mut allowed[bin * self.kinds + kind];
                *allowed = *allowed && self.ruled_out(scope, kind, bin).is_none();
            }
        }
    }

    /// Copies of a kind that a bin takes by themselves, as far as these rules are concerned.
    pub(crate) fn most(&self, kind: usize, bin: usize) -> u64 {
        let volumes = self.attach_limits.most(kind, bin).min(self.volume_matching.most(kind, bin));
        self.ports.most(kind).min(u64::from(volumes))
    }

    /// Copies of a kind that all bins together take at most, as far as these rules are concerned.
    pub(crate) fn most_anywhere(&self, kind: usize) -> u64 {
        self.volume_matching.most_anywhere(kind)
    }

    /// Steps that checks of all rules take.
    pub(crate) fn cost(&self) -> Cost {
        let costs = [
            self.affinity.cost(),
            self.anti_affinity.cost(),
            self.spread.cost(),
            self.ports.cost(),
            self.exclusive_claims.cost(),
            self.attach_limits.cost(),
            self.volume_matching.cost(),
            self.quotas.cost(),
        ];
        costs.into_iter().sum()
    }

    /// What every rule sees of every bin: its domain, or for a bin that is a domain of its own, what exists there. Bins
    /// that are alone in their domains are alike although their domains differ. Ports and exclusive claims see nothing
    /// beyond what is allowed.
    pub(crate) fn seen(&self) -> Vec<Vec<u32>> {
        let by_domain = self.anti_affinity.seen().chain(self.affinity.seen()).chain(self.spread.seen());
        let by_volume = self.attach_limits.seen().into_iter().chain(self.volume_matching.seen());
        by_domain.chain(self.quotas.seen()).chain(by_volume).collect()
    }
}

/// Members that were put into bins, as all rules count them.
#[derive(Debug, Clone)]
pub(crate) struct Loads<'a> {
    kinds: usize,
    affinity: affinity::Load<'a>,
    anti_affinity: anti_affinity::Load<'a>,
    spread: spread::Load<'a>,
    ports: ports::Load<'a>,
    exclusive_claims: exclusive_claim::Load<'a>,
    attach_limits: attach_limit::Load<'a>,
    volume_matching: volume_matching::Load<'a>,
    quotas: quota::Load<'a>,
    /// By kind: bins and members.
    seats: Vec<Vec<(usize, u32)>>,
}

impl<'a> Loads<'a> {
    /// No members.
    pub(crate) fn new(constraints: &'a Constraints) -> Self {
        Self {
            kinds: constraints.kinds,
            affinity: affinity::Load::new(&constraints.affinity),
            anti_affinity: anti_affinity::Load::new(&constraints.anti_affinity),
            spread: spread::Load::new(&constraints.spread),
            ports: ports::Load::new(&constraints.ports, constraints.bins),
            exclusive_claims: exclusive_claim::Load::new(&constraints.exclusive_claims),
            attach_limits: attach_limit::Load::new(&constraints.attach_limits),
            volume_matching: volume_matching::Load::new(&constraints.volume_matching),
            quotas: quota::Load::new(&constraints.quotas),
            seats: vec![Vec::new(); constraints.kinds],
        }
    }

    /// Adds a member.
    pub(crate) fn put(&mut self, kind: usize, bin: usize) {
        self.affinity.put(kind, bin);
        self.anti_affinity.put(kind, bin);
        self.spread.put(kind, bin);
        self.ports.put(kind, bin);
        self.exclusive_claims.put(kind);
        self.attach_limits.put(kind, bin);
        self.volume_matching.put(kind, bin);
        self.quotas.put(kind, bin);
        let seats = &mut self.seats[kind];
        match seats.iter_mut().find(|(used, _)| *used == bin) {
            Some((_, members)) => *members += 1,
            None => seats.push((bin, 1)),
        }
    }

    /// Takes a member away.
    pub(crate) fn take(&mut self, kind: usize, bin: usize) {
        self.affinity.take(kind, bin);
        self.anti_affinity.take(kind, bin);
        self.spread.take(kind, bin);
        self.ports.take(kind, bin);
        self.exclusive_claims.take(kind);
        self.attach_limits.take(kind, bin);
        self.volume_matching.take(kind, bin);
        self.quotas.take(kind, bin);
        let seats = &mut self.seats[kind];
        if let Some(at) = seats.iter().position(|(used, _)| *used == bin) {
            seats[at].1 -= 1;
            if seats[at].1 == 0 {
                seats.remove(at);
            }
        }
    }

    /// True if a member may be added as far as rules that only get worse are concerned.
    pub(crate) fn admits(&self, kind: usize, bin: usize) -> bool {
        self.anti_affinity.admits(kind, bin)
            && self.exclusive_claims.admits(kind)
            && self.ports.admits(kind, bin)
            && self.quotas.admits(kind, bin)
            && self.attach_limits.admits(kind, bin)
            && self.volume_matching.admits(kind, bin)
    }

    /// True if the rules that more members can mend would hold at once for a member that is added now.
    pub(crate) fn pleases(&self, kind: usize, bin: usize) -> bool {
        self.affinity.admits(kind, bin) && self.spread.admits(kind, bin)
    }

    /// Why one more member may not be added to a bin, beside these.
    pub(crate) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        self.ports
            .why_not(kind, bin)
            .or_else(|| self.anti_affinity.why_not(kind, bin))
            .or_else(|| self.exclusive_claims.why_not(kind))
            .or_else(|| self.affinity.why_not(kind, bin))
            .or_else(|| self.spread.why_not(kind, bin))
            .or_else(|| self.attach_limits.why_not(kind, bin))
            .or_else(|| self.volume_matching.why_not(kind, bin))
    }

    /// True if all rules hold for all members, with none to come.
    pub(crate) fn holds(&self) -> bool {
        self.can_hold(&vec![0; self.kinds])
    }

    /// False if rules are broken that so many more members of each kind cannot mend.
    pub(crate) fn can_hold(&self, remaining: &[u32]) -> bool {
        let seated = self.seats.iter().enumerate().filter(|(_, seats)| !seats.is_empty());
        seated.into_iter().all(|(kind, seats)| {
            self.affinity.can_hold(kind, seats, remaining) && self.spread.can_hold(kind, seats, remaining)
        })
    }
}

/// The values that some bins have.
fn pick(of_bin: &[u32], bins: &[usize]) -> Vec<u32> {
    bins.iter().map(|&bin| of_bin[bin]).collect()
}

/// The rows of a table that some bins have.
fn rows<T: Copy>(table: &[T], width: usize, bins: &[usize]) -> Vec<T> {
    bins.iter().flat_map(|&bin| table[bin * width..(bin + 1) * width].iter().copied()).collect()
}

/// What a rule about domains sees of every bin, see [`Constraints::seen`].
fn seen(domains: &[u32], existing: impl Fn(usize) -> u32) -> Vec<u32> {
    let mut bins_in: FxHashMap<u32, u32> = FxHashMap::default();
    for &domain in domains {
        *bins_in.entry(domain).or_default() += 1;
    }
    let mark = |&domain: &u32| match bins_in.get(&domain) {
        Some(1) if domain != NO_DOMAIN => NO_DOMAIN - 1 - existing(domain as usize).min(NO_DOMAIN / 2),
        _ => domain,
    };
    domains.iter().map(mark).collect()
}
