//! One pod by itself: whether a bin will do depends on existing pods alone.

use super::problem::Problem;
use crate::rules::{affinity, spread};

/// Tells whether a bin takes one member of a problem's only kind with all that it requires.
pub(super) fn acceptable(problem: &Problem) -> impl Fn(usize) -> bool {
    let affinity = affinity::Load::new(&problem.constraints.affinity);
    let spread = spread::Load::new(&problem.constraints.spread);
    // Room includes what other rules allow.
    move |bin| problem.room_in(0, bin) > 0 && affinity.admits(0, bin) && spread.admits(0, bin)
}
