//! Which nodes have which images. Only for choosing among nodes.

use crate::state::nodes::NodeId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tutti_model::{NodeImage, Text};

/// An image name, as the engine numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ImageId(u32);

#[derive(Debug, Clone)]
struct Entry {
    name: Text,
    /// Nodes that have it and pods that need it.
    uses: u32,
    /// Nodes by the size that they report; sizes of one image may differ between platforms.
    sizes: BTreeMap<i64, u32>,
    nodes: u32,
}

/// All images that some node has or some pod needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Images {
    entries: Vec<Option<Entry>>,
    vacant: Vec<ImageId>,
    ids: FxHashMap<Text, ImageId>,
    /// By node, sorted: image and size.
    on_node: Vec<Vec<(ImageId, i64)>>,
}

impl Images {
    /// The number of an image, counted as used once more.
    pub(crate) fn acquire(&mut self, name: &Text) -> ImageId {
        let id = match self.ids.get(name) {
            Some(&id) => id,
            None => {
                let id = self.vacant.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    ImageId(self.entries.len() as u32 - 1)
                });
                let entry = Entry { name: name.clone(), uses: 0, sizes: BTreeMap::new(), nodes: 0 };
                self.entries[id.0 as usize] = Some(entry);
                self.ids.insert(name.clone(), id);
                id
            }
        };
        if let Some(entry) = &mut self.entries[id.0 as usize] {
            entry.uses += 1;
        }
        id
    }

    /// Counts images as used once more.
    pub(crate) fn retain(&mut self, ids: &[ImageId]) {
        for id in ids {
            if let Some(entry) = &mut self.entries[id.0 as usize] {
                entry.uses += 1;
            }
        }
    }

    /// Gives back one use of each.
    pub(crate) fn release_all(&mut self, ids: &[ImageId]) {
        for &id in ids {
            self.release(id);
        }
    }

    fn release(&mut self, id: ImageId) {
        let slot = &mut self.entries[id.0 as usize];
        let Some(entry) = slot else { return };
        entry.uses -= 1;
        if entry.uses == 0 {
            self.ids.remove(&entry.name);
            *slot = None;
            self.vacant.push(id);
        }
    }

    /// Sets what a node has. True if that is something else than before.
    pub(crate) fn set_node(&mut self, node: NodeId, images: &[NodeImage]) -> bool {
        if self.on_node.len() <= node.index() {
            if images.is_empty() {
                return false;
            }
            self.on_node.resize(node.index() + 1, Vec::new());
        }
        let mut after: Vec<(ImageId, i64)> =
            images.iter().map(|image| (self.acquire(&image.name), image.size)).collect();
        after.sort_unstable();
        let before = std::mem::replace(&mut self.on_node[node.index()], after.clone());
        let is_news = before != after;
        if is_news {
            for &(id, size) in &after {
                self.count(id, size, true);
            }
            for &(id, size) in &before {
                self.count(id, size, false);
            }
        }
        for (id, _) in before {
            self.release(id);
        }
        is_news
    }

    /// The name of an image in use.
    pub(super) fn name(&self, id: ImageId) -> Option<&Text> {
        self.entries.get(id.0 as usize)?.as_ref().map(|entry| &entry.name)
    }

    /// Images of a node, by name, and their sizes.
    pub(super) fn on(&self, node: NodeId) -> Vec<(&Text, i64)> {
        let images = self.on_node.get(node.index()).into_iter().flatten();
        images.filter_map(|&(id, size)| Some((self.name(id)?, size))).collect()
    }

    /// True if the node has the image.
    pub(crate) fn has(&self, node: NodeId, id: ImageId) -> bool {
        let images = self.on_node.get(node.index());
        images.is_some_and(|images| images.binary_search_by_key(&id, |&(id, _)| id).is_ok())
    }

    /// The largest size that any node reports, so that it does not matter who reported first; and how many nodes
    /// have it.
    pub(crate) fn size_and_nodes(&self, id: ImageId) -> (i64, usize) {
        match &self.entries[id.0 as usize] {
            Some(entry) => (entry.sizes.last_key_value().map_or(0, |(&size, _)| size), entry.nodes as usize),
            None => (0, 0),
        }
    }

    fn count(&mut self, id: ImageId, size: i64, add: bool) {
        let Some(entry) = &mut self.entries[id.0 as usize] else {
            return;
        };
        let of_size = entry.sizes.entry(size).or_default();
        if add {
            *of_size += 1;
            entry.nodes += 1;
            return;
        }
        *of_size -= 1;
        entry.nodes -= 1;
        if *of_size == 0 {
            entry.sizes.remove(&size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::nodes::NodeTable;

    fn image(name: &str, size: i64) -> NodeImage {
        NodeImage { name: name.into(), size }
    }

    #[test]
    fn an_image_is_counted_where_it_is_and_forgotten_when_nobody_has_or_needs_it() {
        let (mut images, mut nodes) = (Images::default(), NodeTable::default());
        let (a, b) = (nodes.id(&"a".into()), nodes.id(&"b".into()));
        let needed = images.acquire(&"app:v1".into());
        assert_eq!(images.size_and_nodes(needed), (0, 0));
        assert!(images.set_node(a, &[image("app:v1", 5), image("other:v1", 9)]));
        assert!(images.set_node(b, &[image("app:v1", 7)]));
        assert!(!images.set_node(b, &[image("app:v1", 7)]), "the same again is no news");
        assert_eq!(images.size_and_nodes(needed), (7, 2));
        assert!(images.has(a, needed));
        assert!(images.set_node(b, &[]));
        assert_eq!(images.size_and_nodes(needed), (5, 1));
        assert!(!images.has(b, needed));
        assert!(images.set_node(a, &[]));
        images.release_all(&[needed]);
        assert!(images.ids.is_empty() && images.entries.iter().all(Option::is_none));
    }

    #[test]
    fn a_number_that_is_still_used_is_not_given_away() {
        let mut images = Images::default();
        let first = images.acquire(&"a".into());
        images.retain(&[first]);
        images.release_all(&[first]);
        assert_ne!(images.acquire(&"b".into()), first);
        images.release_all(&[first]);
        assert_eq!(images.acquire(&"c".into()), first);
    }
}
