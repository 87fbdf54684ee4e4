//! The core against a simulated API server.

mod broken_first;
mod broken_solver;
mod gangs;
mod identity;
mod jobs;
mod leading;
mod optional_kinds;
mod replay;
mod reporting;
mod small_cluster;
mod stopping;
mod story;
mod trees_start;
mod volumes;
