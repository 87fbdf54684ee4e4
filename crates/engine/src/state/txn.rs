//! Trials. A transaction seats and unseats pods and lifts holds in the tables themselves, so that everything that
//! follows from it (room, counts, ports, volumes, domains) can be looked at; unless it is committed, dropping it leaves
//! the state as it was.

use super::State;
use super::holds::HoldKey;
use super::nodes::NodeId;
use super::pods::Sits;
use super::shape::ShapeId;
use crate::solve::Tables;
use tutti_model::ObjectKey;

/// A point of a transaction to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    done: usize,
    log: u64,
}

/// What was done, and so what is to be undone.
#[derive(Debug)]
enum Done {
    /// A pod was moved from here.
    Moved(ObjectKey, Sits),
    /// A hold was lifted.
    Lifted(HoldKey),
    /// A hold that was lifted took its room again.
    Restored(HoldKey),
}

/// A trial on the tables.
#[derive(Debug)]
pub(crate) struct Txn<'a> {
    state: &'a mut State,
    done: Vec<Done>,
    /// Rows of nodes that may have lost their last use.
    rows: Vec<NodeId>,
    start: u64,
}

impl<'a> Txn<'a> {
    pub(crate) fn begin(state: &'a mut State) -> Self {
        state.is_trial = true;
        let start = state.changes.end();
        Self { state, done: Vec::new(), rows: Vec::new(), start }
    }

    /// The state with everything that was done so far.
    pub(crate) fn state(&self) -> &State {
        self.state
    }

    /// What requests are solved on, with everything that was done so far.
    pub(crate) fn tables(&mut self) -> Tables<'_> {
        self.state.tables()
    }

    /// Seats pods of one shape that wait, if the node has room for all of them and lets them in. Otherwise some of them
    /// may sit: roll back.
    pub(crate) fn seat(&mut self, shape: ShapeId, pods: &[ObjectKey], node: NodeId) -> bool {
        if (self.state.nodes.room(node, self.state.shapes.get(shape)) as usize) < pods.len() {
            return false;
        }
        let waits = |state: &State, pod: &ObjectKey| {
            state.pods.pod(pod).is_some_and(|row| row.sits == Sits::Nowhere && row.shape == shape)
        };
        pods.iter().all(|pod| waits(self.state, pod) && self.set_seat(pod, Sits::Assumed(node)))
    }

    /// Takes the seat of a pod away.
    #[cfg_attr(
        not(feature = "check"),
        expect(dead_code, reason = "preemption takes the seats of victims away")
    )]
    pub(crate) fn unseat(&mut self, pod: &ObjectKey) -> bool {
        let Some(node) = self.state.pods.pod(pod).and_then(super::pods::PodRow::node) else { return false };
        self.rows.push(node);
        self.set_seat(pod, Sits::Nowhere)
    }

    fn set_seat(&mut self, pod: &ObjectKey, sits: Sits) -> bool {
        match self.state.set_seat(pod, sits) {
            Some(before) => {
                self.done.push(Done::Moved(pod.clone(), before));
                true
            }
            None => false,
        }
    }

    /// Frees what is held for others, so far as that does not bind this unit, and for the unit itself.
    pub(crate) fn lift_holds(&mut self, unit: &crate::decision::UnitKey) -> Vec<HoldKey> {
        let lifted = self.state.holds_to_lift(unit);
        for key in &lifted {
            self.state.shift_hold(key, -1);
            self.done.push(Done::Lifted(key.clone()));
        }
        lifted
    }

    /// Takes the room of lifted holds again, whatever was seated there meanwhile.
    pub(crate) fn restore_holds(&mut self, lifted: &[HoldKey]) {
        for key in lifted {
            self.state.shift_hold(key, 1);
            self.done.push(Done::Restored(key.clone()));
        }
    }

    /// Empties nodes, but for what they are, until the end of this closure.
    pub(crate) fn on_emptied_nodes<T>(
        &mut self,
        nodes: impl Iterator<Item = NodeId>,
        look: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let rows = self.state.empty_nodes(nodes);
        let seen = look(self);
        self.state.refill_nodes(rows);
        seen
    }

    /// Where the transaction stands.
    #[cfg_attr(
        not(feature = "check"),
        expect(dead_code, reason = "preemption tries victims between checkpoints")
    )]
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { done: self.done.len(), log: self.state.changes.end() }
    }

    /// Undoes everything that was done since, in reverse order.
    pub(crate) fn roll_back(&mut self, to: Checkpoint) {
        while self.done.len() > to.done {
            match self.done.pop() {
                Some(Done::Moved(pod, sits)) => {
                    self.state.set_seat(&pod, sits);
                }
                Some(Done::Lifted(key)) => self.state.shift_hold(&key, 1),
                Some(Done::Restored(key)) => self.state.shift_hold(&key, -1),
                None => break,
            }
        }
        self.state.changes.forget_since(to.log);
    }

    /// Keeps what was done.
    pub(crate) fn commit(mut self) {
        self.done.clear();
        self.state.is_trial = false;
        for node in std::mem::take(&mut self.rows) {
            self.state.drop_row_if_unused(node);
        }
        self.start = self.state.changes.end();
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        self.roll_back(Checkpoint { done: 0, log: self.start });
        self.state.is_trial = false;
    }
}
