//! Shapes: what a pod requires, made canonical and kept once.
//!
//! A gang of a thousand identical workers is one shape and a count. What makes pods different without making
//! their requirements different (name, labels, age) is not part of the shape.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use tutti_model::taint::untolerated;
use tutti_model::{Node, NodeAffinity, Pod, Resource, Toleration};

/// A resource, as the engine numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceId(u32);

impl ResourceId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Numbers of resources, in the order in which they were first seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    names: Vec<Resource>,
    ids: FxHashMap<Resource, ResourceId>,
}

impl Resources {
    pub(crate) fn id(&mut self, resource: &Resource) -> ResourceId {
        if let Some(&id) = self.ids.get(resource) {
            return id;
        }
        let id = ResourceId(self.names.len() as u32);
        self.names.push(resource.clone());
        self.ids.insert(resource.clone(), id);
        id
    }

    pub(crate) fn name(&self, id: ResourceId) -> &Resource {
        &self.names[id.index()]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ResourceId> + use<> {
        (0..self.names.len() as u32).map(ResourceId)
    }

    pub(crate) fn name_at(&self, index: usize) -> &str {
        self.names[index].name()
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

/// A shape, as the engine numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShapeId(u32);

impl ShapeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a pod requires of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Amounts above zero, by number of the resource. A request of zero asks nothing of a node.
    pub(crate) requests: Vec<(ResourceId, i64)>,
    affinity: NodeAffinity,
    tolerations: Vec<Toleration>,
}

impl Shape {
    /// Why a pod of this shape may not use the node whatever is free there.
    pub(crate) fn forbidden(&self, node: &Node) -> Option<Forbidden> {
        if node.unschedulable && !self.tolerates_cordon() {
            return Some(Forbidden::Unschedulable);
        }
        if let Some(taint) = untolerated(&node.taints, &self.tolerations) {
            return Some(Forbidden::Taint(taint.key.clone()));
        }
        if !self.affinity.matches(&node.name, &node.labels) {
            return Some(Forbidden::Affinity);
        }
        None
    }

    /// How many copies fit into these amounts; `free` is indexed by resource.
    pub(crate) fn copies(&self, free: impl Fn(ResourceId) -> i64) -> u32 {
        let mut copies = i64::from(u32::MAX);
        for &(resource, amount) in &self.requests {
            copies = copies.min(free(resource).max(0) / amount);
        }
        copies as u32
    }

    /// A cordoned node carries the meaning of this taint, with or without the taint itself.
    fn tolerates_cordon(&self) -> bool {
        let taint = tutti_model::Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            value: "".into(),
            effect: tutti_model::Effect::NoSchedule,
        };
        self.tolerations.iter().any(|t| t.tolerates(&taint))
    }
}

/// Why a node is out of the question for a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Forbidden {
    Unschedulable,
    Taint(tutti_model::Text),
    Affinity,
}

/// All shapes in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes {
    slots: Vec<Option<(Arc<Shape>, u32)>>,
    vacant: Vec<ShapeId>,
    ids: FxHashMap<Arc<Shape>, ShapeId>,
}

impl Shapes {
    /// The shape of a pod, counted as used once more.
    pub(crate) fn acquire(&mut self, pod: &Pod, resources: &mut Resources) -> ShapeId {
        let mut requests: Vec<(ResourceId, i64)> = pod
            .requests
            .iter()
            .filter(|&(_, amount)| amount > 0)
            .map(|(resource, amount)| (resources.id(resource), amount))
            .collect();
        requests.sort_unstable();
        let mut tolerations = pod.tolerations.clone();
        tolerations.sort_unstable();
        tolerations.dedup();
        let shape = Shape {
            requests,
            affinity: pod.affinity.clone(),
            tolerations,
        };
        if let Some(&id) = self.ids.get(&shape) {
            if let Some((_, uses)) = &mut self.slots[id.index()] {
                *uses += 1;
            }
            return id;
        }
        let shape = Arc::new(shape);
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            ShapeId(self.slots.len() as u32 - 1)
        });
        self.slots[id.index()] = Some((Arc::clone(&shape), 1));
        self.ids.insert(shape, id);
        id
    }

    /// Gives back one use; the last one frees the number. True if it was the last.
    pub(crate) fn release(&mut self, id: ShapeId) -> bool {
        let Some((shape, uses)) = &mut self.slots[id.index()] else {
            return false;
        };
        *uses -= 1;
        if *uses > 0 {
            return false;
        }
        let shape = Arc::clone(shape);
        self.ids.remove(&shape);
        self.slots[id.index()] = None;
        self.vacant.push(id);
        true
    }

    /// A shape that is in use.
    ///
    /// # Panics
    /// If nobody uses the number: it is never handed out without a use being counted.
    pub(crate) fn get(&self, id: ShapeId) -> &Arc<Shape> {
        match &self.slots[id.index()] {
            Some((shape, _)) => shape,
            None => panic!("shape {id:?} is not in use"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_model::ObjectKey;

    fn pod(name: &str, cpu: i64) -> Pod {
        let mut pod = Pod::new(ObjectKey::new("default", name), name);
        pod.requests.set(Resource::new("cpu"), cpu);
        pod
    }

    #[test]
    fn pods_that_require_the_same_share_a_shape() {
        let (mut shapes, mut resources) = (Shapes::default(), Resources::default());
        let one = shapes.acquire(&pod("a", 100), &mut resources);
        let two = shapes.acquire(&pod("b", 100), &mut resources);
        let other = shapes.acquire(&pod("c", 200), &mut resources);
        assert_eq!(one, two);
        assert_ne!(one, other);
    }

    #[test]
    fn a_shape_lives_as_long_as_somebody_uses_it() {
        let (mut shapes, mut resources) = (Shapes::default(), Resources::default());
        let id = shapes.acquire(&pod("a", 100), &mut resources);
        shapes.acquire(&pod("b", 100), &mut resources);
        assert!(!shapes.release(id));
        assert!(shapes.release(id));
        assert_eq!(
            shapes.acquire(&pod("c", 300), &mut resources),
            id,
            "the number is used again"
        );
    }
}
