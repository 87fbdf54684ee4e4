//! Which unbound claim gets which volume, once it is known where its pod goes.

use super::needs::places_of;
use super::{ClaimPlan, Volumes, claim_keys};
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::{Node, ObjectKey, Text, Volume, VolumeClaim, VolumeUse};

/// A pod, its claims, and the node that it goes to.
pub(crate) type Seated<'a> = (&'a ObjectKey, &'a [VolumeUse], &'a Node);

/// A claim that has to be given a volume, and where its pod goes.
struct Asking<'a> {
    claim: &'a VolumeClaim,
    node: &'a Node,
    /// Volumes that would do, smallest first.
    suitable: Vec<usize>,
    /// True if a volume can be made instead.
    is_provisioned: bool,
}

impl Volumes {
    /// What is to become of every claim of these pods that is not bound. Nothing if there are too few volumes, which
    /// the solver rules out.
    pub(crate) fn plan(&self, seats: &[Seated<'_>]) -> Option<BTreeMap<ObjectKey, ClaimPlan>> {
        let mut plans = BTreeMap::new();
        let mut asking: Vec<(&VolumeClaim, &Node)> = Vec::new();
        let claims = seats.iter().flat_map(|(pod, uses, node)| {
            claim_keys(pod, uses).into_iter().filter_map(|key| Some((self.claims.get(&key)?, *node)))
        });
        for (claim, node) in claims.filter(|(claim, _)| !claim.bound) {
            if plans.contains_key(&claim.key) {
                continue;
            }
            match self.settled(claim, node) {
                Some(plan) => {
                    plans.insert(claim.key.clone(), plan);
                }
                None => asking.push((claim, node)),
            }
        }
        if !asking.is_empty() {
            let taken: BTreeSet<&Text> = plans.values().filter_map(ClaimPlan::volume).collect();
            let mut free = self.free_volumes();
            free.retain(|volume| !taken.contains(&volume.name));
            let found = self.matched(asking, &free)?;
            plans.extend(found);
        }
        Some(plans)
    }

    /// The plan for a claim about which there is no choice any more.
    fn settled(&self, claim: &VolumeClaim, node: &Node) -> Option<ClaimPlan> {
        if let Some(plan) = self.plans.get(&claim.key) {
            return Some(plan.clone());
        }
        if let Some(node) = &claim.selected_node {
            return Some(ClaimPlan::Provision(node.clone()));
        }
        if let Some(volume) = self.kept_for(claim) {
            return Some(ClaimPlan::Volume(volume.name.clone()));
        }
        if !self.is_shared(&claim.key) {
            return None;
        }
        match self.class_of(claim).and_then(|class| class.provisioner.as_ref()) {
            Some(_) => Some(ClaimPlan::Provision(node.name.clone())),
            None => self.guessed(claim).map(|volume| ClaimPlan::Volume(volume.name.clone())),
        }
    }

    /// Gives every claim a volume of its own; those for which one can be made come last and may go without.
    fn matched(
        &self,
        asking: Vec<(&VolumeClaim, &Node)>,
        free: &[&Volume],
    ) -> Option<BTreeMap<ObjectKey, ClaimPlan>> {
        let mut asking: Vec<Asking<'_>> = asking
            .into_iter()
            .map(|(claim, node)| {
                let will_do = |volume: &Volume| {
                    volume.suits(claim) && places_of(volume).all(|place| place.accepts(node))
                };
                let suitable = (0..free.len()).filter(|&at| will_do(free[at])).collect();
                let class = self.class_of(claim);
                let is_provisioned = class.is_some_and(|class| class.provisions_for(&node.labels));
                Asking { claim, node, suitable, is_provisioned }
            })
            .collect();
        asking.sort_by_key(|ask| (ask.is_provisioned, ask.claim.size, &ask.claim.key));
        let mut holder: Vec<Option<usize>> = vec![None; free.len()];
        for at in 0..asking.len() {
            let mut seen = vec![false; free.len()];
            if !augment(at, &asking, &mut holder, &mut seen) && !asking[at].is_provisioned {
                return None;
            }
        }
        let mut given: Vec<Option<Text>> = vec![None; asking.len()];
        for (volume, holder) in free.iter().zip(&holder) {
            if let Some(holder) = holder {
                given[*holder] = Some(volume.name.clone());
            }
        }
        let plan = |(ask, given): (Asking<'_>, Option<Text>)| {
            let made = || ClaimPlan::Provision(ask.node.name.clone());
            (ask.claim.key.clone(), given.map_or_else(made, ClaimPlan::Volume))
        };
        Some(asking.into_iter().zip(given).map(plan).collect())
    }
}

/// Finds a volume for a claim, moving others to another one if need be. Nobody who has one goes without.
fn augment(at: usize, asking: &[Asking<'_>], holder: &mut [Option<usize>], seen: &mut [bool]) -> bool {
    for &volume in &asking[at].suitable {
        if std::mem::replace(&mut seen[volume], true) {
            continue;
        }
        if holder[volume].is_none_or(|other| augment(other, asking, holder, seen)) {
            holder[volume] = Some(at);
            return true;
        }
    }
    false
}
