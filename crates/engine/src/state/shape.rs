//! Shapes: what a pod requires, made canonical and kept once.
//!
//! A gang of a thousand identical workers is one shape and a count. What makes pods different without making
//! their requirements different (name, labels, age) is not part of the shape.

use crate::score::ProfileId;
use crate::state::counts::SelectorId;
use crate::state::images::ImageId;
use crate::state::topology::KeyId;
use crate::state::volumes::{Needs, Resolved};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use tutti_model::{
    HostPort, NodeAffinity, NodeSelectorTerm, Padding, Pod, Resource, Text, Toleration, Weighted,
};

/// Shapes that are kept although nobody uses them.
const IDLE_MAX: usize = 256;

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
    /// What it counts for beyond that when nodes are compared.
    pub(crate) padding: Padding,
    /// Nodes that it may use, by label and name.
    pub(crate) affinity: NodeAffinity,
    /// True if that is all nodes.
    pub(crate) selects_all: bool,
    /// Taints that it ignores.
    pub(crate) tolerations: Vec<Toleration>,
    /// Features that a node must declare, sorted.
    pub(crate) features: Vec<Text>,
    /// Ports of the node, sorted.
    pub(crate) ports: Vec<HostPort>,
    /// Nodes that it would like, sorted.
    pub(crate) prefers: Vec<Weighted<NodeSelectorTerm>>,
    /// Images that it is made of, once for every use, sorted.
    pub(crate) images: Vec<ImageId>,
    /// What its volume claims require; room for volumes of its own is among the requests.
    pub(crate) volumes: Needs,
    /// What it requires of other pods, and what it would like.
    pub(crate) inter_pod: InterPodTerms,
    /// Live selectors that match it: not its labels, or the index label of every worker would make it unique.
    pub(crate) matches: Vec<SelectorId>,
    /// How nodes are compared for it.
    pub(crate) profile: ProfileId,
}

/// What a pod and others have to do with each other.
#[derive(Debug, Default)]
pub(crate) struct AboutPods {
    /// What it requires of them and what it would like.
    pub(crate) inter_pod: InterPodTerms,
    /// Live selectors that match it.
    pub(crate) matches: Vec<SelectorId>,
}

/// What a pod takes from a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) requests: &'a [(ResourceId, i64)],
    pub(crate) padding: Padding,
    /// Volumes that take room once, whoever uses them there.
    pub(crate) shared: &'a [(ResourceId, Text)],
}

impl<'a> Load<'a> {
    /// Room that is kept for somebody who does not sit there yet.
    pub(crate) fn promised(requests: &'a [(ResourceId, i64)]) -> Self {
        Self { requests, padding: Padding::default(), shared: &[] }
    }
}

/// What a pod requires of other pods and what it would like, with selectors and topology keys by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct InterPodTerms {
    /// Pods that match must be in the same domain of each of these keys.
    pub(crate) affinity: Option<(SelectorId, Vec<KeyId>)>,
    /// No pod that matches may be in the same domain.
    pub(crate) anti_affinity: Vec<(SelectorId, KeyId)>,
    /// Limits to unevenness.
    pub(crate) spread: Vec<SpreadTerm>,
    /// What only makes a difference between nodes that will do.
    pub(crate) preferred: PreferredTerms,
}

/// InterPodTerms about other pods that need not be fulfilled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct PreferredTerms {
    /// Pods that are welcome near (a weight above zero) or unwelcome (below).
    pub(crate) pulls: Vec<(SelectorId, KeyId, i64)>,
    /// Required terms to be near, term by term: they pull pods that come later.
    pub(crate) required: Vec<(SelectorId, KeyId)>,
    /// Unevenness that is unwelcome.
    pub(crate) spread: Vec<PreferredSpread>,
    /// True if nobody asked for evenness: then nodes that lack one of the labels are compared all the same.
    pub(crate) spread_by_default: bool,
}

/// A spread constraint that should hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PreferredSpread {
    pub(crate) selector: SelectorId,
    pub(crate) key: KeyId,
    pub(crate) max_skew: u32,
    /// The key is that of node names, for which other rules hold.
    pub(crate) is_hostname: bool,
    pub(crate) honors_affinity: bool,
    pub(crate) honors_taints: bool,
}

impl PreferredTerms {
    /// True if other pods make no difference to this one.
    pub(crate) fn is_empty(&self) -> bool {
        self.pulls.is_empty() && self.spread.is_empty()
    }

    /// Every selector and key, once for every term that uses it.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (SelectorId, KeyId)> {
        let pulls = self.pulls.iter().map(|&(selector, key, _)| (selector, key));
        let spread = self.spread.iter().map(|spread| (spread.selector, spread.key));
        pulls.chain(self.required.iter().copied()).chain(spread)
    }
}

/// A spread constraint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SpreadTerm {
    pub(crate) selector: SelectorId,
    pub(crate) key: KeyId,
    pub(crate) max_skew: u32,
    pub(crate) min_domains: u32,
    pub(crate) honors_affinity: bool,
    pub(crate) honors_taints: bool,
}

impl InterPodTerms {
    /// True if nothing is required of other pods.
    pub(crate) fn is_empty(&self) -> bool {
        self.affinity.is_none() && self.anti_affinity.is_empty() && self.spread.is_empty()
    }

    /// True if neither what is required nor what is liked speaks of other pods.
    pub(crate) fn names_nobody(&self) -> bool {
        self.is_empty() && self.preferred.pairs().next().is_none()
    }

    /// Every pair of selector and key of what is required, once for every term that uses it.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (SelectorId, KeyId)> {
        let affinity =
            self.affinity.iter().flat_map(|(selector, keys)| keys.iter().map(|&key| (*selector, key)));
        affinity
            .chain(self.anti_affinity.iter().copied())
            .chain(self.spread.iter().map(|spread| (spread.selector, spread.key)))
    }
}

impl Shape {
    /// What one copy takes from a node.
    pub(crate) fn load(&self) -> Load<'_> {
        Load { requests: &self.requests, padding: self.padding, shared: &self.volumes.shared }
    }
}

/// A shape that was let go of, and the number that it had.
pub(crate) type Forgotten = (ShapeId, Arc<Shape>);

/// All shapes in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes {
    slots: Vec<Option<(Arc<Shape>, u32)>>,
    vacant: Vec<ShapeId>,
    /// Shapes that nobody uses, the longest unused first.
    idle: VecDeque<ShapeId>,
    ids: FxHashMap<Arc<Shape>, ShapeId>,
}

impl Shapes {
    /// The shape of a pod, counted as used once more, and whether it is new. A new shape owns its uses of images
    /// until it is forgotten.
    pub(crate) fn acquire(
        &mut self,
        pod: &Pod,
        profile: ProfileId,
        AboutPods { inter_pod, matches }: AboutPods,
        mut images: Vec<ImageId>,
        volumes: Resolved,
        resources: &mut Resources,
    ) -> (ShapeId, bool) {
        let mut requests: Vec<(ResourceId, i64)> = pod
            .requests
            .iter()
            .filter(|&(_, amount)| amount > 0)
            .map(|(resource, amount)| (resources.id(resource), amount))
            .collect();
        requests.extend(volumes.attach);
        requests.sort_unstable();
        let mut tolerations = pod.tolerations.clone();
        tolerations.sort_unstable();
        tolerations.dedup();
        let mut ports = pod.ports.clone();
        ports.sort_unstable();
        ports.dedup();
        let mut prefers = pod.preferences.nodes.clone();
        prefers.sort_unstable();
        images.sort_unstable();
        let (padding, affinity) = (pod.padding, pod.affinity.clone());
        self.intern(Shape {
            requests,
            padding,
            selects_all: affinity == NodeAffinity::default(),
            affinity,
            tolerations,
            features: pod.features.clone(),
            ports,
            prefers,
            images,
            volumes: volumes.needs,
            inter_pod,
            matches,
            profile,
        })
    }

    /// The same shape with other volumes, counted as used once, and whether it is new.
    pub(crate) fn acquire_with_volumes(
        &mut self,
        id: ShapeId,
        requests: Vec<(ResourceId, i64)>,
        volumes: Needs,
    ) -> (ShapeId, bool) {
        let shape = Shape { requests, volumes, ..Shape::clone(self.get(id)) };
        self.intern(shape)
    }

    /// The same shape matched by other selectors, counted as used once, and whether it is new.
    pub(crate) fn acquire_with_matches(&mut self, id: ShapeId, matches: Vec<SelectorId>) -> (ShapeId, bool) {
        let shape = Shape { matches, ..Shape::clone(self.get(id)) };
        self.intern(shape)
    }

    fn intern(&mut self, shape: Shape) -> (ShapeId, bool) {
        if let Some(&id) = self.ids.get(&shape) {
            if let Some((_, uses)) = &mut self.slots[id.index()] {
                if *uses == 0 {
                    self.idle.retain(|&other| other != id);
                }
                *uses += 1;
            }
            return (id, false);
        }
        let shape = Arc::new(shape);
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            ShapeId(self.slots.len() as u32 - 1)
        });
        self.slots[id.index()] = Some((Arc::clone(&shape), 1));
        self.ids.insert(shape, id);
        (id, true)
    }

    /// Gives back one use. A shape that nobody uses is kept for a while, because the next pod often looks like the
    /// last one; tells which shape is forgotten instead, if any.
    pub(crate) fn release(&mut self, id: ShapeId) -> Option<Forgotten> {
        let (shape, uses) = self.slots[id.index()].as_mut()?;
        *uses -= 1;
        if *uses > 0 {
            return None;
        }
        // What is known of other pods changes under a shape that nobody looks after.
        if !shape.inter_pod.names_nobody() || !shape.matches.is_empty() {
            return self.forget(id);
        }
        self.idle.push_back(id);
        if self.idle.len() > IDLE_MAX {
            self.idle.pop_front().and_then(|oldest| self.forget(oldest))
        } else {
            None
        }
    }

    fn forget(&mut self, id: ShapeId) -> Option<Forgotten> {
        let (shape, _) = self.slots[id.index()].take()?;
        self.ids.remove(&shape);
        self.vacant.push(id);
        Some((id, shape))
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

    fn acquire(shapes: &mut Shapes, name: &str, cpu: i64, resources: &mut Resources) -> ShapeId {
        let mut pod = Pod::new(ObjectKey::new("default", name), name);
        pod.requests.set(Resource::new("cpu"), cpu);
        let (profile, about_pods) = (ProfileId::default(), AboutPods::default());
        shapes.acquire(&pod, profile, about_pods, Vec::new(), Resolved::default(), resources).0
    }

    #[test]
    fn pods_that_require_the_same_share_a_shape() {
        let (mut shapes, mut resources) = (Shapes::default(), Resources::default());
        let one = acquire(&mut shapes, "a", 100, &mut resources);
        let two = acquire(&mut shapes, "b", 100, &mut resources);
        let other = acquire(&mut shapes, "c", 200, &mut resources);
        assert_eq!(one, two);
        assert_ne!(one, other);
    }

    #[test]
    fn a_shape_outlives_its_last_use_for_a_while() {
        let (mut shapes, mut resources) = (Shapes::default(), Resources::default());
        let id = acquire(&mut shapes, "a", 100, &mut resources);
        acquire(&mut shapes, "b", 100, &mut resources);
        assert!(shapes.release(id).is_none());
        assert!(shapes.release(id).is_none(), "the last use leaves it idle");
        assert_eq!(acquire(&mut shapes, "a", 100, &mut resources), id, "and it is found again");
        shapes.release(id);
        for cpu in 1..=IDLE_MAX as i64 {
            let other = acquire(&mut shapes, "x", 1_000 + cpu, &mut resources);
            let forgotten = shapes.release(other).map(|(id, _)| id);
            assert_eq!(forgotten, (cpu == IDLE_MAX as i64).then_some(id), "the longest unused goes first");
        }
        assert_eq!(acquire(&mut shapes, "c", 300, &mut resources), id, "the number is used again");
    }
}
