//! One group of identical members in slices, who want nothing of other pods and have no ranks: the room of every domain
//! is a sum, and so is what it takes in whole slices. The number of members is the largest there can be; of the choice
//! of domains, everything up to their number is the best there is, and the number, too, if there are few.

use super::anchor::Anchor;
use super::fullness::Comparison;
use super::shortages;
use super::slicing::{Capacity, Share, Slicing};
use super::uniform::{CELLS_LISTED_MAX, Container, best_of, is_within, own_room, tightest, wide_levels_met};
use crate::score::packing;
use crate::solve::budget::Budget;
use crate::solve::request::{Part, SliceRule};
use crate::solve::{Outcome, Tables, explain};
use crate::state::hierarchy::{Cell, Hierarchy, HierarchyId};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::{Shape, ShapeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Steps that one domain takes in all: sums, sorting, names.
const STEPS_PER_DOMAIN: usize = 64;

/// Domains of the slices' level and room in them.
type Rooms = Vec<(u32, u64)>;

/// A cell that members can go to.
#[derive(Debug, Clone)]
struct Vacancy {
    cell: Cell,
    /// Room, whether slices can use it or not.
    room: u64,
    /// True if members run there.
    is_home: bool,
    slices: Rooms,
}

pub(super) fn solve(
    part: &Part,
    (id, rule): (HierarchyId, SliceRule),
    (shape_id, wanted): (ShapeId, u32),
    need: u32,
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> Outcome {
    let shape = Arc::clone(tables.shapes.get(shape_id));
    let tree = tables.relations.hierarchies.get(id);
    let comparison = Comparison::new(&shape, part.levels.len(), tree, tables);
    let nodes = tables.nodes;
    let room = tables.rooms.of(shape_id, &shape, tables.nodes, tables.changes);
    let (sums, by_node) = room.by_domain(id, &tables.relations.hierarchies);
    let domains: usize = sums.iter().map(Vec::len).sum();
    if !budget.spend(STEPS_PER_DOMAIN * domains + 2 * by_node.len()) {
        return Outcome::Undecided(explain::briefly(0, need, tables));
    }
    let slicing = Slicing::new(tree, part, rule);
    let question = Question { part, tree, sums, by_node, wanted, level: rule.level, slicing, comparison };
    let placed = question.best(need, budget).map(|chosen| question.seats(&chosen, &shape, nodes));
    match placed {
        Ok(seats) => Outcome::Placed(seats.into_iter().map(|(node, count)| (0, node, count)).collect()),
        Err(Failure::OutOfBudget) => Outcome::Undecided(explain::briefly(0, need, tables)),
        Err(Failure::NoRoom { fit }) => {
            let request = (shape_id, need, Some(fit));
            Outcome::Infeasible(shortages::one_shape(part, id, &shape, request, tables, budget))
        }
    }
}

enum Failure {
    OutOfBudget,
    /// So many would fit.
    NoRoom {
        fit: u32,
    },
}

/// Where members go.
struct Chosen {
    members: u32,
    rooms: Rooms,
    /// Cells that may be used; any if the group names no level.
    cells: Option<FxHashSet<Cell>>,
}

struct Question<'a> {
    part: &'a Part,
    tree: &'a Hierarchy,
    /// Room by level and domain, and by node.
    sums: &'a [Vec<u64>],
    by_node: &'a [u32],
    wanted: u32,
    /// Of the slices.
    level: usize,
    slicing: Slicing,
    /// For choices that are equal otherwise.
    comparison: Comparison<'a>,
}

impl Question<'_> {
    fn best(&self, need: u32, budget: &mut Budget) -> Result<Chosen, Failure> {
        let (widest, members) = self.widest(need, budget)?;
        let Some(narrowest) = self.part.narrowest() else {
            let rooms = self.rooms_within(&widest).remove(&None).unwrap_or_default();
            return Ok(Chosen { members, rooms, cells: None });
        };
        let mut containers = self.narrow_down(&widest, members, budget)?;
        if containers.iter().all(|container| container.is_some_and(|(level, _)| level == narrowest)) {
            let best = tightest(self.tree, self.sums, &containers, &self.comparison);
            let Some((level, domain)) = best else { return Err(Failure::NoRoom { fit: 0 }) };
            let rooms = self.rooms_within(&[Some((level, domain))]).into_values().next().unwrap_or_default();
            let cells = [Cell { depth: level + 1, domain }].into_iter().collect();
            return Ok(Chosen { members, rooms, cells: Some(cells) });
        }
        containers
            .sort_by_cached_key(|container| container.map(|(level, domain)| self.tree.path(level, domain)));
        let mut cells = self.cells(&containers);
        let mut choices = Vec::with_capacity(containers.len());
        for container in containers {
            let cells = cells.remove(&container).unwrap_or_default();
            let chosen = self.cover(cells, members, budget)?;
            choices.push((merit(&chosen), chosen));
        }
        let chosen = best_of(choices, |cells| self.fullness(cells)).unwrap_or_default();
        let rooms = sum_up(chosen.iter());
        Ok(Chosen { members, rooms, cells: Some(chosen.iter().map(|vacancy| vacancy.cell).collect()) })
    }

    fn fullness(&self, cells: &[Vacancy]) -> u64 {
        self.comparison.of_cells(cells.iter().map(|vacancy| vacancy.cell))
    }

    fn capacity(&self, rooms: &Rooms) -> Capacity {
        self.slicing.capacity(rooms.iter().copied())
    }

    /// The domains of the narrowest required level that take most members, and how many.
    fn widest(&self, need: u32, budget: &mut Budget) -> Result<(Vec<Container>, u32), Failure> {
        let Some(level) = self.part.required() else {
            let rooms = self.rooms_within(&[None]).remove(&None).unwrap_or_default();
            let capacity = self.capacity(&rooms);
            return match self.most(&capacity, need, budget)? {
                Ok(most) => Ok((vec![None], most)),
                Err(fit) => Err(Failure::NoRoom { fit }),
            };
        };
        let anchor = Anchor::new(self.tree, level, self.part.running.iter().map(|running| running.node));
        let allowed = (0..self.sums[level].len() as u32)
            .filter(|&domain| self.sums[level][domain as usize] > 0 && anchor.allows(domain));
        let allowed: Vec<Container> = allowed.map(|domain| Some((level, domain))).collect();
        let mut rooms = self.rooms_within(&allowed);
        let mut best = None;
        let mut domains: Vec<Container> = Vec::new();
        let mut fit = 0;
        for container in allowed {
            let capacity = self.capacity(&rooms.remove(&container).unwrap_or_default());
            let takes = match self.most(&capacity, need, budget)? {
                Ok(takes) => takes,
                Err(fits) => {
                    fit = fit.max(fits);
                    continue;
                }
            };
            let domain = container.map_or(0, |(_, domain)| domain);
            let met = wide_levels_met(self.part, self.tree, level, domain);
            let merit = Some((takes, anchor.pull(domain), met));
            if merit > best {
                best = merit;
                domains.clear();
                domains.push(container);
            } else if merit == best {
                domains.push(container);
            }
        }
        best.map(|(takes, ..)| (domains, takes)).ok_or(Failure::NoRoom { fit })
    }

    /// The most members that domains take; if those are fewer than needed, how many as the error.
    fn most(&self, capacity: &Capacity, need: u32, budget: &mut Budget) -> Result<Result<u32, u32>, Failure> {
        let most = u64::from(self.wanted).min(capacity.most(u64::MAX)) as usize;
        if !budget.spend(8 * (most + 1)) {
            return Err(Failure::OutOfBudget);
        }
        let slicing = &self.slicing;
        Ok(slicing
            .most(capacity, need, self.wanted)
            .ok_or_else(|| slicing.most(capacity, 1, need.saturating_sub(1)).unwrap_or(0)))
    }

    /// The narrowest domains within these in which everybody has room and those who run are.
    fn narrow_down(
        &self,
        widest: &[Container],
        members: u32,
        budget: &mut Budget,
    ) -> Result<Vec<Container>, Failure> {
        let first = self.part.required().map_or(0, |required| required + 1);
        let inside: FxHashSet<Container> = widest.iter().copied().collect();
        for level in (first..self.part.levels.len()).rev() {
            let anchor = Anchor::new(self.tree, level, self.part.running.iter().map(|running| running.node));
            let may_do = |&domain: &u32| {
                self.sums[level][domain as usize] >= u64::from(members)
                    && anchor.is_all_in(domain)
                    && is_within(self.tree, level, domain, &inside)
            };
            let candidates = (0..self.sums[level].len() as u32).filter(may_do);
            let candidates: Vec<Container> = candidates.map(|domain| Some((level, domain))).collect();
            if !budget.spend(STEPS_PER_DOMAIN * (self.sums[level].len() + self.sums[self.level].len())) {
                return Err(Failure::OutOfBudget);
            }
            let rooms = self.rooms_within(&candidates);
            let takes = |container: &Container| {
                let rooms = rooms.get(container);
                rooms.is_some_and(|rooms| self.slicing.takes(&self.capacity(rooms), members))
            };
            let found: Vec<Container> = candidates.into_iter().filter(takes).collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(widest.to_vec())
    }

    /// For containers of one level, the domains of the slices' level in them, with room.
    fn rooms_within(&self, containers: &[Container]) -> FxHashMap<Container, Rooms> {
        let mut rooms: FxHashMap<Container, Rooms> =
            containers.iter().map(|&container| (container, Rooms::new())).collect();
        let Some(wide) = containers.iter().flatten().next().map(|&(level, _)| level) else {
            if let Some(all) = rooms.get_mut(&None) {
                all.extend(self.with_room(self.level));
            }
            return rooms;
        };
        if wide > self.level {
            // Slices are wider than the container; so it is in one of their domains.
            for (container, rooms) in &mut rooms {
                if let Some((level, domain)) = *container {
                    let slices = self.tree.ancestor(level, domain, self.level);
                    rooms.push((slices, self.sums[level][domain as usize]));
                }
            }
            return rooms;
        }
        for (domain, room) in self.with_room(self.level) {
            let container = Some((wide, self.tree.ancestor(self.level, domain, wide)));
            if let Some(rooms) = rooms.get_mut(&container) {
                rooms.push((domain, room));
            }
        }
        rooms
    }

    fn with_room(&self, level: usize) -> impl Iterator<Item = (u32, u64)> {
        let rooms = self.sums[level].iter().enumerate();
        rooms.filter(|(_, room)| **room > 0).map(|(domain, &room)| (domain as u32, room))
    }

    /// The cells of every container that slices can use, by name.
    fn cells(&self, containers: &[Container]) -> FxHashMap<Container, Vec<Vacancy>> {
        let levels = self.part.levels.len();
        let mut homes: Vec<Cell> =
            self.part.running.iter().map(|running| self.tree.cell(levels, running.node)).collect();
        homes.sort_unstable();
        let wide = containers.iter().flatten().next().map(|&(level, _)| level);
        let mut cells: FxHashMap<Container, Vec<Vacancy>> =
            containers.iter().map(|&container| (container, Vec::new())).collect();
        // Nodes that lack a level that the slices' level is not wider than are in none of its domains.
        let first = wide.unwrap_or(0).max(self.level.min(levels - 1));
        for level in first..levels {
            let narrow: Vec<Container> =
                self.with_room(level).map(|(domain, _)| Some((level, domain))).collect();
            let mut slices =
                if self.level > level { self.rooms_within(&narrow) } else { FxHashMap::default() };
            for (domain, room) in own_room(self.tree, self.sums, level, levels).into_iter().enumerate() {
                let cell = Cell { depth: level + 1, domain: domain as u32 };
                let container = wide.map(|wide| (wide, self.tree.above(cell, wide)));
                let Some(cells) = cells.get_mut(&container).filter(|_| room > 0) else { continue };
                let slices = if self.level > level {
                    slices.remove(&Some((level, domain as u32))).unwrap_or_default()
                } else {
                    vec![(self.tree.above(cell, self.level), room)]
                };
                if !slices.is_empty() {
                    let is_home = homes.binary_search(&cell).is_ok();
                    cells.push(Vacancy { cell, room, is_home, slices });
                }
            }
        }
        for cells in cells.values_mut() {
            // By name, so that restarts, which may number domains differently, choose alike.
            cells.sort_by_cached_key(|vacancy| self.tree.cell_path(vacancy.cell));
        }
        cells
    }

    /// Cells that together take the members: the fewest that nobody of the group is in yet, then those with the least
    /// room in all. All of them do.
    fn cover(
        &self,
        mut cells: Vec<Vacancy>,
        members: u32,
        budget: &mut Budget,
    ) -> Result<Vec<Vacancy>, Failure> {
        let domains: usize = cells.iter().map(|cell| cell.slices.len()).sum();
        let takes = |cells: &mut dyn Iterator<Item = &Vacancy>| {
            self.slicing.takes(&self.capacity(&sum_up(cells)), members)
        };
        if cells.len() <= CELLS_LISTED_MAX && budget.spend((STEPS_PER_DOMAIN * (domains + 1)) << cells.len())
        {
            let chosen = |set: u32| {
                let cells = cells.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
                cells.map(|(_, cell)| cell)
            };
            let candidate = |set: u32| {
                takes(&mut chosen(set)).then(|| {
                    let cells: Vec<Vacancy> = chosen(set).cloned().collect();
                    (merit(&cells), (Reverse(set.reverse_bits()), cells))
                })
            };
            let mut candidates: Vec<_> = (1..1_u32 << cells.len()).filter_map(candidate).collect();
            candidates.sort_by_key(|(merit, (names, _))| (*merit, *names));
            let best = best_of(candidates, |(_, cells)| self.fullness(cells));
            return Ok(best.map(|(_, cells)| cells).unwrap_or_default());
        }
        cells.sort_by_key(|cell| (Reverse(cell.is_home), Reverse(cell.room)));
        // The smallest number of roomy cells that will do.
        let (mut too_few, mut enough) = (0, cells.len());
        while enough - too_few > 1 {
            if !budget.spend(STEPS_PER_DOMAIN * domains) {
                return Err(Failure::OutOfBudget);
            }
            let middle = usize::midpoint(too_few, enough);
            if takes(&mut cells[..middle].iter()) { enough = middle } else { too_few = middle }
        }
        // The last one may be smaller.
        let rest = cells.split_off(enough);
        let Some(last) = cells.pop() else { return Ok(cells) };
        let few: usize = cells.iter().map(|cell| cell.slices.len()).sum();
        let smaller = |cell: &&Vacancy| cell.is_home == last.is_home && cell.room < last.room;
        let mut smaller: Vec<&Vacancy> = rest.iter().filter(smaller).collect();
        smaller.sort_by_key(|cell| cell.room);
        for cell in smaller {
            if !budget.spend(STEPS_PER_DOMAIN * (few + cell.slices.len())) {
                break;
            }
            if takes(&mut cells.iter().chain([cell])) {
                let cell = cell.clone();
                cells.push(cell);
                return Ok(cells);
            }
        }
        cells.push(last);
        Ok(cells)
    }

    /// How many members go to each domain: slices that have begun are filled up; whole slices go to few domains and
    /// tight ones, the rest to the tightest place that takes it.
    fn divide(&self, chosen: &Chosen) -> Vec<(u32, u64)> {
        let mut rooms = chosen.rooms.clone();
        rooms.sort_by_cached_key(|&(domain, _)| self.tree.path(self.level, domain));
        let shares: Vec<Share> =
            rooms.iter().map(|&(domain, room)| self.slicing.share(domain, room)).collect();
        let mut left = u64::from(chosen.members);
        let mut members = vec![0; rooms.len()];
        for (members, share) in members.iter_mut().zip(&shares) {
            *members = share.begun.min(left);
            left -= *members;
        }
        // By what they take, then by how tight they are, then by name.
        let sorted = |takes: fn(&Share) -> u64| {
            let rooms = rooms.iter().zip(&shares).enumerate();
            let mut sorted: Vec<(u64, u64, usize)> =
                rooms.map(|(at, (&(_, room), share))| (takes(share), room, at)).collect();
            sorted.retain(|&(takes, ..)| takes > 0);
            sorted.sort_unstable();
            sorted
        };
        let (mut roomy, mut parts) = (sorted(|share| share.whole), sorted(|share| share.part));
        let size = self.slicing.size();
        let mut whole = left / size;
        while whole > 0
            && let Some((takes, room, at)) = take_tightest(&mut roomy, whole)
        {
            let taken = takes.min(whole);
            members[at] += taken * size;
            left -= taken * size;
            whole -= taken;
            if takes > taken {
                let rest = (takes - taken, room, at);
                roomy.insert(roomy.partition_point(|other| *other < rest), rest);
            }
        }
        while left > 0 {
            let is_enough = parts.last().is_some_and(|&(takes, ..)| takes >= left);
            let place = match roomy.first() {
                Some(&(_, _, at)) if !is_enough => Some((size, 0, at)),
                _ => take_tightest(&mut parts, left),
            };
            let Some((takes, _, at)) = place else { break };
            let taken = takes.min(left);
            members[at] += taken;
            left -= taken;
        }
        let members = rooms.iter().zip(members).map(|(&(domain, _), members)| (domain, members));
        members.filter(|&(_, members)| members > 0).collect()
    }

    /// Members on nodes, the fullest nodes of every domain first.
    fn seats(&self, chosen: &Chosen, shape: &Shape, table: &NodeTable) -> Vec<(NodeId, u32)> {
        let levels = self.part.levels.len();
        let room = |node: NodeId| self.by_node.get(node.index()).copied().unwrap_or(0);
        let key = |node: NodeId| (Reverse(packing::score(table, node, shape)), table.name(node));
        let is_inside = |node: NodeId| {
            chosen.cells.as_ref().is_none_or(|cells| cells.contains(&self.tree.cell(levels, node)))
        };
        let mut seats = Vec::new();
        for (domain, members) in self.divide(chosen) {
            let mut left = u32::try_from(members).unwrap_or(u32::MAX);
            let nodes = self.tree.nodes(self.level, domain).iter().copied();
            let usable = nodes.filter(|&node| room(node) > 0 && is_inside(node));
            let mut usable: BinaryHeap<_> = usable.map(|node| Reverse((key(node), node))).collect();
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

/// Takes out the tightest that takes all, or else the tightest of those that take most.
fn take_tightest(sorted: &mut Vec<(u64, u64, usize)>, all: u64) -> Option<(u64, u64, usize)> {
    let most = sorted.last()?.0;
    let at = sorted.partition_point(|&(takes, ..)| takes < all.min(most));
    Some(sorted.remove(at))
}

/// Room by domain of the slices' level.
fn sum_up<'a>(cells: impl Iterator<Item = &'a Vacancy>) -> Rooms {
    let mut rooms: Rooms = cells.flat_map(|cell| cell.slices.iter().copied()).collect();
    rooms.sort_unstable();
    rooms.dedup_by(|more, sum| {
        let is_same = more.0 == sum.0;
        if is_same {
            sum.1 += more.1;
        }
        is_same
    });
    rooms
}

/// The smaller the better: new domains, and room in them.
fn merit(cells: &[Vacancy]) -> (usize, u64) {
    let room = cells.iter().map(|cell| cell.room).sum();
    (cells.iter().filter(|cell| !cell.is_home).count(), room)
}
