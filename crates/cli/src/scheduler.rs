//! The scheduler beside an embedded cluster.

/// The scheduler names that pods can ask for: its own, and the one that pods have by default.
pub(crate) const NAMES: [&str; 2] = ["tutti", "default-scheduler"];
