//! Whether a seat that was decided on will still do. Between a decision and its binding others may have come.

use crate::engine::Engine;
use crate::state::holds::Holds;
use crate::state::nodes::NodeId;
use crate::state::pods::Sits;
use crate::state::shape::ResourceId;
use tutti_model::ObjectKey;

impl Engine {
    /// True if a pod may be bound where it was decided to be: its node is there and lets it in, and of nothing that it
    /// asks for more is taken there than the node has.
    ///
    /// What pods wish of each other is not looked at again: whoever came meanwhile was placed by somebody else, and had
    /// no more right to be there.
    pub fn may_keep_seat(&self, pod: &ObjectKey) -> bool {
        let Some(row) = self.pods.pod(pod) else { return false };
        let node = match row.sits {
            Sits::Nowhere => return false,
            Sits::Bound(_) => return true,
            Sits::Assumed(node) => node,
        };
        let shape = self.shapes.get(row.shape);
        // Promises take room in the table, too, also from whoever they do not bind.
        let is_over = |&(resource, _): &(ResourceId, i64)| {
            self.nodes.free(node, resource).saturating_add(self.holds.promised(node, resource)) < 0
        };
        self.nodes.is_open_to(node, shape) && !shape.requests.iter().any(is_over)
    }
}

impl Holds {
    /// What is promised of a node in all.
    fn promised(&self, node: NodeId, resource: ResourceId) -> i64 {
        if !self.are_on(node) {
            return 0;
        }
        let seats = self.iter().flat_map(|held| &held.seats).filter(|(on, ..)| *on == node);
        seats
            .flat_map(|(_, requests, count)| {
                let of_it = requests.iter().filter(|(of, _)| *of == resource);
                of_it.map(|(_, amount)| amount.saturating_mul(i64::from(*count)))
            })
            .fold(0, i64::saturating_add)
    }
}
