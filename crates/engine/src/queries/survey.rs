//! How much room there is, domain by domain: the sums that decide where groups go, for whoever wants to look at them.

use crate::state::State;
use crate::state::hierarchy::NO_DOMAIN;
use crate::state::nodes::NodeId;
use std::collections::BTreeMap;
use tutti_model::{ObjectKey, Pod, Text, Time};

/// Room for some kinds of pods, each as if it came alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// All domains with nodes, by the values that make them: a domain comes before those within it.
    pub domains: Vec<DomainRoom>,
    /// How many pods of each kind a node takes.
    pub by_node: BTreeMap<Text, Vec<u64>>,
}

/// The room of one domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRoom {
    /// The values of its level and of all wider ones, widest first.
    pub path: Vec<Text>,
    /// Its nodes, by name.
    pub nodes: Vec<Text>,
    /// How many pods of each kind it takes.
    pub room: Vec<u64>,
}

/// The room that domains of these levels have for pods like these. Uses the state up.
pub(crate) fn survey(mut state: State, levels: &[Text], kinds: &[Pod]) -> Survey {
    let nodes: Vec<NodeId> = state.nodes().ids().filter(|&node| state.nodes().node(node).is_some()).collect();
    let mut by_node: BTreeMap<Text, Vec<u64>> =
        nodes.iter().map(|&node| (state.nodes().name(node).clone(), Vec::new())).collect();
    let hierarchy = state.acquire_levels(levels);
    let mut rooms: Vec<Vec<Vec<u64>>> = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate() {
        let probe = probe(&mut state, kind, index);
        let Some(id) = state.pods().pod(&probe).map(|row| row.shape) else { continue };
        let tables = state.tables();
        let room = tables.rooms.of(id, tables.shapes.get(id), tables.nodes, tables.changes);
        let (by_domain, on_nodes) = room.by_domain(hierarchy, &tables.relations.hierarchies);
        rooms.push(by_domain.to_vec());
        for &node in &nodes {
            let count = on_nodes.get(node.index()).copied().unwrap_or(0);
            by_node.entry(tables.nodes.name(node).clone()).or_default().push(u64::from(count));
        }
    }
    let tree = state.relations().hierarchies.get(hierarchy);
    let mut domains = Vec::new();
    for level in 0..tree.levels_count() {
        let mut nodes_of: BTreeMap<u32, Vec<Text>> = BTreeMap::new();
        for &node in nodes.iter().filter(|&&node| tree.domain(level, node) != NO_DOMAIN) {
            nodes_of.entry(tree.domain(level, node)).or_default().push(state.nodes().name(node).clone());
        }
        for (domain, mut names) in nodes_of {
            names.sort_unstable();
            domains.push(DomainRoom {
                path: tree.path(level, domain).into_iter().cloned().collect(),
                nodes: names,
                room: rooms.iter().map(|by_level| by_level[level][domain as usize]).collect(),
            });
        }
    }
    domains.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Survey { domains, by_node }
}

/// Lets a pod like this one wait by itself and gives its name. No other pod has no namespace.
fn probe(state: &mut State, kind: &Pod, index: usize) -> ObjectKey {
    let key = ObjectKey::new("", format!("kind-{index}"));
    let (node, nominated, group) = (None, None, None);
    let pod = Pod { key: key.clone(), uid: key.name.clone(), node, nominated, group, ..kind.clone() };
    state.set_pod(&pod, Time::default());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::engine::Engine;
    use crate::event::Event;
    use tutti_model::scenario::Scenario;

    fn engine(text: &str) -> Engine {
        let mut engine = Engine::new(Config::default());
        for event in Event::of_scenario(&Scenario::parse(text).unwrap()) {
            engine.apply(event, Time::default());
        }
        engine
    }

    fn kinds(words: &[&str]) -> Vec<Pod> {
        words.iter().flat_map(|words| Scenario::parse(&format!("pod k {words}")).unwrap().pods).collect()
    }

    fn survey(text: &str, levels: &[&str], words: &[&str]) -> Survey {
        let levels: Vec<Text> = levels.iter().map(|&level| level.into()).collect();
        engine(text).survey(&levels, &kinds(words))
    }

    const RACKS: &str = "
        node a x4 cpu=4 gpu=2 label:block=1 label:rack=r{i/2}
        node b x2 cpu=4 label:block=2 label:rack=r0
        node stray cpu=4 label:rack=r0
        pod old on=a-0 cpu=3 gpu=1
        pod done on=b-0 cpu=4 phase=Succeeded";

    fn shown(survey: &Survey) -> Vec<String> {
        let line = |domain: &DomainRoom| {
            format!("{} {} {:?}", domain.path.join("/"), domain.nodes.join(","), domain.room)
        };
        survey.domains.iter().map(line).collect()
    }

    #[test]
    fn every_domain_says_how_many_pods_of_each_kind_it_takes_beside_those_that_run() {
        let survey = survey(RACKS, &["block", "rack"], &["cpu=2", "cpu=1 gpu=1"]);
        assert_eq!(
            shown(&survey),
            [
                "1 a-0,a-1,a-2,a-3 [6, 7]",
                "1/r0 a-0,a-1 [2, 3]",
                "1/r1 a-2,a-3 [4, 4]",
                "2 b-0,b-1 [4, 0]",
                "2/r0 b-0,b-1 [4, 0]",
            ]
        );
        assert_eq!(survey.by_node["a-0"], [0, 1]);
        assert_eq!(survey.by_node["stray"], [2, 0], "it has room, but is in no block");
        assert_eq!(survey.by_node.len(), 7);
    }

    #[test]
    fn nodes_that_take_no_such_pod_have_no_room() {
        let text = "
            node open cpu=4 label:rack=r
            node cordon cpu=4 cordoned label:rack=r
            node guarded cpu=4 taint:gpu=yes:NoSchedule label:rack=r";
        let survey = survey(text, &["rack"], &["cpu=1", "cpu=1 tolerate:gpu", "cpu=1 select:rack=q"]);
        assert_eq!(shown(&survey), ["r cordon,guarded,open [4, 8, 0]"]);
    }

    #[test]
    fn looking_changes_nothing() {
        let engine = engine(RACKS);
        let before = engine.digest();
        engine.survey(&["rack".into()], &kinds(&["cpu=1"]));
        assert_eq!(engine.digest(), before);
    }
}
