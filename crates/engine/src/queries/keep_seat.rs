//! Whether a seat that was decided on will still do. Between a decision and its binding other pods may have come.

use crate::state::State;
use crate::state::pods::Sits;
use crate::state::shape::ResourceId;
use tutti_model::ObjectKey;

/// True if a pod may be bound where it was decided to be.
///
/// Terms about other pods are not looked at again: pods that came meanwhile were placed by another scheduler, and had no
/// more right to be there.
pub(crate) fn may_keep_seat(state: &State, pod: &ObjectKey) -> bool {
    let Some(row) = state.pods().pod(pod) else { return false };
    let node = match row.sits {
        Sits::Nowhere => return false,
        Sits::Bound(_) => return true,
        Sits::Assumed(node) => node,
    };
    let shape = state.shapes().get(row.shape);
    // Holds take room in the table, too, also from units that they do not bind.
    let is_over = |&(resource, _): &(ResourceId, i64)| {
        state.nodes().free(node, resource).saturating_add(state.holds().held_on(node, resource)) < 0
    };
    state.nodes().is_open_to(node, shape) && !shape.requests.iter().any(is_over)
}
