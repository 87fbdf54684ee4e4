//! Units that found no room, and what each of them waits for.
//!
//! A unit that found no room is looked at again only when something has happened that could help it: a node has come to
//! offer more to one of its shapes, and what all nodes offer is enough for what it needs; or, for units to which other
//! pods or domains matter, a pod that a term of theirs speaks of came or went, or a node came, went or changed its
//! labels or taints.

use crate::decision::UnitKey;
use crate::rules::Triggers;
use crate::state::State;
use crate::state::changes::Freed;
use crate::state::counts::SelectorId;
use crate::state::hierarchy::HierarchyId;
use crate::state::index::remove_from;
use crate::state::nodes::NodeId;
use crate::state::shape::{Shape, ShapeId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What must be there at least for a unit to be placed. It may be there and the unit find no place all the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Room for so many members, each kind by itself: shapes with how many members have them.
    Room(Vec<(ShapeId, u32)>, u32),
    /// Room for so many members of one shape in one domain of a level.
    RoomInADomain(ShapeId, u32, HierarchyId, usize),
    /// More than can be said in a sentence.
    Anything,
}

/// What wakes a unit.
#[derive(Debug)]
pub(crate) struct WakesOn {
    /// What its members require.
    pub(crate) shapes: Vec<ShapeId>,
    /// True if it matters to which domains nodes belong.
    pub(crate) reads_domains: bool,
    /// What it needs at least.
    pub(crate) needs: Needs,
    /// True if there was no node at all: then the first one is news, even if it is of no use.
    pub(crate) lacks_nodes: bool,
}

impl WakesOn {
    /// Changes of domains alone.
    pub(crate) fn domains() -> Self {
        Self { shapes: Vec::new(), reads_domains: true, needs: Needs::Anything, lacks_nodes: false }
    }
}

#[derive(Debug, Clone)]
struct Sleeper {
    shapes: Vec<ShapeId>,
    selectors: BTreeSet<SelectorId>,
    needs: Needs,
}

/// Units that wait for room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sleepers {
    units: FxHashMap<UnitKey, Sleeper>,
    /// Units with equal needs are judged together: there may be very many of them, and few kinds.
    by_shape: BTreeMap<ShapeId, BTreeMap<Needs, BTreeSet<UnitKey>>>,
    by_selector: BTreeMap<SelectorId, BTreeSet<UnitKey>>,
    /// Units that other changes can unblock, see [`Triggers`].
    by_domains: BTreeSet<UnitKey>,
    by_ports: BTreeSet<UnitKey>,
    by_attachments: BTreeSet<UnitKey>,
    lack_nodes: BTreeSet<UnitKey>,
}

impl Sleepers {
    /// Puts a unit to sleep.
    pub(super) fn insert(&mut self, unit: UnitKey, wakes_on: WakesOn, state: &State) {
        self.remove(&unit);
        let WakesOn { shapes: mut ids, reads_domains, needs, lacks_nodes } = wakes_on;
        ids.sort_unstable();
        ids.dedup();
        let mut triggers = Triggers { domains: reads_domains, ..Triggers::default() };
        for &id in &ids {
            let by_needs = self.by_shape.entry(id).or_default();
            by_needs.entry(needs.clone()).or_default().insert(unit.clone());
            triggers.add(state.shapes().get(id), &state.relations().counts);
        }
        for &selector in &triggers.selectors {
            self.by_selector.entry(selector).or_default().insert(unit.clone());
        }
        for (is_set, units) in [
            (triggers.domains, &mut self.by_domains),
            (triggers.ports, &mut self.by_ports),
            (triggers.attachments, &mut self.by_attachments),
            (lacks_nodes, &mut self.lack_nodes),
        ] {
            if is_set {
                units.insert(unit.clone());
            }
        }
        let selectors = triggers.selectors;
        self.units.insert(unit, Sleeper { shapes: ids, selectors, needs });
    }

    /// Forgets a unit.
    pub(super) fn remove(&mut self, unit: &UnitKey) {
        let Some(sleeper) = self.units.remove(unit) else { return };
        for shape in sleeper.shapes {
            let Some(by_needs) = self.by_shape.get_mut(&shape) else { continue };
            remove_from(by_needs, &sleeper.needs, unit);
            if by_needs.is_empty() {
                self.by_shape.remove(&shape);
            }
        }
        for selector in sleeper.selectors {
            remove_from(&mut self.by_selector, &selector, unit);
        }
        for units in
            [&mut self.by_domains, &mut self.by_ports, &mut self.by_attachments, &mut self.lack_nodes]
        {
            units.remove(unit);
        }
    }

    /// Every unit that sleeps, in no meaningful order.
    pub(crate) fn units(&self) -> impl Iterator<Item = &UnitKey> {
        self.units.keys()
    }

    /// True if this unit sleeps.
    pub(crate) fn contains(&self, unit: &UnitKey) -> bool {
        self.units.contains_key(unit)
    }

    /// True if no unit sleeps, so that none has to be looked for.
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Units to which a change of a node could be of use.
    pub(super) fn helped_by_node(
        &self,
        node: NodeId,
        freed: Freed,
        facts: bool,
        state: &mut State,
    ) -> BTreeSet<UnitKey> {
        let mut helped = BTreeSet::new();
        if !freed.is_nothing() {
            for (&id, by_needs) in &self.by_shape {
                let shape = std::sync::Arc::clone(state.shapes().get(id));
                if !may_gain(&shape, node, freed, facts, state) {
                    continue;
                }
                let has_room = state.nodes().room(node, &shape) > 0;
                for (needs, units) in by_needs {
                    if needs.could_be_met(has_room, state) {
                        helped.extend(units.iter().cloned());
                    } else if !state.holds().is_empty() {
                        helped.extend(units.iter().filter(|unit| state.may_lift_holds(unit)).cloned());
                    }
                }
            }
        }
        // A domain that comes or goes changes what is spread, near or apart, whatever is free there.
        if facts {
            helped.extend(self.by_domains.iter().cloned());
            helped.extend(self.lack_nodes.iter().cloned());
        }
        helped
    }

    /// Units to which it matters how many pods a selector matches.
    pub(super) fn helped_by_selector(&self, selector: SelectorId) -> impl Iterator<Item = &UnitKey> {
        self.by_selector.get(&selector).into_iter().flatten()
    }

    /// Units that host ports in use keep from being placed.
    pub(super) fn helped_by_ports(&self) -> &BTreeSet<UnitKey> {
        &self.by_ports
    }

    /// Units to which volumes that several pods use matter.
    pub(super) fn helped_by_attachments(&self) -> &BTreeSet<UnitKey> {
        &self.by_attachments
    }
}

impl Needs {
    /// False if what a unit needs is not there, so that trying is in vain. `has_room` says whether the node that has changed
    /// takes one more copy of one of its shapes.
    fn could_be_met(&self, has_room: bool, state: &mut State) -> bool {
        match self {
            // Members of one shape count copies; what does not make room for one more does not help. With several
            // shapes, scraps may complete a placement.
            Self::Room(kinds, need) => {
                if kinds.len() == 1 && !has_room {
                    return false;
                }
                let fit = |&(shape, count): &(ShapeId, u32)| state.room(shape).min(u64::from(count));
                kinds.iter().map(fit).sum::<u64>() >= u64::from(*need)
            }
            &Self::RoomInADomain(shape, need, hierarchy, level) => {
                has_room && state.room_in_a_domain(shape, hierarchy, level) >= u64::from(need)
            }
            Self::Anything => true,
        }
    }
}

/// True if a node that has changed like this may have more to offer to a shape.
fn may_gain(shape: &Shape, node: NodeId, freed: Freed, facts: bool, state: &State) -> bool {
    let shared = shape.volumes.shared.iter().map(|(resource, _)| resource);
    let mut asked = shape.requests.iter().map(|(resource, _)| resource).chain(shared);
    (facts || asked.any(|&resource| freed.has(resource))) && state.nodes().is_open_to(node, shape)
}
