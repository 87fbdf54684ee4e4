//! The same questions to Tutti: read by the translation that the live scheduler uses, answered by the engine, and by the
//! validator that the engine's own tests trust.

use super::generate::Question;
use super::scores::Scores;
use anyhow::Context as _;
use serde_json::Value;
use std::collections::BTreeMap;
use tutti_engine::check::validator::violations;
use tutti_engine::score::Aspect;
use tutti_engine::{Config, Decision, Engine, Event};
use tutti_k8s::{NodeView, PodView};
use tutti_model::{Labels, Node, Pod, Time};

/// A question in our terms.
pub(crate) struct Translated {
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    pod: Pod,
    namespaces: Vec<(String, Labels)>,
    engine: Engine,
}

impl Translated {
    pub(crate) fn new(question: &Question) -> anyhow::Result<Self> {
        let nodes: Vec<Node> = question.nodes.iter().map(read_node).collect::<anyhow::Result<_>>()?;
        let pods: Vec<Pod> = question.pods.iter().map(read_pod).collect::<anyhow::Result<_>>()?;
        let pod = read_pod(&question.pod)?;
        let namespaces: Vec<(String, Labels)> = question.namespaces.iter().map(read_namespace).collect();
        let mut engine = Engine::new(Config::default());
        let now = Time::default();
        for (name, labels) in &namespaces {
            let event = Event::NamespaceSet { name: name.as_str().into(), labels: labels.clone() };
            engine.apply(event, now);
        }
        for node in &nodes {
            engine.apply(Event::NodeSet(Box::new(node.clone())), now);
        }
        for pod in &pods {
            engine.apply(Event::PodSet(Box::new(pod.clone())), now);
        }
        Ok(Self { nodes, pods, pod, namespaces, engine })
    }

    /// Nodes that the engine would take, in order.
    pub(crate) fn by_engine(&self) -> Vec<String> {
        let found = self.engine.feasible_nodes(&self.pod);
        found.iter().map(ToString::to_string).collect()
    }

    /// Scores of these nodes by plugin.
    pub(crate) fn scores(&self) -> Scores {
        let by_plugin = |scores: BTreeMap<Aspect, i64>| {
            scores.into_iter().map(|(aspect, score)| (aspect.plugin().to_owned(), score)).collect()
        };
        let scores = self.engine.scores(&self.pod).into_iter();
        scores.map(|(node, scores)| (node.to_string(), by_plugin(scores))).collect()
    }

    /// The node that the engine chooses.
    pub(crate) fn choice(&self) -> Option<String> {
        let mut engine = self.engine.clone();
        let pod = Pod { scheduler_name: "tutti".into(), ..self.pod.clone() };
        engine.apply(Event::PodSet(Box::new(pod)), Time::default());
        match engine.decide(Time::default()) {
            Decision::Place(placement) => placement.seats.first().map(|seat| seat.node.to_string()),
            _ => None,
        }
    }

    /// Nodes on which the validator finds nothing wrong, in order. It does not know labels of namespaces, so it has no
    /// opinion where they matter.
    pub(crate) fn by_validator(&self, question: &Question) -> Option<Vec<String>> {
        let asks_for_labels = |pod: &Value| pod.to_string().contains("namespaceSelector");
        if !self.namespaces.is_empty()
            && (question.pods.iter().any(asks_for_labels) || asks_for_labels(&question.pod))
        {
            return None;
        }
        let valid = |node: &&Node| {
            let placed = Pod { node: Some(node.name.clone()), ..self.pod.clone() };
            violations(&self.nodes, &self.pods, &[placed]).is_empty()
        };
        let mut names: Vec<String> =
            self.nodes.iter().filter(valid).map(|node| node.name.to_string()).collect();
        names.sort_unstable();
        Some(names)
    }
}

fn read_node(object: &Value) -> anyhow::Result<Node> {
    let reading = serde_json::from_value::<NodeView>(object.clone())?.read();
    match reading.errors.into_iter().next() {
        Some(error) => Err(error).context("Tutti does not understand a node"),
        None => Ok(reading.node),
    }
}

fn read_pod(object: &Value) -> anyhow::Result<Pod> {
    let reading = serde_json::from_value::<PodView>(object.clone())?.read();
    reading.complete().context("Tutti does not understand a pod")
}

fn read_namespace(object: &Value) -> (String, Labels) {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    (name.to_owned(), labels.collect())
}
