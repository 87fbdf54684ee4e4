//! Where a single pod could go, and how welcome each node is. Nothing is decided by it; it is how the engine's rules are
//! asked about, node by node.

use crate::decision::UnitKey;
use crate::score::Aspect;
use crate::score::rating::Measure;
use crate::score::total::{Candidate, totals};
use crate::solve::feasible;
use crate::state::State;
use crate::state::nodes::NodeId;
use crate::state::shape::ShapeId;
use crate::state::txn::Txn;
use crate::unit::attempt::{self, Attempt};
use std::collections::BTreeMap;
use tutti_model::{Pod, Text, Time};

/// Names of the nodes that a pod could be bound to, in order. Uses the state up.
pub(crate) fn feasible_nodes(mut state: State, pod: &Pod, branches_max: u32) -> Vec<Text> {
    let Some((_, found)) = nodes_for(&mut state, pod, branches_max) else { return Vec::new() };
    let mut names: Vec<Text> = found.into_iter().map(|node| state.nodes().name(node).clone()).collect();
    names.sort_unstable();
    names
}

/// Weighted scores of the nodes that a pod could be bound to. Uses the state up.
pub(crate) fn scores(
    mut state: State,
    pod: &Pod,
    branches_max: u32,
) -> BTreeMap<Text, BTreeMap<Aspect, i64>> {
    let Some((shape, found)) = nodes_for(&mut state, pod, branches_max) else { return BTreeMap::new() };
    let mut scores: BTreeMap<Text, BTreeMap<Aspect, i64>> = BTreeMap::new();
    let tables = state.tables();
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

/// The pod's shape and the nodes that will do for it. Leaves the pod behind.
fn nodes_for(state: &mut State, pod: &Pod, branches_max: u32) -> Option<(ShapeId, Vec<NodeId>)> {
    let name = &pod.scheduler_name;
    let pod = Pod {
        node: None,
        group: None,
        gates: Vec::new(),
        scheduler_name: if state.profiles().serve(name) { name.clone() } else { state.profiles().own_name() },
        ..pod.clone()
    };
    let unit = UnitKey::Pod(pod.key.clone());
    state.remove_pod(&pod.key, Time::default());
    state.set_pod(&pod, Time::default());
    let Attempt::Solve(members) = attempt::look(state, &unit) else { return None };
    let request = members.request();
    let &(shape, _) = request.shapes.first()?;
    let mut txn = Txn::begin(state);
    txn.lift_holds(&unit);
    let found = feasible(&request, &mut txn.tables(), branches_max);
    Some((shape, found))
}
