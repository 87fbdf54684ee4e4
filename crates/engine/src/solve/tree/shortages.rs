//! Why a tree has no place: level by level, how many domains are too small, and which is the best of them.

use super::anchor::Anchor;
use super::ground::{Ground, Region};
use crate::refusal::{LevelShortage, NoRoom, Scattered};
use crate::solve::request::Part;
use crate::solve::{Tables, construct, explain};
use crate::state::hierarchy::{Hierarchy, HierarchyId, NO_DOMAIN};
use crate::state::nodes::NodeId;
use crate::state::shape::{Shape, ShapeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tutti_model::{Strength, Text};

/// Why `need` members of one shape have no place.
pub(super) fn one_shape(
    part: &Part,
    id: HierarchyId,
    shape: &Arc<Shape>,
    shape_id: ShapeId,
    need: u32,
    tables: &mut Tables<'_>,
) -> NoRoom {
    let hierarchies = &tables.relations.hierarchies;
    let tree = hierarchies.get(id);
    let room = tables.rooms.of(shape_id, shape, tables.nodes, tables.changes);
    let total = room.total();
    let sums = room.by_domain(id, hierarchies).0.to_vec();
    let mut levels = Vec::new();
    let mut best = None;
    for level in required_levels(part) {
        let anchor = Anchor::new(tree, level, part.running.iter().map(|running| running.node));
        let rooms = sums[level].iter().enumerate().map(|(domain, &room)| (domain as u32, room));
        let rooms = rooms.filter(|&(domain, _)| !tree.nodes(level, domain).is_empty());
        let (shortage, domain) = shortage(tree, level, &anchor, rooms, need);
        levels.push(shortage);
        best = domain.map(|domain| (level, domain));
    }
    let within = |node: NodeId| match best {
        Some((level, domain)) => tree.domain(level, node) == domain,
        None => levels.is_empty() || tree.domain(levels.len() - 1, node) != NO_DOMAIN,
    };
    let fit = match (best, levels.is_empty()) {
        (Some((level, domain)), _) => sums[level][domain as usize],
        (None, true) => total,
        (None, false) => 0,
    };
    let fit = fit.min(u64::from(need.saturating_sub(1))) as u32;
    let room = explain::one_shape(shape, fit, need, tables, &within);
    NoRoom { levels, scattered: scattered(tree, part), ..room }
}

/// Why a tree has no place. The figures beside the levels are about the best domain of the root.
pub(super) fn tree(ground: &Ground<'_>, tables: &Tables<'_>) -> NoRoom {
    let everywhere: Region = vec![true; ground.problem.bins.len()];
    let mut levels = Vec::new();
    let mut region = everywhere.clone();
    let mut root: Option<(&Hierarchy, usize, u32)> = None;
    for at in 0..ground.tree.parts.len() {
        let (part, Some(hierarchy)) = (ground.part(at), ground.hierarchy(at)) else { continue };
        for level in required_levels(part) {
            let need = needed(ground, at);
            let anchor = ground.anchor(at, at, level);
            let domains = ground.domains_in(at, level, &everywhere);
            let rooms = domains
                .iter()
                .map(|&domain| (domain, fit(ground, at, &ground.within(at, level, domain, &everywhere))));
            let (mut shortage, best) = shortage(hierarchy, level, &anchor, rooms, need);
            shortage.group = (ground.tree.parts.len() > 1).then(|| part.name.clone());
            levels.push(shortage);
            if let (0, Some(domain)) = (at, best) {
                root = Some((hierarchy, level, domain));
                region = ground.within(at, level, domain, &everywhere);
            }
        }
    }
    let bins: Vec<usize> = (0..region.len()).filter(|&bin| region[bin]).collect();
    let counts: Vec<u32> = ground.problem.kinds.iter().map(|kind| kind.count).collect();
    let problem = ground.problem.narrowed(&bins, |_, _| true, &counts, &[]);
    let best = construct::best(&problem);
    let within =
        |node: NodeId| root.is_none_or(|(hierarchy, level, domain)| hierarchy.domain(level, node) == domain);
    let room = explain::mixed(&problem, &best, needed(ground, 0), tables, &within);
    let scattered = ground.tree.parts.iter().enumerate();
    let scattered = scattered.filter_map(|(at, part)| scattered_of(ground, at, part)).next();
    NoRoom { levels, scattered, ..room }
}

fn scattered_of(ground: &Ground<'_>, at: usize, part: &Part) -> Option<Scattered> {
    scattered(ground.hierarchy(at)?, part)
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

/// Members of a part that fit into a region, each kind by itself.
fn fit(ground: &Ground<'_>, at: usize, region: &Region) -> u64 {
    if ground.part(at).is_group {
        return ground.fit(at, region);
    }
    ground.part(at).children.iter().map(|&child| fit(ground, child, region)).sum()
}

/// What there is to say about a level, and its best domain.
fn shortage(
    tree: &Hierarchy,
    level: usize,
    anchor: &Anchor,
    rooms: impl Iterator<Item = (u32, u64)>,
    needed: u32,
) -> (LevelShortage, Option<u32>) {
    let rooms: Vec<(u32, u64)> = rooms.filter(|&(domain, _)| anchor.allows(domain)).collect();
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
    };
    (shortage, best.map(|&(domain, _)| domain))
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
