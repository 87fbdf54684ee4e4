//! What the shell needs to know of a set of controllers.

use crate::action::{Plan, Written};
use jiff::Timestamp;
use std::fmt;

/// Controllers that share one picture of the cluster. They touch no clock and do no IO.
pub trait Core: Send + 'static {
    /// News from a watch.
    type Event: Send + 'static;
    /// Which controller should look at which object.
    type Task: Ord + Clone + fmt::Debug + Send + 'static;

    /// Takes in what happened and says who should look.
    fn observe(&mut self, event: Self::Event, now: Timestamp) -> Vec<Self::Task>;

    /// True once every watch has shown all that there is. Nothing is planned before.
    fn is_ready(&self) -> bool;

    /// True if a write has been seen.
    fn has_seen(&self, written: &Written) -> bool;

    /// What is to be done about an object.
    fn plan(&mut self, task: &Self::Task, now: Timestamp) -> Plan;
}
