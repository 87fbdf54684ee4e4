//! The verbs of scheduling: what fits, where, who is next, and why not.
//!
//! One [`Engine`] holds the cluster in memory. Events go in with [`Engine::apply`], decisions come out of
//! [`Engine::decide`]; both carry the time as data. There is no IO, no clock, no randomness and no thread here:
//! the same events give the same decisions on every machine.

mod attempt;
pub mod census;
mod claims;
mod counts;
pub mod decision;
mod digest;
pub mod engine;
pub mod event;
mod feasible;
mod flush;
mod grow;
mod hierarchy;
mod holds;
mod images;
mod index;
mod members;
mod nodes;
pub mod oracle;
mod pods;
mod queue;
pub mod refusal;
mod relations;
mod room;
mod room_sums;
pub mod score;
mod seats;
mod shape;
mod solve;
mod starving;
pub mod survey;
mod topology;
mod txn;
mod units;
pub mod validator;
mod volumes;
mod wake;

pub use census::{Census, Place, Waiters};
pub use decision::{Decision, Placement, Seat, Standing, UnitKey, Waiting};
pub use engine::{Config, Engine, NamedProfile};
pub use event::{Event, HeldSeat, Hold, HoldReason};
pub use refusal::{ClaimProblem, Refusal};
pub use score::Profile;
pub use survey::{DomainRoom, Survey};
pub use volumes::{ClaimPlan, VolumeState};
