//! Leader election by Lease: of several replicas at most one acts.
//!
//! [`Elector`] decides, with no IO and no clock; [`Election`] connects it to a cluster.
//!
//! Nobody trusts another machine's clock. A follower takes a lease over once it has seen it unchanged for as long as
//! its holder said, counted on the follower's own clock. A leader that could not renew for `renew_deadline` gives up,
//! and whatever it sent must end by [`Timing::requests_end`], which is before anybody else could lead. What a server
//! may still be working on for a leader that died is waited for: see [`Timing::gap`].

mod election;
mod elector;
#[cfg(test)]
mod simulation;
mod timing;

pub use election::{Election, Place, Standing, stands_by};
pub use elector::{Answer, Draft, Effect, Elector, Input, News, Record, Request};
pub use timing::{Timing, TimingError};
