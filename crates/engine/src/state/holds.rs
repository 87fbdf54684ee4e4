//! Promised seats: room that is kept for somebody who does not sit there yet.
//!
//! A hold takes its room in the node table like a pod does, so that nobody has to think of it. When a unit is solved
//! for, holds that do not bind it – its own, and those of lower priority – are lifted for that moment. A nominated pod
//! is a hold by another name: it lasts while the pod waits.

use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::event::{HeldSeat, Hold, HoldReason};
use crate::state::digest::hash;
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::{Load, ResourceId, Resources};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tutti_model::{ObjectKey, Time};

/// Units that may hold seats at a time. A promise beyond that is not kept, which costs order but never room.
const HOLDS_MAX: usize = 100_000;

/// Who made a promise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Promise {
    /// A hold on behalf of a unit.
    Unit(UnitKey),
    /// The nomination of a pod.
    Pod(ObjectKey),
    /// Seats that members of a broken gang have left.
    Vacated(UnitKey),
    /// Seats that a broken gang could use.
    Claim(UnitKey),
    /// Seats that a gang will have once enough of them are free.
    Plan(UnitKey),
}

/// A gang that claims seats; smaller ones come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claimant {
    /// It is not broken, but has waited for very long.
    pub(crate) starves: bool,
    pub(crate) created: Time,
    pub(crate) unit: UnitKey,
}

/// A node, what one pod takes of it, and how many pods.
pub(crate) type HeldRoom = (NodeId, Vec<(ResourceId, i64)>, u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) unit: UnitKey,
    pub(crate) priority: i32,
    pub(crate) expires: Option<Time>,
    /// Set if this is the claim of a gang.
    pub(crate) claimant: Option<Claimant>,
    pub(crate) seats: Vec<HeldRoom>,
}

/// All promises.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    held: BTreeMap<Promise, Held>,
    /// How many promises there are on a node.
    on_node: FxHashMap<NodeId, u32>,
}

impl Holds {
    /// Gives back the room of all holds that do not bind a unit of this priority, and tells which they were. A broken
    /// gang is not bound by claims of those that come after it.
    pub(crate) fn lift(
        &self,
        unit: &UnitKey,
        priority: i32,
        claimant: Option<&Claimant>,
        nodes: &mut NodeTable,
    ) -> Vec<Promise> {
        let mut lifted = Vec::new();
        for (promise, held) in &self.held {
            let comes_later = || match (&held.claimant, claimant) {
                (Some(other), Some(claimant)) => held.priority == priority && other > claimant,
                _ => false,
            };
            if held.unit == *unit || held.priority < priority || comes_later() {
                held.shift(nodes, -1);
                lifted.push(promise.clone());
            }
        }
        lifted
    }

    /// Takes the room of lifted holds again.
    pub(crate) fn restore(&self, lifted: &[Promise], nodes: &mut NodeTable) {
        for promise in lifted {
            if let Some(held) = self.held.get(promise) {
                held.shift(nodes, 1);
            }
        }
    }

    /// The seats of a promise; none if there is no such promise.
    pub(crate) fn seats(&self, promise: &Promise) -> Vec<HeldRoom> {
        self.held.get(promise).map(|held| held.seats.clone()).unwrap_or_default()
    }

    /// True if a unit claims seats.
    pub(crate) fn claims(&self, unit: &UnitKey) -> bool {
        !self.held.is_empty()
            && (self.held.contains_key(&Promise::Claim(unit.clone()))
                || self.held.contains_key(&Promise::Vacated(unit.clone())))
    }

    /// All promises.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// True if room on this node is promised to somebody. Then what is free there differs from unit to unit.
    pub(crate) fn are_on(&self, node: NodeId) -> bool {
        self.on_node.contains_key(&node)
    }

    /// A number that differs if any promise differs.
    pub(crate) fn digest(&self, nodes: &NodeTable, resources: &Resources) -> u64 {
        let mut sum = 0_u64;
        for held in self.held.values() {
            for (node, requests, count) in &held.seats {
                let mut amounts: Vec<(&str, i64)> =
                    requests.iter().map(|&(id, amount)| (resources.name(id).name(), amount)).collect();
                amounts.sort_unstable();
                let seat = (nodes.name(*node), amounts, count);
                sum = sum.wrapping_add(hash((&held.unit, held.priority, held.expires, seat)));
            }
        }
        sum
    }

    /// When the next promise ends.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.held.values().filter_map(|held| held.expires).min()
    }

    fn expired(&self, now: Time) -> Vec<Promise> {
        let over = |held: &Held| held.expires.is_some_and(|expires| expires <= now);
        self.held.iter().filter(|(_, held)| over(held)).map(|(promise, _)| promise.clone()).collect()
    }
}

impl Held {
    /// Takes the room (1) or gives it back (-1) for a moment; the rows stay in use.
    fn shift(&self, nodes: &mut NodeTable, sign: i64) {
        for (node, requests, count) in &self.seats {
            nodes.shift(*node, Load::promised(requests), sign * i64::from(*count));
        }
    }
}

impl Engine {
    /// Takes in a promise to a unit.
    pub(crate) fn set_hold(&mut self, hold: &Hold, now: Time) {
        let seats: Vec<_> = hold
            .seats
            .iter()
            .map(|seat| {
                let asked = seat.requests.iter().filter(|&(_, amount)| amount > 0);
                let requests = asked.map(|(name, amount)| (self.resources.id(name), amount)).collect();
                (self.nodes.id(&seat.node), requests, seat.count)
            })
            .collect();
        let unit = hold.unit.clone();
        let claimant = || self.claimant(&hold.unit).map(|(_, claimant)| claimant);
        let (promise, claimant) = match hold.reason {
            HoldReason::Told => (Promise::Unit(unit), None),
            HoldReason::Vacated => (Promise::Vacated(unit), claimant()),
            HoldReason::Claimed => (Promise::Claim(unit), claimant()),
            HoldReason::Planned => (Promise::Plan(unit), Some(self.starving_claimant(&hold.unit))),
            // It follows from the pod.
            HoldReason::Nominated => return,
        };
        let (unit, priority, expires) = (hold.unit.clone(), hold.priority, hold.expires);
        let is_kept = !seats.is_empty() && expires.is_none_or(|expires| expires > now);
        if hold.reason == HoldReason::Planned && !self.take_plan(&unit, is_kept, now) {
            return;
        }
        let held = Held { unit, priority, expires, claimant, seats };
        self.replace_promise(promise, is_kept.then_some(held), now);
        self.touch(&hold.unit, now);
    }

    /// Every promise there is.
    pub fn holds(&self) -> Vec<Hold> {
        let seat = |(node, requests, count): &HeldRoom| HeldSeat {
            node: self.nodes.name(*node).clone(),
            requests: requests
                .iter()
                .map(|&(id, amount)| (self.resources.name(id).clone(), amount))
                .collect(),
            count: *count,
        };
        let hold = |(promise, held): (&Promise, &Held)| Hold {
            unit: held.unit.clone(),
            priority: held.priority,
            expires: held.expires,
            seats: held.seats.iter().map(seat).collect(),
            reason: match promise {
                Promise::Unit(_) => HoldReason::Told,
                Promise::Pod(_) => HoldReason::Nominated,
                Promise::Vacated(_) => HoldReason::Vacated,
                Promise::Claim(_) => HoldReason::Claimed,
                Promise::Plan(_) => HoldReason::Planned,
            },
        };
        self.holds.held.iter().map(hold).collect()
    }

    /// Keeps the promise of a nominated pod in step with the pod.
    pub(crate) fn follow_nomination(&mut self, key: &ObjectKey, now: Time) {
        let promise = Promise::Pod(key.clone());
        let held = self.pods.pod(key).and_then(|row| {
            let node = self.nodes.id(row.promised()?);
            let requests = self.shapes.get(row.shape).requests.clone();
            let seats = vec![(node, requests, 1)];
            let (unit, priority) = (self.pods.unit_of(key, row), row.priority);
            Some(Held { unit, priority, expires: None, claimant: None, seats })
        });
        if held.is_some() || self.holds.held.contains_key(&promise) {
            self.replace_promise(promise, held, now);
        }
    }

    /// Ends promises whose time is over.
    pub(crate) fn end_holds(&mut self, now: Time) {
        for promise in self.holds.expired(now) {
            self.replace_promise(promise, None, now);
        }
    }

    /// A unit that got its seats needs no promise any more.
    pub(crate) fn end_hold_of(&mut self, unit: &UnitKey, now: Time) {
        for promise in [Promise::Unit, Promise::Vacated, Promise::Claim, Promise::Plan] {
            self.replace_promise(promise(unit.clone()), None, now);
        }
    }

    /// Makes, changes or ends a promise. True if that changed anything.
    pub(crate) fn replace_promise(&mut self, promise: Promise, held: Option<Held>, now: Time) -> bool {
        if self.holds.held.get(&promise) == held.as_ref() {
            return false;
        }
        let before = self.holds.held.remove(&promise);
        if let Some(held) = held.filter(|_| self.holds.held.len() < HOLDS_MAX) {
            for (node, requests, count) in &held.seats {
                self.nodes.take(*node, Load::promised(requests), *count);
                *self.holds.on_node.entry(*node).or_default() += 1;
            }
            self.holds.held.insert(promise, held);
        }
        for (node, requests, count) in before.into_iter().flat_map(|held| held.seats) {
            if let Some(promises) = self.holds.on_node.get_mut(&node) {
                *promises -= 1;
                if *promises == 0 {
                    self.holds.on_node.remove(&node);
                }
            }
            let offer = self.offer(node);
            self.nodes.give(node, Load::promised(&requests), count);
            self.wake_by_offer(node, offer, now);
        }
        true
    }
}
