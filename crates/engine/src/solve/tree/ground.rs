//! The tree laid over the nodes that could serve it: which bins are in which domains, and who runs where.

use super::anchor::Anchor;
use super::fullness::{self, Fullness};
use super::objective::Merit;
use crate::solve::budget::{Budget, DIVISION};
use crate::solve::problem::Problem;
use crate::solve::request::{Part, Request, Tree};
use crate::solve::{Tables, request};
use crate::state::hierarchy::{Cell, Hierarchies, Hierarchy, HierarchyId, NO_DOMAIN};
use crate::state::nodes::NodeTable;
use crate::state::shape::{ResourceId, ShapeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;
use tutti_model::Strength;

/// A set of bins.
pub(super) type Region = Vec<bool>;

/// Steps that it takes to read the domain of a node.
const STEPS_PER_LEVEL: usize = 4;

fn levels_count(tree: &Tree) -> usize {
    let level = |part: &Part| part.levels.len() + usize::from(part.hierarchy.is_some());
    tree.parts.iter().map(level).sum()
}

/// By kind: the first kind that fits wherever it does, and as often.
fn firsts_alike(problem: &Problem, tree: &Tree) -> Vec<usize> {
    let mut first: FxHashMap<(ShapeId, u32, Option<usize>), usize> = FxHashMap::default();
    let fenced =
        |kind: usize| Some(tree.kinds[kind].part).filter(|&part| !tree.parts[part].fences.is_empty());
    let kinds = problem.kinds.iter().enumerate();
    kinds.map(|(at, kind)| *first.entry((kind.shape, kind.count, fenced(at))).or_insert(at)).collect()
}

/// The problem with groups kept to where they run, if they must be.
fn fenced(problem: Problem, tree: &Tree, hierarchies: &Hierarchies) -> Problem {
    if tree.parts.iter().all(|part| part.fences.is_empty()) {
        return problem;
    }
    let allowed = |kind: usize, bin: usize| {
        let fences = &tree.parts[tree.kinds[kind].part].fences;
        fences.iter().all(|fence| {
            let domain = hierarchies.get(fence.hierarchy).domain(fence.level, problem.bins[bin]);
            fence.domains.binary_search(&domain).is_ok()
        })
    };
    let bins: Vec<usize> = (0..problem.bins.len()).collect();
    let counts: Vec<u32> = problem.kinds.iter().map(|kind| kind.count).collect();
    problem.narrowed(&bins, allowed, &counts, &[])
}

/// A tree, a problem, and how they lie over each other.
pub(super) struct Ground<'a> {
    pub(super) tree: Arc<Tree>,
    pub(super) problem: Problem,
    /// By hierarchy, level and bin.
    domains: FxHashMap<HierarchyId, Vec<Vec<u32>>>,
    hierarchies: FxHashMap<HierarchyId, &'a Hierarchy>,
    /// By part: kinds of its own members.
    kinds_of: Vec<Vec<usize>>,
    /// By part: kinds of its members and of those of all that is below it.
    kinds_below: Vec<Vec<usize>>,
    /// `kind_rooms[kind * bins + bin]`: copies that fit there by themselves.
    kind_rooms: Vec<u64>,
    /// By part and bin: copies of its members that fit there, each kind by itself.
    rooms: Vec<Vec<u64>>,
    nodes: &'a NodeTable,
    /// By part: what its members ask for.
    asked: Vec<Vec<ResourceId>>,
    /// By part: the first that asks for the same of the same domains.
    compares_like: Vec<usize>,
    /// By the first such part and cell, as far as they were asked for.
    fullness: RefCell<FxHashMap<(usize, Cell), Fullness>>,
}

impl<'a> Ground<'a> {
    /// Nothing if the budget does not last.
    pub(super) fn new(
        request: &Request,
        tree: &Arc<Tree>,
        tables: &mut Tables<'a>,
        budget: &mut Budget,
    ) -> Option<Self> {
        let problem = Problem::new(request, tables, budget)?;
        let relations = tables.relations;
        let firsts = firsts_alike(&problem, tree);
        let different = firsts.iter().enumerate().filter(|(kind, first)| kind == *first).count();
        let per_bin = different * (2 + DIVISION * problem.resources.len()) + firsts.len() + tree.parts.len();
        if !budget.spend(problem.bins.len() * (per_bin + STEPS_PER_LEVEL * levels_count(tree))) {
            return None;
        }
        let mut domains = FxHashMap::default();
        let mut hierarchies = FxHashMap::default();
        for id in tree.parts.iter().filter_map(|part| part.hierarchy) {
            let hierarchy = relations.hierarchies.get(id);
            hierarchies.insert(id, hierarchy);
            domains.entry(id).or_insert_with(|| {
                let level = |level| problem.bins.iter().map(|&node| hierarchy.domain(level, node)).collect();
                (0..hierarchy.levels_count()).map(level).collect()
            });
        }
        let mut kinds_of = vec![Vec::new(); tree.parts.len()];
        for (kind, belonging) in tree.kinds.iter().enumerate() {
            kinds_of[belonging.part].push(kind);
        }
        let mut kinds_below = kinds_of.clone();
        for (at, part) in tree.parts.iter().enumerate().rev() {
            if let Some(parent) = part.parent {
                let kinds = kinds_below[at].clone();
                kinds_below[parent].extend(kinds);
            }
        }
        // Members of many slices are many kinds, but they fit alike.
        let rooms_in = |problem: &Problem| -> Vec<u64> {
            let mut rooms_of: Vec<Vec<u64>> = vec![Vec::new(); problem.kinds.len()];
            for first in (0..firsts.len()).filter(|&kind| firsts[kind] == kind) {
                rooms_of[first] = (0..problem.bins.len()).map(|bin| problem.room_in(first, bin)).collect();
            }
            firsts.iter().flat_map(|&first| rooms_of[first].iter().copied()).collect()
        };
        let kind_rooms = rooms_in(&problem);
        let room = |kinds: &Vec<usize>| {
            // A shape that comes in several slices counts once.
            let mut kinds = kinds.clone();
            kinds.sort_by_key(|&kind| problem.kinds[kind].shape);
            kinds.dedup_by_key(|kind| problem.kinds[*kind].shape);
            let copies = |bin| kinds.iter().map(|&kind| kind_rooms[kind * problem.bins.len() + bin]).sum();
            (0..problem.bins.len()).map(copies).collect()
        };
        let rooms = kinds_of.iter().map(room).collect();
        // How much room a domain has does not depend on who may go there.
        let problem = fenced(problem, tree, &relations.hierarchies);
        let has_fences = tree.parts.iter().any(|part| !part.fences.is_empty());
        let kind_rooms = if has_fences { rooms_in(&problem) } else { kind_rooms };
        let tree = Arc::clone(tree);
        let shapes = |kinds: &Vec<usize>| -> Vec<ResourceId> {
            let shapes = kinds.iter().map(|&kind| &**tables.shapes.get(problem.kinds[kind].shape));
            fullness::asked(shapes, tables.resources)
        };
        let asked: Vec<Vec<ResourceId>> = kinds_below.iter().map(shapes).collect();
        let mut first = FxHashMap::default();
        let compares_like = (0..tree.parts.len()).map(|at| {
            let part = &tree.parts[at];
            *first.entry((part.hierarchy, part.levels.len(), &asked[at])).or_insert(at)
        });
        let compares_like = compares_like.collect();
        let (nodes, fullness) = (tables.nodes, RefCell::default());
        Some(Self {
            tree,
            domains,
            hierarchies,
            kinds_of,
            kinds_below,
            kind_rooms,
            rooms,
            nodes,
            asked,
            compares_like,
            fullness,
            problem,
        })
    }

    /// All bins.
    pub(super) fn everywhere(&self) -> Region {
        vec![true; self.problem.bins.len()]
    }

    /// Steps that it takes to look at every bin so many times.
    pub(super) fn looks(&self, times: usize) -> usize {
        // A flag is looked at in half a step.
        16 + times * self.problem.bins.len() / 2
    }

    /// Steps that it takes to list the domains of a region by name.
    pub(super) fn cost_of_domains(&self) -> usize {
        self.looks(16)
    }

    /// Steps that it takes to count the members of a part that have room.
    pub(super) fn cost_of_fit(&self, part: usize) -> usize {
        self.looks(4 * (1 + self.kinds_below[part].len()))
    }

    pub(super) fn part(&self, part: usize) -> &Part {
        &self.tree.parts[part]
    }

    /// Kinds of a group's members.
    pub(super) fn kinds_of(&self, part: usize) -> &[usize] {
        &self.kinds_of[part]
    }

    /// The domain of every bin, of a level of a part's hierarchy.
    pub(super) fn domains(&self, part: usize, level: usize) -> &[u32] {
        match self.part(part).hierarchy.and_then(|id| self.domains.get(&id)) {
            Some(levels) => &levels[level],
            None => &[],
        }
    }

    /// The hierarchy of a part that names one.
    pub(super) fn hierarchy(&self, part: usize) -> Option<&'a Hierarchy> {
        self.part(part).hierarchy.and_then(|id| self.hierarchies.get(&id).copied())
    }

    /// Domains of a level that have a bin in a region, by name.
    pub(super) fn domains_in(&self, part: usize, level: usize, region: &Region) -> Vec<u32> {
        let of_bin = self.domains(part, level).iter().zip(region);
        let mut domains: Vec<u32> =
            of_bin.filter(|(domain, inside)| **inside && **domain != NO_DOMAIN).map(|(&d, _)| d).collect();
        domains.sort_unstable();
        domains.dedup();
        if let Some(hierarchy) = self.hierarchy(part) {
            domains.sort_by_cached_key(|&domain| hierarchy.path(level, domain));
        }
        domains
    }

    /// The bins of a region that are in a domain.
    pub(super) fn within(&self, part: usize, level: usize, domain: u32, region: &Region) -> Region {
        let of_bin = self.domains(part, level).iter().zip(region);
        of_bin.map(|(&other, &inside)| inside && other == domain).collect()
    }

    /// Where members of a part run, as domains of a level of `named_by`'s hierarchy.
    pub(super) fn anchor(&self, part: usize, named_by: usize, level: usize) -> Anchor {
        self.anchor_of(part, named_by, level, |_| true)
    }

    /// The same for some of the members.
    pub(super) fn anchor_of(
        &self,
        part: usize,
        named_by: usize,
        level: usize,
        who: impl Fn(&request::RunningMember) -> bool,
    ) -> Anchor {
        let running = self.part(part).running.iter().filter(|running| who(running));
        match self.hierarchy(named_by) {
            Some(hierarchy) => Anchor::new(hierarchy, level, running.map(|running| running.node)),
            None => Anchor::default(),
        }
    }

    /// Copies of a group's members that fit into a bin.
    pub(super) fn room(&self, part: usize, bin: usize) -> u64 {
        self.rooms[part][bin]
    }

    /// Copies of a kind that fit into a bin by themselves.
    pub(super) fn kind_room(&self, kind: usize, bin: usize) -> u64 {
        self.kind_rooms[kind * self.problem.bins.len() + bin]
    }

    /// How many of a part's members could be in a region, if each kind were by itself.
    pub(super) fn fit(&self, part: usize, region: &Region) -> u64 {
        let fit = |&kind: &usize| {
            let bins = (0..region.len()).filter(|&bin| region[bin]);
            let room: u64 = bins.map(|bin| self.kind_room(kind, bin)).sum();
            room.min(u64::from(self.problem.kinds[kind].count))
        };
        self.kinds_below[part].iter().map(fit).sum()
    }

    /// The same for the domains of a level, each by itself; by number of the domain.
    pub(super) fn fit_by_domain(&self, part: usize, level: usize, region: &Region) -> Vec<u64> {
        let of_bin = self.domains(part, level);
        let width = of_bin.iter().filter(|domain| **domain != NO_DOMAIN).max().map_or(0, |max| max + 1);
        let mut fit = vec![0; width as usize];
        for &kind in &self.kinds_below[part] {
            let count = u64::from(self.problem.kinds[kind].count);
            let mut rooms = vec![0_u64; width as usize];
            for (bin, &domain) in of_bin.iter().enumerate().filter(|&(bin, _)| region[bin]) {
                if let Some(room) = rooms.get_mut(domain as usize) {
                    *room = room.saturating_add(self.kind_room(kind, bin));
                }
            }
            fit.iter_mut().zip(rooms).for_each(|(fit, room)| *fit += room.min(count));
        }
        fit
    }

    /// The cell of a bin, by the levels that a part lists.
    fn cell(&self, part: usize, bin: usize) -> Cell {
        let levels = self.part(part).levels.len();
        self.hierarchy(part).map_or(Cell::OUTSIDE, |tree| tree.cell(levels, self.problem.bins[bin]))
    }

    /// True if a group can be in at most so many cells.
    pub(super) fn has_few_cells(&self, part: usize, region: &Region, most: usize) -> bool {
        let mut seen: FxHashSet<Cell> = FxHashSet::default();
        let bins = (0..region.len()).filter(|&bin| region[bin]);
        bins.into_iter().all(|bin| {
            seen.insert(self.cell(part, bin));
            seen.len() <= most
        })
    }

    /// True if a region has at most so many domains of a level.
    pub(super) fn has_few_domains(&self, part: usize, level: usize, region: &Region, most: usize) -> bool {
        let of_bin = self.domains(part, level).iter().zip(region);
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        of_bin.filter(|(domain, inside)| **inside && **domain != NO_DOMAIN).all(|(&domain, _)| {
            seen.insert(domain);
            seen.len() <= most
        })
    }

    /// The cells that a group can be in, by name. Only for few.
    pub(super) fn cells(&self, part: usize, region: &Region) -> Vec<(Cell, Region)> {
        let Some(hierarchy) = self.hierarchy(part) else { return Vec::new() };
        let first = self.part(part).required().map_or(0, |level| level + 1);
        let mut cells: Vec<(Cell, Region)> = Vec::new();
        for bin in (0..region.len()).filter(|&bin| region[bin]) {
            let cell = self.cell(part, bin);
            if cell.depth < first {
                continue;
            }
            let at = cells.iter().position(|(other, _)| *other == cell).unwrap_or_else(|| {
                cells.push((cell, vec![false; region.len()]));
                cells.len() - 1
            });
            cells[at].1[bin] = true;
        }
        cells.sort_by_cached_key(|(cell, _)| hierarchy.cell_path(*cell));
        cells
    }

    /// What it is worth for a group to be in these cells.
    pub(super) fn merit_of_cells(&self, part: usize, cells: &[Cell]) -> Merit {
        let (asks, Some(hierarchy)) = (self.part(part), self.hierarchy(part)) else {
            return Merit::default();
        };
        let mut merit = self.merit_of_place(part, cells);
        let mut all: Vec<Cell> = cells.to_vec();
        all.extend(asks.running.iter().map(|running| hierarchy.cell(asks.levels.len(), running.node)));
        all.sort_unstable();
        all.dedup();
        merit.domains = all.len() as u32;
        let bins = (0..self.problem.bins.len()).filter(|&bin| cells.contains(&self.cell(part, bin)));
        merit.room = bins.map(|bin| self.room(part, bin)).fold(0, u64::saturating_add);
        merit.full = self.fullness(part, cells);
        merit
    }

    /// Steps that it takes to tell how full cells are that nobody has asked for yet.
    pub(super) fn cost_of_fullness(&self, part: usize) -> usize {
        let like = self.compares_like[part];
        let is_known = self.fullness.borrow().keys().any(|&(known, _)| known == like);
        if is_known { 0 } else { 2 * self.nodes.rows_count() * (1 + self.asked[part].len()) }
    }

    /// How full some cells are together of what a part's members ask for, in thousandths.
    pub(super) fn fullness(&self, part: usize, cells: &[Cell]) -> u64 {
        let Some(hierarchy) = self.hierarchy(part) else { return 0 };
        let levels = self.part(part).levels.len();
        let mut known = self.fullness.borrow_mut();
        let mut sum = Fullness::default();
        for &cell in cells {
            let of_cell = known.entry((self.compares_like[part], cell)).or_insert_with(|| {
                let nodes = fullness::nodes_of(hierarchy, levels, cell, self.nodes);
                Fullness::of(nodes, &self.asked[part], self.nodes)
            });
            sum.add(of_cell);
        }
        sum.thousandths()
    }

    /// What it is worth for all new members of a part to be in these cells: pull and preferred levels.
    pub(super) fn merit_of_place(&self, part: usize, cells: &[Cell]) -> Merit {
        let mut merit = Merit::default();
        let Some(hierarchy) = self.hierarchy(part) else { return merit };
        let shared = |level: usize| {
            let mut domains = cells.iter().map(|&cell| hierarchy.above(cell, level));
            let first = domains.next().filter(|&first| first != NO_DOMAIN)?;
            domains.all(|domain| domain == first).then_some(first)
        };
        for (level, strength) in self.part(part).levels.iter().enumerate() {
            let Some(domain) = shared(level) else { continue };
            let anchor = self.anchor(part, part, level);
            if *strength == Strength::Preferred && anchor.is_all_in(domain) {
                merit.meet(level);
            }
            if self.part(part).required() == Some(level) {
                merit.pull = anchor.pull(domain);
            }
        }
        merit
    }
}
