//! One try for a unit: holds that do not bind it are lifted, the solver is asked, and the seats are taken, all in one
//! transaction. What is not placed leaves no trace.

use super::members::Members;
use crate::decision::UnitKey;
use crate::refusal::{NoRoom, NodeReason};
use crate::solve::{Budget, Outcome, Request, Seats, solve};
use crate::state::State;
use crate::state::holds::HoldKey;
use crate::state::nodes::NodeId;
use crate::state::shape::ShapeId;
use crate::state::txn::Txn;
use crate::state::volumes::ClaimPlan;
use std::collections::BTreeMap;
use tutti_model::ObjectKey;

/// How a try ended.
pub(crate) enum Trial {
    /// The seats are taken.
    Placed {
        /// Pods and their nodes, by pod.
        seats: Vec<(ObjectKey, NodeId)>,
        /// What is to become of their unbound claims.
        claims: BTreeMap<ObjectKey, ClaimPlan>,
        /// Holds that did not bind the unit.
        lifted: Vec<HoldKey>,
    },
    /// Nothing has changed.
    Refused {
        /// Why.
        room: NoRoom,
        /// Whether that is proven.
        is_proven: bool,
        /// Seats that an incomplete gang could use all the same.
        usable: Vec<(ShapeId, NodeId, u32)>,
        lifted: Vec<HoldKey>,
    },
    /// The solver's answer does not fit the cluster. That is a bug; nothing has changed.
    Inconsistent(&'static str),
}

/// Tries to place a unit. `known` is the answer to an equal request, if there was one just now. Members that get a seat are
/// taken out. `missing` says how many an incomplete gang lacks.
pub(crate) fn run(
    state: &mut State,
    unit: &UnitKey,
    members: &mut Members,
    missing: Option<u32>,
    request: &Request,
    known: Option<Outcome>,
    budget: &mut Budget,
) -> Trial {
    let mut txn = Txn::begin(state);
    let lifted = txn.lift_holds(unit);
    let outcome = known.unwrap_or_else(|| solve(request, &mut txn.tables(), budget));
    let outcome = match outcome {
        Outcome::Placed(seats) => match txn.state().plan_claims(members.seated(&seats)) {
            Some(claims) => return take(txn, members, &seats, claims, lifted),
            None => Outcome::Undecided(without_volumes(txn.state(), members)),
        },
        other => other,
    };
    let usable = match (unit, missing) {
        // What a part of a tree could use says nothing about the rest.
        (UnitKey::Group(_), Some(missing)) => usable_seats(&mut txn, members, missing, budget),
        _ => Vec::new(),
    };
    let shapes = txn.state().shapes();
    let is_guess = members.shapes().iter().any(|&shape| shapes.get(shape).volumes.is_guess);
    match outcome {
        Outcome::Placed(_) => Trial::Inconsistent("seats were found twice"),
        Outcome::Infeasible(room) => Trial::Refused { room, is_proven: !is_guess, usable, lifted },
        Outcome::Undecided(room) => Trial::Refused { room, is_proven: false, usable, lifted },
    }
}

/// Takes the seats, all of them or none.
fn take(
    mut txn: Txn<'_>,
    members: &mut Members,
    seats: &Seats,
    claims: BTreeMap<ObjectKey, ClaimPlan>,
    lifted: Vec<HoldKey>,
) -> Trial {
    let mut placed: Vec<(ObjectKey, NodeId)> = Vec::new();
    for &(index, node, count) in seats {
        let pods = members.draw(index, count);
        if !pods.is_empty() && !txn.seat(members.shape(index), &pods, node) {
            return Trial::Inconsistent("the solver seated pods on a node without room for them");
        }
        placed.extend(pods.into_iter().map(|pod| (pod, node)));
    }
    placed.sort_unstable();
    txn.restore_holds(&lifted);
    txn.commit();
    Trial::Placed { seats: placed, claims, lifted }
}

/// Seats that an incomplete gang could use although not all of it has room.
fn usable_seats(
    txn: &mut Txn<'_>,
    members: &Members,
    missing: u32,
    budget: &mut Budget,
) -> Vec<(ShapeId, NodeId, u32)> {
    let request = members.request().for_any();
    let Outcome::Placed(found) = solve(&request, &mut txn.tables(), budget) else { return Vec::new() };
    let mut left = missing;
    let mut seats = Vec::new();
    for (index, node, count) in found {
        let count = count.min(left);
        left -= count;
        if count > 0 {
            seats.push((members.shape(index), node, count));
        }
    }
    seats
}

/// What is missing if seats were found for members but no volumes.
fn without_volumes(state: &State, members: &Members) -> NoRoom {
    let nodes = state.nodes().nodes_count() as u32;
    let ruled_out = vec![(NodeReason::NoVolume, nodes)];
    NoRoom { needed: members.need(), nodes, ruled_out, ..NoRoom::default() }
}
