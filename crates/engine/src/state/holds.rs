//! Holds: room that is kept for a unit that does not sit there yet.
//!
//! A hold takes its room in the node table like a pod does, so that nobody has to think of it. When a unit is solved
//! for, holds that do not bind it – its own, and those of lower priority – are lifted for that moment. A nominated pod
//! is a hold by another name: it lasts while the pod waits.
//!
//! An **incomplete gang** (some members sit, but fewer than its minimum) holds every seat that it can still use, so that
//! a newcomer does not take the room that would complete it. A seat that a member has *vacated* – it failed, was deleted,
//! or its binding did not happen – is held for a while, because its replacement is seen a moment later. And when the gang
//! was tried and not all of it has room, the seats that are *usable* are held until the rest is found. Holds of equals
//! could block each other forever, each holding half of what the other needs. So an incomplete gang may use what a
//! younger one of its priority holds.

use super::State;
use super::nodes::NodeId;
use super::pods::PodRow;
use super::shape::{Load, ResourceId, ShapeId};
use crate::decision::UnitKey;
use crate::event::{HeldSeat, Hold, HoldReason};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tutti_model::{ObjectKey, Text, Time};

/// Units that may hold seats at a time. A hold beyond that is not kept, which costs order but never room.
const HOLDS_MAX: usize = 100_000;
/// How long a vacated seat is held for the pod that replaces the member. Controllers make it within seconds.
const VACATED_SECONDS: i64 = 60;

/// What a hold is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HoldKey {
    /// A caller of the engine asked for it.
    Told(UnitKey),
    /// The nomination of a pod.
    Nominated(ObjectKey),
    /// Seats that members of an incomplete gang have left.
    Vacated(UnitKey),
    /// Seats that an incomplete gang could use.
    Usable(UnitKey),
    /// Seats that a gang will have once enough of them are free. The last in order, see [`Holds::planned`].
    Planned(UnitKey),
}

/// A gang that holds seats; smaller ones come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    /// It is not incomplete, but has waited for very long.
    pub(crate) starves: bool,
    pub(crate) created: Time,
    pub(crate) unit: UnitKey,
}

/// A node, what one pod takes of it, and how many pods.
pub(crate) type HeldRoom = (NodeId, Vec<(ResourceId, i64)>, u32);

/// One hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) unit: UnitKey,
    pub(crate) priority: i32,
    pub(crate) expires: Option<Time>,
    /// Set if the engine made this hold for a gang.
    pub(crate) holder: Option<Holder>,
    pub(crate) seats: Vec<HeldRoom>,
}

/// All holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    held: BTreeMap<HoldKey, Held>,
    /// How many seats are held on a node.
    on_node: FxHashMap<NodeId, u32>,
}

impl Holds {
    /// Holds that do not bind a unit: its own, those of lower priority, and, for an incomplete gang, those of gangs that
    /// come after it.
    pub(super) fn not_binding(&self, unit: &UnitKey, priority: i32, holder: Option<&Holder>) -> Vec<HoldKey> {
        let yields = |(_, held): &(&HoldKey, &Held)| {
            let comes_later = || match (&held.holder, holder) {
                (Some(other), Some(holder)) => held.priority == priority && other > holder,
                _ => false,
            };
            held.unit == *unit || held.priority < priority || comes_later()
        };
        self.held.iter().filter(yields).map(|(key, _)| key.clone()).collect()
    }

    /// A hold.
    pub(super) fn get(&self, key: &HoldKey) -> Option<&Held> {
        self.held.get(key)
    }

    /// Every hold, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HoldKey, &Held)> {
        self.held.iter()
    }

    /// True if nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The unit that has a plan, and its hold. There is at most one.
    pub(crate) fn planned(&self) -> Option<(&UnitKey, &Held)> {
        match self.held.last_key_value() {
            Some((HoldKey::Planned(unit), held)) => Some((unit, held)),
            _ => None,
        }
    }

    /// True if this unit has a plan.
    pub(crate) fn is_planned(&self, unit: &UnitKey) -> bool {
        self.planned().is_some_and(|(planned, _)| planned == unit)
    }

    /// What is held of a node in all.
    pub(crate) fn held_on(&self, node: NodeId, resource: ResourceId) -> i64 {
        if !self.on_node.contains_key(&node) {
            return 0;
        }
        let seats = self.held.values().flat_map(|held| &held.seats).filter(|(on, ..)| *on == node);
        seats
            .flat_map(|(_, requests, count)| {
                let of_it = requests.iter().filter(|(of, _)| *of == resource);
                of_it.map(|(_, amount)| amount.saturating_mul(i64::from(*count)))
            })
            .fold(0, i64::saturating_add)
    }

    /// When the next hold ends.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.held.values().filter_map(|held| held.expires).min()
    }

    fn are_kept_for_incomplete(&self, unit: &UnitKey) -> bool {
        !self.held.is_empty()
            && (self.held.contains_key(&HoldKey::Usable(unit.clone()))
                || self.held.contains_key(&HoldKey::Vacated(unit.clone())))
    }
}

impl State {
    /// Takes in a hold for a unit, or its end.
    pub(crate) fn set_hold(&mut self, hold: &Hold, now: Time) {
        let unit = hold.unit.clone();
        let holder = || self.holder(&hold.unit).map(|(_, holder)| holder);
        let (key, holder) = match hold.reason {
            HoldReason::Told => (HoldKey::Told(unit), None),
            HoldReason::Vacated => (HoldKey::Vacated(unit), holder()),
            HoldReason::Usable => (HoldKey::Usable(unit), holder()),
            HoldReason::Planned => (HoldKey::Planned(unit), Some(self.starving_holder(&hold.unit))),
            // It follows from the pod.
            HoldReason::Nominated => return,
        };
        let is_kept = !hold.seats.is_empty() && hold.expires.is_none_or(|expires| expires > now);
        let others_plan = || self.holds.planned().is_some_and(|(planned, _)| *planned != hold.unit);
        if hold.reason == HoldReason::Planned && (!is_kept || others_plan()) {
            return;
        }
        let (unit, priority, expires) = (hold.unit.clone(), hold.priority, hold.expires);
        let held = is_kept.then(|| {
            let seats = hold.seats.iter().map(|seat| self.held_room(seat)).collect();
            Held { unit, priority, expires, holder, seats }
        });
        self.replace_hold(key, held);
        self.note_unit(&hold.unit);
        if hold.reason == HoldReason::Told {
            self.note_holders_beside(hold);
        }
    }

    /// Incomplete gangs that hold seats on the nodes of a hold may not have room for them any more, and let go of them.
    fn note_holders_beside(&mut self, hold: &Hold) {
        let nodes: Vec<NodeId> = hold.seats.iter().filter_map(|seat| self.nodes.find(&seat.node)).collect();
        let beside = self.holds.iter().filter(|(key, held)| {
            matches!(key, HoldKey::Usable(unit) if *unit != hold.unit)
                && held.seats.iter().any(|(node, ..)| nodes.contains(node))
        });
        let units: Vec<UnitKey> = beside.map(|(_, held)| held.unit.clone()).collect();
        for unit in units {
            self.note_unit(&unit);
        }
    }

    fn held_room(&mut self, seat: &HeldSeat) -> HeldRoom {
        let asked = seat.requests.iter().filter(|&(_, amount)| amount > 0);
        let requests = asked.map(|(name, amount)| (self.resources.id(name), amount)).collect();
        (self.nodes.id(&seat.node), requests, seat.count)
    }

    /// Every hold, as it is told.
    pub(crate) fn told_holds(&self) -> Vec<Hold> {
        let seat = |(node, requests, count): &HeldRoom| HeldSeat {
            node: self.nodes.name(*node).clone(),
            requests: requests
                .iter()
                .map(|&(id, amount)| (self.resources.name(id).clone(), amount))
                .collect(),
            count: *count,
        };
        let hold = |(key, held): (&HoldKey, &Held)| Hold {
            unit: held.unit.clone(),
            priority: held.priority,
            expires: held.expires,
            seats: held.seats.iter().map(seat).collect(),
            reason: match key {
                HoldKey::Told(_) => HoldReason::Told,
                HoldKey::Nominated(_) => HoldReason::Nominated,
                HoldKey::Vacated(_) => HoldReason::Vacated,
                HoldKey::Usable(_) => HoldReason::Usable,
                HoldKey::Planned(_) => HoldReason::Planned,
            },
        };
        self.holds.held.iter().map(hold).collect()
    }

    /// Keeps the hold of a nominated pod in step with the pod.
    pub(super) fn follow_nomination(&mut self, key: &ObjectKey) {
        let promised =
            self.pods.pod(key).and_then(|row| Some((row.promised()?.clone(), row.shape, row.priority)));
        if promised.is_none() && self.holds.is_empty() {
            return;
        }
        let hold = HoldKey::Nominated(key.clone());
        if promised.is_none() && !self.holds.held.contains_key(&hold) {
            return;
        }
        let held = promised.map(|(node, shape, priority)| {
            let node = self.nodes.id(&node);
            let seats = vec![(node, self.shapes.get(shape).requests.clone(), 1)];
            let unit = self.pods.pod(key).map(|row| self.pods.unit_of(key, row));
            let unit = unit.unwrap_or_else(|| UnitKey::Pod(key.clone()));
            Held { unit, priority, expires: None, holder: None, seats }
        });
        self.replace_hold(hold, held);
    }

    /// Ends holds whose time is over.
    pub(crate) fn expire_holds(&mut self, now: Time) {
        let over = |held: &Held| held.expires.is_some_and(|expires| expires <= now);
        let expired: Vec<HoldKey> =
            self.holds.held.iter().filter(|(_, held)| over(held)).map(|(key, _)| key.clone()).collect();
        for key in expired {
            self.replace_hold(key, None);
        }
    }

    /// A unit that got its seats, or is not to be tried, needs no hold any more.
    pub(crate) fn end_holds_of(&mut self, unit: &UnitKey) {
        if self.holds.is_empty() {
            return;
        }
        for key in [HoldKey::Told, HoldKey::Vacated, HoldKey::Usable, HoldKey::Planned] {
            self.replace_hold(key(unit.clone()), None);
        }
    }

    /// A gang that is not incomplete, or not any more, holds no seats as one; and nothing is planned for a gang that has
    /// nothing to ask for.
    pub(super) fn end_needless_holds(&mut self, unit: &UnitKey) {
        if self.holds.is_planned(unit) && !self.asks_for_seats(&self.pods.members(unit)) {
            self.end_plan_of(unit);
        }
        if !self.holds.are_kept_for_incomplete(unit) {
            return;
        }
        if self.missing(unit).is_some() {
            // How old a unit is whose object was not seen depends on the members that it has now.
            let holder = self.holder(unit).map(|(_, holder)| holder);
            for key in [HoldKey::Vacated(unit.clone()), HoldKey::Usable(unit.clone())] {
                if let Some(held) = self.holds.held.get_mut(&key) {
                    held.holder.clone_from(&holder);
                }
            }
            return;
        }
        self.replace_hold(HoldKey::Vacated(unit.clone()), None);
        self.replace_hold(HoldKey::Usable(unit.clone()), None);
    }

    /// A member has left its seat on a node, by name because its row may be gone, without having done its work. If its
    /// gang is incomplete now the seat is held.
    pub(super) fn hold_vacated_seat(&mut self, key: &ObjectKey, row: &PodRow, node: Option<Text>, now: Time) {
        let (Some(node), unit) = (node, self.pods.unit_of(key, row)) else { return };
        let (Some(missing), Some((priority, holder))) = (self.missing(&unit), self.holder(&unit)) else {
            return;
        };
        let hold = HoldKey::Vacated(unit.clone());
        let mut seats = self.holds.get(&hold).map(|held| held.seats.clone()).unwrap_or_default();
        let node = self.nodes.id(&node);
        seats.push((node, self.shapes.get(row.shape).requests.clone(), 1));
        // The latest are the likeliest to be asked for again.
        let excess = seats.len().saturating_sub(missing as usize);
        seats.drain(..excess);
        let expires = Some(now.plus_seconds(VACATED_SECONDS));
        self.replace_hold(hold, Some(Held { unit, priority, expires, holder: Some(holder), seats }));
        self.drop_row_if_unused(node);
    }

    /// An incomplete gang was tried: it holds the seats that it could use, in place of those that it held before. True if
    /// that changed anything.
    pub(crate) fn hold_usable_seats(&mut self, unit: &UnitKey, seats: &[(ShapeId, NodeId, u32)]) -> bool {
        let held = self.holder(unit).filter(|_| !seats.is_empty()).map(|(priority, holder)| {
            let seats = self.held_seats(seats.iter().copied());
            Held { unit: unit.clone(), priority, expires: None, holder: Some(holder), seats }
        });
        // The members that were waited for are here, and were asked where they would sit.
        self.replace_hold(HoldKey::Vacated(unit.clone()), None);
        self.replace_hold(HoldKey::Usable(unit.clone()), held)
    }

    /// Holds what becomes free at these seats for a gang that has waited for very long, until a time.
    pub(crate) fn hold_planned_seats(
        &mut self,
        unit: &UnitKey,
        seats: impl Iterator<Item = (ShapeId, NodeId, u32)>,
        expires: Time,
    ) {
        let held = Held {
            unit: unit.clone(),
            priority: self.importance(unit).priority.0,
            expires: Some(expires),
            holder: Some(self.starving_holder(unit)),
            seats: self.held_seats(seats),
        };
        self.replace_hold(HoldKey::Planned(unit.clone()), Some(held));
    }

    /// Nothing is planned for a unit any more.
    pub(crate) fn end_plan_of(&mut self, unit: &UnitKey) {
        self.replace_hold(HoldKey::Planned(unit.clone()), None);
    }

    fn held_seats(&self, seats: impl Iterator<Item = (ShapeId, NodeId, u32)>) -> Vec<HeldRoom> {
        seats.map(|(shape, node, count)| (node, self.shapes.get(shape).requests.clone(), count)).collect()
    }

    /// An incomplete gang as others see it that hold seats, and its priority.
    pub(super) fn holder(&self, unit: &UnitKey) -> Option<(i32, Holder)> {
        let importance = self.importance(unit);
        let holder = Holder { starves: false, created: importance.created, unit: unit.clone() };
        importance.incomplete.0.then_some((importance.priority.0, holder))
    }

    fn starving_holder(&self, unit: &UnitKey) -> Holder {
        Holder { starves: true, created: self.importance(unit).created, unit: unit.clone() }
    }

    /// True if a unit may use seats that are held now, its own or those of others.
    pub(crate) fn may_lift_holds(&self, unit: &UnitKey) -> bool {
        !self.holds.is_empty() && !self.holds_to_lift(unit).is_empty()
    }

    /// Holds that do not bind a unit.
    pub(super) fn holds_to_lift(&self, unit: &UnitKey) -> Vec<HoldKey> {
        if self.holds.is_empty() {
            return Vec::new();
        }
        let priority = self.importance(unit).priority.0;
        let holder = self.holder(unit).map(|(_, holder)| holder);
        self.holds.not_binding(unit, priority, holder.as_ref())
    }

    /// Gives back (-1) or takes again (1) the room of a hold, for a moment; the rows of its nodes stay in use.
    pub(super) fn shift_hold(&mut self, key: &HoldKey, sign: i64) {
        let Some(held) = self.holds.held.get(key) else { return };
        for (node, requests, count) in held.seats.clone() {
            self.shift_room(node, Load::promised(&requests), sign * i64::from(count));
        }
    }

    /// Makes, changes or ends a hold. True if that changed anything.
    fn replace_hold(&mut self, key: HoldKey, held: Option<Held>) -> bool {
        if self.holds.held.get(&key) == held.as_ref() {
            return false;
        }
        let before = self.holds.held.remove(&key);
        let asked: Vec<NodeId> = held.iter().flat_map(|held| held.seats.iter().map(|seat| seat.0)).collect();
        if let Some(held) = held.filter(|_| self.holds.held.len() < HOLDS_MAX) {
            for (node, requests, count) in &held.seats {
                self.take_room(*node, Load::promised(requests), *count);
                *self.holds.on_node.entry(*node).or_default() += 1;
            }
            self.holds.held.insert(key, held);
        }
        for (node, requests, count) in before.into_iter().flat_map(|held| held.seats) {
            if let Some(seats) = self.holds.on_node.get_mut(&node) {
                *seats -= 1;
                if *seats == 0 {
                    self.holds.on_node.remove(&node);
                }
            }
            self.give_room(node, Load::promised(&requests), count);
        }
        // A hold that is not kept leaves no rows of nodes behind that nobody has seen.
        for node in asked {
            self.drop_row_if_unused(node);
        }
        true
    }
}
