//! The slow, obvious answer to "what is the best placement of these groups?": every placement is looked at.

use crate::check::validator::group_rules::{Cluster, Judge, Worth, copies};
use crate::check::validator::violations;
use tutti_model::{Node, Pod, Resource};

/// What the best placement of pods that wait is worth; nothing if there is none.
pub fn best(cluster: Cluster<'_>) -> Option<Worth> {
    let mut wanting: Vec<&Pod> = cluster.pods.iter().filter(|pod| waits(pod)).collect();
    wanting.sort_by_key(|pod| order(pod));
    let takes = |pod: &Pod| -> Vec<bool> {
        cluster.nodes.iter().map(|node| copies(cluster.pods, node, pod) > 0).collect()
    };
    let takes = wanting.iter().map(|pod| takes(pod)).collect();
    let mut search = Search { cluster, takes, wanting, placed: Vec::new(), best: None };
    search.place(0, 0);
    search.best
}

/// True if it can be placed now.
fn waits(pod: &Pod) -> bool {
    pod.node.is_none() && !pod.phase.is_terminal() && !pod.terminating && pod.gates.is_empty()
}

/// Alike pods next to each other, so that only one order of them is tried.
fn order(pod: &Pod) -> impl Ord + use<> {
    (
        pod.group.clone(),
        pod.leader,
        pod.rank,
        pod.requests.clone(),
        pod.affinity.clone(),
        (pod.tolerations.clone(), pod.features.clone()),
        (pod.labels.clone(), pod.inter_pod.clone(), pod.ports.clone()),
    )
}

struct Search<'a> {
    cluster: Cluster<'a>,
    /// By pod and node: whether the node takes it with nobody new there.
    takes: Vec<Vec<bool>>,
    wanting: Vec<&'a Pod>,
    placed: Vec<(&'a Pod, &'a Node)>,
    best: Option<Worth>,
}

impl Search<'_> {
    /// Decides about the pods from `index` on; an alike predecessor sits on a node not after `first`.
    fn place(&mut self, index: usize, first: usize) {
        let most = (self.placed.len() + self.wanting.len() - index) as u32;
        if most == 0 || self.best.as_ref().is_some_and(|best| best.placed > most) {
            return;
        }
        let Some(&pod) = self.wanting.get(index) else {
            self.judge();
            return;
        };
        let is_alike = self.wanting.get(index + 1).is_some_and(|next| order(next) == order(pod));
        for at in first..self.cluster.nodes.len() {
            let node = &self.cluster.nodes[at];
            if self.takes[index][at] && self.has_room(pod, node) {
                self.placed.push((pod, node));
                self.place(index + 1, if is_alike { at } else { 0 });
                self.placed.pop();
            }
        }
        // Without this pod; then without its likes, too, since they could stand in for it.
        let likes = self.wanting[index + 1..].iter().take_while(|next| order(next) == order(pod)).count();
        self.place(index + 1 + likes, 0);
    }

    fn has_room(&self, pod: &Pod, node: &Node) -> bool {
        let running = self.cluster.pods.iter();
        let running =
            running.filter(|other| other.node.as_ref() == Some(&node.name) && !other.phase.is_terminal());
        let new = self.placed.iter().filter(|(_, other)| other.name == node.name).map(|(pod, _)| *pod);
        let there: Vec<&Pod> = running.chain(new).collect();
        pod.requests.iter().filter(|&(_, amount)| amount > 0).all(|(resource, amount): (&Resource, i64)| {
            let used: i64 = there.iter().map(|other| other.requests.get(resource.name())).sum();
            used + amount <= node.allocatable.get(resource.name())
        })
    }

    fn judge(&mut self) {
        let judge = Judge::new(self.cluster, &self.placed);
        if judge.violations().is_empty() && self.are_wishes_fulfilled() {
            let worth = judge.worth();
            if self.best.as_ref().is_none_or(|best| *best < worth) {
                self.best = Some(worth);
            }
        }
    }

    /// True if pods have nothing against each other, those that run included.
    fn are_wishes_fulfilled(&self) -> bool {
        let has_wishes = |pod: &Pod| !pod.inter_pod.is_empty() || !pod.ports.is_empty();
        if !self.cluster.pods.iter().any(has_wishes) {
            return true;
        }
        let running: Vec<Pod> = self.cluster.pods.iter().filter(|pod| pod.node.is_some()).cloned().collect();
        let placed =
            self.placed.iter().map(|&(pod, node)| Pod { node: Some(node.name.clone()), ..pod.clone() });
        let placed: Vec<Pod> = placed.collect();
        violations(self.cluster.nodes, &running, &placed).is_empty()
    }
}
