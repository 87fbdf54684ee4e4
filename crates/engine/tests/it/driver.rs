//! Runs scenarios through the engine and checks every placement on the way.

use crate::storage;
use std::fmt::Write;
use tutti_engine::check::validator::group_rules::{Cluster, Judge};
use tutti_engine::check::validator::{violations, volume_violations};
use tutti_engine::{ClaimPlan, Config, Decision, Engine, Event, Placement, Seat, Waiting};
use tutti_model::scenario::Scenario;
use tutti_model::{Group, Node, ObjectKey, Phase, Pod, Storage, Text, Time};

/// An engine and the plain objects that it was told of.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) storage: Storage,
    pub(crate) groups: Vec<Group>,
    pub(crate) composites: Vec<Group>,
    pub(crate) now: Time,
    /// Where the world came from, for whoever reads a failure.
    pub(crate) story: String,
}

impl World {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut world = Self {
            engine: Engine::new(Config::default()),
            nodes: vec![],
            pods: vec![],
            storage: Storage::default(),
            groups: vec![],
            composites: vec![],
            now: Time(0),
            story: String::new(),
        };
        world.tell(scenario.clone());
        world
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self::new(&Scenario::parse(text).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Adds what another text describes.
    pub(crate) fn add(&mut self, text: &str) {
        let more = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
        self.tell(more);
    }

    fn tell(&mut self, more: Scenario) {
        for node in more.nodes {
            self.set_node(node);
        }
        for group in more.groups {
            self.groups.retain(|known| known.key != group.key);
            self.groups.push(group.clone());
            self.engine.apply(Event::GroupSet(Box::new(group)), self.now);
        }
        for composite in more.composites {
            self.composites.retain(|known| known.key != composite.key);
            self.composites.push(composite.clone());
            self.engine.apply(Event::CompositeSet(Box::new(composite)), self.now);
        }
        self.add_storage(more.storage);
        for pod in more.pods {
            self.set_pod(pod);
        }
    }

    /// Adds or changes claims, volumes, classes and limits.
    pub(crate) fn add_storage(&mut self, more: Storage) {
        storage::merge(&mut self.storage, &more);
        for event in Event::of_storage(&more) {
            self.engine.apply(event, self.now);
        }
    }

    pub(crate) fn set_node(&mut self, node: Node) {
        self.nodes.retain(|known| known.name != node.name);
        self.nodes.push(node.clone());
        self.engine.apply(Event::NodeSet(Box::new(node)), self.now);
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.retain(|known| known.name.as_ref() != name);
        self.engine.apply(Event::NodeGone(Text::from(name)), self.now);
    }

    pub(crate) fn set_pod(&mut self, pod: Pod) {
        self.pods.retain(|known| known.key != pod.key);
        self.pods.push(pod.clone());
        self.engine.apply(Event::PodSet(Box::new(pod)), self.now);
    }

    pub(crate) fn remove_pod(&mut self, key: &ObjectKey) {
        self.pods.retain(|known| known.key != *key);
        self.engine.apply(Event::PodGone(key.clone()), self.now);
    }

    /// Changes something about a node that makes it more or less welcome, or unusable.
    pub(crate) fn change_a_node(&mut self, dice: &mut crate::random::Dice) {
        let at = dice.roll(0, self.nodes.len() as u64 - 1) as usize;
        let name = self.nodes[at].name.clone();
        let text = crate::likings::node_with_liking(dice, &name);
        let changed = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        for node in changed.nodes {
            self.set_node(node);
        }
    }

    pub(crate) fn pod(&self, name: &str) -> Pod {
        let found = self.pods.iter().find(|pod| pod.key.name.as_ref() == name);
        found.unwrap_or_else(|| panic!("there is no pod {name}")).clone()
    }

    /// Pods that take room.
    pub(crate) fn seated(&self) -> Vec<Pod> {
        self.pods.iter().filter(|pod| pod.node.is_some() && !pod.phase.is_terminal()).cloned().collect()
    }

    /// Decides until nothing is left to decide; every placement is validated and becomes a bound pod, which the
    /// engine learns of as it would from the API server.
    pub(crate) fn settle(&mut self) -> Vec<Decision> {
        let mut decisions = Vec::new();
        loop {
            let decision = self.engine.decide(self.now);
            match &decision {
                Decision::Idle { .. } => return decisions,
                Decision::Place(placement) => self.carry_out(placement),
                Decision::Wait(_) => {}
                Decision::More => continue,
            }
            decisions.push(decision);
            assert!(decisions.len() < 10_000, "the engine does not come to rest");
        }
    }

    /// Checks a placement and makes its pods bound ones.
    pub(crate) fn carry_out(&mut self, placement: &Placement) {
        let running = self.seated();
        let mut placed = Vec::new();
        for seat in &placement.seats {
            let mut pod = self.pod(&seat.pod.name);
            assert_eq!(pod.node, None, "{} is placed twice", pod.key);
            pod.node = Some(seat.node.clone());
            placed.push(pod);
        }
        let mut wrong = violations(&self.nodes, &running, &placed);
        wrong.extend(volume_violations(&self.nodes, &self.storage, &running, &placed));
        wrong.extend(self.group_violations(placement));
        let shown = show(&[Decision::Place(placement.clone())]);
        assert!(wrong.is_empty(), "invalid placement: {wrong:?}\n{}{shown}", self.story);
        // Claims are bound before their pods are.
        let bound = storage::bound(&self.storage, &placement.claims);
        self.add_storage(bound);
        for mut pod in placed {
            pod.phase = Phase::Running;
            self.set_pod(pod);
        }
    }
}

impl World {
    /// What groups and composites find wrong with a placement.
    fn group_violations(&self, placement: &Placement) -> Vec<String> {
        let cluster = Cluster {
            nodes: &self.nodes,
            groups: &self.groups,
            composites: &self.composites,
            pods: &self.pods,
        };
        let node = |name: &Text| self.nodes.iter().find(|node| node.name == *name);
        let seat = |seat: &Seat| {
            let pod = self.pods.iter().find(|pod| pod.key == seat.pod)?;
            Some((pod, node(&seat.node)?))
        };
        let seats: Vec<(&Pod, &Node)> = placement.seats.iter().filter_map(seat).collect();
        Judge::new(cluster, &seats).violations()
    }
}

/// Decisions as text, one a line.
pub(crate) fn show(decisions: &[Decision]) -> String {
    let mut text = String::new();
    for decision in decisions {
        match decision {
            Decision::Place(Placement { unit, seats, claims, left_out, .. }) => {
                write!(text, "{unit}:").unwrap();
                for seat in seats {
                    write!(text, " {}->{}", seat.pod.name, seat.node).unwrap();
                }
                for (claim, plan) in claims {
                    let (ClaimPlan::Volume(what) | ClaimPlan::Provision(what)) = plan;
                    write!(text, " {}={what}", claim.name).unwrap();
                }
                for pod in left_out {
                    write!(text, " {}->?", pod.name).unwrap();
                }
            }
            Decision::Wait(Waiting { unit, members, refusal, .. }) => {
                write!(text, "{unit} ({}) waits: {refusal}", members.len()).unwrap();
            }
            Decision::More | Decision::Idle { .. } => {}
        }
        text.push('\n');
    }
    text
}
