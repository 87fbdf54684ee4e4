//! Pods that are larger than any node.

use super::super::knowledge::Knowledge;
use tutti_model::{Resource, ResourceList};

/// Said of requests that no node could ever meet, even if nothing else ran on it.
pub(super) fn too_large(place: &str, requests: &ResourceList, knowledge: &Knowledge) -> Option<String> {
    // That a pod takes the place of one pod goes without saying.
    let wanted =
        || requests.iter().filter(|(resource, amount)| *amount > 0 && resource.name() != Resource::PODS);
    let mut has_nodes = false;
    for node in knowledge.nodes() {
        has_nodes = true;
        let allocatable = &node.status.0.allocatable.0;
        if wanted().all(|(resource, amount)| allocatable.get(resource.name()) >= amount) {
            return None;
        }
    }
    if !has_nodes {
        return None;
    }
    let most = |name: &str| {
        let amounts = knowledge.nodes().map(|node| node.status.0.allocatable.0.get(name));
        amounts.max().unwrap_or(0)
    };
    let short = wanted().find(|(resource, amount)| most(resource.name()) < *amount);
    Some(match short {
        Some((resource, amount)) => format!(
            "{place}: a pod asks for {resource} {}, and the largest node has {}",
            resource.show(amount),
            resource.show(most(resource.name()))
        ),
        None => {
            let all: Vec<String> =
                wanted().map(|(resource, amount)| format!("{resource} {}", resource.show(amount))).collect();
            format!("{place}: no node has all that a pod asks for: {}", all.join(", "))
        }
    })
}
