//! What makes a node more or less welcome to a shape, whatever other nodes there are: a number, and a class of facts
//! that have to be compared with those of other nodes first.

use super::fit::Strategy;
use super::profile::{Aspect, Profile, Weights};
use super::{Usage, balanced, image_locality};
use crate::rules::{node_affinity, taints};
use crate::state::images::{ImageId, Images};
use crate::state::nodes::{NodeId, NodeTable};
use crate::state::shape::{ResourceId, Resources, Shape};
use tutti_model::Resource;

/// Pods of so few images are known by the score of every combination of them.
const IMAGES_COMBINED_MAX: usize = 6;

/// A profile, with resources by number.
#[derive(Debug, Clone)]
pub(crate) struct Scoring {
    weights: Weights,
    strategy: Strategy,
    fit: Vec<(Counted, i64)>,
    balanced: Vec<Counted>,
    pub(super) required_affinity_weight: i64,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    resource: ResourceId,
    kind: Kind,
}

/// How a resource is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With padding.
    Cpu,
    /// With padding.
    Memory,
    Plain,
    /// Only where the pod asks for it.
    Extended,
}

impl Scoring {
    pub(crate) fn new(profile: &Profile, resources: &mut Resources) -> Self {
        let mut counted = |resource: &Resource| {
            let kind = match resource.name() {
                Resource::CPU => Kind::Cpu,
                Resource::MEMORY => Kind::Memory,
                "ephemeral-storage" => Kind::Plain,
                // Seats are not weighed.
                Resource::PODS => return None,
                _ => Kind::Extended,
            };
            Some(Counted { resource: resources.id(resource), kind })
        };
        let fit = profile.fit_resources.iter();
        Self {
            weights: profile.weights,
            strategy: profile.strategy.clone(),
            fit: fit.filter_map(|(r, weight)| Some((counted(r)?, i64::from(*weight)))).collect(),
            balanced: profile.balanced_resources.iter().filter_map(counted).collect(),
            required_affinity_weight: i64::from(profile.required_affinity_weight),
        }
    }

    /// The same with one score only.
    pub(crate) fn only(&self, aspect: Aspect) -> Self {
        Self { weights: self.weights.only(aspect), ..self.clone() }
    }

    pub(super) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// What a class adds to the score, given the extremes among the nodes that will do.
    pub(crate) fn of_class(&self, class: Class, worst: Class) -> i64 {
        let taints = taints::score(class.taints, worst.taints);
        let affinity = node_affinity::score(class.affinity, worst.affinity);
        i64::from(self.weights.taint_toleration) * taints + i64::from(self.weights.node_affinity) * affinity
    }
}

/// Facts about a node and a shape that count relative to other nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    /// Taints that would rather keep the pod away.
    taints: i64,
    /// Sum of weights of preferred terms.
    affinity: i64,
}

impl Class {
    /// The larger of both facts.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { taints: self.taints.max(other.taints), affinity: self.affinity.max(other.affinity) }
    }
}

/// How a node stands with a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rating {
    pub(crate) class: Class,
    /// Scores that depend on the node alone, weighted.
    pub(crate) local: i64,
}

/// A shape, made ready for being compared on many nodes.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    /// Resource, weight, what the shape adds.
    fit: Vec<(Counted, i64, i64)>,
    /// Empty for shapes that ask for none of these.
    balanced: Vec<(ResourceId, i64)>,
    locality: Locality,
}

impl Measure {
    pub(crate) fn new(scoring: &Scoring, shape: &Shape, nodes: &NodeTable) -> Self {
        let asked = |resource| {
            let found = shape.requests.iter().find(|&&(requested, _)| requested == resource);
            found.map_or(0, |&(_, amount)| amount)
        };
        let is_left_out = |counted: &Counted| counted.kind == Kind::Extended && asked(counted.resource) == 0;
        let fit = scoring.fit.iter().filter(|(counted, _)| !is_left_out(counted));
        let fit = fit.map(|&(counted, weight)| {
            let padding = match counted.kind {
                Kind::Cpu => shape.padding.cpu,
                Kind::Memory => shape.padding.memory,
                Kind::Plain | Kind::Extended => 0,
            };
            (counted, weight, asked(counted.resource).saturating_add(padding))
        });
        let balanced = scoring.balanced.iter().filter(|counted| !is_left_out(counted));
        let mut balanced: Vec<(ResourceId, i64)> =
            balanced.map(|counted| (counted.resource, asked(counted.resource))).collect();
        // A pod that asks for nothing does not change any balance.
        if balanced.iter().all(|&(_, asked)| asked == 0) {
            balanced.clear();
        }
        Self { fit: fit.collect(), balanced, locality: Locality::new(&shape.images, nodes) }
    }

    /// Takes in that images were moved or nodes came and went. True if that changes the score of any node.
    pub(crate) fn refresh(&mut self, shape: &Shape, nodes: &NodeTable) -> bool {
        if shape.images.is_empty() {
            return false;
        }
        let before = std::mem::replace(&mut self.locality, Locality::new(&shape.images, nodes));
        !self.locality.scores_like(&before)
    }

    /// How a node stands.
    pub(crate) fn rating(&self, scoring: &Scoring, shape: &Shape, nodes: &NodeTable, node: NodeId) -> Rating {
        let weights = &scoring.weights;
        let fit = self.fit.iter().map(|&(counted, weight, asked)| {
            let padding = match counted.kind {
                Kind::Cpu => nodes.padding(node).cpu,
                Kind::Memory => nodes.padding(node).memory,
                Kind::Plain | Kind::Extended => 0,
            };
            (usage(nodes, node, counted.resource, padding, asked), weight)
        });
        let local = i64::from(weights.resources_fit) * scoring.strategy.score(fit)
            + i64::from(weights.balanced_allocation) * self.balance(nodes, node)
            + i64::from(weights.image_locality) * self.locality.score(nodes.images(), node);
        Rating { class: class(shape, nodes, node), local }
    }

    fn balance(&self, nodes: &NodeTable, node: NodeId) -> i64 {
        match self.balanced[..] {
            [] => 0,
            [(a, asked_a), (b, asked_b)] => {
                balanced::score(&[usage(nodes, node, a, 0, asked_a), usage(nodes, node, b, 0, asked_b)])
            }
            ref resources => {
                let usages =
                    resources.iter().map(|&(resource, asked)| usage(nodes, node, resource, 0, asked));
                balanced::score(&usages.collect::<Vec<Usage>>())
            }
        }
    }
}

fn usage(nodes: &NodeTable, node: NodeId, resource: ResourceId, padding: i64, asked: i64) -> Usage {
    let capacity = nodes.allocatable(node, resource);
    let before = capacity.saturating_sub(nodes.free(node, resource)).saturating_add(padding).max(0);
    Usage { before, after: before.saturating_add(asked), capacity }
}

fn class(shape: &Shape, nodes: &NodeTable, node: NodeId) -> Class {
    match nodes.node(node) {
        Some(node) if !node.taints.is_empty() || !shape.prefers.is_empty() => Class {
            taints: taints::count(&node.taints, &shape.tolerations),
            affinity: node_affinity::sum(&shape.prefers, node),
        },
        _ => Class::default(),
    }
}

/// The images of a shape and what each is worth where it is.
#[derive(Debug, Clone)]
struct Locality {
    images: Vec<(ImageId, i64)>,
}

impl Locality {
    fn new(images: &[ImageId], nodes: &NodeTable) -> Self {
        let worth = |&id: &ImageId| {
            let (size, nodes_with) = nodes.images().size_and_nodes(id);
            (id, image_locality::worth(size, nodes_with, nodes.nodes_count()))
        };
        Self { images: images.iter().map(worth).collect() }
    }

    fn score(&self, images: &Images, node: NodeId) -> i64 {
        let present = self.images.iter().filter(|&&(id, _)| images.has(node, id));
        image_locality::score(present.map(|&(_, worth)| worth).sum(), self.images.len())
    }

    /// True if no node's score differs between the two, as far as this can be told cheaply. Images spread all the
    /// time, but what an image is worth must change much to change a score.
    fn scores_like(&self, other: &Self) -> bool {
        let count = self.images.len();
        if count != other.images.len() || count > IMAGES_COMBINED_MAX {
            return false;
        }
        let score = |locality: &Self, chosen: usize| {
            let present = locality.images.iter().enumerate().filter(|&(at, _)| chosen >> at & 1 == 1);
            image_locality::score(present.map(|(_, &(_, worth))| worth).sum(), count)
        };
        (0..1_usize << count).all(|chosen| score(self, chosen) == score(other, chosen))
    }
}
