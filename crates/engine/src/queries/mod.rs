//! Questions about the cluster that decide nothing.

pub mod census;
pub(crate) mod keep_seat;
pub(crate) mod probe;
pub mod survey;
