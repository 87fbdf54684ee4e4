//! Who sleeps, and what wakes them: a unit that found no room is asked again only when a node has come to offer
//! more than before to one of its shapes.

use crate::decision::UnitKey;
use crate::shape::{ResourceId, Shape, ShapeId, Shapes};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::Node;

/// A node at one moment.
pub(crate) struct Offer<'a> {
    /// The node, if there is one.
    pub(crate) node: Option<&'a Node>,
    /// What is free there.
    pub(crate) free: &'a dyn Fn(ResourceId) -> i64,
}

/// Units that wait for room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sleepers {
    shapes: FxHashMap<UnitKey, Vec<ShapeId>>,
    units: BTreeMap<ShapeId, BTreeSet<UnitKey>>,
}

impl Sleepers {
    /// Puts a unit to sleep until one of its shapes is offered more.
    pub(crate) fn insert(&mut self, unit: UnitKey, shapes: Vec<ShapeId>) {
        self.remove(&unit);
        for &shape in &shapes {
            self.units.entry(shape).or_default().insert(unit.clone());
        }
        self.shapes.insert(unit, shapes);
    }

    /// Forgets a unit.
    pub(crate) fn remove(&mut self, unit: &UnitKey) {
        for shape in self.shapes.remove(unit).unwrap_or_default() {
            if let Some(units) = self.units.get_mut(&shape) {
                units.remove(unit);
                if units.is_empty() {
                    self.units.remove(&shape);
                }
            }
        }
    }

    /// True if nobody sleeps, so that nobody has to be looked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Takes out everybody to whom a node offers more than before.
    pub(crate) fn wake(
        &mut self,
        before: &Offer<'_>,
        after: &Offer<'_>,
        shapes: &Shapes,
    ) -> BTreeSet<UnitKey> {
        let mut woken = BTreeSet::new();
        for (&id, units) in &self.units {
            let gain = gain(shapes.get(id), before, after);
            let wakes = |unit: &&UnitKey| match gain {
                Gain::Nothing => false,
                // Members of one shape count copies; what does not make room for one more does not help.
                Gain::Scraps => self.shapes.get(*unit).is_some_and(|shapes| shapes.len() > 1),
                Gain::Copies => true,
            };
            woken.extend(units.iter().filter(wakes).cloned());
        }
        for unit in &woken {
            self.remove(unit);
        }
        woken
    }
}

/// What a change of a node gives to a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gain {
    /// Nothing.
    Nothing,
    /// Not room for one more copy, but room that together with other shapes may complete a placement.
    Scraps,
    /// Room for more copies.
    Copies,
}

fn gain(shape: &Shape, before: &Offer<'_>, after: &Offer<'_>) -> Gain {
    let usable = |offer: &Offer<'_>| offer.node.is_some_and(|node| shape.forbidden(node).is_none());
    if !usable(after) {
        return Gain::Nothing;
    }
    let copies_before = if usable(before) {
        shape.copies(before.free)
    } else {
        0
    };
    if shape.copies(after.free) > copies_before {
        return Gain::Copies;
    }
    let more = |&(resource, _): &(ResourceId, i64)| (after.free)(resource) > (before.free)(resource);
    if shape.requests.iter().any(more) {
        Gain::Scraps
    } else {
        Gain::Nothing
    }
}
