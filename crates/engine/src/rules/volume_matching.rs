//! Volume matching: every unbound claim of a pod can be given a volume that suits it and that its node reaches, or a volume
//! can be made there; no volume is given to two claims.
//!
//! The part of Kubernetes' `VolumeBinding` about claims of classes with `volumeBindingMode: WaitForFirstConsumer`. It can
//! only get worse as members are added. Volumes that are alike to all claims of a problem form a pool; which claim gets
//! which pool is a matching that is kept as large as it can be, so that an early choice never stands in the way of a later
//! member.

use super::{Cost, Scope, Triggers, rows};
use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use crate::state::volumes::{Ask, Place, places_of};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use tutti_model::{NodeSelectorTerm, Operator, Text};

/// The words of a refusal.
pub(crate) const WORDS: &str = "no free volume for a claim";

/// Steps of a look: mostly a few look-ups, now and then a way to move others.
const LOOK: usize = 32;

/// Claims without a volume and the volumes that they could be given, in one problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct VolumeMatching {
    /// By kind: what its claims ask for, by number of the ask.
    asks: Vec<Vec<usize>>,
    /// By pool: how many volumes.
    sizes: Vec<usize>,
    /// `reach[ask * bins + bin]`: pools that serve the ask there; nothing if a volume can be made there.
    reach: Vec<Option<Vec<usize>>>,
    bins: usize,
    /// `most[bin * kinds + kind]`: copies that a bin takes by themselves. Empty if there are no asks.
    most: Vec<u32>,
}

impl VolumeMatching {
    pub(super) fn new(scope: &Scope<'_>) -> Self {
        let mut distinct: Vec<&Ask> = Vec::new();
        let mut number = |ask| match distinct.iter().position(|&other| other == ask) {
            Some(at) => at,
            None => {
                distinct.push(ask);
                distinct.len() - 1
            }
        };
        let asks: Vec<Vec<usize>> =
            scope.shapes.iter().map(|shape| shape.volumes.asks.iter().map(&mut number).collect()).collect();
        if distinct.is_empty() {
            return Self::default();
        }
        let guessed: FxHashSet<&Text> =
            scope.shapes.iter().flat_map(|shape| &shape.volumes.guesses).collect();
        let mut pools: FxHashMap<(Vec<bool>, Vec<Place>), usize> = FxHashMap::default();
        let (mut sizes, mut kinds_of_pool) = (Vec::new(), Vec::new());
        for volume in scope.volumes.free_volumes() {
            let suits: Vec<bool> = distinct.iter().map(|ask| volume.suits(&ask.claim)).collect();
            if guessed.contains(&volume.name) || !suits.contains(&true) {
                continue;
            }
            let places = places_of(volume).collect::<Vec<Place>>();
            let at = *pools.entry((suits.clone(), places.clone())).or_insert_with(|| {
                sizes.push(0);
                kinds_of_pool.push((suits, places));
                sizes.len() - 1
            });
            sizes[at] += 1;
        }
        let bins = scope.bins.len();
        let mut reach: Vec<Option<Vec<usize>>> = Vec::with_capacity(distinct.len() * bins);
        for ask in &distinct {
            let made = |&node| scope.nodes.node(node).is_some_and(|node| ask.is_provisioned_for(node));
            reach.extend(scope.bins.iter().map(|node| (!made(node)).then(Vec::new)));
        }
        let index = BinIndex::new(scope);
        for (pool, (suits, places)) in kinds_of_pool.iter().enumerate() {
            for bin in index.accepted(places) {
                for ask in (0..distinct.len()).filter(|&ask| suits[ask]) {
                    if let Some(reach) = &mut reach[ask * bins + bin] {
                        reach.push(pool);
                    }
                }
            }
        }
        let mut matching = Self { asks, sizes, reach, bins, most: Vec::new() };
        let pairs = (0..bins).flat_map(|bin| (0..scope.shapes.len()).map(move |kind| (kind, bin)));
        matching.most = pairs.map(|(kind, bin)| matching.count_most(scope, kind, bin)).collect();
        matching
    }

    pub(super) fn narrowed(&self, bins: &[usize]) -> Self {
        if self.is_empty() {
            return self.clone();
        }
        let asks = self.reach.chunks_exact(self.bins.max(1));
        Self {
            reach: asks.flat_map(|reach| bins.iter().map(|&bin| reach[bin].clone())).collect(),
            bins: bins.len(),
            most: rows(&self.most, self.asks.len(), bins),
            ..self.clone()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reach.is_empty()
    }

    /// Copies of a kind that a bin takes by themselves.
    pub(crate) fn most(&self, kind: usize, bin: usize) -> u32 {
        self.most.get(bin * self.asks.len() + kind).copied().unwrap_or(u32::MAX)
    }

    fn count_most(&self, scope: &Scope<'_>, kind: usize, bin: usize) -> u32 {
        if self.asks[kind].is_empty() {
            return u32::MAX;
        }
        let mut load = Load::new(self);
        let most = scope.nodes.room(scope.bins[bin], &scope.shapes[kind]).min(scope.counts[kind]);
        (0..most).find(|_| !load.give(kind, bin)).unwrap_or(most)
    }

    /// Copies of a kind that all volumes together are enough for.
    pub(crate) fn most_anywhere(&self, kind: usize) -> u64 {
        let enough = |&ask: &usize| {
            let bins = &self.reach[ask * self.bins..(ask + 1) * self.bins];
            let mut pools = FxHashSet::default();
            for reach in bins {
                match reach {
                    None => return u64::MAX,
                    Some(reach) => pools.extend(reach),
                }
            }
            pools.into_iter().map(|&pool| self.sizes[pool] as u64).sum()
        };
        self.asks.get(kind).into_iter().flatten().map(enough).min().unwrap_or(u64::MAX)
    }

    /// True if what a kind takes in one bin makes no difference to others of the kind elsewhere.
    pub(crate) fn are_local(&self) -> bool {
        let mut bin_of: FxHashMap<usize, usize> = FxHashMap::default();
        let mut reached = self.reach.iter().enumerate().filter_map(|(at, reach)| Some((at, reach.as_ref()?)));
        reached.all(|(at, reach)| {
            let bin = at % self.bins;
            reach.iter().all(|&pool| *bin_of.entry(pool).or_insert(bin) == bin)
        })
    }

    pub(super) fn cost(&self) -> Cost {
        let look = if self.is_empty() { 0 } else { LOOK };
        Cost { look, ..Cost::default() }
    }

    /// What the rule sees of every bin: bins with the same number are alike to it.
    pub(super) fn seen(&self) -> Option<Vec<u32>> {
        if self.is_empty() {
            return None;
        }
        let mut reached_from: FxHashMap<usize, FxHashSet<usize>> = FxHashMap::default();
        for (at, reach) in self.reach.iter().enumerate() {
            for &pool in reach.iter().flatten() {
                reached_from.entry(pool).or_default().insert(at % self.bins);
            }
        }
        // A pool that only one bin reaches is as good as another of its size.
        let look = |pool: &usize| match reached_from.get(pool).map_or(0, FxHashSet::len) {
            1 => (true, self.sizes[*pool]),
            _ => (false, *pool),
        };
        let mut numbers = FxHashMap::default();
        let number = |bin: usize| {
            let asks = self.reach.iter().skip(bin).step_by(self.bins.max(1));
            let mut reach: Vec<Option<Vec<(bool, usize)>>> =
                asks.map(|reach| reach.as_ref().map(|reach| reach.iter().map(look).collect())).collect();
            reach.iter_mut().flatten().for_each(|reach| reach.sort_unstable());
            let next = numbers.len() as u32;
            *numbers.entry(reach).or_insert(next)
        };
        Some((0..self.bins).map(number).collect())
    }

    /// Why volumes that exist keep a kind out of a bin.
    pub(super) fn ruled_out(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (self.most(kind, bin) == 0).then_some(NodeReason::NoVolume)
    }
}

/// Bins by label, so that a volume of one machine is not compared with every machine.
struct BinIndex<'a, 'b> {
    scope: &'a Scope<'b>,
    by_label: RefCell<FxHashMap<Text, FxHashMap<String, Vec<usize>>>>,
}

impl<'a, 'b> BinIndex<'a, 'b> {
    fn new(scope: &'a Scope<'b>) -> Self {
        Self { scope, by_label: RefCell::default() }
    }

    /// Bins that all places accept.
    fn accepted(&self, places: &[Place]) -> Vec<usize> {
        let mut bins = places.iter().find_map(|place| match place {
            Place::Terms(terms) => self.perhaps(terms),
            Place::Zone(..) => None,
        });
        let bins = bins.get_or_insert_with(|| (0..self.scope.bins.len()).collect());
        bins.retain(|&bin| {
            let node = self.scope.nodes.node(self.scope.bins[bin]);
            node.is_some_and(|node| places.iter().all(|place| place.accepts(node)))
        });
        std::mem::take(bins)
    }

    /// Bins that may match one of the terms, if every term names values of a label.
    fn perhaps(&self, terms: &[NodeSelectorTerm]) -> Option<Vec<usize>> {
        let mut bins = Vec::new();
        for term in terms {
            let named = term.labels.iter().find(|requirement| requirement.operator == Operator::In)?;
            let mut by_label = self.by_label.borrow_mut();
            let values = by_label.entry(named.key.clone()).or_insert_with(|| self.values_of(&named.key));
            let matching = named.values.iter().filter_map(|value| values.get(value.as_ref()));
            bins.extend(matching.flatten().copied());
        }
        bins.sort_unstable();
        bins.dedup();
        Some(bins)
    }

    fn values_of(&self, key: &str) -> FxHashMap<String, Vec<usize>> {
        let mut values: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (bin, &node) in self.scope.bins.iter().enumerate() {
            if let Some(value) = self.scope.nodes.node(node).and_then(|node| node.labels.get(key)) {
                values.entry(value.to_owned()).or_default().push(bin);
            }
        }
        values
    }
}

/// Volumes that members are given, in a partial placement.
#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    rules: &'a VolumeMatching,
    /// By pool: the asks that it serves, and where.
    given: FxHashMap<usize, Vec<(usize, usize)>>,
}

impl<'a> Load<'a> {
    pub(super) fn new(rules: &'a VolumeMatching) -> Self {
        Self { rules, given: FxHashMap::default() }
    }

    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        self.give(kind, bin);
    }

    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        let rules = self.rules;
        for &ask in rules.asks.get(kind).into_iter().flatten() {
            let reach = rules.reach[ask * rules.bins + bin].as_ref();
            let holds =
                |&&pool: &&usize| self.given.get(&pool).is_some_and(|served| served.contains(&(ask, bin)));
            if let Some(&pool) = reach.and_then(|reach| reach.iter().find(holds))
                && let Some(served) = self.given.get_mut(&pool)
            {
                served.retain({
                    let mut is_out = false;
                    move |&one| one != (ask, bin) || std::mem::replace(&mut is_out, true)
                });
            }
        }
    }

    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        (!self.admits(kind, bin)).then_some(NodeReason::NoVolume)
    }

    pub(super) fn admits(&self, kind: usize, bin: usize) -> bool {
        let asks = self.rules.asks.get(kind).map_or(&[][..], Vec::as_slice);
        match asks {
            [] => true,
            [ask] => self.find(*ask, bin, &mut FxHashSet::default()).is_some(),
            _ => self.clone().give(kind, bin),
        }
    }

    /// Gives a member what it asks for. False if there is not enough; then nothing useful is left of this copy.
    fn give(&mut self, kind: usize, bin: usize) -> bool {
        let asks = self.rules.asks.get(kind).map_or(&[][..], Vec::as_slice);
        asks.iter().all(|&ask| {
            let Some(path) = self.find(ask, bin, &mut FxHashSet::default()) else { return false };
            self.follow(ask, bin, &path);
            true
        })
    }

    /// A way to serve one more ask: the pool that serves it, then for each pool on the way the ask that moves on to the next.
    /// Empty if a volume can be made.
    fn find(&self, ask: usize, bin: usize, seen: &mut FxHashSet<usize>) -> Option<Vec<(usize, usize)>> {
        let rules = self.rules;
        let Some(reach) = &rules.reach[ask * rules.bins + bin] else { return Some(Vec::new()) };
        for &pool in reach {
            if !seen.insert(pool) {
                continue;
            }
            let served = self.given.get(&pool).map_or(&[][..], Vec::as_slice);
            if served.len() < rules.sizes[pool] {
                return Some(vec![(pool, 0)]);
            }
            for (at, &(other, there)) in served.iter().enumerate() {
                if let Some(rest) = self.find(other, there, seen) {
                    return Some([(pool, at)].into_iter().chain(rest).collect());
                }
            }
        }
        None
    }

    fn follow(&mut self, ask: usize, bin: usize, path: &[(usize, usize)]) {
        let mut moving = (ask, bin);
        for (step, &(pool, at)) in path.iter().enumerate() {
            let served = self.given.entry(pool).or_default();
            if step + 1 == path.len() {
                served.push(moving);
            } else {
                moving = std::mem::replace(&mut served[at], moving);
            }
        }
    }
}

/// True if the rule never concerns the shape.
pub(super) fn ignores(shape: &Shape) -> bool {
    shape.volumes.asks.is_empty()
}

/// A node that changed its labels may reach volumes that it did not. Volumes and claims that change wake the pods whose
/// claims they concern by themselves: see [`crate::state::volumes`].
pub(super) fn add_triggers(shape: &Shape, triggers: &mut Triggers) {
    triggers.domains |= !ignores(shape);
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::NoVolume)
}
