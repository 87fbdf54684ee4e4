//! What a unit asks for right now: who of its members wants a seat, how many must get one, and whether it may be
//! tried at all.

use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::pods::PodRow;
use crate::refusal::{Contradiction, Refusal, Unsupported};
use crate::shape::ShapeId;
use crate::solve::{Request, Style};
use std::collections::BTreeMap;
use tutti_model::{Group, ObjectKey, Text};

/// What to do about a unit.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Nothing: nobody waits, or they wait for somebody else.
    Nothing,
    /// It cannot be tried, and these members learn why.
    Refused(Vec<ObjectKey>, Refusal),
    /// Find places for these.
    Solve(Members),
}

/// Members that want a seat, by shape.
#[derive(Debug)]
pub(crate) struct Members {
    by_shape: Vec<(ShapeId, Vec<ObjectKey>)>,
    /// Members that cannot be tried because of their volume claims.
    blocked: Vec<ObjectKey>,
    need: u32,
    style: Style,
}

/// Members with their rows.
type Rows<'a> = Vec<(&'a ObjectKey, &'a PodRow)>;

impl Members {
    fn new(members: &[(&ObjectKey, &PodRow)], need: u32, style: Style) -> Self {
        // Shapes in the order of their first member's name, because numbers of shapes depend on history.
        let mut index: BTreeMap<ShapeId, usize> = BTreeMap::new();
        let mut by_shape: Vec<(ShapeId, Vec<ObjectKey>)> = Vec::new();
        for (key, row) in members {
            let at = *index.entry(row.shape).or_insert_with(|| {
                by_shape.push((row.shape, Vec::new()));
                by_shape.len() - 1
            });
            by_shape[at].1.push((*key).clone());
        }
        Self { by_shape, blocked: Vec::new(), need, style }
    }

    /// What is to be solved.
    pub(crate) fn request(&self) -> Request {
        let shapes = self.by_shape.iter().map(|(shape, members)| (*shape, members.len() as u32)).collect();
        Request { shapes, need: self.need, style: self.style }
    }

    /// The shape at an index of the request.
    pub(crate) fn shape(&self, index: usize) -> ShapeId {
        self.by_shape[index].0
    }

    /// All shapes.
    pub(crate) fn shapes(&self) -> Vec<ShapeId> {
        self.by_shape.iter().map(|(shape, _)| *shape).collect()
    }

    /// Takes out the next members of a shape, by name.
    pub(crate) fn draw(&mut self, index: usize, count: u32) -> Vec<ObjectKey> {
        self.by_shape[index].1.drain(..count as usize).collect()
    }

    /// Everybody who is still here, by name.
    pub(crate) fn into_names(self) -> Vec<ObjectKey> {
        let mut names: Vec<ObjectKey> = self.by_shape.into_iter().flat_map(|(_, members)| members).collect();
        names.extend(self.blocked);
        names.sort_unstable();
        names
    }
}

impl Engine {
    /// Looks at a unit as it is now.
    pub(crate) fn attempt(&self, unit: &UnitKey) -> Attempt {
        if self.suspended.contains(unit) {
            return Attempt::Nothing;
        }
        let members = self.pods.members(unit);
        let wanting: Vec<_> = members.iter().filter(|(_, row)| row.wants_seat()).copied().collect();
        if !wanting.iter().any(|(_, row)| self.serves(&row.scheduler_name)) {
            return Attempt::Nothing;
        }
        let unsupported = wanting.iter().find_map(|(_, row)| row.unsupported.clone());
        let UnitKey::Group(key) = unit else {
            if let Some(what) = unsupported {
                return Attempt::Refused(vec![unit.object().clone()], Refusal::Unsupported(what));
            }
            if let (_, Some(refusal)) = self.ready(&wanting) {
                return Attempt::Refused(vec![unit.object().clone()], refusal);
            }
            return Attempt::Solve(Members::new(&wanting, 1, Style::Profile));
        };
        let names = || wanting.iter().map(|(key, _)| (*key).clone()).collect();
        let Some(group) = self.pods.group(key).and_then(|row| row.object.as_ref()) else {
            return Attempt::Refused(names(), Refusal::GroupMissing { group: key.clone() });
        };
        if let Some(contradiction) = contradiction(group, &members) {
            return Attempt::Refused(names(), Refusal::Contradiction(contradiction));
        }
        let topology = group.topology.first().cloned().map(Unsupported::GroupTopology);
        let composite = group.parent.clone().map(Unsupported::Composite);
        let claim = group.claims.first().map(|claim| Unsupported::DeviceClaim(claim.name.clone()));
        if let Some(what) = unsupported.or(topology).or(composite).or(claim) {
            return Attempt::Refused(names(), Refusal::Unsupported(what));
        }
        let minimum = group.policy.minimum();
        let counted = members.iter().filter(|(_, row)| row.counts()).count() as u32;
        let observed = counted + wanting.len() as u32;
        if observed < minimum {
            let gated = members.iter().filter(|(_, row)| row.gated && row.is_live()).count() as u32;
            return Attempt::Refused(names(), Refusal::TooFewMembers { minimum, observed, gated });
        }
        let need = minimum.saturating_sub(counted).max(1);
        let (ready, problem) = self.ready(&wanting);
        if let Some(refusal) = problem.filter(|_| (ready.len() as u32) < need) {
            return Attempt::Refused(names(), refusal);
        }
        let is_blocked = |key: &&ObjectKey| ready.iter().all(|(ready, _)| ready != key);
        let blocked = wanting.iter().map(|(key, _)| *key).filter(is_blocked).cloned().collect();
        Attempt::Solve(Members { blocked, ..Members::new(&ready, need, Style::Pack) })
    }

    /// Members whose claims do not keep them from being tried, and why the first of the others is kept.
    fn ready<'a>(&self, wanting: &[(&'a ObjectKey, &'a PodRow)]) -> (Rows<'a>, Option<Refusal>) {
        let mut first = None;
        let mut ready = Vec::with_capacity(wanting.len());
        for &(key, row) in wanting {
            match self.volumes.problem(key, &row.uid, &row.claims, &self.pods) {
                None => ready.push((key, row)),
                Some((claim, problem)) => {
                    first.get_or_insert_with(|| Refusal::Claim { pod: key.clone(), claim, problem });
                }
            }
        }
        (ready, first)
    }
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
