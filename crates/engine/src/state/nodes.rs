//! The node table: what is free on every node, in columns, and which rows changed lately.

use crate::rules;
use crate::state::images::Images;
use crate::state::shape::{Load, ResourceId, Resources, Shape};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use tutti_model::{Node, Padding, Text};

/// A row of the table. Numbers are used again when a node is gone; they never decide anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone)]
struct Row {
    name: Text,
    /// None while pods are known to be on a node that itself was not seen (yet, or any more). Without its images:
    /// those are kept by [`Images`].
    node: Option<Node>,
    /// Pods that take something from this row.
    pods: u32,
}

/// What is allocatable and free, by resource and node.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeTable {
    rows: Vec<Option<Row>>,
    vacant: Vec<NodeId>,
    ids: FxHashMap<Text, NodeId>,
    present: usize,
    allocatable: Vec<Vec<i64>>,
    free: Vec<Vec<i64>>,
    /// By row: whether there is a node that is open to everybody, so that it need not be looked at.
    open: Vec<bool>,
    /// By row: what pods there count for beyond their requests when nodes are compared.
    padding: Vec<Padding>,
    images: Images,
    /// By row and volume: pods there that use it, of volumes that more than one pod uses.
    shared: FxHashMap<NodeId, BTreeMap<Text, u32>>,
}

impl NodeTable {
    /// Numbers of all rows that were ever used; some may be empty.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.rows.len() as u32).map(NodeId)
    }

    /// How many rows there are, empty ones included.
    pub(crate) fn rows_count(&self) -> usize {
        self.rows.len()
    }

    /// How many nodes there are.
    pub(crate) fn nodes_count(&self) -> usize {
        self.present
    }

    /// The node of a row, if it was seen.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.rows[id.index()].as_ref()?.node.as_ref()
    }

    /// The name of a row in use.
    pub(crate) fn name(&self, id: NodeId) -> &Text {
        match &self.rows[id.index()] {
            Some(row) => &row.name,
            None => panic!("row {id:?} is not in use"),
        }
    }

    /// What is free; negative if more was bound than there is.
    pub(crate) fn free(&self, id: NodeId, resource: ResourceId) -> i64 {
        self.free.get(resource.index()).and_then(|column| column.get(id.index())).copied().unwrap_or(0)
    }

    /// What pods can have of it in all.
    pub(crate) fn allocatable(&self, id: NodeId, resource: ResourceId) -> i64 {
        self.allocatable.get(resource.index()).and_then(|column| column.get(id.index())).copied().unwrap_or(0)
    }

    /// What pods there count for beyond their requests when nodes are compared.
    pub(crate) fn padding(&self, id: NodeId) -> Padding {
        self.padding.get(id.index()).copied().unwrap_or_default()
    }

    /// Who has which images.
    pub(crate) fn images(&self) -> &Images {
        &self.images
    }

    /// The same, to note that pods need some.
    pub(super) fn images_mut(&mut self) -> &mut Images {
        &mut self.images
    }

    /// How many more copies of a shape the node takes.
    pub(crate) fn room(&self, id: NodeId, shape: &Shape) -> u32 {
        if !self.is_open_to(id, shape) {
            return 0;
        }
        let Some(shared) = self.room_for_shared(id, shape) else { return 0 };
        rules::resources::copies(shape, |resource| {
            let taken = shared.iter().find(|(other, _)| *other == resource);
            self.free(id, resource) - taken.map_or(0, |(_, taken)| *taken)
        })
    }

    /// The same for all rows, column by column: divisions are dear, and amounts are often one or a power of two.
    pub(crate) fn rooms(&self, shape: &Shape) -> Vec<u32> {
        if !shape.volumes.shared.is_empty() {
            return self.ids().map(|id| self.room(id, shape)).collect();
        }
        let mut rooms = vec![u32::MAX; self.rows.len()];
        for &(resource, amount) in &shape.requests {
            let Some(column) = self.free.get(resource.index()) else { return vec![0; self.rows.len()] };
            let least = |copies: i64| u32::try_from(copies).unwrap_or(u32::MAX);
            let pairs = rooms.iter_mut().zip(column);
            if amount > 0 && amount & (amount - 1) == 0 {
                let shift = amount.trailing_zeros();
                pairs.for_each(|(room, free)| *room = (*room).min(least(free.max(&0) >> shift)));
            } else {
                pairs.for_each(|(room, free)| *room = (*room).min(least(free.max(&0) / amount)));
            }
        }
        for (index, room) in rooms.iter_mut().enumerate() {
            if !self.is_open_to(NodeId(index as u32), shape) {
                *room = 0;
            }
        }
        rooms
    }

    /// True if a shape may use a node, whatever is free there.
    pub(crate) fn is_open_to(&self, id: NodeId, shape: &Shape) -> bool {
        (self.open[id.index()] && rules::is_undemanding(shape))
            || self.node(id).is_some_and(|node| rules::forbidden(shape, node).is_none())
    }

    /// What volumes that a shape shares with others take beyond what is there already, by resource; nothing if they
    /// do not fit.
    fn room_for_shared(&self, id: NodeId, shape: &Shape) -> Option<Vec<(ResourceId, i64)>> {
        let mut taken: Vec<(ResourceId, i64)> = Vec::new();
        for (resource, _) in shape.volumes.shared.iter().filter(|(_, volume)| !self.has_volume(id, volume)) {
            match taken.iter_mut().find(|(other, _)| other == resource) {
                Some((_, count)) => *count += 1,
                None => taken.push((*resource, 1)),
            }
        }
        let fits = taken.iter().all(|&(resource, count)| count <= self.free(id, resource));
        fits.then_some(taken)
    }

    /// True if a volume that several pods use is used by one on this node.
    pub(crate) fn has_volume(&self, id: NodeId, volume: &Text) -> bool {
        self.shared.get(&id).is_some_and(|volumes| volumes.contains_key(volume))
    }

    /// The row of a node by name.
    pub(crate) fn find(&self, name: &Text) -> Option<NodeId> {
        self.ids.get(name).copied()
    }

    /// The row of a node by name; made if need be, because pods may be seen before their node.
    pub(crate) fn id(&mut self, name: &Text) -> NodeId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.rows.push(None);
            NodeId(self.rows.len() as u32 - 1)
        });
        self.rows[id.index()] = Some(Row { name: name.clone(), node: None, pods: 0 });
        self.ids.insert(name.clone(), id);
        let rows = self.rows.len();
        for column in self.allocatable.iter_mut().chain(&mut self.free) {
            column.resize(rows, 0);
        }
        self.padding.resize(rows, Padding::default());
        self.open.resize(rows, false);
        id
    }

    /// Sets which images a node has, which makes no difference to what fits; tells whether that is news.
    pub(super) fn set_images(&mut self, id: NodeId, images: &[tutti_model::NodeImage]) -> bool {
        self.images.set_node(id, images)
    }

    /// Sets or removes the node of a row. It offers what it says, and room for attached volumes.
    pub(super) fn set(
        &mut self,
        id: NodeId,
        node: Option<Node>,
        room_to_attach: &[(ResourceId, i64)],
        resources: &mut Resources,
    ) {
        let mut allocatable = vec![0; resources.len()];
        if let Some(node) = &node {
            for &(resource, amount) in room_to_attach {
                allocatable[resource.index()] = amount;
            }
            for (resource, amount) in node.allocatable.iter() {
                let resource = resources.id(resource);
                allocatable.resize(resources.len(), 0);
                allocatable[resource.index()] = amount;
            }
        }
        self.add_columns(resources.len());
        for (resource, amount) in allocatable.iter().enumerate() {
            let before = std::mem::replace(&mut self.allocatable[resource][id.index()], *amount);
            self.free[resource][id.index()] += amount - before;
        }
        self.open[id.index()] = node.as_ref().is_some_and(rules::is_open);
        if let Some(row) = &mut self.rows[id.index()] {
            self.present += usize::from(node.is_some());
            self.present -= usize::from(row.node.is_some());
            row.node = node;
        }
    }

    /// Takes `count` seats of this shape.
    pub(super) fn take(&mut self, id: NodeId, load: Load<'_>, count: u32) {
        self.shift(id, load, i64::from(count));
        if let Some(row) = &mut self.rows[id.index()] {
            row.pods += count;
        }
    }

    /// Gives `count` seats of this shape back.
    pub(super) fn give(&mut self, id: NodeId, load: Load<'_>, count: u32) {
        self.shift(id, load, -i64::from(count));
        if let Some(row) = &mut self.rows[id.index()] {
            row.pods -= count;
        }
    }

    /// A number that differs if anything differs that placements depend on, whatever the order of rows.
    pub(crate) fn digest(&self, resources: &Resources) -> u64 {
        let mut digest = 0_u64;
        for (index, row) in self.rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let mut hasher = FxHasher::default();
            row.name.hash(&mut hasher);
            row.pods.hash(&mut hasher);
            self.padding[index].hash(&mut hasher);
            row.node.hash(&mut hasher);
            let mut images = self.images.on(NodeId(index as u32));
            images.sort_unstable();
            images.hash(&mut hasher);
            self.shared.get(&NodeId(index as u32)).hash(&mut hasher);
            let mut amounts: Vec<(&str, i64, i64)> = Vec::new();
            for (resource, column) in self.free.iter().enumerate() {
                let (free, allocatable) = (column[index], self.allocatable[resource][index]);
                if free != 0 || allocatable != 0 {
                    amounts.push((resources.name_at(resource), free, allocatable));
                }
            }
            amounts.sort_unstable();
            amounts.hash(&mut hasher);
            digest = digest.wrapping_add(hasher.finish());
        }
        digest
    }

    /// Makes less (or more, below zero) free without anybody coming or going.
    pub(super) fn shift(&mut self, id: NodeId, load: Load<'_>, count: i64) {
        let padding = &mut self.padding[id.index()];
        padding.cpu = padding.cpu.wrapping_add(load.padding.cpu.wrapping_mul(count));
        padding.memory = padding.memory.wrapping_add(load.padding.memory.wrapping_mul(count));
        for &(resource, amount) in load.requests {
            self.add_columns(resource.index() + 1);
            // Amounts are bounded by AMOUNT_MAX; should a flood of absurd pods overflow a row all the same,
            // wrapping gives the right value back once they are gone.
            let free = &mut self.free[resource.index()][id.index()];
            *free = free.wrapping_sub(amount.wrapping_mul(count));
        }
        for (resource, volume) in load.shared {
            self.shift_shared(id, *resource, volume, count);
        }
    }

    /// How much of a node is in use, in thousandths of the resource that is used most.
    pub(crate) fn used(&self, id: NodeId) -> u64 {
        let share = |(allocatable, free): (&Vec<i64>, &Vec<i64>)| {
            let (all, free) = (allocatable[id.index()], free[id.index()]);
            let used = all.saturating_sub(free).max(0) as u128;
            if all > 0 { (used * 1_000 / all as u128) as u64 } else { 0 }
        };
        self.allocatable.iter().zip(&self.free).map(share).max().unwrap_or(0)
    }

    /// Empties nodes for a moment. What comes back is to be given to [`NodeTable::refill`].
    pub(super) fn empty(&mut self, ids: impl Iterator<Item = NodeId>) -> Vec<(NodeId, Vec<i64>)> {
        let mut rows = Vec::new();
        for id in ids {
            let columns = self.free.iter_mut().zip(&self.allocatable);
            let swap = |(free, all): (&mut Vec<i64>, &Vec<i64>)| {
                std::mem::replace(&mut free[id.index()], all[id.index()])
            };
            rows.push((id, columns.map(swap).collect()));
        }
        rows
    }

    /// Takes [`NodeTable::empty`] back.
    pub(super) fn refill(&mut self, rows: Vec<(NodeId, Vec<i64>)>) {
        for (id, row) in rows {
            for (column, free) in self.free.iter_mut().zip(row) {
                column[id.index()] = free;
            }
        }
    }

    /// The first pod on a node that uses a volume takes room for it, the last gives it back.
    fn shift_shared(&mut self, id: NodeId, resource: ResourceId, volume: &Text, count: i64) {
        self.add_columns(resource.index() + 1);
        let volumes = self.shared.entry(id).or_default();
        let users = volumes.entry(volume.clone()).or_default();
        let before = *users;
        *users = u32::try_from(i64::from(before) + count).unwrap_or(0);
        let taken = i64::from(*users > 0) - i64::from(before > 0);
        if *users == 0 {
            volumes.remove(volume);
        }
        if volumes.is_empty() {
            self.shared.remove(&id);
        }
        self.free[resource.index()][id.index()] -= taken;
    }

    fn add_columns(&mut self, count: usize) {
        let rows = self.rows.len();
        while self.free.len() < count {
            self.free.push(vec![0; rows]);
            self.allocatable.push(vec![0; rows]);
        }
    }

    /// Forgets a row of which nothing is known.
    pub(super) fn drop_row_if_unused(&mut self, id: NodeId) {
        let slot = &mut self.rows[id.index()];
        if let Some(row) = slot
            && row.node.is_none()
            && row.pods == 0
        {
            self.ids.remove(&row.name);
            *slot = None;
            self.vacant.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::{Resource, ResourceList};

    fn node(name: &str, cpu: i64) -> Node {
        let allocatable: ResourceList = [(Resource::new("cpu"), cpu)].into_iter().collect();
        Node { name: name.into(), allocatable, ..Node::default() }
    }

    fn load(requests: &[(ResourceId, i64)]) -> Load<'_> {
        Load { requests, padding: Padding { cpu: 5, memory: 7 }, shared: &[] }
    }

    #[test]
    fn a_pod_that_is_seen_before_its_node_counts_when_the_node_comes() {
        let (mut table, mut resources) = (NodeTable::default(), Resources::default());
        let cpu = resources.id(&Resource::new("cpu"));
        let id = table.id(&"n".into());
        table.take(id, load(&[(cpu, 300)]), 1);
        assert_eq!(table.nodes_count(), 0);
        table.set(id, Some(node("n", 1000)), &[], &mut resources);
        assert_eq!((table.nodes_count(), table.free(id, cpu)), (1, 700));
        assert_eq!(table.padding(id), Padding { cpu: 5, memory: 7 });
    }

    #[test]
    fn a_row_is_used_again_once_node_and_pods_are_gone() {
        let (mut table, mut resources) = (NodeTable::default(), Resources::default());
        let cpu = resources.id(&Resource::new("cpu"));
        let id = table.id(&"n".into());
        table.set(id, Some(node("n", 1000)), &[], &mut resources);
        table.take(id, load(&[(cpu, 300)]), 1);
        table.set(id, None, &[], &mut resources);
        table.drop_row_if_unused(id);
        assert_eq!(table.id(&"n".into()), id, "its pods keep the row");
        table.give(id, load(&[(cpu, 300)]), 1);
        table.drop_row_if_unused(id);
        assert_eq!(table.id(&"other".into()), id);
        assert_eq!((table.free(id, cpu), table.padding(id)), (0, Padding::default()));
    }
}
