//! Jobs on the embedded cluster, with the controller and the scheduler beside it as they run anywhere.

// A test that meets what it does not expect should stop there and then.
#![allow(clippy::unwrap_used)]

mod faults;
mod harness;
mod lifecycle;
mod shapes;
