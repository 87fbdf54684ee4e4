//! The slow, obvious answer to "can at least this many of these pods be placed?": a plain depth-first search that
//! knows only the definition of validity. Tests hold the engine against it on small instances.

pub mod tree_oracle;

use crate::check::validator::{violations, violations_for_good, volume_violations};
use tutti_model::{Node, Pod, Storage};

/// True if at least `need` of `wanting` can be placed together beside `running`.
pub fn placeable(nodes: &[Node], running: &[Pod], wanting: &[Pod], need: usize) -> bool {
    placeable_with(&Storage::default(), nodes, running, wanting, need)
}

/// The same where pods have volume claims.
pub fn placeable_with(
    storage: &Storage,
    nodes: &[Node],
    running: &[Pod],
    wanting: &[Pod],
    need: usize,
) -> bool {
    // Alike pods next to each other, so that only one order of them is tried.
    let mut wanting: Vec<&Pod> = wanting.iter().collect();
    wanting.sort_by_key(|pod| {
        (
            pod.requests.clone(),
            pod.affinity.clone(),
            pod.tolerations.clone(),
            pod.labels.clone(),
            pod.inter_pod.clone(),
            pod.volume_claims.clone(),
        )
    });
    let mut search = Oracle { nodes, storage, running, wanting, need, placed: Vec::new() };
    search.place(0, 0)
}

struct Oracle<'a> {
    nodes: &'a [Node],
    storage: &'a Storage,
    running: &'a [Pod],
    wanting: Vec<&'a Pod>,
    need: usize,
    placed: Vec<Pod>,
}

impl Oracle<'_> {
    /// Decides about the pods from `index` on; an alike predecessor sits on a node not after `first_node`.
    fn place(&mut self, index: usize, first_node: usize) -> bool {
        if self.placed.len() >= self.need && violations(self.nodes, self.running, &self.placed).is_empty() {
            return true;
        }
        if index == self.wanting.len() || self.placed.len() + (self.wanting.len() - index) < self.need {
            return false;
        }
        let pod = self.wanting[index];
        let next_is_alike = self.wanting.get(index + 1).is_some_and(|next| alike(pod, next));
        for at in first_node..self.nodes.len() {
            self.placed.push(Pod { node: Some(self.nodes[at].name.clone()), ..pod.clone() });
            if violations_for_good(self.nodes, self.running, &self.placed).is_empty()
                && volume_violations(self.nodes, self.storage, self.running, &self.placed).is_empty()
                && self.place(index + 1, if next_is_alike { at } else { 0 })
            {
                return true;
            }
            self.placed.pop();
        }
        // Without this pod; then without its likes, too, since they could stand in for it.
        let likes = self.wanting[index + 1..].iter().take_while(|next| alike(pod, next)).count();
        self.place(index + 1 + likes, 0)
    }
}

fn alike(a: &Pod, b: &Pod) -> bool {
    a.requests == b.requests
        && a.affinity == b.affinity
        && a.tolerations == b.tolerations
        && a.features == b.features
        && a.labels == b.labels
        && a.ports == b.ports
        && a.inter_pod == b.inter_pod
        && a.volume_claims == b.volume_claims
}
