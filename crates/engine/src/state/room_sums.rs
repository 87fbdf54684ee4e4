//! Room by domain: the sums of a shape's room over the domains of a hierarchy, kept up to date by what changes.

use crate::state::hierarchy::{Hierarchies, Hierarchy, HierarchyId, NO_DOMAIN};
use crate::state::nodes::NodeId;

/// Hierarchies by which the room of one shape is summed up at a time.
const SUMS_MAX: usize = 8;

/// Sums by level and domain.
#[derive(Debug, Clone)]
struct Sums {
    id: HierarchyId,
    version: u64,
    by_level: Vec<Vec<u64>>,
}

/// All sums of one shape.
#[derive(Debug, Clone, Default)]
pub(crate) struct DomainRooms {
    sums: Vec<Sums>,
    /// Nodes whose room changed since the sums were made, with what they had before and after.
    changes: Vec<(NodeId, u32, u32)>,
}

impl DomainRooms {
    /// Takes in that a node has come to have room for more copies, or fewer.
    pub(crate) fn note(&mut self, node: NodeId, before: u32, after: u32, nodes_count: usize) {
        if before == after || self.sums.is_empty() {
            return;
        }
        self.changes.push((node, before, after));
        if self.changes.len() > nodes_count {
            self.sums.clear();
            self.changes.clear();
        }
    }

    /// Sums by level and domain, now.
    pub(crate) fn of(&mut self, id: HierarchyId, hierarchies: &Hierarchies, by_node: &[u32]) -> &[Vec<u64>] {
        let is_current =
            |sums: &Sums| hierarchies.find(sums.id).is_some_and(|tree| tree.version() == sums.version);
        self.sums.retain(is_current);
        for sums in &mut self.sums {
            sums.catch_up(&self.changes, hierarchies.get(sums.id));
        }
        self.changes.clear();
        let at = match self.sums.iter().position(|sums| sums.id == id) {
            Some(at) => at,
            None => {
                if self.sums.len() >= SUMS_MAX {
                    self.sums.remove(0);
                }
                self.sums.push(Sums::new(id, hierarchies.get(id), by_node));
                self.sums.len() - 1
            }
        };
        &self.sums[at].by_level
    }
}

impl Sums {
    fn new(id: HierarchyId, tree: &Hierarchy, by_node: &[u32]) -> Self {
        let by_level = (0..tree.levels_count()).map(|level| tree.sums(level, by_node)).collect();
        Self { id, version: tree.version(), by_level }
    }

    fn catch_up(&mut self, changes: &[(NodeId, u32, u32)], tree: &Hierarchy) {
        for &(node, before, after) in changes {
            for (level, sums) in self.by_level.iter_mut().enumerate() {
                let domain = tree.domain(level, node);
                if domain != NO_DOMAIN {
                    let sum = &mut sums[domain as usize];
                    *sum = *sum + u64::from(after) - u64::from(before);
                }
            }
        }
    }
}
