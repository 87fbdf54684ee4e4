//! Domains: nodes that share the value of a label. Kept for every label that somebody uses as a topology key.

use crate::state::nodes::{NodeId, NodeTable};
use rustc_hash::FxHashMap;
use tutti_model::{Node, Text};

/// A label key that divides nodes into domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(u32);

/// The nodes with one value of a key. Numbers are local to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DomainId(pub(crate) u32);

impl DomainId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone)]
struct Key {
    name: Text,
    uses: u32,
    /// Values in the order of first sight. A value keeps its number while the key is in use.
    values: FxHashMap<Text, DomainId>,
    names: Vec<Text>,
    of_node: Vec<Option<DomainId>>,
}

/// All keys in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topology {
    keys: Vec<Option<Key>>,
    ids: FxHashMap<Text, KeyId>,
}

impl Topology {
    /// The number of a key, counted as used once more; a new key reads all nodes.
    pub(crate) fn acquire(&mut self, name: &Text, nodes: &NodeTable) -> KeyId {
        if let Some(&id) = self.ids.get(name) {
            if let Some(key) = &mut self.keys[id.0 as usize] {
                key.uses += 1;
            }
            return id;
        }
        let at = self.keys.iter().position(Option::is_none).unwrap_or(self.keys.len());
        if at == self.keys.len() {
            self.keys.push(None);
        }
        let mut key =
            Key { name: name.clone(), uses: 1, values: FxHashMap::default(), names: vec![], of_node: vec![] };
        for id in nodes.ids() {
            key.set(id, nodes.node(id));
        }
        self.keys[at] = Some(key);
        let id = KeyId(at as u32);
        self.ids.insert(name.clone(), id);
        id
    }

    /// Gives back one use.
    pub(crate) fn release(&mut self, id: KeyId) {
        let slot = &mut self.keys[id.0 as usize];
        let Some(key) = slot else { return };
        key.uses -= 1;
        if key.uses == 0 {
            self.ids.remove(&key.name);
            *slot = None;
        }
    }

    /// The domain of a node, if it has the label.
    pub(crate) fn domain(&self, key: KeyId, node: NodeId) -> Option<DomainId> {
        self.key(key)?.of_node.get(node.index()).copied().flatten()
    }

    /// The domain of a value, if a node ever had it.
    pub(crate) fn domain_of_value(&self, key: KeyId, value: &str) -> Option<DomainId> {
        self.key(key)?.values.get(value).copied()
    }

    /// How many values of the key were ever seen.
    pub(crate) fn domains_count(&self, key: KeyId) -> usize {
        self.key(key).map_or(0, |key| key.names.len())
    }

    /// Takes in that a node has changed; tells for every key from where to where it moved.
    pub(crate) fn set_node(
        &mut self,
        id: NodeId,
        node: Option<&Node>,
    ) -> Vec<(KeyId, Option<DomainId>, Option<DomainId>)> {
        let mut moves = Vec::new();
        for (index, key) in self.keys.iter_mut().enumerate() {
            if let Some(key) = key {
                let before = key.of_node.get(id.index()).copied().flatten();
                let after = key.set(id, node);
                if before != after {
                    moves.push((KeyId(index as u32), before, after));
                }
            }
        }
        moves
    }

    /// The label of a key in use.
    pub(super) fn name(&self, id: KeyId) -> Option<&Text> {
        Some(&self.key(id)?.name)
    }

    fn key(&self, id: KeyId) -> Option<&Key> {
        self.keys.get(id.0 as usize)?.as_ref()
    }
}

impl Key {
    fn set(&mut self, id: NodeId, node: Option<&Node>) -> Option<DomainId> {
        let value = node.and_then(|node| node.labels.get(&self.name));
        let domain = value.map(|value| match self.values.get(value) {
            Some(&domain) => domain,
            None => {
                let (domain, name) = (DomainId(self.names.len() as u32), Text::from(value));
                self.names.push(name.clone());
                self.values.insert(name, domain);
                domain
            }
        });
        if self.of_node.len() <= id.index() {
            self.of_node.resize(id.index() + 1, None);
        }
        self.of_node[id.index()] = domain;
        domain
    }
}
