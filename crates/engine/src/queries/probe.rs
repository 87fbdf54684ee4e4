//! Where a single pod could go, and how welcome each node is. Nothing is decided by it; it is how the engine's rules are
//! asked about, node by node.

use crate::decision::UnitKey;
use crate::engine::Engine;
use crate::event::Event;
use crate::score::Aspect;
use crate::score::rating::Measure;
use crate::score::total::{Candidate, totals};
use crate::solve::feasible;
use crate::state::nodes::NodeId;
use crate::state::shape::ShapeId;
use crate::unit::attempt::Attempt;
use std::collections::BTreeMap;
use tutti_model::{Pod, Text, Time};

impl Engine {
    /// Names of the nodes that this pod could be bound to as things are, in order.
    ///
    /// The pod is taken for itself: whether it names a group, a node or gates plays no part, and one that is for
    /// another scheduler is taken as one for us.
    pub fn feasible_nodes(&self, pod: &Pod) -> Vec<Text> {
        let mut trial = self.clone();
        let Some((_, found)) = trial.nodes_for(pod) else {
            return Vec::new();
        };
        let mut names: Vec<Text> = found.into_iter().map(|node| trial.nodes.name(node).clone()).collect();
        names.sort_unstable();
        names
    }

    /// Weighted scores of the nodes that this pod could be bound to, one by one. Their sum decides where a pod on its
    /// own goes.
    pub fn scores(&self, pod: &Pod) -> BTreeMap<Text, BTreeMap<Aspect, i64>> {
        let mut trial = self.clone();
        let Some((shape, found)) = trial.nodes_for(pod) else {
            return BTreeMap::new();
        };
        let mut scores: BTreeMap<Text, BTreeMap<Aspect, i64>> = BTreeMap::new();
        let (tables, _) = trial.tables();
        let shape = tables.shapes.get(shape);
        for aspect in Aspect::ALL {
            let scoring = tables.rooms.scoring(shape).only(aspect);
            let measure = Measure::new(&scoring, shape, tables.nodes);
            let candidate = |&node: &NodeId| (node, measure.rating(&scoring, shape, tables.nodes, node));
            let candidates: Vec<Candidate> = found.iter().map(candidate).collect();
            let values = totals(&candidates, shape, &scoring, tables.nodes, tables.relations);
            for (&node, value) in found.iter().zip(values) {
                scores.entry(tables.nodes.name(node).clone()).or_default().insert(aspect, value);
            }
        }
        scores
    }

    /// The pod's shape and the nodes that will do for it. Leaves the pod behind, so this is for a copy.
    fn nodes_for(&mut self, pod: &Pod) -> Option<(ShapeId, Vec<NodeId>)> {
        let name = &pod.scheduler_name;
        let pod = Pod {
            node: None,
            group: None,
            gates: Vec::new(),
            scheduler_name: if self.serves(name) { name.clone() } else { self.own_name() },
            ..pod.clone()
        };
        let unit = UnitKey::Pod(pod.key.clone());
        self.apply(Event::PodGone(pod.key.clone()), Time::default());
        self.apply(Event::PodSet(Box::new(pod)), Time::default());
        let Attempt::Solve(members) = self.attempt(&unit) else {
            return None;
        };
        let request = members.request();
        let &(shape, _) = request.shapes.first()?;
        self.lift_holds(&unit);
        let branches_max = self.branches_max();
        let (mut tables, _) = self.tables();
        Some((shape, feasible(&request, &mut tables, branches_max)))
    }
}
