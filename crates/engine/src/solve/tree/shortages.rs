//! Why a tree has no place: level by level, how many domains are too small, and which is the best of them.

use super::anchor::Anchor;
use super::bounds;
use super::ground::Ground;
use crate::refusal::{LevelShortage, NoRoom, Scattered};
use crate::solve::budget::Budget;
use crate::solve::request::Part;
use crate::solve::{Tables, construct, explain};
use crate::state::hierarchy::{Hierarchy, HierarchyId, NO_DOMAIN};
use crate::state::nodes::NodeId;
use crate::state::shape::{Shape, ShapeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tutti_model::{Strength, Text};

/// Steps that one domain takes: sums, and names where they are equal.
const STEPS_PER_DOMAIN: usize = 48;

/// Why members of one shape have no place: the shape, how many are needed, and how many fit if that is known.
pub(super) fn one_shape(
    part: &Part,
    id: HierarchyId,
    shape: &Arc<Shape>,
    (shape_id, need, most): (ShapeId, u32, Option<u32>),
    tables: &mut Tables<'_>,
    budget: &mut Budget,
) -> NoRoom {
    budget.for_explanation();
    let hierarchies = &tables.relations.hierarchies;
    let tree = hierarchies.get(id);
    let room = tables.rooms.of(shape_id, shape, tables.nodes, tables.changes);
    let total = room.total();
    let sums = room.by_domain(id, hierarchies).0;
    let cost: usize = sums.iter().map(|sums| STEPS_PER_DOMAIN * sums.len()).sum();
    if !budget.spend(cost + part.running.len() * 16) {
        return explain::briefly(most.unwrap_or(0), need, tables);
    }
    let sums = sums.to_vec();
    let mut levels = Vec::new();
    let mut best = None;
    for (level, needed) in levels_that_matter(part, need) {
        let anchor = Anchor::new(tree, level, part.running.iter().map(|running| running.node));
        let rooms = sums[level].iter().enumerate().map(|(domain, &room)| (domain as u32, room));
        let (shortage, domain) = shortage(tree, level, &anchor, rooms, needed, tables);
        if !is_worth_saying(part, level, &shortage) {
            continue;
        }
        if shortage.best.is_none() {
            let nowhere = explain::briefly(0, need, tables);
            levels.push(shortage);
            return NoRoom { levels, scattered: scattered(tree, part), ..nowhere };
        }
        levels.push(shortage);
        if part.levels.get(level) == Some(&Strength::Required) {
            best = domain.map(|domain| (level, domain));
        }
    }
    let within =
        |node: NodeId| best.is_none_or(|(level, domain): (usize, u32)| tree.domain(level, node) == domain);
    let fit = best.map_or(total, |(level, domain)| sums[level][domain as usize]);
    let fit = most.map_or(fit, u64::from).min(u64::from(need.saturating_sub(1))) as u32;
    let room = explain::one_shape(shape, fit, need, tables, &within, budget);
    NoRoom { levels, scattered: scattered(tree, part), ..room }
}

/// Why a tree has no place. The figures beside the levels are about the best domain of the root.
pub(super) fn tree(ground: &Ground<'_>, tables: &Tables<'_>, budget: &mut Budget) -> NoRoom {
    budget.for_explanation();
    let everywhere = ground.everywhere();
    let mut levels = Vec::new();
    let mut region = everywhere.clone();
    let mut root: Option<(&Hierarchy, usize, u32)> = None;
    let mut is_nowhere = false;
    let need = needed(ground, 0);
    for at in 0..ground.tree.parts.len() {
        let (part, Some(hierarchy)) = (ground.part(at), ground.hierarchy(at)) else { continue };
        for (level, needed) in levels_that_matter(part, needed(ground, at)) {
            let domains = hierarchy.sums(level, &[]).len();
            let cost = ground.cost_of_fit(at) + STEPS_PER_DOMAIN * domains + 16 * part.running.len();
            if !budget.spend(cost) {
                continue;
            }
            let anchor = ground.anchor(at, at, level);
            let fits = ground.fit_by_domain(at, level, &everywhere);
            let rooms =
                (0..domains as u32).map(|domain| (domain, fits.get(domain as usize).copied().unwrap_or(0)));
            let (mut shortage, best) = shortage(hierarchy, level, &anchor, rooms, needed, tables);
            if !is_worth_saying(part, level, &shortage) {
                continue;
            }
            shortage.group = (ground.tree.parts.len() > 1).then(|| part.name.clone());
            is_nowhere |= at == 0 && shortage.best.is_none();
            levels.push(shortage);
            if let (0, Some(domain), Some(Strength::Required)) = (at, best, part.levels.get(level)) {
                root = Some((hierarchy, level, domain));
                region = ground.within(at, level, domain, &everywhere);
            }
        }
    }
    let scattered = ground.tree.parts.iter().enumerate();
    let scattered = scattered.filter_map(|(at, part)| scattered_of(ground, at, part)).next();
    let reach = bounds::reach(ground, budget).filter(|_| !is_nowhere);
    let Some(reach) = reach.filter(|_| budget.spend(ground.problem.cost_of_a_copy())) else {
        return NoRoom { levels, scattered, ..explain::briefly(0, need, tables) };
    };
    let bins: Vec<usize> = (0..region.len()).filter(|&bin| region[bin]).collect();
    let counts: Vec<u32> = ground.problem.kinds.iter().map(|kind| kind.count).collect();
    // Nobody counts as fitting where what it requires does not exist.
    let allowed = |kind: usize, bin: usize| reach[ground.tree.kinds[kind].part][bin];
    let problem = ground.problem.narrowed(&bins, allowed, &counts, &[]);
    let best = budget.share(2, |budget| construct::best(&problem, budget));
    let within =
        |node: NodeId| root.is_none_or(|(hierarchy, level, domain)| hierarchy.domain(level, node) == domain);
    let room = explain::mixed(&problem, &best, need, tables, &within, budget);
    NoRoom { levels, scattered, ..room }
}

/// Levels that are required, and that of slices; and how many members must have room in one of its domains.
fn levels_that_matter(part: &Part, need: u32) -> impl Iterator<Item = (usize, u32)> {
    let slices = part.slices.filter(|rule| part.levels.get(rule.level) != Some(&Strength::Required));
    let slices = slices.map(|rule| (rule.level, need.min(rule.size)));
    required_levels(part).map(move |level| (level, need)).chain(slices)
}

/// Levels that are required always are; that of slices if no domain takes one.
fn is_worth_saying(part: &Part, level: usize, shortage: &LevelShortage) -> bool {
    part.levels.get(level) == Some(&Strength::Required)
        || shortage.best.as_ref().is_none_or(|&(_, room)| room < shortage.needed)
}

fn scattered_of(ground: &Ground<'_>, at: usize, part: &Part) -> Option<Scattered> {
    part.contradicted.clone().or_else(|| scattered(ground.hierarchy(at)?, part))
}

fn required_levels(part: &Part) -> impl Iterator<Item = usize> {
    let levels = part.levels.iter().enumerate();
    levels.filter(|(_, strength)| **strength == Strength::Required).map(|(level, _)| level)
}

/// Members that a part lacks at least; of a composite, those of the children that lack fewest.
fn needed(ground: &Ground<'_>, at: usize) -> u32 {
    let part = ground.part(at);
    if part.is_group {
        let wanted: u32 = ground.kinds_of(at).iter().map(|&kind| ground.problem.kinds[kind].count).sum();
        return if part.need() > 0 { part.need() } else { wanted.min(1) };
    }
    let mut children: Vec<u32> = part.children.iter().map(|&child| needed(ground, child)).collect();
    children.sort_unstable();
    children.iter().take(part.minimum as usize).sum::<u32>().max(1)
}

/// What there is to say about a level, and its best domain.
fn shortage(
    tree: &Hierarchy,
    level: usize,
    anchor: &Anchor,
    rooms: impl Iterator<Item = (u32, u64)>,
    needed: u32,
    tables: &Tables<'_>,
) -> (LevelShortage, Option<u32>) {
    let has_nodes = |&(domain, _): &(u32, u64)| !tree.nodes(level, domain).is_empty();
    let rooms: Vec<(u32, u64)> =
        rooms.filter(has_nodes).filter(|&(domain, _)| anchor.allows(domain)).collect();
    let short = rooms.iter().filter(|(_, room)| *room < u64::from(needed)).count();
    let best = rooms
        .iter()
        .max_by(|a, b| a.1.cmp(&b.1).then_with(|| tree.path(level, b.0).cmp(&tree.path(level, a.0))));
    let shortage = LevelShortage {
        group: None,
        key: tree.key(level).clone(),
        domains: rooms.len() as u32,
        short: short as u32,
        best: best.map(|&(domain, room)| (tree.name(level, domain), u32::try_from(room).unwrap_or(u32::MAX))),
        needed,
        is_pinned: anchor.is_pinned(),
        missing_labels: if best.is_none() { missing_labels(tree, level, tables) } else { Vec::new() },
    };
    (shortage, best.map(|&(domain, _)| domain))
}

/// Labels that no node has together, where no node is in a domain of a level.
fn missing_labels(tree: &Hierarchy, level: usize, tables: &Tables<'_>) -> Vec<Text> {
    let has_label =
        |node: NodeId| tables.nodes.node(node).is_some_and(|node| node.labels.get(tree.key(level)).is_some());
    let first = if tables.nodes.ids().any(has_label) { 0 } else { level };
    (first..=level).map(|level| tree.key(level).clone()).collect()
}

/// Members that run in several domains of the narrowest required level, or in none.
pub(in crate::solve) fn scattered(tree: &Hierarchy, part: &Part) -> Option<Scattered> {
    let level = part.required()?;
    let mut domains: BTreeMap<Text, u32> = BTreeMap::new();
    let mut outside = 0;
    for running in &part.running {
        match tree.domain(level, running.node) {
            NO_DOMAIN => outside += 1,
            domain => *domains.entry(tree.name(level, domain)).or_default() += 1,
        }
    }
    if outside == 0 && domains.len() < 2 {
        return None;
    }
    Some(Scattered { key: tree.key(level).clone(), domains: domains.into_iter().collect(), outside })
}
