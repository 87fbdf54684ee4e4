//! Where a single pod could go. Nothing is decided by it; it is how the engine's rules are asked about, node by node.

use crate::attempt::Attempt;
use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::event::Event;
use crate::solve::feasible;
use tutti_model::{Pod, Text, Time};

impl Engine {
    /// Names of the nodes that this pod could be bound to as things are, in order.
    ///
    /// The pod is taken for itself: whether it names a group, a scheduler, a node or gates plays no part.
    pub fn feasible_nodes(&self, pod: &Pod) -> Vec<Text> {
        let mut trial = self.clone();
        let pod = Pod {
            node: None,
            group: None,
            gates: Vec::new(),
            scheduler_name: trial.own_name(),
            ..pod.clone()
        };
        let unit = UnitKey::Pod(pod.key.clone());
        trial.apply(Event::PodGone(pod.key.clone()), Time::default());
        trial.apply(Event::PodSet(Box::new(pod)), Time::default());
        let Attempt::Solve(members) = trial.attempt(&unit) else {
            return Vec::new();
        };
        let request = members.request();
        trial.lift_holds(&unit);
        let (mut tables, branches_max) = trial.tables();
        let found = feasible(&request, &mut tables, branches_max);
        let mut names: Vec<Text> = found.into_iter().map(|node| trial.nodes.name(node).clone()).collect();
        names.sort_unstable();
        names
    }
}
