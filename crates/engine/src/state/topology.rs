//! Domains: nodes that share the value of a label. Kept for every label that is used as a topology key.

use crate::state::nodes::{NodeId, NodeTable};
use rustc_hash::FxHashMap;
use tutti_model::{Node, Text};

/// A label key that divides nodes into domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(u32);

/// The nodes with one value of a key. Numbers are local to the key, are used again once the last node has left, and
/// never decide anything.
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
    /// Values that some node has.
    values: FxHashMap<Text, DomainId>,
    /// By number.
    domains: Vec<Option<Domain>>,
    vacant: Vec<DomainId>,
    /// By row of the node; rows beyond the end are in no domain.
    of_node: Vec<Option<DomainId>>,
}

/// A domain with at least one node.
#[derive(Debug, Clone)]
struct Domain {
    value: Text,
    nodes: u32,
}

/// All keys in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topology {
    keys: Vec<Option<Key>>,
    vacant: Vec<KeyId>,
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
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.keys.push(None);
            KeyId(self.keys.len() as u32 - 1)
        });
        let mut key = Key::new(name);
        for id in nodes.ids() {
            key.set(id, nodes.node(id));
        }
        self.keys[id.0 as usize] = Some(key);
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
            self.vacant.push(id);
        }
    }

    /// The domain of a node, if it has the label.
    pub(crate) fn domain(&self, key: KeyId, node: NodeId) -> Option<DomainId> {
        self.key(key)?.of_node.get(node.index()).copied().flatten()
    }

    /// The domain of a value, if a node has it.
    pub(crate) fn domain_of_value(&self, key: KeyId, value: &str) -> Option<DomainId> {
        self.key(key)?.values.get(value).copied()
    }

    /// One more than the highest number that a domain of the key has had. Some numbers may be vacant.
    pub(crate) fn domains_count(&self, key: KeyId) -> usize {
        self.key(key).map_or(0, |key| key.domains.len())
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
                let (before, after) = key.set(id, node);
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
    fn new(name: &Text) -> Self {
        Self {
            name: name.clone(),
            uses: 1,
            values: FxHashMap::default(),
            domains: Vec::new(),
            vacant: Vec::new(),
            of_node: Vec::new(),
        }
    }

    /// Puts a node where its labels say; tells where it was and where it is.
    fn set(&mut self, id: NodeId, node: Option<&Node>) -> (Option<DomainId>, Option<DomainId>) {
        let before = self.of_node.get(id.index()).copied().flatten();
        let after = node.and_then(|node| node.labels.get(&self.name)).map(|value| self.domain(value));
        if before == after {
            return (before, after);
        }
        if self.of_node.len() <= id.index() {
            self.of_node.resize(id.index() + 1, None);
        }
        self.of_node[id.index()] = after;
        if let Some(domain) = after.and_then(|domain| self.domains[domain.index()].as_mut()) {
            domain.nodes += 1;
        }
        // Only now may the number become vacant: a node never moves to a new domain with the number of its old one.
        if let Some(domain) = before {
            self.leave(domain);
        }
        (before, after)
    }

    /// The domain of a value, made if need be.
    fn domain(&mut self, value: &str) -> DomainId {
        if let Some(&domain) = self.values.get(value) {
            return domain;
        }
        let domain = self.vacant.pop().unwrap_or_else(|| {
            self.domains.push(None);
            DomainId(self.domains.len() as u32 - 1)
        });
        let value = Text::from(value);
        self.domains[domain.index()] = Some(Domain { value: value.clone(), nodes: 0 });
        self.values.insert(value, domain);
        domain
    }

    /// Takes a node out of a domain, which is gone with its last node.
    fn leave(&mut self, id: DomainId) {
        let slot = &mut self.domains[id.index()];
        let Some(domain) = slot else { return };
        domain.nodes -= 1;
        if domain.nodes == 0 {
            self.values.remove(&domain.value);
            *slot = None;
            self.vacant.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(rack: &str) -> Node {
        Node { labels: [("rack", rack)].into_iter().collect(), ..Node::default() }
    }

    #[test]
    fn the_number_of_a_domain_is_used_again_once_its_last_node_has_left() {
        let (mut topology, mut nodes) = (Topology::default(), NodeTable::default());
        let key = topology.acquire(&"rack".into(), &nodes);
        let [a, b, c] = ["a", "b", "c"].map(|name| nodes.id(&name.into()));
        topology.set_node(a, Some(&node("1")));
        topology.set_node(b, Some(&node("1")));
        let first = topology.domain(key, a);
        topology.set_node(a, None);
        assert_eq!(topology.domain_of_value(key, "1"), first, "b is still there");
        topology.set_node(b, Some(&node("2")));
        assert_eq!(topology.domain_of_value(key, "1"), None);
        assert_ne!(topology.domain(key, b), first, "a node never moves to the number that it had");
        topology.set_node(c, Some(&node("3")));
        assert_eq!(topology.domain(key, c), first);
        assert_eq!(topology.domains_count(key), 2);
    }

    #[test]
    fn however_many_names_nodes_have_had_only_those_that_are_left_count() {
        let (mut topology, mut nodes) = (Topology::default(), NodeTable::default());
        let key = topology.acquire(&"rack".into(), &nodes);
        let id = nodes.id(&"a".into());
        for name in 0..1_000 {
            topology.set_node(id, Some(&node(&name.to_string())));
        }
        assert!(topology.domains_count(key) <= 2);
        topology.release(key);
        assert_eq!(topology.acquire(&"zone".into(), &nodes), key, "and so it is with keys");
    }
}
