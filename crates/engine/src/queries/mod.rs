//! Questions about the cluster that decide nothing.

pub mod census;
mod keep_seat;
mod probe;
pub mod survey;
