//! What a scenario expects against what was decided. Shared by tests and the `placement` example.

use tutti_engine::Decision;
use tutti_model::scenario::{Expectation, Expected};

/// What was expected and did not come, one line each.
pub(crate) fn disappointments(expectations: &[Expectation], decisions: &[Decision]) -> Vec<String> {
    let first = |name: &str| {
        decisions.iter().find(|decision| match decision {
            Decision::Place(placement) => placement.unit.object().name.as_ref() == name,
            Decision::Wait(waiting) => waiting.unit.object().name.as_ref() == name,
            Decision::More | Decision::Idle { .. } => false,
        })
    };
    let is_met = |expectation: &Expectation| match (first(&expectation.name), &expectation.outcome) {
        (Some(Decision::Place(placement)), Expected::Placed(count)) => {
            placement.seats.len() == *count as usize
        }
        (Some(Decision::Wait(waiting)), Expected::Waits(why)) => {
            waiting.refusal.to_string().contains(why.as_ref())
        }
        _ => false,
    };
    let failed = expectations.iter().filter(|expectation| !is_met(expectation));
    failed.map(|e| format!("expected {} to be {:?}", e.name, e.outcome)).collect()
}
