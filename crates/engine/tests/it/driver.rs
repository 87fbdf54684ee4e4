//! Runs scenarios through the engine and checks every placement on the way.

use crate::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tutti_engine::check::validator::group_rules::{Cluster, Judge};
use tutti_engine::check::validator::{violations, volume_violations};
use tutti_engine::{ClaimPlan, Config, Decision, Engine, Event, Placement, Seat, UnitKey, Waiting};
use tutti_model::scenario::Scenario;
use tutti_model::{Group, Labels, Node, ObjectKey, Phase, Pod, PodTerm, Storage, Text, Time};

/// An engine and the plain objects that it was told of.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) storage: Storage,
    pub(crate) groups: Vec<Group>,
    pub(crate) composites: Vec<Group>,
    pub(crate) namespaces: BTreeMap<Text, Labels>,
    pub(crate) suspended: BTreeSet<UnitKey>,
    pub(crate) now: Time,
    /// Where the world came from, for whoever reads a failure.
    pub(crate) story: String,
}

/// What becomes of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Bound,
    Fails,
    Withdrawn,
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
            namespaces: BTreeMap::new(),
            suspended: BTreeSet::new(),
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
        for namespace in more.namespaces {
            self.set_namespace(namespace.name, namespace.labels);
        }
        for group in more.groups {
            self.set_group(group);
        }
        for composite in more.composites {
            self.set_composite(composite);
        }
        self.add_storage(more.storage);
        for pod in more.pods {
            self.set_pod(pod);
        }
    }

    /// The same world with an engine that was told of everything just now and has no past.
    pub(crate) fn told_anew(&self) -> Self {
        let mut fresh = Self { engine: Engine::new(Config::default()), ..self.clone() };
        let mut tell = |event| fresh.engine.apply(event, self.now);
        for (name, labels) in &self.namespaces {
            tell(Event::NamespaceSet { name: name.clone(), labels: labels.clone() });
        }
        for node in &self.nodes {
            tell(Event::NodeSet(Box::new(node.clone())));
        }
        for group in &self.groups {
            tell(Event::GroupSet(Box::new(group.clone())));
        }
        Event::of_storage(&self.storage).into_iter().for_each(&mut tell);
        for composite in &self.composites {
            tell(Event::CompositeSet(Box::new(composite.clone())));
        }
        for pod in &self.pods {
            tell(Event::PodSet(Box::new(pod.clone())));
        }
        for unit in &self.suspended {
            tell(Event::Suspend(unit.clone()));
        }
        for hold in self.engine.holds() {
            tell(Event::Hold(Box::new(hold)));
        }
        fresh
    }

    pub(crate) fn set_namespace(&mut self, name: Text, labels: Labels) {
        self.namespaces.insert(name.clone(), labels.clone());
        self.engine.apply(Event::NamespaceSet { name, labels }, self.now);
    }

    pub(crate) fn set_group(&mut self, group: Group) {
        self.groups.retain(|known| known.key != group.key);
        self.groups.push(group.clone());
        self.engine.apply(Event::GroupSet(Box::new(group)), self.now);
    }

    pub(crate) fn remove_group(&mut self, key: &ObjectKey) {
        self.groups.retain(|known| known.key != *key);
        self.engine.apply(Event::GroupGone(key.clone()), self.now);
    }

    pub(crate) fn set_composite(&mut self, composite: Group) {
        self.composites.retain(|known| known.key != composite.key);
        self.composites.push(composite.clone());
        self.engine.apply(Event::CompositeSet(Box::new(composite)), self.now);
    }

    pub(crate) fn remove_composite(&mut self, key: &ObjectKey) {
        self.composites.retain(|known| known.key != *key);
        self.engine.apply(Event::CompositeGone(key.clone()), self.now);
    }

    pub(crate) fn suspend(&mut self, unit: &UnitKey, suspended: bool) {
        if suspended {
            self.suspended.insert(unit.clone());
            self.engine.apply(Event::Suspend(unit.clone()), self.now);
        } else {
            self.suspended.remove(unit);
            self.engine.apply(Event::Resume(unit.clone()), self.now);
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
        self.settle_with(|_| Fate::Bound)
    }

    /// The same, but bindings may fail and decisions may be taken back.
    pub(crate) fn settle_with(&mut self, mut fate: impl FnMut(&Seat) -> Fate) -> Vec<Decision> {
        let mut decisions = Vec::new();
        loop {
            let decision = self.engine.decide(self.now);
            match &decision {
                Decision::Idle { .. } => return decisions,
                Decision::Place(placement) => self.carry_out_with(placement, &mut fate),
                Decision::Wait(_) => {}
                Decision::More => continue,
            }
            decisions.push(decision);
            assert!(decisions.len() < 10_000, "the engine does not come to rest");
        }
    }

    /// Checks a placement and makes its pods bound ones.
    pub(crate) fn carry_out(&mut self, placement: &Placement) {
        self.carry_out_with(placement, |_| Fate::Bound);
    }

    fn carry_out_with(&mut self, placement: &Placement, mut fate: impl FnMut(&Seat) -> Fate) {
        let running = self.seated();
        let mut placed = Vec::new();
        for seat in &placement.seats {
            let mut pod = self.pod(&seat.pod.name);
            assert_eq!(pod.node, None, "{} is placed twice", pod.key);
            pod.node = Some(seat.node.clone());
            placed.push(pod);
        }
        let mut wrong = violations(&self.nodes, &self.resolved(&running), &self.resolved(&placed));
        wrong.extend(volume_violations(&self.nodes, &self.storage, &running, &placed));
        wrong.extend(self.group_violations(placement));
        let shown = show(&[Decision::Place(placement.clone())]);
        assert!(wrong.is_empty(), "invalid placement: {wrong:?}\n{}{shown}", self.story);
        // Claims are bound before their pods are.
        let bound = storage::bound(&self.storage, &placement.claims);
        self.add_storage(bound);
        for (mut pod, seat) in placed.into_iter().zip(&placement.seats) {
            let (key, uid) = (pod.key.clone(), pod.uid.clone());
            match fate(seat) {
                Fate::Bound => {
                    pod.phase = Phase::Running;
                    self.set_pod(pod);
                }
                Fate::Fails => self.engine.apply(Event::BindFailed { pod: key, uid }, self.now),
                Fate::Withdrawn => self.engine.apply(Event::Withdrawn { pod: key, uid }, self.now),
            }
        }
    }

    /// Pods whose terms name namespaces instead of selecting them by label, for a validator that knows no labels of
    /// namespaces.
    fn resolved(&self, pods: &[Pod]) -> Vec<Pod> {
        let mut names: BTreeSet<Text> = self.pods.iter().map(|pod| pod.key.namespace.clone()).collect();
        names.extend(self.namespaces.keys().cloned());
        let none = Labels::default();
        let resolve = |term: &mut PodTerm| {
            if term.pods.namespace_selector.is_some() {
                let reached =
                    |name: &&Text| term.pods.reaches(name, self.namespaces.get(*name).unwrap_or(&none));
                term.pods.namespaces = names.iter().filter(reached).cloned().collect();
                term.pods.namespace_selector = None;
            }
        };
        let mut pods = pods.to_vec();
        for pod in &mut pods {
            pod.inter_pod.affinity.iter_mut().chain(&mut pod.inter_pod.anti_affinity).for_each(resolve);
        }
        pods
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
