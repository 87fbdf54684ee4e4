//! How long decisions take, for those that measure it.
//!
//! The core reads no clock. It says when the engine is asked and when it has answered, and hears nothing in return: what
//! is measured cannot enter a decision.

use super::counters::Attempt;

/// Watches the core decide.
pub trait Observer {
    /// The engine is asked for its next decision.
    fn asks(&mut self);

    /// It has looked at a unit. It goes on if it has nothing new to say of it.
    fn decides(&mut self);

    /// What it found is taken in, one unit after the other in the same order: everything that follows is noted or waits to
    /// be sent. There is no attempt if a unit was merely found not to be complete.
    fn done(&mut self, attempt: Option<&Attempt>);
}

/// Nobody watches.
impl Observer for () {
    fn asks(&mut self) {}
    fn decides(&mut self) {}
    fn done(&mut self, _attempt: Option<&Attempt>) {}
}
