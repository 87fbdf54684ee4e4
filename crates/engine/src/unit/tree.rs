//! Groups and composites as the tree that is solved for: what each asks of the topology, who runs already, and who can
//! be tried.

use super::attempt::{gates_of_group, group_progress, ready};
use super::members::{GroupProgress, Members, standings};
use crate::decision::{Standing, UnitKey};
use crate::refusal::{Contradiction, Refusal};
use crate::solve::{Belonging, ChildSpread, Fence, Part, RunningMember, SliceRule, Tree, scattered};
use crate::state::State;
use crate::state::hierarchy::{Hierarchies, NO_DOMAIN};
use crate::state::pods::PodRow;
use std::collections::BTreeSet;
use tutti_model::tree::TREE_DEPTH_MAX;
use tutti_model::{Group, ObjectKey, Text};

/// A tree in the making.
#[derive(Default)]
struct Growth<'a> {
    tree: Tree,
    plans: Vec<GroupProgress>,
    members: Vec<(&'a ObjectKey, &'a PodRow, Belonging)>,
    unready: Vec<ObjectKey>,
    /// Members whom gates hold back, and who are to have room all the same.
    gated: BTreeSet<ObjectKey>,
    /// Nobody is placed because of gated members.
    is_held: bool,
}

/// The tree below a unit, or why it cannot be tried and how its groups stand. `gates` are what holds all of it.
pub(super) fn grow(
    state: &State,
    unit: &UnitKey,
    gates: Option<Refusal>,
) -> Result<Members, (Refusal, Vec<Standing>)> {
    let mut growth = Growth { is_held: gates.is_some(), ..Growth::default() };
    grow_part(state, unit, None, TREE_DEPTH_MAX, &mut growth);
    let contradiction = growth.part_ways(&state.relations().hierarchies);
    let Growth { tree, mut plans, members, unready, gated, .. } = growth;
    // What could be at best: every group that has enough members gets them all.
    let ready: Vec<u32> =
        plans.iter().map(|plan| if plan.waits.is_none() { plan.minimum } else { 0 }).collect();
    let met = tree.met(&ready);
    for (at, part) in tree.parts.iter().enumerate().filter(|(_, part)| !part.is_group) {
        let ready = part.children.iter().filter(|&&child| met[child]).count() as u32;
        if ready < part.minimum {
            plans[at].waits = Some(Refusal::TooFewGroups { minimum: part.minimum, ready });
        }
    }
    let waits = |plan: &GroupProgress| plan.waits.clone();
    let nobody = Refusal::TooFewGroups { minimum: 1, ready: 0 };
    let refusal = match (gates, plans.first().and_then(waits)) {
        // Members that are not even there come before gated ones.
        (_, Some(own)) if tree.only_group().is_some() => Some(own),
        (Some(gates), _) => Some(gates),
        // What is missing for the minimum may be missing because of that.
        (None, root) if contradiction.is_some() && (root.is_some() || members.is_empty()) => contradiction,
        (None, None) if members.is_empty() => Some(plans.iter().find_map(waits).unwrap_or(nobody)),
        (None, root) => root,
    };
    if let Some(refusal) = refusal {
        return Err((refusal, standings(Some(&tree), &plans)));
    }
    Ok(Members::of_tree(&members, unready, tree, plans).with_gated(gated))
}

impl Growth<'_> {
    /// Composites whose groups run in several domains of a level that they require cannot have it any more. Each of their
    /// groups is kept to where it runs, and those that do not run are not tried. Tells the first such contradiction.
    fn part_ways(&mut self, hierarchies: &Hierarchies) -> Option<Refusal> {
        let mut first = None;
        for at in 0..self.tree.parts.len() {
            while let Some(refusal) = self.part_ways_at(at, hierarchies) {
                first.get_or_insert(refusal);
            }
        }
        first
    }

    /// The same for the narrowest level that one composite requires.
    fn part_ways_at(&mut self, at: usize, hierarchies: &Hierarchies) -> Option<Refusal> {
        let part = &self.tree.parts[at];
        let (Some(hierarchy), Some(level), false) = (part.hierarchy, part.required(), part.is_group) else {
            return None;
        };
        let scattered = scattered(part, hierarchies).filter(|scattered| scattered.domains.len() > 1)?;
        let domains = scattered.domains.iter().map(|(domain, _)| domain.clone()).collect();
        let refusal = Refusal::Contradiction(Contradiction::Scattered {
            composite: part.name.clone(),
            key: scattered.key.clone(),
            domains,
        });
        let tree = hierarchies.get(hierarchy);
        for group in self.groups_below(at) {
            let running = self.tree.parts[group].running.iter();
            let mut domains: Vec<u32> = running.map(|running| tree.domain(level, running.node)).collect();
            domains.retain(|&domain| domain != NO_DOMAIN);
            domains.sort_unstable();
            domains.dedup();
            if domains.is_empty() {
                self.plans[group].waits.get_or_insert(refusal.clone());
                let left_out = self.members.extract_if(.., |(_, _, belonging)| belonging.part == group);
                self.unready.extend(left_out.map(|(key, ..)| key.clone()));
            } else {
                self.tree.parts[group].fences.push(Fence { hierarchy, level, domains });
            }
        }
        let part = &mut self.tree.parts[at];
        part.levels.truncate(level);
        part.contradicted.get_or_insert(scattered);
        Some(refusal)
    }

    fn groups_below(&self, at: usize) -> Vec<usize> {
        let parts = &self.tree.parts;
        let is_below = |group: &usize| {
            let mut above = parts[*group].parent;
            while above.is_some_and(|above| above != at) {
                above = above.and_then(|above| parts[above].parent);
            }
            above.is_some()
        };
        self.tree.groups().filter(is_below).collect()
    }
}

/// Adds a unit and all that is below it, so many levels: what is deeper than a tree may be is not part of it.
fn grow_part<'a>(
    state: &'a State,
    unit: &'a UnitKey,
    parent: Option<usize>,
    levels: usize,
    growth: &mut Growth<'a>,
) {
    let Some(below) = levels.checked_sub(1) else { return };
    let Some(group) = state.pods().object(unit) else { return };
    let at = growth.tree.parts.len();
    let minimum = group.policy.minimum();
    let is_alone = parent.is_none() && matches!(unit, UnitKey::Group(_));
    growth.tree.parts.push(Part {
        // A group by itself is not named in explanations, and so equal groups ask for the same.
        name: if is_alone { Text::default() } else { group.key.name.clone() },
        parent,
        minimum,
        ..asks(state, unit, group)
    });
    if let Some(parent) = parent {
        growth.tree.parts[parent].children.push(at);
    }
    if let UnitKey::Composite(key) = unit {
        growth.plans.push(GroupProgress {
            unit: unit.clone(),
            minimum,
            counted: 0,
            gated: 0,
            waits: None,
            scattered: None,
        });
        for child in state.pods().composite(key).into_iter().flat_map(|row| &row.children) {
            grow_part(state, child, Some(at), below, growth);
        }
        let children = growth.tree.parts[at].children.clone();
        let running = children.iter().flat_map(|&child| growth.tree.parts[child].running.clone()).collect();
        growth.tree.parts[at].running = running;
    } else {
        let members = state.pods().members(unit);
        let mut plan = group_progress(unit, group, &members);
        let wanting: Vec<_> = members.iter().filter(|(_, row)| row.wants_seat()).copied().collect();
        let mut ready = ready(state, &wanting);
        if plan.counted + (ready.members.len() as u32) < plan.minimum {
            plan.waits = plan.waits.or(ready.why_not.take());
        }
        if growth.is_held {
            plan.waits = plan.waits.or_else(|| gates_of_group(group, &members));
        }
        if plan.waits.is_some() {
            ready.blocked.extend(ready.members.drain(..).map(|(key, _)| key.clone()));
        }
        let part = &mut growth.tree.parts[at];
        (part.is_group, part.counted) = (true, plan.counted);
        let gated: Vec<_> = members.iter().filter(|(_, row)| row.is_held_back()).copied().collect();
        let is_tried = plan.waits.is_none() && !ready.members.is_empty();
        if is_tried && !gated.is_empty() && binds_gated(&growth.tree, at, &members) {
            // They all must fit into the domain that is chosen now, so they are asked for, though not seated.
            ready.members.extend(&gated);
            growth.gated.extend(gated.iter().map(|(key, _)| (*key).clone()));
            growth.tree.parts[at].minimum = plan.counted + ready.members.len() as u32;
        }
        sort_members(group, &members, at, &ready.members, growth);
        growth.unready.extend(ready.blocked);
        growth.plans.push(plan);
    }
    let scattered = scattered(&growth.tree.parts[at], &state.relations().hierarchies);
    growth.plans[at].scattered = scattered;
}

/// True if a domain is chosen for a group now that its gated members cannot leave later: it, or what it is part of,
/// requires one, and nobody of it runs.
fn binds_gated(tree: &Tree, at: usize, members: &[(&ObjectKey, &PodRow)]) -> bool {
    let mut part = Some(at);
    let mut is_required = false;
    while let Some(at) = part {
        is_required |= tree.parts[at].required().is_some();
        part = tree.parts[at].parent;
    }
    is_required && !members.iter().any(|(_, row)| row.is_live() && row.node().is_some())
}

/// What a group or composite asks of the topology.
fn asks(state: &State, unit: &UnitKey, group: &Group) -> Part {
    let hierarchy = match unit {
        UnitKey::Group(key) => state.pods().group(key).and_then(|row| row.hierarchy),
        UnitKey::Composite(key) => state.pods().composite(key).and_then(|row| row.hierarchy),
        UnitKey::Pod(_) => None,
    };
    let keys = group.topology.keys();
    let level = |key: &Text| keys.iter().position(|other| other == key);
    let slices = group
        .topology
        .slices
        .as_ref()
        .and_then(|slices| Some(SliceRule { level: level(&slices.key)?, size: slices.size.get() }));
    let spread = group
        .topology
        .spread
        .as_ref()
        .and_then(|spread| Some(ChildSpread { level: level(&spread.key)?, most: spread.most.get() }));
    let levels = group.topology.levels.iter().map(|level| level.strength).collect();
    Part { hierarchy, levels, slices, spread, ..Part::default() }
}

/// Members of a group: who sits, who wants to, and in which slice.
fn sort_members<'a>(
    group: &Group,
    members: &[(&'a ObjectKey, &'a PodRow)],
    at: usize,
    ready: &[(&'a ObjectKey, &'a PodRow)],
    growth: &mut Growth<'a>,
) {
    let live = || members.iter().filter(|(_, row)| row.is_live());
    let size = group.topology.slices.as_ref().map(|slices| slices.size.get());
    let by_rank = live().all(|(_, row)| row.leader || row.rank.is_some());
    let belonging = |row: &PodRow| {
        let slice = match (size, row.leader, row.rank) {
            (Some(_), true, _) if by_rank => Some(0),
            (Some(size), false, Some(rank)) if by_rank => Some(rank / size),
            _ => None,
        };
        Belonging { part: at, slice, leads: row.leader && size.is_some() && !by_rank }
    };
    let part = &mut growth.tree.parts[at];
    part.is_ranked = live().any(|(_, row)| row.rank.is_some());
    for (_, row) in live() {
        if let Some(node) = row.node() {
            let Belonging { slice, leads, .. } = belonging(row);
            part.running.push(RunningMember { node, slice, leads });
        }
    }
    growth.members.extend(ready.iter().map(|&(key, row)| (key, row, belonging(row))));
}
