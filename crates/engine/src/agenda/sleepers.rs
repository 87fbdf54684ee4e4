//! Who sleeps, and what wakes them.
//!
//! A unit that found no room is asked again only when something has happened that could help it: a node has come
//! to offer more to one of its shapes, or, for units that care about other pods, a pod that they care about came
//! or went, or a node came, went or changed its labels or taints.

use crate::decision::UnitKey;
use crate::state::counts::{Counts, SelectorId};
use crate::state::index::remove_from;
use crate::state::shape::{ResourceId, Shape, ShapeId, Shapes};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tutti_model::Node;

/// A node at one moment.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The node, if there is one.
    pub(crate) node: Option<Node>,
    /// What is free there, by number of the resource.
    pub(crate) free: Vec<i64>,
}

impl Offer {
    fn free(&self, resource: ResourceId) -> i64 {
        self.free.get(resource.index()).copied().unwrap_or(0)
    }

    fn is_usable(&self, shape: &Shape) -> bool {
        self.node.as_ref().is_some_and(|node| shape.forbidden(node).is_none())
    }
}

/// What a unit sleeps on.
#[derive(Debug)]
pub(crate) struct WakesOn {
    /// What its members require.
    pub(crate) shapes: Vec<ShapeId>,
    /// True if it matters to which domains nodes belong.
    pub(crate) reads_domains: bool,
}

/// Units that wait for room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sleepers {
    units: FxHashMap<UnitKey, Sleeper>,
    by_shape: BTreeMap<ShapeId, BTreeSet<UnitKey>>,
    by_selector: BTreeMap<SelectorId, BTreeSet<UnitKey>>,
    /// Units that care about other pods, ports, domains, or volumes that other pods use or could have.
    sensitive: BTreeSet<UnitKey>,
}

#[derive(Debug, Clone)]
struct Sleeper {
    shapes: Vec<ShapeId>,
    selectors: BTreeSet<SelectorId>,
}

impl Sleepers {
    /// Puts a unit to sleep.
    pub(crate) fn insert(&mut self, unit: UnitKey, wakes_on: WakesOn, shapes: &Shapes, counts: &Counts) {
        self.remove(&unit);
        let WakesOn { shapes: ids, reads_domains } = wakes_on;
        if reads_domains {
            self.sensitive.insert(unit.clone());
        }
        let mut selectors = BTreeSet::new();
        for &id in &ids {
            let shape = shapes.get(id);
            self.by_shape.entry(id).or_default().insert(unit.clone());
            selectors.extend(shape.inter_pod.pairs().map(|(selector, _)| selector));
            // Who is only liked or disliked by others can be placed all the same.
            let mut binding =
                shape.matches.iter().filter(|&&selector| counts.is_binding(selector)).peekable();
            let is_matched = binding.peek().is_some();
            selectors.extend(binding);
            let volumes = &shape.volumes;
            let shares = !volumes.shared.is_empty() || !volumes.are_local();
            if !shape.inter_pod.is_empty() || !shape.ports.is_empty() || is_matched || shares {
                self.sensitive.insert(unit.clone());
            }
        }
        for &selector in &selectors {
            self.by_selector.entry(selector).or_default().insert(unit.clone());
        }
        self.units.insert(unit, Sleeper { shapes: ids, selectors });
    }

    /// Forgets a unit.
    pub(crate) fn remove(&mut self, unit: &UnitKey) {
        let Some(sleeper) = self.units.remove(unit) else {
            return;
        };
        for shape in sleeper.shapes {
            remove_from(&mut self.by_shape, &shape, unit);
        }
        for selector in sleeper.selectors {
            remove_from(&mut self.by_selector, &selector, unit);
        }
        self.sensitive.remove(unit);
    }

    /// Everybody who sleeps, in no meaningful order.
    pub(crate) fn units(&self) -> impl Iterator<Item = &UnitKey> {
        self.units.keys()
    }

    /// True if this unit sleeps.
    pub(crate) fn contains(&self, unit: &UnitKey) -> bool {
        self.units.contains_key(unit)
    }

    /// True if nobody sleeps, so that nobody has to be looked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Takes out everybody to whom a node offers more than before.
    pub(crate) fn wake_by_offer(
        &mut self,
        before: &Offer,
        after: &Offer,
        is_held: bool,
        shapes: &Shapes,
    ) -> BTreeSet<UnitKey> {
        let mut woken = BTreeSet::new();
        for (&id, units) in &self.by_shape {
            let gain = gain(shapes.get(id), before, after);
            let wakes = |unit: &&UnitKey| match gain {
                Gain::Nothing => false,
                // Members of one shape count copies; what does not make room for one more does not help. But whoever
                // is above a promise on this node has more room there than is free.
                Gain::Scraps => {
                    is_held || self.units.get(*unit).is_some_and(|sleeper| sleeper.shapes.len() > 1)
                }
                Gain::Copies => true,
            };
            woken.extend(units.iter().filter(wakes).cloned());
        }
        // A domain that comes or goes changes what is even, near or apart, whatever is free there.
        if before.node != after.node {
            woken.extend(self.sensitive.iter().cloned());
        }
        self.take_out(woken)
    }

    /// Takes out everybody who cares about pods that match a selector.
    pub(crate) fn wake_by_selector(&mut self, selector: SelectorId) -> BTreeSet<UnitKey> {
        let woken = self.by_selector.get(&selector).cloned().unwrap_or_default();
        self.take_out(woken)
    }

    /// Takes out everybody who cares about a pod of this shape having come or gone.
    pub(crate) fn wake_by_pod(&mut self, shape: &Shape) -> BTreeSet<UnitKey> {
        let mut woken = BTreeSet::new();
        for selector in
            shape.matches.iter().chain(shape.inter_pod.anti_affinity.iter().map(|(selector, _)| selector))
        {
            woken.extend(self.by_selector.get(selector).into_iter().flatten().cloned());
        }
        if !shape.ports.is_empty() || !shape.volumes.shared.is_empty() {
            woken.extend(self.sensitive.iter().cloned());
        }
        self.take_out(woken)
    }

    fn take_out(&mut self, woken: BTreeSet<UnitKey>) -> BTreeSet<UnitKey> {
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

fn gain(shape: &Shape, before: &Offer, after: &Offer) -> Gain {
    if !after.is_usable(shape) {
        return Gain::Nothing;
    }
    let copies_before =
        if before.is_usable(shape) { shape.copies(|resource| before.free(resource)) } else { 0 };
    if shape.copies(|resource| after.free(resource)) > copies_before {
        return Gain::Copies;
    }
    // Volumes that others use, too, are not counted by copies.
    if shape.volumes.shared.iter().any(|&(resource, _)| after.free(resource) > before.free(resource)) {
        return Gain::Copies;
    }
    // A node that has become usable gives all that is free there, also to whoever is above a promise on it.
    let more = |&(resource, _): &(ResourceId, i64)| after.free(resource) > before.free(resource);
    if !before.is_usable(shape) || shape.requests.iter().any(more) { Gain::Scraps } else { Gain::Nothing }
}
