//! Requests that were refused on the cluster as it is. Units that ask for the same are refused by the same solve.

use crate::refusal::NoRoom;
use crate::solve::{Outcome, Request};
use rustc_hash::FxHashMap;

/// Requests that are remembered at a time.
const REQUESTS_MAX: usize = 4_096;

/// Refusals as of one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused {
    /// Number of the next change, see [`crate::state::changes::ChangeLog::end`].
    moment: u64,
    proven: FxHashMap<Request, NoRoom>,
}

impl Refused {
    /// Why an equal request was refused, if nothing has changed since.
    pub(crate) fn find(&self, request: &Request, moment: u64) -> Option<Outcome> {
        if self.moment != moment || self.proven.is_empty() {
            return None;
        }
        self.proven.get(request).map(|room| Outcome::Infeasible(room.clone()))
    }

    /// Remembers that a request was refused, with proof.
    pub(crate) fn note(&mut self, request: Request, room: &NoRoom, moment: u64) {
        if self.moment != moment || self.proven.len() >= REQUESTS_MAX {
            self.proven.clear();
            self.moment = moment;
        }
        self.proven.insert(request, room.clone());
    }
}
