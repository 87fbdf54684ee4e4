//! Machines: they come and go, are closed and opened, change their labels and their size.

use super::server::{SimPod, cpu, zone_labels};
use super::tally::Deed;
use super::{Happening, Sim};
use tutti_model::{Effect, ObjectKey, Resource, Taint, Text};

/// What a node has.
pub(super) const NODE_CPUS: i64 = 4;
/// What a node has on which all pods of a story fit.
const LARGE_NODE_CPUS: i64 = 1_000;
/// Names of nodes to choose from: a lost one may come back.
const NODES: u64 = 7;
/// Where nodes are.
pub(super) const ZONES: [&str; 2] = ["a", "b"];
/// What closes a node to all who do not tolerate it.
pub(super) const TAINT: &str = "maintenance";

impl Sim {
    pub(super) fn add_node(&mut self) {
        let name = format!("n{}", self.dice.below(NODES));
        let zone = ZONES[self.dice.below(2) as usize];
        self.tally.count(Deed::NodeJoin);
        self.server.set_node(&name, NODE_CPUS, zone);
    }

    /// Room for all pods from the beginning.
    pub(super) fn add_large_nodes(&mut self) {
        for zone in ZONES {
            self.server.set_node(&format!("large-{zone}"), LARGE_NODE_CPUS, zone);
        }
    }

    /// Twice the room of all who could want to be in a zone, because the largest pods fill half a node.
    pub(super) fn add_room_for_all(&mut self) {
        for zone in ZONES {
            let labels = zone_labels(zone);
            let could = |pod: &&SimPod| !pod.is_over() && pod.pod.affinity.matches("", &labels);
            let wanted: i64 = self.server.pods.values().filter(could).map(SimPod::cpu).sum();
            for index in 0..(2 * wanted / (NODE_CPUS * 1000) + 4) {
                self.server.set_node(&format!("late-{zone}{index}"), NODE_CPUS, zone);
            }
        }
    }

    /// Somebody closes a node or opens it, moves it, or gives it another size.
    pub(super) fn change_node(&mut self) {
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        let Some(name) = self.dice.pick(&nodes) else {
            return;
        };
        let deed = match self.dice.below(4) {
            0 => {
                self.server.change_node(&name, |node| node.unschedulable = !node.unschedulable);
                Deed::Cordon
            }
            1 => {
                let taint = Taint { key: TAINT.into(), value: "".into(), effect: Effect::NoSchedule };
                self.server.change_node(&name, |node| match node.taints.pop() {
                    Some(_) => {}
                    None => node.taints.push(taint),
                });
                Deed::Taint
            }
            2 => {
                let zone = ZONES[self.dice.below(2) as usize];
                self.server.change_node(&name, |node| node.labels = zone_labels(zone));
                Deed::Relabel
            }
            _ => {
                let amount = cpu(1 + self.dice.below(6) as i64).get("cpu");
                let before = self.server.nodes.get(&name).map_or(0, |node| node.allocatable.get("cpu"));
                self.server.change_node(&name, |node| node.allocatable.set(Resource::new("cpu"), amount));
                if amount >= before {
                    return;
                }
                Deed::Shrink
            }
        };
        self.tally.count(deed);
    }

    pub(super) fn lose_node(&mut self) {
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        let Some(node) = self.dice.pick(&nodes) else {
            return;
        };
        self.tally.count(Deed::NodeLoss);
        self.server.delete_node(&node);
        let lost: Vec<(ObjectKey, Text)> = self
            .server
            .pods
            .values()
            .filter(|pod| pod.pod.node.as_ref() == Some(&node))
            .map(|pod| (pod.pod.key.clone(), pod.pod.uid.clone()))
            .collect();
        for (pod, uid) in lost {
            let delay = 500 + self.dice.below(20_000);
            self.schedule(delay, Happening::Remove(pod, uid));
        }
    }
}
