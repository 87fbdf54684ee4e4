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
//! A gang waits as one: no member is bound before all claims of all its members are. A volume that was kept for a claim is
//! not given back: the cluster's controllers bind it, and the next try finds it so.

use super::super::Core;
use super::super::message::{Effect, Fact, StorageKey, WriteOutcome};
use super::super::writes::queue::WriteQueue;
use super::{Abort, Confirming, Stage};
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

/// What a start waits for whose volumes are not there yet.
#[derive(Debug)]
pub(super) struct Preparing {
    deadline: Time,
    /// Identities of the claims.
    uids: BTreeMap<ObjectKey, Text>,
    /// Claims of which it was seen that what we wrote was written.
    begun: BTreeSet<ObjectKey>,
}

/// Units that wait for volumes, by what they wait for, and what is written for their sake.
#[derive(Debug)]
pub(in super::super) struct Preparations {
    by_claim: BTreeMap<ObjectKey, BTreeSet<UnitKey>>,
    by_volume: BTreeMap<Text, BTreeSet<UnitKey>>,
    by_node: BTreeMap<Text, BTreeSet<UnitKey>>,
    deadlines: BTreeSet<(Time, UnitKey)>,
    /// Units to be looked at again.
    changed: BTreeSet<UnitKey>,
    writes: WriteQueue<StorageKey, Write>,
}

/// How a unit that waits for volumes stands.
enum Progress {
    Waiting,
    Ready,
    /// A pod or node that was decided on is gone.
    Stale,
    Failed(String),
}

impl Default for Preparations {
    fn default() -> Self {
        Self {
            by_claim: BTreeMap::new(),
            by_volume: BTreeMap::new(),
            by_node: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            changed: BTreeSet::new(),
            writes: WriteQueue::new(WRITES_MAX),
        }
    }
}

impl Preparations {
    /// True if no write waits or is under way.
    pub(in super::super) fn has_no_writes(&self) -> bool {
        self.writes.is_empty()
    }

    /// True if a unit waits for volumes.
    pub(super) fn contains(&self, unit: &UnitKey) -> bool {
        self.deadlines.iter().any(|(_, waiting)| waiting == unit)
    }

    /// When the first unit has waited for too long.
    pub(in super::super) fn wake_at(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// When the next write is due, if it may go out.
    pub(in super::super) fn due(&self, window: usize) -> Option<Time> {
        self.writes.due().filter(|_| self.writes.under_way() < window)
    }

    pub(in super::super) fn look_at_claim(&mut self, claim: &ObjectKey) {
        self.changed.extend(self.by_claim.get(claim).into_iter().flatten().cloned());
    }

    pub(in super::super) fn look_at_volume(&mut self, volume: &Text) {
        self.changed.extend(self.by_volume.get(volume).into_iter().flatten().cloned());
    }

    pub(in super::super) fn look_at_node(&mut self, node: &Text) {
        self.changed.extend(self.by_node.get(node).into_iter().flatten().cloned());
    }

    pub(super) fn insert(&mut self, placement: &Placement, preparing: &Preparing) {
        let unit = &placement.unit;
        for (claim, plan) in &placement.claims {
            self.by_claim.entry(claim.clone()).or_default().insert(unit.clone());
            if let ClaimPlan::Volume(volume) = plan {
                self.by_volume.entry(volume.clone()).or_default().insert(unit.clone());
            }
        }
        for seat in &placement.seats {
            self.by_node.entry(seat.node.clone()).or_default().insert(unit.clone());
        }
        self.deadlines.insert((preparing.deadline, unit.clone()));
        self.changed.insert(unit.clone());
    }

    pub(super) fn remove(&mut self, placement: &Placement, preparing: &Preparing) {
        let unit = &placement.unit;
        for (claim, plan) in &placement.claims {
            leave(&mut self.by_claim, claim, unit);
            if let ClaimPlan::Volume(volume) = plan {
                leave(&mut self.by_volume, volume, unit);
            }
        }
        for seat in &placement.seats {
            leave(&mut self.by_node, &seat.node, unit);
        }
        self.deadlines.remove(&(preparing.deadline, unit.clone()));
    }
}

/// Takes a unit out of those that wait for something.
fn leave<K: Ord>(waiting: &mut BTreeMap<K, BTreeSet<UnitKey>>, what: &K, unit: &UnitKey) {
    if let Some(units) = waiting.get_mut(what) {
        units.remove(unit);
        if units.is_empty() {
            waiting.remove(what);
        }
    }
}

impl Core {
    /// What members have to wait for before they are confirmed, if they have claims without a volume, or wait already.
    pub(super) fn prepare(
        &mut self,
        placement: &Placement,
        new: &[(ObjectKey, ClaimPlan)],
        before: Option<&Stage>,
        now: Time,
    ) -> Option<Preparing> {
        let waited = match before {
            Some(Stage::Preparing(preparing)) => Some(preparing),
            _ => None,
        };
        if new.is_empty() && waited.is_none() {
            return None;
        }
        let uid = |(claim, _): &(ObjectKey, ClaimPlan)| {
            Some((claim.clone(), self.storage.claims.get(claim)?.uid.clone()))
        };
        let mut uids: BTreeMap<ObjectKey, Text> = new.iter().filter_map(uid).collect();
        let (deadline, begun) = match waited {
            Some(waited) => {
                uids.extend(waited.uids.clone());
                (waited.deadline, waited.begun.clone())
            }
            None => (now + self.config.volume_bind_timeout, BTreeSet::new()),
        };
        self.report(Fact::WaitsForVolumes { unit: placement.unit.clone(), claims: new.len() });
        Some(Preparing { deadline, uids, begun })
    }

    /// Asks the cluster's controllers for what is planned, unless they were asked already.
    pub(super) fn write_plan(&mut self, claim: &ObjectKey, plan: &ClaimPlan, now: Time) {
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
        if let Some(total) = self.starts.preparations.writes.put(key, write, now) {
            self.report(Fact::WritesDropped { what: "claims and volumes", total });
        }
    }

    /// Looks at every unit about which something has changed or that has waited for too long.
    pub(in super::super) fn review_volumes(&mut self, now: Time) {
        if !self.synced || self.stopping {
            return;
        }
        let late = self.starts.preparations.deadlines.iter().take_while(|(deadline, _)| *deadline <= now);
        let late: Vec<UnitKey> = late.map(|(_, unit)| unit.clone()).collect();
        self.starts.preparations.changed.extend(late);
        for unit in std::mem::take(&mut self.starts.preparations.changed) {
            match self.progress_of(&unit, now) {
                Progress::Waiting => {}
                Progress::Ready => {
                    if let Some(unsent) = self.starts.take(&unit) {
                        self.confirm(unsent, Confirming::default(), now);
                    }
                }
                Progress::Stale => {
                    self.abort(&unit, Abort::Changed, now);
                }
                Progress::Failed(why) => self.give_up_volumes(&unit, &why.into(), now),
            }
        }
    }

    /// The unit and what it waits for, if it waits for volumes.
    fn preparing(&self, unit: &UnitKey) -> Option<(&Placement, &Preparing)> {
        let unsent = self.starts.unsent(unit)?;
        match &unsent.stage {
            Stage::Preparing(preparing) => Some((&unsent.placement, preparing)),
            Stage::Confirming(_) | Stage::Ready(_) => None,
        }
    }

    fn progress_of(&mut self, unit: &UnitKey, now: Time) -> Progress {
        let Some((placement, preparing)) = self.preparing(unit) else { return Progress::Waiting };
        if !placement.seats.iter().all(|seat| self.is_still_wanted(seat)) {
            return Progress::Stale;
        }
        let mut begun = Vec::new();
        let mut unbound = None;
        for (key, plan) in &placement.claims {
            match self.claim_progress(preparing, key, plan) {
                Err(why) => return Progress::Failed(why),
                Ok(ClaimProgress::Bound) => {}
                Ok(ClaimProgress::Begun) => {
                    begun.push(key.clone());
                    unbound.get_or_insert_with(|| key.clone());
                }
                Ok(ClaimProgress::Asked) => {
                    unbound.get_or_insert_with(|| key.clone());
                }
            }
        }
        let is_late = preparing.deadline <= now;
        if let Some(claim) = unbound {
            if is_late {
                let seconds = self.config.volume_bind_timeout.as_secs();
                let name = &claim.name;
                return Progress::Failed(format!("volume claim {name} was not bound within {seconds} s"));
            }
            if let Some(Stage::Preparing(preparing)) =
                self.starts.unsent_mut(unit).map(|unsent| &mut unsent.stage)
            {
                preparing.begun.extend(begun);
            }
            return Progress::Waiting;
        }
        for Seat { pod, node, .. } in &placement.seats {
            let name = &pod.name;
            match self.engine.volumes_for(pod, node) {
                VolumeState::Ready => {}
                VolumeState::OutOfReach => {
                    return Progress::Failed(format!("a volume of pod {name} cannot be reached from there"));
                }
                // The volume of a bound claim was not seen yet.
                VolumeState::Missing if is_late => {
                    return Progress::Failed(format!("a volume of pod {name} was not seen in time"));
                }
                VolumeState::Missing => return Progress::Waiting,
            }
        }
        Progress::Ready
    }

    /// How a claim stands, or why it will not be bound as planned.
    fn claim_progress(
        &self,
        preparing: &Preparing,
        key: &ObjectKey,
        plan: &ClaimPlan,
    ) -> Result<ClaimProgress, String> {
        let Some(claim) =
            self.storage.claims.get(key).filter(|claim| preparing.uids.get(key) == Some(&claim.uid))
        else {
            return Err(format!("volume claim {} is gone", key.name));
        };
        if claim.terminating || claim.lost {
            return Err(format!("volume claim {} is being deleted or has lost its volume", key.name));
        }
        if claim.bound {
            return Ok(ClaimProgress::Bound);
        }
        let was_begun = preparing.begun.contains(key);
        match plan {
            ClaimPlan::Provision(node) if claim.selected_node.as_ref() == Some(node) => {
                Ok(ClaimProgress::Begun)
            }
            ClaimPlan::Provision(_) if was_begun => {
                Err(format!("no volume could be made for volume claim {}", key.name))
            }
            ClaimPlan::Provision(_) => Ok(ClaimProgress::Asked),
            ClaimPlan::Volume(name) => {
                let Some((volume, _)) = self.storage.volumes.get(name) else {
                    return Err(format!("volume {name} is gone"));
                };
                match &volume.claim {
                    Some(_) if volume.is_kept_for(claim) => Ok(ClaimProgress::Begun),
                    Some(other) => Err(format!("volume {name} was given to volume claim {}", other.key)),
                    None if was_begun => {
                        Err(format!("volume {name} is not kept for volume claim {} any more", key.name))
                    }
                    None => Ok(ClaimProgress::Asked),
                }
            }
        }
    }

    /// The volumes of a unit cannot be had as planned: it is tried again after a pause, and told why.
    fn give_up_volumes(&mut self, unit: &UnitKey, why: &Text, now: Time) {
        if self.preparing(unit).is_none() {
            return;
        }
        self.counters.volume_failures += 1;
        for Seat { pod, node, .. } in self.abort(unit, Abort::Failed, now) {
            self.say_bind_failed(&pod, &node, why, now);
        }
    }

    /// Takes back what was asked for, unless others wait for it, too.
    pub(super) fn take_back_claims(&mut self, placement: &Placement, preparing: &Preparing, now: Time) {
        for (claim, plan) in &placement.claims {
            let is_bound = self.storage.claims.get(claim).is_none_or(|known| known.volume.is_some());
            let preparations = &mut self.starts.preparations;
            match plan {
                _ if preparations.by_claim.contains_key(claim) => {}
                ClaimPlan::Volume(name) => {
                    preparations.writes.cancel(&StorageKey::Volume(name.clone()));
                }
                ClaimPlan::Provision(_) if is_bound => {
                    preparations.writes.cancel(&StorageKey::Claim(claim.clone()));
                }
                ClaimPlan::Provision(_) => {
                    if let Some(uid) = preparing.uids.get(claim).cloned() {
                        let write = Write::Select { uid, node: None };
                        preparations.writes.put(StorageKey::Claim(claim.clone()), write, now);
                    }
                }
            }
        }
    }

    /// Lets writes to claims and volumes out.
    pub(in super::super) fn pump_volumes(&mut self, now: Time) {
        let window = self.write_window.limit(now);
        while let Some((key, write)) = self.starts.preparations.writes.next(window, now) {
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
                            self.starts.preparations.writes.done(&key);
                            self.starts.preparations.look_at_claim(&claim);
                        }
                    }
                }
                (_, Write::Select { .. } | Write::Keep { .. }) => {
                    self.starts.preparations.writes.done(&key);
                }
            }
        }
    }

    /// A write was answered. Gives why it was given up, if it was.
    pub(in super::super) fn storage_answered(
        &mut self,
        key: &StorageKey,
        outcome: WriteOutcome,
        now: Time,
    ) -> Option<Text> {
        super::super::writes::answers::ended(
            &mut self.starts.preparations.writes,
            key,
            outcome,
            &mut self.write_window,
            now,
        )
    }

    /// A write was given up: the units that wait for it need not wait any longer.
    pub(in super::super) fn storage_write_given_up(&mut self, key: &StorageKey, why: &Text, now: Time) {
        let units = match key {
            StorageKey::Claim(claim) => self.starts.preparations.by_claim.get(claim),
            StorageKey::Volume(name) => self.starts.preparations.by_volume.get(name),
        };
        for unit in units.cloned().unwrap_or_default() {
            self.give_up_volumes(&unit, why, now);
        }
    }
}

/// How a claim stands on its way to a volume.
enum ClaimProgress {
    /// It was asked for.
    Asked,
    /// The request was seen on the object.
    Begun,
    /// It has its volume.
    Bound,
}
