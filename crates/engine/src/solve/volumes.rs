//! What volumes demand beyond one node and one member: volumes that several pods use are attached once, free volumes
//! are given to one claim each.
//!
//! Both rules can only get worse as members are added, so they are checked at every step. Volumes that are alike to
//! everybody who asks form a pool; which claim gets which pool is a matching that is kept as large as it can be, so
//! that an early choice never stands in the way of a later member.

use super::Tables;
use super::problem::Problem;
use crate::refusal::NodeReason;
use crate::state::shape::Shape;
use crate::state::volumes::{Ask, Place};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tutti_model::{NodeSelectorTerm, Operator, Text};

/// The rules of a problem.
#[derive(Debug, Clone, Default)]
pub(super) struct VolumeRules {
    kinds: usize,
    disks: Disks,
    pools: Pools,
    /// `most[bin * kinds + kind]`: copies in a bin by themselves; empty if there are no rules.
    most: Vec<u32>,
}

/// Volumes that more than one pod uses.
#[derive(Debug, Clone, Default)]
struct Disks {
    /// By kind: resource column and number of the volume.
    used: Vec<Vec<(usize, usize)>>,
    /// By kind: what volumes of its own take, by column. Only columns of shared volumes.
    own: Vec<Vec<(usize, i64)>>,
    /// `there[bin * count + volume]`: a pod that exists uses it there.
    there: Vec<bool>,
    count: usize,
    /// What is free for volumes: `free[bin * width + column]`.
    free: Vec<i64>,
    width: usize,
}

/// Volumes to be given to claims.
#[derive(Debug, Clone, Default)]
struct Pools {
    /// By kind: what its claims ask for, by number of the ask.
    asks: Vec<Vec<usize>>,
    /// By pool: how many volumes.
    sizes: Vec<usize>,
    /// `reach[ask * bins + bin]`: pools that serve the ask there; nothing if a volume can be made there.
    reach: Vec<Option<Vec<usize>>>,
    bins: usize,
}

/// The rows of a table that some bins have.
fn rows<T: Copy>(table: &[T], width: usize, bins: &[usize]) -> Vec<T> {
    bins.iter().flat_map(|&bin| table[bin * width..(bin + 1) * width].iter().copied()).collect()
}

impl VolumeRules {
    pub(super) fn new(problem: &Problem, shapes: &[Arc<Shape>], tables: &Tables<'_>) -> Self {
        let mut rules = Self {
            kinds: shapes.len(),
            disks: Disks::new(problem, shapes, tables),
            pools: Pools::new(problem, shapes, tables),
            most: Vec::new(),
        };
        if !rules.is_empty() {
            let pairs =
                (0..problem.bins.len()).flat_map(|bin| (0..shapes.len()).map(move |kind| (bin, kind)));
            rules.most =
                pairs.map(|(bin, kind)| rules.count_most(problem, shapes, tables, kind, bin)).collect();
        }
        rules
    }

    /// The same rules for some of the bins.
    pub(super) fn narrowed(&self, bins: &[usize]) -> Self {
        if self.is_empty() {
            return self.clone();
        }
        let mut narrow = self.clone();
        narrow.disks.there = rows(&self.disks.there, self.disks.count, bins);
        narrow.disks.free = rows(&self.disks.free, self.disks.width, bins);
        narrow.most = rows(&self.most, self.kinds, bins);
        let asks = self.pools.reach.chunks_exact(self.pools.bins.max(1));
        narrow.pools.reach = asks.flat_map(|reach| bins.iter().map(|&bin| reach[bin].clone())).collect();
        narrow.pools.bins = bins.len();
        narrow
    }

    pub(super) fn is_empty(&self) -> bool {
        self.disks.count == 0 && self.pools.reach.is_empty()
    }

    /// Copies of a kind that a bin takes by themselves, as far as volumes are concerned.
    pub(super) fn most(&self, kind: usize, bin: usize) -> u32 {
        self.most.get(bin * self.kinds + kind).copied().unwrap_or(u32::MAX)
    }

    /// Copies of a kind that all volumes together are enough for.
    pub(super) fn most_anywhere(&self, kind: usize) -> u64 {
        let enough = |&ask: &usize| {
            let bins = &self.pools.reach[ask * self.pools.bins..(ask + 1) * self.pools.bins];
            let mut pools = FxHashSet::default();
            for reach in bins {
                match reach {
                    None => return u64::MAX,
                    Some(reach) => pools.extend(reach),
                }
            }
            pools.into_iter().map(|&pool| self.pools.sizes[pool] as u64).sum()
        };
        self.pools.asks.get(kind).into_iter().flatten().map(enough).min().unwrap_or(u64::MAX)
    }

    /// True if what a kind takes in one bin makes no difference to others of the kind elsewhere.
    pub(super) fn are_local(&self) -> bool {
        let mut bin_of: FxHashMap<usize, usize> = FxHashMap::default();
        let mut reached =
            self.pools.reach.iter().enumerate().filter_map(|(at, reach)| Some((at, reach.as_ref()?)));
        reached.all(|(at, reach)| {
            let bin = at % self.pools.bins;
            reach.iter().all(|&pool| *bin_of.entry(pool).or_insert(bin) == bin)
        })
    }

    /// What the rules see of every bin: bins with the same number are alike to them.
    pub(super) fn seen(&self, bins: usize) -> Option<Vec<u32>> {
        if self.is_empty() {
            return None;
        }
        let mut reached_from: FxHashMap<usize, FxHashSet<usize>> = FxHashMap::default();
        for (at, reach) in self.pools.reach.iter().enumerate() {
            for &pool in reach.iter().flatten() {
                reached_from.entry(pool).or_default().insert(at % self.pools.bins);
            }
        }
        // A pool that only one bin reaches is as good as another of its size.
        let look = |pool: &usize| match reached_from.get(pool).map_or(0, FxHashSet::len) {
            1 => (true, self.pools.sizes[*pool]),
            _ => (false, *pool),
        };
        let mut numbers = FxHashMap::default();
        let number = |bin: usize| {
            let there = self.disks.there.get(bin * self.disks.count..(bin + 1) * self.disks.count);
            let asks = self.pools.reach.iter().skip(bin).step_by(self.pools.bins.max(1));
            let mut reach: Vec<Option<Vec<(bool, usize)>>> =
                asks.map(|reach| reach.as_ref().map(|reach| reach.iter().map(look).collect())).collect();
            reach.iter_mut().flatten().for_each(|reach| reach.sort_unstable());
            let next = numbers.len() as u32;
            *numbers.entry((there.map(<[bool]>::to_vec), reach)).or_insert(next)
        };
        Some((0..bins).map(number).collect())
    }

    fn count_most(
        &self,
        problem: &Problem,
        shapes: &[Arc<Shape>],
        tables: &Tables<'_>,
        kind: usize,
        bin: usize,
    ) -> u32 {
        let room = tables.nodes.room(problem.bins[bin], &shapes[kind]);
        if self.pools.asks.get(kind).is_none_or(Vec::is_empty) {
            return room;
        }
        let mut loads = VolumeLoads::new(self);
        let most = room.min(problem.kinds[kind].count);
        (0..most).find(|_| !loads.give_volumes(kind, bin)).unwrap_or(most)
    }
}

impl Disks {
    fn new(problem: &Problem, shapes: &[Arc<Shape>], tables: &Tables<'_>) -> Self {
        let mut names: Vec<&Text> =
            shapes.iter().flat_map(|shape| &shape.volumes.shared).map(|(_, name)| name).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Self::default();
        }
        let column = |resource| problem.resources.iter().position(|&other| other == resource);
        let used = |shape: &Arc<Shape>| {
            let shared = shape.volumes.shared.iter();
            shared
                .filter_map(|(resource, name)| Some((column(*resource)?, names.binary_search(&name).ok()?)))
                .collect()
        };
        let used: Vec<Vec<(usize, usize)>> = shapes.iter().map(used).collect();
        let mut columns: Vec<usize> = used.iter().flatten().map(|&(column, _)| column).collect();
        columns.sort_unstable();
        columns.dedup();
        let own = |kind: &super::problem::Kind| columns.iter().map(|&at| (at, kind.demand[at])).collect();
        let there = problem
            .bins
            .iter()
            .flat_map(|&node| names.iter().map(move |name| tables.nodes.has_volume(node, name)));
        Self {
            own: problem.kinds.iter().map(own).collect(),
            there: there.collect(),
            count: names.len(),
            free: problem.free.clone(),
            width: problem.resources.len(),
            used,
        }
    }
}

impl Pools {
    fn new(problem: &Problem, shapes: &[Arc<Shape>], tables: &Tables<'_>) -> Self {
        let mut distinct: Vec<&Ask> = Vec::new();
        let mut number = |ask| match distinct.iter().position(|&other| other == ask) {
            Some(at) => at,
            None => {
                distinct.push(ask);
                distinct.len() - 1
            }
        };
        let asks: Vec<Vec<usize>> =
            shapes.iter().map(|shape| shape.volumes.asks.iter().map(&mut number).collect()).collect();
        if distinct.is_empty() {
            return Self::default();
        }
        let guessed: FxHashSet<&Text> = shapes.iter().flat_map(|shape| &shape.volumes.guesses).collect();
        let mut pools: FxHashMap<(Vec<bool>, Vec<Place>), usize> = FxHashMap::default();
        let (mut sizes, mut kinds_of_pool) = (Vec::new(), Vec::new());
        for volume in tables.volumes.free_volumes() {
            let suits: Vec<bool> = distinct.iter().map(|ask| volume.suits(&ask.claim)).collect();
            if guessed.contains(&volume.name) || !suits.contains(&true) {
                continue;
            }
            let places = crate::state::volumes::places_of(volume).collect::<Vec<Place>>();
            let at = *pools.entry((suits.clone(), places.clone())).or_insert_with(|| {
                sizes.push(0);
                kinds_of_pool.push((suits, places));
                sizes.len() - 1
            });
            sizes[at] += 1;
        }
        let bins = problem.bins.len();
        let mut reach: Vec<Option<Vec<usize>>> = Vec::with_capacity(distinct.len() * bins);
        for ask in &distinct {
            let made = |&node| tables.nodes.node(node).is_some_and(|node| ask.is_provisioned_for(node));
            reach.extend(problem.bins.iter().map(|node| (!made(node)).then(Vec::new)));
        }
        let index = BinIndex::new(problem, tables);
        for (pool, (suits, places)) in kinds_of_pool.iter().enumerate() {
            for bin in index.accepted(places) {
                for ask in (0..distinct.len()).filter(|&ask| suits[ask]) {
                    if let Some(reach) = &mut reach[ask * bins + bin] {
                        reach.push(pool);
                    }
                }
            }
        }
        Self { asks, sizes, reach, bins }
    }
}

/// Bins by label, so that a volume of one machine is not held against every machine.
struct BinIndex<'a, 'b> {
    problem: &'a Problem,
    tables: &'a Tables<'b>,
    by_label: std::cell::RefCell<FxHashMap<Text, FxHashMap<String, Vec<usize>>>>,
}

impl<'a, 'b> BinIndex<'a, 'b> {
    fn new(problem: &'a Problem, tables: &'a Tables<'b>) -> Self {
        Self { problem, tables, by_label: std::cell::RefCell::default() }
    }

    /// Bins that all places accept.
    fn accepted(&self, places: &[Place]) -> Vec<usize> {
        let mut bins = places.iter().find_map(|place| match place {
            Place::Terms(terms) => self.perhaps(terms),
            Place::Zone(..) => None,
        });
        let bins = bins.get_or_insert_with(|| (0..self.problem.bins.len()).collect());
        bins.retain(|&bin| {
            let node = self.tables.nodes.node(self.problem.bins[bin]);
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
        for (bin, &node) in self.problem.bins.iter().enumerate() {
            if let Some(value) = self.tables.nodes.node(node).and_then(|node| node.labels.get(key)) {
                values.entry(value.to_owned()).or_default().push(bin);
            }
        }
        values
    }
}

/// What members that were put into bins attach and were given.
#[derive(Debug, Clone)]
pub(super) struct VolumeLoads<'a> {
    rules: &'a VolumeRules,
    /// By bin and volume: members that use it.
    users: FxHashMap<(usize, usize), u32>,
    /// By bin and column: room that members take for volumes, their own and shared ones.
    taken: FxHashMap<(usize, usize), i64>,
    /// By pool: the asks that it serves, and where.
    given: FxHashMap<usize, Vec<(usize, usize)>>,
}

impl<'a> VolumeLoads<'a> {
    pub(super) fn new(rules: &'a VolumeRules) -> Self {
        Self { rules, users: FxHashMap::default(), taken: FxHashMap::default(), given: FxHashMap::default() }
    }

    /// Why one more member may not be added, as far as volumes are concerned.
    pub(super) fn why_not(&self, kind: usize, bin: usize) -> Option<NodeReason> {
        if self.rules.is_empty() {
            return None;
        }
        if !self.can_attach(kind, bin) {
            return Some(NodeReason::AttachLimit);
        }
        (!self.can_give(kind, bin)).then_some(NodeReason::NoVolume)
    }

    fn can_attach(&self, kind: usize, bin: usize) -> bool {
        let disks = &self.rules.disks;
        let Some(own) = disks.own.get(kind) else { return true };
        own.iter().all(|&(column, own)| {
            let shared = disks.used[kind].iter().filter(|&&(of, _)| of == column);
            let new = shared.filter(|&&(_, disk)| self.is_new(disk, bin)).count() as i64;
            let taken = self.taken.get(&(bin, column)).copied().unwrap_or(0);
            new + own == 0 || taken + new + own <= disks.free[bin * disks.width + column]
        })
    }

    fn is_new(&self, disk: usize, bin: usize) -> bool {
        let disks = &self.rules.disks;
        !disks.there[bin * disks.count + disk] && !self.users.contains_key(&(bin, disk))
    }

    fn can_give(&self, kind: usize, bin: usize) -> bool {
        let asks = self.rules.pools.asks.get(kind).map_or(&[][..], Vec::as_slice);
        match asks {
            [] => true,
            [ask] => self.find(*ask, bin, &mut FxHashSet::default()).is_some(),
            _ => self.clone().give_volumes(kind, bin),
        }
    }

    /// Gives a member what it asks for. False if there is not enough; then nothing useful is left of this copy.
    fn give_volumes(&mut self, kind: usize, bin: usize) -> bool {
        let asks = self.rules.pools.asks.get(kind).map_or(&[][..], Vec::as_slice);
        asks.iter().all(|&ask| {
            let Some(path) = self.find(ask, bin, &mut FxHashSet::default()) else { return false };
            self.follow(ask, bin, &path);
            true
        })
    }

    /// A way to serve one more ask: the pool that serves it, then for each pool on the way who moves on to the next.
    /// Empty if a volume can be made.
    fn find(&self, ask: usize, bin: usize, seen: &mut FxHashSet<usize>) -> Option<Vec<(usize, usize)>> {
        let pools = &self.rules.pools;
        let Some(reach) = &pools.reach[ask * pools.bins + bin] else { return Some(Vec::new()) };
        for &pool in reach {
            if !seen.insert(pool) {
                continue;
            }
            let served = self.given.get(&pool).map_or(&[][..], Vec::as_slice);
            if served.len() < pools.sizes[pool] {
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

    /// Adds a member.
    pub(super) fn put(&mut self, kind: usize, bin: usize) {
        let rules = self.rules;
        for &(column, disk) in rules.disks.used.get(kind).into_iter().flatten() {
            if self.is_new(disk, bin) {
                *self.taken.entry((bin, column)).or_default() += 1;
            }
            *self.users.entry((bin, disk)).or_default() += 1;
        }
        for &(column, own) in rules.disks.own.get(kind).into_iter().flatten() {
            *self.taken.entry((bin, column)).or_default() += own;
        }
        self.give_volumes(kind, bin);
    }

    /// Takes a member away.
    pub(super) fn take(&mut self, kind: usize, bin: usize) {
        let rules = self.rules;
        for &(column, disk) in rules.disks.used.get(kind).into_iter().flatten() {
            if let Some(users) = self.users.get_mut(&(bin, disk)) {
                *users -= 1;
                if *users == 0 {
                    self.users.remove(&(bin, disk));
                }
            }
            if self.is_new(disk, bin) {
                *self.taken.entry((bin, column)).or_default() -= 1;
            }
        }
        for &(column, own) in rules.disks.own.get(kind).into_iter().flatten() {
            *self.taken.entry((bin, column)).or_default() -= own;
        }
        for &ask in rules.pools.asks.get(kind).into_iter().flatten() {
            let reach = rules.pools.reach[ask * rules.pools.bins + bin].as_ref();
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
}
