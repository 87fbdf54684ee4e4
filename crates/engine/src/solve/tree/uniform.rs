//! One group whose members all require the same and nothing of other pods: the room of every domain is a sum that is
//! kept up to date, so that the best domains are found by looking at sums.

use super::anchor::Anchor;
use super::fullness::Comparison;
use super::shortages;
use crate::score::packing;
use crate::solve::budget::Budget;
use crate::solve::request::Part;
use crate::solve::{Outcome, Tables};
use crate::state::hierarchy::{Cell, Hierarchy, HierarchyId, NO_DOMAIN};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::{Shape, ShapeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tutti_model::Strength;

/// Cells of which every subset is looked at. With more, a few large ones are taken and a small one last.
pub(super) const CELLS_LISTED_MAX: usize = 10;

/// A cell that members can go to.
#[derive(Debug, Clone)]
struct Vacancy {
    cell: Cell,
    room: u64,
    /// True if members run there.
    is_home: bool,
}

/// A domain that all members are in; `None` is the whole cluster.
pub(super) type Container = Option<(usize, u32)>;

pub(super) fn solve(
    part: &Part,
    id: HierarchyId,
    (shape, wanted): (ShapeId, u32),
    need: u32,
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    let shape_id = shape;
    let shape = Arc::clone(tables.shapes.get(shape_id));
    let tree = tables.relations.hierarchies.get(id);
    let comparison = Comparison::new(&shape, part.levels.len(), tree, tables);
    let room = tables.rooms.of(shape_id, &shape, tables.nodes, tables.changes);
    let total = room.total();
    let (sums, by_node) = room.by_domain(id, &tables.relations.hierarchies);
    // Nothing is searched for; what is looked at grows with the number of domains.
    budget.charge(2 * sums.iter().map(Vec::len).sum::<usize>());
    let nodes = tables.nodes;
    let question = Question { part, tree, sums, by_node, total, wanted, comparison };
    match question.best(need) {
        Some((cells, target)) => {
            let seats = question.seats(&cells, target, &shape, nodes);
            Outcome::Placed(seats.into_iter().map(|(node, count)| (0, node, count)).collect())
        }
        None => Outcome::Infeasible(shortages::one_shape(
            part,
            id,
            &shape,
            (shape_id, need, None),
            tables,
            budget,
        )),
    }
}

struct Question<'a> {
    part: &'a Part,
    tree: &'a Hierarchy,
    /// Room by level and domain, and by node.
    sums: &'a [Vec<u64>],
    by_node: &'a [u32],
    total: u64,
    wanted: u32,
    /// For choices that are equal otherwise.
    comparison: Comparison<'a>,
}

impl Question<'_> {
    /// The best cells, and how many members they take; nothing if less than `need`.
    fn best(&self, need: u32) -> Option<(Vec<Vacancy>, u32)> {
        let (widest, target) = self.widest(need)?;
        let narrowest = self.part.levels.len() - 1;
        let mut containers = self.narrow_down(&widest, target);
        if containers.iter().all(|container| container.is_some_and(|(level, _)| level == narrowest)) {
            let best = tightest(self.tree, self.sums, &containers, &self.comparison)?;
            let cell = Cell { depth: best.0 + 1, domain: best.1 };
            let room = self.sums[best.0][best.1 as usize];
            return Some((vec![Vacancy { cell, room, is_home: false }], target));
        }
        containers.sort_by(|a, b| {
            let path = |container: &Container| container.as_ref().map(|domain| self.path(domain));
            path(a).cmp(&path(b))
        });
        let mut cells = self.cells(&containers);
        let choose = |container: Container| {
            let cells = cells.remove(&container).unwrap_or_default();
            let chosen = cover(cells, u64::from(target), &self.comparison)?;
            Some((merit(&chosen), chosen))
        };
        let chosen: Vec<_> = containers.into_iter().filter_map(choose).collect();
        Some((best_of(chosen, |cells| self.fullness(cells))?, target))
    }

    fn fullness(&self, cells: &[Vacancy]) -> u64 {
        self.comparison.of_cells(cells.iter().map(|vacancy| vacancy.cell))
    }

    fn path(&self, &(level, domain): &(usize, u32)) -> Vec<&tutti_model::Text> {
        self.tree.path(level, domain)
    }

    /// The domains of the narrowest required level that take most members, and how many.
    fn widest(&self, need: u32) -> Option<(Vec<Container>, u32)> {
        let take = |room: u64| room.min(u64::from(self.wanted)) as u32;
        let Some(level) = self.part.required() else {
            let target = take(self.total);
            return (target >= need).then(|| (vec![None], target));
        };
        let anchor = Anchor::new(self.tree, level, self.part.running.iter().map(|running| running.node));
        let mut best = (0, 0, 0);
        let mut domains: Vec<Container> = Vec::new();
        for (domain, &room) in self.sums[level].iter().enumerate() {
            let (domain, takes) = (domain as u32, take(room));
            if takes < need || takes < best.0 || !anchor.allows(domain) {
                continue;
            }
            let merit = (takes, anchor.pull(domain), wide_levels_met(self.part, self.tree, level, domain));
            if merit > best {
                best = merit;
                domains.clear();
                domains.push(Some((level, domain)));
            } else if merit == best {
                domains.push(Some((level, domain)));
            }
        }
        (!domains.is_empty()).then_some((domains, best.0))
    }

    /// The narrowest domains within these in which everybody has room and those who run are: as many preferred levels
    /// are met as can be.
    fn narrow_down(&self, widest: &[Container], target: u32) -> Vec<Container> {
        let first = self.part.required().map_or(0, |required| required + 1);
        if first >= self.part.levels.len() {
            return widest.to_vec();
        }
        let inside: FxHashSet<Container> = widest.iter().copied().collect();
        let levels = (first..self.part.levels.len()).rev();
        for level in levels {
            let anchor = Anchor::new(self.tree, level, self.part.running.iter().map(|running| running.node));
            let fits = |&(domain, &room): &(usize, &u64)| {
                room >= u64::from(target)
                    && anchor.is_all_in(domain as u32)
                    && is_within(self.tree, level, domain as u32, &inside)
            };
            let found = self.sums[level].iter().enumerate().filter(fits);
            let found: Vec<Container> = found.map(|(domain, _)| Some((level, domain as u32))).collect();
            if !found.is_empty() {
                return found;
            }
        }
        widest.to_vec()
    }

    /// The cells of every container with room, by name.
    fn cells(&self, containers: &[Container]) -> FxHashMap<Container, Vec<Vacancy>> {
        let levels = self.part.levels.len();
        let mut homes: Vec<Cell> =
            self.part.running.iter().map(|running| self.tree.cell(levels, running.node)).collect();
        homes.sort_unstable();
        let mut cells: FxHashMap<Container, Vec<Vacancy>> =
            containers.iter().map(|&container| (container, Vec::new())).collect();
        let wide = containers.iter().flatten().next().map(|&(level, _)| level);
        let mut add = |cell: Cell, room: u64| {
            let container = wide.map(|wide| (wide, self.tree.above(cell, wide)));
            if let Some(cells) = cells.get_mut(&container).filter(|_| room > 0) {
                cells.push(Vacancy { cell, room, is_home: homes.binary_search(&cell).is_ok() });
            }
        };
        for level in wide.unwrap_or(0)..levels {
            for (domain, room) in own_room(self.tree, self.sums, level, levels).into_iter().enumerate() {
                add(Cell { depth: level + 1, domain: domain as u32 }, room);
            }
        }
        if wide.is_none() {
            add(Cell::OUTSIDE, self.total - self.sums[0].iter().sum::<u64>());
        }
        for cells in cells.values_mut() {
            // By name, so that restarts, which may number domains differently, choose alike.
            cells.sort_by_cached_key(|vacancy| self.tree.cell_path(vacancy.cell));
        }
        cells
    }

    /// Members on the nodes of the cells, the fullest nodes first.
    fn seats(&self, cells: &[Vacancy], target: u32, shape: &Shape, table: &NodeTable) -> Vec<(NodeId, u32)> {
        let levels = self.part.levels.len();
        let room = |node: NodeId| self.by_node.get(node.index()).copied().unwrap_or(0);
        let key = |node: NodeId| (Reverse(packing::score(table, node, shape)), table.name(node));
        let mut left = target;
        let mut seats = Vec::new();
        for Vacancy { cell, .. } in cells {
            let nodes = match cell.depth {
                0 => table.ids().filter(|&node| room(node) > 0).collect(),
                depth => self.tree.nodes(depth - 1, cell.domain).to_vec(),
            };
            let is_own = |&node: &NodeId| {
                room(node) > 0 && (cell.depth == levels || self.tree.domain(cell.depth, node) == NO_DOMAIN)
            };
            // Often one node is enough; so they are not sorted.
            let usable = nodes.into_iter().filter(is_own).map(|node| Reverse((key(node), node)));
            let mut usable: BinaryHeap<_> = usable.collect();
            while left > 0
                && let Some(Reverse((_, node))) = usable.pop()
            {
                let taken = room(node).min(left);
                seats.push((node, taken));
                left -= taken;
            }
        }
        seats
    }
}

/// The tightest of some domains: of equals the fullest, and then the first by name.
pub(super) fn tightest(
    tree: &Hierarchy,
    sums: &[Vec<u64>],
    containers: &[Container],
    comparison: &Comparison<'_>,
) -> Option<(usize, u32)> {
    let room = |&(level, domain): &(usize, u32)| sums[level][domain as usize];
    let least = containers.iter().flatten().map(room).min()?;
    let equals: Vec<(usize, u32)> =
        containers.iter().flatten().copied().filter(|domain| room(domain) == least).collect();
    if let [only] = equals[..] {
        return Some(only);
    }
    let full = |&(level, domain): &(usize, u32)| {
        comparison.of_cells(std::iter::once(Cell { depth: level + 1, domain }))
    };
    let rated = equals.into_iter().map(|domain| (Reverse(full(&domain)), domain));
    let path = |(_, (level, domain)): &(Reverse<u64>, (usize, u32))| tree.path(*level, *domain);
    let best = rated.min_by(|a, b| a.0.cmp(&b.0).then_with(|| path(a).cmp(&path(b))));
    best.map(|(_, domain)| domain)
}

/// The best of some choices with their merits, of which the smallest is the best: of equals the fullest, and then the
/// first.
pub(super) fn best_of<M: Ord, T>(choices: Vec<(M, T)>, full: impl Fn(&T) -> u64) -> Option<T> {
    let best = choices.iter().map(|(merit, _)| merit).min()?;
    let at: Vec<usize> = (0..choices.len()).filter(|&at| choices[at].0 == *best).collect();
    let at = match at[..] {
        [only] => only,
        _ => at.into_iter().min_by_key(|&at| Reverse(full(&choices[at].1)))?,
    };
    choices.into_iter().nth(at).map(|(_, choice)| choice)
}

/// True if a domain lies in one of these, which are all of one level.
pub(super) fn is_within(
    tree: &Hierarchy,
    level: usize,
    domain: u32,
    containers: &FxHashSet<Container>,
) -> bool {
    match containers.iter().flatten().next() {
        Some(&(wide, _)) => containers.contains(&Some((wide, tree.ancestor(level, domain, wide)))),
        None => containers.contains(&None),
    }
}

/// Room in the domains of a level on nodes that are in no narrower domain, of so many levels.
pub(super) fn own_room(tree: &Hierarchy, sums: &[Vec<u64>], level: usize, levels: usize) -> Vec<u64> {
    let mut own = sums[level].clone();
    if level + 1 < levels {
        for (domain, room) in sums[level + 1].iter().enumerate() {
            // A number that no domain has at present lies in none.
            if let Some(own) = own.get_mut(tree.wider(level + 1, domain as u32) as usize) {
                *own -= room;
            }
        }
    }
    own
}

/// Which preferred levels are met that are wider than the domain of a required one, widest first: those where all
/// members run that run.
pub(super) fn wide_levels_met(part: &Part, tree: &Hierarchy, level: usize, domain: u32) -> u64 {
    if part.running.is_empty() {
        return 0;
    }
    let is_met = |wide: usize| {
        let anchor = Anchor::new(tree, wide, part.running.iter().map(|running| running.node));
        part.levels[wide] == Strength::Preferred && anchor.is_all_in(tree.ancestor(level, domain, wide))
    };
    // One bit per level, the widest first: the larger number is the better one.
    (0..level.min(64)).filter(|&wide| is_met(wide)).fold(0, |met, wide| met | 1 << (63 - wide))
}

/// Cells that together take `target` members: the fewest that nobody of the group is in yet, then those with the least
/// room in all, then the fullest. Cells come by name, and so the first of equals is the same everywhere.
fn cover(mut cells: Vec<Vacancy>, target: u64, comparison: &Comparison<'_>) -> Option<Vec<Vacancy>> {
    if cells.len() <= CELLS_LISTED_MAX {
        return cover_exactly(&cells, target, comparison);
    }
    cells.sort_by_key(|cell| (Reverse(cell.is_home), Reverse(cell.room)));
    let mut room = 0;
    let mut chosen: Vec<Vacancy> = Vec::new();
    let mut rest = cells.into_iter();
    while room < target {
        let cell = rest.next()?;
        room += cell.room;
        chosen.push(cell);
    }
    // The last one may be smaller.
    if let Some(last) = chosen.pop() {
        let missing = target - (room - last.room);
        let enough = |cell: &Vacancy| cell.room >= missing && cell.is_home == last.is_home;
        let smallest = rest.filter(enough).min_by_key(|cell| cell.room);
        chosen.push(smallest.filter(|cell| cell.room < last.room).unwrap_or(last));
    }
    Some(chosen)
}

fn cover_exactly(cells: &[Vacancy], target: u64, comparison: &Comparison<'_>) -> Option<Vec<Vacancy>> {
    let chosen = |set: u32| -> Vec<Vacancy> {
        let cells = cells.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        cells.map(|(_, cell)| cell.clone()).collect()
    };
    let candidate = |set: u32| {
        let cells = chosen(set);
        let room: u64 = cells.iter().map(|cell| cell.room).sum();
        (room >= target).then(|| (merit(&cells), (Reverse(set.reverse_bits()), cells)))
    };
    let mut candidates: Vec<_> = (1..1_u32 << cells.len()).filter_map(candidate).collect();
    candidates.sort_by_key(|(merit, (names, _))| (*merit, *names));
    let full = |(_, cells): &(_, Vec<Vacancy>)| comparison.of_cells(cells.iter().map(|vacancy| vacancy.cell));
    best_of(candidates, full).map(|(_, cells)| cells)
}

/// The smaller the better: new domains, and room in them.
fn merit(cells: &[Vacancy]) -> (usize, u64) {
    let room = cells.iter().map(|cell| cell.room).sum();
    (cells.iter().filter(|cell| !cell.is_home).count(), room)
}
