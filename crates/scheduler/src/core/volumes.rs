//! Volumes of pods that got a node: claims that wait for their pod are given a volume, or one is asked for, before any
//! of the pods is bound.
//!
//! ```text
//! placed -> claims without a volume? -- no --------------------------------> confirmed and bound
//!                  | yes                                        ^
//!                  v                                            | all claims bound, all volumes in reach
//!   write: selected node on the claim,  -> wait for the cluster's controllers
//!          claim on the volume             | refused, given up by the provisioner, out of reach, too late
//!                                          v
//!                       take the selected node back, free the seats, say so, try again later
//! ```
//!
//! A gang waits as one: nobody is bound before all claims of all its members are. A volume that was kept for a claim is
//! not given back: the cluster's controllers bind it, and the next try finds it so.

use super::Core;
use super::confirm::join;
use super::lane::Lane;
use super::message::{Effect, Fact, StorageKey};
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::{ClaimPlan, Placement, Seat, UnitKey, VolumeState};
use tutti_model::{ObjectKey, Text, Time};

/// Longest queue of writes to claims and volumes. What does not fit is tried again when its unit is.
const WRITES_MAX: usize = 100_000;

/// A write to a claim or a volume.
#[derive(Debug, Clone)]
enum Write {
    /// Ask for a volume for this node, or no longer.
    Select { uid: Text, node: Option<Text> },
    /// Keep a volume for this claim.
    Keep { claim: ObjectKey, uid: Text },
}

/// A unit that waits for volumes.
#[derive(Debug)]
struct Wait {
    placement: Placement,
    deadline: Time,
    /// Identities of the claims.
    uids: BTreeMap<ObjectKey, Text>,
    /// Claims of which it was seen that what we wrote was written.
    begun: BTreeSet<ObjectKey>,
}

/// All units that wait for volumes.
#[derive(Debug)]
pub(crate) struct VolumeWaits {
    by_unit: BTreeMap<UnitKey, Wait>,
    by_claim: BTreeMap<ObjectKey, BTreeSet<UnitKey>>,
    by_volume: BTreeMap<Text, BTreeSet<UnitKey>>,
    by_pod: BTreeMap<ObjectKey, UnitKey>,
    /// Units to be looked at again.
    changed: BTreeSet<UnitKey>,
    writes: Lane<StorageKey, Write>,
}

/// How a unit that waits for volumes stands.
enum Stand {
    Waiting,
    Ready,
    /// Somebody or something that was decided on is gone.
    Stale,
    Failed(String),
}

impl Default for VolumeWaits {
    fn default() -> Self {
        Self {
            by_unit: BTreeMap::new(),
            by_claim: BTreeMap::new(),
            by_volume: BTreeMap::new(),
            by_pod: BTreeMap::new(),
            changed: BTreeSet::new(),
            writes: Lane::new(WRITES_MAX),
        }
    }
}

impl VolumeWaits {
    pub(crate) fn contains(&self, unit: &UnitKey) -> bool {
        self.by_unit.contains_key(unit)
    }

    /// True if no write waits or is under way.
    pub(crate) fn has_no_writes(&self) -> bool {
        self.writes.is_empty()
    }

    /// When the first unit has waited for too long.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.by_unit.values().map(|wait| wait.deadline).min()
    }

    /// When the next write is due, if it may go out.
    pub(crate) fn due(&self, window: usize) -> Option<Time> {
        self.writes.due().filter(|_| self.writes.under_way() < window)
    }

    pub(crate) fn look_at_claim(&mut self, claim: &ObjectKey) {
        self.changed.extend(self.by_claim.get(claim).into_iter().flatten().cloned());
    }

    pub(crate) fn look_at_volume(&mut self, volume: &Text) {
        self.changed.extend(self.by_volume.get(volume).into_iter().flatten().cloned());
    }

    pub(crate) fn look_at_pod(&mut self, pod: &ObjectKey) {
        self.changed.extend(self.by_pod.get(pod).cloned());
    }

    pub(crate) fn look_at_node(&mut self, node: &Text) {
        let sits = |wait: &Wait| wait.placement.seats.iter().any(|seat| seat.node == *node);
        let units = self.by_unit.iter().filter(|(_, wait)| sits(wait));
        self.changed.extend(units.map(|(unit, _)| unit.clone()));
    }

    fn insert(&mut self, wait: Wait) {
        let unit = wait.placement.unit.clone();
        for (claim, plan) in &wait.placement.claims {
            self.by_claim.entry(claim.clone()).or_default().insert(unit.clone());
            if let ClaimPlan::Volume(volume) = plan {
                self.by_volume.entry(volume.clone()).or_default().insert(unit.clone());
            }
        }
        for seat in &wait.placement.seats {
            self.by_pod.insert(seat.pod.clone(), unit.clone());
        }
        self.changed.insert(unit.clone());
        self.by_unit.insert(unit, wait);
    }

    fn remove(&mut self, unit: &UnitKey) -> Option<Wait> {
        let wait = self.by_unit.remove(unit)?;
        for (claim, _) in &wait.placement.claims {
            if let Some(units) = self.by_claim.get_mut(claim) {
                units.remove(unit);
            }
        }
        self.by_claim.retain(|_, units| !units.is_empty());
        for units in self.by_volume.values_mut() {
            units.remove(unit);
        }
        self.by_volume.retain(|_, units| !units.is_empty());
        for seat in &wait.placement.seats {
            self.by_pod.remove(&seat.pod);
        }
        Some(wait)
    }
}

impl Core {
    /// Sends a placement on its way once all its claims are bound. Members that come later join those who wait.
    pub(super) fn prepare_volumes(&mut self, placement: Placement, now: Time) {
        let waiting = self.volume_waits.remove(&placement.unit);
        if waiting.is_none() && placement.claims.is_empty() {
            self.confirm_or_launch(placement);
            return;
        }
        let deadline = now + self.config.volume_bind_timeout;
        let uid = |(claim, _): &(ObjectKey, ClaimPlan)| {
            Some((claim.clone(), self.storage.claims.get(claim)?.uid.clone()))
        };
        let uids: BTreeMap<ObjectKey, Text> = placement.claims.iter().filter_map(uid).collect();
        self.report(Fact::WaitsForVolumes { unit: placement.unit.clone(), claims: placement.claims.len() });
        let plans = placement.claims.clone();
        let wait = match waiting {
            None => Wait { placement, deadline, uids, begun: BTreeSet::new() },
            Some(mut wait) => {
                wait.placement.claims.extend(placement.claims.iter().cloned());
                wait.placement.claims.sort_by(|(a, _), (b, _)| a.cmp(b));
                wait.placement.claims.dedup_by(|(a, _), (b, _)| a == b);
                wait.uids.extend(uids);
                join(&mut wait.placement, placement);
                wait
            }
        };
        self.volume_waits.insert(wait);
        for (claim, plan) in plans {
            self.write_plan(&claim, &plan, now);
        }
    }

    /// Asks the cluster's controllers for what is planned, unless they were asked already.
    fn write_plan(&mut self, claim: &ObjectKey, plan: &ClaimPlan, now: Time) {
        let Some(known) = self.storage.claims.get(claim) else { return };
        let uid = known.uid.clone();
        let (key, write) = match plan {
            ClaimPlan::Provision(node) if known.selected_node.as_ref() == Some(node) => return,
            ClaimPlan::Provision(node) => {
                (StorageKey::Claim(claim.clone()), Write::Select { uid, node: Some(node.clone()) })
            }
            ClaimPlan::Volume(name) => {
                let volume = self.storage.volumes.get(name);
                let kept = volume.and_then(|(volume, _)| volume.claim.as_ref());
                if kept.is_some_and(|kept| kept.key == *claim && kept.uid.as_ref() == Some(&uid)) {
                    return;
                }
                (StorageKey::Volume(name.clone()), Write::Keep { claim: claim.clone(), uid })
            }
        };
        if let Some(total) = self.volume_waits.writes.put(key, write, now) {
            self.report(Fact::WritesDropped { what: "claims and volumes", total });
        }
    }

    /// Looks at every unit about which something has changed or that has waited for too long.
    pub(super) fn review_volumes(&mut self, now: Time) {
        if !self.synced || self.stopping {
            return;
        }
        let late = self.volume_waits.by_unit.iter().filter(|(_, wait)| wait.deadline <= now);
        let late: Vec<UnitKey> = late.map(|(unit, _)| unit.clone()).collect();
        self.volume_waits.changed.extend(late);
        for unit in std::mem::take(&mut self.volume_waits.changed) {
            match self.stand(&unit, now) {
                Stand::Waiting => {}
                Stand::Ready => {
                    if let Some(wait) = self.volume_waits.remove(&unit) {
                        self.confirm_or_launch(wait.placement);
                    }
                }
                Stand::Stale => self.give_up_volumes(&unit, None, now),
                Stand::Failed(why) => self.give_up_volumes(&unit, Some(&why.into()), now),
            }
        }
    }

    fn stand(&mut self, unit: &UnitKey, now: Time) -> Stand {
        let Some(wait) = self.volume_waits.by_unit.get(unit) else { return Stand::Waiting };
        if !wait.placement.seats.iter().all(|seat| self.is_still_wanted(seat)) {
            return Stand::Stale;
        }
        let mut begun = Vec::new();
        let mut unbound = None;
        for (key, plan) in &wait.placement.claims {
            match self.claim_stand(wait, key, plan) {
                Err(why) => return Stand::Failed(why),
                Ok(ClaimStand::Bound) => {}
                Ok(ClaimStand::Begun) => {
                    begun.push(key.clone());
                    unbound.get_or_insert_with(|| key.clone());
                }
                Ok(ClaimStand::Asked) => {
                    unbound.get_or_insert_with(|| key.clone());
                }
            }
        }
        let is_late = wait.deadline <= now;
        if let Some(claim) = unbound {
            if is_late {
                let seconds = self.config.volume_bind_timeout.as_secs();
                return Stand::Failed(format!(
                    "volume claim {} was not bound within {seconds} s",
                    claim.name
                ));
            }
            if let Some(wait) = self.volume_waits.by_unit.get_mut(unit) {
                wait.begun.extend(begun);
            }
            return Stand::Waiting;
        }
        for Seat { pod, node, .. } in &wait.placement.seats {
            match self.engine.volumes_for(pod, node) {
                VolumeState::Ready => {}
                VolumeState::OutOfReach => {
                    return Stand::Failed(format!(
                        "a volume of pod {} cannot be reached from there",
                        pod.name
                    ));
                }
                // The volume of a bound claim was not seen yet.
                VolumeState::Missing if is_late => {
                    return Stand::Failed(format!("a volume of pod {} was not seen in time", pod.name));
                }
                VolumeState::Missing => return Stand::Waiting,
            }
        }
        Stand::Ready
    }

    /// How a claim stands, or why it will not be bound as planned.
    fn claim_stand(&self, wait: &Wait, key: &ObjectKey, plan: &ClaimPlan) -> Result<ClaimStand, String> {
        let Some(claim) = self.storage.claims.get(key).filter(|claim| wait.uids.get(key) == Some(&claim.uid))
        else {
            return Err(format!("volume claim {} is gone", key.name));
        };
        if claim.terminating || claim.lost {
            return Err(format!("volume claim {} is being deleted or has lost its volume", key.name));
        }
        if claim.bound {
            return Ok(ClaimStand::Bound);
        }
        let was_begun = wait.begun.contains(key);
        match plan {
            ClaimPlan::Provision(node) if claim.selected_node.as_ref() == Some(node) => Ok(ClaimStand::Begun),
            ClaimPlan::Provision(_) if was_begun => {
                Err(format!("no volume could be made for volume claim {}", key.name))
            }
            ClaimPlan::Provision(_) => Ok(ClaimStand::Asked),
            ClaimPlan::Volume(name) => {
                let Some((volume, _)) = self.storage.volumes.get(name) else {
                    return Err(format!("volume {name} is gone"));
                };
                match &volume.claim {
                    Some(_) if volume.is_kept_for(claim) => Ok(ClaimStand::Begun),
                    Some(other) => Err(format!("volume {name} was given to volume claim {}", other.key)),
                    None if was_begun => {
                        Err(format!("volume {name} is not kept for volume claim {} any more", key.name))
                    }
                    None => Ok(ClaimStand::Asked),
                }
            }
        }
    }

    /// Frees the seats of a unit and takes back what was asked for. Without a reason somebody or something is gone, and
    /// what is left is decided on anew; with one it is tried again after a pause.
    fn give_up_volumes(&mut self, unit: &UnitKey, why: Option<&Text>, now: Time) {
        let Some(wait) = self.volume_waits.remove(unit) else { return };
        for (claim, plan) in &wait.placement.claims {
            let is_bound = self.storage.claims.get(claim).is_none_or(|known| known.volume.is_some());
            let others_wait = self.volume_waits.by_claim.contains_key(claim);
            match plan {
                ClaimPlan::Volume(_) if others_wait => {}
                ClaimPlan::Volume(name) => {
                    self.volume_waits.writes.cancel(&StorageKey::Volume(name.clone()));
                }
                ClaimPlan::Provision(_) if others_wait => {}
                ClaimPlan::Provision(_) if is_bound => {
                    self.volume_waits.writes.cancel(&StorageKey::Claim(claim.clone()));
                }
                ClaimPlan::Provision(_) => {
                    if let Some(uid) = wait.uids.get(claim).cloned() {
                        let write = Write::Select { uid, node: None };
                        self.volume_waits.writes.put(StorageKey::Claim(claim.clone()), write, now);
                    }
                }
            }
        }
        match why {
            None => self.withdraw(&wait.placement.seats, now),
            Some(why) => {
                self.counters.volume_failures += 1;
                for Seat { pod, uid, node } in &wait.placement.seats {
                    self.bind_failed(pod, uid, node, why, now);
                }
            }
        }
    }

    /// Lets writes to claims and volumes out.
    pub(super) fn pump_volumes(&mut self, now: Time) {
        let window = self.write_window.limit(now);
        while let Some((key, write)) = self.volume_waits.writes.next(window, now) {
            match (&key, write) {
                (StorageKey::Claim(claim), Write::Select { uid, node }) => {
                    self.effects.push(Effect::SelectNode { claim: claim.clone(), uid, node });
                }
                (StorageKey::Volume(name), Write::Keep { claim, uid }) => {
                    // At the version that was seen last: it may have changed since the decision.
                    let free = self
                        .storage
                        .volumes
                        .get(name)
                        .filter(|(volume, _)| volume.claim.as_ref().is_none_or(|kept| kept.key == claim));
                    match free.map(|(_, version)| version.clone()) {
                        Some(version) => {
                            let volume = name.clone();
                            self.effects.push(Effect::KeepVolume { volume, version, claim, uid });
                        }
                        None => {
                            self.volume_waits.writes.done(&key);
                            self.volume_waits.look_at_claim(&claim);
                        }
                    }
                }
                (_, Write::Select { .. } | Write::Keep { .. }) => {
                    self.volume_waits.writes.done(&key);
                }
            }
        }
    }

    /// A write was answered. Gives why it was given up, if it was.
    pub(super) fn storage_answered(
        &mut self,
        key: &StorageKey,
        outcome: super::message::WriteOutcome,
        now: Time,
    ) -> Option<Text> {
        super::answers::ended(&mut self.volume_waits.writes, key, outcome, &mut self.write_window, now)
    }

    /// A write was given up: whoever waits for it need not wait any longer.
    pub(super) fn storage_write_given_up(&mut self, key: &StorageKey, why: &Text, now: Time) {
        let units = match key {
            StorageKey::Claim(claim) => self.volume_waits.by_claim.get(claim),
            StorageKey::Volume(name) => self.volume_waits.by_volume.get(name),
        };
        for unit in units.cloned().unwrap_or_default() {
            self.give_up_volumes(&unit, Some(why), now);
        }
    }
}

/// How a claim stands on its way to a volume.
enum ClaimStand {
    /// It was asked for.
    Asked,
    /// The request was seen on the object.
    Begun,
    /// It has its volume.
    Bound,
}
