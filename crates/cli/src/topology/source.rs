//! Where nodes and pods come from: a cluster, the dump of a scheduler, or a scenario.

use anyhow::{Context as _, bail};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use tutti_engine::{Config, Decision, Engine, Event};
use tutti_k8s::{Capabilities, NodeView, PodView};
use tutti_model::scenario::Scenario;
use tutti_model::{Node, ObjectKey, Pod, Text, Time};

/// Objects in one page of a list.
const PAGE_SIZE: u32 = 2000;
/// Decisions about one scenario. More would be a loop.
const DECISIONS_MAX: usize = 1_000_000;

/// What there is, and who is where.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) pods: Vec<Pod>,
}

impl Cluster {
    /// The cluster behind a client, as it is.
    pub(super) async fn of_api(client: &Client) -> anyhow::Result<Self> {
        let link = Capabilities::discover(client).await.context("the cluster does not answer")?.link;
        let nodes = list::<NodeView>(client).await.context("cannot list nodes")?;
        let pods = list::<PodView>(client).await.context("cannot list pods")?;
        Ok(Self {
            nodes: nodes.iter().map(|view| view.read().node).collect(),
            pods: pods.iter().map(|view| view.read_linked(link).pod).collect(),
        })
    }

    /// The cluster of a file: a dump as it was, or a scenario as it will be once all is decided.
    pub(super) fn of_file(path: &Path) -> anyhow::Result<Self> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(shown)?;
        if text.trim_start().starts_with('{') {
            let dump: tutti_scheduler::Dump =
                serde_json::from_str(&text).context("it is not a dump").with_context(shown)?;
            let (nodes, pods) = dump.nodes_and_pods().with_context(shown)?;
            return Ok(Self { nodes, pods });
        }
        let scenario = Scenario::parse(&text).with_context(shown)?;
        Self::of_scenario(scenario).with_context(shown)
    }

    /// What a scenario describes, with everybody seated who can be.
    pub(super) fn of_scenario(scenario: Scenario) -> anyhow::Result<Self> {
        let mut engine = Engine::new(Config::default());
        for event in Event::of_scenario(&scenario) {
            engine.apply(event, Time::default());
        }
        let mut seats: BTreeMap<ObjectKey, Text> = BTreeMap::new();
        for _ in 0..DECISIONS_MAX {
            match engine.decide(Time::default()) {
                Decision::Place(placement) => {
                    seats.extend(placement.seats.into_iter().map(|seat| (seat.pod, seat.node)));
                }
                Decision::Wait(_) | Decision::More => {}
                Decision::Idle { .. } => {
                    let mut pods = scenario.pods;
                    for pod in &mut pods {
                        pod.node = pod.node.take().or_else(|| seats.remove(&pod.key));
                    }
                    return Ok(Self { nodes: scenario.nodes, pods });
                }
            }
        }
        bail!("more than {DECISIONS_MAX} decisions")
    }

    /// An engine that knows all of it.
    pub(super) fn engine(&self) -> Engine {
        let mut engine = self.empty_engine();
        for pod in &self.pods {
            engine.apply(Event::PodSet(Box::new(pod.clone())), Time::default());
        }
        engine
    }

    /// An engine that knows the nodes only.
    pub(super) fn empty_engine(&self) -> Engine {
        let mut engine = Engine::new(Config::default());
        for node in &self.nodes {
            engine.apply(Event::NodeSet(Box::new(node.clone())), Time::default());
        }
        engine
    }
}

async fn list<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
{
    let api = Api::<K>::all(client.clone());
    let mut params = ListParams::default().limit(PAGE_SIZE);
    let mut objects = Vec::new();
    // Ends, because a list does.
    loop {
        let page = api.list(&params).await?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(objects),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_shown_as_it_will_be() {
        let text = "node n x2 cpu=2 label:rack=r{i}\ngroup g gang=2 required:rack\npod w x2 group=g cpu=1\n\
                    group h gang=9\npod h x9 group=h cpu=1";
        let cluster = Cluster::of_scenario(Scenario::parse(text).unwrap()).unwrap();
        let of = |group: &str| {
            let in_group = |pod: &&Pod| pod.group.as_ref().is_some_and(|key| &*key.name == group);
            cluster.pods.iter().filter(in_group).filter_map(|pod| pod.node.as_deref()).collect::<Vec<_>>()
        };
        assert_eq!(of("g"), ["n-0", "n-0"]);
        assert_eq!(of("h"), [""; 0], "they wait");
    }
}
