//! Trial placements. A transaction takes seats in the node table and remembers how to give them back; unless it
//! is committed, dropping it leaves the table as it was.

use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::Shape;
use std::sync::Arc;

/// A point of a transaction to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpoint(usize);

/// Seats that are taken on trial.
#[derive(Debug)]
pub(crate) struct Txn<'a> {
    table: &'a mut NodeTable,
    taken: Vec<(NodeId, Arc<Shape>, u32)>,
}

impl<'a> Txn<'a> {
    pub(crate) fn begin(table: &'a mut NodeTable) -> Self {
        Self { table, taken: Vec::new() }
    }

    /// Takes seats if they are there.
    pub(crate) fn take(&mut self, node: NodeId, shape: &Arc<Shape>, count: u32) -> bool {
        if self.table.room(node, shape) < count {
            return false;
        }
        self.table.take(node, shape.load(), count);
        self.taken.push((node, Arc::clone(shape), count));
        true
    }

    /// Where the transaction stands.
    #[cfg_attr(not(test), expect(dead_code, reason = "preemption will try victims between checkpoints"))]
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.taken.len())
    }

    /// Gives back everything that was taken since, in reverse order.
    pub(crate) fn roll_back(&mut self, to: Checkpoint) {
        while self.taken.len() > to.0 {
            if let Some((node, shape, count)) = self.taken.pop() {
                self.table.give(node, shape.load(), count);
            }
        }
    }

    /// Keeps what was taken.
    pub(crate) fn commit(mut self) {
        self.taken.clear();
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        self.roll_back(Checkpoint(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::ProfileId;
    use crate::state::shape::{AboutPods, Resources, Shapes};
    use crate::state::volumes::Resolved;
    use tutti_model::{Node, ObjectKey, Pod, Resource, ResourceList};

    fn table() -> (NodeTable, Resources, Arc<Shape>) {
        let (mut table, mut resources, mut shapes) =
            (NodeTable::default(), Resources::default(), Shapes::default());
        for name in ["a", "b"] {
            let allocatable: ResourceList =
                [(Resource::new("cpu"), 4), (Resource::new("pods"), 10)].into_iter().collect();
            let id = table.id(&name.into());
            table.set(
                id,
                Some(Node { name: name.into(), allocatable, ..Node::default() }),
                &[],
                &mut resources,
            );
        }
        let mut pod = Pod::new(ObjectKey::new("default", "p"), "p");
        pod.requests.set(Resource::new("cpu"), 2);
        let (shape, _) = shapes.acquire(
            &pod,
            ProfileId::default(),
            AboutPods::default(),
            Vec::new(),
            Resolved::default(),
            &mut resources,
        );
        let shape = Arc::clone(shapes.get(shape));
        (table, resources, shape)
    }

    #[test]
    fn dropping_a_transaction_restores_the_table() {
        let (mut table, resources, shape) = table();
        let before = table.digest(&resources);
        let node = table.id(&"a".into());
        let mut txn = Txn::begin(&mut table);
        assert!(txn.take(node, &shape, 2));
        assert!(!txn.take(node, &shape, 1), "no seat is left");
        drop(txn);
        assert_eq!(table.digest(&resources), before);
    }

    #[test]
    fn a_checkpoint_keeps_what_was_taken_before_it() {
        let (mut table, resources, shape) = table();
        let (a, b) = (table.id(&"a".into()), table.id(&"b".into()));
        let mut txn = Txn::begin(&mut table);
        assert!(txn.take(a, &shape, 1));
        let checkpoint = txn.checkpoint();
        assert!(txn.take(b, &shape, 2));
        txn.roll_back(checkpoint);
        txn.commit();
        assert_eq!((table.room(a, &shape), table.room(b, &shape)), (1, 2));
        let mut again = Txn::begin(&mut table);
        again.roll_back(Checkpoint(0));
        drop(again);
        assert_eq!(table.room(a, &shape), 1, "what was committed stays");
        let _ = resources;
    }
}
