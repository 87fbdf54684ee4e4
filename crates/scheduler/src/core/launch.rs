//! Placements that are about to become bindings. They wait here while others are being sent, and are looked at once more
//! when their turn comes: a gang of which a member or a node went meanwhile must not start without it, nor one whose
//! room others have taken or closed.

use super::{Core, UnitKey};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tutti_engine::{Event, Placement, Seat};
use tutti_model::{ObjectKey, Time};

/// Placements whose turn has not come. Nothing is decided while there are too many, see [`super::STARTS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Launches(VecDeque<Placement>);

impl Launches {
    pub(crate) fn push(&mut self, placement: Placement) {
        self.0.push_back(placement);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many placements wait.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// True if a placement of this unit waits.
    pub(crate) fn contains(&self, unit: &UnitKey) -> bool {
        self.0.iter().any(|placement| placement.unit == *unit)
    }
}

impl Core {
    /// Sends bindings, those of placements that wait when there is room for more. False if something was taken back,
    /// so that it has to be decided again.
    pub(super) fn pump_binds(&mut self, now: Time) -> bool {
        let mut all_good = true;
        loop {
            while let Some(effect) = self.binds.next(now) {
                self.effects.push(effect);
            }
            if !self.binds.has_room(now) {
                return all_good;
            }
            let Some(placement) = self.launches.0.pop_front() else {
                return all_good;
            };
            all_good &= self.start(placement, now);
        }
    }

    /// Begins to bind. A gang starts with at least its minimum or not at all: members that were to go, and members
    /// that were bound when it was decided, may be gone. Others go without those that are.
    fn start(&mut self, mut placement: Placement, now: Time) -> bool {
        let (wanted, gone): (Vec<Seat>, Vec<Seat>) =
            placement.seats.into_iter().partition(|seat| self.is_still_good(seat));
        self.withdraw(&gone, now);
        let (fit, short) = self.split_short(wanted);
        self.withdraw(&short, now);
        if !fit.is_empty() {
            placement.seats = fit;
            self.started(&placement, now);
        }
        gone.is_empty() && short.is_empty()
    }

    /// Tells seats of groups that would have what they need from those of groups that would be below their minimum, or
    /// whose composites would. Nobody starts whose minimum is not known, or that of a composite above it.
    fn split_short(&self, seats: Vec<Seat>) -> (Vec<Seat>, Vec<Seat>) {
        let group_of = |seat: &Seat| self.pods.get(&seat.pod).and_then(|known| known.group.clone());
        let mut more: BTreeMap<ObjectKey, usize> = BTreeMap::new();
        for group in seats.iter().filter_map(group_of) {
            *more.entry(group).or_default() += 1;
        }
        more.retain(|group, count| !self.is_short(group, *count) && self.knows_tree_of(group));
        // Others of the same trees may be on their way already.
        let in_trees = more.keys().filter(|group| self.is_in_tree(group));
        let beside: BTreeSet<ObjectKey> = in_trees.flat_map(|group| self.groups_beside(group)).collect();
        let mut coming = more.clone();
        for group in beside {
            let under_way = self.under_way_of(&group).count();
            *coming.entry(group).or_default() += under_way;
        }
        more.retain(|group, _| self.short_composite(group, &coming).is_none());
        seats.into_iter().partition(|seat| group_of(seat).is_none_or(|group| more.contains_key(&group)))
    }

    /// True if a group would be below its minimum with so many more members, or nobody knows what that is.
    fn is_short(&self, group: &ObjectKey, more: usize) -> bool {
        let Some((counted, minimum)) = self.gangs.progress(group) else {
            return self.groups.get(group).is_none_or(|known| known.asks.is_none());
        };
        let enough = (minimum as usize).saturating_sub(counted as usize + more);
        enough > 0 && self.under_way_of(group).take(enough).count() < enough
    }

    /// Takes back what was decided.
    pub(super) fn withdraw(&mut self, seats: &[Seat], now: Time) {
        for seat in seats {
            let (pod, uid) = (seat.pod.clone(), seat.uid.clone());
            self.tell(Event::Withdrawn { pod, uid }, now);
        }
    }

    /// True if the pod may still be bound there, by all that is known now.
    fn is_still_good(&self, seat: &Seat) -> bool {
        self.is_still_wanted(seat) && self.engine.may_keep_seat(&seat.pod)
    }

    /// True if the pod is still there and waits, and the node is still there.
    pub(super) fn is_still_wanted(&self, seat: &Seat) -> bool {
        let waits = self.pods.get(&seat.pod).is_some_and(|known| {
            known.uid == seat.uid && known.unbound.as_ref().is_some_and(|pod| !pod.terminating)
        });
        waits && self.nodes.contains_key(&seat.node)
    }
}
