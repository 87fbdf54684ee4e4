//! The two entry points.

use crate::decision::Decision;
use crate::event::Event;
use tutti_model::{Text, Time};

/// What can be chosen.
#[derive(Debug, Clone)]
pub struct Config {
    /// Names under which pods ask for this scheduler.
    pub scheduler_names: Vec<Text>,
    /// How many branches one exact search may look at.
    pub branches_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_names: vec![Text::from("tutti")],
            branches_max: 200_000,
        }
    }
}

/// The cluster in memory and what is to be decided about it.
#[derive(Debug, Clone)]
pub struct Engine {}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(_config: Config) -> Self {
        Self {}
    }

    /// Takes in one fact.
    pub fn apply(&mut self, _event: Event, _now: Time) {}

    /// The next decision. Call it until it is [`Decision::Idle`].
    pub fn decide(&mut self, _now: Time) -> Decision {
        Decision::Idle { wake_at: None }
    }
}
