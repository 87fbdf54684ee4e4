//! The queue.

pub(crate) mod patience;
pub(crate) mod queue;
pub(crate) mod safety_flush;
pub(crate) mod sleepers;
