//! The slow, obvious answer to "can at least this many of these pods be placed?": a plain depth-first search that
//! knows only the definition of validity. Tests hold the engine against it on small instances.

use crate::validator::violations;
use tutti_model::{Node, Pod};

/// True if at least `need` of `wanting` can be placed together beside `running`.
pub fn placeable(nodes: &[Node], running: &[Pod], wanting: &[Pod], need: usize) -> bool {
    // Alike pods next to each other, so that only one order of them is tried.
    let mut wanting: Vec<&Pod> = wanting.iter().collect();
    wanting.sort_by_key(|pod| {
        (
            pod.requests.clone(),
            pod.affinity.clone(),
            pod.tolerations.clone(),
        )
    });
    let mut search = Oracle {
        nodes,
        running,
        wanting,
        need,
        placed: Vec::new(),
    };
    search.place(0, 0)
}

struct Oracle<'a> {
    nodes: &'a [Node],
    running: &'a [Pod],
    wanting: Vec<&'a Pod>,
    need: usize,
    placed: Vec<Pod>,
}

impl Oracle<'_> {
    /// Decides about the pods from `index` on; an alike predecessor sits on a node not after `first_node`.
    fn place(&mut self, index: usize, first_node: usize) -> bool {
        if self.placed.len() >= self.need {
            return true;
        }
        if self.placed.len() + (self.wanting.len() - index) < self.need {
            return false;
        }
        let pod = self.wanting[index];
        let next_is_alike = self.wanting.get(index + 1).is_some_and(|next| {
            next.requests == pod.requests
                && next.affinity == pod.affinity
                && next.tolerations == pod.tolerations
        });
        for at in first_node..self.nodes.len() {
            self.placed.push(Pod {
                node: Some(self.nodes[at].name.clone()),
                ..pod.clone()
            });
            // Every rule so far only gets harder to satisfy as pods are added, so a violation is final.
            if violations(self.nodes, self.running, &self.placed).is_empty()
                && self.place(index + 1, if next_is_alike { at } else { 0 })
            {
                return true;
            }
            self.placed.pop();
        }
        // Without this pod; then without its likes, too, since they could stand in for it.
        let rest = &self.wanting[index + 1..];
        let alike = rest.iter().take_while(|p| {
            p.requests == pod.requests && p.affinity == pod.affinity && p.tolerations == pod.tolerations
        });
        let next = index + 1 + alike.count();
        if next == self.wanting.len() {
            self.placed.len() >= self.need
        } else {
            self.place(next, 0)
        }
    }
}
