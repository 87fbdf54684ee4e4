//! The engine against the oracle on one instance, without panics: the tests assert on the verdict, `examples/oracle.rs`
//! counts verdicts.

use crate::storage;
use tutti_engine::check::oracle::placeable_with;
use tutti_engine::check::validator::{violations, volume_violations};
use tutti_engine::{Config, Decision, Engine, Event, Limits, Placement, Refusal};
use tutti_model::scenario::Scenario;
use tutti_model::{Phase, Pod, Time};

/// Decisions after which an instance of oracle size must have come to rest.
const DECISIONS_MAX: usize = 1_000;

/// How the engine did on one instance.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The gang was placed, and rightly.
    Placed,
    /// It was refused, and rightly.
    Refused,
    /// The engine did not find out.
    Undecided,
    /// The engine is wrong, like this.
    Wrong(String),
}

/// What the solver may use, and whether it promises the best that there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tier {
    pub(crate) limits: Limits,
    pub(crate) is_best: bool,
}

impl Default for Tier {
    fn default() -> Self {
        Self { limits: Limits::default(), is_best: true }
    }
}

/// True if a tier that is forced finds the best placement of a flat group, or of a tree, if it finds any.
pub(crate) fn promises_the_best(tier: &str, is_tree: bool) -> bool {
    match tier {
        "search" | "exact" => true,
        "cover" | "regions" => !is_tree,
        _ => false,
    }
}

/// True if which volume several pods are to share is a guess.
pub(crate) fn shares_an_unbound_claim(scenario: &Scenario) -> bool {
    scenario.storage.claims.iter().filter(|claim| claim.volume.is_none()).any(|claim| {
        let uses = |pod: &&Pod| pod.volume_claims.iter().any(|using| using.claim == claim.key.name);
        scenario.pods.iter().filter(uses).count() > 1
    })
}

/// Lets the engine decide an instance of one gang, and the oracle judge.
pub(crate) fn judge(scenario: &Scenario, tier: Tier) -> Verdict {
    let (running, wanting): (Vec<Pod>, Vec<Pod>) =
        scenario.pods.iter().cloned().partition(|pod| pod.node.is_some());
    let Some(group) = scenario.groups.first() else {
        return Verdict::Wrong("the instance has no group".to_owned());
    };
    if wanting.iter().any(|pod| pod.group.as_ref() != Some(&group.key)) {
        return Verdict::Wrong("somebody is not in the group".to_owned());
    }
    let minimum = group.policy.minimum() as usize;
    let possible = placeable_with(&scenario.storage, &scenario.nodes, &running, &wanting, minimum);
    let decisions = match decide_all(scenario, running.clone(), &wanting, tier.limits) {
        Ok(decisions) => decisions,
        Err(what) => return Verdict::Wrong(what),
    };
    match (decisions.first(), possible) {
        (Some(Decision::Place(_)), false) => Verdict::Wrong("the oracle finds no placement".to_owned()),
        (Some(Decision::Place(placement)), true) if placement.seats.len() < minimum => {
            Verdict::Wrong("fewer than the minimum were placed".to_owned())
        }
        (Some(Decision::Place(placement)), true) => {
            let more = placement.seats.len() + 1;
            let can_be_more = || {
                more <= wanting.len()
                    && placeable_with(&scenario.storage, &scenario.nodes, &running, &wanting, more)
            };
            if tier.is_best && !shares_an_unbound_claim(scenario) && can_be_more() {
                return Verdict::Wrong(format!("not the best: {} of {} are placed", more - 1, wanting.len()));
            }
            Verdict::Placed
        }
        (Some(Decision::Wait(waiting)), possible) => match &waiting.refusal {
            Refusal::Undecided(_) => Verdict::Undecided,
            Refusal::NoRoom(_) if possible => Verdict::Wrong("refused, but a placement exists".to_owned()),
            Refusal::NoRoom(room) if room.fit >= room.needed => {
                Verdict::Wrong("refused for lack of room that is there".to_owned())
            }
            Refusal::NoRoom(_) => Verdict::Refused,
            Refusal::Claim { .. } if !possible => Verdict::Refused,
            other => Verdict::Wrong(format!("refused for another reason: {other}")),
        },
        (Some(Decision::More | Decision::Idle { .. }) | None, _) => {
            Verdict::Wrong("nothing was decided".to_owned())
        }
    }
}

/// All decisions about an instance; members that get a seat run from then on. An error says what is not valid.
fn decide_all(
    scenario: &Scenario,
    mut running: Vec<Pod>,
    wanting: &[Pod],
    limits: Limits,
) -> Result<Vec<Decision>, String> {
    let now = Time(0);
    let mut engine = told(scenario, limits);
    let mut known = scenario.storage.clone();
    let mut decisions = Vec::new();
    while decisions.len() < DECISIONS_MAX {
        let decision = engine.decide(now);
        match &decision {
            Decision::Idle { .. } => return Ok(decisions),
            Decision::Wait(_) => {}
            Decision::More => continue,
            Decision::Place(placement) => {
                let placed = seated(placement, wanting)?;
                let mut wrong = violations(&scenario.nodes, &running, &placed);
                wrong.extend(volume_violations(&scenario.nodes, &known, &running, &placed));
                if !wrong.is_empty() {
                    return Err(format!("the placement is not valid: {wrong:?}"));
                }
                let bound = storage::bound(&known, &placement.claims);
                storage::merge(&mut known, &bound);
                for event in Event::of_storage(&bound) {
                    engine.apply(event, now);
                }
                for pod in placed {
                    engine.apply(Event::PodSet(Box::new(pod.clone())), now);
                    running.push(pod);
                }
            }
        }
        decisions.push(decision);
    }
    Err("the engine does not come to rest".to_owned())
}

/// An engine that has been told of everything.
pub(crate) fn told(scenario: &Scenario, limits: Limits) -> Engine {
    let now = Time(0);
    let mut engine = Engine::new(Config { limits, ..Config::default() });
    for node in &scenario.nodes {
        engine.apply(Event::NodeSet(Box::new(node.clone())), now);
    }
    for group in &scenario.groups {
        engine.apply(Event::GroupSet(Box::new(group.clone())), now);
    }
    for composite in &scenario.composites {
        engine.apply(Event::CompositeSet(Box::new(composite.clone())), now);
    }
    for event in Event::of_storage(&scenario.storage) {
        engine.apply(event, now);
    }
    for pod in &scenario.pods {
        engine.apply(Event::PodSet(Box::new(pod.clone())), now);
    }
    engine
}

/// The pods of a placement as they run.
fn seated(placement: &Placement, wanting: &[Pod]) -> Result<Vec<Pod>, String> {
    let pod = |seat: &tutti_engine::Seat| {
        let pod = wanting.iter().find(|pod| pod.key == seat.pod);
        let pod = pod.ok_or_else(|| format!("{} did not ask for a seat", seat.pod))?;
        Ok(Pod { node: Some(seat.node.clone()), phase: Phase::Running, ..pod.clone() })
    };
    placement.seats.iter().map(pod).collect()
}
