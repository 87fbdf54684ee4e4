//! Domains of several levels: which nodes share the values of some labels, from wide to narrow. Kept for every list of
//! levels that a group or composite names.
//!
//! A domain of a level is known by the values of that level and of all wider ones; a node without one of them is in no
//! domain of that level nor of any narrower one.

use crate::state::nodes::{NodeId, NodeTable};
use rustc_hash::FxHashMap;
use tutti_model::{Node, Text};

/// Not in any domain.
pub(crate) const NO_DOMAIN: u32 = u32::MAX;

/// A list of levels, as the engine numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HierarchyId(u32);

/// The narrowest domain that a node is in: how many levels it has, and the domain of the last of them. Nodes that have
/// none of the levels are in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    pub(crate) depth: usize,
    pub(crate) domain: u32,
}

impl Cell {
    /// The cell of nodes that have none of the levels.
    pub(crate) const OUTSIDE: Self = Self { depth: 0, domain: NO_DOMAIN };
}

/// The domains of one list of levels. Numbers of domains are local to a level, are used again once the last node has
/// left, and never decide anything.
#[derive(Debug, Clone)]
pub(crate) struct Hierarchy {
    keys: Vec<Text>,
    uses: u32,
    /// Changes whenever a node moves, and no two hierarchies ever have the same one.
    version: u64,
    levels: Vec<LevelTable>,
}

#[derive(Debug, Clone, Default)]
struct LevelTable {
    /// By wider domain and value.
    ids: FxHashMap<(u32, Text), u32>,
    /// A domain without nodes is vacant.
    domains: Vec<Domain>,
    vacant: Vec<u32>,
    /// By row of the node; rows beyond the end are in no domain.
    of_node: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Domain {
    wider: u32,
    value: Text,
    nodes: Vec<NodeId>,
}

impl Hierarchy {
    fn new(keys: &[Text], version: u64) -> Self {
        let levels = keys.iter().map(|_| LevelTable::default()).collect();
        Self { keys: keys.to_vec(), uses: 1, version, levels }
    }

    /// How many levels there are.
    pub(crate) fn levels_count(&self) -> usize {
        self.levels.len()
    }

    /// The label key of a level.
    pub(crate) fn key(&self, level: usize) -> &Text {
        &self.keys[level]
    }

    /// The domain of a node, or [`NO_DOMAIN`].
    pub(crate) fn domain(&self, level: usize, node: NodeId) -> u32 {
        self.levels[level].of_node.get(node.index()).copied().unwrap_or(NO_DOMAIN)
    }

    /// The domain of the next wider level that a domain lies in; of the widest level, [`NO_DOMAIN`].
    pub(crate) fn wider(&self, level: usize, domain: u32) -> u32 {
        self.levels[level].domains[domain as usize].wider
    }

    /// The domain of a wider level that a domain lies in.
    pub(crate) fn ancestor(&self, mut level: usize, mut domain: u32, wide: usize) -> u32 {
        while level > wide && domain != NO_DOMAIN {
            domain = self.wider(level, domain);
            level -= 1;
        }
        domain
    }

    /// The cell of a node, as far as the first levels are concerned.
    pub(crate) fn cell(&self, levels: usize, node: NodeId) -> Cell {
        let domain = |level: usize| self.domain(level, node);
        let narrowest = (0..levels).rev().find(|&level| domain(level) != NO_DOMAIN);
        narrowest.map_or(Cell::OUTSIDE, |level| Cell { depth: level + 1, domain: domain(level) })
    }

    /// The domain of a level that a cell lies in, or [`NO_DOMAIN`].
    pub(crate) fn above(&self, cell: Cell, level: usize) -> u32 {
        if cell.depth > level { self.ancestor(cell.depth - 1, cell.domain, level) } else { NO_DOMAIN }
    }

    /// The values that make a cell, widest first.
    pub(crate) fn cell_path(&self, cell: Cell) -> Vec<&Text> {
        if cell.depth == 0 { Vec::new() } else { self.path(cell.depth - 1, cell.domain) }
    }

    /// Nodes of a domain, in no meaningful order.
    pub(crate) fn nodes(&self, level: usize, domain: u32) -> &[NodeId] {
        &self.levels[level].domains[domain as usize].nodes
    }

    /// The values that make a domain, widest first. Domains are ordered by it.
    pub(crate) fn path(&self, level: usize, domain: u32) -> Vec<&Text> {
        let mut path = Vec::with_capacity(level + 1);
        let (mut level, mut domain) = (level, domain);
        loop {
            let here = &self.levels[level].domains[domain as usize];
            path.push(&here.value);
            if level == 0 || here.wider == NO_DOMAIN {
                break;
            }
            (level, domain) = (level - 1, here.wider);
        }
        path.reverse();
        path
    }

    /// The name of a domain for people: its value, with those of wider levels before it.
    pub(crate) fn name(&self, level: usize, domain: u32) -> Text {
        let path = self.path(level, domain);
        let words: Vec<&str> = path.into_iter().map(AsRef::as_ref).collect();
        Text::from(words.join("/"))
    }

    /// Sums of something that nodes have, by domain of a level.
    pub(crate) fn sums(&self, level: usize, by_node: &[u32]) -> Vec<u64> {
        let table = &self.levels[level];
        let mut sums = vec![0_u64; table.domains.len()];
        for (&domain, &amount) in table.of_node.iter().zip(by_node) {
            if let Some(sum) = sums.get_mut(domain as usize) {
                *sum += u64::from(amount);
            }
        }
        sums
    }

    /// See the field.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Puts a node where its labels say; tells whether it moved.
    fn set(&mut self, id: NodeId, node: Option<&Node>) -> bool {
        let mut moved = false;
        let mut wider = NO_DOMAIN;
        for (level, (table, key)) in self.levels.iter_mut().zip(&self.keys).enumerate() {
            let value = node.and_then(|node| node.labels.get(key));
            let is_inside = level == 0 || wider != NO_DOMAIN;
            let domain = match value.filter(|_| is_inside) {
                Some(value) => table.domain_of(wider, value),
                None => NO_DOMAIN,
            };
            moved |= table.put(id, domain);
            wider = domain;
        }
        moved
    }
}

impl LevelTable {
    fn domain_of(&mut self, wider: u32, value: &str) -> u32 {
        let key = (wider, Text::from(value));
        if let Some(&domain) = self.ids.get(&key) {
            return domain;
        }
        let made = Domain { wider, value: key.1.clone(), nodes: Vec::new() };
        let domain = match self.vacant.pop() {
            Some(domain) => {
                self.domains[domain as usize] = made;
                domain
            }
            None => {
                self.domains.push(made);
                self.domains.len() as u32 - 1
            }
        };
        self.ids.insert(key, domain);
        domain
    }

    fn put(&mut self, id: NodeId, domain: u32) -> bool {
        let before = self.of_node.get(id.index()).copied().unwrap_or(NO_DOMAIN);
        if before == domain {
            return false;
        }
        if self.of_node.len() <= id.index() {
            self.of_node.resize(id.index() + 1, NO_DOMAIN);
        }
        self.of_node[id.index()] = domain;
        if domain != NO_DOMAIN {
            self.domains[domain as usize].nodes.push(id);
        }
        // Only now may the number become vacant: a node never moves to a new domain with the number of its old one.
        if before != NO_DOMAIN {
            self.leave(id, before);
        }
        true
    }

    /// Takes a node out of a domain, which is gone with its last node. Then narrower domains in it have no nodes either.
    fn leave(&mut self, id: NodeId, number: u32) {
        let domain = &mut self.domains[number as usize];
        if let Some(at) = domain.nodes.iter().position(|&node| node == id) {
            domain.nodes.swap_remove(at);
        }
        if domain.nodes.is_empty() {
            let vacant = Domain { wider: NO_DOMAIN, value: Text::default(), nodes: Vec::new() };
            let Domain { wider, value, .. } = std::mem::replace(domain, vacant);
            self.ids.remove(&(wider, value));
            self.vacant.push(number);
        }
    }
}

/// All lists of levels in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hierarchies {
    slots: Vec<Option<Hierarchy>>,
    vacant: Vec<HierarchyId>,
    ids: FxHashMap<Vec<Text>, HierarchyId>,
    versions: u64,
}

impl Hierarchies {
    /// The number of a list of levels, counted as used once more; a new one reads all nodes.
    pub(crate) fn acquire(&mut self, keys: &[Text], nodes: &NodeTable) -> HierarchyId {
        if let Some(&id) = self.ids.get(keys) {
            if let Some(hierarchy) = &mut self.slots[id.0 as usize] {
                hierarchy.uses += 1;
            }
            return id;
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            HierarchyId(self.slots.len() as u32 - 1)
        });
        self.versions += 1;
        let mut hierarchy = Hierarchy::new(keys, self.versions);
        for id in nodes.ids() {
            hierarchy.set(id, nodes.node(id));
        }
        self.slots[id.0 as usize] = Some(hierarchy);
        self.ids.insert(keys.to_vec(), id);
        id
    }

    /// Gives back one use.
    pub(crate) fn release(&mut self, id: HierarchyId) {
        let slot = &mut self.slots[id.0 as usize];
        let Some(hierarchy) = slot else { return };
        hierarchy.uses -= 1;
        if hierarchy.uses == 0 {
            self.ids.remove(&hierarchy.keys);
            *slot = None;
            self.vacant.push(id);
        }
    }

    /// A list of levels that is in use.
    pub(crate) fn get(&self, id: HierarchyId) -> &Hierarchy {
        match &self.slots[id.0 as usize] {
            Some(hierarchy) => hierarchy,
            None => panic!("hierarchy {id:?} is not in use"),
        }
    }

    /// The same for somebody who remembered a number that may have been given back.
    pub(crate) fn find(&self, id: HierarchyId) -> Option<&Hierarchy> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Takes in that a node has changed.
    pub(crate) fn set_node(&mut self, id: NodeId, node: Option<&Node>) {
        for hierarchy in self.slots.iter_mut().flatten() {
            if hierarchy.set(id, node) {
                self.versions += 1;
                hierarchy.version = self.versions;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(labels: &[(&str, &str)]) -> Node {
        Node { labels: labels.iter().copied().collect(), ..Node::default() }
    }

    #[test]
    fn racks_of_the_same_name_in_different_blocks_are_different_racks() {
        let mut table = NodeTable::default();
        let mut hierarchies = Hierarchies::default();
        let id = hierarchies.acquire(&["block".into(), "rack".into()], &table);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| table.id(&name.into()));
        hierarchies.set_node(a, Some(&node(&[("block", "1"), ("rack", "r")])));
        hierarchies.set_node(b, Some(&node(&[("block", "2"), ("rack", "r")])));
        hierarchies.set_node(c, Some(&node(&[("block", "2"), ("rack", "r")])));
        hierarchies.set_node(d, Some(&node(&[("rack", "r")])));
        let tree = hierarchies.get(id);
        assert_ne!(tree.domain(1, a), tree.domain(1, b));
        assert_eq!(tree.domain(1, b), tree.domain(1, c));
        assert_eq!(tree.domain(1, d), NO_DOMAIN, "it is in no block");
        assert_eq!(tree.nodes(1, tree.domain(1, b)), [b, c]);
        assert_eq!(tree.ancestor(1, tree.domain(1, c), 0), tree.domain(0, b));
        assert_eq!(tree.name(1, tree.domain(1, c)).as_ref(), "2/r");
    }

    #[test]
    fn domains_are_gone_with_their_last_node_and_their_numbers_are_used_again() {
        let mut table = NodeTable::default();
        let mut hierarchies = Hierarchies::default();
        let id = hierarchies.acquire(&["block".into(), "rack".into()], &table);
        let [a, b] = ["a", "b"].map(|name| table.id(&name.into()));
        hierarchies.set_node(b, Some(&node(&[("block", "b"), ("rack", "r")])));
        for name in 0..100 {
            let version = hierarchies.get(id).version();
            let (block, rack) = (format!("b{}", name / 3), format!("r{name}"));
            hierarchies.set_node(a, Some(&node(&[("block", &block), ("rack", &rack)])));
            let tree = hierarchies.get(id);
            assert_ne!(tree.version(), version, "whatever was summed up by number is out of date");
            assert_eq!(tree.name(1, tree.domain(1, a)).as_ref(), format!("{block}/{rack}"));
            assert_eq!(tree.ancestor(1, tree.domain(1, a), 0), tree.domain(0, a));
            assert_eq!(tree.sums(1, &[2, 5])[tree.domain(1, a) as usize], 2);
        }
        assert!(hierarchies.get(id).levels.iter().all(|level| level.domains.len() <= 3));
        assert!(hierarchies.get(id).levels.iter().all(|level| level.ids.len() == 2));
    }

    #[test]
    fn a_version_tells_whether_any_node_moved() {
        let mut table = NodeTable::default();
        let mut hierarchies = Hierarchies::default();
        let id = hierarchies.acquire(&["rack".into()], &table);
        let a = table.id(&"a".into());
        hierarchies.set_node(a, Some(&node(&[("rack", "1")])));
        let version = hierarchies.get(id).version();
        hierarchies.set_node(a, Some(&node(&[("rack", "1"), ("other", "x")])));
        assert_eq!(hierarchies.get(id).version(), version);
        hierarchies.set_node(a, None);
        assert_ne!(hierarchies.get(id).version(), version);
        assert!(hierarchies.get(id).nodes(0, 0).is_empty());
        hierarchies.release(id);
        assert!(hierarchies.find(id).is_none());
    }
}
