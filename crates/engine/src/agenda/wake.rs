//! Wake-ups, all of them: what has changed in the cluster, and which units are to be looked at again because of it.

use super::Agenda;
use crate::decision::UnitKey;
use crate::state::State;
use crate::state::changes::Change;
use std::collections::BTreeSet;
use tutti_model::Time;

impl Agenda {
    /// Takes in what the change log has to tell.
    pub(crate) fn follow(&mut self, state: &mut State, now: Time) {
        // Units that have changed themselves come first: they do not sleep on what they required before.
        let (mut nodes, mut selectors) = (Vec::new(), BTreeSet::new());
        let (mut ports, mut attachments) = (false, false);
        while let Some(change) = state.next_change() {
            match change {
                Change::Unit(unit) => self.look_again(&unit, state, now),
                Change::Joined(unit) => self.forget(&unit),
                Change::Bound(unit) => self.retries.end(&unit),
                Change::Suspended(unit) => self.patience.ends(&unit),
                Change::Undone => {}
                _ if self.sleepers.is_empty() => {}
                Change::Node { id, freed, facts } => nodes.push((id, freed, facts)),
                Change::Selector(selector) => {
                    selectors.insert(selector);
                }
                Change::Ports => ports = true,
                Change::Attachments => attachments = true,
            }
        }
        for (node, freed, facts) in nodes {
            let helped = self.sleepers.helped_by_node(node, freed, facts, state);
            self.wake(helped, state, now);
        }
        for selector in selectors {
            let helped = self.sleepers.helped_by_selector(selector).cloned().collect();
            self.wake(helped, state, now);
        }
        if ports {
            self.wake(self.sleepers.helped_by_ports().clone(), state, now);
        }
        if attachments {
            self.wake(self.sleepers.helped_by_attachments().clone(), state, now);
        }
    }

    fn wake(&mut self, units: BTreeSet<UnitKey>, state: &State, now: Time) {
        for unit in units {
            self.counts.wake_ups += 1;
            self.look_again(&unit, state, now);
        }
    }

    /// Units that have slept for very long are looked at again, in case that something should have woken them.
    pub(crate) fn flush(&mut self, state: &State, now: Time) {
        for unit in self.flush.due(now) {
            self.look_again(&unit, state, now);
            self.flush.flushed(unit);
        }
    }

    /// Another scheduler has decided until now: every incomplete gang is looked at once before all other work, whatever
    /// its priority, so that what was begun is finished first.
    pub(crate) fn take_over(&mut self, state: &State, now: Time) {
        for unit in state.incomplete_units() {
            self.firsts.insert(unit.clone());
            self.look_again(&unit, state, now);
        }
    }

    /// A unit is to be tried again if it has something to ask for. For groups that depends on all members, so it is found
    /// out once, before the next decision, and not for every member that comes.
    fn look_again(&mut self, unit: &UnitKey, state: &State, now: Time) {
        self.sleepers.remove(unit);
        self.flush.wakes(unit);
        self.undecided.end_turn(unit);
        match unit {
            UnitKey::Pod(_) => self.enqueue(unit, state, now),
            UnitKey::Group(_) | UnitKey::Composite(_) => {
                self.touched.insert(unit.clone());
            }
        }
    }
}
