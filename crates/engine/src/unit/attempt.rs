//! What a unit asks for right now: who of its members wants a seat, how many must get one, and whether it may be
//! tried at all.

use super::members::{GroupProgress, Members};
use crate::decision::{Standing, UnitKey};
use crate::refusal::{Contradiction, Refusal, Unsupported};
use crate::solve::Style;
use crate::state::State;
use crate::state::pods::PodRow;
use tutti_model::tree::{Ancestry, TREE_DEPTH_MAX};
use tutti_model::{Group, ObjectKey, Text, WhenGated};

/// What to do about a unit.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Nothing: no member waits, or they wait for another scheduler.
    Nothing,
    /// It cannot be tried, and these members learn why; beside it how the groups of a composite stand.
    Refused(Vec<ObjectKey>, Refusal, Vec<Standing>),
    /// Find places for these.
    Solve(Members),
}

/// Members that volume claims keep from being tried, and those that they do not.
#[derive(Default)]
pub(crate) struct Ready<'a> {
    pub(crate) members: Vec<(&'a ObjectKey, &'a PodRow)>,
    pub(crate) blocked: Vec<ObjectKey>,
    /// What keeps the first of the blocked.
    pub(crate) why_not: Option<Refusal>,
}

/// Looks at a unit as it is now.
pub(crate) fn look(state: &State, unit: &UnitKey) -> Attempt {
    if state.is_suspended(unit) {
        return Attempt::Nothing;
    }
    let members = state.pods().members(unit);
    let wanting: Vec<_> = members.iter().filter(|(_, row)| row.wants_seat()).copied().collect();
    if !wanting.iter().any(|(_, row)| state.profiles().serve(&row.scheduler_name)) {
        return Attempt::Nothing;
    }
    let unsupported = wanting.iter().find_map(|(_, row)| row.unsupported.clone());
    if let UnitKey::Pod(key) = unit {
        if let Some(what) = unsupported {
            return Attempt::Refused(vec![key.clone()], Refusal::Unsupported(what), Vec::new());
        }
        if let Some(refusal) = ready(state, &wanting).why_not {
            return Attempt::Refused(vec![key.clone()], refusal, Vec::new());
        }
        return Attempt::Solve(Members::flat(&wanting, 1, Style::Profile, Vec::new()));
    }
    let names = || wanting.iter().map(|(key, _)| (*key).clone()).collect();
    let refused = |refusal| Attempt::Refused(names(), refusal, Vec::new());
    let Some(group) = state.pods().object(unit) else {
        return refused(unseen(unit));
    };
    if let Some(contradiction) = misgrown(state, unit).or_else(|| contradiction(group, &members)) {
        return refused(Refusal::Contradiction(contradiction));
    }
    if let Some(what) = unsupported.or_else(|| unsupported_claim(state, unit, TREE_DEPTH_MAX)) {
        return refused(Refusal::Unsupported(what));
    }
    let gates = gates(state, unit, &members);
    if matches!(unit, UnitKey::Composite(_)) || !group.topology.is_empty() {
        return match super::tree::grow(state, unit, gates) {
            Ok(members) => Attempt::Solve(members),
            Err((refusal, groups)) => Attempt::Refused(names(), refusal, groups),
        };
    }
    let plan = group_progress(unit, group, &members);
    if let Some(refusal) = plan.waits.clone().or(gates) {
        return refused(refusal);
    }
    let need = plan.minimum.saturating_sub(plan.counted).max(1);
    let Ready { members: ready, blocked, why_not } = ready(state, &wanting);
    if let Some(refusal) = why_not.filter(|_| (ready.len() as u32) < need) {
        return refused(refusal);
    }
    Attempt::Solve(Members::flat(&ready, need, Style::Pack, vec![plan]).beside(blocked))
}

/// Which members' claims keep them from being tried.
pub(super) fn ready<'a>(state: &State, wanting: &[(&'a ObjectKey, &'a PodRow)]) -> Ready<'a> {
    let mut ready = Ready::default();
    for &(key, row) in wanting {
        match state.volumes().problem(key, &row.uid, &row.claims, state.pods()) {
            None => ready.members.push((key, row)),
            Some((claim, problem)) => {
                ready.blocked.push(key.clone());
                let why = || Refusal::Claim { pod: key.clone(), claim, problem };
                ready.why_not.get_or_insert_with(why);
            }
        }
    }
    ready
}

/// The members for which a unit waits because gates hold them back: as in Kubernetes all, unless their own group starts
/// without them. A gang that has begun and lacks members is completed all the same: to hold it would leave it broken.
fn gates(state: &State, unit: &UnitKey, members: &[(&ObjectKey, &PodRow)]) -> Option<Refusal> {
    let is_waited_for = |row: &PodRow| {
        let group = row.group.as_ref().and_then(|group| state.pods().group(group)?.object.as_ref());
        row.is_held_back() && group.is_some_and(|group| group.when_gated == WhenGated::Hold)
    };
    let refusal = gated(members.iter().filter(|(_, row)| is_waited_for(row)))?;
    state.missing(unit).is_none().then_some(refusal)
}

/// The gated members of a group that the others wait for.
pub(super) fn gates_of_group(group: &Group, members: &[(&ObjectKey, &PodRow)]) -> Option<Refusal> {
    let held_back = members.iter().filter(|(_, row)| row.is_held_back());
    gated(held_back.filter(|_| group.when_gated == WhenGated::Hold))
}

fn gated<'a>(mut pods: impl Iterator<Item = &'a (&'a ObjectKey, &'a PodRow)>) -> Option<Refusal> {
    let (pod, _) = pods.next()?;
    Some(Refusal::Gated { pod: (*pod).clone(), gated: 1 + pods.count() as u32 })
}

fn unseen(unit: &UnitKey) -> Refusal {
    match unit {
        UnitKey::Composite(key) => Refusal::CompositeMissing { composite: key.clone() },
        UnitKey::Group(key) | UnitKey::Pod(key) => Refusal::GroupMissing { group: key.clone() },
    }
}

/// What is wrong with the tree above a unit. A unit with a parent is on its own only because of that.
fn misgrown(state: &State, unit: &UnitKey) -> Option<Contradiction> {
    match state.pods().ancestry_of(unit) {
        Err(error) => Some(Contradiction::Tree(error.to_string().into())),
        Ok(Ancestry::Complete(_) | Ancestry::Incomplete { .. }) => None,
    }
}

/// What is claimed in a tree that nobody can fulfil. So many levels are looked at.
fn unsupported_claim(state: &State, unit: &UnitKey, levels: usize) -> Option<Unsupported> {
    let below = levels.checked_sub(1)?;
    match unit {
        UnitKey::Composite(key) => {
            let children = &state.pods().composite(key)?.children;
            children.iter().find_map(|child| unsupported_claim(state, child, below))
        }
        _ => {
            let claim = state.pods().object(unit)?.claims.first()?;
            Some(Unsupported::DeviceClaim(claim.name.clone()))
        }
    }
}

/// How a group stands, and whether enough members were seen.
pub(crate) fn group_progress(
    unit: &UnitKey,
    group: &Group,
    members: &[(&ObjectKey, &PodRow)],
) -> GroupProgress {
    let minimum = group.policy.minimum();
    let counted = members.iter().filter(|(_, row)| row.counts()).count() as u32;
    let observed = counted + members.iter().filter(|(_, row)| row.wants_seat()).count() as u32;
    let gated = members.iter().filter(|(_, row)| row.is_held_back()).count() as u32;
    let too_few = Refusal::TooFewMembers { minimum, observed, gated };
    let waits = match observed.saturating_add(gated) >= minimum {
        _ if observed >= minimum => None,
        // All members are there, and the gated ones are what the others wait for.
        true => gates_of_group(group, members).or(Some(too_few)),
        false => Some(too_few),
    };
    GroupProgress { unit: unit.clone(), minimum, counted, gated: 0, waits, scattered: None }
}

/// What keeps the living members of a group from being decided together.
fn contradiction(group: &Group, members: &[(&ObjectKey, &PodRow)]) -> Option<Contradiction> {
    let live = || members.iter().map(|(_, row)| row).filter(|row| row.is_live());
    let mut schedulers: Vec<Text> = live().map(|row| row.scheduler_name.clone()).collect();
    schedulers.sort_unstable();
    schedulers.dedup();
    if schedulers.len() > 1 {
        return Some(Contradiction::SchedulerNames(schedulers));
    }
    let mut priorities: Vec<i32> = live().map(|row| row.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let agreed = group.priority.or(priorities.first().copied());
    if priorities.iter().any(|&priority| Some(priority) != agreed) {
        return Some(Contradiction::Priorities { group: group.priority, members: priorities });
    }
    None
}
