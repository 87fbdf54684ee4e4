//! The core against a simulated API server.

mod broken_solver;
mod composites;
mod first_claim;
mod gangs;
mod identity;
mod jobs;
mod leading;
mod optional;
mod replay;
mod reporting;
mod sim;
mod stopping;
mod story;
mod volumes;
