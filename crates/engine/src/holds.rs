//! Promised seats: room that is kept for somebody who does not sit there yet.
//!
//! A hold takes its room in the node table like a pod does, so that nobody has to think of it. When a unit is solved
//! for, holds that do not bind it – its own, and those of lower priority – are lifted for that moment. A nominated pod
//! is a hold by another name: it lasts while the pod waits.

use crate::decision::UnitKey;
use crate::digest::hash;
use crate::engine::Engine;
use crate::event::Hold;
use crate::nodes::{NodeId, NodeTable};
use crate::shape::{Load, ResourceId, Resources};
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
}

/// A node, what one pod takes of it, and how many pods.
type HeldRoom = (NodeId, Vec<(ResourceId, i64)>, u32);

#[derive(Debug, Clone)]
struct Held {
    unit: UnitKey,
    priority: i32,
    expires: Option<Time>,
    seats: Vec<HeldRoom>,
}

/// All promises.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    held: BTreeMap<Promise, Held>,
    /// How many promises there are on a node.
    on_node: FxHashMap<NodeId, u32>,
}

impl Holds {
    /// Gives back the room of all holds that do not bind a unit of this priority, and tells which they were.
    pub(crate) fn lift(&self, unit: &UnitKey, priority: i32, nodes: &mut NodeTable) -> Vec<Promise> {
        let mut lifted = Vec::new();
        for (promise, held) in &self.held {
            if held.unit == *unit || held.priority < priority {
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
        let promise = Promise::Unit(hold.unit.clone());
        let held =
            Held { unit: hold.unit.clone(), priority: hold.priority, expires: Some(hold.expires), seats };
        let is_kept = !held.seats.is_empty() && hold.expires > now;
        self.replace_promise(promise, is_kept.then_some(held), now);
        self.touch(&hold.unit, now);
    }

    /// Keeps the promise of a nominated pod in step with the pod.
    pub(crate) fn follow_nomination(&mut self, key: &ObjectKey, now: Time) {
        let promise = Promise::Pod(key.clone());
        let held = self.pods.pod(key).and_then(|row| {
            let node = self.nodes.id(row.promised()?);
            let requests = self.shapes.get(row.shape).requests.clone();
            let seats = vec![(node, requests, 1)];
            Some(Held { unit: row.unit(key), priority: row.priority, expires: None, seats })
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
        self.replace_promise(Promise::Unit(unit.clone()), None, now);
    }

    fn replace_promise(&mut self, promise: Promise, held: Option<Held>, now: Time) {
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
    }
}
