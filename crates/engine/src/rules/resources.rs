//! Resources: the requests of all pods on a node stay within what the node has allocatable.
//!
//! Kubernetes' `NodeResourcesFit`. Amounts are the sum of a pod's containers (init containers and overhead are settled
//! when the pod is read), and every pod takes one of the node's `pods`. Volumes that only one pod uses take room under a
//! resource of their driver. The score is in [`crate::score::fit`] and [`crate::score::balanced`].

use super::Cost;
use crate::refusal::NodeReason;
use crate::state::shape::{ResourceId, Shape};
use crate::state::volumes::attach_driver;
use std::fmt;
use tutti_model::Resource;

/// Copies of a shape that fit into what is free, by resource.
pub(crate) fn copies(shape: &Shape, free: impl Fn(ResourceId) -> i64) -> u32 {
    let mut copies = i64::from(u32::MAX);
    for &(resource, amount) in &shape.requests {
        copies = copies.min(free(resource).max(0) / amount);
    }
    copies as u32
}

/// Copies of a demand that fit into what is free, both in the same order of resources.
pub(crate) fn copies_of(demand: &[i64], free: &[i64]) -> u64 {
    let asked = demand.iter().zip(free).filter(|(demand, _)| **demand > 0);
    asked.map(|(demand, free)| (free / demand) as u64).min().unwrap_or(u64::from(u32::MAX))
}

/// True if a demand fits into what is free.
pub(crate) fn fits(demand: &[i64], free: &[i64]) -> bool {
    demand.iter().zip(free).all(|(demand, free)| demand <= free)
}

/// What a shape requests of a resource.
pub(crate) fn requested(shape: &Shape, resource: ResourceId) -> i64 {
    let request = shape.requests.iter().find(|&&(other, _)| other == resource);
    request.map_or(0, |&(_, amount)| amount)
}

/// Resources of which too little is free for one copy.
pub(crate) fn short<'a>(
    shape: &'a Shape,
    free: impl Fn(ResourceId) -> i64 + 'a,
) -> impl Iterator<Item = ResourceId> + 'a {
    let short = shape.requests.iter().filter(move |&&(resource, amount)| free(resource) < amount);
    short.map(|&(resource, _)| resource)
}

/// Steps of a look at a bin with so many resources.
pub(crate) fn cost(resources: usize) -> Cost {
    Cost { look: resources, ..Cost::default() }
}

/// True if the rule speaks with this reason.
pub(super) fn speaks(reason: &NodeReason) -> bool {
    matches!(reason, NodeReason::Insufficient(_))
}

/// The words of a refusal.
pub(crate) fn words(resource: &Resource, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match attach_driver(resource) {
        Some(driver) => write!(f, "no more volumes of {driver} can be attached"),
        None => write!(f, "Insufficient {resource}"),
    }
}
