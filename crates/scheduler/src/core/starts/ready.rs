//! Starts that are about to become bindings. They wait here while others are being sent, and are looked at once more
//! when their turn comes: a gang of which a member or a node went meanwhile must not start without it, nor one whose
//! room others have taken or closed.
//!
//! Gangs are sent in the order in which they were decided, so that a scheduler that ends in the middle of it leaves few of
//! them in part. A gang that waits for its last look keeps its turn for a moment. Gangs that are broken go first: until the
//! last of them is sent or given up, no other gang starts. Pods that start nothing that could be incomplete wait for no
//! look.

use super::super::{Core, UnitKey};
use super::Abort;
use std::collections::{BTreeMap, BTreeSet};
use tutti_engine::{Placement, Seat};
use tutti_model::{ObjectKey, Time};

/// A start that waits for its turn.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// What was read once more for it; nothing if it makes nothing complete that could be in part.
    confirmed: BTreeSet<UnitKey>,
}

impl Ready {
    pub(super) fn confirmed(confirmed: BTreeSet<UnitKey>) -> Self {
        Self { confirmed }
    }

    pub(super) fn into_confirmed(self) -> BTreeSet<UnitKey> {
        self.confirmed
    }

    /// True if a gang or a tree begins or becomes complete by it.
    pub(super) fn starts_a_gang(&self) -> bool {
        !self.confirmed.is_empty()
    }
}

impl super::Starts {
    /// Whose turn it is.
    fn next(&self, now: Time) -> Option<UnitKey> {
        let other = self.ready_others.first();
        let gang = self.next_gang(now);
        let first = match (gang, other) {
            (Some(gang), Some(other)) => Some(gang.min(other)),
            (gang, other) => gang.or(other),
        };
        first.map(|(_, unit)| unit.clone())
    }

    fn next_gang(&self, now: Time) -> Option<&(u64, UnitKey)> {
        if self.broken.is_empty() {
            return self.ready_gangs.first().filter(|(turn, _)| self.blocker(*turn, now).is_none());
        }
        self.ready_gangs.iter().find(|(_, unit)| self.broken.contains(unit))
    }

    /// Until when the first gang keeps its turn that was decided before this one and waits for its last look.
    fn blocker(&self, turn: u64, now: Time) -> Option<Time> {
        let earlier = self.confirming.iter().take_while(|(other, _)| *other < turn);
        let mut kept = earlier.filter_map(|(_, unit)| self.unsent(unit)?.turn_until);
        kept.find(|until| now < *until)
    }

    /// When a gang that is ready need not wait for another one any longer. For a broken one it waits until that is sent or
    /// given up, which is no matter of time.
    pub(in super::super) fn turn_comes_at(&self, now: Time) -> Option<Time> {
        let (turn, _) = self.ready_gangs.first().filter(|_| self.broken.is_empty())?;
        self.blocker(*turn, now)
    }

    /// True if a start is ready.
    pub(in super::super) fn has_ready(&self) -> bool {
        !self.ready_gangs.is_empty() || !self.ready_others.is_empty()
    }
}

impl Core {
    /// Sends bindings, those of starts that wait when there is room for more. False if something was taken back,
    /// so that it has to be decided again.
    pub(in super::super) fn pump_binds(&mut self, now: Time) -> bool {
        let mut all_good = true;
        loop {
            while let Some(effect) = self.starts.bindings.next(now) {
                self.effects.push(effect);
            }
            if !self.starts.bindings.has_room(now) {
                return all_good;
            }
            let Some(unit) = self.starts.next(now) else {
                return all_good;
            };
            let Some(unsent) = self.starts.take(&unit) else {
                return all_good;
            };
            all_good &= self.send(unsent.placement, now);
        }
    }

    /// Begins to bind. A gang starts with at least its minimum or not at all: members that were to go, and members
    /// that were bound when it was decided, may be gone. Others go without those that are.
    fn send(&mut self, mut placement: Placement, now: Time) -> bool {
        let (wanted, gone): (Vec<Seat>, Vec<Seat>) =
            placement.seats.into_iter().partition(|seat| self.is_still_good(seat));
        self.return_seats(&gone, Abort::Changed, now);
        let (fit, short) = self.split_short(wanted);
        self.return_seats(&short, Abort::Changed, now);
        if !fit.is_empty() {
            placement.seats = fit;
            let pods = &self.pods;
            let group_of = |pod: &ObjectKey| pods.get(pod).and_then(|known| known.group.clone());
            self.starts.sent(&placement.unit, &placement.seats, group_of);
            self.started(&placement, now);
        }
        gone.is_empty() && short.is_empty()
    }

    /// Tells seats of groups that would have what they need from those of groups that would be below their minimum, or
    /// whose composites would. No group starts whose minimum is not known, or that of a composite above it.
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
            let under_way = self.starts.binding_of(&group);
            *coming.entry(group).or_default() += under_way;
        }
        let short = self.short_groups(more.keys(), &coming);
        more.retain(|group, _| !short.contains(group));
        seats.into_iter().partition(|seat| group_of(seat).is_none_or(|group| more.contains_key(&group)))
    }

    /// True if a group would be below its minimum with so many more members, or its minimum is not known.
    fn is_short(&self, group: &ObjectKey, more: usize) -> bool {
        let Some((counted, minimum)) = self.groups.progress(group) else {
            return self.groups.group(group).is_none_or(|known| known.asks.is_none());
        };
        counted as usize + more + self.starts.binding_of(group) < minimum as usize
    }

    /// True if the pod may still be bound there, by all that is known now.
    fn is_still_good(&self, seat: &Seat) -> bool {
        self.is_still_wanted(seat) && self.engine.may_keep_seat(&seat.pod)
    }

    /// True if the pod is still there and waits, and the node is still there.
    pub(super) fn is_still_wanted(&self, seat: &Seat) -> bool {
        let waits = self.pods.get(&seat.pod).is_some_and(|known| {
            known.uid == seat.uid && known.unbound().is_some_and(|pod| !pod.terminating)
        });
        waits && self.nodes.contains_key(&seat.node)
    }
}
