//! The engine against the oracle on one instance with groups that ask for domains, and with composites.

use crate::verdict::{Tier, Verdict, told};
use tutti_engine::check::oracle::tree_oracle::best;
use tutti_engine::check::validator::group_rules::{Cluster, Judge};
use tutti_engine::check::validator::violations;
use tutti_engine::{Decision, Placement, Refusal};
use tutti_model::scenario::Scenario;
use tutti_model::{Node, Pod, Time};

/// Lets the engine decide an instance of one unit, and the oracle judge: whether it can be placed, and how well.
pub(crate) fn judge_tree(scenario: &Scenario, tier: Tier) -> Verdict {
    let cluster = Cluster {
        nodes: &scenario.nodes,
        groups: &scenario.groups,
        composites: &scenario.composites,
        pods: &scenario.pods,
    };
    if !is_one_unit(scenario) {
        return Verdict::Wrong("the instance is not one unit".to_owned());
    }
    let best = best(cluster);
    let mut engine = told(scenario, tier.limits);
    match engine.decide(Time(0)) {
        Decision::Place(placement) => {
            let worth = match worth(cluster, &placement) {
                Ok(worth) => worth,
                Err(what) => return Verdict::Wrong(what),
            };
            // What room is worth is not said where pods keep each other out of nodes.
            let has_wishes =
                scenario.pods.iter().any(|pod| !pod.inter_pod.is_empty() || !pod.ports.is_empty());
            match best {
                Some(best) if has_wishes && best.placed == worth.placed => Verdict::Placed,
                Some(_) if !tier.is_best => Verdict::Placed,
                None => Verdict::Wrong("the oracle finds no placement".to_owned()),
                Some(best) if best != worth => {
                    Verdict::Wrong(format!("not the best: {worth:?}, but {best:?}"))
                }
                Some(_) => Verdict::Placed,
            }
        }
        Decision::Wait(waiting) => match (&waiting.refusal, best) {
            (Refusal::Undecided(_), _) => Verdict::Undecided,
            (refusal, Some(_)) => Verdict::Wrong(format!("refused, but a placement exists: {refusal}")),
            (_, None) => Verdict::Refused,
        },
        Decision::More => Verdict::Wrong("one unit used up the work of a decision".to_owned()),
        Decision::Idle { .. } if best.is_some() => Verdict::Wrong("nothing was decided".to_owned()),
        Decision::Idle { .. } => Verdict::Refused,
    }
}

/// True if everybody who waits belongs to one group or composite that nothing is above.
fn is_one_unit(scenario: &Scenario) -> bool {
    let groups = || scenario.groups.iter();
    let is_member =
        |pod: &Pod| pod.group.as_ref().is_some_and(|name| groups().any(|group| group.key == *name));
    let all = || groups().chain(&scenario.composites);
    let is_rooted = |parent: &tutti_model::ObjectKey| scenario.composites.iter().any(|c| c.key == *parent);
    scenario.pods.iter().filter(|pod| pod.node.is_none()).all(is_member)
        && all().filter(|object| object.parent.is_none()).count() == 1
        && all().filter_map(|object| object.parent.as_ref()).all(is_rooted)
}

/// What a placement is worth, or what is wrong with it.
pub(crate) fn worth(
    cluster: Cluster<'_>,
    placement: &Placement,
) -> Result<tutti_engine::check::validator::group_rules::Worth, String> {
    let seats: Option<Vec<(&Pod, &Node)>> =
        placement.seats.iter().map(|seat| seated(cluster, seat)).collect();
    let seats = seats.ok_or("a seat is of a pod or node that is not there")?;
    let running: Vec<Pod> = cluster.pods.iter().filter(|pod| pod.node.is_some()).cloned().collect();
    let placed: Vec<Pod> =
        seats.iter().map(|&(pod, node)| Pod { node: Some(node.name.clone()), ..pod.clone() }).collect();
    let judge = Judge::new(cluster, &seats);
    let mut wrong = violations(cluster.nodes, &running, &placed);
    wrong.extend(judge.violations());
    if wrong.is_empty() { Ok(judge.worth()) } else { Err(format!("the placement is not valid: {wrong:?}")) }
}

fn seated<'a>(cluster: Cluster<'a>, seat: &tutti_engine::Seat) -> Option<(&'a Pod, &'a Node)> {
    let pod = cluster.pods.iter().find(|pod| pod.key == seat.pod)?;
    let node = cluster.nodes.iter().find(|node| node.name == seat.node)?;
    Some((pod, node))
}
