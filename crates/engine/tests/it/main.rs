//! Claims about the engine, held against scenarios, an oracle and random histories.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and read better so"
)]

mod answers;
mod bad_input;
mod boundaries;
mod determinism;
mod digest;
mod documented;
mod doubles;
mod driver;
mod each_rule;
mod expectations;
mod feasible;
mod gated;
mod history;
mod hostile;
mod likings;
mod oracle;
mod packing;
mod placements;
mod random;
mod random_storage;
mod random_trees;
mod reference;
mod rollback;
mod scores;
mod seats;
mod shrink;
mod starving;
mod storage;
mod topology;
mod topology_contradicted;
mod tree_verdict;
mod verdict;
mod volumes;
mod waiting;
mod wake_ups;
