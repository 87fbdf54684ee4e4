//! The verbs of scheduling: what fits, where, who is next, and why not.
//!
//! One [`Engine`] holds the cluster in memory. Events go in with [`Engine::apply`], decisions come out of
//! [`Engine::decide`]; both carry the time as data. There is no IO, no clock, no randomness and no thread here:
//! the same events give the same decisions on every machine.

mod agenda;
#[cfg(feature = "check")]
pub mod check;
pub mod config;
pub mod decision;
pub mod engine;
pub mod event;
pub mod queries;
pub mod refusal;
mod rules;
pub mod score;
mod solve;
mod state;
mod unit;

pub use config::{Config, NamedProfile};
pub use decision::{Decision, Placement, Seat, Standing, UnitKey, Waiting};
pub use engine::Engine;
pub use event::{Event, HeldSeat, Hold, HoldReason};
pub use queries::census::{Census, WaitState, Waiters};
pub use queries::survey::{DomainRoom, Survey};
pub use refusal::{ClaimProblem, Reason, ReasonCode, Refusal};
pub use rules::{Change, RULES, Rule};
pub use score::Profile;
pub use solve::Limits;
pub use state::volumes::{ClaimPlan, VolumeState};
